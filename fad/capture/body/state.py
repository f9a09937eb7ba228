"""What a body changes: names that it binds, and arrays that it writes into.

A name is carried by value, and the body binds it to a new value in each step. An array that is written keeps its
handle, so that all who know it see the writes: for the length of the body the handle stands for the body's own value,
and its views are taken again; then it is put back, and after the loop it is replace_root.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.control_flow.bodies.subgraph import example
from fad.core.handles.buffers import PLAIN, buffer
from fad.core.tracing.tracer import Tracer, tracer, up_to_date
from fad.core.tracing.views import (
    RUNS,
    Memory,
    contents_of,
    forget_writes,
    is_array,
    is_outside,
    layout,
    replace_root,
    root_of,
    snapshot,
)
from fad.introspect.reachable import Walk
from fad.staging.record_trace import is_traceable

_MOST = 2000  # objects that are looked at for arrays that a branch may read


def is_handle(x: Any) -> bool:
    """Return whether something is a traced array, and no number."""
    return type(x) is Tracer and is_array(x)


def is_state(x: Any) -> bool:
    """Return whether a value can be carried from step to step: its leaves are arrays and numbers."""
    return all(type(leaf) is Tracer or is_traceable(leaf) for leaf in tree.leaves(x))


def as_leaf(x: Any) -> Any:
    """Return a leaf as what it is now, whatever is written later."""
    if type(x) is not Tracer:
        return x
    x = up_to_date(x)
    return x.wrapped.copy() if x.owner is PLAIN else snapshot(x)


def fresh(values: Any) -> Any:
    """Return values whose arrays are handles of their own."""
    return tree.map(_own_handle, values)


def _own_handle(x: Any) -> Any:
    if type(x) is not Tracer:
        return buffer(x.copy()) if type(x) is np.ndarray else x  # of a loop of plain numbers that takes no step
    y = snapshot(x)
    if y.memory is None and not y.shape and is_array(x):
        y.memory = Memory()
    return y


def type_example(x: Any) -> Any:
    """Return zeros of the types of a value's leaves."""
    def zeros(leaf: Any) -> Any:
        plain = example(leaf)
        if type(plain) in (bool, int, float, complex):
            return type(plain)(0)
        found = np.zeros_like(plain)
        return found if type(plain) is np.ndarray else found[()]

    return tree.map(zeros, x)


@contextlib.contextmanager
def standing_for(roots: list[Tracer], values: Iterable[Tracer]) -> Iterator[None]:
    """Let handles stand for other values for the length of a block; what the block writes into them is forgotten."""
    touched = RUNS.touched
    before = set() if touched is None else set(touched.written)
    kept = [(x, contents_of(x), x.wrapped, x.owner, x.info) for x in roots]
    for x, y in zip(roots, values, strict=True):
        y = y if type(y) is Tracer else buffer(np.copy(y))  # the first state of an array that holds plain numbers
        _point(x, y.wrapped, y.owner, y.info)
    try:
        yield
    finally:
        for x, writes, *state in kept:
            _point(x, *state)
            forget_writes(x, writes)
            if touched is not None and id(x) not in before:
                touched.written.pop(id(x), None)


def _point(x: Tracer, value: Any, trace: Any, info: Any) -> None:
    if is_array(x):
        if x.memory is None:
            x.memory = Memory()
        x.memory.version += 1
        x.memory.private = False
        RUNS.written = True
    x.wrapped, x.owner, x.info = value, trace, info
    trace.note_writes()


def replace(root: Tracer, new: Any) -> None:
    """Let an array that a loop or branch wrote into stand for what is in it now."""
    if type(new) is Tracer:
        replace_root(root, snapshot(new))
    else:
        root[...] = new


def check_replaceable(root: Tracer) -> None:
    """Refuse arrays that cannot be given another value: those from outside, and those with an order of their own."""
    if is_outside(root):
        refuse("it writes into an array from outside of the function")
    plain = layout(root)
    of_field = root.memory is not None and root.memory.lies_as is not None
    if type(plain) is np.ndarray and not plain.flags.c_contiguous and not of_field:
        refuse("it writes into an array that does not lie in C order")


def is_written(x: Tracer) -> bool:
    """Return whether the code that is looked at has written into an array."""
    touched = RUNS.touched
    known = None if touched is None else touched.written.get(id(x))
    return known is not None and known[0]() is x


def check_aliased() -> list[list[Tracer]]:
    """Return the groups of arrays that may be one and the same; refuse a body that writes into one of them."""
    groups = require_body().aliased
    if any(is_written(x) for group in groups for x in group):
        refuse("it writes into an array that may have another name, as an if or an inner loop decides")
    return groups


def reached_things(functions: Iterable[Any]) -> list[Any]:
    """Return what functions find by name, and what that finds."""
    return list(Walk(functions, _MOST))


def traced_roots(things: Iterable[Any]) -> list[Tracer]:
    """Return the traced values among some things, arrays in place of their views; each once."""
    found: dict[int, Tracer] = {}
    for x in things:
        if type(x) is Tracer and not x.owner.dead:
            root = root_of(x)
            found.setdefault(id(root), root)
    return list(found.values())


def lifted_into(trace: Any, x: Tracer) -> Tracer:
    """Return a value from outside of a body as the body's own."""
    if x.owner is PLAIN:
        value = PLAIN.freeze(x)
        return tracer(value, trace, trace.constant(value))
    return trace.lift(x)


def require_body() -> Any:
    """Return the body that is being recorded."""
    body = current()
    if body is None:
        raise AssertionError("nothing is being captured")
    return body
