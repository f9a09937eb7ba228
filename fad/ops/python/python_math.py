"""Python's `math` of traced numbers: what stands for its functions while a transform runs (`fad.core.runs.stand_ins`).

``math.sin(x)`` makes a float of a traced x, which loses the derivative. So the names of such functions stand for what
is made here: of plain numbers they are `math`'s own, of traced ones operations that compute what `math` computes, raise
what it raises, and give a Python number, whose dtype does not count. Their derivatives are those of NumPy's functions.
"""

from __future__ import annotations

import functools
import importlib
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import STEEP, make_elementwise, one
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer
from fad.ops.python.python_functions import (
    enter,
    make_forward,
    of_scalars,
    stand_for,
    stand_for_iterables,
    stand_for_operation,
)
from fad.ops.ufuncs import elementwise

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def take_real(x: Any) -> Any:
    """Return an argument as a real number of double precision, or raise as `math` does."""
    if type(x) is not Tracer:
        return float(x)
    if x.owner is Trace.of_plain:
        return float(x)
    if x.dtype.kind == "c":
        raise TypeError("must be real number, not complex")
    if x.ndim:
        float(np.broadcast_to(1.0, x.shape))  # raises as this version of NumPy does, or not
        x = x.reshape(())
    if x.dtype.kind != "f":
        return x * 1.0
    return x if x.dtype == np.float64 else x.astype(np.float64)


# --- functions that are operations ------------------------------------------------------------------------------------


def _make(name: str, rules: Primitive) -> Primitive:
    """Return the operation that is a function of `math`, with the derivatives of one of NumPy's."""
    assert rules.partials is not None
    partials = tuple([p if p is None or p is one else of_scalars(p) for p in rules.partials])
    function = getattr(math, name)
    return make_elementwise(
        f"math_{name}", make_forward(function, rules.forward), partials, symbol=f"math.{name}", lower=rules.lower,
        computes_in=rules.computes_in, flat=rules.flat, steep=STEEP.get(rules.partials[0]),
    )  # fmt: skip


def _elements(function: Callable) -> Callable:
    return np.vectorize(function, otypes=[float])


def _digamma(x: Any) -> Any:
    return importlib.import_module("scipy.special").digamma(x)


_erf = make_elementwise(
    "erf", _elements(math.erf), (lambda _z, x: _TWO_OVER_ROOT_PI * np.exp(-x * x),), lower="erf({0})"
)
_erfc = make_elementwise(
    "erfc", _elements(math.erfc), (lambda _z, x: -_TWO_OVER_ROOT_PI * np.exp(-x * x),), lower="erfc({0})"
)
_remainder = make_elementwise("remainder", _elements(math.remainder), (one, lambda _z, x, y: -np.rint(x / y)))
_EDGE: dict[str, Any] = {"steep": elementwise.is_at_an_edge}
_gamma = make_elementwise("gamma", _elements(math.gamma), (lambda z, x: z * _digamma(x),), **_EDGE)
_lgamma = make_elementwise("lgamma", _elements(math.lgamma), (lambda _z, x: _digamma(x),), **_EDGE)
_SAME = (
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
    "cbrt", "fabs", "degrees", "radians", "fmod", "copysign", "hypot",
)  # fmt: skip
_RENAMED = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")}
_RULES: dict[str, Primitive] = {
    **{name: getattr(elementwise, name) for name in _SAME},
    **{name: getattr(elementwise, rules) for name, rules in _RENAMED.items()},
    "pow": elementwise.power, "erf": _erf, "erfc": _erfc, "gamma": _gamma, "lgamma": _lgamma,
    "remainder": _remainder,
}  # fmt: skip
OPERATIONS = {name: _make(name, rules) for name, rules in _RULES.items() if hasattr(math, name)}


# --- functions that are made of others --------------------------------------------------------------------------------


def _log(x: Any, *base: Any) -> Any:
    y = OPERATIONS["log"](take_real(x)) if type(x) is Tracer else math.log(x)
    return y / _log(*base) if base else y


_EXPONENTS = 2200  # more than lie between the least number and the greatest
_MOST_NESTED = 30  # calls in a text of native code


@functools.cache
def _hypot_of(n: int) -> Primitive:
    """Return the operation on so many operands: `math` rounds once, a chain of two by two each time."""
    of_arrays = lambda *xs: functools.reduce(np.hypot, xs)
    lower = functools.reduce("hypot({0}, {1})".format, [f"{{{k}}}" for k in range(n)]) if n <= _MOST_NESTED else None
    partials = tuple([_of_operand(n, k) for k in range(n)])
    forward = make_forward(math.hypot, of_arrays)
    return make_elementwise(f"math_hypot_{n}", forward, partials, symbol="math.hypot", lower=lower)


def _of_operand(n: int, k: int) -> Callable:
    """Return the partial derivative of a length by one of its coordinates; zero is the subgradient at the origin."""

    def partial(z: Any, *xs: Any) -> Any:
        return elementwise.over(xs[k], z)

    partial.__dict__["parameters"] = ("z", *["x" if i == k else "_x" for i in range(n)])
    return of_scalars(partial)


@functools.cache
def _sum_of(n: int) -> Primitive:
    """Return the operation on so many operands, whose sum is exact: additions lose what is small beside the rest."""
    forward = make_forward(lambda *xs: math.fsum(xs), _elements(lambda *xs: math.fsum(xs)))
    return make_elementwise(f"math_fsum_{n}", forward, (one,) * n, symbol="math.fsum")


def hypot(*xs: Any) -> Any:
    if len(xs) < 2:
        return OPERATIONS["fabs"](take_real(*xs))
    length = OPERATIONS["hypot"] if len(xs) == 2 else _hypot_of(len(xs))
    return length(*map(take_real, xs))


def _dist(p: Iterable, q: Iterable) -> Any:
    return hypot(*[a - b for a, b in zip(p, q, strict=True)])


def _prod(xs: Iterable, *, start: Any = 1) -> Any:
    return functools.reduce(operator.mul, xs, start)


def fsum(xs: Iterable) -> Any:
    parts = [take_real(x) for x in xs]
    return _sum_of(len(parts))(*parts)


def _sumprod(p: Iterable, q: Iterable) -> Any:
    return functools.reduce(operator.add, [a * b for a, b in zip(p, q, strict=True)], 0)


def _fma(x: Any, y: Any, z: Any) -> Any:
    return take_real(x) * take_real(y) + take_real(z)


def _ldexp(x: Any, i: int) -> Any:
    i = max(-_EXPONENTS, min(operator.index(i), _EXPONENTS))
    parts = abs(i) // 1000  # powers of two that are numbers themselves; the first product is exact or all is zero
    least = 1000 if i > 0 else -1000
    return functools.reduce(operator.mul, [2.0**least] * parts, take_real(x) * 2.0 ** (i - parts * least))


def _modf(x: Any) -> tuple:
    fraction = OPERATIONS["fmod"](take_real(x), 1.0)
    return fraction, x - fraction


def make_questions(take: Callable) -> dict[str, Callable]:
    """Return the functions of `math` and `cmath` that answer questions of numbers, which `take` takes or refuses."""

    def ask(question: Callable) -> Callable:
        return lambda x: _answer(question(take(x)))

    def isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
        a, b = take(a), take(b)
        apart = np.abs(a - b)
        near = apart <= np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol)
        return _answer(np.equal(a, b) | (near & np.isfinite(apart)))

    return {"isclose": isclose, **{f.__name__: ask(f) for f in (np.isnan, np.isinf, np.isfinite)}}


def _answer(y: Any) -> Any:
    return y if type(y) is Tracer else bool(y)


_MADE: dict[str, Callable] = {
    "log": _log, "hypot": hypot, "dist": _dist, "prod": _prod, "fsum": fsum, "sumprod": _sumprod, "fma": _fma,
    "ldexp": _ldexp, "modf": _modf, **make_questions(take_real),
}  # fmt: skip
_OF_ITERABLES = frozenset({"dist", "prod", "fsum", "sumprod"})


# --- what stands for them ---------------------------------------------------------------------------------------------


def _stand_for(name: str, original: Callable) -> Callable:
    if name not in _MADE:
        return stand_for_operation(original, OPERATIONS[name], take_real)
    return (stand_for_iterables if name in _OF_ITERABLES else stand_for)(original, _MADE[name])


enter("math", (name for name in OPERATIONS.keys() | _MADE.keys() if hasattr(math, name)), _stand_for)
