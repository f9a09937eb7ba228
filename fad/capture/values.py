"""Reading and writing by traced places: what brackets mean in a body, whose counters are traced Python integers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fad.capture.context import current, is_staged, refuse
from fad.control_flow.subgraph import to_number_p
from fad.core.buffers import Taken
from fad.core.memory import version_of
from fad.core.tracer import Tracer, bind
from fad.ops.indexing import At, pick

_UPDATES = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv, "Pow": operator.ipow,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "MatMult": operator.imatmul, "BitAnd": operator.iand,
    "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift, "RShift": operator.irshift,
}  # fmt: skip
_IN_PLACE = {name: f"__{f.__name__.strip('_')}__" for name, f in _UPDATES.items()}


def _parts(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


def _is_traced(index: Any) -> bool:
    """Return whether an index holds a traced place or a traced bound."""
    for part in _parts(index):
        if type(part) is Tracer:
            return True
        if type(part) is slice and Tracer in (type(part.start), type(part.stop), type(part.step)):
            return True
    return False


def _gives_view(index: Any) -> bool:
    """Return whether NumPy makes a view by an index: it holds no arrays, only numbers and slices."""
    for part in _parts(index):
        if part is None or part is Ellipsis or type(part) in (int, slice) or isinstance(part, np.integer):
            continue
        if type(part) is Tracer and not part.shape and part.dtype.kind in "iu":
            continue
        return False
    return True


def _put_back(x: Any, y: Any, index: Any) -> Any:
    return At(x)[index].set(y)


# A view at a traced place: an operation like any other index, but a write into it changes what it was taken from.
_view_at = Taken(lambda x, index: x[index], lambda x, index: x[index], _put_back)


def getitem(x: Any, index: Any) -> Any:
    """Return ``x[index]``."""
    if current() is None or not _is_traced(index):
        return x[index]
    if type(x) is Tracer:
        if not _gives_view(index):
            return x[index]
        y = x[index]
        if type(y) is Tracer and y.memory is None and (y.shape or any(p is Ellipsis for p in _parts(index))):
            y.memory = x, _view_at, {"index": index}, version_of(x)
        return y
    if type(x) is np.ndarray:
        y = pick(x, index)
        if type(y) is Tracer and y.shape and _gives_view(index):
            y.memory = _outside(x), _view_at, {"index": index}, 0
        return y
    return refuse(f"it takes an element of a {type(x).__name__} at a place that differs from step to step")


def _outside(x: np.ndarray) -> Tracer:
    """Return a handle on a plain array from outside, so that a write into a view of it is an error."""
    from fad.core.buffers import buffer
    from fad.core.memory import Memory

    handle = buffer(x)
    handle.memory = Memory()
    handle.memory.outside = True
    return handle


def setitem(value: Any, x: Any, index: Any) -> None:
    """Do ``x[index] = value``."""
    if current() is None:
        x[index] = value
        return
    if type(x) is not Tracer:
        if type(x) is np.ndarray:
            refuse("it writes into a plain array from outside of the loop, or one that no derivative can pass through")
        refuse(f"it changes a {type(x).__name__}")
    if type(value) is Tracer and type(value.memory) is tuple:
        parent, prim, params, _ = value.memory
        if parent is x and prim is _view_at and params["index"] is index:
            return  # what x[i] += y does at its end: the view has been written
    x[index] = value


def update(name: str, x: Any, value: Any) -> Any:
    """Return what ``x += value`` binds to x."""
    if current() is not None and type(x) is not Tracer and hasattr(type(x), _IN_PLACE[name]):
        refuse(f"it changes a {type(x).__name__} in place")
    return _UPDATES[name](x, value)


def set_attribute(value: Any, holder: Any, name: str) -> None:
    """Do ``holder.name = value``."""
    if current() is not None and not (type(holder) is Tracer and name in ("real", "imag", "flat")):
        refuse(f"it sets the attribute {name} of a {type(holder).__name__}")
    setattr(holder, name, value)


def as_number(x: Any) -> Any:
    """Return a traced integer as a traced Python number, whose dtype does not count in promotion."""
    return bind(to_number_p, x)


def truth(x: Any) -> Any:
    """Return a traced value as a condition: a boolean without axes."""
    if x.size != 1:
        refuse("it asks for the truth value of an array")
    if x.dtype != bool:
        x = np.not_equal(x, 0)
    return x.reshape(()) if x.shape else x


def is_question(x: Any) -> bool:
    """Return whether a condition differs from step to step."""
    return is_staged(x)
