"""Recording operations on tensors, and the backward pass over the records. The rules are those of the operations.

A pass keeps the records that have a cotangent in a heap by birth, youngest first. Values are plain arrays; for a
graph of the gradient (``create_graph``) they are lifted to tracers of the eager trace, so that the rules, run on them,
are recorded in their turn. The eager trace is older than any transform's: a tensor that enters ``fad.grad`` becomes its
tracer, and what comes out is recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import fit, one, scale
from fad.core.primitives.cotangent import Indexed, Masked, densify
from fad.core.tracing.spec import ShapeDtypeStruct, spec_of
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer
from fad.eager.core.mode import is_recording
from fad.eager.core.records import (
    BIRTH,
    BOTH,
    CALL,
    GENERAL,
    HOOKS,
    KIND,
    LEAF,
    MULTI,
    ONE,
    OUT,
    UNARY,
    _changed,
    births,
    check_unchanged,
    find_saved_in,
    label,
    line,
    name,
    parents,
    user_frame,
)  # fmt: skip
from fad.eager.errors import BackwardError
from fad.errors import FadError
from fad.ops.products.contraction import matmul
from fad.transforms import tape_hooks
from fad.transforms.arguments.check import split_operands
from fad.transforms.reverse.accumulate import accumulate
from fad.transforms.reverse.operand_cotangents import operand_cotangents


class MixedLevelsError(FadError, TypeError):
    """A tensor made inside a transform, requiring grad, met one made outside that requires grad as well.

    Wrong::

        w = torch.ones(3, requires_grad=True)
        fad.grad(lambda x: inner_backward(torch.tensor(x, requires_grad=True) * w))(x)

    Right: pass ``w`` as an argument of the transformed function, or ``w.detach()``.
    """


class EagerTrace(Trace):
    """Operations on tracers of this trace are recorded as operations on tensors are; `info` is the record."""

    __slots__ = ()
    kind = "the eager tape"

    def __init__(self, birth: float | None = None) -> None:
        super().__init__()
        if birth is not None:
            self.birth = birth

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        operands = split_operands(self, args)
        if operands is None:
            return NotImplemented
        values, tracers = operands
        nodes = [t if t is None else t.info for t in tracers]
        y, rec = apply(prim, values, nodes, params)
        if type(rec) is tuple:
            return tuple(v if r is None else tracer(v, self, r) for v, r in zip(y, rec, strict=True))
        return y if rec is None else tracer(y, self, rec)

    def finish(self) -> None:
        raise TypeError("the eager tape has no end")


# Older than any transform's and than limits at repeated eigenvalues (0), younger than recordings (-1, -2, ...).
EAGER = EagerTrace(birth=-0.5)


def lift(value: Any, rec: Any, trace: EagerTrace = EAGER) -> Any:
    """Return a value with its record as something that transforms understand."""
    return value if rec is None or value is None else tracer(value, trace, rec)


# --- recording ----------------------------------------------------------------------------------------------------


def apply(prim: Any, values: list, nodes: list, params: dict) -> tuple:
    """Run an operation on values with their records; return the result and its record (tuples if it has several)."""
    if prim.flat or not is_recording() or not any(n is not None for n in nodes):
        y = bind(prim, *values, **params)
        return (tuple(y), (None,) * len(y)) if prim.multi else (y, None)
    if any(type(v) is Tracer for v in values):
        if not _outside(values, nodes):
            y = bind(prim, *map(lift, values, nodes), **params)
            return (tuple(y), (None,) * len(y)) if prim.multi else (y, None)
        y = bind(prim, *values, **params)
    else:
        y = prim.forward(*values, **params)
    return _record(prim, values, nodes, params, y)


def _outside(values: list, nodes: list) -> bool:
    """Return whether the records belong around tracers of a transform, or inside, as the values of tracers."""
    around = any(n is not None and type(v) is Tracer for v, n in zip(values, nodes, strict=True))
    inside = any(n is not None and type(v) is not Tracer for v, n in zip(values, nodes, strict=True))
    if around and inside:
        raise MixedLevelsError(
            "inside a transform, a tensor that was made there and requires grad met one from outside that does so too. "
            "Pass the outer one as an argument of the transformed function, or use its detach()"
        )
    return around


def _record(prim: Any, values: list, nodes: list, params: dict, y: Any) -> tuple:
    frame = user_frame(3)
    head = [None, prim, frame.f_code, frame.f_lasti]
    if prim.partials is not None and len(values) == 1:
        kept_y, kept_x = prim.keep[0]
        saved = (y if kept_y else None, values[0] if kept_x else None)
        return y, [UNARY, next(births), *head, nodes[0], prim.partials[0], *saved]
    if prim.multi:
        ys = tuple(y)
        rec = [MULTI, next(births), *head, nodes, ys, tuple(values), params]
        return ys, tuple(output(rec, i) if v.dtype.kind in "fc" else None for i, v in enumerate(ys))
    if y.dtype.kind not in "fc":
        return y, None
    if prim is matmul:
        ranks = (values[0].ndim, values[1].ndim)
        return y, [GENERAL, next(births), *head, nodes, None, tuple(values), _Ranks(ranks=ranks)]
    if prim.saves == "indices":
        values = [*map(spec_of, values[: prim.indexed]), *values[prim.indexed :]]
        return y, [GENERAL, next(births), *head, nodes, None, tuple(values), params]
    if prim.saves == "none":
        return y, [GENERAL, next(births), *head, nodes, None, tuple([spec_of(v) for v in values]), params]
    if prim.archetype == "elementwise" and len(prim.keep) > len(values):
        return y, [GENERAL, next(births), *head, nodes, *_read_by_rules(prim, nodes, y, values), params]
    return y, [GENERAL, next(births), *head, nodes, y if prim.saves == "all" else None, tuple(values), params]


def _read_by_rules(prim: Any, nodes: list, y: Any, values: list) -> tuple:
    """Return the result and the operands of an elementwise operation as far as the partial derivatives read them.

    Of what they do not read only the shape is kept, so that it may be changed in place.
    """
    reads = [prim.keep[k] for k, n in enumerate(nodes) if n is not None]
    kept_y, *kept = map(any, zip(*reads, strict=True))
    pairs = zip(values, kept, strict=True)
    return y if kept_y else None, tuple([v if k or type(v) is not np.ndarray else spec_of(v) for v, k in pairs])


class _Ranks(dict):
    """Notes for a record's name that are no parameters of the operation."""


def output(rec: list, i: int) -> list:
    """Return the record of result `i` of an operation with several."""
    return [OUT, next(births), *rec[2:6], rec, i]


class Pullback:
    """The backward half of a CALL record: ``plain`` on arrays, ``traced`` for a graph of the gradient."""

    __slots__ = ("plain", "traced", "saved", "count")

    def __init__(self, plain: Callable | None, traced: Callable | None, saved: tuple = (), count: int = 1):
        self.plain = plain
        self.traced = traced
        self.saved = saved
        self.count = count  # of results


def call_record(name: str, nodes: list, pullback: Pullback, several: bool) -> list:
    frame = user_frame(3)
    return [MULTI if several else CALL, next(births), None, name, frame.f_code, frame.f_lasti, nodes, pullback]


# --- the backward pass -------------------------------------------------------------------------------------------


class Sweep:
    """One backward pass. ``found`` holds the cotangents of the records requested, by birth."""

    def __init__(self, keep: bool, wanted: Any = None):
        self.keep = keep
        self.wanted = wanted  # births, or None to add into the leaves
        self.oldest = min(wanted) if wanted else 0
        self.found: dict[int, Any] = {}
        self.heap: list[int] = []
        self.cts: dict[int, Any] = {}
        self.recs: dict[int, list] = {}
        self.own: dict[int, int] = defaultdict(int)
        self.leaves: list[tuple] = []

    def seed(self, rec: list, ct: Any) -> None:
        b = rec[BIRTH]
        if self.cts.get(b) is not None:
            accumulate(self.cts, self.own, b, ct)
        else:
            self.cts[b] = ct
            self.recs[b] = rec
            heappush(self.heap, -b)

    def run(self) -> None:
        """Go through the records from the youngest on; values are plain arrays."""
        if tape_hooks.current.get() is not None:
            return self.run_traced(None)
        heap, cts, recs, own, keep, wanted = self.heap, self.cts, self.recs, self.own, self.keep, self.wanted
        ndarray = np.ndarray
        b = -heappop(heap)
        g, rec = cts.pop(b), recs.pop(b)
        while True:
            kind = rec[KIND]
            if rec[HOOKS] is not None and (wanted is None or self._is_on_the_way(rec)):
                g = run_hooks(rec, densify(g))
            if wanted is not None:
                if b in wanted:
                    self.found[b] = densify(g)
                if b <= self.oldest:
                    return None
            if _changed and kind > LEAF:
                check_unchanged(rec)
            if type(g) is Indexed:
                g = g.gather()
            p = None
            if kind == BOTH:
                _, _, _, _, _, _, p, q, px, py, z, x, y, to_x, to_y = rec
                if type(g) is Masked:
                    c = g if px is one else g.times(px, (z, x, y))
                    d = g if py is one else g.times(py, (z, x, y))
                else:
                    c = g if px is one else g * px(z, x, y)
                    d = g if py is one else g * py(z, x, y)
                if not keep and (z is not None or x is not None or y is not None):
                    rec[KIND] = -BOTH
                    rec[10] = rec[11] = rec[12] = None
                if to_y is not None:
                    d = fit(d, *to_y)
                if to_x is not None:
                    c = fit(c, *to_x)
                self.seed(q, d)
            elif kind == UNARY:
                _, _, _, _, _, _, p, partial, z, x = rec
                c = g * partial(z, x) if type(g) is not Masked else g.times(partial, (z, x))
                if not keep and (z is not None or x is not None):
                    rec[KIND] = -UNARY
                    rec[8] = rec[9] = None
            elif kind == ONE:
                _, _, _, _, _, _, p, partial, z, x, y, to, _ = rec
                if type(g) is Masked:
                    c = g if partial is one else g.times(partial, (z, x, y))
                else:
                    c = g if partial is one else g * partial(z, x, y)
                if to is not None:
                    c = fit(c, *to)
                if not keep and (z is not None or _is_array(x) or _is_array(y)):
                    rec[KIND] = -ONE
                    rec[8] = rec[9] = rec[10] = None
            elif kind == LEAF:
                self.leaves.append((rec, g))
            else:
                for parent, c in self.pull(rec, g, None):
                    self.seed(parent, c)
            if p is not None:
                j = p[BIRTH]
                old = cts.get(j)
                if old is None:
                    if not heap or j > -heap[0]:  # the youngest of all that wait: its turn is now
                        b, g, rec = j, c, p
                        continue
                    cts[j] = c
                    recs[j] = p
                    heappush(heap, -j)
                elif type(old) is ndarray and type(c) is ndarray and j not in own:
                    cts[j] = old + c
                    own[j] = 1
                else:
                    accumulate(cts, own, j, c)
            if not heap:
                return None
            b = -heappop(heap)
            g, rec = cts.pop(b), recs.pop(b)

    def run_traced(self, lifted: Callable | None) -> None:
        """The same, one rule at a time on lifted values: for a graph of the gradient, or while someone watches."""
        watcher = tape_hooks.current.get()
        while self.heap:
            b = -heappop(self.heap)
            g, rec = self.cts.pop(b), self.recs.pop(b)
            if rec[HOOKS] is not None and (self.wanted is None or self._is_on_the_way(rec)):
                g = run_hooks(rec, densify(g))
            if self.wanted is not None:
                if b in self.wanted:
                    self.found[b] = densify(g)
                if b <= self.oldest:
                    break
            if rec[KIND] == LEAF:
                self.leaves.append((rec, densify(g)))
                continue
            if _changed and rec[KIND] > 0:
                check_unchanged(rec)
            pairs = self._watch(watcher, rec, g, lifted) if watcher is not None else self.pull(rec, g, lifted)
            for p, c in pairs:
                j = p[BIRTH]
                c = c.gather() if type(c) is Indexed else c
                if j in self.cts:
                    self.cts[j] = self.cts[j] + c
                else:
                    self.seed(p, c)

    def _is_on_the_way(self, rec: list) -> bool:
        """Return whether a record that is wanted lies behind one, so that the hooks of that one run."""
        waiting, seen = [rec], set()
        while waiting:
            rec = waiting.pop()
            b = rec[BIRTH]
            if b in self.wanted:
                return True
            if b > self.oldest and b not in seen:
                seen.add(b)
                waiting += [p for p in parents(rec) if p is not None]
        return False

    def _watch(self, watcher: tape_hooks.Watcher, rec: list, g: Any, lifted: Callable | None) -> list:
        """Run one rule under the eyes of a watcher."""
        found: list = []

        def run():
            found.extend(self.pull(rec, g, lifted))
            return [densify(c) for _, c in found]

        if rec[KIND] == OUT:
            run()
        else:
            cts = [c for c in (g if type(g) is list else [g]) if c is not None]
            saved = [x for x in find_saved_in(rec) if hasattr(x, "dtype")]
            shape = getattr(tape_hooks.plain(cts[0]), "shape", ()) if cts else ()
            watcher.backward(tape_hooks.Note(label(rec), line(rec), shape, saved), cts, run)
        return found

    def pull(self, rec: list, g: Any, lifted: Callable | None) -> list:
        """Apply one record's rule: return (parent, cotangent) for every parent that takes part."""
        kind = rec[KIND]
        if kind == OUT:
            return self._gather(rec, densify(g))
        if kind < 0:
            raise BackwardError(
                f"a second backward pass over a graph whose values were freed by the first, at {name(rec)} made at "
                f"{line(rec)}. Write y.backward(retain_graph=True) in the first pass, or compute y again"
            )
        if kind in (CALL, MULTI) and len(rec) == 8:
            found = self._call(rec, g, lifted)
        elif kind in (GENERAL, MULTI):
            found = self._general(rec, g, lifted)
        else:
            found = _elementwise(rec, g, lifted)
        if not self.keep:
            _free(rec)
        return [(p, c) for p, c in zip(parents(rec), found, strict=True) if p is not None and c is not None]

    def _gather(self, rec: list, g: Any) -> list:
        """Hand the cotangent of one of several results to their common record."""
        whole, i = rec[6], rec[7]
        b = whole[BIRTH]
        if b not in self.cts:
            n = len(whole[7]) if len(whole) == 10 else whole[7].count
            self.cts[b], self.recs[b] = [None] * n, whole
            heappush(self.heap, -b)
        slots = self.cts[b]
        slots[i] = g if slots[i] is None else slots[i] + g
        return []

    def _general(self, rec: list, g: Any, lifted: Callable | None) -> list:
        prim, nodes, y, xs, params = rec[3], rec[6], rec[7], rec[8], rec[9]
        flags = [-1 if n is None else 0 for n in nodes]
        if rec[KIND] == MULTI:
            g = tuple(np.zeros_like(v) if c is None else c for c, v in zip(g, y, strict=True))
            if lifted is not None:
                y = tuple(lifted(v, output(rec, i)) if v.dtype.kind in "fc" else v for i, v in enumerate(y))
        elif lifted is not None and y is not None:
            y = lifted(y, rec)
        if lifted is not None and prim.saves != "none":
            xs = tuple(x if type(x) is ShapeDtypeStruct else lifted(x, n) for x, n in zip(xs, nodes, strict=True))
        return operand_cotangents(prim, flags, g, y, xs, {} if type(params) is _Ranks else params)

    def _call(self, rec: list, g: Any, lifted: Callable | None) -> list:
        pullback = rec[7]
        g = densify(g)
        return pullback.plain(g, rec) if lifted is None else pullback.traced(g, rec, lifted)


def _is_array(x: Any) -> bool:
    return x is not None and type(x) is not float and type(x) is not int


def _free(rec: list) -> None:
    kind = rec[KIND]
    if kind in (GENERAL, MULTI) and len(rec) == 10:
        if rec[7] is not None or any(type(x) is not ShapeDtypeStruct for x in rec[8]):
            rec[KIND], rec[7], rec[8] = -kind, len(rec[7]) * (None,) if kind == MULTI else None, ()
    elif kind in (CALL, MULTI):
        if kind == CALL and not rec[7].saved:
            return
        rec[KIND], rec[7] = -kind, Pullback(None, None, (), rec[7].count)
    elif kind == UNARY:
        if rec[8] is not None or rec[9] is not None:
            rec[KIND] = -kind
            rec[8] = rec[9] = None
    else:
        a = 8 if kind == ONE else 10
        if any(_is_array(x) for x in rec[a : a + 3]):
            rec[KIND] = -kind
            rec[a] = rec[a + 1] = rec[a + 2] = None


def _elementwise(rec: list, g: Any, lifted: Callable | None) -> list:
    kind = rec[KIND]
    lifted = lifted or (lambda v, r: v)
    if kind == UNARY:
        return [_scale(g, rec[7], (lifted(rec[8], rec), lifted(rec[9], rec[6])), None)]
    if kind == ONE:
        p, partial, z, x, y, to, k = rec[6:]
        saved = (lifted(z, rec), x, lifted(y, p)) if k else (lifted(z, rec), lifted(x, p), y)
        return [_scale(g, partial, saved, to), None]
    p, q, px, py, z, x, y, to_x, to_y = rec[6:]
    saved = (lifted(z, rec), lifted(x, p), lifted(y, q))
    return [_scale(g, px, saved, to_x), _scale(g, py, saved, to_y)]


def _scale(g: Any, partial: Callable, saved: tuple, to: Any) -> Any:
    c = scale(g, partial, saved)
    return c if to is None else fit(c, *to)


def conjugate_gradient(g: Any) -> Any:
    """Turn a cotangent into a gradient as PyTorch has it, or back: its conjugate, so that x - lr x.grad goes down."""
    return np.conj(g) if g.dtype.kind == "c" else g


def run_hooks(rec: list, g: Any) -> Any:
    """Call the hooks of a record in order; what one returns takes the place of the gradient."""
    g = conjugate_gradient(g)
    hooks = rec[HOOKS]
    for key in sorted(hooks):  # in the order of their stages
        new = hooks[key](g)
        g = g if new is None else new
    return conjugate_gradient(g)
