"""``checkpoint``: recompute a part of the program in the backward pass instead of keeping its intermediate values.

Under reverse mode the function runs as usual; then the records it left on the tape are dropped and replaced by one
that knows how to run the function again. When the sweep arrives there, the run is repeated at the end of the tape,
swept, and dropped again. Since the tape's positions before the call stay valid, values that the function
takes from outside its arguments are treated right without being found. The positions of what was dropped are given to
nothing else: a cotangent that arrives there is one of a value that the function kept, and an error.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.core.runs import effects
from fad.core.runs.overlay import swapped_in
from fad.core.runs.running import Running
from fad.core.runs.transformed import as_run, transformed
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer, up_to_date, youngest
from fad.core.tracing.views import contents_of, fresh, snapshot, unwrap
from fad.errors import ImpureFunctionError, ItemAssignmentError, LeakedTracerError
from fad.introspect.reachable import reach
from fad.transforms.arguments.check import was_changed
from fad.transforms.arguments.mutation import Earlier
from fad.transforms.batching.batch_trace import BatchTrace
from fad.transforms.outside.handles import Handles
from fad.transforms.outside.kept_names import keep_names
from fad.transforms.reverse.slopes import find_care
from fad.transforms.reverse.tape import CALL
from fad.transforms.vjp import VJPTrace

_POLICIES = ("nothing", "everything")
_INTO_COPY = "write into a copy, x = x.copy(), and return it"


def checkpoint(
    fun: Callable | None = None,
    *,
    policy: str | None = None,
    prevent_cse: bool = True,
    static_argnums: int | Sequence[int] = (),
) -> Callable:
    """Return a function equal to `fun` that keeps only its arguments for reverse mode, and computes the rest twice.

    Parameters
    ----------
    fun : callable
        A pure function; ``@checkpoint`` and ``@checkpoint(policy=...)`` both work.
    policy : None, "nothing" or "everything", keyword only
        What of the intermediate values to keep; None is "nothing".
    prevent_cse : bool, keyword only
        Accepted for compatibility with JAX: what is computed twice is never merged.
    static_argnums : int or tuple of int, keyword only
        Accepted for compatibility with JAX; arguments are never traced here unless they are traced already.

    Returns
    -------
    callable
        Values and derivatives of every order are those of `fun`. Forward mode is not affected.

    Raises
    ------
    ImpureFunctionError
        in the backward pass, if the second run gives other values than the first, as with a NumPy random generator.
    LeakedTracerError
        in the backward pass, if a value was used that `fun` kept in a list, an attribute or a variable from outside.

    Examples
    --------
    >>> import fad, numpy as np
    >>> fad.grad(fad.checkpoint(lambda x: np.sin(np.sin(x))))(0.0)
    np.float64(1.0)
    """
    if policy is not None and policy not in _POLICIES:
        raise ValueError(f"policy of checkpoint must be None or one of {_POLICIES}, not {policy!r}")
    if fun is None:
        return functools.partial(checkpoint, policy=policy, static_argnums=static_argnums)
    if policy == "everything":
        return fun

    @transformed("checkpoint", fun)
    def wrapper(*args, **kwargs):
        leaves, in_tree = tree.flatten((args, kwargs))
        captured = _find_captured(fun)
        if not _is_on_tape([*leaves, *captured]):
            return as_run(fun)(*args, **kwargs)
        own = keep_names(fun)

        def flat(xs):
            given = tree.unflatten(in_tree, xs)
            a, k = given
            before = tree.leaves(given)
            ys, out_tree = tree.flatten(as_run(own)(*a, **k))
            if was_changed(given, in_tree, before, xs):
                raise _has_changed("a list, dictionary or object among its arguments", "return what is new")
            roots, places = _find_roots(ys, [*xs, *captured])
            seen[0] = out_tree, places
            return roots

        seen: list = [None]
        roots = _run(flat, leaves, own, captured)
        out_tree, places = seen[0]
        return tree.unflatten(out_tree, [_take_view(place, [*leaves, *captured], roots) for place in places])

    return wrapper


def _is_on_tape(xs: list) -> bool:
    """Return whether a tape keeps what is computed of some values, which may be those of a batch."""
    trace = youngest(xs)
    while isinstance(trace, BatchTrace):
        xs = list(map(trace.lower, xs))
        trace = youngest(xs)
    return isinstance(trace, VJPTrace)


def _find_roots(ys: list, xs: list) -> tuple[list, list]:
    """Return the arrays of which results are views, and for each result which one it is a view of, and how.

    A result is, as without checkpoint, the argument that the function gives back or a view of it, and so is one of
    another result: what is written into one is written into the other. An argument counts as minus one and less.
    """
    known = {id(x): -1 - i for i, x in enumerate(xs) if type(x) in (Tracer, np.ndarray)}
    chains = [_follow(up_to_date(y)) if type(y) is Tracer else (y, []) for y in ys]
    shared = Counter(id(root) for root, _ in chains)
    roots: list = []
    places: list[tuple] = []
    for y, (root, path) in zip(ys, chains, strict=True):
        if id(root) not in known and shared[id(root)] == 1:
            root, path = y, []
        if id(root) not in known:
            known[id(root)] = len(roots)
            roots.append(root)
        places.append((known[id(root)], path))
    return roots, places


def _follow(y: Tracer) -> tuple[Tracer, list]:
    """Return the array that a result is a view of in the end, and the operations that take the view."""
    path = []
    while type(y.memory) is tuple:
        y, prim, params, _ = y.memory
        path.append((prim, params))
    return y, path[::-1]


def _take_view(place: tuple, given: list, roots: list) -> Any:
    k, path = place
    x = roots[k] if k >= 0 else given[-1 - k]
    for prim, params in path:
        x = bind(prim, x, **params)
    return x


def _find_captured(fun: Callable) -> list:
    """Return the tracers in a function's closure: they say which trace to relieve, nothing more."""
    found = []
    for cell in getattr(fun, "__closure__", None) or ():
        try:
            found += tree.leaves(cell.cell_contents)
        except ValueError:  # a cell that is still empty
            continue
    return [x for x in found if type(x) is Tracer]


def _run(flat: Callable, xs: list, fun: Callable, captured: list) -> list:
    trace = youngest([*xs, *captured])
    if isinstance(trace, VJPTrace):
        return _relieve(trace, flat, xs, fun)
    if isinstance(trace, BatchTrace):
        return _run_batched(trace, flat, xs, fun, captured)
    return flat(xs)


def _relieve(trace: VJPTrace, flat: Callable, xs: list, fun: Callable) -> list:
    tape = trace.tape
    start, mark = len(tape), 0 if trace.watch is None else trace.watch.mark()
    kept = trace.keep(xs, [-1] * len(xs))
    found = list(reach(fun))
    earlier = Earlier(x for x in found if type(x) is np.ndarray)
    handles = Handles(found)
    given = list(map(_handle, xs))  # and plain arrays themselves, which results may be views of
    plain, xs = xs, list(map(_handle, kept))
    exchanged = swapped_in()
    with effects.recording() as log:
        ys = _read_now(flat(given))
    _refuse_writes(given)
    if any(map(operator.is_not, kept, trace.keep(plain, [-1] * len(plain)))):
        raise _has_changed("its argument", _INTO_COPY)
    if handles.were_written():
        raise _has_changed("an array from outside", "make the array an argument, and return a changed copy")
    if len(tape) == start:
        return ys
    n = len(tape) - start
    care = find_care(tape, start)
    tape[start:] = [(CALL, (), _refuse_kept, n), *[None] * (n - 1)]  # places that nothing else gets
    if trace.watch is not None:
        trace.watch.release(mark)
    mine = [i for i, y in enumerate(ys) if type(y) is Tracer and y.owner is trace and y.info >= start]
    out = list(ys)
    before = [_sample(ys[i]) for i in mine]

    def again():
        # Not what is known of the function by its code: names that it calls may stand for other functions now.
        with (
            effects.replaying(log), earlier.restore(), handles.restore(),
            Running(fun, as_before=exchanged, order=trace.order),
        ):  # fmt: skip
            ys = _read_now(flat(list(map(_handle, xs))))
        if len(ys) != len(out) or not all(map(_agree, before, [_sample(ys[i]) for i in mine])):
            raise ImpureFunctionError(
                "a function under checkpoint gave other values when it ran again for the backward pass: it depends on "
                "something besides its arguments, as on time, NumPy's random generators or a changed variable. Draw "
                "random numbers before and pass them as an argument, or use fad.random with a key"
            )
        return [ys[i] for i in mine]

    traced = trace.rerun(again, _apart([ys[i].wrapped for i in mine]), care)
    for i, y in zip(mine, traced, strict=True):
        out[i] = y
    return out


def _read_now(ys: list) -> list:
    """Return results as they are at the end of the function: views of arrays that were written are taken again."""
    return [up_to_date(y) if type(y) is Tracer else y for y in ys]


def _apart(values: list) -> list:
    """Return values of results that share no memory: they are values, and a write into one is not one into others."""
    out: list = []
    for v in values:
        out.append(fresh(v, out))
    return out


def _refuse_kept(_: list) -> list:
    """Raise where a cotangent arrives at what the function computed and did not return."""
    raise LeakedTracerError(
        "a traced value that a function under checkpoint had computed was used outside of it, where its derivative is "
        "no more: checkpoint keeps the results alone. It was kept in a list, an attribute or a variable from outside; "
        "return it from the function instead, or keep fad.stop_gradient(x), the bare numbers"
    )


def _handle(x: Any) -> Any:
    """Return a handle of the function's own on an argument: what it writes there is not seen outside."""
    return snapshot(x) if type(x) is Tracer else x


def _refuse_writes(given: list) -> None:
    if any(type(x) is Tracer and contents_of(x) != (0, 0) for x in given):
        raise _has_changed("its argument", _INTO_COPY)


def _has_changed(what: str, instead: str) -> ItemAssignmentError:
    return ItemAssignmentError(
        f"a function under checkpoint changed {what} in place, and it runs again in the backward pass: {instead}"
    )


def _sample(y: Any) -> Any:
    """Return a few of a result's numbers, which tell a second run on the same values from one on others."""
    y = unwrap(y)
    if type(y) is not np.ndarray:
        return y if isinstance(y, np.generic) else None  # to look at a device's numbers would wait for them
    return y.flat[:: max(1, y.size // 16)].copy()


def _agree(a: Any, b: Any) -> bool:
    """Return whether samples are equal up to rounding, which may depend on where an array lies in memory."""
    if a is None or b is None:
        return True
    if np.shape(a) != np.shape(b):
        return False
    if a.tobytes() == b.tobytes():
        return True
    size = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3 * float(size), equal_nan=True))


def _run_batched(trace: BatchTrace, flat: Callable, xs: list, fun: Callable, captured: list) -> list:
    """Relieve a trace below vmap: run on the batched values there, waking the finished vmap for the second run."""
    flags: list = [None]
    mine = [_mine(x, trace) for x in xs]

    def below(values):
        was, trace.dead = trace.dead, False
        try:
            batch = [tracer(v, trace, None) if m else v for v, m in zip(values, mine, strict=True)]
            ys = flat(batch)
        finally:
            trace.dead = was
        _refuse_writes([x for x, m in zip(batch, mine, strict=True) if m])
        flags[0] = [_mine(y, trace) for y in ys]
        return [trace.lower(y) for y in ys]

    values = [trace.lower(up_to_date(x)) if m else x for x, m in zip(xs, mine, strict=True)]
    ys = _run(below, values, fun, [trace.lower(x) for x in captured])
    return [tracer(y, trace, None) if b else y for y, b in zip(ys, flags[0], strict=True)]


def _mine(x: Any, trace: Trace) -> bool:
    return type(x) is Tracer and up_to_date(x).owner is trace
