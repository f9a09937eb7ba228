"""How a SciPy ufunc becomes an operation: constructors that the operation modules of special functions share.

A partial derivative is ``(z, *xs) -> dz/dx``, as for all elementwise operations. In its place may stand a string, which
says why there is none: requesting it is then an error that tells so, never a zero.
Rules call SciPy's own ufuncs, which dispatch on traced values; so they need no import of each other, and can be
differentiated and batched again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

from fad.backends import backend_of, host, like
from fad.backends.counterparts import scipy_function, with_notes
from fad.core.primitives.archetypes import align, elementwise, fit, parameters, spread
from fad.core.primitives.primitive import Nary, answer, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer
from fad.errors import DerivativeError
from fad.ops.ufuncs.elementwise import is_at_an_edge
from fad.staging.record_trace import RecordTrace
from fad.transforms.jvp import jvp

_NUMBERS = (bool, int, float)


def special(
    name: str,
    *partials: Callable | str | None,
    numpy: Any = None,
    integers: tuple = (),
    answers: tuple = (),
    elsewhere: Callable | None = None,
    order: int = 2,
    **slots: Any,
) -> Any:
    """Make an elementwise operation of a SciPy function from its partial derivatives.

    `integers` numbers the operands that stay Python integers: SciPy has a loop of its own for them.
    `elsewhere` computes it on a device that finds nothing under SciPy's own name for the ufunc.
    `order` is the highest order to which the derivatives are defined on the samples.
    Unless `steep` says otherwise, None of one that is smooth, slopes may be infinite at poles and ends of domains.
    """
    slots.setdefault("steep", is_at_an_edge)
    numpy = numpy or getattr(sc, name)
    if elsewhere is not None or not isinstance(numpy, np.ufunc):
        slots["forward"] = _at_home(numpy, elsewhere or scipy_function(f"special.{name}"))
    arity = len(partials)
    rules = [_refusal(name, k, arity, p) if isinstance(p, str) else p for k, p in enumerate(partials)]
    if arity > 1:
        rules = [_of_arrays(p, arity, integers) for p in rules]
    prim = elementwise(f"special.{name}", *rules, numpy=numpy, answers=answers, **slots)
    prim.order, prim.declared = order, partials
    return prim


def _at_home(numpy: Callable, elsewhere: Callable) -> Callable:
    """Return a function that runs `numpy` on the host and `elsewhere` on a device."""

    def forward(*xs: Any, **options: Any) -> Any:
        home = backend_of(*xs).name == "numpy"
        return numpy(*xs, **options) if home else elsewhere(*xs, **options)

    return with_notes(forward, host=numpy)  # for `fad.source`


def special_multi(
    name: str,
    *partials: Callable | str,
    results: int,
    numpy: Any = None,
    elsewhere: Callable | None = None,
    **slots: Any,
) -> Any:
    """Make an operation with several results: each partial is ``(zs, *xs) -> (dz/dx, ...)``, one per result."""
    numpy = numpy or getattr(sc, name)
    plain = elsewhere is None and isinstance(numpy, np.ufunc)
    forward = numpy if plain else _at_home(numpy, elsewhere or scipy_function(f"special.{name}"))
    arity = len(partials)
    rules = tuple(_refusal(name, k, arity, p) if isinstance(p, str) else p for k, p in enumerate(partials))
    integers = slots.pop("integers", ())
    order = slots.pop("order", 2)
    slots.setdefault("complex", False)
    rules = tuple(_weak_operands(p, integers) for p in rules)

    def push(tangents, ys, xs, params):
        totals: list = [None] * results
        for t, rule in zip(tangents, rules, strict=True):
            if t is not None:
                for i, d in enumerate(rule(ys, *xs)):
                    totals[i] = t * d if totals[i] is None else totals[i] + t * d
        return tuple(None if total is None else spread(total, y) for total, y in zip(totals, ys, strict=True))

    def pull(k, cts, ys, *xs):
        total = None
        unread = any(ct is None for ct in cts)  # its slope may be infinite: sici(0)[1]
        with np.errstate(all="ignore") if unread else contextlib.nullcontext():
            slopes = rules[k](ys, *xs)
        for ct, d in zip(cts, slopes, strict=True):
            if ct is not None:
                total = ct * d if total is None else total + ct * d
        return fit(total, xs[k].shape, xs[k].dtype)

    kind: dict[str, Any] = dict(multi=True, skips_unread=True, numpy=(numpy,), archetype="special")
    prim = Nary(f"special.{name}", forward, jvp=push, vjp=pull, **kind, **slots)
    prim.batch = lambda size, batched, xs, params: prim(*align(batched, xs))
    prim.order, prim.declared = order, partials
    register(prim)
    answer(prim.numpy, prim)
    return prim


def _refusal(name: str, k: int, arity: int, reason: str) -> Callable:
    def refuse(*_):
        raise DerivativeError(
            f"scipy.special.{name} has no derivative that fad could give in its argument {k} ({reason}). "
            "Keep that argument constant (fad.stop_gradient), or give the function a rule with fad.custom_jvp"
        )

    return with_notes(refuse, parameters=("_z", *[f"_x{i}" for i in range(arity)]))


def _of_arrays(partial: Callable | None, arity: int, integers: tuple) -> Callable | None:
    """Let a partial see Python numbers in the precision of the result, and give its value in that precision."""
    if partial is None:
        return None
    seen = [not p.startswith("_") for p in parameters(partial)]
    rule = _weak_operands(partial, integers)

    def convert(z, *xs):
        d = rule(z, *xs)
        return _narrow(d, z.dtype)

    names = [f"x{i}" if seen[i + 1] else f"_x{i}" for i in range(arity)]
    return with_notes(convert, written=partial, parameters=("z", *names))


def _narrow(d: Any, dtype: np.dtype) -> Any:
    """Bring a derivative that was computed in double precision back to the precision of the result."""
    kind = getattr(getattr(d, "dtype", None), "kind", "")
    if kind == "f" and dtype.kind == "c":
        dtype = np.finfo(dtype).dtype
    return d.astype(dtype) if kind == dtype.kind and d.dtype != dtype else d


def _weak_operands(partial: Callable, integers: tuple) -> Callable:
    def rule(z, *xs):
        near = z[0] if type(z) is tuple else z
        numbers = [like(near, np.asarray(strong(x, near.dtype))) if type(x) in _NUMBERS else x for x in xs]
        return partial(z, *[x if i in integers else n for i, (x, n) in enumerate(zip(xs, numbers, strict=True))])

    return rule


def as_double(x: Any) -> Any:
    """Return a number or an array in double precision, as functions of SciPy's that are written in Python take it."""
    return x.astype(np.result_type(x.dtype, np.float64)) if hasattr(x, "dtype") else np.asarray(x, dtype=float)[()]


def strong(x: Any, dtype: np.dtype) -> Any:
    """Return a Python number as a NumPy scalar of the real precision of `dtype`, and anything else as it is."""
    if type(x) not in _NUMBERS:
        return x
    return (np.finfo(dtype).dtype if dtype.kind == "c" else dtype).type(x)


# --- partials made from other functions -----------------------------------------------------------------------------


def through(function: Callable, k: int) -> Callable:
    """Return the partial derivative in operand `k` of a function written in differentiable operations."""
    arity = len(parameters(function))

    def partial(z, *xs):
        def along(x):
            return function(*xs[:k], x, *xs[k + 1 :])

        x = xs[k] if type(xs[k]) is not np.ndarray or xs[k].dtype.kind in "fc" else xs[k].astype(float)
        return jvp(along, (x,), (np.ones_like(x),))[1]

    return with_notes(partial, derives=(function, k), parameters=("z", *[f"x{i}" for i in range(arity)]))


def chain(function: Callable) -> tuple:
    """Return all partial derivatives of a function written in differentiable operations."""
    return tuple(through(function, k) for k in range(len(parameters(function))))


def inverse(function_partials: tuple, solved: int, given: int, bounded: Callable | None = None) -> tuple:
    """Return the partials of an inverse function by the implicit function theorem.

    The function ``F(x_0 .. x_n)`` has the partials given (a string where there is none). Its inverse solves
    ``F = p`` for operand number `solved`; among the operands of the inverse, p stands at position `given`,
    the others in their order. `bounded` is F itself, where SciPy returns the end of an interval if there is no solution
    in it: that does not move.
    """
    arity = len(function_partials)
    places = [i for i in range(arity) if i != solved]
    places.insert(given, solved)  # the place of operand j of the inverse in F; the place `solved` is p's
    slope = function_partials[solved]
    if isinstance(slope, str):
        return (slope,) * arity
    rules: list = []
    for j in range(arity):
        own = function_partials[places[j]]
        rules.append(_implicit(own, slope, places, solved, j == given, bounded) if not isinstance(own, str) else own)
    return tuple(rules)


def _implicit(own: Callable, slope: Callable, places: list, solved: int, is_value: bool, bounded: Any) -> Callable:
    def partial(z, *xs):
        point: list = [None] * len(xs)
        for place, x in zip(places, xs, strict=True):
            point[place] = x
        p, point[solved] = point[solved], z
        along = slope(p, *point)
        d = 1.0 / along if is_value else -own(p, *point) / along
        if bounded is None:
            return d
        at_end = (z <= 1e-99) | (z >= 1e10)
        return np.where(at_end & (np.abs(bounded(*point) - p) > 1e-7), 0.0, d)

    written = "by the implicit function theorem, from the partial derivatives of the function it inverts"
    return with_notes(partial, written=written, parameters=("z", *[f"x{i}" for i in range(len(places))]))


# --- small tools of rules -------------------------------------------------------------------------------------------


def draw_samples(s: Any, *domains: tuple) -> list:
    """Draw samples for an operation of many operands: alike, broadcast, scalar, and each a Python number once."""
    n = len(domains)
    shapes: list[list[tuple]] = [[(3, 4)] * n, [()] * n, [(3, 1), (4,), *[()] * (n - 2)]]
    calls = [[s.real(*d, low=a, high=b) for d, (a, b) in zip(ds, domains, strict=True)] for ds in shapes]
    for k, (a, b) in enumerate(domains):
        args = [s.real(3, low=low, high=high) for low, high in domains]
        args[k] = a + 0.37 * (b - a)
        calls.append(args)
    return [call(*args) for args in calls]


def number(x: Any) -> Any:
    """Return the numbers behind a value, all batch elements of a vmap, for a decision: how many terms a sum needs.

    What ``jit`` records stays recorded, so that the decision is guarded, or refused in a loop's body.
    """
    while type(x) is Tracer and not isinstance(x.owner, RecordTrace):
        x = x.wrapped
    return x if type(x) is Tracer else np.asarray(host(x))


def may_hold(condition: Any) -> bool:
    """Return whether a condition may hold somewhere; in the body of a loop, where values cannot be asked, it may."""
    found = number(condition)
    return (type(found) is Tracer and not found.owner.answers) or bool(np.any(found))


def real_only(name: str, x: Any) -> None:
    """Raise if the derivative of a function that is not holomorphic was asked at complex numbers."""
    if x.dtype.kind == "c":
        raise DerivativeError(
            f"scipy.special.{name} of complex numbers is not complex-differentiable: its scaling takes a real part. "
            "Use the function without the exponential scaling, or real arguments"
        )


def previous(n: Any) -> Any:
    """Return n - 1, and 0 for n == 0, where the factor n makes the term vanish."""
    return n - 1 + (n == 0)


def whole(n: Any) -> Any:
    """Return the whole number that SciPy takes a count or an order for."""
    return np.trunc(n) if np.result_type(n).kind == "f" else n


def choose(condition: Any, if_true: Any, if_false: Any) -> Any:
    """Return np.where of a condition that may be one Python bool, which a device does not take."""
    return (if_true if condition else if_false) if type(condition) is bool else np.where(condition, if_true, if_false)


def polynomial(x: Any, coefficients: list) -> Any:
    """Evaluate a polynomial by Horner's rule, coefficients from the constant on."""
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def branch(condition: Any, if_true: Callable, if_false: Callable, x: Any, safe_true: float, safe_false: float) -> Any:
    """Choose between two formulas, each evaluated only where it is meant to hold, and at a safe point elsewhere."""
    safe_true, safe_false = strong(safe_true, x.dtype), strong(safe_false, x.dtype)
    return np.where(condition, if_true(np.where(condition, x, safe_true)), if_false(np.where(condition, safe_false, x)))
