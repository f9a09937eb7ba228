"""Checks of sparse derivatives: they are the dense ones, at a point and at others, with jit and without."""

import math
from unittest import mock

import numpy as np

import fad
from fad import tree
from fad.sparse import passes

from .arguments import with_noise
from .checks import case_tolerance, check, single
from .compare import Skipped, identical, observe, same_leaf, snapshot
from .losses import float_leaves, loss_of_some
from .program import evaluate


def _points(case):
    """Return the arguments, others of the same shapes, and the arguments once more."""
    r = np.random.default_rng(case.seed)
    moved = [with_noise(r, case.program.arguments, size) for size in (0.1, 0.6)]
    return [case.arguments(), *map(evaluate, moved), case.arguments()]


def _matrix(found, x):
    blocks = [np.zeros((0, np.size(x)))]
    for y in tree.leaves(found):
        rows = math.prod(np.shape(y)[: np.ndim(y) - np.ndim(x)])
        blocks.append(np.reshape(y, (rows, np.size(x))))
    return np.concatenate(blocks)


def _compare(case, sparse, dense, what):
    """Compare a sparse derivative with the dense one; each is ``(f, arguments, position) -> derivative``."""
    case.needs_derivative()
    k = case.diff[0]
    leaves = tree.leaves(case.plain.outputs)
    if case.plain.error is not None or np.iscomplexobj(case.values[k]) or any(np.iscomplexobj(y) for y in leaves):
        raise Skipped("an error, or complex numbers")
    world = case.program.world()
    before = world.outside()
    outside = [(x, case.plain.outside[name]) for name, x in before.items()]
    outside += [pair for i, pair in enumerate(zip(case.arguments(), case.plain.arguments, strict=True)) if i != k]
    if any(not identical(x, y) for x, y in outside):
        raise Skipped("it changes arrays outside of the function, and a sparse derivative runs it more than once")
    first = case.arguments()
    made = sparse(world.f, first, k)
    for full in _points(case):
        given = [full[k] if i == k else x for i, x in enumerate(first)]
        other = case.program.world()
        wanted = observe(dense(other.f, first, k), other, [given[k]])
        if wanted.error is not None or not all(np.isfinite(y).all() for y in tree.leaves(wanted.outputs)):
            raise Skipped("there is no dense derivative, or it is not finite")
        if any(np.isnan(y).any() for y in float_leaves(case.program.world().f, first, k)(snapshot(given[k]))):
            raise Skipped("there is no value, and then no derivative")
        got = observe(lambda x: made(x).toarray(), world, [given[k]])
        case.succeeded(got)
        same_leaf(_matrix(wanted.outputs, given[k]), got.outputs, what, types=False, close=case_tolerance(case),
                  zeros=False)  # fmt: skip


def _jacobian(transform, mode):
    return lambda f, full, k: transform(fad.sparse.jacobian(float_leaves(f, full, k), mode=mode))


@check("sparse jacobian")
def sparse_jacobian(case):
    """A sparse Jacobian is the dense one, whichever way its passes run."""
    with mock.patch.object(passes, "WIDE", 0 if case.seed % 2 else 1 << 40):
        mode = ("auto", "fwd", "rev")[case.seed % 3]
        _compare(case, _jacobian(lambda f: f, mode), lambda f, full, k: fad.jacobian(float_leaves(f, full, k)),
                 "the sparse jacobian")  # fmt: skip


@check("sparse jacobian under jit")
def sparse_jacobian_under_jit(case):
    """A compiled sparse Jacobian is the dense one, whichever way its passes run."""
    with mock.patch.object(passes, "WIDE", 0 if case.seed % 2 else 1 << 40), mock.patch.object(passes, "_RECORDED", 64):
        _compare(case, _jacobian(fad.jit, "auto"), lambda f, full, k: fad.jacobian(float_leaves(f, full, k)),
                 "the compiled sparse jacobian")  # fmt: skip


@check("sparse hessian")
def sparse_hessian(case):
    """A sparse Hessian is the dense one."""
    if single(case):
        raise Skipped("single precision")
    with mock.patch.object(passes, "WIDE", 0 if case.seed % 2 else 1 << 40):
        _compare(case, lambda f, full, k: fad.sparse.hessian(loss_of_some(f, full, (k,))),
                 lambda f, full, k: fad.hessian(loss_of_some(f, full, (k,))), "the sparse hessian")  # fmt: skip
