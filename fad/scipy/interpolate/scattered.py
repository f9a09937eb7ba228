"""Interpolation of points that lie anywhere: radial basis functions.

Source: R. Schaback, "A Practical Guide to Radial Basis Functions", and the documentation of
scipy.interpolate.RBFInterpolator, whose system and scaling of polynomials these are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate as theirs

from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.interpolate.common import Curve, contract_with, double, together
from fad.scipy.spatial.distance import cdist


def _thin_plate(s: Any) -> Any:
    """Return r**2 log(r) of s = r**2: at 0 it is 0 and so is its slope, but its curvature is infinite, here NaN."""
    positive = s > 0
    at_zero = np.where(positive, 0.0, s**1.5)
    return 0.5 * np.where(positive, s * np.log(np.where(positive, s, 1.0)), at_zero)


# Of the squared distances, where they are all that is needed, and else of the distances.
_OF_SQUARES: dict[str, Callable] = {
    "multiquadric": lambda s: -np.sqrt(s + 1.0), "inverse_multiquadric": lambda s: 1.0 / np.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0), "gaussian": lambda s: np.exp(-s),
    "thin_plate_spline": _thin_plate,
}  # fmt: skip
_OF_DISTANCES: dict[str, Callable] = {"linear": lambda r: -r, "cubic": lambda r: r**3, "quintic": lambda r: -(r**5)}
_LEAST_DEGREE = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}
_SCALE_FREE = ("linear", "thin_plate_spline", "cubic", "quintic")


def _evaluate_kernel(name: str, x: Any, y: Any, epsilon: Any) -> Any:
    """Return the kernel of all pairs of points of two sets."""
    x, y = x * epsilon, y * epsilon
    if name in _OF_DISTANCES:
        return _OF_DISTANCES[name](cdist(x, y))
    d = x[:, None, :] - y[None, :, :]
    return _OF_SQUARES[name](np.sum(d * d, axis=-1))


def _evaluate_among(name: str, y: Any, epsilon: Any) -> Any:
    """Return the kernel of all pairs of points of one set; that of a point with itself is a constant."""
    own = np.eye(y.shape[0], dtype=bool)
    y = y * epsilon
    d = y[:, None, :] - y[None, :, :]
    s = np.where(own, 1.0, np.sum(d * d, axis=-1))
    k = _OF_SQUARES[name](s) if name in _OF_SQUARES else _OF_DISTANCES[name](np.sqrt(s))
    at_zero = _OF_SQUARES[name](0.0) if name in _OF_SQUARES else 0.0
    return np.where(own, at_zero, k)


def _powers(dimensions: int, degree: int) -> list[tuple]:
    """Return the exponents of the monomials up to a degree, in the order of their degrees."""
    each = itertools.chain.from_iterable(
        itertools.combinations_with_replacement(range(dimensions), d) for d in range(degree + 1)
    )
    return [tuple(chosen.count(k) for k in range(dimensions)) for chosen in each]


def _monomials(x: Any, powers: list[tuple]) -> Any:
    columns = []
    for exponents in powers:
        column = 1.0 + 0.0 * x[:, 0]
        for k, n in enumerate(exponents):
            column = column * x[:, k] ** n if n else column
        columns.append(column)
    return np.stack(columns, axis=1)


class RBFInterpolator(Curve):
    """Interpolate scattered points of any dimension by radial basis functions and a polynomial.

    Differentiable in the points `y`, the values `d`, `smoothing`, `epsilon` and the points of evaluation. At a data
    point "linear" has a kink, of whose slopes the middle is given, and the second derivative of "thin_plate_spline" is
    infinite, and NaN.

    Parameters
    ----------
    y : array (n, dims)
        Where the values are known.
    d : array (n, ...)
        Values.
    neighbors : None
        All points are used.
    smoothing : float or array (n,)
        0 interpolates; larger numbers fit less.
    kernel : str
        "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric", "inverse_quadratic"
        or "gaussian".
    epsilon : float, optional
        Multiplies the distances; 1 where the kernel has no scale, and needed where it has one.
    degree : int, optional
        Of the polynomial, -1 for none; by default the least that makes the system solvable.

    Raises
    ------
    NotImplementedError
        for `neighbors`.
    ValueError
        if the kernel is unknown, `epsilon` is missing, or there are too few points for the polynomial.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import RBFInterpolator
    >>> y = np.array([[0.0], [1.0], [2.0], [4.0]])
    >>> f = lambda d: RBFInterpolator(y, d)(np.array([[3.0]]))[0]
    >>> f(y[:, 0]).round(9), fad.grad(f)(y[:, 0]).sum().round(9)
    (np.float64(3.0), np.float64(1.0))
    """

    _arrays = ("y", "d", "epsilon", "shift", "scale", "coefficients")

    def __init__(
        self, y: Any, d: Any, neighbors: None = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
        epsilon: Any = None, degree: int | None = None,
    ):  # fmt: skip
        if neighbors is not None:
            raise NotImplementedError("RBFInterpolator takes neighbors=None here: the choice of near ones is in steps")
        kernel = kernel.lower()
        if kernel not in _OF_SQUARES and kernel not in _OF_DISTANCES:
            raise ValueError(f"`kernel` must be one of {sorted((*_OF_SQUARES, *_OF_DISTANCES))}, not {kernel!r}.")
        if epsilon is None:
            if kernel not in _SCALE_FREE:
                raise ValueError(f"`epsilon` must be specified if `kernel` is not one of {sorted(_SCALE_FREE)}.")
            epsilon = 1.0
        y, d = together(y, d)
        if y.ndim != 2 or d.shape[:1] != y.shape[:1]:
            raise ValueError(f"`y` must be of shape (n, dims) and `d` of shape (n, ...), not {y.shape} and {d.shape}.")
        least = _LEAST_DEGREE.get(kernel, -1)
        degree = max(least, 0) if degree is None else int(degree)
        if degree < -1:
            raise ValueError("`degree` must be at least -1.")
        self.kernel, self.powers = kernel, _powers(y.shape[1], degree)
        if len(self.powers) > y.shape[0]:
            raise ValueError(f"At least {len(self.powers)} data points are required when `degree` is {degree}.")
        self.y, self.d, self.epsilon = y, d, epsilon
        self._solve(as_array(smoothing))

    def _solve(self, smoothing: Any) -> None:
        y, n, r = self.y, self.y.shape[0], len(self.powers)
        low, high = np.min(stop_gradient(y), axis=0), np.max(stop_gradient(y), axis=0)
        self.shift, width = (high + low) / 2, (high - low) / 2  # any does: the polynomials span the same space
        self.scale = np.where(width == 0.0, 1.0, width)
        values = self.d.reshape(n, -1)
        k = _evaluate_among(self.kernel, y, self.epsilon) + np.diag(smoothing + np.zeros(n))
        if r:
            p = _monomials((y - self.shift) / self.scale, self.powers)
            k = np.concatenate(
                [np.concatenate([k, p], axis=1), np.concatenate([p.T, np.zeros((r, r))], axis=1)], axis=0
            )
            values = np.concatenate([values, np.zeros((r, values.shape[1]))], axis=0)
        self.coefficients = np.linalg.solve(k, values)

    def __call__(self, x: Any) -> Any:
        """Evaluate at points, an array of shape (m, dims); the result has the shape (m, ...)."""
        x = double(x)
        if x.ndim != 2 or x.shape[1] != self.y.shape[1]:
            raise ValueError(f"Expected `x` of shape (m, {self.y.shape[1]}), not {x.shape}.")
        at = _evaluate_kernel(self.kernel, x, self.y, self.epsilon)
        if self.powers:
            at = np.concatenate([at, _monomials((x - self.shift) / self.scale, self.powers)], axis=1)
        return (at @ self.coefficients).reshape(x.shape[0], *self.d.shape[1:])


# --- the contract ---------------------------------------------------------------------------------------------------


def _of_points(kind: Any) -> Any:
    def evaluate(y, d, x, smoothing=0.0, epsilon=None, **options):
        return kind(y, d, smoothing=smoothing, epsilon=epsilon, **options)(x)

    return evaluate


def _samples(s: Any) -> list:
    def points(n: int, dims: int) -> Any:
        return np.arange(n)[:, None] ** np.arange(1, dims + 1) * 0.5 + 0.02 * s.real(n, dims).real

    return [
        call(points(5, 1), s.real(5), points(3, 1) + 0.25),
        call(points(6, 2), s.real(6, 2), points(3, 2) + 0.25, 0.3, kernel="cubic"),
        call(points(6, 2), s.real(6), points(3, 2) + 0.25, 0.0, 0.7, kernel="gaussian"),
        call(points(5, 1), s.real(5), points(3, 1) + 0.25, 0.1, 1.5, kernel="multiquadric", degree=1),
        *[
            call(points(5, 1), s.real(5), points(3, 1) + 0.25, 0.0, 1.2, kernel=kernel)
            for kernel in ("linear", "quintic", "inverse_quadratic", "inverse_multiquadric")
        ],
    ]


contract_with("RBFInterpolator", _of_points(theirs.RBFInterpolator), _samples)(_of_points(RBFInterpolator))
