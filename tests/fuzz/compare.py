"""What a run left behind, and whether two runs left the same."""

import re
from dataclasses import dataclass

import numpy as np

from fad import tree
from fad.errors import FadError

from .program import evaluate

_OF_NUMBERS = re.compile(r"'numpy\.\w+' object has no attribute '__(setitem|i\w+)__'")
_OF_PYTHON_NUMBERS = re.compile("'(int|float|complex)' object (has no attribute|is not subscriptable)")
CLOSE = {"d": 1e-9, "D": 1e-9, "f": 2e-4, "F": 2e-4, "e": 2e-2}


class Difference(AssertionError):
    """Two runs that should agree do not. ``numeric`` where only the numbers differ, which rounding may explain."""

    def __init__(self, message, numeric=False):
        super().__init__(message)
        self.numeric = numeric


class Refused(Exception):
    """fad raised an error of its own for a program that runs without it."""


class Skipped(Exception):
    """This check says nothing about this program."""


@dataclass
class Run:
    """What a run gave, or raised; and the arrays that the caller holds, as they are afterwards."""

    outputs: object = None
    error: Exception | None = None
    arguments: tuple = ()
    outside: dict | None = None
    locked: bool = False  # whether an argument may not be written
    forced: bool = False  # whether one was written all the same: NumPy's ufunc.at does not look


def snapshot(x):
    """Return a copy of all arrays in a tree, and whatever else it has."""
    return tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, x)


def observe(call, world, arguments):
    """Return what ``call(*arguments)`` does."""
    run = Run()
    locked = [(x, x.copy()) for x in arguments if isinstance(x, np.ndarray) and not x.flags.writeable]
    run.locked = bool(locked)
    try:
        with np.errstate(all="ignore"):
            run.outputs = snapshot(call(*arguments))
    except Exception as error:
        run.error = error
    run.arguments, run.outside = snapshot(tuple(arguments)), snapshot(world.outside())
    run.forced = not all(identical(x, before) for x, before in locked)
    return run


def plain(program):
    """Return what a plain run of a program does."""
    world = program.world()
    return observe(world.f, world, evaluate(program.arguments))


def same_error(wanted, got):
    """Check that both raised, or neither; return whether they did."""
    if wanted.forced:
        raise Skipped("a plain run writes into an argument that may not be written")
    if wanted.error is None and got.error is None:
        return False
    if wanted.locked and "read-only" in str(wanted.error):
        raise Skipped("an argument is a value, which may be written where the caller's array may not")
    if _OF_PYTHON_NUMBERS.search(str(wanted.error)):
        raise Skipped("a Python number that a transform follows has the methods of NumPy's numbers")
    if _OF_NUMBERS.search(str(wanted.error)):
        raise Skipped("a number that a transform follows has the methods of arrays, which then refuse")
    if got.error is None:
        raise Difference(f"a plain run raises {wanted.error!r}, and this did not")
    if isinstance(got.error, FadError) and wanted.error is None:
        raise Refused(f"{type(got.error).__name__}: {got.error}") from got.error
    if wanted.error is None:
        raise Difference(f"this raises {got.error!r}, and a plain run does not") from got.error
    alike = isinstance(got.error, type(wanted.error)) or type(got.error).__name__ == type(wanted.error).__name__
    if not alike and not isinstance(got.error, FadError):
        raise Difference(f"a plain run raises {wanted.error!r}, and this {got.error!r}") from got.error
    return True


def same_run(wanted, got, before=None, close=None):
    """Check that two runs gave and left the same; arguments may also be as they were before."""
    if same_error(wanted, got):
        return
    same_tree(wanted.outputs, got.outputs, "output", close=close)
    same_left(wanted, got, before)


def same_left(wanted, got, before=None):
    """Check what the caller holds after both runs."""
    for k, (w, g) in enumerate(zip(wanted.arguments, got.arguments, strict=True)):
        try:
            same_leaf(w, g, f"argument {k} afterwards")
        except Difference:
            if before is None or not identical(before[k], g):
                raise
    for name, w in wanted.outside.items():
        same_leaf(w, got.outside[name], f"the array {name} outside of the function afterwards")


def identical(a, b):
    """Return whether two arrays have the same bits."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def same_tree(wanted, got, what, types=True, close=None, zeros=True):
    """Check that two trees have the same structure and leaves."""
    leaves, structure = tree.flatten(wanted)
    others, other = tree.flatten(got)
    if structure != other:
        raise Difference(f"{what}: {structure} is wanted, not {other}")
    for k, (w, g) in enumerate(zip(leaves, others, strict=True)):
        same_leaf(w, g, f"{what} {k}" if len(leaves) > 1 else what, types, close, zeros)


def same_leaf(w, g, what, types=True, close=None, zeros=True):
    """Check that two arrays or numbers agree in shape, dtype and numbers, signs of zero included."""
    if callable(w) or isinstance(w, str) or w is None:
        return
    if not issubclass(type(g), (np.ndarray, np.generic, bool, int, float, complex)):  # a tracer says that it is one
        raise Difference(f"{what}: a {type(g).__name__} came out: {g!r}")
    a, b = np.asarray(w), np.asarray(g)
    if identical(a, b):
        return
    if a.shape != b.shape:
        raise Difference(f"{what}: shape {a.shape} is wanted, not {b.shape}")
    if types and a.dtype != b.dtype:
        raise Difference(f"{what}: dtype {a.dtype} is wanted, not {b.dtype}")
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        if not np.array_equal(a, b):
            raise Difference(f"{what}: {shown(w)} is wanted, not {shown(g)}", numeric=True)
        return
    worst = max(CLOSE.get(a.dtype.char, 1e-9), CLOSE.get(b.dtype.char, 1e-9)) if close is None else close
    if not agree(a, b, worst):
        raise Difference(f"{what}: {shown(w)} is wanted, not {shown(g)}", numeric=True)
    if zeros and a.dtype.kind == "f" and np.any((a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))):
        raise Difference(f"{what}: the sign of a zero: {shown(w)} is wanted, not {shown(g)}")


def shown(x):
    """Return a value on one line."""
    text = " ".join(repr(x).split())
    return text if len(text) < 400 else text[:400] + " ..."


def agree(a, b, tolerance):
    """Return whether numbers agree to a fraction of the largest; infinite ones and NaN at the same places."""
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        return agree(np.real(a), np.real(b), tolerance) and agree(np.imag(a), np.imag(b), tolerance)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    scale = max(1.0, np.max(np.abs(a[finite]), initial=0))
    return bool(np.all(np.abs(a[finite].astype(float) - b[finite]) <= tolerance * scale))
