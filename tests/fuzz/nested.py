"""Checks of nested transforms: ways to derivatives of second and third order, three transforms deep."""

import numpy as np

import fad
from fad import tree

from .checks import check, precision
from .compare import Skipped, observe, same_leaf, same_left
from .losses import along


def nestings(loss, x, u):
    """Return the ways to the second derivative along `u`, as functions without arguments, three transforms deep."""
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
        "grad of grad of jit": lambda: grad(along(grad(fad.jit(loss)), u))(*x),
        "grad of grad of vmap": lambda: grad(along(grad(rows(loss)), u))(*x),
        "jvp of grad of vmap": lambda: fad.jvp(grad(rows(loss)), x, u)[1],
        "grad of jvp of jit": lambda: grad(lambda *x: fad.jvp(fad.jit(loss), x, u)[1])(*x),
        "vmap of jvp of grad": lambda: second(fad.vmap(lambda *x: fad.jvp(grad(loss), x, u)[1])(*both)),
        "vmap of grad of grad": lambda: second(fad.vmap(grad(along(grad(loss), u)))(*both)),
        "jit of grad of grad": lambda: fad.jit(grad(along(grad(loss), u)))(*x),
        "jit of grad of jvp": lambda: fad.jit(grad(lambda *x: fad.jvp(loss, x, u)[1]))(*x),
        "linearize of grad": lambda: fad.linearize(grad(loss), *x)[1](*u),
        "vjp of jvp of vmap": lambda: fad.vjp(lambda *x: fad.jvp(rows(loss), x, u)[1], *x)[1](1.0),
    }


def third_order(loss, x, u):
    """Return the ways to the third derivative along `u` and `u` again, three transforms deep and more."""

    def grad(f):
        return fad.grad(f, argnums=tuple(range(len(x))))

    def push(f):
        return lambda *x: fad.jvp(f, x, u)[1]

    return {
        "jvp of jvp of grad": lambda: push(push(grad(loss)))(*x),
        "grad of grad of grad": lambda: grad(along(grad(along(grad(loss), u)), u))(*x),
        "jvp of grad of grad": lambda: push(grad(along(grad(loss), u)))(*x),
        "grad of jvp of grad": lambda: grad(along(push(grad(loss)), u))(*x),
        "jvp of grad of jvp": lambda: push(grad(push(loss)))(*x),
        "grad of grad of jvp": lambda: grad(along(grad(push(loss)), u))(*x),
        "grad of jvp of jvp": lambda: grad(push(push(loss)))(*x),
        "jit of jvp of grad of jvp": lambda: fad.jit(push(grad(push(loss))))(*x),
        "jvp of jit of grad of jvp": lambda: push(fad.jit(grad(push(loss))))(*x),
    }


def of_double_precision(case):
    """Skip programs whose numbers say little about derivatives of higher order."""
    case.needs_derivative()
    case.succeeded(case.reverse)
    if any(np.asarray(case.values[k]).dtype.kind == "c" for k in case.diff) or precision(case) > 1e-5:
        raise Skipped("complex numbers or single precision")


def run_nested(case, ways, name):
    """Return the run of one of the ways, in a world of its own."""
    world = case.program.world()
    loss, point = case.loss_of_some(world.f)
    with np.errstate(all="ignore"):
        run = observe(ways(loss, point, case.tangents)[name], world, ())
    case.succeeded(run)
    return run


def same_derivatives(wanted, got, name, close):
    """Check that two runs gave the same derivatives, and left the same."""
    for w, g in zip(wanted.outputs, tree.leaves(got.outputs), strict=True):
        same_leaf(np.asarray(w), np.asarray(g), name, close=close, zeros=False)
    same_left(wanted, got)


@check("nested")
def nested(case):
    """Transforms nested to depth three give the second derivative that forward over reverse gives."""
    of_double_precision(case)
    case.succeeded(case.second)
    ways = list(nestings(None, case.tangents, case.tangents))
    if any(isinstance(v, np.ndarray) and not v.shape for v in case.values):
        ways = [name for name in ways if "vmap" not in name]  # elements of a batch are no arrays without axes
    for k in case.r.permutation(len(ways))[:3]:
        got = run_nested(case, nestings, ways[k])
        same_derivatives(case.second, got, f"{ways[k]}: the second derivative", 1e-7)


@check("third order")
def third(case):
    """The ways to a third derivative agree."""
    of_double_precision(case)
    first, *others = third_order(None, (), ())
    wanted = run_nested(case, third_order, first)
    for k in case.r.permutation(len(others))[:2]:
        got = run_nested(case, third_order, others[k])
        same_derivatives(wanted, got, f"{others[k]}: the third derivative", 1e-6)
