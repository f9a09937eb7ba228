"""Reverse mode: record the operations on a flat tape, then sweep it backwards once.

The tape is a list of records in execution order, and a tracer's `info` is its position there. So the backward pass is
one reversed loop with no graph search: each record turns the cotangent of its result into cotangents of its operands,
which lie earlier. A record is freed as soon as it is used, unless the pullback is kept for more calls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import tree
from fad.backends.counterparts import explain
from fad.core.archetypes import cast, fit, one
from fad.core.cotangent import Indexed, Masked, densify
from fad.core.memory import RUNS, follow, fresh, is_array, path_of, refresh, root_of, version_of
from fad.core.tracer import Tracer, strong, tracer
from fad.errors import ImpureFunctionError, PullbackConsumedError
from fad.transforms.accumulate import accumulate
from fad.transforms.check import as_primal, check_cotangent, plain_values, run, settle
from fad.transforms.mutation import Watch, check_own, copy_result, own
from fad.transforms.operand_cotangents import PULL_BACK, operand_cotangents
from fad.transforms.overwrites import (
    VIEW,
    detach,
    may_view,
    overwrite,
    record_view,
    redo,
    store,
    sweep_write,
    view_along,
)
from fad.transforms.tape import (
    BOTH,
    CALL,
    EFFECT,
    GENERAL,
    INDEX,
    MULTI,
    ONE_OF_TWO,
    PRODUCT,
    RERUN,
    SEEDS,
    UNARY,
    WRITE,
    Recorder,
)

make_trace: ContextVar[Callable | None] = ContextVar("make_trace", default=None)
"""Makes the traces of reverse mode while someone watches (`fad.transforms.tape_hooks`); None otherwise."""


class VJPTrace(Recorder):
    """The trace of reverse mode."""

    __slots__ = ()

    def note_writes(self) -> None:
        self.__class__ = WritingVJPTrace  # programs that never write do not look for writes

    def store(self, x: Tracer, index: tuple, v: Any) -> bool:
        return store(self, x, index, v)

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        return overwrite(self, root, path, template, v, arrays)

    def sweep(self, tape: list, cts: list, own: bytearray, stop: int, keep: bool) -> None:
        """Run the backward sweep; a trace that is watched does it record by record."""
        sweep(tape, cts, own, stop, keep)


class WritingVJPTrace(VJPTrace):
    """The trace of reverse mode from the first write on: views are taken again once what they view was written."""

    __slots__ = ()

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
        v = x.value
        y = v[index]
        if type(v) is Tracer:
            return VJPTrace.index(self, prim, x, index)
        if type(x.memory) is tuple and may_view(root := root_of(x), path := path_of(x)):
            out = tracer(y, self, record_view(self, root, path, index))
            if type(y) is np.ndarray:
                out.memory = x, prim, {"template": index}, root.memory.version
            return out
        tape = self.tape
        out = Tracer()
        out.value = y
        out.owner = self
        out.info = len(tape)
        view = type(y) is np.ndarray and (type(v) is np.ndarray or is_array(x))
        out.memory = (x, prim, {"template": index}, version_of(x)) if view else None
        tape.append((INDEX, x.info, prim, index, v.shape, v.dtype))
        return out

    def take_view(self, x: Tracer, root: Tracer) -> bool:
        path = path_of(x)
        part = follow(root.value, path) if may_view(root, path) else None
        if part is None:
            return False
        x.value, x.owner, x.info = part, self, record_view(self, root, path, Ellipsis)
        x.memory = *x.memory[:3], root.memory.version
        return True

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        out = VJPTrace.process(self, prim, args, params)
        if type(out) is Tracer and type(out.value) is np.ndarray and prim.view is None:
            out.value = fresh(out.value, [x.value for x in args if type(x) is Tracer])
        return out

    def hand_out(self, x: Any) -> Any:
        return x.copy() if type(x) is np.ndarray else strong(x)


# --- the backward sweep -----------------------------------------------------------------------------------------


def sweep(tape: list, cts: list, own: bytearray, stop: int, keep: bool) -> None:
    """Propagate cotangents from the end of the tape down to position `stop`.

    `cts` holds one entry per position and is updated in place; on return, the entries below `stop` are the result.
    `own` holds 1 where ``cts[i]`` is an array made here, that may be added to in place.
    With `keep` false each record is dropped as soon as it has been used.
    """
    ndarray = np.ndarray
    masked = False  # whether the cotangent at hand is masked, and so NumPy's warnings are off
    errors: Any = None
    try:
        for i in range(len(tape) - 1, stop - 1, -1):
            record = tape[i]
            if record is None:
                continue
            if not keep:
                tape[i] = None
            g: Any = cts[i]
            kind = record[0]
            if kind >= MULTI:
                x = y = z = c = d = p = g = None  # what records before this one read and made is not kept while it runs
                if masked:
                    errors.__exit__(None, None, None)
                    masked = False
                if kind == WRITE:
                    sweep_write(record, i, cts, own, keep)
                elif kind == VIEW:
                    _sweep_view(record, i, cts, own)
                elif kind == RERUN:
                    _sweep_again(record, i, tape, cts, own)
                elif kind == EFFECT:
                    _sweep_effect(record, i, cts, own)
                else:
                    _sweep_many(record, i, cts, own)
                continue
            if g is None:
                continue
            cts[i] = None
            if masked or type(g) is not ndarray:
                if type(g) is Indexed:
                    g = g.gather()
                now = type(g) is Masked and (kind < PRODUCT or (kind == GENERAL and record[2].moves))
                if now is not masked:
                    masked = now
                    if now:
                        errors = np.errstate(all="ignore")  # an infinite partial may meet what was not selected
                        errors.__enter__()
                    else:
                        errors.__exit__(None, None, None)
            if kind == BOTH:
                _, j, k, px, py, z, x, y, to_x, to_y = record
                if masked:
                    c = g if px is one else g.quietly(px, (z, x, y))
                    d = g if py is one else g.quietly(py, (z, x, y))
                else:
                    c = g if px is one else g * px(z, x, y)
                    d = g if py is one else g * py(z, x, y)
                if to_y is not None:
                    d = fit(d, *to_y)
                p = cts[k]
                if p is None:
                    cts[k] = d
                elif type(p) is ndarray and type(d) is ndarray:
                    if own[k]:
                        p += d
                    else:
                        cts[k] = p + d
                        own[k] = 1
                else:
                    accumulate(cts, own, k, d)
                if to_x is not None:
                    c = fit(c, *to_x)
            elif kind == UNARY:
                _, j, partial, z, x = record
                c = g.quietly(partial, (z, x)) if masked else g * partial(z, x)
            elif kind == ONE_OF_TWO:
                _, j, partial, z, x, y, to = record
                if masked:
                    c = g if partial is one else g.quietly(partial, (z, x, y))
                else:
                    c = g if partial is one else g * partial(z, x, y)
                if to is not None:
                    c = fit(c, *to)
            elif kind == INDEX:
                j, index = record[1], record[3]
                p = cts[j]
                if own[j] and type(p) is ndarray and (type(g) is ndarray or issubclass(type(g), np.generic)):
                    part = p[index]
                    if type(part) is ndarray:
                        part += g
                    else:
                        p[index] = part + g
                else:
                    _sweep_index(record, g, cts, own)
                continue
            else:
                x = y = z = c = d = p = None
                (_sweep_product if kind == PRODUCT else _sweep_general)(record, g, cts, own)
                continue
            p = cts[j]
            if p is None:
                cts[j] = c
            elif type(p) is ndarray and type(c) is ndarray:
                if own[j]:
                    p += c
                else:
                    cts[j] = p + c
                    own[j] = 1
            else:
                accumulate(cts, own, j, c)
    finally:
        if masked:
            errors.__exit__(None, None, None)


def _sweep_index(record: tuple, g: Any, cts: list, own: bytearray) -> None:
    """Run the record of a slice whose array has no cotangent of the sweep's own yet: all slices of it add up in one."""
    _, j, prim, index, shape, dtype = record
    if cts[j] is None and (type(g) is np.ndarray or issubclass(type(g), np.generic)):
        p = cts[j] = np.zeros(shape, dtype)
        p[index] = g
        own[j] = 1
    else:
        accumulate(cts, own, j, prim.cotangent(shape, dtype, index, densify(g)))


def _sweep_view(record: tuple, i: int, cts: list, own: bytearray) -> None:
    """Add the cotangent of what was read through views to that of the array they are views of."""
    _, j, path, index, shape, dtype = record
    g, p = densify(cts[i]), densify(cts[j])
    cts[i] = None
    if g is None:
        return
    if type(g) is Tracer or type(p) is Tracer:
        _, pullback = vjp(lambda x: view_along(x, path)[index], np.zeros(shape, dtype))
        accumulate(cts, own, j, pullback(g)[0])
        return
    if p is None:
        p = np.zeros(shape, dtype)
    elif not own[j] or type(p) is not np.ndarray or not p.flags.c_contiguous:
        p = np.array(p, order="C")
    cts[j] = p
    own[j] = 1
    follow(p, path)[index] += g


def _sweep_product(record: tuple, g: Any, cts: list, own: bytearray) -> None:
    """Run the record of a product, which has a rule for each factor that is traced."""
    _, j, k, (left, right), x, y = record
    if type(g) is Masked:
        g = g.dense()
    if k >= 0:
        d = right(g, None, x, y)
        accumulate(cts, own, k, d if d.dtype is y.dtype else cast(d, y.dtype))
    if j >= 0:
        c = left(g, None, x, y)
        accumulate(cts, own, j, c if c.dtype is x.dtype else cast(c, x.dtype))


def _sweep_general(record: tuple, g: Any, cts: list, own: bytearray) -> None:
    _, parents, prim, y, xs, params = record
    found = operand_cotangents(prim, parents, g, y, xs, params)
    for k, parent in enumerate(parents):
        c = found[k]
        if c is not None:
            accumulate(cts, own, parent, c)


def _sweep_effect(record: tuple, i: int, cts: list, own: bytearray) -> None:
    """Run the record of an operation that others wait for, with a cotangent of zeros where there is none."""
    g, cts[i] = cts[i], None
    ct = record[2].swept(None if g is None else densify(g), record[3], SEEDS.get())
    _sweep_general(record, ct, cts, own)


def _sweep_many(record: tuple, i: int, cts: list, own: bytearray) -> None:
    """Run a record with several results: gather their cotangents, hand them to its rule."""
    n = record[3] if record[0] == CALL else len(record[3])
    gs = [densify(g) if g is not None else None for g in cts[i : i + n]]
    if all(g is None for g in gs):
        return
    cts[i : i + n] = [None] * n
    parents = record[1]
    if record[0] == CALL:
        results = record[2](gs)
    else:
        _, _, prim, ys, xs, params = record
        if not prim.skips_unread:
            gs = [np.zeros_like(y) if g is None else g for g, y in zip(gs, ys, strict=True)]
        results = operand_cotangents(prim, parents, tuple(gs), ys, xs, params)
    for parent, c in zip(parents, results, strict=True):
        if c is not None and parent >= 0:
            accumulate(cts, own, parent, c)


def _sweep_again(record: tuple, i: int, tape: list, cts: list, own: bytearray) -> None:
    """Run a checkpoint again at the end of the tape, sweep what it recorded, and drop it."""
    _, trace, run, n = record
    gs = cts[i : i + n]
    cts[i : i + n] = [None] * n
    if all(g is None for g in gs):
        return
    end = len(tape)
    closed, trace.tape = trace.tape, tape
    was, trace.dead = trace.dead, False
    try:
        ys = run()
    finally:
        trace.tape, trace.dead = closed, was
    more = len(tape) - end
    cts.extend([None] * more)
    own.extend(bytes(more))
    for y, g in zip(ys, gs, strict=True):
        if g is not None:
            accumulate(cts, own, y.info, g)
    trace.sweep(tape, cts, own, end, keep=False)
    if isinstance(trace, WritingVJPTrace) and any(g is not None for g in cts[i + n : end]):
        raise ImpureFunctionError(
            "a function under checkpoint reads an array that was written after its call, and it runs again in the "
            "backward pass: pass the array as an argument"
        )
    del tape[end:], cts[end:], own[end:]


class Tape:
    """The record of one run: what `vjp`, `grad` and `linearize` share."""

    __slots__ = ("trace", "records", "leaves", "outputs", "out_tree", "in_tree", "watch", "aux")

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
        self.trace = trace
        trace.watch = self.watch = Watch(() if own else leaves)
        self.records = trace.tape
        self.records += [None] * len(leaves)
        self.in_tree = in_tree
        self.leaves = leaves
        self.outputs, self.out_tree, self.aux = run(fun, trace, self._arguments, has_aux, user)
        if self.watch.snapshots is not None:
            self.watch.finish()

    def _arguments(self) -> Any:
        trace = self.trace
        xs: list = []
        for x in self.leaves:
            xs.append(tracer(x, trace, len(xs)))
        return tree.unflatten(self.in_tree, xs)

    def values(self) -> list:
        return plain_values(self.outputs, self.trace)

    def pull(self, cts: list, keep: bool) -> list:
        """Return the cotangents of the inputs, given one cotangent per output leaf (None is zero)."""
        if self.records is None:
            raise PullbackConsumedError("this tape was swept before and not kept")
        records = self.records
        self.watch.check(records)
        if not keep:
            self.records = None
        slots: list = [None] * len(records)
        trace = self.trace
        for k, x in enumerate(self.outputs):
            ct = cts[k]
            if type(x) is Tracer and x.owner is trace and ct is not None:
                p = slots[x.info]
                slots[x.info] = ct if p is None else p + ct
        n = len(self.leaves)
        written = isinstance(trace, WritingVJPTrace)
        if written and any(_may_be_kept(ct) for ct in cts):
            detach(records)
        before, RUNS.rules = RUNS.rules, True
        seeds = [ct for ct in cts if type(ct) is Tracer]
        token = SEEDS.set((*SEEDS.get(), *seeds)) if seeds else None
        try:
            trace.sweep(records, slots, bytearray(len(records)), n, keep)
        except (TypeError, ValueError) as error:
            explain(error)
            raise
        finally:
            RUNS.rules = before
            if token is not None:
                SEEDS.reset(token)
            if written and keep:
                redo(records)
        return settle(slots[:n], self.leaves, cts)


def _may_be_kept(ct: Any) -> bool:
    """Return whether a transform is under way that may keep what the sweep of this cotangent computes with."""
    while type(ct) is Tracer and ct.owner.batched:
        ct = ct.value
    return type(ct) is Tracer


def vjp(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple:
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
    leaves, in_tree = tree.flatten(primals)
    leaves = [as_primal(x, "a primal of vjp") for x in leaves]
    owned = own(leaves)
    tape = Tape(fun, in_tree, owned, has_aux, own=True)
    check_own(owned, leaves)
    values = tape.values()

    def vjp_fn(ct: Any) -> tuple:
        cts = check_cotangent(ct, tape.out_tree, values)
        return tree.unflatten(in_tree, tape.pull(cts, keep=True))

    out = tree.unflatten(tape.out_tree, list(map(copy_result, values)))
    return (out, vjp_fn, tree.map(copy_result, tape.aux)) if has_aux else (out, vjp_fn)


PULL_BACK.append(vjp)
