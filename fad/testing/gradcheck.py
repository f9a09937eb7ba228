"""`check_grads`: compare the derivatives of a function, to any order, with differences of its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.errors import GradientCheckError
from fad.testing.numerical import numerical_jvp
from fad.transforms.arguments.check import as_value
from fad.transforms.jvp import jvp
from fad.transforms.vjp import vjp


def check_grads(
    f: Callable,
    args: Any,
    order: int,
    modes: Any = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of a function up to an order against numerical ones, along random directions.

    Parameters
    ----------
    f : callable
        Function of `args`: arrays or pytrees of arrays in and out.
    args : tuple
        The point, one entry per argument, floating-point or complex.
    order : int
        The highest derivative to check; each order checks the derivative of the one before, in every mode.
    modes : tuple of "fwd" and "rev", or one of them
    atol, rtol : float
        Tolerances; 1e-6 for double precision, 1e-3 for single. `rtol` is relative to the largest element.
    eps : float
        The step of :func:`numerical_jvp`.

    Raises
    ------
    GradientCheckError
        naming the mode, the order and both numbers.

    Examples
    --------
    >>> check_grads(lambda x: np.sin(x) * x, (np.array([0.5, 2.0]),), order=2)
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = set(modes) - {"fwd", "rev"}
    if unknown or not modes:
        raise ValueError(f"modes of check_grads must be 'fwd', 'rev' or both, not {modes!r}")
    if order < 1:
        raise ValueError(f"order of check_grads must be at least 1, not {order!r}")
    args = tree.map(lambda x: as_value(x, "an argument of check_grads"), tuple(args))
    _check(f, args, order, modes, _Tolerance(args, atol, rtol), eps, np.random.default_rng(0), ())


class _Tolerance:
    def __init__(self, args: Any, atol: float | None, rtol: float | None):
        self.single = any(_is_single(x) for x in tree.leaves(args))
        self.atol = atol
        self.rtol = rtol

    def compare(self, got: Any, wanted: Any, what: str, single: bool = False) -> None:
        default = 1e-3 if single or self.single or _is_single(got) or _is_single(wanted) else 1e-6
        atol = default if self.atol is None else self.atol
        rtol = default if self.rtol is None else self.rtol
        scale = max(1.0, float(np.max(np.abs(wanted)))) if np.size(wanted) else 1.0
        off = difference(got, wanted)
        if not off <= atol + rtol * scale:
            raise GradientCheckError(
                f"{what} is wrong by {off:.2g}:\n  fad       {_short(got)}\n  numerical {_short(wanted)}"
            )


def _is_single(x: Any) -> bool:
    return getattr(x, "dtype", None) in (np.float32, np.complex64, np.float16)


def difference(a: Any, b: Any) -> float:
    """Return the largest absolute difference; 0 for equal infinities and NaNs, infinity for unequal ones."""
    a, b = np.asarray(a), np.asarray(b)
    if not a.size:
        return 0.0
    with np.errstate(all="ignore"):
        off = np.abs(a - b) if a.dtype.kind != "b" else 1.0 * (a != b)
        largest = float(np.max(off))
        if not np.isfinite(largest):
            same = (a == b) | ((a != a) & (b != b))
            off = np.where(same, 0.0, off)
            largest = float(np.max(np.where(np.isnan(off), np.inf, off)))
    return largest


def _short(x: Any) -> str:
    return np.array2string(np.asarray(x), threshold=12, edgeitems=3).replace("\n", "")


def random_like(x: Any, rng: np.random.Generator) -> Any:
    """Return random numbers of the shape, dtype and kind of an array; zeros for integers and booleans."""
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape, x.dtype)[()] if isinstance(x, np.generic) else np.zeros(x.shape, x.dtype)
    t = rng.normal(size=x.shape)
    if x.dtype.kind == "c":
        t = t + 1j * rng.normal(size=x.shape)
    t = np.asarray(t, x.dtype)
    return t[()] if isinstance(x, np.generic) else t


def pairing(cts: Any, ts: Any) -> float:
    """Return Re(sum(ct * t)) over two trees: how a cotangent acts on a tangent."""
    pairs = zip(tree.leaves(cts), tree.leaves(ts), strict=True)
    return float(sum(np.sum(np.real(np.asarray(c) * np.asarray(t))) for c, t in pairs))


def _check(f, args, order, modes, tolerance, eps, rng, path) -> None:
    tangents = tree.map(lambda x: random_like(x, rng), args)
    numerical = numerical_jvp(f, args, tangents, eps=eps, method="central")
    out = f(*args)
    where = " of ".join(reversed(path))
    empty = not any(np.size(t) for t in tree.leaves(tangents))
    if "fwd" in modes:
        value, found = jvp(f, args, tangents)
        _compare_trees(tolerance, value, out, f"the value under jvp{where and ' of ' + where}")
        wanted = [*map(_fill_undecided, *map(tree.leaves, (numerical, found)))] if empty else numerical
        _compare_trees(tolerance, found, wanted, f"jvp{where and ' of ' + where}")
    if "rev" in modes:
        value, pullback = vjp(f, *args)
        _compare_trees(tolerance, value, out, f"the value under vjp{where and ' of ' + where}")
        # in the structure and dtypes of this value: on plain arrays SciPy gives lists for some of its tuples
        cts = tree.map(lambda y: random_like(as_value(y), rng), value)
        tolerance.compare(
            pairing(pullback(cts), tangents),
            0.0 if empty else pairing(cts, numerical),  # no numbers pair to 0, whatever the value
            f"vjp{where and ' of ' + where} (paired with a random tangent)",
            single=any(_is_single(y) for y in tree.leaves(out)),
        )
    if order > 1:
        for mode in modes:
            name, derivative = ("jvp", along(f, tangents)) if mode == "fwd" else ("vjp", against(f, cts))
            _check(derivative, args, order - 1, modes, tolerance, eps, rng, (*path, name))


def _fill_undecided(numerical: Any, found: Any) -> Any:
    """Return a numerical derivative, and what was found where it is NaN.

    A function of no numbers is constant, but the difference of two NaNs (a mean of nothing) does not say so.
    """
    if np.shape(numerical) != np.shape(found):
        return numerical
    return np.where(np.isnan(numerical), found, numerical)[()]


def along(f: Callable, tangents: Any) -> Callable:
    """Return the function of the point that gives the JVP along fixed tangents."""
    return lambda *xs: jvp(f, xs, _as(tangents, xs))[1]


def against(f: Callable, cts: Any) -> Callable:
    """Return the function of the point that gives the VJP of fixed cotangents."""

    def derivative(*xs):
        y, pullback = vjp(f, *xs)
        return pullback(_as(cts, y))

    return derivative


def _as(directions: Any, points: Any) -> Any:
    """Return directions in the dtypes of the points: single precision is measured in double."""
    return tree.map(lambda t, x: t if t.dtype == x.dtype else t.astype(x.dtype), directions, points)


def _compare_trees(tolerance: _Tolerance, got: Any, wanted: Any, what: str) -> None:
    for g, w in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        if np.shape(g) != np.shape(w):
            raise GradientCheckError(f"{what} has the shape {np.shape(g)} and not {np.shape(w)}")
        tolerance.compare(g, w, what)
