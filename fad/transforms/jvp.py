"""Forward mode: push a tangent through the program beside each value.

A tracer's `info` is its tangent. A tangent that is zero does not exist: a value without one is simply no tracer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float64, ndarray

from fad import tree
from fad.backends import is_numpy_scalar
from fad.core.handles.buffers import flat_result
from fad.core.primitives.archetypes import STEEP, one, spread
from fad.core.primitives.cotangent import Masked, densify, is_basic, ones_where_live
from fad.core.primitives.limits import take_derivative, take_limit
from fad.core.runs.transformed import as_run
from fad.core.tracing.layers import fresh_layers
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer
from fad.core.tracing.views import (
    RUNS,
    Memory,
    copy_layout,
    follow,
    fresh,
    is_writeable,
    own_memory,
    refresh,
    running_rules,
    version_of,
)
from fad.ops.places.indexing import join_index
from fad.transforms.arguments.check import (
    as_flat,
    as_operand,
    check_like,
    flatten_like,
    flatten_primals,
    is_inexact,
    kind_of_traced,
    run,
    separate,
    separate_aux,
    stands_for_array,
    zeros_like,
)
from fad.transforms.push_tangents import BEGINS_STEEP, push_tangents, push_with_care
from fad.transforms.reverse.layered_writes import overwrite_layers
from fad.transforms.reverse.slopes import FACTORS, select_by_constant
from fad.typing import PyTree

_CONSTANTS = frozenset({float, int, float64, ndarray})  # operands that need no look at what they are


class JVPTrace(Trace):
    """The trace of forward mode.

    `steep` says that a slope may have been infinite: from then on tangents that meet a constant zero are looked at,
    for 0 * inf, of which nothing is used, would be NaN.
    """

    __slots__ = ("writes", "steep")
    kind = "a forward-mode transform (jvp)"
    parts = ("wrapped", "info")

    def __init__(self) -> None:
        super().__init__()
        self.writes = False
        self.steep = BEGINS_STEEP.get()

    def note_writes(self) -> None:
        self.writes = True

    # --- the hot path: elementwise operations of one and two operands -------------------------------------------

    def unary(self, prim: Any, x: Tracer) -> Any:
        t = x.info
        if type(t) is Masked or self._is_slow(prim) or (self.writes and self._may_share(prim, 0, x)):
            return bind(prim, x)
        v = x.wrapped
        y = prim.forward(v) if type(v) is ndarray or type(v) is float64 else prim(v)
        partial = prim.partials[0]
        return self._push(y, t if partial is one else self._times(t, partial, y, v))

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        t, u = x.info, y.info
        if type(t) is Masked or type(u) is Masked or self._is_slow(prim):
            return bind(prim, x, y)
        if self.writes and (type(x.memory) is tuple or type(y.memory) is tuple):
            return bind(prim, x, y)
        px, py = prim.partials
        a, b = x.wrapped, y.wrapped
        z = prim.forward(a, b) if type(a) is ndarray and type(b) is ndarray else prim(a, b)
        if px is None or py is None:
            return self._attach(z, prim.jvp([t, u], z, [a, b], {}))
        t = t if px is one else self._times(t, px, z, a, b)
        u = u if py is one else self._times(u, py, z, a, b)
        return self._push(z, t + u)

    def left(self, prim: Any, x: Tracer, b: Any) -> Any:
        if type(b) not in _CONSTANTS or type(x.info) is Masked or self._is_slow(prim):
            return super().left(prim, x, b)
        if self.writes and self._may_share(prim, 0, x):
            return super().left(prim, x, b)
        a = x.wrapped
        z = prim.forward(a, b) if type(a) is ndarray else prim(a, b)
        partial = prim.partials[0]
        if partial is None:
            return z
        t = x.info if partial is one else self._times(x.info, partial, z, a, b)
        return self._push(z, self._select(t, partial, b) if self.steep else t)

    def right(self, prim: Any, a: Any, y: Tracer) -> Any:
        if type(a) not in _CONSTANTS or type(y.info) is Masked or self._is_slow(prim):
            return super().right(prim, a, y)
        if self.writes and self._may_share(prim, 1, y):
            return super().right(prim, a, y)
        b = y.wrapped
        z = prim.forward(a, b) if type(b) is ndarray else prim(a, b)
        partial = prim.partials[1]
        if partial is None:
            return z
        t = y.info if partial is one else self._times(y.info, partial, z, a, b)
        return self._push(z, self._select(t, partial, a) if self.steep else t)

    def _times(self, t: Any, partial: Callable, *saved: Any) -> Any:
        """Return a tangent times a partial derivative."""
        if partial in STEEP:
            self.steep = True
        if not RUNS.buffers:
            return t * partial(*saved)
        with running_rules():
            return t * partial(*saved)

    def _select(self, t: Any, partial: Callable, constant: Any) -> Any:
        """Return a tangent times a partial derivative, dropped where that is zero for a constant."""
        if partial not in FACTORS or (type(constant) is float and constant):
            return t
        with running_rules():
            return select_by_constant(t, constant)

    def _is_slow(self, prim: Any) -> bool:
        """Return whether an operation takes `process`: it has a rule apart, or gives a view."""
        return self.dead or prim.partials is None or prim.flat or prim.view is not None

    def _may_share(self, prim: Any, k: int, x: Tracer) -> bool:
        """Return whether operand k is a view, to be taken again, or hands on its tangent, which may be overwritten."""
        return type(x.memory) is tuple or prim.partials[k] is one

    def _push(self, y: Any, t: Any) -> Any:
        """Return a result as a tracer with its tangent, which broadcasting may not have reached yet."""
        if type(t) is Masked or t.dtype is not y.dtype or t.shape != y.shape:
            if y.dtype.kind not in "fc":
                return as_flat(y)
            t = spread(t, y)
            if self.writes and type(t) is Masked and type(t.value) is ndarray:
                t.value = t.value.copy()  # a choice hands on the operand's tangent
        out = Tracer()
        out.wrapped = y
        out.owner = self
        out.info = t
        out.memory = None
        return out

    def index(self, prim: Any, x: Tracer, index: tuple) -> Any:
        if type(x.wrapped) is not np.ndarray or type(x.info) is not np.ndarray or self.dead:
            return bind(prim, x, template=index)
        y = x.wrapped[index]
        out = tracer(y, self, x.info[index])
        if type(y) is np.ndarray:
            out.memory = x, prim, {"template": index}, version_of(x)
        return out

    def store(self, x: Tracer, index: tuple, v: Any) -> bool:
        memory = x.memory
        template: tuple = (Ellipsis,)
        root = x
        if type(memory) is tuple:
            root, _, params, _ = memory
            memory, template = root.memory, params.get("template")
        if type(memory) is not Memory or template is None or not memory.private or RUNS.depth != 1 or self.dead:
            return False
        if type(root.info) is Masked:
            return False
        place, shadow = root.wrapped[template], root.info[template]
        tangent: Any = 0.0
        if type(v) is Tracer:
            if type(v.memory) is tuple:
                refresh(v)
            if v.owner is not self:
                return False
            v, tangent = v.wrapped, densify(v.info)
        if type(v) is not float and getattr(v, "dtype", None) is not place.dtype:
            return False
        if Tracer in (type(v), type(tangent)):
            return False
        place[index] = v
        shadow[index] = tangent
        memory.version += 1
        return True

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        """Write a value and its tangent into memory that only this trace knows."""
        mine = type(v) is Tracer and v.owner is self
        value, tangent = (v.wrapped, densify(v.info)) if mine else (v, 0.0)
        if RUNS.depth != 1:
            return overwrite_layers(self, root, path, template, v, arrays)
        if root.owner is not self:
            return False
        live = root.info.live if type(root.info) is Masked else None
        root.info = densify(root.info)
        kinds = [type(x) for x in (root.wrapped, root.info, value, tangent)]
        if Tracer in kinds or kinds[:2] != [np.ndarray, np.ndarray]:
            return False
        memory = own_memory(root, _copy)
        place, shadow = follow(root.wrapped, path), follow(root.info, path)
        if place is None or shadow is None:
            return False
        index = join_index(template, arrays)
        place[index] = value
        shadow[index] = tangent
        memory.version += 1
        if live is not None or not (mine or is_basic(index)):  # constants over what was not chosen
            live = np.array(np.broadcast_to(True if live is None else live, root.wrapped.shape))
            part = follow(live, path)
            if part is not None:
                part[index] = mine
                root.info = Masked(root.info, live, clean=True)
        return True

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        if prim.differentiated is not None:
            return prim.differentiated(*args, **params)
        values, tangents = [], []
        for x in args:
            if type(x) is Tracer and x.owner is self:
                values.append(x.wrapped)
                tangents.append(x.info)
            else:
                x = as_operand(x, args)
                if x is NotImplemented:
                    return x
                values.append(x)
                tangents.append(None)
        y = bind(prim, *values, **params)
        if prim.flat:
            return flat_result(prim, y, values)
        if prim.partials is not None and prim.partials[0] in STEEP:
            self.steep = True
        push = push_with_care if self.steep else push_tangents
        if RUNS.buffers:
            with running_rules():
                found = push(prim, tangents, y, values, params)
        else:
            found = push(prim, tangents, y, values, params)
        if prim.multi:
            return tuple(self._attach(v, t) for v, t in zip(y, found, strict=True))
        if self.writes and prim.view is None:
            y, found = _fresh(y, values), _fresh_tangent(found, tangents)
        return self._attach(y, found)

    def _attach(self, y: Any, t: Any) -> Any:
        if t is None or not is_inexact(y):
            return as_flat(y)
        return tracer(y, self, t)


def _fresh_tangent(t: Any, operands: list) -> Any:
    """Return a result's tangent in memory of its own: operations hand on what may be overwritten, masks or not."""
    given = [x.value if type(x) is Masked else x for x in operands]
    if type(t) is not Masked:
        return _fresh(t, given)
    return t.with_value(_fresh(t.value, given))


def _fresh(y: Any, operands: list) -> Any:
    return fresh_layers(y, operands) if type(y) is Tracer else fresh(y, operands)


def _copy(root: Tracer) -> None:
    root.wrapped = copy_layout(root.wrapped)
    shadow = copy_layout(root.wrapped)
    shadow[...] = root.info
    root.info = shadow


def jvp(fun: Callable, primals: PyTree, tangents: PyTree, has_aux: bool = False) -> tuple:
    """Evaluate a function together with its derivative along a direction.

    Parameters
    ----------
    fun : callable
        Function of the primals.
    primals, tangents : tuple or list
        The point, and the direction at it: one entry per argument, of equal structure, shapes and dtypes.
    has_aux : bool
        If true, `fun` returns ``(output, aux)``.

    Returns
    -------
    (out, tangent_out) or (out, tangent_out, aux)

    Raises
    ------
    TreeMismatchError, ShapeMismatchError, DtypeMismatchError
        if tangents do not fit the primals.

    Examples
    --------
    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (np.float64(9.0), np.float64(6.0))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp takes primals and tangents as tuples: jvp(f, (x,), (dx,))")
    xs, in_tree = flatten_primals(tuple(primals), "a primal of jvp")
    ts = check_like(flatten_like(tuple(tangents), in_tree, "the tangents of jvp"), xs, "a tangent of jvp")
    trace = JVPTrace()

    def call() -> Any:
        return as_run(fun)(*tree.unflatten(in_tree, [tracer(x, trace, t) for x, t in zip(xs, ts, strict=True)]))

    ys, out_tree, aux = run(fun, trace, call, has_aux)
    values, found = [], []
    for y in ys:
        if type(y) is Tracer and y.owner is trace:
            values.append(trace.hand_out(take_limit(y.wrapped, derivative=False)))
            found.append(_like(values[-1], take_derivative(densify(y.info))))
        else:
            values.append(take_limit(y, derivative=False))
            found.append(zeros_like(values[-1]))
    given = [*xs, *ts]
    own = separate([*values, *found], given)
    out, tangent_out = (tree.unflatten(out_tree, leaves) for leaves in (own[: len(values)], own[len(values) :]))
    return (out, tangent_out, separate_aux(aux, given)) if has_aux else (out, tangent_out)


def jvp_masked(fun: Callable, primals: list, pushed: Any) -> tuple[list, list, list]:
    """Return values, tangents and marks of a flat function, given tangents and then marks of them.

    A mark is a number for each element of a tangent, which is zero where that is zero by selection.
    """
    trace, n = JVPTrace(), len(primals)
    xs = [
        tracer(x, trace, Masked(t, np.not_equal(mark, 0), clean=True))
        for x, t, mark in zip(primals, pushed[:n], pushed[n:], strict=True)
    ]
    ys, _, _ = run(fun, trace, lambda: as_run(fun)(*xs), False)
    mine = [type(y) is Tracer and y.owner is trace for y in ys]
    values = [trace.hand_out(y.wrapped) if own else y for y, own in zip(ys, mine, strict=True)]
    rows = list(zip(ys, values, mine, strict=True))
    tangents = [_like(v, densify(y.info)) if own else zeros_like(v) for y, v, own in rows]
    marks = [_like(v, ones_where_live(y.info)) if own else zeros_like(v) for y, v, own in rows]
    return values, tangents, marks


def _like(y: Any, t: Any) -> Any:
    """Return a tangent of the kind of its value: an array for an array, writable and its own."""
    if type(t) is Tracer:
        return kind_of_traced(t, y)
    if type(t) is np.ndarray:
        if not t.ndim and not stands_for_array(y):
            return t[()]
        return t if is_writeable(t) else t.copy()
    return np.asarray(t) if is_numpy_scalar(t) and stands_for_array(y) else t
