"""voxpop.numerics.seeds: one generator a purpose, and nothing global."""

from __future__ import annotations

import torch

from voxpop.numerics.seeds import generator


def test_equal_seeds_and_purposes_give_equal_draws_and_others_do_not() -> None:
    def draw(*key: object) -> list[float]:
        return torch.rand(4, generator=generator(*key)).tolist()  # type: ignore[arg-type]

    assert draw(0, "a", 1) == draw(0, "a", 1)
    distinct = [draw(0, "a", 1), draw(0, "a", 2), draw(0, "b", 1), draw(1, "a", 1), draw(0)]
    assert len({tuple(d) for d in distinct}) == len(distinct)


def test_the_global_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    torch.rand(3, generator=generator(5, "x"))
    assert torch.equal(torch.get_rng_state(), before)


def test_large_seeds_are_taken() -> None:
    assert torch.rand(2, generator=generator(2**62, "x")).shape == (2,)
