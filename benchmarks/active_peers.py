"""Votes to the same accuracy: ours beside cleanlab's ActiveLab (items) and scikit-activeml's wrapper (items, workers).

The same pool, first votes, network and epochs for all. ActiveLab ranks items by its scores and leaves the worker to
chance; what it learns from are its consensus labels, with out-of-sample predictions by cross-validation as it asks for.
The wrapper takes the most uncertain items of a classifier that was trained on the majority, and for each the workers
that its interval estimation of their accuracy ranks first.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.learn_peers import matrix
from benchmarks.page import ROOT, Table, lines_of, verdict
from voxpop.bench.active import learner, measured, pool_of
from voxpop.bench.experiment import Settings
from voxpop.bench.results import Mean
from voxpop.loop.rehearsal import STRATEGIES, ByFeatures, Guide, Pool, right, votes_to_reach
from voxpop.votes import Votes

DATA = ROOT.parent / "shared" / "data"
ENDS = (100, 200, 300, 400, 500)  # votes after each round
SETS = (("digits", "believable"), ("labelme", "people"))
SEEDS = 10
EPOCHS = 15
FOLDS = 3
NETWORK: dict[str, Any] = {
    "model": "mlp",
    "epochs": EPOCHS,
    "batch_size": 16,
    "lr": 2e-3,
    "aggregate": "majority-vote",
    "hard": True,
}


@dataclass(eq=False)
class Peer:
    """A network trained on one label a task, where there are votes."""

    pool: Pool
    seed: int

    def learn(self, told: Votes) -> None:
        self.votes = matrix(told)
        self.rows = np.flatnonzero((~np.isnan(self.votes)).any(1))
        self.label = self.consensus()
        self.net = self.trained(self.rows, self.label)

    def consensus(self) -> np.ndarray:
        """A label for each task with votes."""
        raise NotImplementedError

    def trained(self, rows: np.ndarray, label: np.ndarray) -> Any:
        """Our plain network on these labels: as many epochs and batches as ours has."""
        net = vp.TwoStage(**NETWORK, seed=self.seed)
        tasks, classes = range(len(rows)), range(self.pool.votes.K)
        one = Votes.from_arrays(
            np.arange(len(rows)), np.zeros(len(rows), int), label, tasks=tasks, workers=[0], classes=classes
        )
        return net.fit(self.pool.x[rows], one)

    def scores(self) -> dict[str, float]:
        belief = self.net.predict_proba(self.pool.x)
        belief[self.rows] = np.eye(belief.shape[1])[self.label]
        return {
            "consensus": right(belief, self.pool.truth),
            "classifier": right(self.net.predict_proba(self.pool.x_test), self.pool.y_test),
        }

    def majority(self) -> np.ndarray:
        K = self.pool.votes.K
        counts = np.stack([(self.votes[self.rows] == label).sum(1) for label in range(K)], 1)
        luck = np.random.default_rng(self.seed).random(counts.shape)
        return (counts + 0.5 * luck).argmax(1)


@dataclass(eq=False)
class ActiveLab(Peer):
    def consensus(self) -> np.ndarray:
        from cleanlab.multiannotator import get_label_quality_multiannotator

        self.shares = self.out_of_sample(self.majority())
        if self.alone:
            return self.majority()
        found = get_label_quality_multiannotator(self.told, self.shares, verbose=False)
        return found["label_quality"]["consensus_label"].to_numpy().astype(int)

    @property
    def alone(self) -> bool:
        """Whether no task has two votes: then it refuses, and names its scores for one label a task instead."""
        return bool(((~np.isnan(self.told)).sum(1) == 1).all())

    @property
    def told(self) -> np.ndarray:
        """The votes, without tasks and workers that have none, which it refuses."""
        told = self.votes[self.rows]
        return told[:, (~np.isnan(told)).any(0)]

    def out_of_sample(self, label: np.ndarray) -> np.ndarray:
        """Predictions for each task by a network that has not seen it."""
        shares = np.zeros((len(label), self.pool.votes.K))
        parts = np.random.default_rng(self.seed).permutation(len(label)) % FOLDS
        for part in range(FOLDS):
            net = self.trained(self.rows[parts != part], label[parts != part])
            shares[parts == part] = net.predict_proba(self.pool.x[self.rows[parts == part]])
        return shares

    def ask(self, k: int, left: Votes) -> pl.DataFrame:
        from cleanlab.multiannotator import get_active_learning_scores
        from cleanlab.rank import get_label_quality_scores

        others = np.setdiff1d(np.arange(left.N), self.rows)
        unseen = self.net.predict_proba(self.pool.x[others]) if len(others) else None
        if self.alone:
            old = get_label_quality_scores(self.label, self.shares)
            new = get_active_learning_scores(pred_probs_unlabeled=unseen)[1]
        else:
            old, new = get_active_learning_scores(self.told, self.shares, unseen)
        score = np.full(left.N, np.inf)
        score[self.rows], score[others] = old, new
        free = free_pairs(left)
        score[~free.any(1)] = np.inf
        tasks = np.argsort(score, kind="stable")[:k]
        tasks = tasks[np.isfinite(score[tasks])]
        rng = np.random.default_rng((self.seed, left.V))
        return pairs(left, tasks, np.array([rng.choice(np.flatnonzero(free[task])) for task in tasks]))


@dataclass(eq=False)
class Wrapper(Peer):
    def consensus(self) -> np.ndarray:
        return self.majority()

    def trained(self, rows: np.ndarray, label: np.ndarray) -> Any:
        """The same network within its own kind of classifier, which leaves out tasks without a label."""
        from skactiveml.classifier import SklearnClassifier

        target = np.full(len(self.votes), np.nan)
        target[rows] = label
        net = vp.TwoStage(**NETWORK, seed=self.seed)
        return SklearnClassifier(net, classes=np.arange(self.pool.votes.K)).fit(self.pool.x, target)

    def ask(self, k: int, left: Votes) -> pl.DataFrame:
        from skactiveml.pool import UncertaintySampling
        from skactiveml.pool.multiannotator import IntervalEstimationAnnotModel, SingleAnnotatorWrapper

        free = free_pairs(left)
        tasks = np.flatnonzero(free.any(1))
        skills = IntervalEstimationAnnotModel(classes=np.arange(left.K), random_state=self.seed)
        wrapper = SingleAnnotatorWrapper(
            UncertaintySampling(method="margin_sampling", random_state=self.seed), random_state=self.seed
        )
        asked = wrapper.query(
            self.pool.x,
            self.votes,
            candidates=tasks,
            annotators=free[tasks],
            batch_size=min(k, len(tasks)),
            A_perf=skills.fit(self.pool.x, self.votes).A_perf_[:, 2],  # the upper bound, its default mode
            clf=self.net,
            fit_clf=False,
        )
        return pairs(left, asked[:, 0], asked[:, 1])


def free_pairs(left: Votes) -> np.ndarray:
    """N,M, bool: which answers can still be had."""
    free = np.zeros((left.N, left.M), bool)
    free[left.task.numpy(), left.worker.numpy()] = True
    return free


def pairs(left: Votes, tasks: np.ndarray, workers: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"task": left.tasks.names.gather(tasks), "worker": left.workers.names.gather(workers)})


def ours(strategy: str, score: str, worker_score: str) -> Callable[[Pool, int], Guide]:
    settings = Settings(epochs=EPOCHS)
    return lambda pool, seed: ByFeatures(pool, STRATEGIES[strategy], learner(settings, seed), score, worker_score, seed)


GUIDES: dict[str, Callable[[Pool, int], Guide]] = {
    "voxpop, random": ours("random", "entropy", "random"),
    "voxpop, both, as in paper 002": ours("both", "entropy", "mean"),
    "voxpop, both by margin, no draws": ours("both", "margin", "mean"),
    "voxpop, both by margin": ours("both", "margin", "thompson"),
    "cleanlab ActiveLab": ActiveLab,
    "scikit-activeml wrapper": Wrapper,
}
OURS, PEERS = "voxpop, both by margin", ("cleanlab ActiveLab", "scikit-activeml wrapper")


def cell(on: str, crowd: str, name: str, seed: int) -> dict[str, float]:
    """The scores after each round, as "score@votes"."""
    pool = pool_of(Settings(on=on, folder=str(DATA)), crowd, seed)
    flat = replace(pool, x=pool.x.reshape(len(pool.x), -1), x_test=pool.x_test.reshape(len(pool.x_test), -1))
    return measured(flat, GUIDES[name](flat, seed), ENDS, seed)


def run(quick: bool, kept: Path | None = None) -> Table:
    """``kept``: a file of finished cells, a JSON object a line, to go on from."""
    sets = [(on, crowd) for on, crowd in SETS if on == "digits" or DATA.exists()]
    seeds = 2 if quick else SEEDS
    found = {tuple(row["cell"]): row["scores"] for row in _rows(kept)}
    for seed in range(seeds):
        for on, crowd in sets:
            for name in GUIDES:
                if (on, crowd, name, seed) not in found:
                    found[on, crowd, name, seed] = cell(on, crowd, name, seed)
                    _keep(kept, (on, crowd, name, seed), found[on, crowd, name, seed])
    rows, verdicts = [], []
    for on, crowd in sets:
        curves = {
            name: {score: _means(found, (on, crowd, name), score, seeds) for score in ("classifier", "consensus")}
            for name in GUIDES
        }
        for name, of in curves.items():
            rows.append([f"{on}, {crowd}", name, *(f"{_half(found, (on, crowd, name), s, seeds)}" for s in of)])
            rows[-1] += [_reach(curves[OURS][score], of[score][-1]) for score in of]
        for peer in PEERS:
            needed = votes_to_reach(ENDS, curves[OURS]["classifier"], curves[peer]["classifier"][-1])
            ahead = [
                [found[on, crowd, who, seed][f"classifier@{end}"] for end in ENDS[1:]]
                for seed in range(seeds)
                for who in (OURS, peer)
            ]
            lead = Mean.of(np.mean(ahead[0::2], 1) - np.mean(ahead[1::2], 1))  # seed by seed, over all rounds
            last = Mean.of(np.array(ahead)[0::2, -1] - np.array(ahead)[1::2, -1])
            verdicts.append(
                verdict(
                    needed < ENDS[-1],
                    f"{on}, {crowd}: the classifier that {peer} reaches with {ENDS[-1]} votes takes ours "
                    + (f"more than {ENDS[-1]}" if math.isnan(needed) else f"{needed:.0f}")
                    + f" (ours less {peer}, seed by seed: {last.in_points()} points with {ENDS[-1]} votes, "
                    f"{lead.in_points()} over the rounds)",
                )
            )
    return Table(
        "Asking: votes to the same accuracy",
        f"Digits with a simulated crowd of 50 (everyone can be asked about everything), LabelMe with people's votes; "
        f"{ENDS[0]} votes at random, then {len(ENDS) - 1} rounds of {ENDS[1] - ENDS[0]}; one hidden layer of 128, "
        f"{EPOCHS} epochs; {seeds} seeds. Accuracy with {ENDS[-1]} votes in %, of the classifier on new tasks and of "
        f"the consensus on all tasks; and the votes with which '{OURS}' has reached as much (a dash: with more).",
        ["data", "who asks", "classifier", "consensus", "ours: votes (classifier)", "ours: votes (consensus)"],
        rows,
        verdicts,
    )


def _means(found: dict, key: tuple[str, str, str], score: str, seeds: int) -> list[float]:
    return [float(np.mean([found[(*key, seed)][f"{score}@{end}"] for seed in range(seeds)])) for end in ENDS]


def _half(found: dict, key: tuple[str, str, str], score: str, seeds: int) -> str:
    return Mean.of(found[(*key, seed)][f"{score}@{ENDS[-1]}"] for seed in range(seeds)).in_points()


def _reach(curve: list[float], level: float) -> str:
    votes = votes_to_reach(ENDS, curve, level)
    return "-" if math.isnan(votes) else f"{votes:.0f}"


def _rows(kept: Path | None) -> list[dict]:
    return [] if kept is None or not kept.exists() else [json.loads(line) for line in kept.open()]


def _keep(kept: Path | None, key: tuple[str, str, str, int], scores: dict[str, float]) -> None:
    if kept is not None:
        with kept.open("a") as file:
            file.write(json.dumps({"cell": key, "scores": scores}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds")
    parser.add_argument("--kept", type=Path, help="a file of finished cells: a run that was ended goes on")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table = run(given.quick, given.kept)
    print("\n".join(lines_of(table)))
