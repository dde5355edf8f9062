"""What to ask next, and whom: what is known, what is out, and what votes cost, put to ``voxpop.active``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from voxpop.active.ask import Asked, plan
from voxpop.active.expertise import Expertise
from voxpop.active.items import Items
from voxpop.active.skills import Skills
from voxpop.errors import BadInput, BadOption
from voxpop.loop.knowledge import Known, known
from voxpop.loop.locks import ASKING, held
from voxpop.loop.store import Store
from voxpop.methods.learning.targeted import Targeted

HandOut = Callable[[pl.DataFrame], None]
SCORE = "error"


def ask(store: Store, k: int, lease: float, now: float, hand_out: HandOut | None = None) -> Asked:
    """The best ``k`` pairs, which are out from now on. One process at a time asks; nobody who tells waits for it.

    ``hand_out`` writes them somewhere: where it fails, nothing is out.
    """
    with held(store.directory, ASKING):
        asked = planned(store, k, now)
        with store.changing():
            free = store.lease(asked.frame, now, now + lease)
            asked = replace(asked, frame=asked.frame.filter(free))
            if hand_out is not None:
                hand_out(asked.frame)
    return asked


def planned(store: Store, k: int, now: float, facts: Known | None = None) -> Asked:
    """What would be asked, from what is known."""
    if k < 1:
        raise BadOption(f"k={k} asks for nothing; give 1 or more")
    workers = store.workers()
    if workers.is_empty():
        raise BadInput(f"{store.directory}: there is no worker to ask; name some with 'voxpop loop tell --workers'")
    if not workers["available"].any():
        raise BadInput(
            f"{store.directory}: none of the {len(workers):,} workers is available; say who is with "
            "'voxpop loop tell --workers'"
        )
    facts = facts or known(store)
    out = store.outstanding(now)
    names = facts.votes.workers.names
    return plan(
        k,
        items=Items(facts.votes.tasks, facts.belief),
        expertise=expertise(facts),
        votes=facts.votes,
        workers=workers,
        outstanding=pl.DataFrame(
            {"task": store.tasks.names.gather(out["task"]), "worker": names.gather(out["worker"])}
        ),
        score=SCORE,
        worth=float(store.settings["worth"]),
        seed=int(store.settings["seed"]) + store.last,
    )


def expertise(facts: Known) -> Expertise | Skills:
    """How likely each worker is right: on each task, where the last full fit learned that; else as his votes were."""
    skills = Skills.of_votes(facts.votes, facts.belief)
    learner = facts.fit.learner if facts.fit else None
    return learner.expertise_of(facts.votes.workers, skills.mean) if isinstance(learner, Targeted) else skills
