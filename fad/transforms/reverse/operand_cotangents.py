"""From the cotangent of an operation's result to those of its operands, by whichever rule the operation has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import cast
from fad.core.primitives.cotangent import Indexed, Masked, densify, join_masks, without_numbers
from fad.core.primitives.limits import keep_perturbed
from fad.ops.reductions.reduction import stretch_back

PULL_BACK: list[Callable] = []
"""Reverse mode itself, which enters here: a VJP that is derived from a JVP is a pullback of it."""


def operand_cotangents(prim: Any, parents: list, ct: Any, y: Any, xs: tuple, params: dict) -> list:
    """Apply an operation's VJP to the operands that are traced (parent >= 0); None for the others."""
    if type(ct) is Masked and prim.partials is None and not prim.selects:
        if prim.moves:
            return _mask_cotangents(prim, parents, ct, y, xs, params)
        if prim.archetype == "reduction":
            return _mask_reduced(prim, parents, ct, y, xs, params)
        ct = ct.dense()
    rules = prim.vjp
    if rules is None and prim.vjp_of_all is None:
        return transpose_jvp(prim, parents, ct, y, xs, params)
    if len(parents) == 1 and type(rules) is tuple and parents[0] >= 0:  # an operation of one operand, as most are
        c = rules[0](ct, y, xs[0], **params) if rules[0] is not None else None
        whole = c is None or type(c) is Indexed or type(c) is Masked or c.dtype is xs[0].dtype
        return [c if whole else cast(c, xs[0].dtype)]
    if prim.vjp_of_all is not None:
        cts = prim.vjp_of_all(ct, y, *xs, **params)
        found = [c if p >= 0 else None for c, p in zip(cts, parents, strict=True)]
    elif callable(rules):
        found = [rules(k, ct, y, *xs, **params) if p >= 0 else None for k, p in enumerate(parents)]
    else:
        found = [
            rules[k](ct, y, *xs, **params) if p >= 0 and rules[k] is not None else None for k, p in enumerate(parents)
        ]
    return [
        c if c is None or type(c) is Indexed or type(c) is Masked or c.dtype is x.dtype else cast(c, x.dtype)
        for c, x in zip(found, xs, strict=True)
    ]


def _mask_cotangents(prim: Any, parents: list, ct: Masked, y: Any, xs: tuple, params: dict) -> list:
    """Apply the VJP of an operation that moves elements to a cotangent's values, and to its mask if it is needed."""

    hollow, operands = without_numbers(y), tuple(map(without_numbers, xs))

    def live(k: int) -> Callable:
        return ct.later(lambda ones: densify(operand_cotangents(prim, parents, ones, hollow, operands, params)[k]))

    found = operand_cotangents(prim, parents, ct.dense(), y, xs, params)
    for k, c in enumerate(found):
        if type(c) is Indexed:
            c.lives = [ct.mask()]
        elif c is not None:
            found[k] = Masked(densify(c), live(k), True)
            found[k].brief = ct.brief
    return found


def _mask_reduced(prim: Any, parents: list, ct: Masked, y: Any, xs: tuple, params: dict) -> list:
    """Apply the VJP of a reduction: of what nobody read, nothing that was reduced to it was used."""
    (c,) = operand_cotangents(prim, parents, ct.dense(), y, xs, params)
    shape, axis, keepdims = xs[0].shape, params["axis"], params["keepdims"]
    live = ct.later(lambda ones: stretch_back(ones, shape, axis, keepdims))
    if type(c) is Masked:  # a choice of elements has a mask of its own
        return [Masked(c.value, join_masks(c.mask(), live, shape), c.clean)]
    masked = Masked(c, live)
    masked.brief = ct.brief
    return [masked]


def transpose_jvp(prim: Any, parents: list, ct: Any, y: Any, xs: tuple, params: dict) -> list:
    """Derive a VJP: the map from tangents of the traced operands to the result's tangent is linear; transpose it."""
    wanted = [k for k, p in enumerate(parents) if p >= 0 and xs[k].dtype.kind in "fc"]

    def push(*tangents):
        slots = [None] * len(xs)
        for k, t in zip(wanted, tangents, strict=True):
            slots[k] = t
        return densify(prim.jvp(slots, y, xs, params))

    found: list = [None] * len(xs)
    with keep_perturbed():
        _, pullback = PULL_BACK[0](push, *[np.zeros_like(xs[k]) for k in wanted])
        pulled = pullback(ct)
    for k, c in zip(wanted, pulled, strict=True):
        found[k] = c
    return found


# --- the transform ----------------------------------------------------------------------------------------------
