"""Loops run step by step, without a recording, and what reverse mode keeps of a long one.

The first steps show how much memory one takes. If all of them would take too much, stretches of the others run under
`checkpoint`: the state at their beginning is kept, and the rest computed again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy import ndarray

from fad import tree
from fad.control_flow.bodies.subgraph import is_weak
from fad.control_flow.derivatives.checkpoints import KEPT, SHORT
from fad.core.handles.buffers import borrow
from fad.core.primitives.cotangent import Masking
from fad.core.runs.effects import parting
from fad.core.runs.overlay_needs import needs_of
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import same_structure
from fad.core.tracing.views import copy_layout, snapshot
from fad.core.tracing.weak import WeakFloat
from fad.errors import DtypeMismatchError, ShapeMismatchError
from fad.ops.places.indexing import getitem_p
from fad.transforms.checkpoint import checkpoint as _checkpoint
from fad.transforms.tape_hooks import saved_at_most, saved_bytes
from fad.transforms.vjp import VJPTrace

_FEW = 3  # steps that may show that all take little memory
_SAMPLE = 11  # steps after which it is known how much one takes
_BARE = {Tracer, ndarray, np.float64, float, type(None)}
_PLAIN = {ndarray, np.float64}
_SCALARS = {np.float64, WeakFloat, type(None)}
_SMALL = 1 << 10  # bytes of rows of which all are taken at once
_CHOICES = ("sqrt", "binomial", "none")


def check_choice(checkpoint: str) -> None:
    """Raise ValueError for a name that says nothing of what to keep."""
    if checkpoint not in _CHOICES:
        raise ValueError(f"checkpoint of a loop must be one of {_CHOICES}, not {checkpoint!r}")


def run_scan(
    step: Callable, init: Any, items: Callable, n: int, reverse: bool, checkpoint: str, what: str, writes: bool
) -> tuple[Any, list]:
    """Run the steps ``carry, y = step(carry, x)``; return the last carry and the list of y in the order of the x.

    ``items(range)`` gives the x of some steps; `what` the step is, in words, for an error; `writes` says whether the
    function of the user's in it may write into arrays.
    """

    def steps(carry: Any, start: int, stop: int) -> tuple[Any, list]:
        numbers = range(n - 1 - start, n - 1 - stop, -1) if reverse else range(start, stop)
        xs, ys = iter(items(numbers)), []
        carry = own_state(carry)
        for x in itertools.islice(xs, _FEW):
            new, y = check_pair(step(carry, x), what)
            if not is_alike(new, carry):
                check_state(new, carry, what)
            if writes or (new is carry and new is not None):
                new, y = next_state(new, carry), as_now(y)
            ys.append(y)
            carry = new
        checked, append = carry, ys.append  # steps may take as long as a look at what they give
        for x in xs:
            out = step(carry, x)
            new, y = out if type(out) is tuple and len(out) == 2 else check_pair(out, what)
            if writes or (new is carry and new is not None):
                new, y = next_state(new, carry), as_now(y)
            append(y)
            carry = new
        if not is_alike(carry, checked):
            check_state(carry, checked, what)
        return carry, ys

    tapes = _find_tapes(step, init, items) if n > SHORT and checkpoint != "none" else []
    if not tapes:
        carry, ys = steps(init, 0, n)
    else:
        start = [len(tape) for tape in tapes]
        carry, ys = steps(init, 0, _FEW)
        if n * sum(saved_at_most(tape[a:]) for tape, a in zip(tapes, start, strict=True)) <= _FEW * KEPT:
            carry, more = steps(carry, _FEW, n)
        else:
            carry, more = _run_sampled(steps, carry, tapes, start, n, checkpoint)
        ys += more
    return carry, ys[::-1] if reverse else ys


def check_pair(out: Any, what: str) -> tuple:
    """Check that a step gave two things."""
    if type(out) is not tuple or len(out) != 2:
        raise TypeError(f"{what} must return (carry, y), but it returned {type(out).__name__}")
    return out


def is_alike(new: Any, old: Any) -> bool:
    """Return whether a value, or a tuple of values, is beyond doubt of the type of another; that is soon found out."""
    if type(new) is Tracer and type(old) is Tracer and new.owner is old.owner:
        new, old = new.wrapped, old.wrapped
    kind = type(new)
    if kind is not type(old):
        return False
    if kind is ndarray:
        return new.dtype is old.dtype and new.shape == old.shape
    if kind in _SCALARS:
        return True
    if kind is tuple:
        return len(new) == len(old) and all(map(is_alike, new, old))
    return kind is Tracer and new.owner is old.owner and is_alike(new, old)


def check_state(new: Any, old: Any, what: str) -> Any:
    """Check that a loop's body gave back what it was given: structure, shapes and dtypes."""
    if is_alike(new, old):
        return new
    xs, structure = tree.flatten(new)
    ys, expected = tree.flatten(old)
    if structure != expected:
        same_structure(expected, structure, f"what {what} returns")
    for x, y in zip(xs, ys, strict=True):
        if x is y:
            continue
        if getattr(x, "shape", ()) != getattr(y, "shape", ()):
            raise ShapeMismatchError(
                f"{what} was given an array of shape {np.shape(y)} and returned one of shape {np.shape(x)}: "
                "the state must keep its shapes"
            )
        if hasattr(x, "dtype") and hasattr(y, "dtype") and x.dtype != y.dtype and not (is_weak(x) or is_weak(y)):
            raise DtypeMismatchError(
                f"{what} was given an array of dtype {y.dtype} and returned one of dtype {x.dtype}: "
                "the state must keep its dtypes, so start with the right one"
            )
    return new


def may_write(body: Callable) -> bool:
    """Return whether the code of a loop's body writes into arrays: what it is given and gives is copied then."""
    return bool(needs_of(body).spaces)


def own_state(state: Any) -> Any:
    """Return the state of a loop as values of its own: what a step writes into them is seen nowhere else."""
    with parting():
        return tree.map(_own, state)


def _own(x: Any) -> Any:
    y = borrow(x)
    return copy_layout(x) if y is x and type(x) is ndarray else y


def next_state(new: Any, state: Any) -> Any:
    """Return what a body that writes has given as a value: it may be an array that the next step writes."""
    return new if new is state else as_now(new)


def as_now(x: Any) -> Any:
    """Return what a body that writes has given, or is given, as it is now, whatever later steps write into it."""
    return _as_now(x) if type(x) in _BARE else tree.map(_as_now, x)


def _as_now(x: Any) -> Any:
    return snapshot(x) if type(x) is Tracer else copy_layout(x) if type(x) is ndarray else x


def _run_sampled(
    steps: Callable, carry: Any, tapes: list, start: list[int], n: int, checkpoint: str
) -> tuple[Any, list]:
    """Run the steps behind the first few: all of them on the tapes if that takes little memory, as some steps show."""
    first = _saved_since(tapes, start)
    carry, ys = steps(carry, _FEW, _SAMPLE)
    later = _saved_since(tapes, start) - first  # what all steps share is in the first
    if n * later <= (_SAMPLE - _FEW) * KEPT:
        carry, more = steps(carry, _SAMPLE, n)
    elif checkpoint == "sqrt":
        carry, more = _by_square_roots(steps, carry, _SAMPLE, n)
    else:
        carry, more = _by_halves(steps, carry, _SAMPLE, n)
    return carry, ys + more


def _saved_since(tapes: list, start: list[int]) -> int:
    return sum(saved_bytes(tape[a:]) for tape, a in zip(tapes, start, strict=True))


def items_of(xs: Any, writes: bool) -> Callable[[range], Iterable]:
    """Return the function from the numbers of some steps to their x."""
    arrays, structure = tree.flatten(xs)

    def items(numbers: range) -> Iterable:
        if writes or not arrays:
            return (tree.unflatten(structure, [as_now(x[i]) for x in arrays]) for i in numbers)
        rows = [_rows(x, numbers) for x in arrays]
        if arrays[0] is xs:
            return rows[0]
        return (tree.unflatten(structure, row) for row in zip(*rows, strict=True))

    return items


def _rows(x: Any, numbers: range) -> Iterable:
    """Return some consecutive rows of an array, from its first to its last or in the other order."""
    if type(x) is not ndarray:
        if not _is_on_tape(x):
            return (x[i] for i in numbers)
        if x.wrapped.nbytes > _SMALL * len(x):  # their cotangents would all be there before they lie in one array
            return (x.owner.index(getitem_p, x, (i,)) for i in numbers)
    first, last = sorted((numbers[0], numbers[-1]))
    part = x if last - first + 1 == len(x) else x[first : last + 1]
    rows = list(part) if type(part) is ndarray else _unstack(part)
    return rows if numbers.step > 0 else rows[::-1]


def _is_on_tape(x: Any) -> bool:
    """Return whether a value is one of reverse mode alone, in a program that does not write into arrays."""
    return type(x) is Tracer and type(x.owner) is VJPTrace and not x.owner.dead and type(x.wrapped) in _PLAIN


def _unstack(x: Tracer) -> list:
    """Return the rows of an array on a tape: one record for all, which gives one cotangent."""
    shape, dtype = x.wrapped.shape, x.wrapped.dtype

    def stack(cts: list) -> list:
        if Tracer in map(type, cts):
            return [np.stack([np.zeros(shape[1:], dtype) if ct is None else ct for ct in cts])]
        whole = np.zeros(shape, dtype)
        for k, ct in enumerate(cts):
            if ct is not None:
                whole[k] = ct
        return [whole]

    trace: Any = x.owner
    return trace.call([x.info], list(x.wrapped), _masking(stack))


def _stack(column: tuple) -> Any:
    """Return values of one type, stacked: one record if they are on one tape."""
    first = column[0]
    if not _is_on_tape(first) or not all(_is_on_tape(x) and is_alike(x, first) for x in column):
        return np.stack(column)
    stacked = _stack_plain([x.wrapped for x in column])
    return first.owner.call([x.info for x in column], [stacked], _masking(lambda cts: list(cts[0])))[0]


def _masking(pull: Callable) -> Masking:
    """Return a pullback that only moves numbers, and so takes marks of what is used as well."""
    return Masking(pull, lambda marks, when: pull(marks))


def _stack_plain(values: list) -> ndarray:
    """Return what np.stack does, in a fraction of the time if the arrays have one axis or none."""
    first = values[0]
    if not first.ndim:
        return np.array(values)
    if first.ndim > 1:
        return np.stack(values)
    stacked = np.empty((len(values), len(first)), first.dtype)
    np.concatenate(values, out=stacked.reshape(-1))
    return stacked


def _by_square_roots(steps: Callable, carry: Any, start: int, stop: int) -> tuple[Any, list]:
    size = math.isqrt(stop - start)
    ys = []
    for a in range(start, stop, size):
        carry, some = _checkpoint(lambda c, a=a: steps(c, a, min(a + size, stop)))(carry)
        ys += some
    return carry, ys


def _by_halves(steps: Callable, carry: Any, start: int, stop: int) -> tuple[Any, list]:
    """Keep the state in the middle, and treat both halves alike: memory grows with the logarithm of the length."""
    if stop - start <= SHORT:
        return steps(carry, start, stop)
    middle = (start + stop) // 2
    carry, first = _checkpoint(lambda c: _by_halves(steps, c, start, middle))(carry)
    carry, second = _checkpoint(lambda c: _by_halves(steps, c, middle, stop))(carry)
    return carry, first + second


def _find_tapes(step: Callable, init: Any, items: Callable) -> list:
    """Return the tapes of reverse mode that trace a value of the loop, or one that its body takes from outside."""
    traces: dict = {}
    seen = [*tree.leaves(init), *_find_closed_over(items), *_find_closed_over(step)]
    while seen:
        x = seen.pop()
        if type(x) is Tracer:
            traces[x.owner] = isinstance(x.owner, VJPTrace) and not x.owner.dead
            seen.append(x.wrapped)
    return [trace.tape for trace, records in traces.items() if records]


def _find_closed_over(f: Callable, depth: int = 4) -> list:
    found: list = []
    for cell in getattr(f, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
        if callable(value) and depth:
            found += _find_closed_over(value, depth - 1)
        else:
            found += [x for x in tree.leaves(value) if type(x) is Tracer]
    return found


def stack_results(ys: list) -> Any:
    """Return what the steps gave, stacked leaf by leaf."""
    if not tree.leaves(ys[0]):
        return ys[0]
    if type(ys[0]) in _BARE:
        return _stack(tuple(ys))
    return tree.map(lambda *column: _stack(column), *ys)
