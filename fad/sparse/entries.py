"""The entries of a sparse derivative: read off the products of a plan, and compared with one more product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from fad.backends import like
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient
from fad.ops.places.taking import at
from fad.sparse.colouring import Plan, Terms
from fad.sparse.directions import NotByDirections
from fad.sparse.gathers import CutChanged
from fad.sparse.passes import OtherSize, Seeds, VectorMap, is_traced
from fad.sparse.program import ProgramChanged, Watch
from fad.transforms.arguments.mutation import recording

_SOME = 1 << 14  # terms that are computed at once
_LONG = 4  # terms that a sum has, from which on it is computed before it is added
_NO_TERMS = np.zeros(1, np.intp)


def compute_entries(
    make: Callable, plan: Plan, check: bool, chunk_size: Any, note: Callable, trust: bool = True
) -> tuple[Any, str]:
    """Return the entries of the matrix at the places of a plan, and what these do not explain, in words, if anything.

    ``make(check)`` returns the function, or that between its gathers, as a `VectorMap`. A run that does what is known
    of another has its places; else they are compared with a product with a vector drawn at random. ``note()`` says
    that the places were found at these arguments, so that this run will be known. Of traced entries the answer is a
    question to the transform: `jit` records it as a guard, where its program may have other places at other values.
    """
    some = bool(plan.pushes or plan.pulls)
    check = check or not some  # the function is run at least once
    run = make(check)
    parts, program = plan.inner or plan, plan.program
    known = check and trust and some and program.steps is not None and not is_traced(run.xs)
    compares = check and not known
    records = recording.get() is not None
    watch = Watch(program, known, check and (records or note()))
    products: list = []
    try:
        seen = _run_passes(run, parts, compares, chunk_size, watch, products)
    except NotByDirections:
        program.loops = True
        return compute_entries(make, plan, check, chunk_size, lambda: False, False)
    except ProgramChanged:
        return compute_entries(make, plan, check, chunk_size, lambda: False, False)
    except CutChanged:
        return None, "gathers otherwise"
    except OtherSize:
        return None, f"has {plan.pattern.shape[0]} rows, but the output has another number of elements"
    kind = None if plan.cut is None else _find_kind(plan, run)
    whole = _join(products, plan.first.factors is not None)
    if not compares:
        return _cast(_read(plan, whole), kind), ""
    data = _read(parts, whole)
    watch.noting = watch.noting and note()
    settled = records and watch.noting and watch.plain
    compared = (_look_at(data), _look_at(seen)) if settled else (data, seen)
    lacking = _find_unexplained(parts, *compared, _find_rounding(run, seen, plan.precision))
    if not lacking:
        watch.close()
    if parts is plan:
        return _cast(data, kind), lacking
    del data, seen, compared  # not to be held beside the entries
    return _cast(_read(plan, whole), kind), lacking


def _run_passes(run: VectorMap, plan: Plan, compares: bool, chunk_size: Any, watch: Watch, products: list) -> Any:
    """Add the products to a list, as rows of leaves; return that with the vector drawn at random, if it compares."""
    seen: Any = None
    drawn = plan.drawn if compares else None
    if plan.forward:
        seeds = Seeds(plan.pushed, plan.pushes, drawn, None if plan.cut is None else plan.origins, plan.cut_pushed)
        seen = _multiply(run.push(seeds, chunk_size, watch), seeds, plan, products)
    if plan.pulls:
        seeds = Seeds(plan.pulled, plan.pulls, None if plan.forward else drawn, None, plan.cut_pulled)
        last = _multiply(run.pull(seeds, chunk_size, watch), seeds, plan, products)
        seen = seen if plan.forward else last
    return seen


def _multiply(found: Iterator, seeds: Seeds, plan: Plan, products: list) -> Any:
    """Add the products with the colours to a list; return that with the vector drawn at random."""
    seen: Any = None
    length = plan.pushed.size + plan.pulled.size - seeds.length
    for leaves in found:
        if sum(rows.shape[1] for rows in leaves) != length:
            raise OtherSize
        if seeds.drawn is not None and seen is None:
            seen = _add_up_origins(plan, _join([[rows[:1] for rows in leaves]]))
            leaves = [rows[1:] for rows in leaves]
        if len(leaves[0]) or not seeds.count:
            products.append(leaves)
        del leaves  # not to be held beside the next
    return seen


def _find_kind(plan: Plan, run: VectorMap) -> Any:
    """Return the dtype of products where no gathers are cut: of results, or in reverse and of gradients of inputs."""
    parts = plan.inner or plan
    if plan.symmetric or not parts.pushes:
        return run.kind
    results = run.results[: len(run.results) - len(plan.cut.operands)]
    return np.result_type(*results, *([run.kind] if parts.pulls or not results else []))


def _cast(data: Any, kind: Any) -> Any:
    return data if kind is None or data.dtype == kind else data.astype(kind)


def _join(products: list, one: bool = False) -> Any:
    """Return all numbers of rows of leaves in one vector, and behind them a one; the list is emptied meanwhile."""
    if any(is_traced(leaves) for leaves in products):
        whole = np.concatenate([np.concatenate(leaves, axis=1).reshape(-1) for leaves in products])
        return np.concatenate([whole, like(whole, np.ones(1, whole.dtype))]) if one else whole
    if len(products) == 1 and len(products[0]) == 1 and not one:
        return products.pop()[0].reshape(-1)
    kind = np.result_type(*[rows.dtype for leaves in products for rows in leaves])
    whole, start = np.empty(sum(rows.size for leaves in products for rows in leaves) + one, kind), 0
    products.reverse()
    while products:
        leaves = products.pop()
        count, width = len(leaves[0]), sum(rows.shape[1] for rows in leaves)
        stop = start + count * width
        np.concatenate(leaves, axis=1, out=whole[start:stop].reshape(count, width))
        start = stop
    whole[start:] = 1
    return whole


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(plan: Plan, whole: Any) -> Any:
    """Return the entries of the matrix, read off the numbers of all products."""
    if type(whole) is not np.ndarray:
        data, more = _multiply_terms(plan.first, whole), plan.more
        return data if more is None else at(data)[more.entries].add(_multiply_terms(more, whole))
    data = np.empty(plan.first.take.size, whole.dtype)
    for some, values in _compute_terms(plan.first, whole):
        data[some] = values
    if plan.more is not None:
        _add_sums(data, plan.more, whole)
    return data


def _add_sums(data: Any, more: Terms, whole: Any) -> None:
    """Add the further terms to their entries; long sums are computed by themselves first."""
    if more.take.size < _LONG * more.summed.size:
        entries = more.entries
        for some, values in _compute_terms(more, whole):
            np.add.at(data, entries[some], values)
        return
    many, stop = max(1, _SOME * more.summed.size // more.take.size), 0
    for i in range(0, more.summed.size, many):
        ends = np.cumsum(more.counts[i : i + many], dtype=np.intp)
        start, stop = stop, stop + int(ends[-1])
        sums = np.add.reduceat(_multiply_terms(more, whole, slice(start, stop)), np.concatenate([_NO_TERMS, ends[:-1]]))
        np.add.at(data, more.summed[i : i + many], sums)


def _compute_terms(terms: Terms, whole: Any) -> Iterator[tuple[slice, Any]]:
    """Compute terms some at a time: NumPy takes by numbers of eight bytes, and makes them."""
    for start in range(0, terms.take.size, _SOME):
        some = slice(start, start + _SOME)
        yield some, _multiply_terms(terms, whole, some)


def _multiply_terms(terms: Terms, whole: Any, some: slice = slice(None)) -> Any:
    values = _take(whole, terms.take[some])
    return values if terms.factors is None else values * _take(whole, terms.factors[some])


def _take(whole: Any, places: Any) -> Any:
    return whole.take(places, mode="clip") if type(whole) is np.ndarray else np.take(whole, like(whole, places))


def _add_up_origins(plan: Plan, seen: Any) -> Any:
    """Return a product with the matrix from one with that of the function between its gathers."""
    if plan.cut is None or (plan.forward and not plan.symmetric):
        return seen
    if type(seen) is np.ndarray:
        return np.bincount(plan.origins, seen, plan.pattern.shape[1]).astype(seen.dtype, copy=False)
    return at(np.zeros_like(seen, shape=(plan.pattern.shape[1],)))[plan.origins].add(seen)


# --- the check --------------------------------------------------------------------------------------------------------


def _look_at(x: Any) -> Any:
    """Return a value that is recorded as it is now, which leaves no question in the program."""
    return x.wrapped if type(x) is Tracer and type(x.wrapped) is not Tracer else x


def _find_rounding(run: VectorMap, seen: Any, precision: Any) -> float:
    """Return the rounding of the shortest numbers that are known to be computed with."""
    kinds = [seen.dtype, *[x.dtype for x in run.xs], *([] if precision is None else [precision])]
    return float(max(np.finfo(kind).eps for kind in kinds))


def _find_unexplained(plan: Plan, data: Any, seen: Any, rounding: float) -> str:
    """Compare a product with what was seen, up to rounding."""
    close = rounding**0.5
    if type(data) is np.ndarray:
        product = _multiply_plain(plan, data)
        if not _is_far_anywhere(product, seen, close):
            return ""
        size = _multiply_plain(plan, np.abs(data))
    else:
        rows, columns = plan.places if plan.forward else plan.places[::-1]
        terms, zero = data * like(data, plan.drawn.astype(data.dtype)[columns]), np.zeros_like(seen)
        product, size = at(zero)[rows].add(terms), at(zero)[rows].add(np.abs(terms))
    largest = np.max(size) if size.size else 0.0  # CuPy has no initial=
    far = _are_far(product, seen, size, largest, close)
    if not np.any(far):
        return ""
    return f"lacks places in {'row' if plan.forward else 'column'} {int(np.argmax(stop_gradient(far)))}"


def _are_far(product: Any, seen: Any, size: Any, largest: Any, close: float) -> Any:
    return np.abs(product - seen) > close * (size + close * largest)


def _is_far_anywhere(product: Any, seen: Any, close: float) -> bool:
    """Compare with the sizes of the numbers of a product, which are at most those of its terms, some at a time."""
    largest = max(product.max(initial=0), -product.min(initial=0))
    for start in range(0, product.size, _SOME):
        some = slice(start, start + _SOME)
        if np.any(_are_far(product[some], seen[some], np.abs(product[some]), largest, close)):
            return True
    return False


def _multiply_plain(plan: Plan, data: Any) -> Any:
    pattern = plan.pattern
    whole = scipy.sparse.csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    return (whole if plan.forward else whole.T) @ plan.drawn.astype(data.dtype, copy=False)
