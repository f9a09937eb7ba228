"""The tape of reverse mode: what the forward pass writes down, and the trace that writes it.

The tape is a list of records in execution order, and a tracer's `info` is its position there. So the backward pass is
one reversed loop with no graph search (`fad.transforms.reverse.backward_sweep.sweep`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy import float64, ndarray, ufunc

from fad.backends import ARRAYS
from fad.core.handles.buffers import flat_result
from fad.core.primitives.cotangent import Masked, share_at_ties
from fad.core.runs.journal import effect_place
from fad.core.tracing.array_likes import open_operand
from fad.core.tracing.layers import arrays_of, find_layers, map_arrays
from fad.core.tracing.spec import spec_of
from fad.core.tracing.trace import Trace, leaked_error
from fad.core.tracing.tracer import Tracer, bind, tracer
from fad.core.tracing.views import is_array, link, may_be_view, own_small_part
from fad.core.tracing.weak import WeakFloat, on_numbers
from fad.errors import UnsupportedInputError
from fad.transforms.arguments.check import as_flat, as_operand, is_inexact
from fad.transforms.arguments.mutation import Watch

# Kinds of record.
UNARY = 1  # (kind, i, partial, y, x)
ONE_OF_TWO = 2  # (kind, i, partial, z, x, y, fit)         one operand is constant
BOTH = 3  # (kind, i, j, partial_x, partial_y, z, x, y, fit_x, fit_y)
PRODUCT = 4  # (kind, i, j, (vjp_x, vjp_y), x, y)            matmul: VJPs instead of partials
INDEX = 5  # (kind, i, prim, index, shape, dtype)          x[index] by slices and integers
GENERAL = 6  # (kind, parents, prim, y, xs, params)
MULTI = 7  # (kind, parents, prim, ys, xs, params)          several results, at consecutive positions
CALL = 8  # (kind, parents, pullback, n)                    a custom rule or a checkpoint: pullback(cts) -> cts
RERUN = 9  # (kind, trace, run, n, care)                    a checkpoint: run() -> tracers, again
# place[index] = value j, in array i:
WRITE = 10  # [kind, i, j, place, index, old, path, whole, undone, shape, dtype, picks]
EFFECT = 12  # (kind, parents, prim, y, xs, params)         swept without a cotangent too, as zeros: other ranks do

_NUMBERS = frozenset({float, int, float64})

SEEDS: ContextVar[tuple] = ContextVar("seeds", default=())
"""The traced cotangents that the sweeps in progress began with."""


def _is_fraction_and_number(x: Any, constant: Any) -> bool:
    return type(constant) in (float, int) and constant == constant and x.dtype.kind == "f"


class _Dead:
    """Stands in for the tape of a finished trace."""

    def __init__(self, kind: type[Trace]):
        self._kind = kind  # not the trace: a cycle would keep the arrays it watched until the next collection

    def __len__(self) -> int:
        raise leaked_error(self._kind)


class Recorder(Trace):
    """A trace that writes a tape; reverse mode adds the sweep (`fad.transforms.vjp.VJPTrace`)."""

    __slots__ = ("tape", "watch", "rules")
    kind = "a reverse-mode transform (grad, vjp)"
    closed: _Dead  # what stands for its tape when it has finished

    def __init_subclass__(cls) -> None:
        cls.closed = _Dead(cls)

    def __init__(self) -> None:
        Trace.__init__(self)
        self.tape: Any = []
        self.watch: Watch | None = None  # what is kept of plain arrays, from the first one on
        self.rules = False  # whether a rule of the user's is on the tape, which need not be linear

    def finish(self) -> None:
        if self.adopted:
            super().finish()
        self.dead = True
        self.tape = self.closed

    # --- the hot path: elementwise operations of one and two operands -------------------------------------------

    def unary(self, prim: Any, x: Tracer) -> Any:
        v = x.wrapped
        kind = type(v)
        if kind is ndarray:
            y = prim.forward(v)
            if type(y) is float64:
                v = v[()]
        else:
            y = prim.on_scalars(v) if kind is float64 else prim(v)
        if prim.flat:
            return flat_result(prim, y, (v,))
        tape = self.tape
        out = Tracer()
        out.wrapped = y
        out.owner = self
        out.info = len(tape)
        out.memory = None
        keep_y, keep_x = prim.keep[0]
        tape.append((UNARY, x.info, prim.partials[0], y if keep_y else None, v if keep_x else None))
        return out

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        partials = prim.partials
        if partials is None:
            return self.product(prim, x.wrapped, y.wrapped, x.info, y.info)
        a = x.wrapped
        b = y.wrapped
        kind, other = type(a), type(b)
        alike = True  # of one shape and dtype
        if kind is ndarray and other is ndarray:
            z = prim.forward(a, b)
            if type(z) is float64:  # of arrays without axes, which compute more slowly than the numbers in them
                a, b = a[()], b[()]
                alike = type(a) is type(b)
            else:
                alike = a.dtype is b.dtype and a.shape == b.shape
        elif kind is float64 and other is float64:
            z = prim.on_scalars(a, b)
        elif kind is WeakFloat and other is WeakFloat and type(prim.forward) is ufunc:
            z = on_numbers(prim.forward, a, b, 2)
        else:
            z = prim(a, b)
            alike = a.dtype is b.dtype and a.shape == b.shape
        px, py = partials
        if px is None or py is None:
            return self._one_side(prim, x, y, a, b, z)
        tape = self.tape
        out = Tracer()
        out.wrapped = z
        out.owner = self
        out.info = len(tape)
        out.memory = None
        keep_z, keep_a, keep_b = prim.keep[2]
        if alike:
            to_x = to_y = None
        else:
            shape, same = z.shape, a.dtype is b.dtype  # beside another dtype a scalar's partial may widen the cotangent
            to_x = None if same and a.shape == shape and a.dtype is z.dtype else (a.shape, a.dtype)
            to_y = None if same and b.shape == shape and b.dtype is z.dtype else (b.shape, b.dtype)
        tape.append((
            BOTH, x.info, y.info, px, py,
            z if keep_z else None, a if keep_a else None, b if keep_b else None, to_x, to_y,
        ))  # fmt: skip
        return out

    def left(self, prim: Any, x: Tracer, b: Any) -> Any:
        kind = type(b)
        if kind is not float and kind is not int and kind is not ndarray and kind is not float64:
            opened = open_operand(b, x)
            if opened is not b:
                return prim(x, opened)
            b = as_operand(b, (x,))
            if b is NotImplemented:
                return b
            kind = type(b)
        if prim.partials is None:
            return self.product(prim, x.wrapped, b, x.info, -1)
        a = x.wrapped
        of = type(a)
        if of is ndarray and kind is not Tracer:
            z = prim.forward(a, b)
            same = z.dtype is a.dtype
            if type(z) is float64:
                a = a[()]
        elif of is float64 and kind in _NUMBERS:
            z = prim.on_scalars(a, b)
            same = type(z) is float64
        elif of is WeakFloat and kind in _NUMBERS and type(prim.forward) is ufunc:
            z = on_numbers(prim.forward, a, b, 2)
            same = z.dtype is a.dtype
        else:
            z = prim(a, b)
            same = z.dtype is a.dtype
        partial = prim.partials[0]
        # A Python number changes neither shape nor dtype, but for some ufuncs of SciPy that widen beside one.
        if kind is float and same and partial is not None and prim.choice is None:
            keep_z, keep_a, _ = prim.keep[0]
            tape = self.tape
            out = Tracer()
            out.wrapped = z
            out.owner = self
            out.info = len(tape)
            out.memory = None
            tape.append((ONE_OF_TWO, x.info, partial, z if keep_z else None, a if keep_a else None, b, None))
            return out
        return self._record_one(prim, 0, x.info, a, z, a, b)

    def right(self, prim: Any, a: Any, y: Tracer) -> Any:
        kind = type(a)
        if kind is not float and kind is not int and kind is not ndarray and kind is not float64:
            opened = open_operand(a, y)
            if opened is not a:
                return prim(opened, y)
            a = as_operand(a, (y,))
            if a is NotImplemented:
                return a
            kind = type(a)
        if prim.partials is None:
            return self.product(prim, a, y.wrapped, -1, y.info)
        b = y.wrapped
        of = type(b)
        if of is ndarray and kind is not Tracer:
            z = prim.forward(a, b)
            if type(z) is float64:
                b = b[()]
        elif of is float64 and kind in _NUMBERS:
            z = prim.on_scalars(a, b)
        elif of is WeakFloat and kind in _NUMBERS and type(prim.forward) is ufunc:
            z = on_numbers(prim.forward, a, b, 2)
        else:
            z = prim(a, b)
        return self._record_one(prim, 1, y.info, b, z, a, b)

    def _record_one(self, prim: Any, k: int, parent: int, operand: Any, z: Any, a: Any, b: Any) -> Any:
        """Record a binary operation of which only operand `k` is traced."""
        partial = prim.partials[k]
        if partial is None:
            return flat_result(prim, z, (a, b)) if prim.flat else z
        constant = a if k else b
        if prim.choice is not None and _is_fraction_and_number(operand, constant):
            return self._record_choice(prim, parent, operand, constant, z)
        keep_z, keep_a, keep_b = prim.keep[k]
        if type(constant) is np.ndarray and (keep_a if k else keep_b):
            if k:
                a = self.take(constant)
            else:
                b = self.take(constant)
        tape = self.tape
        out = Tracer()
        out.wrapped = z
        out.owner = self
        out.info = len(tape)
        out.memory = None
        kind = type(constant)
        dtype = z.dtype
        if operand.dtype is dtype and (
            kind is float or kind is int or (getattr(constant, "dtype", None) is dtype and operand.shape == z.shape)
        ):
            to = None
        else:
            to = (operand.shape, operand.dtype)
            if as_flat(z).dtype.kind not in "fc":
                raise UnsupportedInputError(f"{prim.name} of a traced value gave an array of dtype {z.dtype}")
        tape.append((
            ONE_OF_TWO, parent, partial, z if keep_z else None, a if keep_a else None, b if keep_b else None, to
        ))  # fmt: skip
        return out

    def _record_choice(self, prim: Any, parent: int, x: Any, number: float, z: Any) -> Any:
        """Record a choice between a traced operand and a number: booleans say how, and neither x nor z is kept."""
        live, ties = np.logical_not(prim.choice(x, number)), np.equal(x, number)
        self.tape.append((ONE_OF_TWO, parent, share_at_ties, live, ties, z.dtype.type(0.5), None))
        return tracer(z, self, len(self.tape) - 1)

    def product(self, prim: Any, a: Any, b: Any, i: int, j: int) -> Any:
        """Run an operation of two operands that has VJPs instead of partials: matmul. A constant's position is -1."""
        z = prim.forward(a, b) if type(a) is ndarray and type(b) is ndarray else prim(a, b)
        if i < 0 and type(a) is np.ndarray:
            a = self.take(as_flat(a))
        elif j < 0 and type(b) is np.ndarray:
            b = self.take(as_flat(b))
        tape = self.tape
        out = Tracer()
        out.wrapped = z
        out.owner = self
        out.info = len(tape)
        out.memory = None
        tape.append((PRODUCT, i, j, prim.vjp, a, b))
        return out

    def _one_side(self, prim: Any, x: Tracer, y: Tracer, a: Any, b: Any, z: Any) -> Any:
        """Record an operation of two traced operands with no derivative in one of them, or in both."""
        if prim.flat:
            return flat_result(prim, z, (a, b))
        return (
            self._record_one(prim, 0, x.info, a, z, a, b)
            if prim.partials[0]
            else self._record_one(prim, 1, y.info, b, z, a, b)
        )

    def index(self, prim: Any, x: Tracer, index: tuple) -> Any:
        v = x.wrapped
        y = v[index]
        if type(v) is Tracer:
            out = self.record(prim, [x.info], [v], forget_source(y), {"template": index})
            if type(out) is Tracer:
                link(x, out, prim, {"template": index})
            return out
        tape = self.tape
        out = Tracer()
        out.wrapped = y
        out.owner = self
        out.info = len(tape)
        # What stands for an array without axes may be a number.
        view = (type(y) is np.ndarray or may_be_view(y)) and (type(v) in ARRAYS or is_array(x))
        out.memory = (x, prim, {"template": index}, 0) if view else None
        tape.append((INDEX, x.info, prim, index, v.shape, v.dtype))
        return out

    # --- everything else ------------------------------------------------------------------------------------------

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if prim.differentiated is not None:
            return prim.differentiated(*args, **params)
        values, parents = [], []
        plain = True
        for x in args:
            if type(x) is Tracer and x.owner is self:
                v = x.wrapped
                values.append(v)
                parents.append(x.info)
            elif type(x) is ndarray:
                values.append(x)
                parents.append(-1)
                continue
            else:
                v = as_operand(x, args)
                if v is NotImplemented:
                    return v
                values.append(v)
                parents.append(-1)
            if type(v) is not ndarray:
                plain = False
        y = prim.forward(*values, **params) if plain else bind(prim, *values, **params)
        if prim.flat:
            return flat_result(prim, y, values)
        if prim.view is not None and not plain:
            forget_source(y)
        return self.record(prim, parents, values, y, params)

    def record(self, prim: Any, parents: list, values: list, y: Any, params: dict) -> Any:
        tape = self.tape
        position = len(tape)
        if prim.multi:
            ys = tuple(y)
            tape.append((MULTI, parents, prim, ys, tuple(self.keep(values, parents)), params))
            tape.extend([None] * (len(ys) - 1))
            return tuple(tracer(v, self, position + i) if v.dtype.kind in "fc" else v for i, v in enumerate(ys))
        if y.dtype.kind not in "fc":
            return as_flat(y)
        kind = GENERAL
        if prim.swept is not None:
            kind = EFFECT
            if (earlier := effect_place(self, position)) != position:
                return tracer(y, self, earlier)
        kept = y if kind == EFFECT or prim.saves == "all" else None
        if prim.saves == "none":
            specs = (spec_of(values[0]),) if len(values) == 1 else tuple(map(spec_of, values))
            tape.append((kind, parents, prim, kept, specs, params))
        elif prim.saves == "indices":
            n = prim.indexed
            taken = self.keep(values[n:], parents[n:])
            tape.append((kind, parents, prim, kept, (*map(spec_of, values[:n]), *taken), params))
        else:
            tape.append((kind, parents, prim, kept, tuple(self.keep(values, parents)), params))
        return tracer(y, self, position)

    def take(self, x: np.ndarray) -> np.ndarray:
        """Return what a plain array holds now as an array that nobody writes into."""
        if self.watch is None:
            self.watch = Watch()
        return self.watch.take(x)

    def keep(self, values: list, parents: list) -> list:
        """Return operands as saved for the backward pass: copies of those that the user could still overwrite."""
        take = self.take
        return [
            take(x) if parent < 0 and type(x) is np.ndarray else x for x, parent in zip(values, parents, strict=True)
        ]

    def call(self, parents: list, outs: list, pullback: Callable) -> list:
        """Record a call with a pullback of its own; `outs` are its results, as plain values."""
        position = len(self.tape)
        self.tape.append((CALL, parents, pullback, len(outs)))
        self.tape.extend([None] * (len(outs) - 1))
        return [tracer(y, self, position + i) if type(y) is float64 or is_inexact(y) else y for i, y in enumerate(outs)]

    def rerun(self, run: Callable, values: list, care: int) -> list:
        """Record a checkpoint: `values` are its results, and ``run()`` gives them as tracers once more.

        `care` says where a sweep of it is careful, for a slope may be infinite.
        """
        position = len(self.tape)
        self.tape.append((RERUN, self, run, len(values), care))
        self.tape.extend([None] * (len(values) - 1))
        return [tracer(y, self, position + i) for i, y in enumerate(values)]


def forget_source(y: Any) -> Any:
    """Let a view that a trace below has made keep no array: writes here are this trace's own, and its tape keeps y."""
    return _forget_sources(y) if type(y) is Tracer and y.shape else y


def _forget_sources(y: Any) -> Any:
    """Do the same for what stands behind a view, and for its tangents, which are views as well."""
    if type(y) is Masked:
        y.value = _forget_sources(y.value)
    elif type(y) is Tracer and y.owner.recorded and find_layers(y) is not None:
        copy = map_arrays(own_small_part, y)
        if all(a is not b for a, b in zip(arrays_of(copy), arrays_of(y), strict=True)):
            y.memory, y.wrapped = None, copy.wrapped  # others are views: what was written may be put back elsewhere
    elif type(y) is Tracer:
        y.memory, y.wrapped, y.info = None, _forget_sources(y.wrapped), _forget_sources(y.info)
    return own_small_part(y)
