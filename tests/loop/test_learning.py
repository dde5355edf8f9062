"""Full fits: when one pays, in the background, and what becomes of one that fails."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

import voxpop as vp
from tests.loop.conftest import TASKS, frame
from voxpop.errors import BadOption
from voxpop.loop import learning
from voxpop.loop.learning import FAILED, LAST, check_method, failure, pays
from voxpop.loop.locks import FITTING, held
from voxpop.loop.loop import Loop


def tell(loop: Loop, number: int) -> None:
    """So many votes of somebody new."""
    rows = [f"{TASKS[i % 12]} w{loop.store.last + i} yes" for i in range(number)]
    loop.tell(vp.Votes.from_frame(frame(*rows), tasks=TASKS, classes=["no", "yes"]))


def test_a_fit_pays_when_there_are_a_tenth_more_votes():
    def store(last: int, fitted: int) -> Any:
        return SimpleNamespace(last=last, cached=lambda name: (fitted, b"") if name == LAST else None)

    assert pays(store(1100, 1000))
    assert not pays(store(1099, 1000))


def test_a_fit_pays_when_there_are_ten_votes_more(loop: Loop):
    assert pays(loop.store)
    loop.fit()
    assert not pays(loop.store)
    tell(loop, 9)
    assert not pays(loop.store)
    tell(loop, 1)
    assert pays(loop.store)


def test_all_fits_together_cost_a_few_times_the_last():
    """Votes come one by one; a fit costs as much as the votes that it knows."""
    fitted, cost, last = 0, 0, 20_000
    for votes in range(last + 1):
        if pays(SimpleNamespace(last=votes, cached=lambda name, f=fitted: (f, b"") if name == LAST else None)):  # type: ignore[arg-type]
            fitted, cost = votes, cost + votes
    assert cost < 11 * last


def test_a_fit_begins_in_the_background_of_an_ask_and_ends_by_itself(loop: Loop):
    start = time.monotonic()
    loop.ask(2)
    while not loop.status()["fitted"] and time.monotonic() < start + 120:
        tell(loop, 1)  # which nothing holds up
        time.sleep(0.2)
    assert loop.status()["fitted"] >= 24
    assert loop.status()["method"] == "default"
    assert (loop.directory / "fit.log").read_text() == ""


def test_a_fit_does_not_begin_where_none_pays_or_one_is_running(loop: Loop, monkeypatch: pytest.MonkeyPatch):
    began: list[Any] = []
    monkeypatch.setattr("voxpop.loop.loop.start", began.append)
    with held(loop.directory, FITTING):
        loop.ask(1)
        assert loop.status()["fitting"]
    assert not began
    loop.ask(1)
    assert began == [loop.directory]
    loop.fit()
    loop.ask(1)
    assert began == [loop.directory]


def test_a_fit_that_fails_says_why_and_is_not_tried_again_at_once(loop: Loop, monkeypatch: pytest.MonkeyPatch):
    class Broken:
        def infer(self, votes: vp.Votes) -> None:
            raise RuntimeError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(learning, "make", lambda settings: Broken())
        with pytest.raises(RuntimeError, match="no luck"):
            loop.fit()
    assert loop.status()["failed"] == failure(loop.store) == "RuntimeError: no luck"
    assert not pays(loop.store)
    assert loop.store.cached(FAILED) is not None
    loop.fit()
    assert failure(loop.store) is None


def test_the_last_fit_takes_the_place_of_the_one_before(loop: Loop):
    loop.fit()
    tell(loop, 3)
    loop.fit()
    assert [path.name for path in loop.directory.glob("fit-*.vox")] == ["fit-27.vox"]


@pytest.mark.parametrize(
    ("settings", "features", "says"),
    [
        ({"method": "glad"}, True, "glad does not learn from features; name one that does, such as dalc"),
        ({"method": "dalc"}, False, "dalc learns from features, and there are none"),
        ({"method": "default", "model": "mlp"}, False, "model=mlp is the network of a method"),
        ({"method": "dalc", "options": '["epochs"]'}, True, "epochs is not of the form NAME=VALUE"),
        ({"method": "dalc", "options": '["epochs=0"]'}, True, "epochs"),
    ],
)
def test_methods_that_do_not_fit(settings: dict[str, str], features: bool, says: str):
    with pytest.raises(BadOption, match=says):
        check_method({"options": "[]", "seed": "0", **settings}, features)
