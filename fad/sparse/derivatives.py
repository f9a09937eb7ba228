"""Sparse Jacobians and Hessians: a few products with vectors, and the entries read off them."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from fad import tree
from fad.core.runs.transformed import Wrapping, name_of
from fad.core.tracing.tracer import Tracer
from fad.errors import BatchedValueError, DerivativeError, ShapeMismatchError
from fad.scipy.sparse.array import SparseArray
from fad.scipy.sparse.products import Pattern
from fad.sparse.chains import bound_others, chain, is_chain
from fad.sparse.colouring import REVERSE, Plan, add_up_columns, bound_cost, compose, cost
from fad.sparse.dependence import dependences
from fad.sparse.entries import compute_entries
from fad.sparse.gathers import Cut, CutChanged, cut_gathers, find_cut
from fad.sparse.passes import VectorMap
from fad.sparse.runs import Runs
from fad.staging.record import recorder
from fad.transforms.arguments.check import flatten_primals
from fad.transforms.arguments.mutation import recording
from fad.transforms.batching.batch_trace import BatchTrace
from fad.transforms.grad import grad, split_arguments
from fad.transforms.jacobian import check_kinds

_GAIN = 3  # times fewer passes for which entries are sums of products: these take memory, and time in each call
_SURE = 2  # times fewer than other passes are at least, for which these are not looked for


class Point:
    """A function at its arguments. Of a Hessian it is the scalar function's gradient, and `scalar` that function."""

    def __init__(self, fun: Callable, args: tuple, kwargs: dict, argnums: Any, name: str, scalar: Any = None):
        runs = Runs(scalar or fun)
        flat, chosen, _ = split_arguments(fun, args, kwargs, argnums, None, name)
        self.fun = runs.wrap(flat)
        if scalar is not None:
            scalar = runs.wrap(split_arguments(scalar, args, kwargs, argnums, None, name)[0])
        self.scalar = scalar
        self.xs, self.in_tree = flatten_primals(chosen, f"the argument of {name}")
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
            x = x.wrapped
        return x

    def find_cut(self, computed: bool = False, scatters: bool = False) -> Cut | None:
        """Return the gathers to cut, if there are any; those of loops over observations are not."""
        return find_cut(self.scalar or self.fun, self.in_tree, self._plain(), computed, scatters)

    def pattern_between(self, cut: Cut) -> Any:
        """Return which outputs depend on which elements of the inputs directly, and on which that are gathered."""
        xs = self._plain()
        return dependences(self._between(cut, range(len(xs)), xs, False), (*xs, *cut.no_shifts), len(cut.shapes))

    def along(self, plan: Plan, check: bool) -> VectorMap:
        """Return the function that the passes of a plan run, as a map."""
        return self.whole() if plan.cut is None else self.between(plan.cut, plan.direct, check)

    def between(self, cut: Cut, direct: Any, check: bool) -> VectorMap:
        """Return the function as a map of the leaves that it uses directly, and of what it gathers."""
        fun = self._between(cut, direct, self.xs, check)
        kind = np.result_type(*[x.dtype for x in self.xs])
        return VectorMap(fun, [*[self.xs[i] for i in direct], *cut.no_shifts], self.name, len(cut.shapes), kind)

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
    try:
        return _plan_cut_function(point, plan)
    except CutChanged:  # no two runs gather alike
        return plan(point.pattern())


def _plan_cut_function(point: Point, plan: Callable) -> Plan:
    computed, parts, sums = point.scalar is None, None, None
    cut = point.find_cut(computed, scatters=computed)
    if cut is not None and cut.operands:
        parts = _plan_parts(point, cut, plan)
        if parts is None and (cut := point.find_cut(computed)) is not None and cut.operands:  # without the sums
            parts = _plan_parts(point, cut, plan)
        if parts is not None:
            sums = _plan_chain(point, *parts)
            if sums is not None and _are_few(point, sums, *parts):
                return sums
        cut = point.find_cut()
    if parts is not None:
        few = functools.partial(plan, most=_GAIN * cost(parts[0]))
        found = few(point.pattern()) if cut is None else _plan_between(point, cut, few)
        found = found or sums
        if found is not None:
            return found
    return plan(point.pattern()) if cut is None else _plan_between(point, cut, plan)  # type: ignore[return-value]


def _plan_parts(point: Point, cut: Cut, plan: Callable) -> tuple | None:
    """Return the passes that tell the parts of the matrix, where arrays are gathered from that were computed."""
    wide, origins, direct = _pattern_of_cut(point, cut)
    inner = plan(wide)
    return (inner, origins, direct, cut) if is_chain(inner, origins, cut.fed, point.inputs) else None


def _are_few(point: Point, sums: Plan, inner: Plan, origins: Any, direct: list, cut: Cut) -> bool:
    """Return whether the passes that tell the parts are so few that no others need be looked for."""
    price = cost(inner)
    return price <= REVERSE or bound_others(sums, inner, origins, cut.fed, point.inputs) >= _SURE * price


def _plan_chain(point: Point, inner: Plan, origins: Any, direct: list, cut: Cut) -> Plan | None:
    """Return the passes that tell the parts of the matrix as a plan for the whole."""
    found = chain(inner, origins, cut.fed, point.inputs)
    if found is not None:
        found.cut, found.direct = cut, direct
    return found


def _plan_between(point: Point, cut: Cut, plan: Callable) -> Plan | None:
    """Return the passes that tell the derivatives between gathers, or those of the whole where these are fewer.

    Return None where `plan` does so of both.
    """
    symmetric = point.scalar is not None
    wide, origins, direct = _pattern_of_cut(point, cut)
    inner = plan(wide)
    if inner is None:
        return plan(add_up_columns(wide, origins, point.inputs))
    del wide
    price = cost(inner)
    found = compose(inner, origins, point.inputs, symmetric)
    if bound_cost(found.pattern, symmetric) <= price:
        other = plan(found.pattern)
        if other is not None and cost(other) <= price:
            return other
    found.cut, found.direct, found.origins, found.symmetric = cut, direct, origins, symmetric
    return found


def _pattern_of_cut(point: Point, cut: Cut) -> tuple[Any, Any, list]:
    """Return the places of what lies between gathers, what its columns belong to, and the leaves used directly."""
    wide = point.pattern_between(cut)
    bounds = np.cumsum([0, *[x.size for x in point.xs]])
    used = np.bincount(wide.indices, minlength=wide.shape[1])[: bounds[-1]] > 0
    direct = [i for i in range(len(point.xs)) if used[bounds[i] : bounds[i + 1]].any()]
    kept = np.ones(wide.shape[1], bool)
    kept[: bounds[-1]] = np.repeat(np.isin(range(len(point.xs)), direct), np.diff(bounds))
    wide = _take(wide, kept, point.scalar is not None)
    origins = np.concatenate([np.arange(bounds[-1], dtype=cut.sources.dtype), cut.sources])[kept]
    cut.sources = origins[origins.size - cut.sources.size :]
    return wide, origins, direct


def _take(pattern: Any, kept: Any, rows_too: bool) -> Any:
    """Return the columns of a pattern that are kept, and rows, of which the others are empty."""
    numbers = np.cumsum(kept, dtype=pattern.indices.dtype)
    numbers -= 1
    indptr = pattern.indptr[np.concatenate([[True], kept])] if rows_too else pattern.indptr
    return type(pattern)((pattern.data, numbers[pattern.indices], indptr), shape=(indptr.size - 1, int(kept.sum())))


def matrix(plan: Plan, data: Any) -> Any:
    """Return SciPy's matrix of plain entries; of others, and in programs, a sparse array of `fad.scipy.sparse`."""
    pattern = plan.pattern
    if type(data) is np.ndarray and recording.get() is None:
        found = copy.copy(pattern)  # SciPy's constructor would look at the indices again
        found.data, found.indices, found.indptr = data, pattern.indices.copy(), pattern.indptr.copy()
        return found
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
        if (trace := recorder.get()) is not None:
            trace.remembers = True
        point = Point(self._fun, args, kwargs, self._argnums, self._name, self._scalar)
        found = self._given is None and point.key not in self._plans
        for plan in self._find_plans(point):
            data, lacking = self._compute(point, plan, found)
            if not lacking:
                return matrix(plan, data)
        return matrix(*self._look_again(point, plan, data, lacking))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Return in words how many places the matrix has at these arguments, and how many passes it takes."""
        point = Point(self._fun, args, kwargs, self._argnums, self._name, self._scalar)
        plan = self._find_plans(point)[-1]
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
            if data is not None and _has_all_places(plan, point):
                return self._loosen(point, plan, data)
            raise DerivativeError(
                f"the pattern given to {self._name} {lacking}. Leave pattern= out, or make it with fad.sparse.pattern; "
                "check=False leaves all but its places away"
            )
        if plan.cut is not None:  # other elements may be gathered now, or gathered from what depends on others
            now = plan_passes(point, self._plan_of)
            if not _is_same(now, plan):
                now, found = self._use(point, now)
                if found is not None:  # else `jit` gathers by a loop what other runs gather step by step
                    return now, found
        wider = point.pattern()
        if wider.shape == plan.pattern.shape:
            wider = plan.pattern + wider
            if data is not None and wider.nnz == plan.pattern.nnz:
                return self._loosen(point, plan, data)
        return self._use(point, self._plan_of(wider))

    def _loosen(self, point: Point, plan: Plan, data: Any) -> tuple[Plan, Any]:
        """Compare more loosely where all places are known: the function rounds to shorter numbers on its way.

        A comparison that always fails would hide it when there are other places.
        """
        known = 0 if plan.precision is None else np.finfo(plan.precision).eps
        for precision in (np.float32, np.float16):
            if np.finfo(precision).eps > known:
                plan = dataclasses.replace(plan, precision=precision)
                data, lacking = self._keep(point, plan)
                if not lacking:
                    break
        return plan, data

    def _use(self, point: Point, plan: Plan) -> tuple[Plan, Any]:
        """Keep a plan that was just made, and return it with the entries."""
        return plan, self._keep(point, plan)[0]

    def _keep(self, point: Point, plan: Plan) -> tuple[Any, str]:
        """Keep a plan, and return the entries and what it lacks; `jit` guards its program by that."""
        records = recording.get() is not None
        if self._given is None:
            self._plans[point.key] = plan
            if records:
                self._recorded[point.key].append(plan)
        elif not records:
            self._given = plan
        return self._compute(point, plan, self._given is None)

    def _compute(self, point: Point, plan: Plan, found: bool) -> tuple[Any, str]:
        """Return the entries of the matrix, and what its places lack; `found` says that this call looked for them."""

        def note() -> bool:
            return found or (recording.get() is not None and self._given is None and _has_all_places(plan, point))

        return compute_entries(functools.partial(point.along, plan), plan, self._check, self._chunk_size, note)


def _has_all_places(plan: Plan, point: Point) -> bool:
    try:
        found = point.pattern()
    except BatchedValueError:
        return False
    return found.shape == plan.pattern.shape and (found + plan.pattern).nnz == plan.pattern.nnz


def _is_same(a: Plan, b: Plan) -> bool:
    """Return whether two plans of functions with cut gathers read the same entries off the same products."""
    if a.cut is None or b.cut is None or not np.array_equal(a.cut.sources, b.cut.sources):
        return False
    return (
        _has_same_places(a, b)
        and (a.inner is None) == (b.inner is None)
        and (a.inner is None or b.inner is None or _has_same_places(a.inner, b.inner))
    )


def _has_same_places(a: Plan, b: Plan) -> bool:
    x, y = a.pattern, b.pattern
    pairs = (x.indptr, y.indptr), (x.indices, y.indices), (a.first.take, b.first.take)
    return x.shape == y.shape and all(np.array_equal(u, v) for u, v in pairs)


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
