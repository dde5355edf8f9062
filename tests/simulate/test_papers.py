"""The crowds of papers 000, 001 and 004 have the numbers that the papers print."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from voxpop.errors import BadInput, BadOption, UnknownName
from voxpop.simulate import simulate_votes_on
from voxpop.simulate.blur import blurred
from voxpop.simulate.subsets import busiest, few_each, observed, with_spammers
from voxpop.votes import Votes

TRUTH = load_digits().target[:1000]
SIZES = {"independent": (5, 10), "naive": (10, 25), "correlated": (10, 12)}  # case -> workers in (H), (L)
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@pytest.mark.parametrize("case", SIZES)
@pytest.mark.parametrize("level", ["H", "L"])
def test_seniors_are_the_same_in_all_three_cases(case, level):
    found = simulate_votes_on(TRUTH, kind="seniors", case=case, level=level)
    assert SIZES[case]["HL".index(level)] == found.votes.M
    assert found.votes.V == 1000 * found.votes.M
    alone = simulate_votes_on(TRUTH, kind="seniors", level=level)
    assert torch.equal(found.tables[: alone.votes.M], alone.tables)
    assert found.kinds[: alone.votes.M] == ["senior"] * alone.votes.M


def test_two_classes_have_the_papers_expertise():
    found = simulate_votes_on(TRUTH % 2, kind="seniors")
    right = found.tables.diagonal(dim1=1, dim2=2)  # M,2: cat, dog
    expected = [[0.8, 0.6], [0.6, 0.6], [0.6, 0.9], [0.7, 0.7], [0.7, 0.6]]  # the paper writes dogs/cats
    torch.testing.assert_close(right, torch.tensor(expected))
    lung = simulate_votes_on(TRUTH % 2, kind="seniors", level="L", like="luna16")
    torch.testing.assert_close(lung.tables, torch.tensor([[0.6, 0.4], [0.4, 0.6]]).expand(10, 2, 2))


def test_ten_classes_are_mistaken_in_the_papers_pairs_only():
    tables = simulate_votes_on(TRUTH, kind="seniors").tables
    cat, dog, plane, bird = (CIFAR.index(name) for name in ("cat", "dog", "airplane", "bird"))
    a, b, c, d, e = tables
    assert a[dog, cat] == a[cat, cat] == 1
    assert b[dog, cat] == b[cat, dog] == 0.5
    assert c[dog, dog] == c[cat, cat] == 1
    assert c[plane, bird] == 0.5
    assert d[plane, plane] == d[bird, bird] == 1
    assert d[cat, cat] == d[dog, cat] == 1
    torch.testing.assert_close(e.diagonal(), torch.full((10,), 0.6))
    assert int((b > 0).sum()) == 20
    low = simulate_votes_on(TRUTH, kind="seniors", level="L").tables
    torch.testing.assert_close(low[0, 0], torch.tensor([0.2] + [0.8 / 9] * 9))


def test_juniors_copy_a_and_c_or_say_the_first_class():
    votes = simulate_votes_on(TRUTH, kind="seniors", case="correlated").votes
    said = votes.label.view(1000, 10)
    assert torch.equal(said[:, 5:], said[:, [0, 0, 2, 2, 2]])
    votes = simulate_votes_on(TRUTH, kind="seniors", case="correlated", level="L").votes
    assert torch.equal(votes.label.view(1000, 12)[:, 10:], votes.label.view(1000, 12)[:, [0, 2]])
    votes = simulate_votes_on(TRUTH, kind="seniors", case="naive", level="L").votes
    assert (votes.label.view(1000, 25)[:, 10:] == 0).all()


def test_a_regular_graph_fits_any_number_of_tasks_and_votes():
    found = simulate_votes_on(TRUTH % 2, kind="regular", spammers=2, alpha=(0.2, 0.1))
    assert torch.bincount(found.votes.worker).tolist() == [4] * 750 + [1000] * 2
    assert found.kinds[-2:] == ["spammer"] * 2
    dense = simulate_votes_on(TRUTH[:200] % 2, kind="regular", votes_per_task=10)  # as many votes, a fixed budget
    assert torch.bincount(dense.votes.worker).tolist() == [4] * 500
    assert torch.bincount(dense.votes.task).tolist() == [10] * 200


def test_partly_observed_votes_have_the_f1_they_are_asked_for():
    truth = (np.random.default_rng(0).random(200_000) < 0.1).astype(int)
    found = simulate_votes_on(truth, 9, kind="partly-observed", f1=(0.7, 0.7), fraction=0.3)
    assert pytest.approx(0.3 * 9 * 200_000, rel=0.01) == found.votes.V
    said, right = found.votes.label == 1, found.truth[found.votes.task] == 1
    hits = int((said & right).sum())
    assert hits / int(said.sum()) == pytest.approx(0.7, abs=0.01)
    assert hits / int(right.sum()) == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "seniors", "case": "independant"}, UnknownName, "did you mean 'independent'"),
        ({"kind": "seniors", "level": "high"}, UnknownName, "unknown level 'high'"),
        ({"kind": "seniors", "like": "cats"}, UnknownName, "unknown experts 'cats'"),
        ({"kind": "seniors", "levl": "H"}, UnknownName, "did you mean 'level'"),
        ({"kind": "regular", "spammers": -1}, BadOption, "spammers=-1"),
        ({"kind": "partly-observed", "fraction": 2}, BadOption, "fraction=2"),
    ],
)
def test_mistakes_are_named(options, error, message):
    with pytest.raises(error, match=message):
        simulate_votes_on(TRUTH % 2, **options)


# -- subsets of real votes --------------------------------------------------------------------


@pytest.fixture
def votes() -> Votes:
    return simulate_votes_on(TRUTH[:300], workers=20, seed=3).votes


def rows(votes: Votes) -> set[tuple[int, str, int]]:
    return set(votes.to_frame().select("task", votes.to_frame()["worker"].cast(str), "label").iter_rows())


def test_a_fraction_of_the_votes(votes):
    some = observed(votes, 0.1, seed=1)
    assert round(0.1 * votes.V) == some.V
    assert rows(some) < rows(votes)
    assert rows(some) != rows(observed(votes, 0.1, seed=2))
    assert (some.tasks, some.workers) == (votes.tasks, votes.workers)
    assert observed(votes, 1.0) == votes


def test_few_votes_of_each_worker(votes):
    some = few_each(votes, 4, seed=1)
    had = torch.bincount(votes.worker, minlength=20)
    assert torch.equal(torch.bincount(some.worker, minlength=20), had.clamp_max(4))
    assert rows(some) < rows(votes)


def test_the_busiest_workers(votes):
    had = torch.bincount(votes.worker, minlength=20)
    some = busiest(votes, 9)
    assert torch.bincount(some.worker).sort().values.tolist() == had.sort().values[-9:].tolist()
    assert rows(some) < rows(votes)
    assert some == Votes.from_frame(
        some.to_frame(), tasks=some.tasks.names, workers=some.workers.names, classes=some.classes.names
    )


def test_spammers_on_top(votes):
    more = with_spammers(votes, 2, seed=1)
    assert torch.bincount(more.worker)[-2:].tolist() == [300, 300]
    assert rows(votes) < rows(more)
    assert more == Votes.from_frame(
        more.to_frame(), tasks=more.tasks.names, workers=more.workers.names, classes=more.classes.names
    )
    share = torch.bincount(more.label[more.worker >= 20], minlength=10) / 600
    assert (share - 0.1).abs().max() < 5 * (0.09 / 600) ** 0.5
    with pytest.raises(BadInput, match="there is a worker 'spammer 0' already"):
        with_spammers(more)


# -- blur -------------------------------------------------------------------------------------


def test_blur_is_scaled_to_the_image_and_keeps_the_mean():
    image = np.zeros((1, 112, 112), np.float32)
    image[0, 56, 56] = 1e4
    soft = blurred(image, 16, levels=1 << 24)[0]  # half of 224 pixels: half the radius
    place = np.arange(112) - 56
    spread = (soft.sum(0) * place**2).sum() / soft.sum()
    assert spread**0.5 == pytest.approx(8, rel=0.02)
    assert soft.sum() == pytest.approx(1e4, rel=1e-3)
    assert np.array_equal(blurred(image, 0), image)
    colour = blurred(np.stack([image, 2 * image], -1), 16, levels=1 << 24)
    np.testing.assert_allclose(colour[..., 1], 2 * colour[..., 0], rtol=1e-3, atol=1e-2)


def test_blur_loses_what_grey_levels_cannot_hold():
    images = load_digits().images
    levels = np.unique(blurred(images, 16, levels=17))
    assert set(levels) <= set(range(17))
    with pytest.raises(BadInput, match="shape"):
        blurred(images[0], 3)
    with pytest.raises(BadOption, match="radius=-1"):
        blurred(images, -1)
