"""What forward mode does with one operation: the tangent of its result, from those of its operands.

Tangents may be infinite once a slope was. Then it matters which constants they meet, for of what a constant zero
multiplies nothing is used (`fad.transforms.reverse.slopes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import spread
from fad.core.primitives.cotangent import Masked, densify, mask_later, without_numbers
from fad.core.primitives.limits import keep_perturbed
from fad.core.tracing.views import pin_index
from fad.transforms.reverse.operand_cotangents import operand_cotangents
from fad.transforms.reverse.slopes import (
    FACTORS,
    are_finite,
    has_zeros,
    has_zeros_now,
    is_chosen_later,
    is_compiled,
    is_infinite,
    is_mask,
    select_by_constant,
)
from fad.transforms.vjp import vjp


def push_with_care(prim: Any, tangents: list, y: Any, xs: list, params: dict) -> Any:
    """Apply an operation's JVP to tangents that may be infinite: what a constant zero multiplies is not used."""
    given = [k for k, t in enumerate(tangents) if t is not None]
    if len(xs) == 2 and len(given) == 1:
        k = given[0]
        t, other = tangents[k], xs[1 - k]
        if prim.partials is not None and prim.partials[k] in FACTORS:
            return _drop_at_zeros(push_tangents(prim, tangents, y, xs, params), other)
        if prim.archetype == "bilinear":
            return _push_product(prim, k, densify(t), y, xs, params)
    return push_tangents(prim, tangents, y, xs, params)


def _drop_at_zeros(t: Any, constant: Any) -> Any:
    """Return a tangent times a partial derivative that is zero where a constant is, dropped there."""
    around = _PUSHING.get()
    if around is None or around.careful or not is_chosen_later(constant):
        return select_by_constant(t, constant)
    around.unsure = True
    return t


def _push_product(prim: Any, k: int, t: Any, y: Any, xs: list, params: dict) -> Any:
    """Return the product of the tangent of operand k and a constant, with care if it is infinite where that is zero.

    In a program it is the result that is looked at: it is no larger than what it takes to compute it.
    """
    other = xs[1 - k]
    zeros = has_zeros(other)
    if zeros and is_infinite(t):
        return _push_through_product(prim, k, t, y, xs, params)
    around = _PUSHING.get()
    careful = around is not None and around.careful
    later = zeros or is_chosen_later(other)
    if later and careful:
        return _push_through_product(prim, k, t, y, xs, params)
    found = push_tangents(prim, [t if i == k else None for i in range(2)], y, xs, params)
    if not (later and is_compiled(t)):
        return found
    if around is not None:
        around.unsure = True
    elif (zeros or is_mask(other) or has_zeros_now(other)) and not are_finite([found]):
        return _push_through_product(prim, k, t, y, xs, params)
    return found


BEGINS_STEEP: ContextVar[bool] = ContextVar("begins_steep", default=False)
"""Whether the tangents may be infinite with which a function begins that is pushed forward now."""


@contextmanager
def beginning_steep(steep: bool) -> Iterator[None]:
    """Say in a block whether the tangents may be infinite with which a function begins."""
    token = BEGINS_STEEP.set(steep)
    try:
        yield
    finally:
        BEGINS_STEEP.reset(token)


class _Pushing:
    """How a body of a loop or branch is pushed forward: with care or not, and whether it is `unsure` that it need not.

    Of its values none is at hand, so what comes of it is looked at, and it is pushed once more where that has to be.
    """

    __slots__ = ("careful", "unsure")

    def __init__(self, careful: bool):
        self.careful = careful
        self.unsure = False

    def run(self, push: Callable, steep: bool) -> tuple[list, list]:
        token = _PUSHING.set(self)
        try:
            with beginning_steep(steep):
                return push()
        finally:
            _PUSHING.reset(token)


_PUSHING: ContextVar[_Pushing | None] = ContextVar("pushing", default=None)


def takes_masks() -> bool:
    """Return whether a body is pushed with masks of its tangents, some of which have one; else it is not sure."""
    around = _PUSHING.get()
    if around is not None and not around.careful:
        around.unsure = True
    return around is not None and around.careful


def push_body(push: Callable, steep: bool) -> tuple[list, list]:
    """Return the results and tangents of a loop or branch, of ``push()``, which records its body.

    `steep` says whether the tangents may be infinite with which the body begins.
    """
    around = _PUSHING.get()
    how = _Pushing(around is not None and around.careful)
    found = how.run(push, steep)
    if around is not None:
        around.unsure = around.unsure or how.unsure
    elif how.unsure and not are_finite(found[1]):
        return _Pushing(True).run(push, steep)
    return found


def _push_through_product(prim: Any, k: int, t: Any, y: Any, xs: list, params: dict) -> Any:
    """Return the product of a tangent and a constant, of which zeros take no part, whatever they multiply."""

    def push(t: Any, other: Any) -> Any:
        pair, operands = [None, None], [t, t]
        pair[k], operands[1 - k] = t, other
        return prim.jvp(pair, y, operands, params)

    t, other = spread(t, xs[k]), xs[1 - k]
    finite = np.isfinite(t)
    infinite = push((~finite).astype(t.dtype), np.not_equal(other, 0).astype(other.dtype)) != 0
    return np.where(infinite, push(t, other), push(np.where(finite, t, 0.0), other))


def push_tangents(prim: Any, tangents: list, y: Any, xs: list, params: dict) -> Any:
    """Apply an operation's JVP to tangents of which some may know where they are zero by selection."""
    if prim.partials is None and not prim.selects and any(type(t) is Masked for t in tangents):
        masked, tangents = tangents, [densify(t) for t in tangents]
        if prim.moves:
            live = _mask_moved(prim, masked, y, [pin_index(x) for x in xs], params)
            return Masked(densify(prim.jvp(tangents, y, xs, params)), live, clean=True)
    if prim.jvp is None:
        return transposed_vjp(prim, tangents, y, xs, params)
    return prim.jvp(tangents, y, xs, params)


def _mask_moved(prim: Any, tangents: list, y: Any, xs: list, params: dict) -> Any:
    """Return the mask of what an operation that moves elements makes of tangents, to be computed when it is read.

    It keeps no values: a loop that adds into an array has one mask that is derived from another in each step.
    """
    kinds = [type(t) for t in tangents]
    y, *xs = map(without_numbers, (y, *xs))

    def move(*ones: Any) -> Any:
        rest = iter(ones)
        given = [
            next(rest) if kind is Masked else None if kind is _NONE else np.ones_like(x)
            for kind, x in zip(kinds, xs, strict=True)
        ]
        return densify(prim.jvp(given, y, xs, params))

    return mask_later([t for t in tangents if type(t) is Masked], move)


_NONE = type(None)


def transposed_vjp(prim: Any, tangents: list, y: Any, xs: list, params: dict) -> Any:
    """Derive a JVP from a VJP: the pullback is linear in its cotangent; transpose it."""
    wanted = [k for k, t in enumerate(tangents) if t is not None]
    parents = [0 if k in wanted else -1 for k in range(len(xs))]

    def pull(ct):
        found = operand_cotangents(prim, parents, ct, y, tuple(xs), params)
        return tuple(np.zeros_like(xs[k]) if found[k] is None else densify(found[k]) for k in wanted)

    with keep_perturbed():
        _, push = vjp(pull, np.zeros_like(y))
        return push(tuple(tangents[k] for k in wanted))[0]
