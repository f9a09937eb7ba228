"""The graph of the eager API: one record per operation, kept alive by the tensors that need it and by nothing else.

A record is a plain list, because making one is the whole cost of recording:

    [kind, birth, hooks, primitive, code, instruction, ...what the kind needs]

``birth`` grows with every record and every change in place. So parents are always older than children, a backward
pass goes from the youngest record to the oldest, and a saved value was overwritten exactly if the change is
younger than the record. ``code`` and ``instruction`` say which line of the user's made the record; the line is worked
out only when a message needs it. A record used up by a backward pass has its kind made negative and its values dropped.
"""

from __future__ import annotations

import itertools
import linecache
import sys
import weakref
from typing import Any

import numpy as np

from fad.errors import MutationError
from fad.introspect.frames import is_machinery
from fad.ops.places.indexing import getitem_p, index_set_p
from fad.ops.products.contraction import matmul
from fad.ops.products.pooling import max_pool_p
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.elementwise import divide, maximum, minimum, power, subtract

KIND, BIRTH, HOOKS, PRIM, CODE, LASTI = range(6)

LEAF = 1  # weakref of the tensor
UNARY = 2  # parent, partial, y, x
ONE = 3  # parent, partial, z, x, y, fit, k       operand k is tracked, the other constant
BOTH = 4  # p, q, partial_x, partial_y, z, x, y, fit_x, fit_y
GENERAL = 5  # parents, y, xs, params
CALL = 6  # parents, Pullback
MULTI = 7  # as GENERAL or CALL, with several results; its OUT records say which
OUT = 8  # the MULTI record, number of the result

births = itertools.count(1)


# --- the user's lines -------------------------------------------------------------------------------------------


def user_frame(depth: int = 1) -> Any:
    """Return the innermost frame that is not fad's or NumPy's, or the outermost one."""
    frame = sys._getframe(depth)
    while frame.f_back is not None and _is_ours[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


class _Answers(dict):
    """Tells of a file name whether it is fad's or NumPy's, and remembers the answer."""

    def __missing__(self, name: str) -> bool:
        answer = self[name] = is_machinery(name)
        return answer


_is_ours = _Answers()


def name_user_line(x: Any) -> Any:
    """Let the record of a tensor that fad's own code computed name the user's line instead."""
    rec = getattr(x, "node", None)
    if rec is not None and _is_ours[rec[CODE].co_filename]:
        frame = user_frame(2)
        rec[CODE], rec[LASTI] = frame.f_code, frame.f_lasti
    return x


def line_of(code: Any, lasti: int) -> str:
    """Return ``'file.py:12: y = x * w'`` for an instruction of a code object."""
    number = next((n for start, end, n in code.co_lines() if n is not None and start <= lasti < end), 0)
    text = linecache.getline(code.co_filename, number).strip()
    return f"{code.co_filename}:{number}: {text}".rstrip(": ")


def line(rec: list) -> str:
    return line_of(rec[CODE], rec[LASTI])


# --- leaves and parents -----------------------------------------------------------------------------------------


def new_leaf(tensor: Any) -> list:
    frame = user_frame(2)
    return [LEAF, next(births), None, None, frame.f_code, frame.f_lasti, weakref.ref(tensor)]


def is_leaf(rec: Any) -> bool:
    return rec is None or rec[0] == LEAF


def parents(rec: list) -> list:
    """Return the records of an operation's operands, None for a constant."""
    kind = abs(rec[KIND])
    if kind in (UNARY, ONE):
        return [rec[6]] if kind == UNARY else [rec[6], None]
    if kind == BOTH:
        return [rec[6], rec[7]]
    if kind == OUT:
        return [rec[6]]
    return [] if kind in (LEAF,) else list(rec[6])


# --- values changed in place --------------------------------------------------------------------------------------

# id of an array that owns memory -> (weak reference to it, birth of the change, line of the change)
_changed: dict[int, tuple] = {}


def root(x: Any) -> Any:
    """Return the array at the end of a chain of views."""
    while type(x) is np.ndarray and x.base is not None:
        below = x.base if type(x.base) is np.ndarray else getattr(x.base, "base", None)  # as_strided puts one between
        if type(below) is not np.ndarray:
            break
        x = below
    return x


def note_change(x: Any) -> None:
    """Note that the memory of an array was just overwritten."""
    base = root(x)
    if type(base) is np.ndarray:
        key = id(base)
        frame = user_frame(2)
        known = weakref.ref(base, lambda _: _changed.pop(key, None))
        _changed[key] = (known, next(births), frame.f_code, frame.f_lasti)


# Their rules read the result, and PyTorch's do not: a program may change it.
_READ_RESULTS = (divide, maximum, minimum, max_pool_p)
_PLACE_OF_RESULT = {ONE: 8, BOTH: 10, GENERAL: 7}


def copy_result(rec: list | None) -> None:
    """Before a result is changed in place, keep a copy for the rule of its record, if PyTorch's would not read it."""
    if rec is not None and rec[PRIM] in _READ_RESULTS:
        place = _PLACE_OF_RESULT.get(rec[KIND])
        if place is not None and type(rec[place]) is np.ndarray:
            rec[place] = rec[place].copy()


def find_saved_in(rec: list) -> Any:
    """Return what a record holds on to for its rule."""
    kind = rec[KIND]
    if kind == UNARY:
        return rec[8:10]
    if kind == ONE:
        return rec[8:11]
    if kind == BOTH:
        return rec[10:13]
    if kind == GENERAL or (kind == MULTI and len(rec) == 10):
        y = rec[7]
        return (*(y if type(y) is tuple else (y,)), *rec[8])
    return rec[7].saved if kind in (CALL, MULTI) else ()


def check_unchanged(rec: list) -> None:
    """Raise MutationError if a value that a record saved has been overwritten since."""
    for x in find_saved_in(rec):
        if type(x) is not np.ndarray:
            continue
        change = _changed.get(id(root(x)))
        if change is not None and change[0]() is not None and change[1] > rec[BIRTH]:
            raise MutationError(
                f"a value of shape {x.shape} that {name(rec)} needs for its gradient was changed in place.\n"
                f"  saved at {line(rec)}\n  changed at {line_of(change[2], change[3])}\n"
                "Write the change out of place (x = x + 1 for x += 1), or save a copy with x.clone()"
            )


# --- names --------------------------------------------------------------------------------------------------------

_NAMES = {
    "add": "Add", "positive": "Clone", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg",
    "power": "Pow", "absolute": "Abs", "maximum": "Maximum", "minimum": "Minimum", "sum_over": "Sum",
    "reshape_to": "View", "permute": "Permute", "broadcast": "Expand", "join": "Cat", "pack": "Stack",
    "convert": "ToCopy", "affine": "Addmm", "softmax_over": "Softmax", "log_softmax_over": "LogSoftmax",
    "exponential": "Exp", "cross_entropy_of_logits": "NllLoss", "square": "Pow",
    "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan",
}  # fmt: skip


def label(rec: list) -> str:
    """Return the name of a record's operation, as `fad` calls it where it has one."""
    return rec[PRIM] if type(rec[PRIM]) is str else getattr(rec[PRIM], "name", name(rec))


def name(rec: list) -> str:
    """Return PyTorch's name for a record: ``AddBackward0``."""
    kind = abs(rec[KIND])
    if kind == LEAF:
        return "AccumulateGrad"
    prim = rec[PRIM]
    if type(prim) is str:
        return prim
    if prim is matmul:
        return _product_name(rec)
    if prim is getitem_p:
        return _index_name(rec)
    if prim is index_set_p:
        return "CopySlices"
    if prim is sum_p and len(rec[9]["axis"]) < rec[8][0].ndim:
        return "SumBackward1"
    if prim is subtract and kind == ONE and rec[12]:
        return "RsubBackward1"
    if prim is power:
        return "PowBackward1" if kind == BOTH or (kind == ONE and rec[12]) else "PowBackward0"
    return f"{_NAMES.get(prim.name) or prim.name.rpartition('.')[2].title().replace('_', '')}Backward0"


def _product_name(rec: list) -> str:
    ranks = rec[9].get("ranks")
    return {(2, 2): "MmBackward0", (2, 1): "MvBackward0", (1, 1): "DotBackward0", (1, 2): "SqueezeBackward4"}.get(
        ranks, "BmmBackward0"
    )


def _index_name(rec: list) -> str:
    parts = rec[9]["template"]
    if any(type(p) is slice for p in parts):
        return "SliceBackward0"
    return "SelectBackward0" if all(type(p) is int or p is Ellipsis for p in parts) else "IndexBackward0"
