"""Sparse Jacobians and Hessians: a few products with vectors, and the entries read off them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from fad import tree
from fad.backends import like
from fad.core.tracer import Tracer
from fad.core.transformed import Wrapping, name_of
from fad.core.values import stop_gradient
from fad.errors import BatchedValueError, DerivativeError, ShapeMismatchError
from fad.ops.taking import at
from fad.scipy.sparse.array import SparseArray
from fad.scipy.sparse.products import Pattern
from fad.sparse.chains import chain
from fad.sparse.colouring import REVERSE, Plan, bound_cost, compose, cost
from fad.sparse.dependence import dependences
from fad.sparse.gathers import Cut, CutChanged, cut_gathers, find_cut, no_shifts
from fad.transforms.check import as_primal, as_value
from fad.transforms.grad import grad, refuse_integers, split_arguments
from fad.transforms.jacobian import check_kinds, chunks
from fad.transforms.jvp import jvp
from fad.transforms.linearize import linearize
from fad.transforms.mutation import check_own, own, recording
from fad.transforms.vjp import Tape
from fad.transforms.vmap import BatchTrace, vmap

_CACHED = 1 << 16  # numbers of an array that one core's cache holds, beside others
_GAIN = 4  # times fewer passes for which entries are sums of products: these take memory, and time in each call


class _OtherSize(Exception):
    """The output has not the size that it had at another point."""


@dataclass(eq=False)
class Seeds:
    """Vectors to multiply with: one drawn at random, if any, and behind it the members of each group as ones."""

    groups: Any  # a row of booleans for each
    drawn: Any = None

    def __len__(self) -> int:
        return len(self.groups) + (self.drawn is not None)

    @property
    def length(self) -> int:
        return self.groups.shape[1]

    def rows(self, start: int, stop: int) -> Any:
        """Return some of the vectors as rows."""
        if self.drawn is None:
            return self.groups[start:stop]
        rows = self.groups[max(0, start - 1) : stop - 1]
        return rows if start else np.concatenate([self.drawn[None], rows])


class VectorMap:
    """A function of a list of arrays, at these arrays, as a map from one long vector to another.

    The last `own` arrays are held by nobody else.
    """

    def __init__(self, fun: Callable, xs: list, name: str, own: int = 0):
        self.fun, self.xs, self.name, self.own = fun, xs, name, own
        self.inputs = sum(x.size for x in xs)

    def push(self, seeds: Seeds, chunk_size: Any) -> Iterator[Any]:
        """Multiply the matrix by each of `seeds`; yield the products, some at a time, as rows of each leaf."""
        if len(_cut_into_chunks(len(seeds), self.inputs, chunk_size, self.xs)) > 1 and not _is_traced(self.xs):
            out, push = linearize(self.fun, *self.xs)
            self._check_output(tree.leaves(tree.map(as_value, out)))

            def pushed(tangents, keep):
                return _flatten(push(*tangents))

        else:

            def pushed(tangents, keep):
                out, t = jvp(self.fun, tuple(self.xs), tangents)
                self._check_output(tree.leaves(tree.map(as_value, out)))
                return _flatten(t)

        return self._map_chunks(pushed, seeds, self.xs, chunk_size)

    def pull(self, seeds: Seeds, chunk_size: Any) -> Iterator[Any]:
        """Multiply each of `seeds` by the matrix; yield the products as `push` does."""
        others = self.xs[: len(self.xs) - self.own]
        copies = own(others)
        leaves, structure = tree.flatten((*copies, *self.xs[len(others) :]))
        tape = Tape(self.fun, structure, leaves, False, own=True)
        check_own(copies, others)
        values = tape.values()
        self._check_output(values)

        def pulled(cts, keep):
            return _flatten(tape.pull(list(cts), keep))

        return self._map_chunks(pulled, seeds, values, chunk_size)

    def _check_output(self, ys: list) -> None:
        refuse_integers(ys, self.name)
        check_kinds(ys, False, self.name, "output")

    def _map_chunks(self, run: Callable, seeds: Seeds, leaves: list, chunk_size: Any) -> Iterator[Any]:
        bounds = np.cumsum([0, *[x.size for x in leaves]])
        if bounds[-1] != seeds.length:
            raise _OtherSize
        for start, stop in _cut_into_chunks(len(seeds), max(self.inputs, seeds.length), chunk_size, leaves):
            cut = np.split(seeds.rows(start, stop), bounds[1:-1], axis=1)
            stacked = [
                like(x, c.reshape(stop - start, *x.shape).astype(x.dtype)) for c, x in zip(cut, leaves, strict=True)
            ]
            if stop - start > 1:
                yield vmap(lambda *rows: run(rows, True))(*stacked)
            else:  # what only the last product needs is dropped as it is read
                yield [y[None] for y in run(tuple([x[0] for x in stacked]), stop < len(seeds))]


def _cut_into_chunks(n: int, width: int, chunk_size: Any, leaves: list) -> list:
    """Cut n passes into ranges, by themselves so that arrays with a row for each stay in the cache of a core."""
    if chunk_size == "auto" and not _is_traced(leaves):
        chunk_size = max(1, _CACHED // max(1, width))
    return list(chunks(n, width, chunk_size))


def _is_traced(leaves: list) -> bool:
    return any(type(x) is not np.ndarray and not isinstance(x, np.generic) for x in leaves)


class Point:
    """A function at its arguments. Of a Hessian it is the scalar function's gradient, and `scalar` that function."""

    def __init__(self, fun: Callable, args: tuple, kwargs: dict, argnums: Any, name: str, scalar: Any = None):
        self.fun, chosen, _ = split_arguments(fun, args, kwargs, argnums, None, name)
        self.scalar = None if scalar is None else split_arguments(scalar, args, kwargs, argnums, None, name)[0]
        leaves, self.in_tree = tree.flatten(chosen)
        self.xs = [as_primal(x, f"the argument of {name}") for x in leaves]
        check_kinds(self.xs, False, name, "input")
        every, structure = tree.flatten((args, kwargs))
        self.key = (structure, tuple([np.shape(x) for x in every]))
        self.name = name
        self.inputs = sum(x.size for x in self.xs)

    def whole(self) -> VectorMap:
        """Return the function as a map of the leaves of its input."""
        return VectorMap(lambda *leaves: self.fun(*tree.unflatten(self.in_tree, list(leaves))), self.xs, self.name)

    def pattern(self) -> Any:
        """Return which outputs can depend on which inputs."""
        return dependences(self.fun, tree.unflatten(self.in_tree, self._plain()))

    def _plain(self) -> list:
        return [self._innermost(x) for x in self.xs]

    def _innermost(self, x: Any) -> Any:
        while type(x) is Tracer:
            if isinstance(x.owner, BatchTrace):
                raise BatchedValueError(
                    f"{self.name} looks for the places of the matrix at plain values, not inside vmap. Call it once "
                    "outside, with arguments of the same shapes, or give it pattern=fad.sparse.pattern(f)(x)"
                )
            x = x.value
        return x

    def find_cut(self, computed: bool = False, scatters: bool = False) -> Cut | None:
        """Return the gathers to cut, if there are any; those of loops over observations are not."""
        return find_cut(self.scalar or self.fun, self.in_tree, self._plain(), computed, scatters)

    def pattern_between(self, cut: Cut) -> Any:
        """Return which outputs depend on which elements of the inputs directly, and on which that are gathered."""
        xs = self._plain()
        return dependences(self._between(cut, range(len(xs)), xs, False), (*xs, *no_shifts(cut)), len(cut.shapes))

    def between(self, cut: Cut, direct: Any, check: bool) -> VectorMap:
        """Return the function as a map of the leaves that it uses directly, and of what it gathers."""
        fun = self._between(cut, direct, self.xs, check)
        return VectorMap(fun, [*[self.xs[i] for i in direct], *no_shifts(cut)], self.name, len(cut.shapes))

    def _between(self, cut: Cut, direct: Any, outer: list, check: bool) -> Callable:
        shifted = cut_gathers(cut, self.scalar or self.fun, self.in_tree, outer, check)

        def fun(*leaves):
            xs = list(outer)
            for i, x in zip(direct, leaves, strict=False):
                xs[i] = x
            return shifted(xs, leaves[len(direct) :])

        if self.scalar is None:
            return fun
        return grad(fun, tuple(range(len(direct) + len(cut.shapes))))


def plan_passes(point: Point, plan: Callable) -> Plan:
    """Return the passes that tell the matrix: of the function itself, or of what lies between its gathers."""
    computed, chained = point.scalar is None, None
    cut = parts = point.find_cut(computed, scatters=computed)
    if parts is not None and parts.operands:
        chained = _plan_chain(point, parts, plan)
        if chained is None and (parts := point.find_cut(computed)) is not None and parts.operands:  # without the sums
            chained = _plan_chain(point, parts, plan)
        if chained is not None and cost(chained) <= REVERSE:
            return chained
        cut = point.find_cut()
    price = None if chained is None else _GAIN * cost(chained)
    del chained  # it would be held beside the other; it is rarely wanted, and then made again
    found = plan(point.pattern()) if cut is None else _plan_between(point, cut, plan)
    if price is None or parts is None or cost(found) <= price:
        return found
    return _plan_chain(point, parts, plan) or found


def _plan_chain(point: Point, cut: Cut, plan: Callable) -> Plan | None:
    """Return the passes that tell the parts of the matrix, where arrays are gathered from that were computed."""
    inner, origins, direct = _plan_cut(point, cut, plan)
    found = chain(inner, origins, cut.fed, point.inputs)
    if found is not None:
        found.cut, found.direct = cut, direct
    return found


def _plan_between(point: Point, cut: Cut, plan: Callable) -> Plan:
    """Return the passes that tell the derivatives between gathers, or those of the whole where these are fewer."""
    symmetric = point.scalar is not None
    inner, origins, direct = _plan_cut(point, cut, plan)
    found = compose(inner, origins, point.inputs, symmetric)
    if bound_cost(found.pattern, symmetric) <= cost(inner):
        other = plan(found.pattern)
        if cost(other) <= cost(inner):
            return other
    found.cut, found.direct, found.origins, found.symmetric = cut, direct, origins, symmetric
    return found


def _plan_cut(point: Point, cut: Cut, plan: Callable) -> tuple[Plan, Any, list]:
    """Return the plan for what lies between gathers, what its columns belong to, and the leaves used directly."""
    wide = point.pattern_between(cut)
    bounds = np.cumsum([0, *[x.size for x in point.xs]])
    used = np.bincount(wide.indices, minlength=wide.shape[1])[: bounds[-1]] > 0
    direct = [i for i in range(len(point.xs)) if used[bounds[i] : bounds[i + 1]].any()]
    kept = np.ones(wide.shape[1], bool)
    kept[: bounds[-1]] = np.repeat(np.isin(range(len(point.xs)), direct), np.diff(bounds))
    wide = _take(wide, kept, point.scalar is not None)
    origins = np.concatenate([np.arange(bounds[-1], dtype=cut.sources.dtype), cut.sources])[kept]
    cut.sources = origins[origins.size - cut.sources.size :]
    return plan(wide), origins, direct


def _take(pattern: Any, kept: Any, rows_too: bool) -> Any:
    """Return the columns of a pattern that are kept, and rows, of which the others are empty."""
    numbers = (np.cumsum(kept) - 1).astype(pattern.indices.dtype)
    indptr = pattern.indptr[np.concatenate([[True], kept])] if rows_too else pattern.indptr
    return type(pattern)((pattern.data, numbers[pattern.indices], indptr), shape=(indptr.size - 1, int(kept.sum())))


def _flatten(found: Any) -> list:
    return [x.reshape(-1) for x in tree.leaves(found)]


def entries(point: Point, plan: Plan, check: bool, chunk_size: Any) -> tuple[Any, str]:
    """Return the entries of the matrix at the places of a plan, and what these do not explain, in words, if anything.

    That is looked for in one product with a vector drawn at random. Of traced entries the answer is a question to the
    transform: `jit` records it as a guard.
    """
    check = check or not (plan.pushes or plan.pulls)  # the function is run at least once
    run = point.whole() if plan.cut is None else point.between(plan.cut, plan.direct, check)
    parts = plan.inner or plan
    drawn = parts.drawn_between if check else None
    products: list = []
    seen: Any = None
    try:
        if parts.forward:
            seen = _multiply(run.push, Seeds(parts.members[0], drawn), parts, chunk_size, products)
        if parts.pulls:
            seeds = Seeds(parts.members[1], None if parts.forward else drawn)
            last = _multiply(run.pull, seeds, parts, chunk_size, products)
            seen = seen if parts.forward else last
    except CutChanged:
        return None, "gathers otherwise"
    except _OtherSize:
        return None, f"has {plan.pattern.shape[0]} rows, but the output has another number of elements"
    whole = _join(products)
    data = _read(plan, whole)
    if not check:
        return data, ""
    return data, _find_unexplained(parts, data if parts is plan else _read(parts, whole), seen)


def _multiply(multiply: Callable, seeds: Seeds, plan: Plan, chunk_size: Any, products: list) -> Any:
    """Add the products with the groups to a list, as rows of leaves; return that with the vector drawn at random."""
    seen: Any = None
    length = plan.pushed.size + plan.pulled.size - seeds.length
    for leaves in multiply(seeds, chunk_size):
        if sum(rows.shape[1] for rows in leaves) != length:
            raise _OtherSize
        if seeds.drawn is not None and seen is None:
            seen = _add_up_origins(plan, _join([[rows[:1] for rows in leaves]]))
            leaves = [rows[1:] for rows in leaves]
        products.append(leaves)
    return seen


def _join(products: list) -> Any:
    """Return all numbers of rows of leaves in one vector; the list is emptied as they are copied."""
    if any(_is_traced(leaves) for leaves in products):
        return np.concatenate([np.concatenate(leaves, axis=1).reshape(-1) for leaves in products])
    if len(products) == 1 and len(products[0]) == 1:
        return products.pop()[0].reshape(-1)
    kind = np.result_type(*[rows.dtype for leaves in products for rows in leaves])
    whole, start = np.empty(sum(rows.size for leaves in products for rows in leaves), kind), 0
    products.reverse()
    while products:
        leaves = products.pop()
        count, width = len(leaves[0]), sum(rows.shape[1] for rows in leaves)
        stop = start + count * width
        np.concatenate(leaves, axis=1, out=whole[start:stop].reshape(count, width))
        start = stop
    return whole


def _read(plan: Plan, whole: Any) -> Any:
    """Return the entries of the matrix, read off the numbers of all products."""
    if plan.factors is not None:
        whole = np.concatenate([whole, like(whole, np.ones(1, whole.dtype))])
    if type(whole) is np.ndarray:
        return _take_elements(whole, plan.take) if plan.sums is None else _add_up(plan, whole)
    data = np.take(whole, like(whole, plan.take))
    if plan.factors is not None:
        data = data * np.take(whole, like(whole, plan.factors))
    if plan.sums is None:
        return data
    return at(np.zeros_like(data, shape=(plan.sums.size,)))[plan.entry_of].add(data)


def _take_elements(whole: Any, take: Any) -> Any:
    """Return ``whole[take]``, some at a time: NumPy takes by numbers of eight bytes, and makes them."""
    found = np.empty(take.size, whole.dtype)
    for a in range(0, take.size, _CACHED):
        np.take(whole, take[a : a + _CACHED], out=found[a : a + _CACHED], mode="clip")
    return found


def _add_up(plan: Plan, whole: Any) -> Any:
    """Return the sums of terms that the entries are, some at a time.

    SciPy's product with a matrix of the factors takes half the time of ``np.add.reduceat``, and no array of all terms.
    """
    take, sums, factors = plan.take, plan.sums, plan.factors
    found = np.empty(sums.size, whole.dtype)
    for a in range(0, sums.size, _CACHED):
        b = min(a + _CACHED, sums.size)
        terms = slice(sums[a], take.size if b == sums.size else sums[b])
        starts = np.append(sums[a:b], sums.dtype.type(terms.stop)) - sums[a]
        scale = np.ones(starts[-1], whole.dtype) if factors is None else whole[factors[terms]]
        found[a:b] = scipy.sparse.csr_array((scale, take[terms], starts), shape=(b - a, whole.size)) @ whole
    return found


def _add_up_origins(plan: Plan, seen: Any) -> Any:
    """Return a product with the matrix from one with that of the function between its gathers."""
    if plan.cut is None or (plan.forward and not plan.symmetric):
        return seen
    if type(seen) is np.ndarray:
        return np.bincount(plan.origins, seen, plan.pattern.shape[1]).astype(seen.dtype, copy=False)
    return at(np.zeros_like(seen, shape=(plan.pattern.shape[1],)))[plan.origins].add(seen)


def _find_unexplained(plan: Plan, data: Any, seen: Any) -> str:
    """Compare a product with what was seen, up to rounding."""
    drawn = plan.drawn.astype(data.dtype)
    close = float(np.sqrt(np.finfo(seen.dtype).eps))
    if type(data) is np.ndarray:
        product = _multiply_plain(plan, data, drawn)
        if not np.any(_are_far(product, seen, np.abs(product), close)):  # which are at most those of absolute values
            return ""
        size = _multiply_plain(plan, np.abs(data), drawn)
    else:
        rows, columns = plan.places if plan.forward else plan.places[::-1]
        terms, zero = data * like(data, drawn[columns]), np.zeros_like(seen)
        product, size = at(zero)[rows].add(terms), at(zero)[rows].add(np.abs(terms))
    far = _are_far(product, seen, size, close)
    if not np.any(far):
        return ""
    return f"lacks places in {'row' if plan.forward else 'column'} {int(np.argmax(stop_gradient(far)))}"


def _are_far(product: Any, seen: Any, size: Any, close: float) -> Any:
    return np.abs(product - seen) > close * (size + close * np.max(size)) if size.size else size > 0


def _multiply_plain(plan: Plan, data: Any, drawn: Any) -> Any:
    whole = _plain_matrix(plan, data)
    return (whole if plan.forward else whole.T) @ drawn


def _plain_matrix(plan: Plan, data: Any) -> Any:
    pattern = plan.pattern
    return scipy.sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)


def matrix(plan: Plan, data: Any) -> Any:
    """Return SciPy's matrix of plain entries; of others, a sparse array of `fad.scipy.sparse`."""
    pattern = plan.pattern
    if type(data) is np.ndarray:
        return scipy.sparse.csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)
    return SparseArray(data, Pattern(*plan.places, pattern.shape, pattern.indptr))


class Sparse(Wrapping):
    """A function that computes a sparse derivative; it keeps the plans that it found for arguments of their shapes."""

    def __init__(
        self, fun: Callable, argnums: Any, name: str, given: Any, plan: Callable, check: bool, chunk_size: Any,
        scalar: Any = None,
    ):  # fmt: skip
        self.adopt(scalar or fun)
        self._fun, self._argnums, self._name, self._scalar = fun, argnums, name, scalar
        self._given = None if given is None else plan(_truth(given, name))
        self._plan_of, self._check, self._chunk_size = plan, check, chunk_size
        self._plans: dict[Any, Plan] = {}
        self._recorded: dict[Any, list] = {}  # all plans that recordings of `jit` have tried, in their order

    def __repr__(self) -> str:
        return f"<{self._name} of {name_of(self.__wrapped__)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the matrix at these arguments."""
        point = Point(self._fun, args, kwargs, self._argnums, self._name, self._scalar)
        for plan in self._find_plans(point):
            data, lacking = entries(point, plan, self._check, self._chunk_size)
            if not lacking:
                return matrix(plan, data)
        return matrix(*self._look_again(point, plan, data, lacking))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Return in words how many places the matrix has at these arguments, and how many passes it takes."""
        plan = self._find_plans(Point(self._fun, args, kwargs, self._argnums, self._name, self._scalar))[-1]
        (m, n), counts = plan.pattern.shape, ((plan.pushes, "forward"), (plan.pulls, "in reverse"))
        passes = " and ".join([f"{k} {how}" for k, how in counts if k]) or "none"
        return f"{m} x {n} with {plan.pattern.nnz} places; passes: {passes}"

    def _find_plans(self, point: Point) -> list:
        """Return the plans to try: the latest; for `jit` all in order, so that it meets the same questions again."""
        if self._given is not None:
            if self._given.pattern.shape[1] != point.inputs:
                raise ShapeMismatchError(
                    f"the pattern given to {self._name} has {self._given.pattern.shape[1]} columns, but the input has "
                    f"{point.inputs} elements"
                )
            return [self._given]
        plan = self._plans.get(point.key)
        if plan is None:
            plan = self._plans[point.key] = plan_passes(point, self._plan_of)
        if recording.get() is None:
            return [plan]
        return list(self._recorded.setdefault(point.key, [plan]))

    def _look_again(self, point: Point, plan: Plan, data: Any, lacking: str) -> tuple[Plan, Any]:
        """Look for places again, where those of another point do not explain what is seen at this one."""
        if self._given is not None:
            raise DerivativeError(
                f"the pattern given to {self._name} {lacking}. Leave pattern= out, or make it with fad.sparse.pattern; "
                "check=False leaves all but its places away"
            )
        if plan.cut is not None:  # other elements may be gathered now
            now = plan_passes(point, self._plan_of)
            if now.cut is None or not np.array_equal(now.cut.sources, plan.cut.sources):
                return self._use(point, now)
        wider = point.pattern()
        if wider.shape == plan.pattern.shape:
            wider = plan.pattern + wider
            if wider.nnz == plan.pattern.nnz:
                return plan, data  # all places were known: what differs is rounding
        return self._use(point, self._plan_of(wider))

    def _use(self, point: Point, plan: Plan) -> tuple[Plan, Any]:
        """Keep a plan that was just made, and return it with the entries; `jit` guards its program by their check."""
        self._plans[point.key] = plan
        if recording.get() is not None:
            self._recorded[point.key].append(plan)
        return plan, entries(point, plan, self._check, self._chunk_size)[0]


def _truth(given: Any, name: str) -> Any:
    """Return a pattern, sparse or dense, as a matrix of booleans."""
    if isinstance(given, SparseArray):
        given = given.tocsr()
    if not scipy.sparse.issparse(given):
        given = scipy.sparse.csr_array(np.asarray(given))
    if given.ndim != 2:
        raise ShapeMismatchError(f"the pattern given to {name} must be a matrix, output by input")
    given = scipy.sparse.csr_array(given, copy=True)
    given.data = np.ones(given.nnz, bool)
    given.sum_duplicates()
    return given
