"""Images between their pixels: map_coordinates, shift, zoom, affine_transform, rotate, by splines of order 0 to 5.

A spline of an order above 1 needs coefficients whose spline goes through the pixels: a banded linear system for each
axis, solved by a sparse factorisation that serves its transpose as well. Then a value is a sum of coefficients with
weights that are polynomials of the coordinate; so images, coordinates, shifts and matrices all have derivatives. Which
pixels are near is piecewise constant. The rules at the edges are those of SciPy's C code.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import Any

import numpy as np
import scipy.ndimage

from fad.backends import backend_of, like
from fad.core.primitives.archetypes import linear
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.places.indexing import pick
from fad.scipy.ndimage.filters import MODES, beyond, in_dtype, per_axis, register_function

# --- the coefficients of splines ------------------------------------------------------------------------------------

_SAMPLED = {2: (1, 6, 1), 3: (1, 4, 1), 4: (1, 76, 230, 76, 1), 5: (1, 26, 66, 26, 1)}  # a B-spline at whole numbers
_BOUNDARY = {"reflect": "reflect", "grid-mirror": "reflect", "nearest": "reflect", "grid-wrap": "grid-wrap"}


def _index(i: Any, n: int, how: str) -> Any:
    """Return where an index beyond the edges is found inside."""
    if n == 1:
        return 0 * i
    if how == "grid-wrap":
        return i % n
    if how == "nearest":
        return np.clip(i, 0, n - 1)
    period = 2 * n - 2 if how == "mirror" else 2 * n
    i = i % period
    return np.where(i >= n, period - i - (how == "reflect"), i)


@functools.lru_cache(64)
def _factors(n: int, order: int, boundary: str) -> Any:
    """Return the factorised matrix that takes the coefficients of a spline to its values at the pixels."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    values = np.array(_SAMPLED[order], float)
    reach = len(values) // 2
    rows = np.repeat(np.arange(n), len(values))
    columns = _index(rows + np.tile(np.arange(-reach, reach + 1), n), n, boundary)
    return splu(csc_array((np.tile(values / values.sum(), n), (rows, columns)), shape=(n, n)))


_SHORT = 64  # so many pixels are filtered by a matrix: SciPy's own, which is rough at the edges of a few pixels


@functools.lru_cache(64)
def _inverse(n: int, order: int, boundary: str) -> Any:
    """Return the matrix that takes the values at the pixels to the coefficients of a spline."""
    return scipy.ndimage.spline_filter1d(np.eye(n), order, 0, mode=boundary)


def _solve(x, *, axis, order, boundary, transposed):
    n = x.shape[axis]
    if n <= _SHORT or backend_of(x).name != "numpy":
        inverse = _inverse(n, order, boundary)
        inverse = like(x, (inverse.T if transposed else inverse).astype(x.real.dtype))
        return np.moveaxis(np.tensordot(inverse, x, axes=(1, axis)), 0, axis)
    factors, trans = _factors(n, order, boundary), "T" if transposed else "N"
    columns = np.moveaxis(x, axis, 0)
    shape = columns.shape
    columns = columns.reshape(shape[0], -1)
    if x.dtype.kind == "c":
        y = factors.solve(columns.real.astype(float), trans) + 1j * factors.solve(columns.imag.astype(float), trans)
    else:
        y = factors.solve(columns.astype(float), trans)
    return np.moveaxis(y.astype(x.dtype).reshape(shape), 0, axis)


_coefficients_p: Any = linear(
    "scipy.spline_coefficients",
    _solve,
    lambda ct, x, *, transposed, **params: bind(_coefficients_p, ct, transposed=not transposed, **params),
    lambda size, batched, xs, params: bind(_coefficients_p, xs[0], **{**params, "axis": params["axis"] + 1}),
    samples=lambda s: [
        call(s.real(n, 2), axis=0, order=order, boundary=how, transposed=t)
        for n, order, how, t in ((5, 3, "mirror", False), (4, 2, "reflect", True), (65, 5, "grid-wrap", False))
    ],
    doc="The coefficients of the spline through equidistant values along an axis.",
)


def _double(x: Any) -> Any:
    return x.astype(np.result_type(x.dtype, np.float64))


def _spline_samples(s):
    return [call(s.real(6)), call(s.real(4, 3), 5, mode="reflect"), call(s.real(5), 2, mode="grid-wrap")]


def _check_order(order: int, lowest: int = 0) -> None:
    if not lowest <= order <= 5:
        raise RuntimeError("spline order not supported")


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise RuntimeError("boundary mode not supported")


@register_function("spline_filter1d", samples=_spline_samples)
def spline_filter1d(input, order=3, axis=-1, output=np.float64, mode="mirror"):
    """Return the coefficients along an axis of the spline through an image's pixels.

    >>> fad.scipy.ndimage.spline_filter1d(np.array([1.0, 1.0, 1.0])).round(6)
    array([1., 1., 1.])
    """
    _check_order(order)
    _check_mode(mode)
    x = as_array(input)
    axis = normalize_axis(axis, x.ndim)
    y = _double(x)
    if order > 1:
        y = bind(_coefficients_p, y, axis=axis, order=order, boundary=_BOUNDARY.get(mode, "mirror"), transposed=False)
    return _of_dtype(y, x, output)


def _of_dtype(y: Any, x: Any, output: Any) -> Any:
    """Return a result in the dtype requested, with the complex one for complex images."""
    named = output is not None and not isinstance(output, np.ndarray)
    complex_image = named and x.dtype.kind == "c" and np.dtype(output).kind != "c"
    return in_dtype(y, x, np.result_type(output, np.complex64) if complex_image else output)


@register_function("spline_filter", samples=lambda s: [call(s.real(4, 3)), call(s.real(3, 4), 4, mode="reflect")])
def spline_filter(input, order=3, output=np.float64, mode="mirror"):
    """Return the coefficients of the spline through an image's pixels.

    >>> fad.scipy.ndimage.spline_filter(np.ones((3, 3))).round(6)
    array([[1., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """
    _check_order(order, 2)
    x = y = as_array(input)
    for axis in range(x.ndim):
        y = spline_filter1d(_double(y), order, axis, None, mode)
    return _of_dtype(y, x, output)


def _prepare(x: Any, order: int, mode: str, cval: Any, prefilter: bool) -> tuple[Any, int]:
    """Return the coefficients of an image, and by how many pixels it was widened."""
    _check_order(order)
    _check_mode(mode)
    x = _double(x)
    if not prefilter or order < 2:
        return x, 0
    widened = 12 if mode in ("nearest", "grid-constant") else 0
    x = beyond(x, [(widened, widened)] * x.ndim, mode, cval) if widened else x
    return spline_filter(x, order, None, mode), widened


# --- coordinates ----------------------------------------------------------------------------------------------------


def _fold(c: Any, n: int, mode: str) -> tuple:
    """Return a coordinate brought between the edges, and where it was outside for good."""
    here = stop_gradient(c)
    low, high = here < 0, here > n - 1
    outside = low | high
    if mode == "constant":
        return np.where(outside, 0.0 * c, c), outside
    if mode == "grid-constant":
        return c, None
    if n <= 1 or mode == "nearest":
        return np.where(low, 0.0 * c, np.where(high, 0.0 * c + (n - 1), c)), None
    if mode in ("wrap", "grid-wrap"):
        period = n - 1 if mode == "wrap" else n
        turns = np.where(low, np.trunc((-here - (mode != "wrap")) / period) + 1.0, -np.trunc(here / period))
        return np.where(outside, c + period * turns, c), None
    mirror = mode == "mirror"
    period = 2 * n - 2 if mirror else 2 * n
    d = here - period * np.floor(here / period)  # between 0 and a period; the second half runs backwards
    shift = -period * np.floor(here / period)
    back = np.where(low, d > n - 1, d >= n) if mirror else d >= n  # what is between belongs to the side it is on
    folded = np.where(back, period - (not mirror) - (c + shift), c + shift)
    return np.where(outside, folded, c), None


def _weights(u: Any, order: int) -> list:
    """Return the B-splines that are not zero at a place u between 0 and 1, by the recursion of de Boor and Cox."""
    found: list = [1.0 + 0.0 * u]
    for k in range(1, order + 1):
        new = []
        for j in range(k + 1):
            left = (u + (k - j)) * found[j - 1] if j else None
            right = ((j + 1) - u) * found[j] if j < k else None
            total: Any = right if left is None else left if right is None else left + right
            new.append(total * (1.0 / k))
        found = new
    return found


def _near(c: Any, n: int, order: int, mode: str) -> tuple:
    """Return (indices, weights, where an index is outside) of the coefficients near a coordinate, and its outside."""
    c, outside = _fold(c, n, mode)
    shifted = c if order % 2 else c + 0.5
    whole = np.floor(stop_gradient(shifted))
    weights = _weights(shifted - whole, order)
    first = whole.astype(np.int64) - order // 2
    places = []
    for j in range(order + 1):
        i = first + j
        beyond_edge = (i < 0) | (i >= n) if mode == "grid-constant" else None
        how = {"grid-mirror": "reflect", "constant": "mirror", "wrap": "mirror"}.get(mode, mode)
        i = np.clip(i, 0, n - 1) if beyond_edge is not None else _index(i, n, how)
        places.append((i, weights[j], beyond_edge))
    return places, outside


def _gather(x: Any, coordinates: list, order: int, mode: str, cval: Any) -> Any:
    """Interpolate at points, given by one array of coordinates for each axis."""
    near = [_near(c, n, order, mode) for c, n in zip(coordinates, x.shape, strict=True)]
    total: Any = None
    for choice in itertools.product(*[places for places, _ in near]):
        value = pick(x, tuple(i for i, _, _ in choice))
        edges = [edge for _, _, edge in choice if edge is not None]
        if edges:
            value = np.where(functools.reduce(operator.or_, edges), cval, value)
        for _, weight, _ in choice:
            value = value * weight
        total = value if total is None else total + value
    outside = [o for _, o in near if o is not None]
    return np.where(functools.reduce(operator.or_, outside), cval, total) if outside else total


def _on_grid(x: Any, coordinates: list, order: int, mode: str, cval: Any) -> Any:
    """Interpolate on a grid, given by a vector of coordinates for each axis: one axis after the other."""
    lost: Any = None
    for axis, (c, n) in enumerate(zip(coordinates, x.shape, strict=True)):
        places, outside = _near(c, n, order, mode)
        along = (-1, *[1] * (x.ndim - axis - 1))
        total: Any = None
        for i, weight, edge in places:
            value = pick(x, (*[slice(None)] * axis, i))
            value = value if edge is None else np.where(edge.reshape(along), cval, value)
            value = value * weight.reshape(along)
            total = value if total is None else total + value
        x = total
        if outside is not None:
            outside = outside.reshape(along)
            lost = outside if lost is None else lost | outside
    return x if lost is None else np.where(lost, cval, x)


# --- SciPy's names --------------------------------------------------------------------------------------------------

_MANY_MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap", "grid-constant")


def _coordinate_samples(s):
    def points(n):
        return s.real(2, n, low=-3.0, high=6.0)

    return [call(s.real(4, 3), points(5), order=order) for order in (0, 1, 2, 3)] + [
        call(s.real(4, 3), points(5), order=order, mode=mode, cval=0.5)
        for mode in _MANY_MODES
        for order in (1, 3)
    ]  # fmt: skip


def _at_pixels(_image: Any, c: Any, **_: Any) -> tuple:
    """Return what is zero on the pixels and halfway between them: straight lines have kinks there."""
    return (2.0 * c - np.round(2.0 * c),)


def _real_coordinates(c: Any) -> Any:
    c = as_array(c)
    if c.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    return c.astype(np.float64)


@register_function("map_coordinates", samples=_coordinate_samples, kinks=_at_pixels)
def map_coordinates(input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """Return an image's values between its pixels; image and coordinates may both be traced.

    A spline of order 0 is constant near each pixel, so its derivative in the coordinates is zero.

    >>> import numpy as np, fad
    >>> from fad.scipy.ndimage import map_coordinates
    >>> image = np.arange(12.0).reshape(3, 4)
    >>> fad.grad(lambda c: map_coordinates(image, c, order=1)[0])(np.array([[0.5], [1.5]]))
    array([[4.],
           [1.]])
    """
    x, c = as_array(input), _real_coordinates(coordinates)
    if x.ndim < 1 or c.ndim < 2:
        raise RuntimeError("input and output rank must be > 0")
    if c.shape[0] != x.ndim:
        raise RuntimeError("invalid shape for coordinate array")
    filtered, widened = _prepare(x, order, mode, cval, prefilter)
    return in_dtype(_gather(filtered, [c[k] + widened for k in range(x.ndim)], order, mode, cval), x, output)


@register_function("shift", samples=lambda s: [
    call(s.real(5), 1.3), call(s.real(4, 3), s.real(2), order=1), call(s.real(4, 3), (0.4, -1.2), mode="nearest"),
    call(s.real(4, 3), s.real(2), order=2, mode="wrap"), call(s.real(4), 0.6, order=0),
    call(s.real(4), 1.6, mode="grid-constant", cval=0.5)])  # fmt: skip
def shift(input, shift, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """Shift an image by a number of pixels, which need not be whole, and may be traced.

    >>> import numpy as np, fad
    >>> from fad.scipy.ndimage import shift
    >>> fad.grad(lambda d: shift(np.array([0.0, 1.0, 4.0]), d, order=1)[1])(0.25)
    np.float64(-1.0)
    """
    x = as_array(input)
    if x.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    filtered, widened = _prepare(x, order, mode, cval, prefilter)
    steps = [like(x, np.arange(float(n))) for n in x.shape]
    wanted = [p - s + widened for p, s in zip(steps, per_axis(shift, x.ndim), strict=True)]
    return in_dtype(_on_grid(filtered, wanted, order, mode, cval), x, output)


@register_function("zoom", constants=(1,), complex=False, samples=lambda s: [
    call(s.real(4), 1.5), call(s.real(4, 3), (0.5, 2.0), order=1), call(s.real(3, 4), 2.0, mode="nearest"),
    call(s.real(4), 1.7, order=2, mode="reflect", grid_mode=True), call(s.real(3), 1.0)])  # fmt: skip
def zoom(input, zoom, output=None, order=3, mode="constant", cval=0.0, prefilter=True, *, grid_mode=False):
    """Enlarge an image by factors, which are constants: the number of pixels follows from them.

    >>> fad.scipy.ndimage.zoom(np.array([0.0, 1.0, 2.0]), 2, order=1).round(6)
    array([0. , 0.4, 0.8, 1.2, 1.6, 2. ])
    """
    x = as_array(input)
    if x.ndim < 1:
        raise RuntimeError("input and output rank must be > 0")
    factors = per_axis(zoom, x.ndim)
    shape = [round(n * float(z)) for n, z in zip(x.shape, factors, strict=True)]
    if all(z == 1 for z in factors) and prefilter:
        return in_dtype(x + 0.0, x, output)
    filtered, widened = _prepare(x, order, mode, cval, prefilter)
    wanted = []
    for n, m in zip(x.shape, shape, strict=True):
        above, below = (n, m) if grid_mode else (n - 1, m - 1)
        step = above / below if below else 1.0
        places = (np.arange(m) + 0.5) * step - 0.5 if grid_mode else np.arange(m) * step
        wanted.append(like(x, places + widened))
    return in_dtype(_on_grid(filtered, wanted, order, mode, cval), x, output)


def _affine_samples(s):
    turn = np.array([[0.9, 0.2], [-0.3, 1.1]], s.dtype) + 0.02 * s.real(2, 2)
    return [
        call(s.real(4, 3), turn), call(s.real(4, 3), turn, 0.3 * s.real(2), (3, 5), order=1, mode="reflect"),
        call(s.real(4), np.array([0.83], s.dtype), 0.27, mode="nearest"),
        call(s.real(3, 3), np.concatenate([turn, 0.3 * s.real(2, 1)], axis=1), order=1),
    ]  # fmt: skip


@register_function("affine_transform", samples=_affine_samples, constants=(3,))
def affine_transform(
    input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode="constant", cval=0.0, prefilter=True
):
    """Return the image ``y[o] = x[matrix @ o + offset]``; image, matrix and offset may all be traced.

    >>> fad.scipy.ndimage.affine_transform(np.eye(3), np.eye(2), order=1)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    x, matrix = as_array(input), as_array(matrix).astype(np.float64)
    shape = x.shape if output_shape is None else tuple(int(n) for n in output_shape)
    n = x.ndim
    if matrix.ndim not in (1, 2) or matrix.shape[0] < 1:
        raise RuntimeError("no proper affine matrix provided")
    if matrix.ndim == 2 and matrix.shape[1] == n + 1 and matrix.shape[0] in (n, n + 1):
        if matrix.shape[0] == n + 1 and not np.all(matrix[n] == np.eye(n + 1)[n]):
            raise ValueError("Expected homogeneous transformation matrix, but its bottom row is not 0 ... 0 1")
        matrix, offset = matrix[:n, :n], matrix[:n, n]
    if matrix.shape[0] != n:
        raise RuntimeError("affine matrix has wrong number of rows")
    if matrix.ndim == 2 and matrix.shape[1] != len(shape):
        raise RuntimeError("affine matrix has wrong number of columns")
    filtered, widened = _prepare(x, order, mode, cval, prefilter)
    offsets = [o + widened for o in per_axis(offset, n)]
    if matrix.ndim == 1:
        wanted = [like(x, np.arange(float(m))) * matrix[k] + offsets[k] for k, m in enumerate(shape)]
        return in_dtype(_on_grid(filtered, wanted, order, mode, cval), x, output)
    places = [like(x, p.astype(float)) for p in np.indices(shape)]
    wanted = [sum((matrix[k, j] * p for j, p in enumerate(places)), start=offsets[k]) for k in range(n)]
    return in_dtype(_gather(filtered, wanted, order, mode, cval), x, output)


@register_function("rotate", samples=lambda s: [
    call(s.real(3, 4), 30.0), call(s.real(4, 3), -50.0, reshape=False, order=1, mode="nearest"),
    call(s.real(2, 3, 3), 20.0, axes=(2, 1), order=2)])  # fmt: skip
def rotate(input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode="constant", cval=0.0, prefilter=True):
    """Rotate an image by an angle in degrees, which may be traced; the shape of the result follows from its value.

    >>> fad.scipy.ndimage.rotate(np.diag(np.array([1.0, 2.0])), 90.0, order=1).round(6)
    array([[0., 2.],
           [1., 0.]])
    """
    x = as_array(input)
    if x.ndim < 2:
        raise ValueError("input array should be at least 2D")
    if len(axes) != 2:
        raise ValueError("axes should contain exactly two values")
    first, second = sorted(normalize_axis(int(a), x.ndim) for a in axes)
    radians = angle * (math.pi / 180.0)
    c, s = np.cos(radians), np.sin(radians)
    size = (x.shape[first], x.shape[second])
    wanted = _turn(stop_gradient(c), stop_gradient(s), size) if reshape else size
    middle = [(m - 1) / 2 for m in wanted]
    turn = [[c, s], [-s, c]]
    offset = [(size[k] - 1) / 2 - (turn[k][0] * middle[0] + turn[k][1] * middle[1]) for k in (0, 1)]
    filtered = np.moveaxis(x, (first, second), (-2, -1))
    matrix = np.stack([np.stack([c + 0.0, s + 0.0]), np.stack([-s, c + 0.0])])
    settings = {"output_shape": wanted, "order": order, "mode": mode, "cval": cval, "prefilter": prefilter}
    planes = [
        affine_transform(filtered[i], matrix, np.stack(offset), **settings) for i in np.ndindex(*filtered.shape[:-2])
    ]
    y = np.stack(planes).reshape((*filtered.shape[:-2], *wanted))
    return in_dtype(np.moveaxis(y, (-2, -1), (first, second)), x, output)


def _turn(c: Any, s: Any, size: tuple) -> tuple:
    """Return the shape that holds a rectangle after it was turned."""
    c, s = float(c), float(s)
    corners = np.array([[c, s], [-s, c]]) @ np.array([[0, 0, size[0], size[0]], [0, size[1], 0, size[1]]])
    return tuple(int(n) for n in np.ptp(corners, axis=1) + 0.5)
