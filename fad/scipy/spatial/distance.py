"""``scipy.spatial.distance``, differentiable: between two vectors, and between all points of two sets.

Where points coincide, the Euclidean distance has the derivative 0, the least of its subgradients, and so has every
other distance that has a kink there. Metrics of booleans alone are SciPy's: they have no derivative.

>>> import numpy as np, fad
>>> points = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])
>>> fad.grad(lambda p: np.sum(fad.scipy.spatial.distance.pdist(p)))(points)
array([[-1.2, -1.6],
       [ 0.6,  0.8],
       [ 0.6,  0.8]])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.spatial.distance

from fad.backends import like
from fad.core.primitives.options import refuse_out
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import missing, registrar
from fad.scipy.spatial import metrics
from fad.scipy.spatial.pairs import kinks, root, sum_along

register_function = registrar("spatial.distance")


# --- between two vectors --------------------------------------------------------------------------------------------


def _vector(x: Any) -> Any:
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError("Input vector should be 1-D.")
    return x if x.dtype.kind == "f" else x.astype(float)


def _weights(w: Any) -> Any:
    if w is None:
        return None
    w = as_array(w).astype(np.float64)
    if np.any(w < 0):
        raise ValueError("Input weights should be all non-negative")
    return w


def _two(s):
    return [call(s.real(4), s.real(4)), call(s.real(3), s.real(3), w=s.positive(3))]


def _kinks_of_two(u: Any, v: Any, *_: Any, **__: Any) -> tuple:
    return kinks(u, v)


def _pair(name: str, formula: Callable, what: str, double: bool = False) -> Callable:
    def between(u, v, w=None):
        u, v = _vector(u), _vector(v)
        if double:
            u, v = u.astype(np.float64), v.astype(np.float64)
        return formula(u, v, _weights(w))

    theirs = getattr(scipy.spatial.distance, name)([1.0, 2.0, 4.0], [3.0, 2.0, 3.0])
    doc = f"""Return the {what} between two vectors, with optional weights.

    >>> round(float(fad.scipy.spatial.distance.{name}(np.array([1.0, 2.0, 4.0]), np.array([3.0, 2.0, 3.0]))), 6)
    {round(float(theirs), 6)!r}
    """
    raises = "ValueError: An operand has several axes, or the vectors have different lengths."
    notes = {"kinks": _kinks_of_two, "complex": False, "rounding": "single", "raises": raises}
    return register_function(name, samples=_two, doc=doc, **notes)(between)


def _cityblock(u: Any, v: Any, w: Any) -> Any:
    return metrics.powers(u, v, w, 1)


def _euclidean(u: Any, v: Any, w: Any) -> Any:
    return metrics.powers(u, v, w, 2)


@functools.cache
def _lengths_are_double() -> bool:
    """Return whether SciPy gives the Euclidean length of a vector of single precision in double, as before 1.18."""
    vector = np.zeros(1, dtype=np.float32)
    return np.asarray(scipy.spatial.distance.euclidean(vector, vector)).dtype == np.float64


euclidean = _pair("euclidean", _euclidean, "Euclidean distance", _lengths_are_double())
sqeuclidean = _pair("sqeuclidean", metrics.squares, "squared Euclidean distance")
cityblock = _pair("cityblock", _cityblock, "sum of absolute differences")
canberra = _pair("canberra", metrics.canberra, "sum of differences relative to the sum of magnitudes", True)
braycurtis = _pair("braycurtis", metrics.braycurtis, "sum of absolute differences over that of absolute sums", True)


@register_function(
    "chebyshev",
    complex=False,
    samples=_two,
    kinks=_kinks_of_two,
    raises="ValueError: An operand has several axes, or the vectors have different lengths.",
)
def chebyshev(u, v, w=None):
    """Return the largest absolute difference of two vectors, among places with a positive weight.

    >>> fad.scipy.spatial.distance.chebyshev(np.array([1.0, 2.0]), np.array([4.0, 3.0]))
    np.float64(3.0)
    >>> fad.grad(fad.scipy.spatial.distance.chebyshev)(np.array([1.0, 2.0]), np.array([4.0, 3.0]))
    array([-1.,  0.])
    """
    return metrics.powers(_vector(u), _vector(v), _weights(w), math.inf)


@register_function("minkowski", complex=False, rounding="single", kinks=_kinks_of_two, samples=lambda s: [
    call(s.real(4), s.real(4)), call(s.real(4), s.real(4), 3.5), call(s.real(3), s.real(3), 1, w=s.positive(3)),
    call(s.real(3), s.real(3), 1.5, w=s.positive(3))],
    raises="ValueError: An operand has several axes, or the vectors have different lengths.")  # fmt: skip
def minkowski(u, v, p=2, w=None):
    """Return the p-norm of the difference of two vectors, with optional weights.

    >>> import numpy as np, fad
    >>> from fad.scipy.spatial.distance import minkowski
    >>> fad.grad(minkowski)(np.zeros(2), np.zeros(2), 3)
    array([0., 0.])
    """
    if p <= 0:
        raise ValueError("p must be greater than 0")
    u, v = _vector(u), _vector(v)
    if p == 2 and _lengths_are_double():
        u, v = u.astype(np.float64), v.astype(np.float64)
    return metrics.powers(u, v, _weights(w), p)


@register_function(
    "cosine",
    complex=False,
    rounding="single",
    samples=_two,
    kinks=_kinks_of_two,
    raises="ValueError: An operand has several axes, or the vectors have different lengths.",
)
def cosine(u, v, w=None):
    """Return 1 less the cosine of the angle between two vectors.

    >>> fad.scipy.spatial.distance.cosine(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    np.float64(1.0)
    """
    return _clip(metrics.correlation(_vector(u), _vector(v), _weights(w), centered=False))


@register_function(
    "correlation",
    complex=False,
    samples=_two,
    kinks=_kinks_of_two,
    raises="ValueError: An operand has several axes, or the vectors have different lengths.",
)
def correlation(u, v, w=None, centered=True):
    """Return 1 less the correlation of two vectors.

    >>> fad.scipy.spatial.distance.correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])).round(6)
    np.float64(2.0)
    """
    return _clip(metrics.correlation(_vector(u), _vector(v), _weights(w), centered))


def _clip(d: Any) -> Any:
    """Return a distance between 0 and 2, which rounding may have brought outside."""
    return metrics.where(d < 0, 0.0 * d, np.where(d > 2, 2.0 + 0.0 * d, d))


@register_function("seuclidean", complex=False, rounding="single", samples=lambda s: [
    call(s.real(3), s.real(3), s.positive(3))],
    raises="TypeError: `V` is no vector of the length of the operands.")  # fmt: skip
def seuclidean(u, v, V):
    """Return the Euclidean distance with each squared difference divided by a variance.

    >>> float(fad.scipy.spatial.distance.seuclidean(np.zeros(2), np.array([3.0, 4.0]), np.ones(2)))
    5.0
    """
    u, v, variances = _vector(u), _vector(v), _vector(V)
    if variances.shape != u.shape or u.shape != v.shape:
        raise TypeError("V must be a 1-D array of the same dimension as u and v.")
    return _euclidean(u, v, 1.0 / variances.astype(np.float64))


@register_function(
    "mahalanobis",
    complex=False,
    samples=lambda s: [call(s.real(3), s.real(3), _definite(s, 3))],
    raises="ValueError: An operand has several axes, or the vectors have different lengths.",
)
def mahalanobis(u, v, VI):
    """Return the distance of two vectors by the inverse `VI` of a covariance matrix.

    >>> fad.scipy.spatial.distance.mahalanobis(np.array([0.0, 0.0]), np.array([3.0, 4.0]), np.eye(2))
    np.float64(5.0)
    """
    return metrics.mahalanobis(_vector(u), _vector(v), as_array(VI))


def _definite(s, n):
    x = s.real(n, n)
    return (x @ x.T + 2.0 * np.eye(n)).astype(s.dtype)


@register_function("jensenshannon", complex=False, samples=lambda s: [
    call(s.positive(4), s.positive(4)), call(s.positive(3, 2), s.positive(3, 2), base=2.0),
    call(s.positive(2, 3), s.positive(2, 3), axis=1, keepdims=True)])  # fmt: skip
def jensenshannon(p, q, base=None, *, axis=0, keepdims=False):
    """Return the root of the Jensen-Shannon divergence of two vectors of probabilities.

    >>> fad.scipy.spatial.distance.jensenshannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])).round(6)
    np.float64(0.832555)
    """
    p, q = (np.moveaxis(as_array(x), axis, -1) for x in (p, q))
    d = metrics.jensenshannon(p, q)
    d = d if base is None else d / math.sqrt(math.log(base))
    return np.expand_dims(d, axis) if keepdims else d


# --- between sets of points -----------------------------------------------------------------------------------------

_SHORT = {
    "euclid": "euclidean", "eu": "euclidean", "e": "euclidean", "sqe": "sqeuclidean", "sqeuclid": "sqeuclidean",
    "cb": "cityblock", "c": "cityblock", "cblock": "cityblock", "cheby": "chebyshev", "cheb": "chebyshev",
    "ch": "chebyshev", "chebychev": "chebyshev", "cos": "cosine", "co": "correlation", "js": "jensenshannon",
    "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "mahal": "mahalanobis", "mah": "mahalanobis",
    "se": "seuclidean", "s": "seuclidean",
}  # fmt: skip


def _all_powers(a: Any, b: Any, w: Any, p: Any) -> Any:
    if p == math.inf:
        inside = 1.0 if w is None else (w > 0) * 1.0
        return sum_along("largest", a * inside, b * inside)
    if p == 1:
        return sum_along("absolute", a, b, w)
    if p == 2:
        return root(sum_along("square", a, b, w))
    return metrics.positive_power(sum_along("power", a, b, w, p), 1.0 / p)


def _all_braycurtis(a: Any, b: Any, w: Any) -> Any:
    return sum_along("absolute", a, b, w) / sum_along("absolute", a, -b, w)


def _all_cosines(a: Any, b: Any, w: Any, centered: bool = False) -> Any:
    if centered:
        a, b = a - metrics.mean(a, w), b - metrics.mean(b, w)
    squares = [np.sum(metrics.weigh(x * x, w), axis=-1) for x in (a, b)]
    return 1.0 - metrics.weigh(a, w) @ b.T / np.sqrt(squares[0][:, None] * squares[1][None, :])


# The distances between all points of two sets, (a, b, weights) -> one for each pair.
_BETWEEN: dict[str, Callable] = {
    "euclidean": lambda a, b, w: _all_powers(a, b, w, 2),
    "sqeuclidean": lambda a, b, w: sum_along("square", a, b, w),
    "cityblock": lambda a, b, w: _all_powers(a, b, w, 1),
    "canberra": lambda a, b, w: sum_along("canberra", a, b, w),
    "braycurtis": _all_braycurtis,
    "chebyshev": lambda a, b, w: _all_powers(a, b, w, math.inf),
    "cosine": _all_cosines,
    "correlation": lambda a, b, w: _all_cosines(a, b, w, centered=True),
}


def _between_all(formula: Callable) -> Callable:
    """Return the distances between all points of two sets from the formula of one, over the last axis."""
    return lambda a, b: formula(_by_coordinate(a)[:, None, :], _by_coordinate(b)[None, :, :])


def _metric(metric: Any, points: tuple, w: Any = None, p: Any = 2, V: Any = None, VI: Any = None) -> Callable:
    """Return the distances between all points of two sets for a metric of cdist or pdist, and its arguments."""
    if callable(metric):
        name = getattr(metric, "__name__", "")
        if name not in _BETWEEN and name not in _SHORT.values():
            raise ValueError("cdist and pdist of traced values take the name of a metric, or one of these functions")
        metric = name
    metric = _SHORT.get(metric.lower(), metric.lower())
    if metric == "seuclidean":
        V = np.var(np.concatenate(points), axis=0, ddof=1) if V is None else as_array(V)
        return lambda a, b: _all_powers(a, b, 1.0 / V.astype(np.float64), 2)
    if metric == "mahalanobis":
        if VI is None:
            VI = np.linalg.inv(np.cov(np.concatenate(points).T)).T
        return _between_all(lambda u, v: metrics.mahalanobis(u, v, VI))
    if metric == "jensenshannon":
        return _between_all(metrics.jensenshannon)
    w = _weights(w)
    if metric == "minkowski":
        if p <= 0:
            raise ValueError("p must be greater than 0")
        return lambda a, b: _all_powers(a, b, w, p)
    if metric not in _BETWEEN:
        raise ValueError(
            f"the metric {metric!r} is unknown or has no derivative; there are {sorted({*_BETWEEN, *_SHORT.values()})}"
        )
    return lambda a, b: _BETWEEN[metric](a, b, w)


def _arguments(metric: Any, given: dict) -> dict:
    """Check the keyword arguments of a metric."""
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "")
    name = _SHORT.get(name.lower(), name.lower())
    allowed = {"minkowski": ("p", "w"), "seuclidean": ("V",), "mahalanobis": ("VI",), "jensenshannon": ()}
    unknown = set(given) - set(allowed.get(name, ("w",)))
    if unknown:
        raise TypeError(f"the metric {name} takes no argument {sorted(unknown)[0]!r}")
    return given


def _points(x: Any) -> Any:
    x = as_array(x)
    if x.ndim != 2:
        raise ValueError("A 2-dimensional array must be passed.")
    return x.astype(np.float64)


_METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "canberra", "braycurtis", "cosine", "correlation")


def _cdist_samples(s):
    few = [call(s.real(2, 3), s.real(3, 3), m) for m in _METRICS]
    return [
        *few, call(s.real(2, 3), s.real(3, 3), "minkowski", p=3.0), call(s.real(2, 3), s.real(3, 3), "se"),
        call(s.positive(2, 3), s.positive(3, 3), "jensenshannon"), call(s.real(3, 2), s.real(3, 2), "mahalanobis"),
        call(s.real(2, 3), s.real(2, 3), "mahalanobis", VI=_definite(s, 3)),
        call(s.real(2, 3), s.real(1, 3), w=s.positive(3)),
    ]  # fmt: skip


@register_function("cdist", samples=_cdist_samples, complex=False, kinks=lambda a, b, *_, **__: kinks(a[:, None], b))
def cdist(XA, XB, metric="euclidean", *, out=None, **kwargs):
    """Return the distances between all points of two sets, in double precision.

    >>> import numpy as np, fad
    >>> from fad.scipy.spatial.distance import cdist
    >>> fad.grad(lambda a: cdist(a, np.zeros((1, 2)))[0, 0])(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    refuse_out(out)
    a, b = _points(XA), _points(XB)
    if a.shape[1] != b.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    return _metric(metric, (a, b), **_arguments(metric, kwargs))(a, b)


def _by_coordinate(x: Any) -> Any:
    """Return points with each coordinate's numbers side by side in memory: sums over few coordinates are quicker."""
    return x.T.reshape(-1).reshape(x.shape[::-1]).T


def _pdist_samples(s):
    few = [call(s.real(4, 3), m) for m in _METRICS]
    return [
        *few, call(s.real(4, 3), "minkowski", p=1.5, w=s.positive(3)),
        call(s.real(4, 3), "seuclidean", V=s.positive(3)),
        call(s.positive(3, 3), "jensenshannon"), call(s.real(4, 2), "mahalanobis"), call(s.real(1, 2)),
    ]  # fmt: skip


def _kinks_of_all(x: Any, *_: Any, **__: Any) -> tuple:
    i, j = np.triu_indices(len(x), 1)
    return kinks(x[i], x[j])


@register_function(
    "pdist",
    samples=_pdist_samples,
    complex=False,
    rounding="single",
    kinks=_kinks_of_all,
    raises="ValueError: `X` is no matrix.",
)
def pdist(X, metric="euclidean", *, out=None, **kwargs):
    """Return the distances between all pairs of points of a set, as the entries above the diagonal of a matrix.

    >>> fad.scipy.spatial.distance.pdist(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([5.])
    >>> fad.grad(lambda x: fad.scipy.spatial.distance.pdist(x)[0])(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[-0.6, -0.8],
           [ 0.6,  0.8]])
    """
    refuse_out(out)
    x = _points(X)
    above = np.flatnonzero(~np.tri(x.shape[0], dtype=bool))  # one index is quicker than two, both ways
    return _metric(metric, (x,), **_arguments(metric, kwargs))(x, x).reshape(-1)[above]


@register_function("squareform", numerical=False, samples=lambda s: [
    call(s.real(6)), call(_symmetric(s, 3)), call(s.real(0)),
],
    raises="ValueError: The vector is no triangle, or the matrix is not square and symmetric.")  # fmt: skip
def squareform(X, force="no", checks=True):
    """Turn the distances of `pdist` into a symmetric matrix, or such a matrix into its entries above the diagonal.

    >>> import numpy as np
    >>> from fad.scipy.spatial.distance import squareform
    >>> squareform(np.array([1.0, 2.0, 3.0]))
    array([[0., 1., 2.],
           [1., 0., 3.],
           [2., 3., 0.]])
    """
    x = as_array(X)
    wanted = {"tomatrix": 1, "tovector": 2}.get(force.lower(), x.ndim)
    if x.ndim not in (1, 2):
        raise ValueError("The first argument must be one or two dimensional array.")
    if x.ndim != wanted:
        kind, other = ("vector", "matrix") if wanted == 1 else ("matrix", "vector")
        raise ValueError(f"Forcing '{force}' but input X is not a distance {kind}, but a {other}.")
    if x.ndim == 2:
        return _to_vector(x, checks)
    n = (1 + math.isqrt(1 + 8 * x.shape[0])) // 2
    if n * (n - 1) != 2 * x.shape[0]:
        raise ValueError("Incompatible vector size. It must be a binomial coefficient n choose 2, for n >= 2.")
    if x.shape[0] == 0:
        return np.zeros_like(x, shape=(1, 1))
    places = np.zeros((n, n), int)
    i, j = np.triu_indices(n, 1)
    places[i, j] = places[j, i] = np.arange(x.shape[0])
    return x[places] * like(x, (1 - np.eye(n)).astype(x.real.dtype))


def _to_vector(x: Any, checks: bool) -> Any:
    if x.shape[0] != x.shape[1]:
        raise ValueError("The matrix argument must be square.")
    if checks:
        plain = stop_gradient(x)
        if not np.all(np.abs(plain - plain.T) <= 1e-8) or np.any(np.diagonal(plain) != 0):
            raise ValueError("Distance matrix 'X' must be symmetric, with zeros on its diagonal.")
    i, j = np.triu_indices(x.shape[0], 1)
    return x[i, j]


def _symmetric(s, n):
    x = s.real(n, n)
    return np.triu(x, 1) + np.triu(x, 1).T


__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
    "jensenshannon", "mahalanobis", "minkowski", "pdist", "seuclidean", "sqeuclidean", "squareform",
]  # fmt: skip
__getattr__ = missing("spatial.distance")
