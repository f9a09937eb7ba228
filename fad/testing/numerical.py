"""Derivatives by differences: what every rule is measured against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.transforms.arguments.check import as_value

_STEP = 1e-3  # with Richardson's extrapolation the error is about step**4 of the scale, and rounding 1e-16 / step
_SINGLE = (np.float32, np.complex64, np.float16)
_TINY = 1e-20  # the complex step subtracts nothing, so it may be as small as it likes


def numerical_jvp(
    f: Callable, primals: Any, tangents: Any, *, eps: float | None = None, method: str = "auto"
) -> Any:
    """Return the derivative of a function along a direction, by differences of its values.

    Everything is computed in double precision, whatever the dtype of the primals.

    Parameters
    ----------
    f : callable
        Function of the primals; arrays or pytrees of arrays in and out.
    primals, tangents : tuple
        The point and the direction, one entry per argument.
    eps : float, keyword only
        How far to step from the point, in the largest component; 1e-3 if not given (less near the origin).
    method : "auto", "central" or "complex", keyword only
        Central differences with Richardson's extrapolation (error about ``eps**4``); the imaginary part at a tiny
        imaginary step (exact to rounding, for programs that are analytic and accept complex numbers);
        or the second where it agrees with the first.

    Returns
    -------
    pytree
        In the structure and shapes of the output of `f`; zeros for integer and boolean outputs.

    Examples
    --------
    >>> float(round(numerical_jvp(np.sin, (0.0,), (2.0,)), 10))
    2.0
    """
    if method not in ("auto", "central", "complex"):
        raise ValueError(f"method must be 'auto', 'central' or 'complex', not {method!r}")
    xs, in_tree = tree.flatten(tuple(primals))
    xs = [_double(as_value(x)) for x in xs]
    ts = [_double(as_value(t)) for t in tree.leaves(tuple(tangents))]
    if method == "complex":
        return _complex_step(f, in_tree, xs, ts)
    central = _richardson(f, in_tree, xs, ts, eps)
    if method == "central" or any(x.dtype.kind == "c" for x in (*xs, *ts)):
        return central
    return _refine(f, in_tree, xs, ts, central)


def _double(x: Any) -> Any:
    wide = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind)
    return x if wide is None else x.astype(wide)


def _values(f: Callable, in_tree: Any, xs: list, ts: list, step: Any) -> tuple[list, Any]:
    moved = [x + step * t if x.dtype.kind in "fc" else x for x, t in zip(xs, ts, strict=True)]
    ys, out_tree = tree.flatten(f(*tree.unflatten(in_tree, moved)))
    return [as_value(y) for y in ys], out_tree


def _richardson(f: Callable, in_tree: Any, xs: list, ts: list, eps: float | None) -> Any:
    largest = max([float(np.max(np.abs(t))) for t in ts if t.size] or [0.0])
    h = (_step(xs) if eps is None else eps) / (largest or 1.0)
    plus, out_tree = _values(f, in_tree, xs, ts, h)
    if eps is None and any(y.dtype in _SINGLE for y in plus):
        h *= 30  # the function itself rounds to single precision: step further
        plus, _ = _values(f, in_tree, xs, ts, h)
    minus, _ = _values(f, in_tree, xs, ts, -h)
    (plus2, _), (minus2, _) = (_values(f, in_tree, xs, ts, s) for s in (h / 2, -h / 2))
    found = []
    for a, b, c, d in zip(plus, minus, plus2, minus2, strict=True):
        if a.dtype.kind in "fc":
            found.append((8 * (c - d) - (a - b)) / (6 * h))
        else:
            found.append(np.zeros(a.shape)[()])
    return tree.unflatten(out_tree, found)


def _step(xs: list) -> float:
    largest = max([float(np.max(np.abs(x))) for x in xs if x.size and x.dtype.kind in "fc"] or [0.0])
    return _STEP * min(1.0, largest or 1.0)


def _complex_step(f: Callable, in_tree: Any, xs: list, ts: list) -> Any:
    ys, out_tree = _values(f, in_tree, xs, ts, 1j * _TINY)
    return tree.unflatten(out_tree, [np.imag(y) / _TINY for y in ys])


def _refine(f: Callable, in_tree: Any, xs: list, ts: list, central: Any) -> Any:
    """Return the complex step's derivative if it confirms the central difference, else the latter."""
    try:
        with np.errstate(all="ignore"):
            exact = _complex_step(f, in_tree, xs, ts)
        pairs = list(zip(tree.leaves(exact), tree.leaves(central), strict=True))
        good = all(a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in pairs)
    except Exception:  # the program does not take complex numbers: any error may come of it
        return central
    return exact if good else central
