"""The polynomial through points: BarycentricInterpolator, KroghInterpolator and the functions of these names.

A value is the sum of the points' values times Lagrange's polynomials, each a product over the other points: it has all
derivatives, also at the points, where the barycentric formula divides by zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as theirs

from fad.backends import like
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import normalize_axis
from fad.scipy.interpolate.common import Curve, contract_with, double, place, together
from fad.transforms.jvp import jvp


class KroghInterpolator(Curve):
    """The polynomial through points; a tree of places and values.

    Parameters
    ----------
    xi : array (n,)
        Places, no two of them equal: SciPy's repetitions, which give derivatives, are not offered.
    yi : array
        Values, n of them along `axis`.
    axis : int
        The axis of `yi` along `xi`.

    Raises
    ------
    ValueError
        if `xi` and `yi` differ in length.
    NotImplementedError
        if a place is there twice.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import KroghInterpolator
    >>> x = np.arange(4.0)
    >>> fad.grad(lambda t: KroghInterpolator(x, x**3)(t))(1.0).round(9)
    np.float64(3.0)
    """

    _arrays = ("xi", "yi")

    def __init__(self, xi: Any, yi: Any, axis: int = 0):
        self._set(xi, yi, axis)

    def _set(self, xi: Any, yi: Any, axis: int) -> None:
        xi, yi = together(xi, yi)
        self.axis = normalize_axis(axis, yi.ndim)
        self.xi, self.yi = xi, np.moveaxis(yi, self.axis, 0)
        if xi.ndim != 1 or self.yi.shape[0] != xi.shape[0]:
            raise ValueError(f"there are {xi.shape} places and {self.yi.shape[:1]} values along axis {axis}")
        plain = stop_gradient(xi)
        if np.unique(plain).shape[0] < xi.shape[0]:
            raise NotImplementedError(
                f"the places {plain} repeat, which stands for derivatives in SciPy; CubicHermiteSpline takes slopes"
            )

    def __call__(self, x: Any) -> Any:
        """Evaluate the polynomial."""
        x = like(self.xi, double(x))
        n = self.xi.shape[0]
        points, own = x.reshape(-1, 1, 1), np.eye(n, dtype=bool)
        apart = np.where(own, 1.0, self.xi[:, None] - self.xi[None, :])  # of point j, whose polynomial it is, and k
        basis = np.prod(np.where(own, 1.0, (points - self.xi) / apart), axis=-1)
        y = (basis @ self.yi.reshape(n, -1)).reshape(x.shape + self.yi.shape[1:])
        return place(y, x.ndim, self.axis)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """Return the derivative of order `der` at points."""
        f = self.__call__
        for _ in range(der):
            f = _differentiate(f)
        return f(double(x))

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """Return the value and the derivatives of orders below `der`, by default as many as there are points."""
        orders = self.xi.shape[0] if der is None else der
        return np.stack([self.derivative(x, nu) for nu in range(orders)])


def _differentiate(f: Any) -> Any:
    return lambda x: jvp(f, (x,), (np.ones_like(x),))[1]


class BarycentricInterpolator(KroghInterpolator):
    """The polynomial through points; a tree of places and values.

    Parameters
    ----------
    xi : array (n,)
        Places, no two of them equal.
    yi : array
        Values, n of them along `axis`.
    axis : int
        The axis of `yi` along `xi`.
    wi, rng
        Without effect: SciPy's weights, and the order in which it computes them.

    Raises
    ------
    ValueError
        if `xi` and `yi` differ in length, or `yi` is missing.
    NotImplementedError
        if a place is there twice.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import BarycentricInterpolator
    >>> x = np.arange(4.0)
    >>> fad.grad(lambda t: BarycentricInterpolator(x, x**3)(t))(1.0).round(9)
    np.float64(3.0)
    """

    _arrays = ("xi", "yi")

    def __init__(self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None):
        if yi is None:
            raise ValueError("BarycentricInterpolator takes the values yi when it is made here")
        self._set(xi, yi, axis)


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Return the values at `x` of the polynomial through points, or its derivatives.

    Parameters
    ----------
    xi : array (n,)
        Places.
    yi : array
        Values, n of them along `axis`.
    x : array
        Points of evaluation.
    der : int or list
        Order of the derivative, or several.
    axis : int
        The axis of `yi` along `xi`.

    Returns
    -------
    array

    Raises
    ------
    NotImplementedError
        if a place is there twice.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import krogh_interpolate
    >>> x = np.arange(4.0)
    >>> fad.grad(lambda t: krogh_interpolate(x, x**3, t))(1.0).round(9)
    np.float64(3.0)
    """
    through = KroghInterpolator(xi, yi, axis)
    return through.derivative(x, der) if isinstance(der, int) else np.stack([through.derivative(x, d) for d in der])


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None) -> Any:
    """Return the values at `x` of the polynomial through points, or its derivatives.

    Parameters
    ----------
    xi : array (n,)
        Places.
    yi : array
        Values, n of them along `axis`.
    x : array
        Points of evaluation.
    axis : int
        The axis of `yi` along `xi`.
    der : int or list
        Order of the derivative, or several.
    rng
        Without effect.

    Returns
    -------
    array

    Raises
    ------
    NotImplementedError
        if a place is there twice.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import barycentric_interpolate
    >>> x = np.arange(4.0)
    >>> fad.grad(lambda t: barycentric_interpolate(x, x**3, t))(1.0).round(9)
    np.float64(3.0)
    """
    return krogh_interpolate(xi, yi, x, der, axis)


# --- the contract ---------------------------------------------------------------------------------------------------


def _places(s: Any, n: int) -> Any:
    return np.cumsum(0.5 + s.positive(n)).astype(s.dtype).real


def _of(kind: Any) -> Any:
    return lambda xi, yi, x, axis=0: kind(xi, yi, axis)(x)


def _derivative_of(kind: Any) -> Any:
    return lambda xi, yi, x, der: kind(xi, yi).derivative(x, der)


for _kind, _their_kind in (
    (KroghInterpolator, theirs.KroghInterpolator), (BarycentricInterpolator, theirs.BarycentricInterpolator),
):  # fmt: skip
    contract_with(_kind.__name__, _of(_their_kind), lambda s: [
        call(_places(s, 4), s.real(4), s.real(3).real), call(_places(s, 4), s.real(2, 4), s.real(2, 2).real, axis=1)],
        rounding="single")(_of(_kind))  # fmt: skip
    contract_with(f"{_kind.__name__}.derivative", _derivative_of(_their_kind), lambda s: [
        call(_places(s, 4), s.real(4), s.real(3).real, 2)], rounding="single")(
        _derivative_of(_kind))  # fmt: skip
for _function in (krogh_interpolate, barycentric_interpolate):
    contract_with(_function.__name__, getattr(theirs, _function.__name__), lambda s: [
        call(_places(s, 4), s.real(4), s.real(3).real), call(_places(s, 4), s.real(4, 2), s.real(3).real)],
        rounding="single")(_function)  # fmt: skip
