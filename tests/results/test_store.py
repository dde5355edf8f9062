"""voxpop.results.store: an answer in one file, and back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from voxpop.errors import BadInput
from voxpop.methods.dawid_skene import DawidSkene
from voxpop.methods.gibbs_bcc import GibbsBCC
from voxpop.methods.glad import GLAD
from voxpop.methods.majority import MajorityVote
from voxpop.results import Consensus, load
from voxpop.votes import Votes

AXES = [
    (["b", "a", "b"], ["ü", "ü", ""], ["yes", "no", "no"]),
    (np.array([5, 3, 5], np.int32), np.array([1, 1, 2], np.uint8), np.array([True, False, False])),
    ([10, 2, 3], ["10", "9", "9"], [-1, 0, -1]),
]


def same(a: Consensus, b: Consensus) -> bool:
    tensors = ("belief", "sure", "fitted_table", "accuracy_samples", "gold")
    for name in tensors:
        x, y = getattr(a, name), getattr(b, name)
        if (x is None) != (y is None) or (x is not None and not torch.equal(x, y)):
            return False
    first = a.votes.tasks[0]
    return (
        a.votes == b.votes
        and (a.method, a.status, a.notes) == (b.method, b.status, b.notes)
        and a.to_frame(beliefs=True).equals(b.to_frame(beliefs=True))
        and a.workers.equals(b.workers)
        and a.explain(first).equals(b.explain(first))
        and len(a.history) == len(b.history)
    )


@pytest.mark.parametrize("axes", AXES, ids=["text", "numbers", "mixed"])
@pytest.mark.parametrize("method", [DawidSkene(), GLAD(), GibbsBCC(max_iter=20), MajorityVote(soft=True)], ids=str)
def test_what_is_read_is_what_was_written(method: object, axes: tuple, tmp_path: Path) -> None:
    votes = Votes.from_arrays(*axes)
    found = method.infer(votes, gold={votes.tasks[0]: votes.classes[0]})  # type: ignore[attr-defined]
    found.save(tmp_path / "a.vox")
    assert same(found, load(tmp_path / "a.vox"))


def test_tasks_workers_and_no_votes_are_kept(tmp_path: Path) -> None:
    votes = Votes.from_arrays(["a", "b"], ["w", "x"], ["x", "y"], tasks=["b", "a", "none"], workers=["x", "w", "idle"])
    found = DawidSkene().infer(votes)
    found.save(tmp_path / "a.vox")
    assert same(found, load(tmp_path / "a.vox"))


@pytest.mark.filterwarnings("ignore:there are no votes")
def test_axes_without_names(tmp_path: Path) -> None:
    votes = Votes.from_arrays([], [], [], tasks=["t"], workers=[], classes=["x", "y"])
    MajorityVote().infer(votes).save(tmp_path / "a.vox")
    assert load(tmp_path / "a.vox").votes == votes


def test_the_header_is_json_and_says_the_format(tmp_path: Path) -> None:
    DawidSkene().infer(Votes.from_arrays([0, 0], [0, 1], [0, 1])).save(tmp_path / "a.vox")
    content = (tmp_path / "a.vox").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["voxpop"])
    assert header["format"] == 1
    assert header["kind"] == "consensus"
    assert header["options"]["smoothing"] == 0.01


def test_what_is_no_consensus_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("task,label\n")
    save_file({"x": torch.ones(1)}, tmp_path / "other")
    save_file({"x": torch.ones(1)}, tmp_path / "newer", {"voxpop": json.dumps({"format": 99})})
    DawidSkene().infer(Votes.from_arrays([0, 0], [0, 1], [0, 1])).save(tmp_path / "cut")
    (tmp_path / "cut").write_bytes((tmp_path / "cut").read_bytes()[:-10])
    for name, words in {
        "nothing": "no such file",
        ".": "directory",
        "text": "not a file that voxpop wrote",
        "other": "not one that voxpop wrote",
        "newer": "upgrade",
        "cut": "damaged",
    }.items():
        with pytest.raises(BadInput, match=words):
            load(tmp_path / name)
