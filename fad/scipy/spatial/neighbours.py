"""Nearest neighbours of traced points among traced points, distances between sets, and convex hulls.

Which points are neighbours, or corners, is constant almost everywhere; what they are apart, or enclose, is not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.spatial

from fad.core.handles.buffers import PLAIN
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind, outcome, up_to_date
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.linalg import orthogonal_procrustes
from fad.scipy.registration import flat_on_host, registrar
from fad.scipy.spatial.distance import cdist
from fad.scipy.special.build import number

register_function = registrar("spatial")


def _find_neighbours(data: Any, x: Any, *, k: Any, eps: float, p: float, reach: float, boxsize: Any) -> Any:
    tree = scipy.spatial.cKDTree(data, boxsize=boxsize)
    return np.asarray(tree.query(x, list(k) if type(k) is tuple else k, eps, p, reach)[1], dtype=np.intp)


_SETTINGS: dict[str, Any] = {"eps": 0.0, "p": 2.0, "reach": math.inf, "boxsize": None}
neighbours_p = flat_on_host(
    "neighbours",
    _find_neighbours,
    lambda s: [call(s.real(6, 2), s.real(3, 2), k=2, **_SETTINGS), call(s.real(4, 1), s.real(1), k=1, **_SETTINGS)],
    "The numbers of the nearest points; that of no point is how many there are.",
    complex=False,
)


def _find_within(data: Any, x: Any, r: Any, *, p: float, eps: float, boxsize: Any) -> Any:
    tree = scipy.spatial.cKDTree(data, boxsize=boxsize)
    found = np.zeros((*x.shape[:-1], len(data)), bool)
    numbers = tree.query_ball_point(x, r, p, eps)
    for i in np.ndindex(*x.shape[:-1]):
        found[i][numbers[i] if i else numbers] = True
    return found


_REACH: dict[str, Any] = {"p": 2.0, "eps": 0.0, "boxsize": None}
within_p = flat_on_host(
    "within",
    _find_within,
    lambda s: [
        call(s.real(6, 2), s.real(3, 2), np.array(0.8), **_REACH),
        call(s.real(4, 1), s.real(1), np.array(0.5), **_REACH),
    ],
    "Which points have which others within a distance.",
    complex=False,
)


class KDTree:
    """Points among which nearest neighbours are found: both they and those asked for may be traced.

    `query` is differentiable: distances are computed from the points that SciPy's tree finds. The numbers of points
    within a distance are those of SciPy, and which they are chooses the path of a recorded program. What else SciPy's
    tree has is asked of plain points.

    Parameters
    ----------
    data : array (n, m)
        The points.
    leafsize, compact_nodes, copy_data, balanced_tree
        As in SciPy.
    boxsize : float, or array (m,)
        The periods of the space, constants.

    Raises
    ------
    ValueError
        if the points have not two axes.

    Examples
    --------
    >>> tree = fad.scipy.spatial.KDTree(np.array([[0.0, 0.0], [3.0, 4.0]]))
    >>> fad.grad(lambda x: tree.query(x)[0])(np.array([0.6, 0.8]))
    array([0.6, 0.8])
    """

    def __init__(self, data: Any, leafsize: int = 10, compact_nodes: bool = True, copy_data: bool = False,
                 balanced_tree: bool = True, boxsize: Any = None):  # fmt: skip
        self.data = as_array(data)
        if self.data.ndim != 2:
            raise ValueError("data must be 2 dimensions")
        self.data = self.data if self.data.dtype.kind == "f" else self.data.astype(float)
        self.n, self.m = self.data.shape
        self.boxsize = boxsize
        self._settings = {"leafsize": leafsize, "compact_nodes": compact_nodes, "balanced_tree": balanced_tree}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = getattr(self._of_scipy(), name)
        if not callable(found):
            return found
        if type(self.data) is Tracer:
            raise TypeError(f"{name} of a tree of traced points has no derivative here: compute it from distances")
        return lambda *args, **kwargs: found(*map(_take_values, args), **kwargs)

    def query_ball_point(self, x: Any, r: Any, p: float = 2.0, eps: float = 0.0, workers: int = 1,
                         return_sorted: bool | None = None, return_length: bool = False) -> Any:  # fmt: skip
        """Return the numbers of the points within a distance of others, as SciPy does."""
        if _have_values(self.data, x, r):
            options = {"workers": workers, "return_sorted": return_sorted, "return_length": return_length}
            return self._of_scipy().query_ball_point(_take_values(x), _take_values(r), p, eps, **options)
        near = self._find_near(as_array(x), r, p, eps)
        if return_length:
            return near.sum(axis=-1)
        found = np.empty(near.shape[:-1], object)
        for i in np.ndindex(*found.shape):
            found[i] = np.flatnonzero(near[i]).tolist()
        return found if found.ndim else found[()]

    def query_ball_tree(self, other: Any, r: float, p: float = 2.0, eps: float = 0.0) -> list:
        """Return for each point the numbers of those of another tree within a distance, as SciPy does."""
        if _have_values(self.data, other.data, r):
            points = scipy.spatial.KDTree(_take_values(other.data), boxsize=other.boxsize)
            return self._of_scipy().query_ball_tree(points, _take_values(r), p, eps)
        return [np.flatnonzero(row).tolist() for row in KDTree._find_near(other, self.data, r, p, eps)]

    def query_pairs(self, r: float, p: float = 2.0, eps: float = 0.0, output_type: str = "set") -> Any:
        """Return the pairs of points within a distance of each other, as SciPy does."""
        if _have_values(self.data, r):
            return self._of_scipy().query_pairs(_take_values(r), p, eps, output_type)
        pairs = np.argwhere(np.triu(self._find_near(self.data, r, p, eps), 1))
        return pairs if output_type == "ndarray" else set(map(tuple, pairs.tolist()))

    def _of_scipy(self) -> Any:
        return scipy.spatial.KDTree(_take_values(self.data), boxsize=self.boxsize, **self._settings)

    def _find_near(self, x: Any, r: Any, p: float, eps: float) -> np.ndarray:
        """Return which points of the tree each of others has within a distance, a choice of a recorded program."""
        box = None if self.boxsize is None else tuple(np.broadcast_to(self.boxsize, (self.m,)).tolist())
        return outcome(bind(within_p, as_array(self.data), x, as_array(r), p=p, eps=eps, boxsize=box))

    def query(self, x: Any, k: Any = 1, eps: float = 0.0, p: float = 2.0, distance_upper_bound: float = np.inf,
              workers: int = 1) -> tuple:  # fmt: skip
        """Return the distances to the nearest points, and their numbers.

        Parameters
        ----------
        x : array (..., m)
            Where to look from.
        k : int, or list of int
            How many, or which ones in their order.
        eps, workers
            As in SciPy.
        p : float
            Of the norm, 1 or more.
        distance_upper_bound : float
            Points as far as that are none: their distance is infinite and their number `n`.

        Returns
        -------
        (distances, numbers) : arrays (...,) or (..., k)

        Raises
        ------
        ValueError
            if `x` has not `m` coordinates.
        """
        x = as_array(x)
        x = x if x.dtype.kind == "f" else x.astype(float)
        if x.shape[-1:] != (self.m,):
            raise ValueError(f"x must consist of vectors of length {self.m} but has shape {x.shape}")
        box = None if self.boxsize is None else np.asarray(self.boxsize, dtype=float)
        which = k if type(k) is int else tuple(int(i) for i in np.atleast_1d(k))
        found = bind(
            neighbours_p, self.data, x, k=which, eps=eps, p=p, reach=distance_upper_bound,
            boxsize=None if box is None else tuple(np.broadcast_to(box, (self.m,)).tolist()),
        )  # fmt: skip
        there = found < self.n
        many = found.ndim == x.ndim
        nearest = np.take(self.data, np.where(there, found, 0), axis=0).astype(float)  # SciPy's are in double precision
        apart = (x[..., None, :] if many else x) - nearest
        if box is not None:
            period = np.where(box > 0, box, 1.0)
            apart = np.where(box > 0, apart - period * np.round(stop_gradient(apart) / period), apart)
        distances = np.where(there, _measure(apart, p), np.inf)
        return (distances, found) if found.ndim else (distances[()], found[()])  # numbers, as SciPy gives them


class cKDTree(KDTree):
    """Points among which nearest neighbours are found: `KDTree` by its other name.

    Parameters
    ----------
    data : array (n, m)
        The points.
    leafsize, compact_nodes, copy_data, balanced_tree, boxsize
        As of `KDTree`.

    Raises
    ------
    ValueError
        if the points have not two axes.

    Examples
    --------
    >>> fad.scipy.spatial.cKDTree(np.array([[0.0], [3.0]])).query(np.array([2.0]))
    (np.float64(1.0), np.int64(1))
    """


def _have_values(*xs: Any) -> bool:
    """Return whether there are numbers behind all traced arrays now, as there are not while a program is recorded."""
    left = [up_to_date(x) for x in map(stop_gradient, xs) if type(x) is Tracer]
    return all(x.owner is PLAIN for x in left)


def _take_values(x: Any) -> Any:
    return np.asarray(stop_gradient(x)) if type(x) is Tracer else x


def _measure(apart: Any, p: float) -> Any:
    """Return the norms along the last axis, with the derivative 0 where points coincide."""
    if p in (1.0, np.inf):
        return np.sum(np.abs(apart), axis=-1) if p == 1.0 else np.max(np.abs(apart), axis=-1)
    total = np.sum(np.abs(apart) ** p if p != 2.0 else apart * apart, axis=-1)
    same = total == 0
    safe = np.where(same, 1.0, total)
    return np.where(same, 0.0, np.sqrt(safe) if p == 2.0 else safe ** (1.0 / p))


def _sets(s):
    return [call(s.real(3, 2), s.real(4, 2)), call(s.real(2, 3), s.real(2, 3), 3)]


@register_function("distance_matrix", complex=False, samples=_sets)
def distance_matrix(x, y, p=2.0, threshold=1000000):
    """Return the distances between all points of two sets, in the norm of the order `p`.

    >>> x = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> fad.grad(lambda y: fad.scipy.spatial.distance_matrix(x, y)[0, 0])(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    return cdist(x, y, "minkowski", p=p)


def _shapes(s):
    return [call(s.real(4, 2), s.real(4, 2)), call(s.real(5, 3), s.real(5, 3))]


@register_function("procrustes", complex=False, samples=_shapes, rounding="single",
                   raises="ValueError: The shapes differ, or all points of a set are the same.")  # fmt: skip
def procrustes(data1, data2):
    """Return two sets of points on a common scale, the second one turned onto the first, and what is left between them.

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> fad.scipy.spatial.procrustes(square, 2.0 * square + 1.0)[2].round(9)
    np.float64(0.0)
    """
    first, second = (as_array(x).astype(float) for x in (data1, data2))
    if first.ndim != 2 or second.ndim != 2:
        raise ValueError("Input matrices must be two-dimensional")
    if first.shape != second.shape:
        raise ValueError("Input matrices must be of same shape")
    if not first.size:
        raise ValueError("Input matrices must be >0 rows and >0 cols")
    first, second = (x - np.mean(x, axis=0) for x in (first, second))
    lengths = [np.sqrt(np.sum(x * x)) for x in (first, second)]
    if any(np.any(number(length == 0)) for length in lengths):
        raise ValueError("Input matrices must contain >1 unique points")
    first, second = first / lengths[0], second / lengths[1]
    turn, scale = orthogonal_procrustes(first, second)
    second = second @ turn.T * scale
    return first, second, np.sum((first - second) ** 2)


class ConvexHull:
    """The convex hull of points, whose volume and area are differentiable in them.

    Parameters
    ----------
    points : array (n, m)
        The points; under ``jit`` and ``vmap`` constants, for how many corners there are depends on them.
    incremental : bool
        Must be false where something is traced.
    qhull_options : str
        As in SciPy.

    Raises
    ------
    scipy.spatial.QhullError
        if all points lie in a plane.
    NotImplementedError
        if the points are traced and `incremental` is true.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    >>> fad.grad(lambda p: fad.scipy.spatial.ConvexHull(p).volume)(corners).round(9)
    array([[-1.5, -1. ],
           [ 1.5,  0. ],
           [ 0. ,  1. ]])
    """

    def __init__(self, points: Any, incremental: bool = False, qhull_options: Any = None):
        self.points = as_array(points)
        if incremental and type(self.points) is Tracer:
            raise NotImplementedError("a convex hull of traced points is made of all of them: incremental=False")
        self._hull = scipy.spatial.ConvexHull(np.asarray(stop_gradient(self.points)), incremental, qhull_options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in ("equations", "min_bound", "max_bound") and type(self.points) is Tracer:
            raise AttributeError(f"{name} of a hull of traced points has no derivative here: take its points")
        return getattr(self._hull, name)

    def _edges(self) -> tuple:
        """Return a corner of each facet, and the vectors from it to the others."""
        corners = np.take(self.points, self._hull.simplices, axis=0)
        return corners[:, 0], corners[:, 1:] - corners[:, :1]

    @property
    def volume(self) -> Any:
        """What the hull encloses; of points in the plane its area."""
        corner, edges = self._edges()
        inside = np.mean(np.take(self.points, self._hull.vertices, axis=0), axis=0)
        cones = np.concatenate([edges, (corner - inside)[:, None]], axis=1)
        return np.sum(np.abs(np.linalg.det(cones))) / math.factorial(self._hull.ndim)

    @property
    def area(self) -> Any:
        """The area of the facets; of points in the plane the length of the hull."""
        _, edges = self._edges()
        grams = edges @ np.swapaxes(edges, -1, -2)
        return np.sum(np.sqrt(np.linalg.det(grams))) / math.factorial(self._hull.ndim - 1)
