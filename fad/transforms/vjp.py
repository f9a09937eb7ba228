"""Reverse mode: record the operations on a flat tape, then sweep it backwards once.

The tape is a list of records in execution order, and a tracer's `info` is its position there. So the backward pass
(`fad.transforms.reverse.backward_sweep`) is one reversed loop with no graph search: each record turns the cotangent of
its result into cotangents of its operands, which lie earlier. A record is freed as soon as it is used, unless the
pullback is kept for more calls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import tree
from fad.backends import ARRAYS
from fad.backends.counterparts import explain
from fad.core.primitives.cotangent import Indexed, Masked, ones_where_live
from fad.core.runs.transformed import LinearMap, as_run
from fad.core.tracing.layers import copy_layers, find_layers, fresh_layers
from fad.core.tracing.tracer import Tracer, strong, tracer
from fad.core.tracing.views import (
    RUNS,
    copy_layout,
    follow,
    fresh,
    is_array,
    link,
    may_be_view,
    path_of,
    refresh,
    root_of,
    running_rules,
    version_of,
)
from fad.errors import PullbackConsumedError
from fad.transforms.arguments.check import check_cotangent, flatten_primals, plain_values, run, settle
from fad.transforms.arguments.mutation import check_fingerprints, check_own, copy_result, own, take_fingerprints
from fad.transforms.reverse.backward_sweep import sweep
from fad.transforms.reverse.layered_writes import note_writes
from fad.transforms.reverse.operand_cotangents import PULL_BACK
from fad.transforms.reverse.overwrites import detach, may_view, overwrite, record_view, redo, store
from fad.transforms.reverse.slopes import ALWAYS, NOWHERE, Steep, are_finite, find_care, has_effect, is_compiled
from fad.transforms.reverse.tape import INDEX, SEEDS, Recorder, forget_source
from fad.typing import PyTree

make_trace: ContextVar[Callable | None] = ContextVar("make_trace", default=None)
"""Makes the traces of reverse mode while someone watches (`fad.transforms.tape_hooks`); None otherwise."""


class VJPTrace(Recorder):
    """The trace of reverse mode."""

    __slots__ = ()
    parts = ("wrapped",)
    recorded = True
    writes = False  # whether the program has written into an array

    def note_writes(self) -> None:
        self.__class__ = WritingVJPTrace  # programs that never write do not look for writes

    def store(self, x: Tracer, index: tuple, v: Any) -> bool:
        return store(self, x, index, v)

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        return overwrite(self, root, path, template, v, arrays)

    sweep = staticmethod(sweep)  # the backward sweep, which a trace that is watched does record by record


class WritingVJPTrace(VJPTrace):
    """The trace of reverse mode from the first write on: views are taken again once what they view was written."""

    __slots__ = ()
    writes = True

    def note_writes(self) -> None:
        pass

    def unary(self, prim: Any, x: Tracer) -> Any:
        if type(x.memory) is tuple:
            refresh(x)
        return VJPTrace.unary(self, prim, x) if x.owner is self else prim(x)

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        if type(x.memory) is tuple:
            refresh(x)
        if type(y.memory) is tuple:
            refresh(y)
        return VJPTrace.both(self, prim, x, y) if x.owner is self and y.owner is self else prim(x, y)

    def left(self, prim: Any, x: Tracer, b: Any) -> Any:
        if type(x.memory) is tuple:
            refresh(x)
        if type(b) is Tracer and b.memory is not None:
            refresh(b)
        older = type(b) is not Tracer or b.owner.birth < self.birth
        return VJPTrace.left(self, prim, x, b) if x.owner is self and older else prim(x, b)

    def right(self, prim: Any, a: Any, y: Tracer) -> Any:
        if type(y.memory) is tuple:
            refresh(y)
        if type(a) is Tracer and a.memory is not None:
            refresh(a)
        older = type(a) is not Tracer or a.owner.birth < self.birth
        return VJPTrace.right(self, prim, a, y) if y.owner is self and older else prim(a, y)

    def index(self, prim: Any, x: Tracer, index: tuple) -> Any:
        v = x.wrapped
        if type(v) is Tracer:
            return self._index_layers(prim, x, index)
        y = v[index]
        if type(x.memory) is tuple and may_view(root := root_of(x), path := path_of(x)):
            out = tracer(y, self, record_view(self, root, path, index))
            if may_be_view(y):
                out.memory = x, prim, {"template": index}, root.memory.version
            return out
        tape = self.tape
        out = Tracer()
        out.wrapped = y
        out.owner = self
        out.info = len(tape)
        view = (type(y) is np.ndarray or may_be_view(y)) and (type(v) in ARRAYS or is_array(x))
        out.memory = (x, prim, {"template": index}, version_of(x)) if view else None
        tape.append((INDEX, x.info, prim, index, v.shape, v.dtype))
        return out

    def _index_layers(self, prim: Any, x: Tracer, index: tuple) -> Any:
        """Record what is read from an array of layers, which is written where it lies if this trace owns it."""
        root, path = root_of(x), path_of(x)
        if not may_view(root, path):
            return VJPTrace.index(self, prim, x, index)
        out = tracer(forget_source(x.wrapped[index]), self, record_view(self, root, path, index))
        link(x, out, prim, {"template": index})
        return out

    def take_view(self, x: Tracer, root: Tracer) -> bool:
        if type(root.wrapped) is Tracer:
            return False
        path = path_of(x)
        part = follow(root.wrapped, path) if may_view(root, path) else None
        if part is None:
            return False
        x.wrapped, x.owner, x.info = part, self, record_view(self, root, path, Ellipsis)
        x.memory = *x.memory[:3], root.memory.version
        return True

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        out = VJPTrace.process(self, prim, args, params)
        if type(out) is Tracer and prim.view is None:
            given = [x.wrapped for x in args if type(x) is Tracer]
            out.wrapped = fresh_layers(out.wrapped, given) if type(out.wrapped) is Tracer else fresh(out.wrapped, given)
        return out

    def hand_out(self, x: Any) -> Any:
        return copy_layout(x) if type(x) is np.ndarray else strong(_copy(x))

    def give_back(self, x: Tracer) -> None:
        x.wrapped = _copy(x.wrapped)
        VJPTrace.give_back(self, x)


def _copy(x: Any) -> Any:
    """Return layers in memory of their own, for the sweep puts back what was written into them; else the value."""
    return copy_layers(x) if type(x) is Tracer and find_layers(x) is not None else x


class Tape:
    """The record of one run: what `vjp`, `grad` and `linearize` share."""

    __slots__ = ("trace", "records", "leaves", "outputs", "out_tree", "in_tree", "inputs", "aux")

    def __init__(
        self,
        fun: Callable,
        in_tree: Any,
        leaves: list,
        has_aux: bool,
        own: bool = False,
        user: Callable | None = None,
    ):
        make = make_trace.get()
        trace: Any = VJPTrace() if make is None else make()
        self.trace: Any = trace
        self.inputs = take_fingerprints(leaves) if not own else []
        self.records: Any = [None] * len(leaves)
        trace.tape = self.records
        self.in_tree = in_tree
        self.leaves = leaves

        def call() -> Any:
            xs: list = []
            for x in leaves:
                xs.append(tracer(x, trace, len(xs)))
            return as_run(fun)(*tree.unflatten(in_tree, xs))

        self.outputs, self.out_tree, self.aux = run(fun, trace, call, has_aux, user)
        if trace.watch is not None:
            trace.watch.finish()

    def values(self) -> list:
        return plain_values(self.outputs, self.trace)

    def check_kept(self) -> None:
        """Raise MutationError if an array that a rule needs is no longer what it was."""
        check_fingerprints(self.inputs, self.records)
        if self.trace.watch is not None:
            self.trace.watch.check()

    def pull(self, cts: list, keep: bool) -> list:
        """Return the cotangents of the inputs, given one cotangent per output leaf (None is zero)."""
        records, trace = self.records, self.trace
        if records is None:
            raise PullbackConsumedError("this tape was swept before and not kept")
        if self.inputs or trace.watch is not None:
            self.check_kept()
        if not keep:
            self.records = None
        return settle(self._sweep(records, cts, keep), self.leaves, cts)

    def find_live(self, marks: list) -> list:
        """Return for each input what the outputs use of it: marks, which are zeros where nothing is used.

        `marks` are those of the outputs, None where nothing of one counts.
        """
        cts: list = [None if mark is None else Masked(mark, np.not_equal(mark, 0), clean=True) for mark in marks]
        found = self._sweep(self.records, cts, False, ALWAYS)[: len(self.leaves)]
        found = [ct.gather() if type(ct) is Indexed else ct for ct in found]
        return settle([None if ct is None else ones_where_live(ct) for ct in found], self.leaves, [])

    def pull_marked(self, cts: list, marks: list) -> tuple[list, list]:
        """Return the cotangents of the inputs, and marks of what the outputs use of them, given both of the outputs."""
        pairs = zip(cts, marks, strict=True)
        given: list = [None if ct is None else Masked(ct, np.not_equal(mark, 0), clean=True) for ct, mark in pairs]
        found = self._sweep(self.records, given, False, ALWAYS)[: len(self.leaves)]
        found = [ct.gather() if type(ct) is Indexed else ct for ct in found]
        live = [None if ct is None else ones_where_live(ct) for ct in found]
        return settle(found, self.leaves, cts), settle(live, self.leaves, [])

    def pull_masked(self, cts: list) -> list:
        """Return the cotangents of the inputs, which know where they are zero by selection as those given do."""
        found = self._sweep(self.records, cts, False)[: len(self.leaves)]
        return [ct.gather() if type(ct) is Indexed else ct for ct in found]

    def _sweep(self, records: Any, cts: list, keep: bool, care: int | None = None) -> list:
        """Run the backward sweep, of a program that is compiled once more if it has to look at all that is selected."""
        traced = [x for x in self.outputs if type(x) is Tracer and type(x.wrapped) is Tracer]
        if care is not None or not any(map(is_compiled, traced)):
            return self._sweep_once(records, cts, keep, care)
        steep = Steep(records, find_care(records), looks_again=True)
        watched = self.trace.sweep is not sweep
        if not watched:
            found = self._sweep_once(records, cts, True, steep.care, steep)
            if not steep.unsure or _looks_later() or has_effect(records):
                return found
            if are_finite(found[: len(self.leaves)]):
                return found
        return self._sweep_once(records, cts, keep, ALWAYS if steep.care else NOWHERE)

    def _sweep_once(self, records: Any, cts: list, keep: bool, care: int | None, steep: Any = None) -> list:
        slots: list = [None] * len(records)
        others = self.trace.writes or RUNS.buffers
        for k, x in enumerate(self.outputs):
            ct = cts[k]
            others = others or type(ct) in (Tracer, Masked)
            if type(x) is Tracer and x.owner is self.trace and ct is not None:
                p = slots[x.info]
                slots[x.info] = ct if p is None else p + ct
        try:
            if others:
                self._sweep_beside_others(records, slots, cts, keep, care, steep)
            else:
                self.trace.sweep(records, slots, bytearray(len(records)), len(self.leaves), keep, care, steep)
        except (TypeError, ValueError) as error:
            explain(error)
            raise
        return slots

    def _sweep_beside_others(
        self, records: list, slots: list, cts: list, keep: bool, care: int | None, steep: Any
    ) -> None:
        """Run the backward sweep where arrays were written, or while other transforms run."""
        trace, cts = self.trace, [ct.value if type(ct) is Masked else ct for ct in cts]
        if trace.writes and any(_may_be_kept(ct) for ct in cts):
            detach(records)
        if trace.writes:
            note_writes(cts)
        seeds = [ct for ct in cts if type(ct) is Tracer]
        token = SEEDS.set((*SEEDS.get(), *seeds)) if seeds else None
        try:
            with running_rules():
                trace.sweep(records, slots, bytearray(len(records)), len(self.leaves), keep, care, steep)
        finally:
            if token is not None:
                SEEDS.reset(token)
            if trace.writes and keep:
                redo(records)


class deferring_looks:
    """A context in which sweeps do not look whether what they give is finite, but note in `wanted` that one has to.

    So it is for the pullback of a body, of which the values of no step are at hand.
    """

    def __init__(self) -> None:
        self.wanted = False

    def __enter__(self) -> deferring_looks:
        self._token = _LATER.set(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _LATER.reset(self._token)


_LATER: ContextVar[deferring_looks | None] = ContextVar("later", default=None)


def _looks_later() -> bool:
    later = _LATER.get()
    if later is not None:
        later.wanted = True
    return later is not None


def _may_be_kept(ct: Any) -> bool:
    """Return whether a transform is under way that may keep what the sweep of this cotangent computes with."""
    while type(ct) is Tracer and ct.owner.batched:
        ct = ct.wrapped
    return type(ct) is Tracer


def vjp(fun: Callable, *primals: PyTree, has_aux: bool = False) -> tuple:
    """Evaluate a function and return its value with its pullback, the map from cotangents of the output to inputs.

    Parameters
    ----------
    fun : callable
        Function of the primals, arrays or pytrees of arrays in and out.
    *primals : arrays or pytrees of floating-point or complex arrays
        The point at which to differentiate.
    has_aux : bool
        If true, `fun` returns ``(output, aux)``, and aux is passed through, not differentiated.

    Returns
    -------
    (out, vjp_fn) or (out, vjp_fn, aux)
        ``vjp_fn(ct)`` takes a cotangent of the structure, shapes and dtypes of `out`, and returns a tuple with one
        cotangent per primal, always. It may be called many times, and is itself differentiable in `ct`.

    Raises
    ------
    IntegerInputError, UnsupportedInputError
        for primals that have no derivative;
    TreeMismatchError, ShapeMismatchError, DtypeMismatchError
        from ``vjp_fn``, for a cotangent that does not fit;
    MutationError
        from ``vjp_fn``, if an array that a rule needs was overwritten in between.

    Examples
    --------
    >>> y, pullback = vjp(lambda x: x * x, 3.0)
    >>> pullback(1.0)
    (np.float64(6.0),)
    """
    leaves, in_tree = flatten_primals(primals, "a primal of vjp")
    owned = own(leaves)
    tape = Tape(fun, in_tree, owned, has_aux, own=True)
    check_own(owned, leaves)
    values = tape.values()

    def vjp_fn(ct: Any) -> tuple:
        cts = check_cotangent(ct, tape.out_tree, values)
        return tree.unflatten(in_tree, tape.pull(cts, keep=True))

    out = tree.unflatten(tape.out_tree, list(map(copy_result, values)))
    pullback = LinearMap("pullback", fun, vjp_fn, (tape.out_tree, values), (in_tree, tape.leaves))
    return (out, pullback, tree.map(copy_result, tape.aux)) if has_aux else (out, pullback)


PULL_BACK.append(vjp)
