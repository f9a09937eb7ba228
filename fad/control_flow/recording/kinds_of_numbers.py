"""Whether a step does the same where a Python number of its state is a NumPy scalar.

It may begin as the one and become the other in any step: ``h = min(h, T - t)``, with ``h = 0.01`` before the loop.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fad.control_flow.bodies.subgraph import to_number_p
from fad.control_flow.derivatives.split_pullback import find_needed
from fad.core.programs.graph import ARRAY, NUMBER, SCALAR, Equation, Graph, hashable
from fad.core.tracing.weak import WeakFloat
from fad.ops.ufuncs.elementwise import logical_or, positive
from fad.ops.ufuncs.predicates import python_bool_p
from fad.staging.python_numbers import to_scalar_p

_NARROW = frozenset(map(np.dtype, ("float16", "float32", "complex64")))  # dtypes that scalars widen
_RAISING = frozenset({"/", "//", "%", "**"})  # where Python's numbers raise and NumPy's give infinity or NaN
_COUNTING = frozenset({"+", "-", "*", "~", "neg", "pos", "invert"})  # by which booleans of NumPy's stay booleans


def same_but_kinds(a: Graph, b: Graph) -> bool:
    """Return whether two programs do the same with the same dtypes, Python numbers counting as scalars.

    The state of `a` has Python numbers where that of `b` has scalars. Where a choice makes one of both, the value
    may stay a Python number in any step: then nothing may be done to it in the step by which Python's numbers differ.
    What the rest of the program does is looked at when all of it is recorded (`fad.staging.mixed_types`).
    """
    if _without_kinds(a) != _without_kinds(b):
        return False
    return not (_has_choices_of_kind(a) and _tells_apart(b, _scalars_of(a, b)))


def _is_certain(graph: Graph, o: int, certain: set[int]) -> bool:
    return o in certain or graph.types[o].kind != SCALAR or graph.types[o].dtype.kind not in "fc"


def _without_kinds(graph: Graph) -> tuple:
    """Describe what the outputs of a program need: the operations, on which values, and the dtypes of the results."""
    number = {v: k for k, v in enumerate(graph.inputs)}
    fresh = itertools.count(len(number))
    lines = []
    for eq in find_needed(graph.equations, graph.outputs):
        ins = [number.get(i, _constant(graph, i)) for i in eq.ins]
        if eq.prim in (to_scalar_p, to_number_p, python_bool_p) or _makes_scalar(eq, graph):
            number[eq.outs[0]] = ins[0]
            continue
        bodies = [*map(_without_kinds, eq.bodies)]
        lines.append(((eq.prim.array_form or eq.prim).name, ins, [graph.types[o].dtype for o in eq.outs], bodies))
        number.update(zip(eq.outs, fresh, strict=False))
    outputs = [(number.get(o, _constant(graph, o)), graph.types[o].dtype) for o in graph.outputs]
    return lines, outputs


def _constant(graph: Graph, i: int) -> Any:
    """Return what a constant of a program is to be compared by; what stands for a Python number counts as a scalar."""
    value = graph.constants.get(i)
    return hashable(np.float64(value) if type(value) is WeakFloat else value)


def _makes_scalar(eq: Equation, graph: Graph) -> bool:
    """Return whether an operation makes a NumPy scalar of a Python number, as a choice between the two does."""
    if eq.prim is logical_or:  # so a boolean is made one
        c = graph.constants.get(eq.ins[1])
        if c is None or np.shape(c) or c:
            return False
    elif eq.prim is not positive:
        return False
    x, y = graph.types[eq.ins[0]], graph.types[eq.outs[0]]
    return x.kind == NUMBER and y.kind == SCALAR and x.dtype == y.dtype


def _has_choices_of_kind(graph: Graph) -> bool:
    """Return whether a branch may give a Python number in the place of a scalar: one converted, or a constant."""
    for eq in graph.equations:
        constant = any(
            o in body.constants and body.types[o].kind == SCALAR and body.types[o].dtype.kind in "fc"
            for body in eq.bodies for o in body.outputs
        )  # fmt: skip
        if constant or _makes_scalar(eq, graph) or any(map(_has_choices_of_kind, eq.bodies)):
            return True
    return False


def _scalars_of(a: Graph, b: Graph) -> set[int]:
    """Return the values of `b` from outside of a step that are no Python numbers for certain."""
    inputs = {j for i, j in zip(a.inputs, b.inputs, strict=True) if a.types[i].kind != NUMBER}
    return inputs | {i for i in b.constants if b.types[i].kind != NUMBER}


def _tells_apart(graph: Graph, certain: set[int]) -> bool:
    """Return whether an operation depends on which kind a number is, given the values that are no Python numbers.

    What is found to be none is added to those.
    """
    for eq in graph.equations:
        for body in eq.bodies:
            given = eq.ins[1:] if eq.prim.archetype == "branch" else eq.ins
            if _tells_apart(body, {j for i, j in zip(given, body.inputs, strict=False) if i in certain}):
                return True
        types = [graph.types[i] for i in eq.ins]
        doubtful = [i for i in eq.ins if not _is_certain(graph, i, certain)]
        if doubtful and any(t.dtype in _NARROW for t in types):
            return True
        if any(i in certain for i in eq.ins) or any(graph.types[o].kind == ARRAY for o in eq.outs):
            if not eq.bodies:
                certain.update(eq.outs)
            continue
        if all(t.kind == NUMBER for t in types):
            continue
        symbol = eq.prim.symbol
        if symbol in _RAISING or (symbol in _COUNTING and all(t.dtype == bool for t in types)):
            return True
    return False
