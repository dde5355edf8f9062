"""Several devices on a part of every batch each: the answer of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import voxpop as vp
from tests.conformance.learners import crowd
from voxpop.errors import BadOption
from voxpop.learn.loop import part_of

SCRIPT = """
import sys
import numpy as np
import torch
import voxpop as vp
from tests.conformance.learners import crowd
from voxpop.learn.loop import first_process

torch.set_num_threads(1)
c = crowd()
for name in ("CrowdLayer", "AggNet"):
    learner = vp.make(name, model="linear", epochs=3, batch_size=16, lr=0.01, devices=2).fit(c.X, c.votes)
    if first_process():
        np.save(f"{sys.argv[1]}/{name}.npy", learner.predict_proba(c.X))
"""


def alone() -> dict[str, str]:
    """This process's environment, as if no other had started it."""
    return {name: value for name, value in os.environ.items() if name not in ("LOCAL_RANK", "WORLD_SIZE")}


def test_two_find_what_one_finds(tmp_path: Path) -> None:
    """The slope of a batch is the mean of its parts' slopes."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, script, tmp_path], env=alone() | {"PYTHONPATH": paths}, capture_output=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr.decode()
    c = crowd()
    for name in ("CrowdLayer", "AggNet"):
        one = vp.make(name, model="linear", epochs=3, batch_size=16, lr=0.01).fit(c.X, c.votes)
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), one.predict_proba(c.X), atol=1e-5)


def test_the_command_line_tells_once(tmp_path: Path) -> None:
    c = crowd()
    c.votes.to_frame().write_csv(tmp_path / "votes.csv")
    np.savez(tmp_path / "x.npz", x=c.X, tasks=np.arange(len(c.X)))
    given = "learn votes.csv --features x.npz -m aggnet --epochs 2 --set devices=2 -o m.vox --consensus-out c.csv"
    ran = subprocess.run(
        [sys.executable, "-m", "voxpop.cli", *given.split()],
        cwd=tmp_path,
        env=alone(),
        capture_output=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.decode().count("classifier: ") == 1
    assert ran.stderr == b""
    assert (tmp_path / "c.csv").read_text().startswith("task,label,confidence")


@pytest.mark.parametrize(("tasks", "parts"), [(12, 3), (10, 3), (2, 3), (0, 2)])
def test_parts_are_as_long_and_leave_nothing_out(tasks: int, parts: int) -> None:
    order = torch.randperm(tasks, generator=torch.Generator().manual_seed(0))
    found = [part_of(order, rank, parts) for rank in range(parts)]
    assert len({len(part) for part in found}) == 1
    assert set(torch.cat(found).tolist()) == set(range(tasks))
    together = torch.stack(found, 1)
    for size in (2, 4):  # of each part's batch: together they are the batch of one device
        assert together[:size].flatten()[:tasks].tolist() == order[: size * parts].tolist()[: together[:size].numel()]


def test_what_takes_whole_batches_says_so_before_anything_is_started() -> None:
    c = crowd()
    with pytest.raises(BadOption, match=r"devices=2: .* takes whole batches"):
        vp.BayesDGC(devices=2, epochs=1).fit(c.X, c.votes)
