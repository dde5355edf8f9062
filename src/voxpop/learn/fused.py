"""What descent asks of the crowd's weights, with its slopes worked out by hand.

Beside a small network the arithmetic of the votes is little and the handling of its many small operations is not: each
function here is one node of the graph, and keeps no more than its slopes need. Weights are those of some workers as
[label, worker, truth], K,U,K: a softmax along the first axis takes a tenth of the time of one along a short last axis.
``who`` (V) says whose each vote is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from voxpop.votes import Batch


def picked(weights: Tensor, who: Tensor, batch: Batch) -> Tensor:
    """log p(label | truth) of each vote, by the softmax of the weights over the labels: V,K."""
    return _node(_Picked, weights, who, batch.label.long())


def foretold(logp: Tensor, given: Tensor, batch: Batch) -> Tensor:
    """log sum_k p(k | x) p(label | k) of each vote, from log p(k | x) (B,K) and log p(label | k) (V,K): V."""
    return _node(_Foretold, logp, given, batch.task.long())


def through(p: Tensor, weights: Tensor, who: Tensor, batch: Batch) -> Tensor:
    """sum_k p(k | x) weights[label, worker, k] of each vote and every label, from p (B,K): V,K."""
    return _node(_Through, p, weights, who, batch.task.long())


def volume(rows: Tensor, stable: float) -> Tensor:
    """log det (R' R + stable I) of rows R (n,K): a scalar."""
    return _node(_Volume, rows, stable)


def _node(kind: type[Function], *inputs: Any) -> Tensor:
    found = kind.apply(*inputs)  # type: ignore[no-untyped-call]
    assert isinstance(found, Tensor)
    return found


class _Picked(Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, who: Tensor, label: Tensor) -> Tensor:
        K, U, _ = weights.shape
        log, row = weights.log_softmax(0), label * U + who  # K,U,K and V
        ctx.save_for_backward(log, row)
        return log.view(K * U, K).index_select(0, row)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        """The label's own weight goes up, all of its row down by their shares."""
        log, row = ctx.saved_tensors
        K, U, _ = log.shape
        up = slope.new_zeros(K * U, K).index_add_(0, row, slope).view(K, U, K)
        return torch.addcmul(up, log.exp(), up.sum(0), value=-1), None, None


class _Foretold(Function):
    @staticmethod
    def forward(ctx: Any, logp: Tensor, given: Tensor, task: Tensor) -> Tensor:
        both = logp.index_select(0, task) + given  # V,K
        found = both.logsumexp(1)  # V
        ctx.save_for_backward(both, found, task)
        ctx.rows = len(logp)
        return found

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, None]:
        """By p(truth | label, x) both."""
        both, found, task = ctx.saved_tensors
        share = (both - found[:, None]).exp_() * slope[:, None]  # V,K
        return share.new_zeros(ctx.rows, share.shape[1]).index_add_(0, task, share), share, None


class _Through(Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, weights: Tensor, who: Tensor, task: Tensor) -> Tensor:
        own, mine = p.index_select(0, task), weights.index_select(1, who)  # V,K and K,V,K
        ctx.save_for_backward(own, mine, who, task)
        ctx.sizes = len(p), weights.shape[1]
        return (mine * own).sum(2).t()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, None, None]:
        own, mine, who, task = ctx.saved_tensors
        (rows, U), K, by_label = ctx.sizes, own.shape[1], slope.t()[:, :, None]  # K,V,1
        of_p = slope.new_zeros(rows, K).index_add_(0, task, (mine * by_label).sum(0))
        return of_p, slope.new_zeros(K, U, K).index_add_(1, who, by_label * own), None, None


class _Volume(Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, stable: float) -> Tensor:
        with torch.autocast(rows.device.type, enabled=False):  # in half precision it would have no root
            gram = rows.t() @ rows  # K,K
        gram.diagonal().add_(stable)
        root = torch.linalg.cholesky_ex(gram).L  # of what is no number, none: the loss says so
        ctx.save_for_backward(rows, root)
        logs: Tensor = root.diagonal().log()
        return 2 * logs.sum()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        rows, root = ctx.saved_tensors
        return rows @ (2 * slope * torch.cholesky_inverse(root)), None
