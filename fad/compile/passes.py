"""Passes: small pure functions ``Graph -> Graph``, each linear in the number of equations.

None of them may change what a program computes beyond rounding. They are run in the order of `optimise`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.compile.linear import add_before_products
from fad.compile.repeated import trim
from fad.compile.sums import leave_loops
from fad.compile.unrolled import merge_steps
from fad.core.cotangent import is_basic
from fad.core.graph import ARRAY, EFFECT, GUARD, NUMBER, Equation, Graph, Type, has_effects, hashable, type_of
from fad.core.primitive import REGISTRY
from fad.transforms.bodies import inlined
from fad.transforms.refusals import unread

_LARGE = 1 << 16  # elements above which a constant is not computed beforehand


def optimise(graph: Graph) -> Graph:
    """Run all passes, in the bodies of loops and branches as well."""
    for step in _PASSES:
        graph = step(graph)
    return simplify(leave_loops(trim(graph, optimise)))


def _renamed(graph: Graph, rewrite: Callable, constants: dict | None = None) -> Graph:
    """Run over the equations once: `rewrite` gets each with its operands' new names, and returns it, another or None.

    ``rewrite(eq, alias)`` may enter ``alias[out] = value`` for a result that is some earlier value.
    """
    alias: dict[int, int] = {}
    equations = []
    untouched = alias.keys().isdisjoint
    for eq in graph.equations:
        if not untouched(eq.ins):
            eq = Equation(eq.prim, tuple([alias.get(i, i) for i in eq.ins]), eq.params, eq.outs, eq.place)
        eq = rewrite(eq, alias)
        if eq is not None:
            equations.append(eq)
    outputs = [alias.get(i, i) for i in graph.outputs]
    return graph.replace(
        equations=equations, outputs=outputs, constants=graph.constants if constants is None else constants
    )


# --- constants ---------------------------------------------------------------------------------------------------

_SHAPE_ONLY = ("zeros_from", "ones_from")


def fold_constants(graph: Graph) -> Graph:
    """Compute beforehand what depends on constants alone, and zeros and ones, which depend on a shape alone."""
    constants = dict(graph.constants)

    def rewrite(eq: Equation, alias: dict) -> Equation | None:
        ins = eq.ins
        if ins and ins[0] not in constants and eq.prim.name not in _SHAPE_ONLY:
            return eq
        if eq.prim is GUARD or eq.prim.multi or eq.prim.archetype == EFFECT:
            return eq
        value = _known_value(eq, graph.types[eq.outs[0]], constants)
        if value is None:
            return eq
        if graph.types[eq.outs[0]].kind != ARRAY and type(value) is np.ndarray:
            value = value[()]
        constants[eq.outs[0]] = value
        return None

    return _renamed(graph, rewrite, constants)


def _known_value(eq: Equation, out: Type, constants: dict) -> Any:
    """Return what an equation computes, if that is known beforehand and takes little memory; None otherwise."""
    prim = eq.prim
    if prim.name in _SHAPE_ONLY:
        return np.broadcast_to(np.asarray(prim.name == "ones_from", out.dtype), out.shape)
    if not all(i in constants for i in eq.ins):
        return None
    xs = [constants[i] for i in eq.ins]
    if _holds_device_arrays((*xs, *eq.params.values())):
        return None  # they may be overwritten, which none would notice without waiting: programs read them as they run
    with np.errstate(all="ignore"):
        if out.size <= _LARGE or prim.name == "broadcast":
            return prim.forward(*xs, **eq.params)
        if prim.archetype == "elementwise":
            numbers = [as_uniform(x) for x in xs]
            if all(x is not None for x in numbers):
                return np.broadcast_to(np.asarray(prim.forward(*numbers, **eq.params), out.dtype), out.shape)
    return None


def _holds_device_arrays(x: Any) -> bool:
    return any(map(_holds_device_arrays, x)) if type(x) in (tuple, list) else is_on_device(x)


def as_uniform(c: Any) -> Any:
    """Return the one number of a constant of which all elements are equal, or None."""
    if type(c) is not np.ndarray:
        return None if is_on_device(c) else c
    if c.ndim == 0 or c.size == 1 or (c.size and not any(c.strides)):
        return c.reshape(-1)[0]
    return None


# --- common subexpressions and dead code -------------------------------------------------------------------------


def share(graph: Graph) -> Graph:
    """Compute each expression once: equal operation, operands and parameters give one value."""
    seen: dict[Any, tuple] = {}
    constants: dict[Any, int] = {}
    first: dict[int, int] = {}
    for i, c in graph.constants.items():
        if type(c) is not np.ndarray or c.size <= 64:
            first[i] = constants.setdefault((graph.types[i], hashable(c)), i)

    variable = first.keys().isdisjoint

    def rewrite(eq: Equation, alias: dict) -> Equation | None:
        ins = eq.ins if variable(eq.ins) else tuple([first.get(i, i) for i in eq.ins])
        if has_effects(eq):
            return Equation(eq.prim, ins, eq.params, eq.outs, eq.place)
        params = hashable(eq.params) if eq.params else ()
        known = seen.setdefault((eq.prim, ins, params), eq.outs)
        if known is not eq.outs:
            alias.update(zip(eq.outs, known, strict=True))
            return None
        return eq if ins is eq.ins else Equation(eq.prim, ins, eq.params, eq.outs, eq.place)

    return _renamed(graph, rewrite)


def drop_dead(graph: Graph) -> Graph:
    """Drop what no output, guard or check needs, and what raises for no values."""
    alive = {*graph.outputs, *unread(graph, graph.outputs)}
    kept = []
    for eq in reversed(graph.equations):
        if not alive.isdisjoint(eq.outs) or eq.prim is GUARD or eq.prim.archetype == "check":
            alive.update(eq.ins)
            kept.append(eq)
    constants = {i: c for i, c in graph.constants.items() if i in alive}
    return graph.replace(equations=kept[::-1], constants=constants)


def add_before_scatter(graph: Graph) -> Graph:
    """Add up what a scatter puts into one place beforehand, where the sum can be fused with what computes its terms."""
    types = list(graph.types)
    equations: list[Equation] = []
    add = REGISTRY["add"]
    for eq in graph.equations:
        if eq.prim.name == "scatter" and len(eq.ins) > 1:
            sums: dict[Any, tuple] = {}
            for i, index in zip(eq.ins, eq.params["indices"], strict=True):
                key = (hashable(index), types[i].shape) if is_basic(index) else len(sums)
                if key in sums:
                    first = sums[key][0]
                    dtype = np.result_type(types[first].dtype, types[i].dtype)
                    types.append(Type(types[first].shape, dtype, ARRAY))
                    equations.append(Equation(add, (first, i), {}, (len(types) - 1,)))
                    i = len(types) - 1
                sums[key] = (i, index)
            ins, indices = zip(*sums.values(), strict=True)
            eq = Equation(eq.prim, ins, {**eq.params, "indices": indices}, eq.outs, eq.place)
        equations.append(eq)
    return graph.replace(types=types, equations=equations)


def take_apart(graph: Graph) -> Graph:
    """Write what has no kernel as operations that have: a layer's ``x @ w.T + b``, a rotation of an array."""
    types = list(graph.types)
    equations: list[Equation] = []

    def new(shape: tuple, dtype: np.dtype) -> int:
        types.append(Type(shape, dtype, ARRAY))
        return len(types) - 1

    for eq in graph.equations:
        if eq.prim.name == "affine" and len(types[eq.ins[0]].shape) == 2:
            equations += _layer(eq, types, new)
        elif eq.prim.name == "roll_round" and types[eq.outs[0]].size:
            equations += _rotation(eq, types, new)
        else:
            equations.append(eq)
    return graph.replace(types=types, equations=equations)


def _layer(eq: Equation, types: list, new: Callable) -> list[Equation]:
    x, w, b = eq.ins
    rows, columns = types[w].shape
    flipped = new((columns, rows), types[w].dtype)
    product = new((types[x].shape[0], rows), np.result_type(types[x].dtype, types[w].dtype))
    return [
        Equation(REGISTRY["permute"], (w,), {"axes": (1, 0)}, (flipped,)),
        Equation(REGISTRY["matmul"], (x, flipped), {}, (product,)),
        Equation(REGISTRY["add"], (product, b), {}, eq.outs),
    ]


def _rotation(eq: Equation, types: list, new: Callable) -> list[Equation]:
    """Write a rotation along one axis after the other as two slices that are joined."""
    (x,), found = eq.ins, []
    t = types[x]
    turns = [(n % t.shape[a], a) for n, a in zip(eq.params["shift"], eq.params["axis"], strict=True)]
    turns = [(n, a) for n, a in turns if n]
    for k, (n, a) in enumerate(turns):
        whole = t.shape[a]
        parts = []
        for start, stop in ((whole - n, whole), (0, whole - n)):
            part = new((*t.shape[:a], stop - start, *t.shape[a + 1 :]), t.dtype)
            index = (*[slice(None)] * a, slice(start, stop))
            found.append(Equation(REGISTRY["getitem"], (x,), {"template": index}, (part,)))
            parts.append(part)
        x = eq.outs[0] if k == len(turns) - 1 else new(t.shape, t.dtype)
        found.append(Equation(REGISTRY["join"], tuple(parts), {"axis": a}, (x,)))
    return found or [eq]


# --- algebra -----------------------------------------------------------------------------------------------------


def simplify(graph: Graph) -> Graph:
    """Leave out what changes nothing: times one, a shape already there, arrangements that undo each other.

    Times zero stays, for 0 * inf is NaN.
    """
    made: dict[int, Equation] = {}
    constants = dict(graph.constants)
    types = graph.types

    def rewrite(eq: Equation, alias: dict) -> Equation | None:
        rule = _ALGEBRA.get(eq.prim.name)
        if rule is not None:
            found = rule(eq, types, constants, made)
            if type(found) is int:
                if types[found] == types[eq.outs[0]]:
                    alias[eq.outs[0]] = found
                    return None
            elif found is not None:
                eq = found
        if len(eq.outs) == 1:
            made[eq.outs[0]] = eq
        return eq

    return _renamed(graph, rewrite, constants)


def _is(constants: dict, i: int, number: float) -> bool:
    """Tell whether a constant is a real number throughout, a zero of the same sign."""
    if i not in constants:
        return False
    c = as_uniform(constants[i])
    return c is not None and c == number and (number != 0 or np.signbit(np.real(c)) == np.signbit(number))


def _times(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """Times one, but not of complex numbers: the imaginary part of one, zero times infinity, is NaN."""
    x, y = eq.ins
    if types[eq.outs[0]].dtype.kind == "c":
        return None
    if _is(constants, y, 1.0):
        return x
    return y if _is(constants, x, 1.0) else None


def _over(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    if types[eq.outs[0]].dtype.kind == "c":
        return None
    return eq.ins[0] if _is(constants, eq.ins[1], 1.0) else None


def _plus(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """To add 0.0 changes -0.0, which only to add -0.0 leaves as it is."""
    x, y = eq.ins
    zero = -0.0 if types[eq.outs[0]].dtype.kind in "fc" else 0.0
    if _is(constants, y, zero):
        return x
    return y if _is(constants, x, zero) else None


def _minus(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0] if _is(constants, eq.ins[1], 0.0) else None


def _negative(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    before = made.get(eq.ins[0])
    return before.ins[0] if before is not None and before.prim.name == "negative" else None


def _power(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    x, y = eq.ins
    kind = types[x].dtype.kind
    if _is(constants, y, 1.0) and kind != "c":
        return x
    same = (types[eq.outs[0]].shape, types[eq.outs[0]].dtype) == (types[x].shape, types[x].dtype)
    if _is(constants, y, 2.0) and kind == "f" and same:  # of complex zeros the signs differ
        return Equation(REGISTRY["multiply"], (x, x), {}, eq.outs)
    return None


def _square(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    (x,) = eq.ins
    return Equation(REGISTRY["multiply"], (x, x), {}, eq.outs) if types[x].dtype.kind in "fiu" else None


def _reshape(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    (x,) = eq.ins
    if types[x].shape == types[eq.outs[0]].shape:
        return x
    before = made.get(x)
    if before is not None and before.prim is eq.prim:
        if types[before.ins[0]] == types[eq.outs[0]]:
            return before.ins[0]
        return Equation(eq.prim, before.ins, eq.params, eq.outs)
    return None


def _permute(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    axes = eq.params["axes"]
    before = made.get(eq.ins[0])
    if before is not None and before.prim is eq.prim:
        axes = tuple(before.params["axes"][a] for a in axes)
        if axes == tuple(range(len(axes))):
            return before.ins[0]
        return Equation(eq.prim, before.ins, {"axes": axes}, eq.outs)
    return eq.ins[0] if axes == tuple(range(len(axes))) else None


def _same_shape(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0] if types[eq.ins[0]].shape == types[eq.outs[0]].shape else None


def _take_all(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """An index of slices alone that gives the whole shape back gives the whole array, if no slice runs backwards."""
    forwards = all(type(p) is slice and (p.step or 1) > 0 for p in eq.params["template"])
    return _same_shape(eq, types, constants, made) if forwards and len(eq.ins) == 1 else None


def _convert(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0] if types[eq.ins[0]].dtype == eq.params["dtype"] and types[eq.ins[0]].kind != NUMBER else None


def _reduction(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """Name the axes in their order, in which all that comes after expects them."""
    axis = eq.params["axis"]
    if not axis:
        return eq.ins[0] if eq.prim.name == "sum_over" else None
    ordered = tuple(sorted(axis))
    return None if ordered == axis else Equation(eq.prim, eq.ins, {**eq.params, "axis": ordered}, eq.outs, eq.place)


def _identity(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0]


_IDENTITIES = ("vary", "tied", "observed")  # operations that only derivatives tell from their operand
_REDUCTIONS = (
    "sum_over", "max_over", "min_over", "product_over", "norm_over", "variance_over", "logsumexp_over", "any_over",
    "all_over", "count_over", "fmax_over", "fmin_over",
)  # fmt: skip
_ALGEBRA: dict[str, Callable] = {
    "multiply": _times, "divide": _over, "add": _plus, "subtract": _minus, "negative": _negative, "power": _power,
    "square": _square, "reshape_to": _reshape, "permute": _permute, "broadcast": _same_shape, "convert": _convert,
    "getitem": _take_all, **dict.fromkeys(_IDENTITIES, _identity), **dict.fromkeys(_REDUCTIONS, _reduction),
}  # fmt: skip


def share_copies(graph: Graph) -> Graph:
    """Let a transposed array be copied once for all shapes that it is wanted in: the others are views of the first."""
    turned = {eq.outs[0] for eq in graph.equations if eq.prim.name == "permute"}
    first: dict[int, int] = {}
    equations = []
    for eq in graph.equations:
        if eq.prim.name == "reshape_to" and eq.ins[0] in turned:
            known = first.setdefault(eq.ins[0], eq.outs[0])
            if known != eq.outs[0]:
                eq = Equation(eq.prim, (known,), eq.params, eq.outs, eq.place)
        equations.append(eq)
    return graph.replace(equations=equations)


_PASSES: tuple[Callable, ...] = (
    inlined, take_apart, fold_constants, simplify, share,
    add_before_scatter, merge_steps, add_before_products, drop_dead,
)  # fmt: skip


def check_types(graph: Graph) -> None:
    """Raise AssertionError if a constant is not of its type: for tests of passes."""
    for i, c in graph.constants.items():
        found = type_of(c)
        assert (found.shape, found.dtype) == (graph.types[i].shape, graph.types[i].dtype), (i, found, graph.types[i])
