"""Peaks: where they are is an integer, found of the values; heights, prominences and widths follow the signal."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from fad import tree
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind, outcome
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy.registration import flat_on_host, registrar

register_function = registrar("signal")


class _Options:
    """The options of a search, which are constants."""

    def __init__(self, **options: Any):
        self.options = options

    def __repr__(self) -> str:
        return f"options({', '.join(f'{k}={v!r}' for k, v in self.options.items() if v is not None)})"


def _mark_peaks(x: Any, *, options: Any) -> Any:
    """Return where the peaks are, as 1 and the size of the plateau's left and right part, of shape (3, n)."""
    peaks, found = scipy.signal.find_peaks(x, **options.options)
    marks = np.zeros((3, x.shape[0]), np.intp)
    marks[0, peaks] = 1
    if "left_edges" in found:
        marks[1, peaks], marks[2, peaks] = peaks - found["left_edges"], found["right_edges"] - peaks
    return marks


def _find_bases(x: Any, peaks: Any, *, wlen: Any) -> Any:
    return np.stack(scipy.signal.peak_prominences(x, peaks, wlen)[1:]).astype(np.intp)


def _find_crossings(x: Any, peaks: Any, prominences: Any, left: Any, right: Any, *, rel_height: Any) -> Any:
    """Return the samples at or outside of both ends of the width of each peak, of shape (2, peaks)."""
    x, prominences = x.astype(float), prominences.astype(float)
    left, right = left.astype(np.intp), right.astype(np.intp)
    ends = scipy.signal.peak_widths(x, peaks, rel_height, (prominences, left, right))[2:]
    return np.stack([np.floor(ends[0]), np.ceil(ends[1])]).astype(np.intp)


_LINE = np.array([0.0, 1.0, 0.5, 2.0, 1.8, 0.1])
_NOTHING = _Options(
    height=None, threshold=None, distance=None, prominence=None, width=None, wlen=None, rel_height=0.5,
    plateau_size=None,
)  # fmt: skip
marks_p = flat_on_host(
    "marks_of_peaks", _mark_peaks, lambda s: [call(s.real(9), options=_NOTHING)], "Which samples are peaks, as 1 or 0."
)
bases_p = flat_on_host(
    "bases_of_peaks",
    _find_bases,
    lambda s: [call(s.dtype.type(1) * _LINE.astype(s.dtype), np.array([1, 3]), wlen=None)],
    "The lowest samples on both sides of each peak before a higher one.",
)
crossings_p = flat_on_host(
    "crossings_of_peaks",
    _find_crossings,
    lambda s: [
        call(
            _LINE.astype(s.dtype), np.array([1, 3]), np.array([0.5, 1.9], s.dtype), np.array([0, 0]), np.array([2, 5]),
            rel_height=0.5,
        )
    ],
    "The samples outside of both ends of the width of each peak.",
)


_SHAPE: dict = {"complex": False, "raises": "ValueError: `x` has not one axis."}


def _signal(x: Any) -> Any:
    x = as_array(x)
    if x.ndim != 1:
        raise ValueError("`x` must be a 1-D array")
    return x if x.dtype == np.float64 else x.astype(float)


def _prominences(x: Any, peaks: Any, wlen: Any) -> tuple:
    left, right = bind(bases_p, x, peaks, wlen=wlen)
    return np.take(x, peaks) - np.maximum(np.take(x, left), np.take(x, right)), left, right


def _widths(x: Any, peaks: Any, rel_height: Any, prominences: Any, left: Any, right: Any) -> tuple:
    if rel_height < 0:
        raise ValueError("`rel_height` must be greater or equal to 0.0")
    height = np.take(x, peaks) - prominences * rel_height
    i, j = bind(crossings_p, x, peaks, prominences, left, right, rel_height=rel_height)

    def cross(outside: Any, step: int) -> Any:
        low = np.take(x, outside)
        high = np.take(x, np.clip(outside + step, 0, x.shape[0] - 1))
        inside = (low < height) & (high != low)
        share = (height - low) / np.where(inside, high - low, 1.0)
        return outside + step * np.where(inside, share, 0.0)

    starts, ends = cross(i, 1), cross(j, -1)
    return ends - starts, height, starts, ends


def _take_numbers(condition: Any) -> Any:
    """Return the plain numbers of a condition, on which the number of peaks depends."""
    return tree.map(lambda v: np.asarray(outcome(stop_gradient(v)))[()] if type(v) is Tracer else v, condition)


def _peak_samples(s):
    wave = np.sin(np.linspace(0.0, 9.0, 19)).astype(s.dtype) + 0.05 * s.real(19)
    return [
        call(wave),
        call(wave, height=-0.5, distance=2),
        call(wave, threshold=0.0, prominence=0.1, width=0.5),
    ]


@register_function("find_peaks", **_SHAPE, samples=_peak_samples)
def find_peaks(
    x, height=None, threshold=None, distance=None, prominence=None, width=None, wlen=None, rel_height=0.5,
    plateau_size=None,
):  # fmt: skip
    """Return the places of peaks, and their properties.

    The places are integers, which have no derivative; heights, thresholds, prominences and widths follow the signal.
    Conditions only decide, and have no derivative.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import find_peaks
    >>> x = np.array([0.0, 2.0, 1.0, 3.0, 0.5])
    >>> fad.grad(lambda x: np.sum(find_peaks(x, prominence=0.5)[1]["prominences"]))(x)
    array([ 0.,  1., -1.,  1., -1.])
    """
    x = _signal(x)
    height, threshold, distance, prominence, width, rel_height, plateau_size = (
        _take_numbers(v) for v in (height, threshold, distance, prominence, width, rel_height, plateau_size)
    )
    options = _Options(
        height=height, threshold=threshold, distance=distance, prominence=prominence, width=width, wlen=wlen,
        rel_height=rel_height, plateau_size=plateau_size,
    )  # fmt: skip
    marks = bind(marks_p, x, options=options)
    peaks = np.flatnonzero(marks[0])
    at = np.take(x, peaks)
    found: dict[str, Any] = {}
    if plateau_size is not None:
        left, right = peaks - np.take(marks[1], peaks), peaks + np.take(marks[2], peaks)
        found |= {"plateau_sizes": right - left + 1, "left_edges": left, "right_edges": right}
    if height is not None:
        found["peak_heights"] = at
    if threshold is not None:
        found |= {"left_thresholds": at - np.take(x, peaks - 1), "right_thresholds": at - np.take(x, peaks + 1)}
    if prominence is not None or width is not None:
        wlen = None if wlen is None else int(np.ceil(wlen))
        found |= dict(zip(("prominences", "left_bases", "right_bases"), _prominences(x, peaks, wlen), strict=True))
    if width is not None:
        bases = found["prominences"], found["left_bases"], found["right_bases"]
        names = "widths", "width_heights", "left_ips", "right_ips"
        found |= dict(zip(names, _widths(x, peaks, rel_height, *bases), strict=True))
    return peaks, found


def _places_samples(s):
    return [call(_LINE.astype(s.dtype) + 0.01 * s.real(6), np.array([1, 3]))]


@register_function("peak_prominences", **_SHAPE, constants=(1,), samples=_places_samples)
def peak_prominences(x, peaks, wlen=None):
    """Return how far peaks stand out, and the integer places of their bases.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import peak_prominences
    >>> fad.grad(lambda x: peak_prominences(x, [1])[0][0])(np.array([0.0, 3.0, 1.0]))
    array([ 0.,  1., -1.])
    """
    return _prominences(_signal(x), as_array(peaks), wlen)


@register_function("peak_widths", **_SHAPE, constants=(1,), samples=_places_samples)
def peak_widths(x, peaks, rel_height=0.5, prominence_data=None, wlen=None):
    """Return widths of peaks, the heights at which they are measured, and the places of both ends between samples.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import peak_widths
    >>> fad.grad(lambda x: peak_widths(x, [2])[0][0])(np.array([0.0, 1.0, 4.0, 2.0, 0.5])).round(4)
    array([ 0.    ,  0.1944, -0.2153,  0.4375, -0.4167])
    """
    x, peaks = _signal(x), as_array(peaks)
    bases = _prominences(x, peaks, wlen) if prominence_data is None else prominence_data
    return _widths(x, peaks, rel_height, *bases)


# --- extremes among neighbours --------------------------------------------------------------------------------------


def _find_extremes(data: Any, comparator: Any, axis: int, order: int, mode: str) -> tuple:
    if int(order) != order or order < 1:
        raise ValueError("Order must be an int >= 1")
    if mode not in ("clip", "wrap"):
        raise ValueError(f"mode is 'clip' or 'wrap' here, not {mode!r}")
    data = as_array(data)
    axis = normalize_axis(axis, data.ndim)
    n = data.shape[axis]
    places = np.arange(n)
    found: Any = np.ones(data.shape, bool)
    for shift in range(1, order + 1):
        for beside in (places + shift, places - shift):
            beside = beside % n if mode == "wrap" else np.clip(beside, 0, n - 1)
            found = found & comparator(data, np.take(data, beside, axis=axis))
    return np.nonzero(found)


@register_function(
    "argrelextrema", complex=False, flat=True, samples=lambda s: [call(s.real(9), np.greater), call(s.real(6), np.less)]
)
def argrelextrema(data, comparator, axis=0, order=1, mode="clip"):
    """Return the places of the elements that compare with their neighbours as the function says; flat.

    >>> fad.scipy.signal.argrelextrema(np.array([0.0, 2.0, 1.0, 3.0, 0.0]), np.greater)
    (array([1, 3]),)
    """
    return _find_extremes(data, comparator, axis, order, mode)


@register_function("argrelmax", complex=False, flat=True, samples=lambda s: [call(s.real(9)), call(s.real(9), order=2)])
def argrelmax(data, axis=0, order=1, mode="clip"):
    """Return the places of the elements that are greater than their neighbours; flat.

    >>> fad.scipy.signal.argrelmax(np.array([0.0, 2.0, 1.0, 3.0, 0.0]))
    (array([1, 3]),)
    """
    return _find_extremes(data, np.greater, axis, order, mode)


@register_function("argrelmin", complex=False, flat=True, samples=lambda s: [call(s.real(9)), call(s.real(9), order=2)])
def argrelmin(data, axis=0, order=1, mode="clip"):
    """Return the places of the elements that are less than their neighbours; flat.

    >>> fad.scipy.signal.argrelmin(np.array([0.0, 2.0, 1.0, 3.0, 0.0]))
    (array([2]),)
    """
    return _find_extremes(data, np.less, axis, order, mode)
