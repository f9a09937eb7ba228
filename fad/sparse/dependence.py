"""Which outputs of a function can depend on which inputs: one run with sets of inputs beside the values.

Elementwise operations, reductions and products are known by their archetype and parameters; an operation that mixes all
elements along some axes states which (`Primitive.mixes`), and no other states anything.
What is known to move numbers (slices, reshapes, indexing, joins) moves the numbers of sets. What else may move some
(paddings, permutations, differences) is *recognised*: it is run on the numbers of its operand's elements, and once more
on numbers drawn at random, which must come out at the places that the first run said. Whatever is not recognised
depends on all of its operands, which is never wrong, only not sparse.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import host, like
from fad.core.primitives.cotangent import densify
from fad.core.runs.transformed import as_run
from fad.core.tracing.spec import spec_of
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, outcome, tracer, up_to_date
from fad.core.tracing.views import snapshot
from fad.errors import NotSparseError
from fad.ops.products.pooling import window_parts
from fad.sparse import sets as of
from fad.sparse.blocks import Blocks, number_blocks
from fad.transforms.arguments.check import as_value, run, split_operands, zeros_like
from fad.transforms.custom_rules import RULES, Call

TAPS = 1024  # elements of a kernel up to which a convolution is followed one by one
DEEP = 8  # operations one behind the other whose sets are left to be found later
MANY = 1 << 24  # products of two numbers that are looked at one by one, where one operand is constant
UNKNOWN: Any = object()  # what a rule answers where it cannot follow an operation


class DependenceTrace(Trace):
    """The trace of a search for dependences; a tracer's `info` is the sets of its elements."""

    __slots__ = ("inputs",)
    kind = "fad.sparse"

    def __init__(self, inputs: int):
        super().__init__()
        self.inputs = inputs

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        if prim.differentiated is not None:
            return prim.differentiated(*args, **params)
        operands = split_operands(self, args)
        if operands is None:
            return NotImplemented
        values, tracers = operands
        y = bind(prim, *values, **params)
        if prim.flat:
            return y
        sets = [t if t is None else t.info for t in tracers]
        if _only_shapes_matter(prim, y):
            return self.marked(y, _Later(prim, spec_of(y), list(map(spec_of, values)), sets, params))
        sets = list(map(_found, sets))
        if prim.multi:
            return tuple([self.marked(v, find_reached(prim, v, values, sets, params)) for v in y])
        return self.marked(y, find_reached(prim, y, values, sets, params))

    def marked(self, y: Any, sets: Any) -> Any:
        return tracer(as_value(y), self, sets) if sets is not None and spec_of(y).dtype.kind in "fc" else y


def _only_shapes_matter(prim: Any, y: Any) -> bool:
    """Return whether an operation is a reduction, or makes one number of others, as a function does at its end."""
    one_number = prim.partials is not None and not np.shape(y)
    return prim.dependence is None and (prim.archetype == "reduction" or one_number)


class _Later:
    """The sets of a result that are found when they are asked for: a gradient does not ask for its function's.

    Those of a long chain, as a sum in a loop is, are found on the way.
    """

    __slots__ = ("depth", "found", "operation")

    def __init__(self, prim: Any, y: Any, xs: list, sets: list, params: dict):
        self.operation: Any = prim, y, xs, sets, params
        self.found: Any = None
        self.depth: int = 1 + max([s.depth for s in sets if type(s) is _Later], default=0)
        if self.depth > DEEP:
            self.find()

    def find(self) -> Any:
        if self.operation is not None:
            prim, y, xs, sets, params = self.operation
            self.found, self.operation = find_reached(prim, y, xs, list(map(_found, sets)), params), None
            self.depth = 0
        return self.found


def _found(sets: Any) -> Any:
    return sets.find() if type(sets) is _Later else sets


def find_reached(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Return the sets of an operation's result; None if it depends on nothing."""
    if all(s is None for s in sets):
        return None
    try:
        return _find_reached(prim, y, xs, sets, params)
    except of.TooMany as why:
        raise NotSparseError(
            f"the derivative is not sparse: in {prim.name}, {why}. Use fad.jacobian or fad.hessian, or products "
            "with vectors: fad.jvp, fad.vjp, fad.hvp"
        ) from None


def _find_reached(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    if prim.mixes is not None:
        return _mixing(prim.mixes, y, xs, sets, params)
    rule = _RULES_BY_KIND.get(prim.dependence or prim.archetype)
    if rule is not None:
        found = rule(prim, y, xs, sets, params)
        if found is not UNKNOWN:
            return found
    return _all(y, sets)


def _all(y: Any, sets: list) -> Any:
    return of.union([s if s is None else of.everything(s, math.prod(y.shape)) for s in sets])


# --- by archetype -----------------------------------------------------------------------------------------------------


def _elementwise(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    partials = prim.partials or (True,) * len(xs)
    return of.union([
        of.spread(s, np.shape(x), y.shape) for x, s, p in zip(xs, sets, partials, strict=True) if s is not None and p
    ])  # fmt: skip


def _reduce(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    return of.over(sets[0], np.shape(xs[0]), params["axis"])


def _mixing(mixes: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Let results depend on all elements along the axes that an operation says it mixes."""
    parts = []
    for x, s in zip(xs, sets, strict=True):
        if s is not None:
            axes = params[mixes] if type(mixes) is str else tuple(range(-mixes, 0))
            axes = tuple(a % x.ndim for a in (axes if type(axes) is tuple else (axes,)))
            shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
            if type(mixes) is int:  # results may have more or fewer axes behind those of the stack
                rank = max(np.ndim(x) for x in xs) - mixes
                shape = shape[:-mixes] + (1,) * (len(y.shape) - rank)
            parts.append(of.spread(of.over(s, x.shape, axes), shape, y.shape))
    return of.union(parts)


def _moves(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Follow operands through an operation that is known to move numbers, by moving those of the sets."""
    count = prim.indexed or len(xs)
    index = [host(constant(a)) for a in xs[count:]]
    shapes = [np.shape(x) for x in xs[:count]]

    def move(*parts: Any) -> Any:
        return prim.forward(*parts, *index, **params)

    if all(s is None or type(s) is Blocks for s in sets):
        return next(s for s in sets if s is not None).move(move, sets[:count], shapes)
    parts = []
    for k, s in enumerate(sets):
        if s is not None:
            numbers = [of.numbers(shape, 1) if i == k else np.zeros(shape, np.int32) for i, shape in enumerate(shapes)]
            parts.append(of.gather(s, move(*numbers) - 1))
    return of.union(parts)


def _permute(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Follow elements to where an order along an axis puts them: the forward function finds one of its own."""
    order = host(constant(xs[1]))
    return of.gather(sets[0], np.take_along_axis(np.arange(order.size).reshape(order.shape), order, params["axis"]))


def _scatter(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Follow values that are added up at indices."""
    indices = [tuple([part if part is None else host(part) for part in index]) for index in params["indices"]]
    numbers = of.numbers(y.shape)
    places = [numbers[index] for index in indices]
    if any(p.shape != np.shape(x) for p, x in zip(places, xs, strict=True)):
        return _linear(prim, y, xs, sets, params)
    parts = [
        of.through(p.reshape(-1), np.arange(p.size), numbers.size, s)
        for p, s in zip(places, sets, strict=True) if s is not None
    ]  # fmt: skip
    return of.union(parts)


def _linear(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Follow each operand through an operation that moves numbers, or through the transpose of one that does."""
    fixed = prim.constants
    others = [constant(x) if i in fixed or spec_of(x).dtype.kind not in "fc" else _zeros(x) for i, x in enumerate(xs)]
    y, parts = _zeros(y), []
    for k, s in enumerate(sets):
        if s is None or k in fixed:
            continue
        places = _move(functools.partial(_alone, prim.forward, k, others, params), xs[k])
        if places is not None:
            parts.append(of.gather(s, places))
            continue
        places = _move(functools.partial(_pull, prim, k, y, others, params), y)
        if places is None:
            return UNKNOWN
        some = places.reshape(-1) >= 0
        parts.append(of.through(places.reshape(-1)[some], np.flatnonzero(some), math.prod(y.shape), s))
    return of.union(parts)


def constant(x: Any) -> Any:
    """Return the plain array behind an operand that another transform may be tracing, which tells where numbers go.

    That is no question to `jit`, for the search runs once: what guards the places is the check of their entries.
    """
    while type(x) is Tracer:
        x = up_to_date(x)
        x = outcome(x) if x.owner.batched else x.wrapped
    return x


def _zeros(x: Any) -> Any:
    """Return zeros like an operand, and of no transform."""
    spec = spec_of(x)
    return like(x, np.zeros(spec.shape, spec.dtype))


def _alone(forward: Callable, k: int, others: list, params: dict, x: Any) -> Any:
    return forward(*others[:k], x, *others[k + 1 :], **params)


def _pull(prim: Any, k: int, y: Any, xs: list, params: dict, ct: Any) -> Any:
    if prim.vjp_of_all is not None:
        return prim.vjp_of_all(ct, y, *xs, **params)[k]
    vjp = prim.vjp
    found = vjp(k, ct, y, *xs, **params) if callable(vjp) else vjp[k](ct, y, *xs, **params)
    return densify(found)


def _move(run: Callable, x: Any) -> Any:
    """Return the place in `x` of each number of ``run(x)``, -1 for zeros; None if it does more than move numbers."""
    shape, n = np.shape(x), math.prod(np.shape(x))
    found = np.asarray(host(run(like(x, np.arange(1.0, n + 1).reshape(shape)))))
    if found.dtype.kind != "f" or not ((found >= 0) & (found <= n) & (found == np.floor(found))).all():
        return None
    places = found.astype(np.intp) - 1
    draws = _draws(n)
    found = np.asarray(host(run(like(x, draws[1:].reshape(shape)))))
    return places if np.array_equal(draws[places + 1], found) else None


@functools.lru_cache(2)
def _draws(n: int) -> Any:
    """Return 0 and n numbers drawn at random, the same ones every time."""
    return np.concatenate([[0.0], np.random.default_rng(n).uniform(1.0, 2.0, n)])


# --- products ---------------------------------------------------------------------------------------------------------


def _product(labels: tuple, result: str, y: Any, xs: list, sets: list) -> Any:
    """Follow the operands of an einsum of two operands."""
    return of.union([
        None if sets[k] is None else _factor(labels[k], labels[1 - k], result, y.shape, xs[k].shape, sets[k],
                                             xs[1 - k] if sets[1 - k] is None else None)
        for k in (0, 1)
    ])  # fmt: skip


def _factor(own: str, others: str, result: str, shape: tuple, own_shape: tuple, sets: Any, other: Any) -> Any:
    """Follow one factor of a product; where the other is constant, its zeros cut dependences."""
    size = math.prod(shape)
    other = other if other is None or type(other) is Tracer else np.asarray(host(other))
    if type(other) is np.ndarray and (places := _entries(own, others, own_shape, other)) is not None:
        rows = np.ravel_multi_index(np.broadcast_arrays(*[places[c] for c in result]), shape) if result else 0
        columns = np.ravel_multi_index(np.broadcast_arrays(*[places[c] for c in own]), own_shape) if own else 0
        rows, columns = np.broadcast_arrays(rows, columns)
        return of.through(rows.reshape(-1), columns.reshape(-1), size, sets)
    summed = tuple(i for i, c in enumerate(own) if c not in result)
    sets = of.over(sets, own_shape, summed) if summed else sets
    kept = [c for c in own if c in result]
    at = of.numbers(tuple(d for d, c in zip(own_shape, own, strict=True) if c in result))
    at = at.transpose([kept.index(c) for c in result if c in kept])
    at = at[tuple(slice(None) if c in kept else None for c in result)]
    return of.gather(sets, np.broadcast_to(at, shape))


def _entries(own: str, others: str, own_shape: tuple, other: Any) -> dict | None:
    """Return the indices of all products with an entry of `other` that is not zero, by label; None if they are many."""
    nonzero = np.nonzero(other) if other.ndim else (() if other else None)
    if nonzero is None or (count := np.count_nonzero(other)) == other.size:
        return None
    free = [(c, d) for c, d in zip(own, own_shape, strict=True) if c not in others]
    if count * math.prod([d for _, d in free]) > MANY:
        return None
    places = {c: i[(...,) + (None,) * len(free)] for c, i in zip(others, nonzero, strict=True)}
    for n, (c, d) in enumerate(free):
        places[c] = np.arange(d).reshape((1,) * (n + 1) + (d,) + (1,) * (len(free) - n - 1))
    return places


def _matmul(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    batch = np.broadcast_shapes(*[x.shape[:-2] for x in xs])
    lead = string.ascii_uppercase[: len(batch)]
    labels = ["k" if x.ndim == 1 else lead + own for x, own in zip(xs, ("ik", "kj"), strict=True)]
    result = lead + ("" if xs[0].ndim == 1 else "i") + ("" if xs[1].ndim == 1 else "j")
    wide = [x if x.ndim == 1 else np.broadcast_to(x, batch + x.shape[-2:]) for x in xs]
    sets = [s if s is None else of.spread(s, x.shape, w.shape) for s, x, w in zip(sets, xs, wide, strict=True)]
    return _product(tuple(labels), result, y, wide, sets)


def _contract(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    return _product((params["a"], params["b"]), params["result"], y, xs, sets)


def _affine(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    x, w, b = xs
    lead = string.ascii_uppercase[: x.ndim - 1]
    found = _product((lead + "i", "oi"), lead + "o", y, [x, w], sets[:2])
    return of.union([found, None if sets[2] is None else of.spread(sets[2], b.shape, y.shape)])


def _taps(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Follow a convolution: with one element of the other operand alone it moves numbers."""
    params = {**params, "method": "direct"} if "method" in params else params
    parts = []
    for k, s in enumerate(sets):
        if s is None:
            continue
        other = xs[1 - k]
        constant = sets[1 - k] is None and type(other) is not Tracer
        seen = np.flatnonzero(host(other)) if constant else np.arange(other.size)
        if len(seen) > TAPS:
            return UNKNOWN
        for j in seen:
            tap = like(other, (np.arange(other.size) == j).astype(float).reshape(other.shape))
            places = _move(functools.partial(_alone, prim.forward, k, [tap, tap], params), xs[k])
            if places is None:
                return UNKNOWN
            parts.append(of.gather(s, places))
    return of.union(parts)


def _windows(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    """Follow a sum or maximum over windows, one place of the window after the other."""
    padded, parts = window_parts(of.numbers(xs[0].shape), **params, value=-1)
    return of.union([of.gather(sets[0], padded[part]) for part in parts])


def _sparse_product(prim: Any, y: Any, xs: list, sets: list, params: dict) -> Any:
    data, x = xs
    pattern = params["pattern"].transpose() if params["transposed"] else params["pattern"]
    columns_of_x, parts = np.arange(x.shape[1]), []
    rows = (pattern.rows[:, None] * columns_of_x.size + columns_of_x).reshape(-1)
    if sets[0] is not None:
        parts.append(of.through(rows, np.repeat(np.arange(data.size), columns_of_x.size), math.prod(y.shape), sets[0]))
    if sets[1] is not None:
        columns = (pattern.columns[:, None] * columns_of_x.size + columns_of_x).reshape(-1)
        parts.append(of.through(rows, columns, math.prod(y.shape), sets[1]))
    return of.union(parts)


# By `Primitive.dependence`, or else by the archetype.
_RULES_BY_KIND: dict[str, Callable] = {
    "elementwise": _elementwise, "special": _elementwise, "reduction": _reduce, "linear": _linear, "bilinear": _taps,
    "moved": _moves, "permuted": _permute, "scattered": _scatter, "matmul": _matmul, "contraction": _contract,
    "affine": _affine, "windows": _windows, "sparse product": _sparse_product,
}  # fmt: skip

# --- functions with rules of their own --------------------------------------------------------------------------------


def _custom_rule(trace: DependenceTrace, call: Call, xs: tuple) -> list:
    """Follow the rule that a function was given, for its derivative is what that says; a library's depends on all."""
    trace.check_alive()
    values = [trace.lower(x) for x in xs]
    sets = [_found(x.info) if x is not v else None for x, v in zip(xs, values, strict=True)]
    if call.opaque:
        return [trace.marked(y, _all(y, sets)) for y in call.fun(*values)]
    if call.jvp is None:
        return _by_bwd(trace, call, values, sets)
    pairs = list(zip(values, sets, strict=True))
    ys, ts = call.jvp(values, [zeros_like(v) if s is None else tracer(np.ones_like(v), trace, s) for v, s in pairs])
    return [trace.marked(y, _sets_of(t, trace)) for y, t in zip(ys, ts, strict=True)]


def _by_bwd(trace: DependenceTrace, call: Call, values: list, sets: list) -> list:
    """Follow cotangents through a VJP: what an input's cotangent depends on, depends on the input."""
    ys, res = call.fwd(*values)
    back, cts = _number(ys, np.ones_like)
    found = [_sets_of(c, back) for c in call.bwd(res, cts)]
    back.finish()
    parts = []
    for s, reach in zip(sets, found, strict=True):
        if s is not None and reach is not None:
            elements, results = reach.nonzero()
            parts.append(of.through(results, elements, back.inputs, s))
    whole = of.union(parts)
    if whole is None:
        return ys
    whole = of.plain(whole)
    return [trace.marked(y, whole[a : a + y.size]) for y, a in zip(ys, _offsets(ys), strict=False)]


def _sets_of(x: Any, trace: DependenceTrace) -> Any:
    return _found(x.info) if type(x) is Tracer and x.owner is trace else None


RULES[DependenceTrace] = _custom_rule

# --- the search -------------------------------------------------------------------------------------------------------


def dependences(fun: Callable, args: tuple, gathered: int = 0) -> Any:
    """Return the matrix of booleans of what each element of a function's output can depend on.

    `args` holds plain arrays; the elements of all are numbered in the order of the tree, as are those of the output.
    The last arrays, so many, are `gathered`: the function is likely to work on them side by side.
    """
    xs, in_tree = tree.flatten(args)
    trace, tracers = _number(xs, lambda x: x, gathered)
    ys, _, _ = run(fun, trace, lambda: as_run(fun)(*tree.unflatten(in_tree, list(map(snapshot, tracers)))), False)
    parts = [_sets_of(y, trace) for y in ys]
    parts = [of.nothing(y.size, trace.inputs) if s is None else of.plain(s) for y, s in zip(ys, parts, strict=True)]
    if not parts:
        return of.nothing(0, trace.inputs)
    _draws.cache_clear()  # they may be as many as the arrays have elements
    found = of.stack(parts)
    found.sort_indices()
    return found


def _number(xs: list, value: Callable, gathered: int = 0) -> tuple[DependenceTrace, list]:
    """Return a new trace, and a tracer for each array whose elements are the next inputs."""
    trace, starts = DependenceTrace(sum(x.size for x in xs)), _offsets(xs).tolist()
    few = len(xs) - gathered
    shapes, kind = [np.shape(x) for x in xs[few:]], of.kind_of_index(trace.inputs)
    sets = [None] * few + number_blocks(starts[few:-1], shapes, trace.inputs, kind)
    sets = [of.identity(a, x.size, trace.inputs) if s is None else s for a, x, s in zip(starts, xs, sets, strict=False)]
    return trace, [tracer(value(x), trace, s) for x, s in zip(xs, sets, strict=True)]


def _offsets(xs: list) -> Any:
    return np.cumsum([0, *[x.size for x in xs]])
