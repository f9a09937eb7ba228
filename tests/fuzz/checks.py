"""The checks of one program: each compares a transform with a plain run, or two ways to a derivative with each other.

A check raises Difference for a finding, Refused where fad raises an error of its own, Skipped where it says nothing.
"""

import numpy as np

import fad
from fad import tree

from . import differences, functional
from .compare import (
    Difference,
    Run,
    Skipped,
    identical,
    observe,
    same_error,
    same_leaf,
    same_left,
    same_run,
    same_tree,
    snapshot,
)
from .losses import float_leaves, floating, weights

CHECKS = {}


def check(name):
    """Register a check."""

    def register(f):
        CHECKS[name] = f
        return f

    return register


def part(run, pick):
    """Return a run whose outputs are a part of its outputs."""
    return Run(None if run.error else pick(run.outputs), run.error, run.arguments, run.outside)


def same_number(wanted, got, what, tolerance, bound=0.0):
    """Check that two numbers agree; where both are NaN or infinite, no derivative exists and nothing is said."""
    if not np.isfinite(wanted) and not np.isfinite(got):
        return
    if not abs(wanted - got) <= tolerance * max(1.0, abs(wanted)) + bound:
        raise Difference(f"{what}: {wanted!r} is wanted, not {got!r}", numeric=True)


def precision(case):
    """Return how well derivatives of this program can agree."""
    return 3e-3 if single(case) else 1e-6


def single(case):
    """Return whether a program computes in single precision somewhere."""
    values = [*case.values, *tree.leaves(case.plain.outputs)]
    return any(np.asarray(x).dtype.char in "fF" for x in values) or "float32" in case.program.source


@check("value under grad")
def value_under_grad(case):
    """The value under grad is that of a plain run, and gradients have the shapes and dtypes of their arguments."""
    case.needs_derivative()
    same_run(case.plain, part(case.reverse, lambda out: out[0][1]), case.before)
    if case.reverse.error is None:
        for k, g in zip(case.diff, case.reverse.outputs[1], strict=True):
            x = np.asarray(case.values[k])
            if np.shape(g) != x.shape or np.asarray(g).dtype != x.dtype.newbyteorder("="):
                raise Difference(f"the gradient of a {x.dtype} of shape {x.shape} is {g!r}")


@check("value under jvp")
def value_under_jvp(case):
    """The value under jvp is that of a plain run."""
    if not case.diff:
        raise Skipped("no argument has a derivative")
    same_run(case.plain, part(case.forward, lambda out: out[0]), case.before)


@check("modes")
def modes_agree(case):
    """Forward and reverse mode give the same slope."""
    case.needs_derivative()
    forward, reverse = case.slope_forward, case.slope_reverse
    same_number(forward, reverse, "the slope of reverse mode beside forward mode", precision(case))


@check("differences")
def differences_agree(case):
    """Forward mode gives the slope that differences give, and a complex step where the program is analytic."""
    case.needs_derivative()
    slope = case.slope_forward
    wanted, bound = case.slope_plain
    tolerance = precision(case)
    if bound > 1e-4 * max(1.0, abs(wanted)):
        raise Skipped("differences do not converge")
    try:
        same_number(wanted, slope, "the slope beside differences", 10 * tolerance, 10 * bound)
    except Difference:
        if differences.is_of_small_steps(case.plain_loss, wanted, slope, 10 * tolerance):
            raise Skipped("from afar, a staircase of small steps looks like a slope") from None
        raise
    try:
        exact = case.slope_complex
    except Skipped:
        return
    if tolerance < 1e-5 and abs(exact - wanted) <= 1e-6 * max(1.0, abs(wanted)) + bound:
        same_number(exact, slope, "the slope beside a complex step", 1e-8)


@check("pulled twice")
def pulled_twice(case):
    """A pullback gives the same twice, also when somebody writes into what it gave."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    loss, point = case.loss_of_some(case.program.world().f)
    with np.errstate(all="ignore"):
        _, back = fad.vjp(loss, *point)
        for _ in range(2):
            got = back(1.0)
            same_tree(case.reverse.outputs[1], got, "the gradient of a pullback", zeros=False)
            spoil(got)


def spoil(outputs, held=()):
    """Overwrite all arrays of a result that are not somebody else's."""
    for y in tree.leaves(outputs):
        if isinstance(y, np.ndarray) and y.flags.writeable and not any(np.shares_memory(y, h) for h in held):
            y[...] = 77


@check("second order")
def second_order(case):
    """Derivatives of the gradient: forward over reverse and reverse over reverse agree with differences of it."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    if any(np.asarray(case.values[k]).dtype.kind == "c" for k in case.diff) or precision(case) > 1e-5:
        raise Skipped("complex numbers or single precision")
    u = [np.cos(1.0 + np.arange(np.size(t))).reshape(np.shape(t)) for t in case.tangents]
    case.succeeded(case.second)
    forward = sum(float(np.sum(g * v)) for g, v in zip(case.second.outputs, u, strict=True))
    world = case.program.world()
    before = snapshot(world.outside())
    loss, point = case.loss_of_some(world.f)
    with np.errstate(all="ignore"):

        def projected(*some):
            world.put_back(before)
            gradients = fad.grad(loss, argnums=tuple(range(len(some))))(*some)
            return sum(np.sum(g * v) for g, v in zip(gradients, u, strict=True))

        def slope_at(h):
            moved = case.along(h)
            return projected(*[moved[k] for k in case.diff])

        reverse = observe(lambda: fad.grad(projected, argnums=tuple(range(len(point))))(*point), world, ())
        case.succeeded(reverse)
        over = sum(float(np.sum(g * t)) for g, t in zip(reverse.outputs, case.tangents, strict=True))
        same_number(forward, over, "reverse over reverse beside forward over reverse", 1e-7)
        if differences.is_likely(slope_at, forward, 1e-6):
            return
        if case.slope_plain[1] > 1e-4 * max(1.0, abs(case.slope_plain[0])):
            raise Skipped("differences do not converge")
        found = differences.derivative(slope_at)
        if found is None or found[1] > 1e-4 * max(1.0, abs(found[0])):
            raise Skipped("differences do not converge")
        same_number(found[0], forward, "the second derivative beside differences", 1e-5, 10 * found[1])


def looped(case, transform, got=None):
    """Return what a loop over a batch gives, stacked, as a run; Skipped where the elements' results do not stack.

    Each element has a world of its own, for a function under vmap runs once for all of them. Of several elements that
    raise at different lines the batch raises what comes first: `got`, if one of them does.
    """
    runs, stacked = [], case.stacked
    for b in range(len(stacked[0])):
        world = case.program.world()
        runs.append(observe(transform(world.f), world, [x[b].copy() for x in stacked]))
    failed = [run for run in runs if run.error is not None]
    for run in sorted(failed, key=lambda run: got is None or type(run.error) is not type(got.error)):
        return Run(None, run.error, tuple(stacked), run.outside)
    flat = [tree.flatten(run.outputs) for run in runs]
    columns = list(zip(*[leaves for leaves, _ in flat], strict=False))
    if any(len({(np.shape(v), np.asarray(v).dtype) for v in column}) > 1 for column in columns):
        raise Skipped("results of different shapes")
    if any(structure != flat[0][1] for _, structure in flat):
        raise Skipped("results of different structures")
    leaves = [np.stack([np.asarray(v) for v in column]) for column in columns]
    return Run(tree.unflatten(flat[0][1], leaves), None, tuple(stacked), common(runs))


def common(runs):
    """Return the arrays outside of the function after runs that left the same there; elsewhere NaN."""
    found = {}
    for name, x in runs[0].outside.items():
        found[name] = x if all(identical(x, run.outside[name]) for run in runs) else np.full(x.shape, np.nan)
    return found


@check("vmap")
def vmap(case):
    """A batch gives what a loop over it gives."""
    world = case.program.world()
    got = observe(fad.vmap(world.f), world, case.batch())
    wanted = looped(case, lambda f: f, got)
    same_run(wanted, got, tuple(case.stacked), 2e-4 if single(case) else None)


@check("vmap of grad")
def vmap_of_grad(case):
    """A batch of gradients is a loop over gradients."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    got = case.gradients  # first, with code that fad has not seen
    wanted = looped(case, case.gradient_of)
    if wanted.error is not None:
        raise Skipped("the gradient raises")
    if not same_error(wanted, got):
        same_tree(wanted.outputs, got.outputs, "batch of gradients", close=case_tolerance(case), zeros=False)
        same_left(wanted, got, tuple(case.stacked))


def case_tolerance(case):
    return 1e-2 if precision(case) > 1e-5 else 1e-8


@check("jacobian")
def jacobian(case):
    """The rows of a Jacobian are what the pullback gives, and jacfwd gives the same."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    k = case.diff[0]
    leaves = tree.leaves(case.plain.outputs)
    if np.iscomplexobj(case.values[k]) or any(np.iscomplexobj(y) for y in leaves):
        raise Skipped("complex numbers")
    one, other = case.program.world(), case.program.world()
    with np.errstate(all="ignore"):
        rows = observe(fad.jacrev(float_leaves(one.f, case.arguments(), k)), one, [case.arguments()[k]])
        columns = observe(fad.jacfwd(float_leaves(other.f, case.arguments(), k)), other, [case.arguments()[k]])
        case.succeeded(rows)
        case.succeeded(columns)
        loosely = dict(types=False, close=case_tolerance(case), zeros=False)
        same_tree(rows.outputs, columns.outputs, "jacfwd beside jacrev", **loosely)
        n = np.ndim(case.values[k])
        kept = [j for j, y in enumerate(leaves) if floating(y)]
        total = np.zeros(np.shape(case.values[k]))
        for j, rows_of_one in zip(kept, rows.outputs, strict=True):
            w = weights(leaves[j], j)
            total = total + np.tensordot(w, rows_of_one, w.ndim) if n or w.ndim else total + w * rows_of_one
        same_leaf(case.reverse.outputs[1][0], total, "weighted rows beside the gradient", **loosely)


@check("without writes")
def without_writes_agrees(case):
    """The gradient is that of the same program written without writes, where there is such a form."""
    case.needs_derivative()
    try:
        form = functional.without_writes(case.program, case.r)
    except functional.Unfit:
        raise Skipped("no form without writes") from None
    other = type(case)(form)
    case.succeeded(case.reverse)
    other.succeeded(other.reverse)
    same_tree(other.reverse.outputs, case.reverse.outputs, "the gradient", close=case_tolerance(case), zeros=False)
