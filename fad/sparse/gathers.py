"""A function with its gathers cut: what index arrays take out of the inputs becomes an input of its own.

A residual of observations, or an energy of elements, gathers the numbers that each of them needs and works on those:
``f(x) = g(x[i], x[j], ...)``. The derivative of g in what was gathered consists of small blocks that a few passes tell
(one for each number that a block has), however many observations share an element of x; that of f follows by adding up
columns (partial separability: Griewank and Toint, "On the unconstrained optimization of partially separable functions",
in Nonlinear Optimization 1981, Academic Press, 1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fad import tree
from fad.core.memory import snapshot
from fad.core.tracer import Trace, Tracer, bind, tracer
from fad.ops.indexing import getitem_p
from fad.sparse.dependence import constant
from fad.sparse.sets import kind_of_index
from fad.transforms.check import as_operand, run
from fad.transforms.custom_rules import RULES, Call

MANY = 256  # gathers of one run beyond which nothing is cut: a loop over single observations
_MOVES = ("broadcast", "getitem", "in_memory_order", "join", "permute", "reshape_to")


class CutChanged(Exception):
    """A run gathers otherwise than the run did that was cut."""


@dataclass(eq=False)
class Cut:
    """Which gathers of a function are cut, in the order in which it runs them.

    ``cut[i]`` says whether gather number i is; the others take each element once and are seen through. ``shapes`` and
    ``dtypes`` are those of what is cut, and ``sources`` the numbers of the inputs' elements that it consists of.
    With `computed`, gathers of computed arrays count as well, and their elements are numbered behind the inputs':
    ``operands`` are the sizes of those that are cut.
    """

    cut: list
    shapes: list
    dtypes: list
    sources: Any
    computed: bool = False
    operands: list = field(default_factory=list)


class _GatherTrace(Trace):
    """The trace of a run whose gathers are looked at.

    A tracer's `info` is what it is as moved inputs, None if it is computed: a tuple, the same moves of several arrays.
    """

    __slots__ = ("gathers",)
    kind = "fad.sparse"

    def __init__(self, gathers: Callable):
        super().__init__()
        self.gathers = gathers  # (moved, arrays, template, value) -> (result, what it is as moved inputs)

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        values, moved = [], []
        for x in args:
            mine = type(x) is Tracer and x.trace is self
            moved.append(x.info if mine else None)
            x = x.value if mine else as_operand(x, args)
            if x is NotImplemented:
                return x
            values.append(x)
        mine = type(args[0]) is Tracer and args[0].trace is self
        if prim is getitem_p and mine and any(a.dtype.kind != "b" and a.size > 1 for a in values[1:]):
            return self._wrap(*self.gathers(moved[0], values, params))
        y = _run_below(prim, values, params)
        if prim.multi:
            return tuple([self._wrap(v, None) for v in y])
        return self._wrap(y, self._move(prim, moved, values, params))

    def _move(self, prim: Any, moved: list, values: list, params: dict) -> Any:
        """Return what a result is as moved inputs, if it is nothing else."""
        if prim.name not in _MOVES:
            return None
        count = 1 if prim is getitem_p else len(values)
        if any(m is None for m in moved[:count]) or any(a.dtype.kind == "b" for a in values[count:]):
            return None
        return tuple([bind(prim, *xs, *values[count:], **params) for xs in zip(*moved[:count], strict=True)])

    def _wrap(self, y: Any, moved: Any) -> Any:
        return tracer(y, self, moved) if y.dtype.kind in "fc" else y


def _run_below(prim: Any, values: list, params: dict) -> Any:
    """Run an operation on the values of tracers, by the fast paths of the traces below if they have one for it."""
    if prim.partials is not None and not params:
        return prim(*values)
    if prim is getitem_p and len(values) == 1 and type(values[0]) is Tracer:
        return values[0].trace.index(prim, values[0], params["template"])
    return bind(prim, *values, **params)


def _custom_rule(trace: _GatherTrace, call: Call, xs: tuple) -> list:
    trace.check_alive()
    return [trace._wrap(y, None) for y in call(*[trace.lower(x) for x in xs])]


RULES[_GatherTrace] = _custom_rule


def _run(fun: Callable, in_tree: Any, xs: list, moved: list, gathers: Callable) -> Any:
    trace = _GatherTrace(gathers)

    def arguments() -> Any:
        return tree.unflatten(in_tree, [snapshot(tracer(x, trace, m)) for x, m in zip(xs, moved, strict=True)])

    leaves, structure, _ = run(fun, trace, arguments, False)
    return tree.unflatten(structure, [trace.lower(y) for y in leaves])


def find_cut(fun: Callable, in_tree: Any, xs: list, computed: bool = False) -> Cut | None:
    """Run a function of plain arrays once and return its gathers; None if none takes an element more than once.

    Those of computed arrays count with `computed`, if one of them takes an element more than once.
    """
    found = Cut([], [], [], None, computed)
    direct: list = []  # whether each gather is of the inputs
    sources: list = []
    inputs = sum(x.size for x in xs)

    def look(moved: Any, values: list, params: dict) -> tuple:
        y = bind(getitem_p, *values, **params)
        if moved is None and (not computed or len(found.cut) > MANY):
            return y, None
        start = inputs + sum(found.operands)
        operand = _number(values[:1], start)[0] if moved is None else moved[0]
        numbers = bind(getitem_p, operand, *[constant(a) for a in values[1:]], **params)
        repeats = np.bincount(numbers.reshape(-1) - (start if moved is None else 0)).max(initial=0) > 1
        found.cut.append(repeats)
        direct.append(moved is not None)
        if not repeats:
            return y, None if moved is None else (numbers,)
        if moved is None:
            found.operands.append(operand.size)
        found.shapes.append(y.shape)
        found.dtypes.append(y.dtype)
        sources.append(numbers.reshape(-1))
        return y, None

    _run(fun, in_tree, xs, [(numbers,) for numbers in _number(xs)], look)
    if computed and len(found.cut) > MANY:
        return find_cut(fun, in_tree, xs)
    if not sources or len(found.cut) > MANY:
        return None
    if not found.operands:
        found.computed, found.cut = False, [c for c, d in zip(found.cut, direct, strict=True) if d]
    found.sources = np.concatenate(sources)
    return found


def _number(xs: list, start: int = 0) -> list:
    """Return arrays like some others of the numbers of their elements."""
    bounds = np.cumsum([start, *[x.size for x in xs]])
    kind = kind_of_index(bounds[-1])
    return [np.arange(a, a + x.size, dtype=kind).reshape(np.shape(x)) for a, x in zip(bounds, xs, strict=False)]


def cut_gathers(cut: Cut, fun: Callable, in_tree: Any, outer: list, check: bool) -> Callable:
    """Return the function of the inputs' leaves and of shifts of what it gathers.

    `outer` holds the inputs as the transform around this one knows them. Gathers take from those, so that in the
    leaves the function has the derivatives of its direct uses alone. The shifts are zero: their derivatives count.
    With `check` it raises `CutChanged` if it gathers other elements than the run that was cut. Where computed arrays
    count, the function returns also those of them that it gathers from.
    """
    size = sum(x.size for x in outer)
    inputs = list(zip(outer, _number(outer), strict=True)) if check else [(x,) for x in outer]

    def shifted(leaves: list, shifts: list) -> Any:
        position, it, sources = iter(cut.cut), iter(shifts), cut.sources
        operands: list = []

        def take(moved: Any, values: list, params: dict) -> tuple:
            nonlocal sources
            if moved is None and not cut.computed:
                return bind(getitem_p, *values, **params), None
            repeats = next(position, None)
            if repeats is None:
                raise CutChanged
            shift: Any = next(it) if repeats else None
            if moved is None and repeats:
                moved = _keep(values[0], shift, operands, size, check)
            gathered, *numbers = [bind(getitem_p, x, *values[1:], **params) for x in moved or ()] or [None]
            if not repeats:
                return bind(getitem_p, *values, **params), moved and (gathered, *numbers)
            if shift.shape != gathered.shape or shift.dtype != gathered.dtype:
                raise CutChanged
            if numbers and not np.array_equal(numbers[0].reshape(-1), sources[: shift.size]):
                raise CutChanged
            sources = sources[shift.size :]
            return gathered + shift, None

        out = _run(fun, in_tree, leaves, inputs, take)
        if next(position, None) is not None:
            raise CutChanged
        return (out, operands) if cut.computed else out

    return shifted


def _keep(operand: Any, shift: Any, operands: list, inputs: int, check: bool) -> tuple:
    """Keep a computed array that is gathered from; return it as the transforms further out know it, and its numbers."""
    start = inputs + sum(x.size for x in operands)
    mine = type(operand) is Tracer and type(shift) is Tracer and operand.trace is shift.trace
    operands.append(snapshot(operand) if mine else operand)
    below = operand.trace.lower(operand) if mine else operand
    return (below, _number([below], start)[0]) if check else (below,)


def no_shifts(cut: Cut) -> list:
    """Return shifts that change nothing, of one number each: x + (-0.0) is x, for zeros of either sign."""
    return [_repeat(-0.0, shape, dtype) for shape, dtype in zip(cut.shapes, cut.dtypes, strict=True)]


def _repeat(number: float, shape: tuple, dtype: Any) -> Any:
    one = np.array(number, dtype)
    one.flags.writeable = False
    return np.broadcast_to(one, shape)
