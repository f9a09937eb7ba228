"""A function with its gathers cut: what index arrays take out of the inputs becomes an input of its own.

A residual of observations, or an energy of elements, gathers the numbers that each of them needs and works on those:
``f(x) = g(x[i], x[j], ...)``. The derivative of g in what was gathered consists of small blocks that a few passes tell
(one for each number that a block has), however many observations share an element of x; that of f follows by adding up
columns (partial separability: Griewank and Toint, "On the unconstrained optimization of partially separable functions",
in Nonlinear Optimization 1981, Academic Press, 1982).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fad import tree
from fad.core.runs.transformed import as_run
from fad.core.tracing.spec import spec_of
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer
from fad.core.tracing.views import snapshot
from fad.ops.places.indexing import getitem_p, index_add_p
from fad.sparse.dependence import constant
from fad.sparse.sets import kind_of_index
from fad.transforms.arguments.check import as_operand, as_value, run
from fad.transforms.custom_rules import RULES, Call

MANY = 256  # gathers of one run beyond which nothing is cut: a loop over single observations


class CutChanged(Exception):
    """A run gathers otherwise than the run did that was cut."""


@dataclass(eq=False)
class Cut:
    """Which gathers of a function are cut, in the order in which it runs them.

    ``cut[i]`` says whether gather number i is; the others take each element once and are seen through. ``shapes`` and
    ``dtypes`` are those of what is cut, and ``sources`` the numbers of the inputs' elements that it consists of.
    With `computed`, gathers of computed arrays count as well, and their elements are numbered behind the inputs', and
    with `scatters`, too, so do sums of computed values at index arrays: then the elements of the sum are numbered. What
    is gathered from, and what is added up, are the operands, of ``operands`` elements; ``fed[k]`` is the number, less
    the inputs, of that to which element k of all of them belongs. ``numbers`` are those of the inputs' elements.
    """

    cut: list
    shapes: list
    dtypes: list
    sources: Any
    numbers: list
    computed: bool = False
    scatters: bool = False
    operands: list = field(default_factory=list)
    fed: Any = None

    @cached_property
    def no_shifts(self) -> list:
        """Shifts that change nothing, of one number each: x + (-0.0) is x, for zeros of either sign."""
        return [_repeat(-0.0, shape, dtype) for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]


class _GatherTrace(Trace):
    """The trace of a run whose gathers are looked at.

    A tracer's `info` is what it is as moved inputs, None if it is computed: a tuple, the same moves of several arrays.
    Unless what is `computed` counts, it is the business of the traces below alone.
    """

    __slots__ = ("computed", "gathers", "scatters")
    kind = "fad.sparse"

    def __init__(self, computed: bool, gathers: Callable, scatters: Callable):
        super().__init__()
        self.computed = computed
        self.gathers = gathers  # (moved, operands, parameters) -> (result, what it is as moved inputs)
        self.scatters = scatters  # (operands, parameters) -> result, of computed values that are added

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        values, moved = [], []
        for x in args:
            mine = type(x) is Tracer and x.owner is self
            moved.append(x.info if mine else None)
            x = x.wrapped if mine else as_operand(x, args)
            if x is NotImplemented:
                return x
            values.append(x)
        if prim is getitem_p and self._owns(args[0]) and _by_index_arrays(values[1:]):
            return self._wrap(*self.gathers(moved[0], values, params))
        if prim is index_add_p and self._owns(args[1]) and _by_index_arrays(values[2:]):
            return self._wrap(self.scatters(values, params), None)
        y = _run_below(prim, values, params)
        if prim.multi:
            return tuple([self._wrap(v, None) for v in y])
        return self._wrap(y, self._move(prim, moved, values, params))

    def _owns(self, x: Any) -> bool:
        return type(x) is Tracer and x.owner is self

    def _move(self, prim: Any, moved: list, values: list, params: dict) -> Any:
        """Return what a result is as moved inputs, if it is nothing else."""
        if prim.dependence != "moved":
            return None
        count = 1 if prim is getitem_p else len(values)
        if any(m is None for m in moved[:count]) or any(spec_of(a).dtype.kind == "b" for a in values[count:]):
            return None
        return tuple([bind(prim, *xs, *values[count:], **params) for xs in zip(*moved[:count], strict=True)])

    def _wrap(self, y: Any, moved: Any) -> Any:
        if moved is None and not self.computed and type(y) is Tracer:
            return y
        return tracer(as_value(y), self, moved) if spec_of(y).dtype.kind in "fc" else y


def _by_index_arrays(index: list) -> bool:
    return any(np.size(a) > 1 and a.dtype.kind != "b" for a in index)


def _run_below(prim: Any, values: list, params: dict) -> Any:
    """Run an operation on the values of tracers, by the fast paths of the traces below if they have one for it."""
    if prim.partials is not None and not params:
        return prim(*values)
    if prim is getitem_p and len(values) == 1 and type(values[0]) is Tracer:
        return values[0].owner.index(prim, values[0], params["template"])
    return bind(prim, *values, **params)


def _custom_rule(trace: _GatherTrace, call: Call, xs: tuple) -> list:
    trace.check_alive()
    return [trace._wrap(y, None) for y in call(*[trace.lower(x) for x in xs])]


RULES[_GatherTrace] = _custom_rule


def _run(
    fun: Callable, in_tree: Any, xs: list, moved: list, computed: bool, gathers: Callable, scatters: Callable
) -> Any:
    trace = _GatherTrace(computed, gathers, scatters)

    def call() -> Any:
        tracers = [snapshot(tracer(x, trace, m)) for x, m in zip(xs, moved, strict=True)]
        return as_run(fun)(*tree.unflatten(in_tree, tracers))

    leaves, structure, _ = run(fun, trace, call, False)
    return tree.unflatten(structure, [trace.lower(y) for y in leaves])


def find_cut(fun: Callable, in_tree: Any, xs: list, computed: bool = False, scatters: bool = False) -> Cut | None:
    """Run a function of plain arrays once and return its gathers; None if none takes an element more than once.

    Those of computed arrays count with `computed`, and scatters with `scatters`, if one of them takes an element more
    than once.
    """
    found = Cut([], [], [], None, _number(xs), computed, scatters)
    direct: list = []  # whether each gather is of the inputs
    sources: list = []
    fed: list = []
    inputs = numbered = sum(x.size for x in xs)

    def note(y: Any, numbers: Any, operand: Any) -> None:
        """Note what is cut, and where its operand is computed, to which number each element of that belongs."""
        nonlocal numbered
        found.shapes.append(y.shape)
        found.dtypes.append(y.dtype)
        sources.append(numbers.reshape(-1))
        if operand is not None:
            found.operands.append(operand.size)
            fed.append(operand.reshape(-1) - inputs)
            numbered = max(numbered, int(operand.max()) + 1, int(numbers.max()) + 1)

    def look(moved: Any, values: list, params: dict) -> tuple:
        y = bind(getitem_p, *values, **params)
        if moved is None and (not computed or len(found.cut) > MANY):
            return y, None
        operand = _number(values[:1], numbered)[0] if moved is None else moved[0]
        numbers = bind(getitem_p, operand, *[constant(a) for a in values[1:]], **params)
        repeats = _repeat_any(numbers - numbered if moved is None else numbers)
        found.cut.append(repeats)
        direct.append(moved is not None)
        if not repeats:
            return y, None if moved is None else (numbers,)
        note(y, numbers, operand if moved is None else None)
        return y, None

    def look_at_scatter(values: list, params: dict) -> Any:
        y = bind(index_add_p, *values, **params)
        if scatters and len(found.cut) <= MANY:
            sums = _number([y], numbered)[0]
            places = bind(getitem_p, sums, *[constant(a) for a in values[2:]], **params)
            repeats = places.shape == values[1].shape and _repeat_any(places - numbered)
            found.cut.append(repeats)
            direct.append(False)
            if repeats:
                note(y, sums, places)
        return y

    _run(fun, in_tree, xs, [(numbers,) for numbers in found.numbers], computed, look, look_at_scatter)
    if computed and len(found.cut) > MANY:
        return find_cut(fun, in_tree, xs)
    if not sources or len(found.cut) > MANY:
        return None
    if not found.operands:
        found.computed, found.scatters = False, False
        found.cut = [c for c, d in zip(found.cut, direct, strict=True) if d]
    found.sources = np.concatenate(sources)
    found.fed = np.concatenate(fed) if fed else None
    return found


def _repeat_any(numbers: Any) -> bool:
    return bool(np.bincount(numbers.reshape(-1)).max(initial=0) > 1)


def _number(xs: list, start: int = 0) -> list:
    """Return arrays like some others of the numbers of their elements."""
    bounds = list(itertools.accumulate([x.size for x in xs], initial=start))
    kind = kind_of_index(bounds[-1])
    return [np.arange(a, a + x.size, dtype=kind).reshape(np.shape(x)) for a, x in zip(bounds, xs, strict=False)]


def cut_gathers(cut: Cut, fun: Callable, in_tree: Any, outer: list, check: bool) -> Callable:
    """Return the function of the inputs' leaves and of shifts of what it gathers.

    `outer` holds the inputs as the transform around this one knows them. Gathers take from those, so that in the
    leaves the function has the derivatives of its direct uses alone. The shifts are zero: their derivatives count.
    With `check` it raises `CutChanged` if it gathers other elements than the run that was cut. Where computed arrays
    count, the function returns also those of them that it gathers from.
    """
    inputs = list(zip(outer, cut.numbers, strict=True)) if check else [(x,) for x in outer]
    size = sum(x.size for x in outer)

    def shifted(leaves: list, shifts: list) -> Any:
        position, it, sources, fed = iter(cut.cut), iter(shifts), cut.sources, cut.fed
        operands: list = []
        numbered = size

        def is_cut() -> bool:
            repeats = next(position, None)
            if repeats is None:
                raise CutChanged
            return repeats

        def shift_by(y: Any, shift: Any, numbers: Any) -> Any:
            nonlocal sources
            if shift.shape != y.shape or shift.dtype != y.dtype:
                raise CutChanged
            if numbers is not None and not np.array_equal(numbers.reshape(-1), sources[: shift.size]):
                raise CutChanged
            sources = sources[shift.size :]
            return y + shift

        def keep(operand: Any, shift: Any, count: int) -> Any:
            """Keep an array that is gathered from or added up; return it as the transforms further out know it."""
            nonlocal numbered, fed
            mine = type(operand) is Tracer and type(shift) is Tracer and operand.owner is shift.owner
            operands.append(snapshot(operand) if mine else operand)
            numbered, fed = numbered + count, fed[operand.size :]
            return operand.owner.lower(operand) if mine else operand

        def take(moved: Any, values: list, params: dict) -> tuple:
            if moved is None and not cut.computed:
                return bind(getitem_p, *values, **params), None
            if is_cut():
                shift, start = next(it), numbered
                if moved is None:
                    below = keep(values[0], shift, values[0].size)
                    moved = (below, _number([below], start)[0]) if check else (below,)
                gathered, *numbers = [bind(getitem_p, x, *values[1:], **params) for x in moved]
                return shift_by(gathered, shift, numbers[0] if numbers else None), None
            y = bind(getitem_p, *values, **params)
            return y, moved and tuple([bind(getitem_p, x, *values[1:], **params) for x in moved])

        def add_up(values: list, params: dict) -> Any:
            if not cut.scatters or not is_cut():
                return bind(index_add_p, *values, **params)
            shift, start, ahead = next(it), numbered, fed
            base, operand, *index = values
            if check:
                places = bind(getitem_p, _number([base], start - size)[0], *index, **params)
                if places.shape != operand.shape or not np.array_equal(places.reshape(-1), ahead[: operand.size]):
                    raise CutChanged
            below = keep(operand, shift, base.size)
            return shift_by(bind(index_add_p, base, below, *index, **params), shift, None)

        out = _run(fun, in_tree, leaves, inputs, cut.computed, take, add_up)
        if next(position, None) is not None:
            raise CutChanged
        return (out, operands) if cut.computed else out

    return shifted


def _repeat(number: float, shape: tuple, dtype: Any) -> Any:
    one = np.array(number, dtype)
    one.flags.writeable = False
    return np.broadcast_to(one, shape)
