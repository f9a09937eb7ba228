"""``scipy.fft``, differentiable: Fourier, cosine, sine and Hankel transforms, with SciPy's names and arguments.

The cosine and sine transforms are linear operations of their own, whose transposes are such transforms again.
What has no values to differentiate (``next_fast_len``, ``fftfreq``, ``rfftfreq``) is SciPy's own.

>>> import numpy as np, fad
>>> fad.grad(lambda x: np.sum(fad.scipy.fft.dct(x, norm="ortho") ** 2))(np.array([1.0, 2.0, 3.0])).round(6)
array([2., 4., 6.])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft as sf
from scipy.fft import fftfreq, next_fast_len, rfftfreq, set_workers

from fad.backends import backend_of, like
from fad.core.primitives.archetypes import linear
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy.registration import missing, registrar

register_function = registrar("fft", order="C")

# --- numpy.fft's functions under SciPy's arguments --------------------------------------------------------------------


def _double(a: Any) -> Any:
    """Return what SciPy transforms: half precision and integers as more precise numbers."""
    return a.astype(np.float32) if a.dtype == np.float16 else a


def _text(name: str, x: list, what: str = "") -> str:
    what = what or f"The transform numpy.fft.{name} with SciPy's arguments"
    shown = "\n    ".join(repr(getattr(sf, name)(np.array(x)).round(6) + 0.0).splitlines())
    return f"""{what}; `overwrite_x` and `workers` change no values.

    >>> fad.scipy.fft.{name}(np.array({x})).round(6) + 0.0
    {shown}
    """


def _one(name: str, **notes: Any) -> Callable:
    numpy_function = getattr(np.fft, name)

    def samples(s):
        return [call(s.real(4)), call(s.real(3, 5), 4, norm="ortho"), call(s.real(3, 5), n=7, axis=0, norm="forward")]

    def one(x, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, *, plan=None):
        _no_plan(plan)
        return numpy_function(_double(as_array(x)), n, axis, norm)

    return register_function(name, samples=samples, doc=_text(name, [1.0, 1.0]), **notes)(one)


def _many(name: str, default: Any, **notes: Any) -> Callable:
    numpy_function = getattr(np.fft, name)

    def samples(s):
        return [
            call(s.real(3, 4)),
            call(s.real(3, 5), (2, 6), axes=(0, 1), norm="ortho"),
            call(s.real(2, 3, 4), axes=(0, 2)),
        ]

    def many(x, s=None, axes=default, norm=None, overwrite_x=False, workers=None, *, plan=None):
        _no_plan(plan)
        x = _double(as_array(x))
        axes = tuple(range(x.ndim - len(s), x.ndim)) if axes is None and s is not None else axes
        return numpy_function(x, s, axes, norm)

    return register_function(name, samples=samples, doc=_text(name, [[1.0, 1.0], [1.0, 1.0]]), **notes)(many)


def _no_plan(plan: Any) -> None:
    if plan is not None:
        raise NotImplementedError("Passing a precomputed plan is not yet supported by scipy.fft functions")


fft, ifft, hfft, irfft = _one("fft"), _one("ifft"), _one("hfft"), _one("irfft")
rfft, ihfft = _one("rfft", complex=False), _one("ihfft", complex=False)
fftn, ifftn, irfftn = _many("fftn", None), _many("ifftn", None), _many("irfftn", None)
fft2, ifft2, irfft2 = _many("fft2", (-2, -1)), _many("ifft2", (-2, -1)), _many("irfft2", (-2, -1))
rfftn, rfft2 = _many("rfftn", None, complex=False), _many("rfft2", (-2, -1), complex=False)


@register_function("fftshift", order=None, samples=lambda s: [call(s.real(5)), call(s.real(3, 4), axes=1)])
def fftshift(x, axes=None):
    """Move the frequency zero to the middle of axes.

    >>> fad.scipy.fft.fftshift(np.array([0.0, 1.0, 2.0, 3.0]))
    array([2., 3., 0., 1.])
    """
    return np.fft.fftshift(x, axes)


@register_function("ifftshift", order=None, samples=lambda s: [call(s.real(5)), call(s.real(3, 4), axes=1)])
def ifftshift(x, axes=None):
    """Move the frequency zero from the middle of axes to their start: the inverse of fftshift.

    >>> fad.scipy.fft.ifftshift(np.array([0.0, 1.0, 2.0, 3.0]))
    array([2., 3., 0., 1.])
    """
    return np.fft.ifftshift(x, axes)


# --- cosine and sine transforms ---------------------------------------------------------------------------------------
# Without scaling, with w = 1 but for the ends, type 1 is a symmetric matrix times weights, types 2 and 3 are transposes
# of each other up to weights, and type 4 is symmetric. Every type and norm is made of the plain one in `_trig_p`.

_TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}


def _plain(x, *, kind, type, axis):
    run = getattr(sf, kind)
    if backend_of(x).name == "numpy":
        return run(x, type=type, axis=axis)
    n = x.shape[axis]  # a device multiplies with the matrix: CuPy's transforms lack types, and complex numbers
    matrix = like(x, run(np.eye(n), type=type, axis=0).astype(x.real.dtype))
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis)


def _ends(kind: str, type_: int, n: int) -> tuple:
    """Return which places of the input count once where all others count twice: first, last."""
    if kind == "dct":
        return {1: (0, n - 1), 3: (0,)}.get(type_, ())
    return (n - 1,) if type_ == 3 else ()


def _weigh(x: Any, axis: int, places: tuple, factor: float) -> Any:
    """Multiply some places of an axis by a factor."""
    if not places:
        return x
    weights = np.where(np.isin(np.arange(x.shape[axis]), places), factor, 1.0)
    weights = weights.reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    return x * like(x, weights.astype(x.real.dtype))


def _trig_transpose(ct, x, *, kind, type, axis):
    # The matrix is 2 K D, where D halves the ends of the input; that of the transposed type is 2 K^T D'.
    other, n = _TRANSPOSED[type], x.shape[axis]
    before = _weigh(ct, axis, _ends(kind, other, n), 2.0)
    return _weigh(bind(_trig_p, before, kind=kind, type=other, axis=axis), axis, _ends(kind, type, n), 0.5)


_trig_p: Any = linear(
    "scipy.trigonometric_transform",
    _plain,
    _trig_transpose,
    lambda size, batched, xs, params: bind(_trig_p, xs[0], **{**params, "axis": params["axis"] + 1}),
    samples=lambda s: [
        call(s.real(3, 4), kind=kind, type=t, axis=axis)
        for kind in ("dct", "dst")
        for t in (1, 2, 3, 4)
        for axis in (0, 1)
    ],
    doc="The discrete sine or cosine transform along an axis, without scale.",
)


def _length(kind: str, type_: int, n: int) -> int:
    """Return the period that a transform's norm goes by."""
    return 2 * (n + (-1 if kind == "dct" else 1) * (type_ == 1))


def _scale(x, kind, type_, axis, norm, inverse, orthogonalize):
    """Return one transform or inverse transform along an axis, in SciPy's norms."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm!r}, should be "backward", "ortho" or "forward"')
    if type_ not in _TRANSPOSED:
        raise ValueError(f"{'i' * inverse}{kind} has the types 1, 2, 3 and 4, not {type_!r}")
    forward = _TRANSPOSED[type_] if inverse else type_
    n = x.shape[axis]
    if n == 0 or (kind, type_, n) == ("dct", 1, 1):
        raise RuntimeError(f"{kind} of type {type_} needs more than {n} data points")
    ortho = norm == "ortho" if orthogonalize is None or (x.dtype.kind == "c" and not _is_heeded()) else orthogonalize
    places = _ortho_places(kind, forward, n) if ortho else ()
    if ortho and forward in (1, 3):
        x = _weigh(x, axis, places, math.sqrt(2.0))
    y = bind(_trig_p, x, kind=kind, type=forward, axis=axis)
    if ortho and forward in (1, 2):
        y = _weigh(y, axis, places, math.sqrt(0.5))
    period = _length(kind, forward, n)
    if norm == "ortho":
        return y * (1.0 / math.sqrt(period))
    return y * (1.0 / period) if (norm == "forward") != inverse else y


@functools.cache
def _is_heeded() -> bool:
    """Return whether SciPy heeds `orthogonalize` for complex numbers: versions that do not (1.17) go by the norm."""
    x = np.array([1.0 + 0.0j, 2.0])
    return not np.array_equal(sf.dct(x, orthogonalize=True), sf.dct(x, orthogonalize=False))


def _ortho_places(kind: str, type_: int, n: int) -> tuple:
    if kind == "dct":
        return {1: (0, n - 1), 2: (0,), 3: (0,)}.get(type_, ())
    return (n - 1,) if type_ in (2, 3) else ()


def _resize(x: Any, n: Any, axis: int) -> Any:
    """Crop an axis, or fill it up with zeros, to length n."""
    m = x.shape[axis]
    if n is None or n == m:
        return x
    if n < 1:
        raise ValueError(f"invalid number of data points ({n}) specified")
    if n < m:
        return x[(slice(None),) * axis + (slice(0, n),)]
    return np.pad(x, [(0, n - m if i == axis else 0) for i in range(x.ndim)])


def _ready(x: Any) -> Any:
    x = _double(as_array(x))
    return x if x.dtype.kind in "fc" else x.astype(float)


def _trig_samples(s):
    return [call(s.real(5), t) for t in (1, 2, 3, 4)] + [
        call(s.real(4), t, norm=norm) for t in (1, 2, 3, 4) for norm in ("ortho", "forward")] + [
        call(s.real(3, 5), 2, 4, axis=0, norm="ortho", orthogonalize=False),
        call(s.real(3, 5), n=3, orthogonalize=True)]  # fmt: skip


_WAVES = {"dct": "cosine", "dst": "sine"}


def _define_one(name: str) -> Callable:
    kind, inverse = name[-3:], name[0] == "i"

    def one(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False, workers=None, orthogonalize=None):
        x = _ready(x)
        axis = normalize_axis(axis, x.ndim)
        return _scale(_resize(x, n, axis), kind, type, axis, norm, inverse, orthogonalize)

    what = f"The {'inverse ' * inverse}discrete {_WAVES[kind]} transform of type 1 to 4 along an axis"
    return register_function(name, samples=_trig_samples, doc=_text(name, [1.0, 1.0], what))(one)


def _trig_many_samples(s):
    return [call(s.real(3, 4), t) for t in (1, 2, 3, 4)] + [
        call(s.real(3, 4), norm="ortho"), call(s.real(3, 4), 3, (2, 5), norm="forward"),
        call(s.real(2, 3, 4), axes=(0, 2)), call(s.real(2, 3, 4), axes=1, orthogonalize=True)]  # fmt: skip


def _define_many(name: str) -> Callable:
    kind, inverse = name[-4:-1], name[0] == "i"

    def many(x, type=2, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, orthogonalize=None):
        x = _ready(x)
        s = None if s is None else tuple(np.atleast_1d(s))
        if axes is None:
            axes = range(x.ndim if s is None else len(s))
            axes = [x.ndim - len(axes) + i for i in axes]
        axes = [normalize_axis(int(a), x.ndim) for a in np.atleast_1d(axes)]
        if s is not None and len(s) != len(axes):
            raise ValueError("when given, axes and shape arguments have to be of the same length")
        for i, axis in enumerate(axes):
            x = _resize(x, None if s is None or s[i] == -1 else int(s[i]), axis)
            x = _scale(x, kind, type, axis, norm, inverse, orthogonalize)
        return x

    what = f"The {'inverse ' * inverse}discrete {_WAVES[kind]} transform of type 1 to 4 along several axes"
    return register_function(name, samples=_trig_many_samples, doc=_text(name, [[1.0, 1.0], [1.0, 1.0]], what))(many)


dct, idct, dst, idst = (_define_one(name) for name in ("dct", "idct", "dst", "idst"))
dctn, idctn, dstn, idstn = (_define_many(name) for name in ("dctn", "idctn", "dstn", "idstn"))

# --- the fast Hankel transform --------------------------------------------------------------------------------------


@functools.cache
def _kernel(n: int, dln: float, mu: float, offset: float, bias: float) -> Any:
    """Return the coefficients that the transform multiplies the half spectrum by (Hamilton 2000, eq. 174)."""
    from scipy.fft._fftlog_backend import fhtcoeff

    return fhtcoeff(n, dln, mu, offset, bias)


def _hankel(a: Any, dln: float, mu: float, offset: float, bias: float, inverse: bool) -> Any:
    a = _ready(a)
    if a.dtype.kind == "c":
        raise TypeError("the Hankel transform takes real samples")
    n = a.shape[-1]
    places = np.arange(n) - (n - 1) / 2
    if bias:
        a = a * like(a, np.exp((1.0 if inverse else -1.0) * bias * (places * dln + (offset if inverse else 0.0))))
    u = _kernel(n, dln, mu, offset, bias)
    if inverse:
        u = 1.0 / np.conj(u)
    half = np.fft.rfft(a)
    y = np.fft.irfft(half * like(a, u.astype(half.dtype)), n)[..., ::-1]
    if bias:
        y = y * like(a, np.exp((1.0 if inverse else -1.0) * bias * (places * dln + (0.0 if inverse else offset))))
    return y


_HANKEL = [1, 2, 3, 4, "dln", "mu", "offset", "bias"]


def _hankel_samples(s):
    return [call(s.real(6), 0.1, 0.5), call(s.real(2, 7), 0.2, 1.0, offset=0.1, bias=0.3)]


@register_function("fht", order=None, samples=_hankel_samples, constants=_HANKEL, complex=False)
def fht(a, dln, mu, offset=0.0, bias=0.0):
    """Return the fast Hankel transform of samples spaced by `dln` in the logarithm; the parameters are constants.

    >>> fad.scipy.fft.fht(np.array([1.0, 1.0, 1.0, 1.0]), dln=0.1, mu=0.5).shape
    (4,)
    """
    return _hankel(a, dln, mu, offset, bias, False)


@register_function("ifht", order=None, samples=_hankel_samples, constants=_HANKEL, complex=False)
def ifht(A, dln, mu, offset=0.0, bias=0.0):
    """Return the inverse of `fht`; the parameters are constants.

    >>> fad.scipy.fft.ifht(np.array([1.0, 1.0, 1.0, 1.0]), dln=0.1, mu=0.5).shape
    (4,)
    """
    return _hankel(A, dln, mu, offset, bias, True)


fhtoffset = sf.fhtoffset

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "fht", "fhtoffset", "hfft", "idct",
    "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ifht", "ihfft", "irfft", "irfft2", "irfftn",
    "next_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn", "set_workers",
]  # fmt: skip
__getattr__ = missing("fft")
