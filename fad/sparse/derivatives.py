"""Sparse Jacobians and Hessians: a few products with vectors, and the entries read off them."""

from __future__ import annotations

from collections.abc import Callable
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
from fad.scipy.sparse.array import Pattern, SparseArray
from fad.sparse.colouring import Plan
from fad.sparse.dependence import dependences
from fad.transforms.check import as_primal, as_value
from fad.transforms.grad import refuse_integers, split_arguments
from fad.transforms.jacobian import check_kinds, chunks
from fad.transforms.jvp import jvp
from fad.transforms.vjp import vjp
from fad.transforms.vmap import BatchTrace, vmap


class Point:
    """A function at its arguments, as a map from one long vector to another."""

    def __init__(self, fun: Callable, args: tuple, kwargs: dict, argnums: Any, name: str):
        self.fun, chosen, _ = split_arguments(fun, args, kwargs, argnums, None, name)
        leaves, self.in_tree = tree.flatten(chosen)
        self.xs = [as_primal(x, f"the argument of {name}") for x in leaves]
        check_kinds(self.xs, False, name, "input")
        every, structure = tree.flatten((args, kwargs))
        self.key = (structure, tuple([np.shape(x) for x in every]))
        self.name = name
        self.inputs = sum(x.size for x in self.xs)

    def pattern(self) -> Any:
        """Return which outputs can depend on which inputs."""
        return dependences(self.fun, tree.unflatten(self.in_tree, [self._plain(x) for x in self.xs]))

    def _plain(self, x: Any) -> Any:
        while type(x) is Tracer:
            if isinstance(x.trace, BatchTrace):
                raise BatchedValueError(
                    f"{self.name} looks for the places of the matrix at plain values, not inside vmap. Call it once "
                    "outside, with arguments of the same shapes, or give it pattern=fad.sparse.pattern(f)(x)"
                )
            x = x.value
        return x

    def push(self, seeds: Any, chunk_size: Any) -> Any:
        """Multiply the matrix by each row of `seeds`; return the products as rows."""

        def pushed(*tangents):
            out, t = jvp(self.fun, tree.unflatten(self.in_tree, self.xs), tree.unflatten(self.in_tree, list(tangents)))
            self._check_output(out)
            return _long(tree.leaves(t))

        return self._map_chunks(pushed, seeds, self.xs, chunk_size)

    def pull(self, seeds: Any, chunk_size: Any) -> Any:
        """Multiply each row of `seeds` by the matrix."""
        out, pullback = vjp(self.fun, *tree.unflatten(self.in_tree, self.xs))
        self._check_output(out)
        leaves, out_tree = tree.flatten(tree.map(as_value, out))

        def pulled(*cts):
            return _long(tree.leaves(pullback(tree.unflatten(out_tree, list(cts)))))

        return self._map_chunks(pulled, seeds, leaves, chunk_size)

    def _check_output(self, out: Any) -> None:
        ys = tree.leaves(tree.map(as_value, out))
        refuse_integers(ys, self.name)
        check_kinds(ys, False, self.name, "output")

    def _map_chunks(self, run: Callable, seeds: Any, leaves: list, chunk_size: Any) -> Any:
        bounds = np.cumsum([0, *[x.size for x in leaves]])
        if bounds[-1] != seeds.shape[1]:
            return None  # the output has not the size that it had at another point
        bounds, parts = bounds[1:-1], []
        for start, stop in chunks(len(seeds), self.inputs, chunk_size):
            cut = np.split(seeds[start:stop], bounds, axis=1)
            stacked = [
                like(x, c.reshape(stop - start, *x.shape).astype(x.dtype)) for c, x in zip(cut, leaves, strict=True)
            ]
            parts.append(vmap(run)(*stacked))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _long(leaves: list) -> Any:
    """Return all numbers of some arrays in one vector."""
    parts = [x.reshape(-1) for x in leaves]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def entries(point: Point, plan: Plan, check: bool, chunk_size: Any) -> tuple[Any, str]:
    """Return the entries of the matrix at the places of a plan, and what these do not explain, in words, if anything.

    That is looked for in one product with a vector drawn at random, which is computed along with the others. Of traced
    entries the answer is a question to the transform: `jit` records it as a guard.
    """
    right, left, drawn = plan.seeds
    check = check or not (plan.pushes or plan.pulls)  # the function is run at least once
    if check:
        right, left = (np.vstack([right, drawn]), left) if plan.forward else (right, np.vstack([left, drawn]))
    found = [point.push(right, chunk_size)] if len(right) else []
    found += [point.pull(left, chunk_size)] if len(left) else []
    m = plan.pattern.shape[0]
    if found[-1] is None or (len(right) and found[0].shape[1] != m):
        return None, f"has {m} rows, but the output has another number of elements"
    if check:
        found[0], seen = found[0][:-1], found[0][-1]
    results = _long(found)
    data = np.take(results, like(results, plan.take))
    return data, _find_unexplained(plan, data, seen) if check else ""


def _find_unexplained(plan: Plan, data: Any, seen: Any) -> str:
    """Compare a product with what was seen, up to rounding."""
    rows, columns = plan.places if plan.forward else plan.places[::-1]
    terms = data * like(data, plan.seeds[2].astype(data.dtype)[columns])
    product, size = _sums(terms, rows, seen), _sums(np.abs(terms), rows, seen)
    close = float(np.sqrt(np.finfo(seen.dtype).eps))
    far = np.abs(product - seen) > close * (size + close * np.max(size)) if size.size else size > 0
    if not np.any(far):
        return ""
    return f"lacks places in {'row' if plan.forward else 'column'} {int(np.argmax(stop_gradient(far)))}"


def _sums(terms: Any, places: Any, like_these: Any) -> Any:
    """Add up numbers that belong to one place."""
    if type(terms) is np.ndarray:
        return np.bincount(places, terms, like_these.size).astype(terms.dtype)
    return at(np.zeros_like(like_these))[places].add(terms)


def matrix(plan: Plan, data: Any) -> Any:
    """Return SciPy's matrix of plain entries; of others, a sparse array of `fad.scipy.sparse`."""
    pattern = plan.pattern
    if type(data) is np.ndarray:
        return scipy.sparse.csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)
    return SparseArray(data, Pattern(*plan.places, pattern.shape, pattern.indptr))


class Sparse(Wrapping):
    """A function that computes a sparse derivative; it keeps the plans that it found for arguments of their shapes."""

    def __init__(
        self, fun: Callable, argnums: Any, name: str, given: Any, plan: Callable, check: bool, chunk_size: Any
    ):
        self.adopt(fun)
        self._fun, self._argnums, self._name = fun, argnums, name
        self._given = None if given is None else plan(_truth(given, name))
        self._plan, self._check, self._chunk_size = plan, check, chunk_size
        self._plans: dict[Any, Plan] = {}

    def __repr__(self) -> str:
        return f"<{self._name} of {name_of(self.__wrapped__)}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the matrix at these arguments."""
        point = Point(self._fun, args, kwargs, self._argnums, self._name)
        plan = self._planned(point)
        data, lacking = entries(point, plan, self._check, self._chunk_size)
        if lacking:
            plan, data = self._look_again(point, plan, data, lacking)
        return matrix(plan, data)

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Return in words how many places the matrix has at these arguments, and how many passes it takes."""
        plan = self._planned(Point(self._fun, args, kwargs, self._argnums, self._name))
        (m, n), counts = plan.pattern.shape, ((plan.pushes, "forward"), (plan.pulls, "in reverse"))
        passes = " and ".join([f"{k} {how}" for k, how in counts if k]) or "none"
        return f"{m} x {n} with {plan.pattern.nnz} places; passes: {passes}"

    def _planned(self, point: Point) -> Plan:
        if self._given is not None:
            if self._given.pattern.shape[1] != point.inputs:
                raise ShapeMismatchError(
                    f"the pattern given to {self._name} has {self._given.pattern.shape[1]} columns, but the input has "
                    f"{point.inputs} elements"
                )
            return self._given
        plan = self._plans.get(point.key)
        if plan is None:
            plan = self._plans[point.key] = self._plan(point.pattern())
        return plan

    def _look_again(self, point: Point, plan: Plan, data: Any, lacking: str) -> tuple[Plan, Any]:
        """Look for places again, where those of another point do not explain what is seen at this one."""
        if self._given is not None:
            raise DerivativeError(
                f"the pattern given to {self._name} {lacking}. Leave pattern= out, or make it with fad.sparse.pattern; "
                "check=False leaves all but its places away"
            )
        wider = point.pattern()
        if wider.shape == plan.pattern.shape:
            wider = plan.pattern + wider
            if wider.nnz == plan.pattern.nnz:
                return plan, data  # all places were known: what differs is rounding
        plan = self._plans[point.key] = self._plan(wider)
        return plan, entries(point, plan, False, self._chunk_size)[0]


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
