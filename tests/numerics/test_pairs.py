"""voxpop.numerics.pairs against sums over votes written out."""

from __future__ import annotations

import pytest
import torch

from voxpop.numerics import segments
from voxpop.numerics.pairs import Pairs
from voxpop.numerics.segments import offsets_of


def some(counts: list[int], width: int, seed: int = 0) -> tuple[Pairs, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pairs with five workers, rows of tasks and workers, and a weight for each vote."""
    rng = torch.Generator().manual_seed(seed)
    worker = torch.randint(0, 5, (sum(counts),), generator=rng).int()
    worker[worker == 3] = 1  # nobody meets the fourth
    pairs = Pairs(worker, offsets_of(torch.tensor(counts)).int())
    of_tasks, of_workers = (torch.randn(n, width, generator=rng) for n in (len(counts), 5))
    return pairs, of_tasks, of_workers, torch.randn(sum(counts), generator=rng)


@pytest.mark.parametrize("width", [1, 3, 16, 33])
@pytest.mark.parametrize("counts", [[3, 0, 2, 1], [0, 0], [1], [40, 7]], ids=str)
@pytest.mark.parametrize("piece", [2, 4096])
def test_products_and_sums_are_those_of_copied_rows(
    counts: list[int], width: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "PIECE", piece)
    pairs, of_tasks, of_workers, weight = some(counts, width)
    task, worker = pairs.task.long(), pairs.worker.long()
    at, who = of_tasks[task], of_workers[worker]  # V,C
    torch.testing.assert_close(pairs.dots(of_tasks, of_workers), (at * who).sum(1))
    expected = torch.zeros_like(of_tasks).index_add_(0, task, weight[:, None] * who)
    torch.testing.assert_close(pairs.over_tasks(weight, of_workers), expected)
    out = torch.ones(5, width, dtype=torch.float64)
    pairs.add_over_workers(out, weight, of_tasks)
    expected = torch.ones(5, width).index_add_(0, worker, weight[:, None] * at)
    torch.testing.assert_close(out.float(), expected, rtol=1e-4, atol=1e-5)
