"""Control flow as functions: cond, switch, while_loop, fori_loop, scan, map, associative_scan, with JAX's signatures.

Ordinary Python ``if`` and ``for`` work in every transform. These functions are for programs written for JAX, for loops
whose batch elements stop at different times under ``vmap``, and for long loops whose memory in reverse mode must stay
bounded: `scan` and `fori_loop` keep only some of the states, and compute the others again.

Without ``jit`` the steps are run one by one, here. While a program is recorded, `fad.control_flow.record_loop` and
`fad.control_flow.cond` make one operation of a loop or choice, where its body can be recorded.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.control_flow import cond as branches_
from fad.control_flow import record_loop
from fad.control_flow.run_scan import (
    check_choice,
    check_pair,
    check_state,
    items_of,
    may_write,
    next_state,
    own_state,
    run_scan,
    stack_results,
)
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, youngest
from fad.core.tracing.views import finding_writes, is_outside
from fad.transforms.arguments.undo_writes import outside
from fad.transforms.batching.batch_trace import BatchTrace
from fad.transforms.eval_shape import eval_shape
from fad.transforms.vmap import vmap
from fad.typing import ArrayLike, PyTree


def cond(pred: ArrayLike, true_fun: Callable, false_fun: Callable, *operands: PyTree) -> PyTree:
    """Return ``true_fun(*operands)`` if `pred` holds, else ``false_fun(*operands)``; only one of them is run.

    Returns
    -------
    the result of the branch

    Parameters
    ----------
    pred : bool, or an array of one element
        Under ``vmap``, batch elements that disagree are split, and each goes its own way.
    true_fun, false_fun : callable
    *operands : arrays or pytrees

    Raises
    ------
    BatchingError
        if the branches return trees of different structures, and `vmap` runs both.

    Examples
    --------
    >>> import fad
    >>> fad.grad(lambda x: cond(x > 0, lambda v: v * v, lambda v: -v, x))(3.0)
    np.float64(6.0)
    """
    if type(pred) is Tracer:
        truth = pred if pred.dtype == bool else np.not_equal(pred, 0)
        recorded = branches_.choose(truth, (false_fun, true_fun), operands)
        if recorded is not None:
            return recorded[0]
    return _call(true_fun if pred else false_fun, *operands)


def _call(fun: Callable, *operands: Any) -> Any:
    """Call a function with operands as values: of its own, if its code writes into arrays."""
    return fun(*own_state(operands)) if may_write(fun) else fun(*operands)


def switch(index: ArrayLike, branches: Sequence[Callable], *operands: PyTree) -> PyTree:
    """Return ``branches[index](*operands)``, the index clamped to those there are.

    Raises ValueError without branches.

    Parameters
    ----------
    index : int, or an array of one integer; a bool is 0 or 1
        Which branch runs; it is brought into 0 ... len(branches) - 1.
    branches : sequence of callables
        Of the operands, with results of one structure.
    *operands
        What the branch is called with.

    Returns
    -------
    the result of the branch

    Raises
    ------
    ValueError
        if there is no branch.
    TypeError
        if the index is no integer.

    Examples
    --------
    >>> switch(7, [lambda x: x, lambda x: 2 * x], 3.0)
    6.0
    """
    if not branches:
        raise ValueError("switch needs at least one branch")
    index = _as_integer(index, "the index of switch")
    recorded = branches_.choose(index, branches, operands)
    if recorded is not None:
        return recorded[0]
    return _call(branches[min(max(int(index), 0), len(branches) - 1)], *operands)


def _as_integer(x: Any, what: str) -> Any:
    """Return a whole number or a boolean as a number or scalar; raise if it is none."""
    if isinstance(x, int):
        return x
    given = repr(x)
    if isinstance(x, (np.ndarray, np.generic)) or type(x) is Tracer:
        if x.dtype.kind in "biu" and x.size == 1:
            return x.reshape(())
        given = f"{'an array of shape ' + str(x.shape) if x.shape else 'a number'} of dtype {x.dtype}"
    instead = "" if np.size(x) != 1 else ". Write int(i), or i.astype(int) for a traced one"
    raise TypeError(f"{what} cannot be interpreted as an integer: it is {given}{instead}")


def while_loop(cond_fun: Callable, body_fun: Callable, init: PyTree) -> PyTree:
    """Return the state after ``while cond_fun(state): state = body_fun(state)``.

    Parameters
    ----------
    cond_fun : callable
        State -> bool.
    body_fun : callable
        State -> state, of the same structure, shapes and dtypes.
    init : pytree
        The first state.

    Returns
    -------
    pytree
        Differentiable in both modes. Under ``vmap`` the loop runs until the last batch element is done; one that
        is done keeps its state.

    Raises
    ------
    TreeMismatchError, ShapeMismatchError, DtypeMismatchError
        if the body changes the structure, a shape or a dtype.

    Examples
    --------
    >>> import fad
    >>> newton = lambda a: while_loop(lambda x: abs(x * x - a) > 1e-9, lambda x: 0.5 * (x + a / x), a)
    >>> round(fad.grad(newton)(4.0), 9)
    np.float64(0.25)
    """
    recorded = record_loop.while_loop(cond_fun, lambda s: check_state(body_fun(s), s, "the body of while_loop"), init)
    if recorded is not None:
        return recorded[0]
    state, writes = own_state(init), may_write(body_fun)
    while True:
        go = cond_fun(state)
        trace = youngest([go])
        if isinstance(trace, BatchTrace):
            return _run_batched_while(cond_fun, body_fun, state, go)
        if not go:
            return state
        new = check_state(body_fun(state), state, "the body of while_loop")
        state = next_state(new, state) if writes else new


def _run_batched_while(cond_fun: Callable, body_fun: Callable, state: Any, go: Tracer) -> Any:
    """Run a loop whose batch elements stop at different times: those that are done keep their state.

    They keep what stands in the arrays around the loop, too, into which a step writes.
    """
    while type(go) is Tracer and isinstance(go.owner, BatchTrace):
        if not np.any(go.wrapped):
            return state
        given = own_state(state)
        with finding_writes(undoable=True, since=Trace().birth) as written:
            new = check_state(body_fun(given), state, "the body of while_loop")
            state = tree.map(lambda old, n, go=go: np.where(_like(go, n), n, old), state, new)
            goes_on = cond_fun(state)
        _take_back(written, go, given)
        go = np.logical_and(go, goes_on)
    return state


def _take_back(written: finding_writes, go: Tracer, given: Any) -> None:
    """Let arrays that a step wrote hold what they held where the batch elements are done; not what it was given."""
    own = {id(x) for x in tree.leaves(given)}
    for root, (_, _, _, then) in written.found:
        if id(root) not in own and not is_outside(root) and not root.owner.dead:
            root[...] = np.where(_like(go, root), root, then)


def _like(go: Any, x: Any) -> Any:
    return go.reshape((1,) * np.ndim(x)) if np.ndim(x) else go


def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable,
    init: PyTree,
    *,
    unroll: int | bool | None = None,
    checkpoint: str = "sqrt",
) -> PyTree:
    """Return the state after ``for i in range(lower, upper): state = body_fun(i, state)``.

    Returns
    -------
    pytree
        The state after the loop.

    Parameters
    ----------
    lower, upper : int
    body_fun : callable
        ``(i, state) -> state``, of the same structure, shapes and dtypes.
    init : pytree
    unroll : int or bool, keyword only
        Accepted for compatibility with JAX, and ignored.
    checkpoint : "sqrt", "binomial" or "none", keyword only
        As in :func:`scan`.

    Raises
    ------
    TreeMismatchError
        if the body returns a tree of another structure than it was given.
    ShapeMismatchError
        if it returns an array of another shape.
    TypeError
        if a bound is no integer.

    Examples
    --------
    >>> fori_loop(0, 4, lambda i, x: x + i, 0)
    6
    """
    check_choice(checkpoint)
    what = "the body of fori_loop"

    def step(state, i):
        return check_state(body_fun(start + i, state), state, what), None

    lower, upper = [_as_integer(x, "a bound of fori_loop") for x in (lower, upper)]
    bounds = record_loop.steps_between(lower, upper)
    if bounds is not None:
        n, start = bounds
        recorded = record_loop.scan(step, init, None, n, False, checkpoint, index=True)
        if recorded is not None:
            return recorded[0]
    start, stop = int(lower), int(upper)
    n = max(0, stop - start)
    recorded = record_loop.scan(step, init, None, n, False, checkpoint, index=True)
    if recorded is not None:
        return recorded[0]
    run = lambda state, i: (body_fun(start + i, state), None)
    return run_scan(run, init, lambda numbers: numbers, n, False, checkpoint, what, may_write(body_fun))[0]


def scan(
    f: Callable,
    init: PyTree,
    xs: PyTree | None = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    unroll: int = 1,
    checkpoint: str = "sqrt",
) -> tuple:
    """Run ``carry, y = f(carry, x)`` along the leading axis of `xs`; return the last carry and the stacked y.

    Parameters
    ----------
    f : callable
        ``(carry, x) -> (carry, y)``, pytrees; the carry keeps its structure, shapes and dtypes.
    init : pytree
        The first carry.
    xs : pytree of arrays, or None
        What is run over; None for a loop of `length` steps.
    length : int
    reverse : bool
        Run from the last element to the first; y stay with their x.
    unroll : int, keyword only
        Accepted for compatibility with JAX.
    checkpoint : "sqrt", "binomial" or "none", keyword only
        What reverse mode keeps of a long loop: the carry after every √n steps ("sqrt": the steps are computed twice),
        about 2 log n carries ("binomial": up to log n times), or everything ("none"). What takes less than 32 MB is
        kept in any case.

    Returns
    -------
    (carry, ys)
        Of no steps, `ys` are empty arrays of the types that a step on ones gives.

    Raises
    ------
    ValueError
        if lengths disagree, none is given or `length` is negative; TreeMismatchError, ShapeMismatchError,
        DtypeMismatchError for the carry.
    TypeError
        if `length` is no integer.

    Examples
    --------
    >>> import numpy as np
    >>> scan(lambda total, x: (total + x, total), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 1., 3.]))
    """
    if any(np.ndim(x) == 0 for x in tree.leaves(xs)):
        raise ValueError("scan and map run over the first axis of arrays, but were given a number, which has none")
    lengths = {np.shape(x)[0] for x in tree.leaves(xs)}
    if length is not None:
        lengths.add(_check_length(length))
    if len(lengths) != 1:
        raise ValueError(
            f"scan runs over arrays of one length, but was given {sorted(lengths)}"
            if lengths
            else "scan needs xs, or a length"
        )

    what = "the function of scan"

    def step(carry, x):
        new, y = check_pair(f(carry, x), what)
        return check_state(new, carry, what), y

    n = lengths.pop()
    check_choice(checkpoint)
    if n == 0:
        return own_state(init), _no_results(f, step, init, xs)
    recorded = record_loop.scan(step, init, xs, n, reverse, checkpoint, index=False)
    if recorded is not None:
        return recorded
    writes = may_write(f)
    items = (lambda numbers: itertools.repeat(None, len(numbers))) if xs is None else items_of(xs, writes)
    carry, ys = run_scan(f, init, items, n, reverse, checkpoint, what, writes)
    return carry, stack_results(ys)


def _check_length(length: Any) -> int:
    """Return a number of steps as an int."""
    try:
        n = operator.index(length)
    except TypeError:
        raise TypeError(f"length of scan is a number of steps, an integer, but was given {length!r}") from None
    if n < 0:
        raise ValueError(f"length of scan is a number of steps, at least 0, but was given {n}")
    return n


def _no_results(f: Callable, step: Callable, init: Any, xs: Any) -> Any:
    """Return the stacked results of no step: their types are those of a step on ones, which leaves nothing written."""
    x = tree.map(lambda a: np.ones(np.shape(a)[1:], a.dtype)[()], xs)
    arrays, written = outside(f), finding_writes(undoable=True)
    try:
        with written:
            types = eval_shape(lambda: step(own_state(init), x)[1])
    finally:
        written.undo()
        arrays.undo()
    return tree.map(lambda t: np.zeros((0, *t.shape), t.dtype), types)


def map(f: Callable, xs: PyTree, *, batch_size: int | None = None) -> PyTree:
    """Return ``f`` of each element along the leading axis, stacked: one after the other, or in batches.

    Returns
    -------
    array or tree of arrays
        The results, stacked along a leading axis.

    Parameters
    ----------
    f : callable
    xs : array or pytree of arrays of one length
    batch_size : int, keyword only
        How many elements to run at once, by ``vmap``; one if not given.

    Raises
    ------
    ValueError
        if the arrays have different lengths.

    Examples
    --------
    >>> import numpy as np
    >>> map(lambda x: x * x, np.array([1.0, 2.0, 3.0]))
    array([1., 4., 9.])
    """
    if batch_size is not None:
        return vmap(f, chunk_size=batch_size)(xs)
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def associative_scan(fn: Callable, elems: PyTree, reverse: bool = False, axis: int = 0) -> PyTree:
    """Return all partial combinations along an axis, in about 2 log n calls of `fn` on whole arrays.

    Returns
    -------
    array or tree of arrays
        Of the shape of `elems`.

    Parameters
    ----------
    fn : callable
        ``fn(a, b)``, associative, of arrays (or trees of arrays) that hold many elements along `axis`.
    elems : array or pytree of arrays
    reverse : bool
        Combine from the end.
    axis : int

    Raises
    ------
    ValueError
        if the arrays have different lengths along the axis.

    Examples
    --------
    >>> import numpy as np
    >>> associative_scan(np.add, np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 1.,  3.,  6., 10.])
    """
    leaves, structure = tree.flatten(elems)
    if not leaves:
        return elems
    if any(np.ndim(x) == 0 for x in leaves):
        raise ValueError("associative_scan runs over an axis of arrays, but was given a number, which has none")
    axis = axis % np.ndim(leaves[0])
    if len({x.shape[axis] for x in leaves}) != 1:
        raise ValueError("associative_scan runs over arrays of one length along the axis")

    def cut(x, *bounds):
        return x[(slice(None),) * axis + (slice(*bounds),)]

    def combine(a: list, b: list) -> list:
        return tree.leaves(_call(fn, tree.unflatten(structure, a), tree.unflatten(structure, b)))

    def partial(xs: list) -> list:
        n = xs[0].shape[axis]
        if n < 2:
            return xs
        odd = partial(combine([cut(x, 0, n - 1, 2) for x in xs], [cut(x, 1, None, 2) for x in xs]))
        before = odd if n % 2 else [cut(x, 0, -1) for x in odd]
        rest = [cut(x, 2, None, 2) for x in xs]
        even = combine(before, rest) if rest[0].shape[axis] else rest
        even = [np.concatenate([cut(x, 0, 1), e], axis) for x, e in zip(xs, even, strict=True)]
        return [_interleave(e, o, axis) for e, o in zip(even, odd, strict=True)]

    flip = [np.flip(x, axis) for x in leaves] if reverse else leaves
    out = partial(flip)
    return tree.unflatten(structure, [np.flip(x, axis) for x in out] if reverse else out)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """Return even[0], odd[0], even[1], ... along an axis; `even` may be one longer."""
    n = odd.shape[axis]
    head = (slice(None),) * axis
    pairs = np.stack([even[(*head, slice(0, n))], odd], axis + 1)
    shape = list(even.shape)
    shape[axis] = 2 * n
    joined = pairs.reshape(tuple(shape))
    return joined if even.shape[axis] == n else np.concatenate([joined, even[(*head, slice(n, None))]], axis)
