"""Constant folding: what depends on constants alone is computed beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.core.programs.graph import ARRAY, EFFECT, Equation, Graph, Type
from fad.core.programs.rewriter import rewrite_equations
from fad.ops.arrangement.structural import broadcast_p
from fad.ops.places.creation import ones_p

FEW_BYTES = 1 << 12  # of constants that are always copied when they are recorded
_LARGE = 1 << 16  # elements above which a constant is not computed beforehand


def fold_constants(graph: Graph) -> Graph:
    """Compute beforehand what depends on constants alone, and zeros and ones, which depend on a shape alone."""
    constants = dict(graph.constants)

    def rewrite(eq: Equation, alias: dict) -> Equation | None:
        ins = eq.ins
        if ins and ins[0] not in constants and not eq.prim.shape_only:
            return eq
        if eq.is_guard or eq.prim.multi or eq.prim.archetype == EFFECT:
            return eq
        value = _find_known_value(eq, graph.types[eq.outs[0]], constants)
        if value is None:
            return eq
        if graph.types[eq.outs[0]].kind != ARRAY and type(value) is np.ndarray:
            value = value[()]
        constants[eq.outs[0]] = value
        return None

    return rewrite_equations(graph, rewrite, constants)


def _find_known_value(eq: Equation, out: Type, constants: dict) -> Any:
    """Return what an equation computes, if that is known beforehand and takes little memory; None otherwise."""
    prim = eq.prim
    if prim.shape_only:
        return np.broadcast_to(np.asarray(prim is ones_p, out.dtype), out.shape)
    if not all(i in constants for i in eq.ins):
        return None
    xs = [constants[i] for i in eq.ins]
    if _holds_device_arrays((*xs, *eq.params.values())):
        return None  # they may be overwritten, which none would notice without waiting: programs read them as they run
    with np.errstate(all="ignore"):
        if out.size <= _LARGE or prim is broadcast_p:
            value = prim.forward(*xs, **eq.params)
            if type(value) is np.ndarray and value.base is None and not any(value is x for x in xs):
                value.flags.writeable = False  # nobody else has it: see `is_fixed`
            return value
        if prim.archetype == "elementwise":
            numbers = [as_uniform(x) for x in xs]
            if all(x is not None for x in numbers):
                return np.broadcast_to(np.asarray(prim.forward(*numbers, **eq.params), out.dtype), out.shape)
    return None


def is_fixed(c: Any) -> bool:
    """Return whether a constant stays as it is: a small one is a copy, a large one may be an array of the user's."""
    if type(c) is not np.ndarray or c.nbytes <= FEW_BYTES:
        return True
    while type(c) is np.ndarray and not c.flags.writeable:
        c = c.base
    return c is None or type(c) is bytearray  # in which a recording keeps its copies


def _holds_device_arrays(x: Any) -> bool:
    return any(map(_holds_device_arrays, x)) if type(x) in (tuple, list) else is_on_device(x)


def as_uniform(c: Any) -> Any:
    """Return the one number of a constant of which all elements are equal, or None."""
    if type(c) is not np.ndarray:
        return None if is_on_device(c) else c
    if c.ndim == 0 or c.size == 1 or (c.size and not any(c.strides)):
        return c.reshape(-1)[0]
    return None
