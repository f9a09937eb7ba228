"""The checks of one program: each compares a transform with a plain run, or two ways to a derivative with each other.

A check raises Difference for a finding, Refused where fad raises an error of its own, Skipped where it says nothing.
"""

import numpy as np

import fad
from fad import tree

from . import differences, functional
from .arguments import with_noise
from .case import floating, weighted_sum, weights
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
from .program import evaluate

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
    same_number(wanted, slope, "the slope beside differences", 10 * tolerance, 10 * bound)
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
    with case.program.world() as world, np.errstate(all="ignore"):
        arguments = case.arguments()

        def loss(*some):
            full = list(arguments)
            for k, x in zip(case.diff, some, strict=True):
                full[k] = x
            return weighted_sum(world.f(*full))

        _, back = fad.vjp(loss, *[arguments[k] for k in case.diff])
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
    fixed = case.arguments()
    u = [np.cos(1.0 + np.arange(np.size(t))).reshape(np.shape(t)) for t in case.tangents]
    with case.program.world() as world, np.errstate(all="ignore"):
        before = snapshot(world.outside())

        def gradient(*some):
            world.put_back(before)
            full = list(fixed)
            for k, x in zip(case.diff, some, strict=True):
                full[k] = x
            return fad.grad(lambda *a: weighted_sum(world.f(*a)), argnums=tuple(case.diff))(*full)

        def projected(*some):
            return sum(np.sum(g * v) for g, v in zip(gradient(*some), u, strict=True))

        def slope_at(h):
            return projected(*[case.along(h)[k] for k in case.diff])

        point = tuple(fixed[k] for k in case.diff)
        forward = observe(lambda: fad.jvp(projected, point, case.tangents)[1], world, ())
        reverse = observe(lambda: fad.grad(projected, argnums=tuple(range(len(point))))(*point), world, ())
        case.succeeded(forward)
        case.succeeded(reverse)
        over = sum(float(np.sum(g * t)) for g, t in zip(reverse.outputs, case.tangents, strict=True))
        same_number(float(forward.outputs), over, "reverse over reverse beside forward over reverse", 1e-7)
        if case.slope_plain[1] > 1e-4 * max(1.0, abs(case.slope_plain[0])):
            raise Skipped("differences do not converge")
        found = differences.derivative(slope_at)
        if found is None or found[1] > 1e-4 * max(1.0, abs(found[0])):
            raise Skipped("differences do not converge")
        same_number(found[0], float(forward.outputs), "the second derivative beside differences", 1e-5, 10 * found[1])


def batch_of(case):
    """Return three sets of arguments of the same shapes and dtypes, stacked."""
    texts = case.program.arguments
    rows = [evaluate(texts), *(evaluate(with_noise(case.r, texts, 0.6)) for _ in range(2))]
    return [np.stack([np.asarray(row[k]) for row in rows]) for k in range(len(rows[0]))]


def looped(case, transform, stacked):
    """Return what a loop over a batch gives, stacked, as a run; Skipped where the elements' results do not stack.

    Each element has a world of its own, for a function under vmap runs once for all of them.
    """
    runs = []
    for b in range(3):
        with case.program.world() as world:
            runs.append(observe(transform(world.f), world, [x[b].copy() for x in stacked]))
    for run in runs:
        if run.error is not None:
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
    stacked = batch_of(case)
    with case.program.world() as other:
        wanted = looped(case, lambda f: f, stacked)
        got = observe(fad.vmap(other.f), other, [x.copy() for x in stacked])
        same_run(wanted, got, tuple(stacked))


@check("vmap of grad")
def vmap_of_grad(case):
    """A batch of gradients is a loop over gradients."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    stacked = batch_of(case)
    with case.program.world() as other:
        wanted = looped(case, case.gradient_of, stacked)
        if wanted.error is not None:
            raise Skipped("the gradient raises")
        got = observe(fad.vmap(case.gradient_of(other.f)), other, [x.copy() for x in stacked])
        if not same_error(wanted, got):
            same_tree(wanted.outputs, got.outputs, "batch of gradients", close=case_tolerance(case), zeros=False)
            same_left(wanted, got, tuple(stacked))


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
    with case.program.world() as one, case.program.world() as other, np.errstate(all="ignore"):

        def of(world):
            def f(x):
                full = case.arguments()
                full[k] = x
                return [y for y in tree.leaves(world.f(*full)) if floating(y)]

            return f

        rows = observe(fad.jacrev(of(one)), one, [case.arguments()[k]])
        columns = observe(fad.jacfwd(of(other)), other, [case.arguments()[k]])
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


def nestings(loss, x, u):
    """Return the ways to the second derivative along `u`, as functions without arguments, three transforms deep."""

    def along(f):
        return lambda *x: sum(np.sum(g * v) for g, v in zip(f(*x), u, strict=True))

    every = tuple(range(len(x)))
    both = [np.stack([a, a]) for a in x]

    def grad(f):
        return fad.grad(f, argnums=every)

    def second(ys):
        return tree.map(lambda y: y[1], ys)

    def rows(f):
        return lambda *x: np.sum(fad.vmap(f)(*[np.stack([a, a * 1]) for a in x])) / 2

    return {
        "jvp of grad of jit": lambda: fad.jvp(grad(fad.jit(loss)), x, u)[1],
        "grad of grad of jit": lambda: grad(along(grad(fad.jit(loss))))(*x),
        "grad of grad of vmap": lambda: grad(along(grad(rows(loss))))(*x),
        "jvp of grad of vmap": lambda: fad.jvp(grad(rows(loss)), x, u)[1],
        "grad of jvp of jit": lambda: grad(lambda *x: fad.jvp(fad.jit(loss), x, u)[1])(*x),
        "vmap of jvp of grad": lambda: second(fad.vmap(lambda *x: fad.jvp(grad(loss), x, u)[1])(*both)),
        "vmap of grad of grad": lambda: second(fad.vmap(grad(along(grad(loss))))(*both)),
        "jit of grad of grad": lambda: fad.jit(grad(along(grad(loss))))(*x),
        "jit of grad of jvp": lambda: fad.jit(grad(lambda *x: fad.jvp(loss, x, u)[1]))(*x),
        "linearize of grad": lambda: fad.linearize(grad(loss), *x)[1](*u),
        "vjp of jvp of vmap": lambda: fad.vjp(lambda *x: fad.jvp(rows(loss), x, u)[1], *x)[1](1.0),
    }


@check("nested")
def nested(case):
    """Transforms nested to depth three give the second derivative that forward over reverse gives."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    if any(np.asarray(case.values[k]).dtype.kind == "c" for k in case.diff) or precision(case) > 1e-5:
        raise Skipped("complex numbers or single precision")
    x, u = tuple(evaluate(case.program.arguments)[k] for k in case.diff), case.tangents
    wanted = None
    ways = list(nestings(None, x, u))
    if any(isinstance(v, np.ndarray) and not v.shape for v in case.values):
        ways = [name for name in ways if "vmap" not in name]  # elements of a batch are no arrays without axes
    chosen = [ways[k] for k in case.r.permutation(len(ways))[:3]]
    for name in ["", *chosen]:
        with case.program.world() as world, np.errstate(all="ignore"):
            fixed = case.arguments()

            def loss(*some, fixed=fixed, f=world.f):
                full = list(fixed)
                for k, v in zip(case.diff, some, strict=True):
                    full[k] = v
                return weighted_sum(f(*full))

            def first(loss=loss):
                return fad.jvp(fad.grad(loss, argnums=tuple(range(len(x)))), x, u)[1]

            run = observe(nestings(loss, x, u)[name] if name else first, world, ())
        case.succeeded(run)
        if not name:
            wanted = run
            continue
        for w, g in zip(wanted.outputs, tree.leaves(run.outputs), strict=True):
            same_leaf(np.asarray(w), np.asarray(g), f"{name}: the second derivative", close=1e-7, zeros=False)
        same_left(wanted, run)
