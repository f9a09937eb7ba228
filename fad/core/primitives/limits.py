"""Removable singularities: a value followed along a short line through the point, where its formulas are regular.

At repeated eigenvalues the formula for the derivative of the eigenvectors divides by zero, and yet what people compute
from them (a function of the matrix, a projector, a norm) may be perfectly smooth there. No rule can repair that
from the cotangents of values and vectors alone: the missing part is a mixed second derivative of what comes after.
But the derivative at such a point is the limit of the derivatives at points nearby. So the matrix is moved along
a line, ``A + t E``, on which it has no repeated values; everything computed from it becomes a function of t,
known at eight points around 0, and what leaves the transform is extrapolated to t = 0.
For a smooth function this is exact to rounding. At eight more points another choice of vectors is followed: where the
result has a pole in t, or is another one there, it depends on the choice, and that is reported.

A value itself needs no limit, and has a corner there as often as not (the largest of several equal singular values).
So beside the points of the line each value carries what it is at the matrix itself, with the vectors that NumPy gives:
that is what leaves a transform as a value, and what decides. A derivative is known on the line alone.

A perturbed value lies under all other traces but that of recording (its birth is 0), so every transform
takes it for a plain value.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.backends import backend_of
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, any_of, bind, outcome, tracer
from fad.core.tracing.values import class_of_element
from fad.core.tracing.views import unwrap
from fad.errors import GaugeDependenceWarning

# The points of the line, and those of the line with the other choice.
LINE = (-1.0, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0)
POINTS = LINE + LINE
HALF = len(LINE) // 2
# Weights of the positive points that extrapolate a polynomial in t**2 to t = 0.
_TO_ZERO = (8 / 5, -4 / 5, 8 / 35, -1 / 35)


class Crowded(ValueError):
    """Values are repeated in a step of a loop whose body was recorded for other ones: it is done step by step then."""


# Whether the bodies of loops ask if values are repeated, which has the loops recorded step by step.
asks_in_bodies: ContextVar[bool] = ContextVar("asks_in_bodies", default=False)


@contextlib.contextmanager
def asking(asks: bool) -> Iterator[None]:
    token = asks_in_bodies.set(asks or asks_in_bodies.get())
    try:
        yield
    finally:
        asks_in_bodies.reset(token)


class LimitTrace(Trace):
    """The trace of values known along a line: the points of the line are the leading axis, as in a batch.

    `info` is the value at the matrix itself, or None of a derivative.
    """

    __slots__ = ()
    kind = "a limit"
    batched = True
    size = len(POINTS)

    def __init__(self) -> None:
        super().__init__()
        self.birth = 0

    def shape(self, x: Tracer) -> tuple[int, ...]:
        return x.wrapped.shape[1:]

    def class_of(self, x: Tracer) -> type:
        return class_of_element(x.wrapped)

    def show(self, x: Tracer) -> str:
        return str(_value(x))

    def stop(self, x: Tracer) -> Any:
        return _value(x)

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        return convert(_value(x))

    number = concrete

    def outcome(self, x: Tracer) -> Any:
        return outcome(_value(x))

    def any_of(self, x: Tracer) -> bool:
        return any_of(_value(x))

    def decide(self, value: Any) -> Any:
        """Return the value at t = 0 of the points of a line, for a mask among the index arrays of a batch."""
        return at_zero(value, report=False)

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if prim.at_limit:
            return bind(prim, *[_value(x) if _is_perturbed(x) else x for x in args], **params)
        if prim is derivative_p:
            return tracer(args[0].wrapped, self, None)
        if any(getattr(type(x), "__array_ufunc__", True) is None for x in args):
            return NotImplemented
        batched = tuple(_is_perturbed(x) for x in args)
        values = [x.wrapped if b else x for x, b in zip(args, batched, strict=True)]
        if prim.batch is None:
            y = _one_by_one(prim, values, batched, params)
        else:
            first = self if prim.needs_trace else self.size
            y = prim.batch(first, batched, values, params)
        point = _at_the_point(prim, args, params)
        if prim.multi:
            return tuple(tracer(v, self, p) for v, p in zip(y, point or [None] * len(y), strict=True))
        return tracer(y, self, point)


def _at_the_point(prim: Any, args: tuple, params: dict) -> Any:
    """Return what an operation gives at the matrix itself, or None where that is not known of all operands.

    Of a derivative the values at the point are of no use, and may be any: an operation may refuse them.
    """
    if any(_is_perturbed(x) and x.info is None for x in args):
        return None
    with np.errstate(all="ignore"):
        try:
            y = bind(prim, *[x.info if _is_perturbed(x) else x for x in args], **params)
        except (np.linalg.LinAlgError, ValueError):
            return None
    return tuple(_value_of(v) for v in y) if prim.multi else _value_of(y)


def _value_of(x: Any) -> Any:
    """Return a value at the point, which an operation on matrices may have made one along a line again."""
    return _value(x) if _is_perturbed(x) else x


def _value(x: Tracer) -> Any:
    """Return what a perturbed value is at the matrix itself."""
    return at_zero(x.wrapped, report=False) if x.info is None else x.info


def _is_perturbed(x: Any) -> bool:
    return type(x) is Tracer and x.owner is LIMIT_TRACE


# A derivative that an outer transform goes on with, which is known on the line alone.
derivative_p: Any = Primitive(
    "derivative_on_a_line",
    lambda x: x,
    jvp=lambda tangents, y, xs, params: bind(derivative_p, *tangents),
    vjp=(lambda ct, y, x: ct,),
    batch=lambda size, batched, xs, params: bind(derivative_p, *xs),
    saves="none",
    archetype="linear",
)


def _one_by_one(prim: Any, values: list, batched: tuple, params: dict) -> Any:
    points = [
        bind(prim, *[v[i] if b else v for v, b in zip(values, batched, strict=True)], **params)
        for i in range(len(POINTS))
    ]
    return tuple(np.stack(column) for column in zip(*points, strict=True)) if prim.multi else np.stack(points)


LIMIT_TRACE = LimitTrace()


def line(x: Any) -> Tracer:
    """Return t, the place on the line: a number between -1 and 1 that goes to 0 in the end; it lives where `x` does."""
    return _along(POINTS, x)


def other_choice(x: Any) -> Tracer:
    """Return 1 at the points where the other choice of vectors is followed, and 0 elsewhere."""
    return _along([0.0] * len(LINE) + [1.0] * len(LINE), x)


def _along(numbers: Any, x: Any) -> Tracer:
    dtype = np.finfo(x.dtype).dtype
    return tracer(backend_of(unwrap(x)).from_host(np.array(numbers, dtype)), LIMIT_TRACE, dtype.type(0))


_kept: ContextVar[bool] = ContextVar("keep_perturbed", default=False)


@contextlib.contextmanager
def keep_perturbed() -> Iterator[None]:
    """Let perturbed values leave the transforms run here, which are steps of a rule and not the user's own."""
    token = _kept.set(True)
    try:
        yield
    finally:
        _kept.reset(token)


def take_limit(x: Any, derivative: bool = True) -> Any:
    """Return what leaves a transform: a perturbed value becomes its value at t = 0, all else stays.

    A value may depend on the choice of vectors, a derivative may not.
    """
    if type(x) is not Tracer or _kept.get():
        return x
    if x.owner is LIMIT_TRACE:
        return at_zero(x.wrapped) if derivative else _value(x)
    if x.owner.kind == "vmap" and type(x.wrapped) is Tracer:
        return tracer(take_limit(x.wrapped, derivative), x.owner, x.info)
    return x


def take_derivative(x: Any) -> Any:
    """Return what leaves a transform as a derivative, also of one that an outer transform goes on with."""
    x = take_limit(x)
    below = x
    while type(below) is Tracer and below.owner is not LIMIT_TRACE:
        below = below.wrapped
    return bind(derivative_p, x) if type(below) is Tracer and not _kept.get() else x


def at_zero(values: Any, report: bool = True) -> Any:
    """Extrapolate values along the line to t = 0, and warn if they have no limit or depend on the choice of vectors."""
    if values.dtype.kind not in "fc":
        return values[HALF]
    first, other = values[: len(LINE)], values[len(LINE) :]
    limit = _limit(first)
    if type(values) is np.ndarray and values.size:
        limit = np.where(np.all(first == first[HALF], axis=0), first[HALF], limit)  # of a constant, to the bit
    if report and type(values) is not Tracer and values.size:
        _report(first, other, limit)
    return limit if type(limit) is Tracer else limit[()]


def _halves(values: Any) -> tuple:
    """Return the even and the odd part of a function of t, at the positive points."""
    ahead, behind = values[HALF:], values[HALF - 1 :: -1]
    return 0.5 * (ahead + behind), 0.5 * (ahead - behind)


def _limit(values: Any) -> Any:
    return _extrapolate(_halves(values)[0], 0)


def _extrapolate(values: Any, power: int) -> Any:
    """Return the limit for t -> 0 of t**power times a function known at the positive points."""
    return sum(w * t**power * v for w, t, v in zip(_TO_ZERO, LINE[HALF:], values, strict=True))


def _pole(values: Any) -> float:
    even, odd = _halves(values)
    return max(np.abs(_extrapolate(odd, 1)).max(), np.abs(_extrapolate(even, 2)).max())


def _report(first: Any, other: Any, limit: Any) -> None:
    noise = float(np.sqrt(np.finfo(first.dtype).eps))
    size = max(np.abs(first).max(), np.abs(other).max())
    wrong = max(_pole(first), _pole(other), np.abs(limit - _limit(other)).max())
    # Rounding in third derivatives comes up to ten times `noise`.
    if not wrong <= noise * (10 + 100 * size):
        warnings.warn(
            "a derivative was taken through eigenvalues, eigenvectors or singular vectors where values are repeated, "
            "and the result depends on the choice of vectors: it has no derivative here. One such result is returned. "
            "Use what does not depend on the choice: symmetric functions of the values, projectors, functions of the "
            "matrix",
            GaugeDependenceWarning,
            stacklevel=2,
        )
