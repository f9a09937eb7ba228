"""What CuPy offers, read from `cupy_names.txt`, and the questions that the stand-in asks of it."""

import functools
import inspect
import re
from pathlib import Path

import numpy as np

_TEXT = (Path(__file__).parent / "cupy_names.txt").read_text(encoding="utf-8")
LINES = dict(line.partition(" ")[::2] for line in _TEXT.splitlines() if line and not line.startswith("#"))
VERSION = re.search(r"# CuPy (\S+)", _TEXT)[1]
# Functions whose dtypes are those of a ufunc that they call and CuPy's modules do not show.
_INNER = {"scipy.special.sph_harm_y": "ufunc iiff->F iidd->D llff->F lldd->D"}


def has(name):
    return name in LINES


@functools.cache
def loops(name):
    """Return the dtypes that an elementwise function was written for, [(operands, results)], or None if it is none."""
    line = _INNER.get(name, LINES[name])
    if not line.startswith("ufunc "):
        return None
    return [tuple(loop.split("->")) for loop in line.split()[1:]]


@functools.cache
def signature(name):
    space = {}
    exec(f"def f{LINES[name]}: pass", space)
    return inspect.signature(space["f"])


def check_call(name, args, kwargs):
    """Raise TypeError where CuPy's function does not take these arguments."""
    refusal = _refusal(name, len(args), tuple(kwargs))
    if refusal:
        raise TypeError(f"{name}() {refusal}")


@functools.cache
def _refusal(name, positional, keywords):
    """Return why a call with so many positional arguments and these keywords does not fit, or ''."""
    try:
        signature(name).bind(*[None] * positional, **dict.fromkeys(keywords))
    except TypeError as error:
        return str(error)
    return ""


def _rank(kind):
    """Rank kinds of numbers as CuPy does for Python's: booleans, whole numbers, all others."""
    return {"b": 0, "i": 1, "u": 1}.get(kind, 2)


def chosen_loop(name, operands, dtype):
    """Return the first loop that the operands can be cast to, as CuPy chooses it.

    Raises TypeError if there is none.
    """
    kinds = tuple(_typed(operands))
    found = _first_loop(name, kinds, dtype)
    if found is None:
        shown = dtype or tuple(x if isinstance(x, type) else x.name for x in kinds)
        raise TypeError(f"Wrong type ({shown}) of arguments for cupy_{name}")
    return found


@functools.cache
def _first_loop(name, kinds, dtype):
    for given, results in loops(name):
        if dtype is not None:
            if all(np.dtype(r) == dtype for r in results):
                return given, results
        elif all(_fits(x, np.dtype(t)) for x, t in zip(kinds, given, strict=True)):
            return given, results
    return None


def _typed(operands):
    """Return a dtype per operand, or the type of a Python number whose dtype yields to that of the arrays."""
    weak = [type(x) in (bool, int, float, complex) for x in operands]
    plain = [np.dtype(type(x)) if w else x.dtype for x, w in zip(operands, weak, strict=True)]
    if not any(weak):
        return plain
    arrays = [_rank(t.kind) for t, w in zip(plain, weak, strict=True) if not w]
    numbers = [_rank(t.kind) for t, w in zip(plain, weak, strict=True) if w]
    yields = arrays and max(arrays) >= max(numbers)
    return [type(x) if w and yields else t for x, t, w in zip(operands, plain, weak, strict=True)]


def _fits(given, loop):
    if not isinstance(given, type):
        return np.can_cast(given, loop)
    return np.can_cast(np.dtype(given), loop) or np.result_type(given(0), loop) == loop
