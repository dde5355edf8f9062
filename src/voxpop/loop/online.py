"""Workers judged vote by vote: Dawid-Skene by stepwise EM, in a file beside the database.

The file is only a help: it knows the votes up to a number, which is how many it has seen, and what is missing is
added from the database. So it may be lost, or be of any moment, and nothing is.
"""

from __future__ import annotations

from voxpop.channels.base import table_fits
from voxpop.errors import BadInput
from voxpop.loop.store import Store
from voxpop.methods.online import OnlineDawidSkene

FILE = "online.vox"
PASSES = 5  # over all votes, where there is no file yet


def learn(store: Store) -> OnlineDawidSkene | None:
    """Everything told, in time proportional to what is new; None where the crowd is too large for its matrices."""
    if not table_fits(len(store.workers()), len(store.classes)):
        return None
    path = store.directory / FILE
    state = _read(store)
    seen = 0 if state is None else int(state.workers["votes"].sum())
    if seen > store.last:
        state, seen = None, 0  # the database is an older copy
    votes, through = store.votes(after=seen)
    if state is None:
        state = OnlineDawidSkene(seed=int(store.settings["seed"])).partial_fit(votes).refine(PASSES)
    elif through > seen:
        state.partial_fit(votes)
    else:
        return state
    state.save(path)
    return state


def _read(store: Store) -> OnlineDawidSkene | None:
    path = store.directory / FILE
    if not path.is_file():
        return None
    try:
        return OnlineDawidSkene.load(path)
    except BadInput:
        return None  # a damaged one is made anew
