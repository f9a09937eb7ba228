"""Masks that are known are lists of places: lookups and writes at places have kernels, those at masks are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.ir.builder import Builder
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.programs.graph import Equation, Graph
from fad.ops.layout.index_layout import ARRAY
from fad.ops.places.indexing import getitem_p, index_add_p, index_set_p, scatter_p

_FIRST_INDEX = {getitem_p: 1, index_set_p: 2, index_add_p: 2}


def place_masks(graph: Graph, known: dict[int, np.ndarray] | None = None) -> Graph:
    """Put lists of places where an index has a mask that is a constant, of the program or of one around it."""
    masks = {i: c for i, c in graph.constants.items() if _is_mask(c)} | (known or {})
    work = Builder(graph)
    for eq in graph.equations:
        work.equations.append(_rewrite(work, eq, masks))
    return work.finish()


def _is_mask(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype == bool and x.ndim > 0


def _rewrite(work: Builder, eq: Equation, masks: dict[int, np.ndarray]) -> Equation:
    if eq.prim.archetype == "loop":
        loop = Loop(eq)
        given = zip(loop.const_inputs, loop.consts, strict=True)
        return _with(eq, body=place_masks(loop.body, {i: masks[o] for i, o in given if o in masks}))
    if eq.prim.archetype == "branch":
        given = [{i: masks[o] for i, o in zip(g.inputs, eq.ins[1:], strict=True) if o in masks} for g in eq.bodies]
        return _with(eq, branches=tuple([place_masks(g, k) for g, k in zip(eq.bodies, given, strict=True)]))
    if eq.prim is scatter_p:
        return _with(eq, indices=tuple([_without_masks(index) for index in eq.params["indices"]]))
    first = _FIRST_INDEX.get(eq.prim)
    if first is None or masks.keys().isdisjoint(eq.ins[first:]):
        return eq
    arrays, parts, ins = iter(eq.ins[first:]), [], list(eq.ins[:first])
    for part in eq.params["template"]:
        i = next(arrays) if part is ARRAY else -1
        found = [work.constant(places) for places in np.nonzero(masks[i])] if i in masks else [i] * (i >= 0)
        ins += found
        parts += [ARRAY] * len(found) if part is ARRAY else [part]
    return Equation(eq.prim, tuple(ins), {**eq.params, "template": tuple(parts)}, eq.outs, eq.place)


def _with(eq: Equation, **params: Any) -> Equation:
    return Equation(eq.prim, eq.ins, {**eq.params, **params}, eq.outs, eq.place)


def _without_masks(index: Any) -> Any:
    parts = index if type(index) is tuple else (index,)
    if not any(map(_is_mask, parts)):
        return index
    return tuple([p for part in parts for p in (np.nonzero(part) if _is_mask(part) else (part,))])
