"""Loops run step by step, without a recording, and what reverse mode keeps of a long one.

The first steps show how much memory one takes. If all of them would take too much, stretches of the others run under
`checkpoint`: the state at their beginning is kept, and the rest computed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.control_flow.checkpoints import KEPT, SHORT
from fad.core.buffers import borrow
from fad.core.overlay import spaces_of
from fad.core.tracer import Tracer
from fad.core.views import copy_layout, snapshot
from fad.transforms.checkpoint import checkpoint as _checkpoint
from fad.transforms.tape_hooks import saved_at_most, saved_bytes
from fad.transforms.vjp import VJPTrace

_FEW = 3  # steps that may show that all take little memory
_SAMPLE = 11  # steps after which it is known how much one takes
_BARE = {Tracer, np.ndarray, np.float64, float, type(None)}
_CHOICES = ("sqrt", "binomial", "none")


def check_choice(checkpoint: str) -> None:
    """Raise ValueError for a name that says nothing of what to keep."""
    if checkpoint not in _CHOICES:
        raise ValueError(f"checkpoint of a loop must be one of {_CHOICES}, not {checkpoint!r}")


def run_scan(
    step: Callable, init: Any, xs: Any, n: int, reverse: bool, checkpoint: str, body: Callable
) -> tuple[Any, list]:
    """Run the steps; return the last carry and the list of y in the order of the x. Without xs, x is the number.

    `body` is the function of the user's that a step calls.
    """
    writes = may_write(body)
    item = _item_of(xs, writes)

    def steps(carry: Any, start: int, stop: int) -> tuple[Any, list]:
        ys, carry = [], own_state(carry)
        for k in range(start, stop):
            new, y = step(carry, item(n - 1 - k if reverse else k))
            if writes or (new is carry and new is not None):
                new, y = next_state(new, carry), as_now(y)
            ys.append(y)
            carry = new
        return carry, ys

    tapes = _find_tapes(step, init, xs) if n > SHORT and checkpoint != "none" else []
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


def may_write(body: Callable) -> bool:
    """Return whether the code of a loop's body writes into arrays: what it is given and gives is copied then."""
    return bool(spaces_of(body)[0])


def own_state(state: Any) -> Any:
    """Return the state of a loop as values of its own: what a step writes into them is seen nowhere else."""
    return tree.map(_own, state)


def _own(x: Any) -> Any:
    y = borrow(x)
    return copy_layout(x) if y is x and type(x) is np.ndarray else y


def next_state(new: Any, state: Any) -> Any:
    """Return what a body that writes has given as a value: it may be an array that the next step writes."""
    return new if new is state else as_now(new)


def as_now(x: Any) -> Any:
    """Return what a body that writes has given, or is given, as it is now, whatever later steps write into it."""
    return _as_now(x) if type(x) in _BARE else tree.map(_as_now, x)


def _as_now(x: Any) -> Any:
    return snapshot(x) if type(x) is Tracer else copy_layout(x) if type(x) is np.ndarray else x


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


def _item_of(xs: Any, writes: bool) -> Callable:
    """Return the function from the number of a step to its x, which is the number itself where there are no xs."""
    if xs is None:
        return lambda i: i
    arrays, structure = tree.flatten(xs)
    if arrays and arrays[0] is xs:
        return (lambda i: as_now(xs[i])) if writes else lambda i: xs[i]
    if writes:
        return lambda i: tree.unflatten(structure, [as_now(x[i]) for x in arrays])
    return lambda i: tree.unflatten(structure, [x[i] for x in arrays])


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


def _find_tapes(step: Callable, init: Any, xs: Any) -> list:
    """Return the tapes of reverse mode that trace a value of the loop, or one that its body takes from outside."""
    traces: dict = {}
    seen = [*tree.leaves((init, xs)), *_find_closed_over(step)]
    while seen:
        x = seen.pop()
        if type(x) is Tracer:
            traces[x.owner] = isinstance(x.owner, VJPTrace) and not x.owner.dead
            seen.append(x.value)
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
    return tree.map(lambda *column: np.stack(column), *ys)
