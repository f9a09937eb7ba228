"""Recursive filters: lfilter, sosfilt, filtfilt and related functions.

A filter b/a makes ``y[n] = b[0] x[n] + b[1] x[n-1] + ... - a[1] y[n-1] - a[2] y[n-2] - ...``. It is a primitive, run by
SciPy's lfilter. Its transpose in the signal is the same filter run backwards; a change of b is a filter of the signal
by that change, over a; and one of a is a filter of the output. So derivatives of every order are filters again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from fad.core.primitives.archetypes import cast, fit
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy.kernels import convolve_p
from fad.scipy.registration import on_host
from fad.scipy.signal.convolution import register_function

# --- the filter: of coefficients b[0], b[1], ... and a[1], a[2], ..., along the last axis of x -----------------------


def _forward(b, a, x):
    on_host("a recursive filter", b, a, x)
    run = scipy.signal.lfilter
    a = np.concatenate([np.ones_like(a, shape=(*a.shape[:-1], 1)), a], axis=-1)
    if a.ndim == b.ndim == 1:
        return run(b, a, x)
    lead = np.broadcast_shapes(b.shape[:-1], a.shape[:-1], x.shape[:-1])
    b, a, x = (np.broadcast_to(v, (*lead, v.shape[-1])) for v in (b, a, x))
    rows = [run(b[i], a[i], x[i]) for i in np.ndindex(*lead)]
    return np.stack(rows).reshape(x.shape) if rows else np.zeros_like(x)


def _one(x: Any) -> Any:
    return np.ones_like(x, shape=(1,))


def _late(coefficients: Any) -> Any:
    """Put a 0 before the coefficients 1, 2, ...: a filter that has them and no more."""
    return np.concatenate([np.zeros_like(coefficients[..., :1]), coefficients], axis=-1)


def _adjoint(b: Any, a: Any, ct: Any) -> Any:
    return bind(filter_p, b, a, ct[..., ::-1])[..., ::-1]


def _products(ct: Any, x: Any, taps: int) -> Any:
    """Return ``sum_n ct[n] x[n - j]`` for j = 0, 1, ..., as far as the signal is long enough."""
    past = np.concatenate([np.zeros_like(x[..., :1], shape=(*x.shape[:-1], taps - 1)), x], axis=-1) if taps > 1 else x
    return bind(convolve_p, past, ct[..., ::-1], rank=1, mode="valid", method="direct")[..., ::-1]


def _to_b(ct, y, b, a, x):
    return fit(_products(_adjoint(_one(b), a, ct), x, b.shape[-1]), b.shape, b.dtype)


def _to_a(ct, y, b, a, x):
    if not a.shape[-1]:
        return np.zeros_like(a)
    return fit(-_products(_adjoint(_one(a), a, ct), y, a.shape[-1] + 1)[..., 1:], a.shape, a.dtype)


def _jvp(tangents, y, xs, params):
    b, a, x = xs
    tb, ta, tx = tangents
    parts = [] if tx is None else [bind(filter_p, b, a, tx)]
    if tb is not None:
        parts.append(bind(filter_p, tb, a, x))
    if ta is not None and a.shape[-1]:
        parts.append(-bind(filter_p, _late(ta), a, y))
    return cast(sum(parts[1:], parts[0]), y.dtype) if parts else np.zeros_like(y)


def _batch(size, batched, xs, params):
    rank = max(np.ndim(x) - own for x, own in zip(xs, batched, strict=True))
    wide = [
        x.reshape(size, *[1] * (rank - x.ndim + 1), *x.shape[1:]) if own else x
        for x, own in zip(xs, batched, strict=True)
    ]
    return bind(filter_p, *wide)


filter_p: Any = register(
    Primitive(
        "scipy.linear_filter",
        _forward,
        jvp=_jvp,
        vjp=(_to_b, _to_a, lambda ct, y, b, a, x: fit(_adjoint(b, a, ct), x.shape, x.dtype)),
        batch=_batch,
        samples=lambda s: [
            call(s.real(3), 0.2 * s.real(2), s.real(6)),
            call(s.real(1), 0.2 * s.real(3), s.real(2, 3)),
            call(s.real(2), 0.2 * s.real(2, 2), s.real(2, 4)),
            call(s.real(5), 0.2 * s.real(4), s.real(2)),
            call(s.real(2, 2), s.real(0), s.real(4)),
        ],
        doc="The output of the linear filter with numerator b and denominator a along the last axis.",
    )
)


def _move(x: Any, source: int, destination: int) -> Any:
    """Move an axis, unless it stays where it is."""
    return x if (source - destination) % x.ndim == 0 else np.moveaxis(x, source, destination)


# --- lfilter --------------------------------------------------------------------------------------------------------


def _longer(x: Any, n: int) -> Any:
    """Fill up the last axis with zeros to length n."""
    missing = n - x.shape[-1]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing > 0 else x


def _normal(b: Any, a: Any) -> tuple:
    """Return the coefficients of a filter b/a in terms of a[0]: those of b, and those of a after the first."""
    return b / a[..., :1], a[..., 1:] / a[..., :1]


def _filter_axis(b: Any, a: Any, x: Any, zi: Any = None) -> Any:
    """Run a filter along the last axis, from an initial state or from rest."""
    b, a = _normal(b, a)
    if zi is None:
        return bind(filter_p, b, a, x)
    size = x.shape[-1]
    source = bind(convolve_p, x, b, rank=1, mode="full", method="direct")[..., :size] + _cut(zi, size)
    return bind(filter_p, _one(a), a, source)


def _cut(x: Any, n: int) -> Any:
    """Cut the last axis, or fill it up with zeros, to length n."""
    return x[..., :n] if x.shape[-1] >= n else _longer(x, n)


def _final(b: Any, a: Any, x: Any, zi: Any, y: Any) -> Any:
    """Return the state of a filter after the signal x, of which it made y: what the past adds to the next samples."""
    b, a = _normal(b, a)
    order, size = zi.shape[-1], x.shape[-1]
    if not order:
        return zi
    state = _tail(x, b, order) - _tail(y, _late(a), order) if a.shape[-1] else _tail(x, b, order)
    return state + _longer(zi[..., size:], order) if size < order else state


def _tail(x: Any, b: Any, order: int) -> Any:
    """Return the samples of a convolution after the end of a signal."""
    last = x[..., -order:]  # no other sample reaches beyond the end
    full = bind(convolve_p, last, b, rank=1, mode="full", method="direct")[..., last.shape[-1] :]
    return _longer(full, order)


def _operands(*xs: Any) -> list:
    """Return arrays of one floating-point dtype."""
    xs = [as_array(x) for x in xs]
    dtype = np.result_type(*[x.dtype for x in xs])
    dtype = dtype if dtype.kind in "fc" else np.dtype(float)
    return [x if x.dtype == dtype else x.astype(dtype) for x in xs]


def _filter_samples(s):
    def stable(n):
        return np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(n)])

    return [
        call(s.real(3), stable(2), s.real(6)),
        call(s.real(2), 2.0 * stable(3), s.real(2, 5)),
        call(s.real(4), stable(1), s.real(5, 2), axis=0, zi=s.real(3, 2)),
        call(s.real(3), s.positive(1), s.real(4), zi=s.real(2)),
        call(s.real(1), stable(2), s.real(2, 4), zi=s.real(1, 2)),
        call(s.real(4), stable(1), s.real(2), zi=s.real(3)),
    ]


@register_function(
    "lfilter",
    order="C",
    samples=_filter_samples,
    raises="ValueError: A coefficient array is empty or has several axes.",
)
def lfilter(b, a, x, axis=-1, zi=None):
    """Filter along an axis by ``a[0] y[n] = b[0] x[n] + b[1] x[n-1] + ... - a[1] y[n-1] - ...``.

    Coefficients, signal and the initial state may all be traced. With `zi` the final state is returned too.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import lfilter
    >>> fad.grad(lambda a: lfilter([1.0], np.stack([1.0, a]), np.array([1.0, 0.0, 0.0]))[2])(-0.5)
    np.float64(-1.0)
    """
    b, a = (as_array(v) for v in (b, a))
    b, a = (v if v.ndim else v.reshape(1) for v in (b, a))
    for name, v in (("b", b), ("a", a)):
        if v.ndim != 1 or not v.shape[0]:
            raise ValueError(f"Parameter {name} is not a non-empty 1d array, since its shape is {v.shape}")
    x = as_array(x)
    axis = normalize_axis(axis, x.ndim)
    b, a, x, *state = _operands(b, a, x, *([] if zi is None else [zi]))
    if state:
        state = [_state(state[0], x, axis, max(b.shape[0], a.shape[0]) - 1)]
    x, *state = (_move(v, axis, -1) for v in (x, *state))
    y = _filter_axis(b, a, x, *state)
    if not state:
        return _move(y, -1, axis)
    return _move(y, -1, axis), _move(_final(b, a, x, state[0], y), -1, axis)


def _state(zi: Any, x: Any, axis: int, order: int) -> Any:
    wanted = tuple(order if i == axis else n for i, n in enumerate(x.shape))
    fits = zi.ndim == x.ndim and zi.shape[axis] == order
    if not fits or any(n not in (1, m) for n, m in zip(zi.shape, wanted, strict=True)):
        raise ValueError(f"Unexpected shape for parameter zi: expected {wanted}, found {zi.shape}.")
    return zi if zi.shape == wanted else np.broadcast_to(zi, wanted)


@register_function("lfilter_zi", samples=lambda s: [
    call(s.real(3), np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(2)])),
    call(s.real(1), 3.0 * np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(2)])),
    call(s.real(3), np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(1)]))],
    raises="ValueError: A coefficient array has several axes.")  # fmt: skip
def lfilter_zi(b, a):
    """Return the state of a filter after a constant signal of 1: what starts it without a jump.

    >>> fad.scipy.signal.lfilter_zi(np.array([0.5]), np.array([1.0, -0.5]))
    array([0.5])
    """
    b, a = (np.atleast_1d(as_array(v)) for v in (b, a))
    if b.ndim != 1 or a.ndim != 1:
        raise ValueError("Numerator b and denominator a must be 1-D.")
    b, a = (v if v.dtype.kind in "fc" else v.astype(float) for v in (b / a[0], a / a[0]))
    n = max(a.shape[0], b.shape[0])
    a, b = _longer(a, n), _longer(b, n)
    rest = b[1:] - a[1:] * b[0]
    # z[j] = z[j + 1] + rest[j] - a[j + 1] z[0], with nothing after the last: sums from the end.
    first = np.sum(rest) / np.sum(a)
    tail = np.cumsum((rest - a[1:] * first)[::-1])[::-1]
    return np.concatenate([first[None], tail[1:]])


@register_function("lfiltic", samples=lambda s: [
    call(s.real(3), 2.0 * np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(1)]), s.real(3), s.real(1)),
    call(s.real(2), np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(3)]), s.real(2))],
    raises="ValueError: A coefficient array has several axes, or the first of the denominator is 0.")  # fmt: skip
def lfiltic(b, a, y, x=None):
    """Return the state of a filter after outputs `y` and inputs `x`, the latest first; what is missing was 0.

    >>> fad.scipy.signal.lfiltic(np.array([0.5]), np.array([1.0, -0.5]), np.array([2.0]))
    array([1.])
    """
    b, a = (np.atleast_1d(as_array(v)) for v in (b, a))
    for name, v in (("a", a), ("b", b)):
        if v.ndim > 1:
            raise ValueError(f"Filter coefficients `{name}` must be 1-D.")
    if not a.shape[0]:
        raise ValueError("There must be at least one `a` coefficient.")
    if a[0] == 0:
        raise ValueError("First `a` filter coefficient must be non-zero.")
    b, a, y, *x = _operands(b, a, as_array(y), *([] if x is None else [as_array(x)]))
    order = max(b.shape[0], a.shape[0]) - 1
    found = -_carry_over(a, y, order)
    return (found + _carry_over(b, x[0], order) if x else found) / a[0]


def _carry_over(coefficients: Any, past: Any, order: int) -> Any:
    """Return what a signal's past adds to each delay of a filter's state, before the division by a[0]."""
    n = coefficients.shape[0] - 1
    past = np.concatenate([past, np.zeros_like(past, shape=max(0, n - past.shape[0]))])
    sums = [np.sum(coefficients[m + 1 :] * past[: n - m]) for m in range(n)]
    return np.stack([*sums, *[np.zeros_like(past, shape=())] * (order - n)]) if order else past[:0]


# --- second-order sections ------------------------------------------------------------------------------------------


def _sections(s, n):
    x = 0.2 * s.real(n, 6)
    x[:, 3] = 1.0
    return x


def _check_sections(sos: Any) -> Any:
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ValueError(f"sos array must be shape (n_sections, 6), not {sos.shape}")
    if not np.all(sos[:, 3] == 1):
        raise ValueError("sos[:, 3] should be all ones")
    return sos


@register_function("sosfilt", numerical=False, samples=lambda s: [
    call(_sections(s, 2), s.real(6)), call(_sections(s, 2), s.real(5, 3), axis=0, zi=s.real(2, 2, 3))])  # fmt: skip
def sosfilt(sos, x, axis=-1, zi=None):
    """Filter along an axis by second-order sections, one after the other; the leading 1 of a section is constant.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import sosfilt
    >>> sos = np.array([[1.0, 0.5, 0.0, 1.0, -0.5, 0.0]])
    >>> fad.grad(lambda x: sosfilt(sos, x)[2])(np.array([1.0, 0.0, 0.0]))
    array([0.5, 1. , 1. ])
    """
    x = as_array(x)
    axis = normalize_axis(axis, x.ndim)
    sos, x, *state = _operands(sos, x, *([] if zi is None else [zi]))
    _check_sections(sos)
    wanted = (sos.shape[0], *[2 if i == axis else n for i, n in enumerate(x.shape)])
    if state and state[0].shape != wanted:
        raise ValueError(f"Invalid zi shape: zi must have the shape {wanted}, not {state[0].shape}")
    y, finals = _move(x, axis, -1), []
    for k in range(sos.shape[0]):
        x, b, a = y, sos[k, :3], sos[k, 3:]
        zk = [_move(state[0][k], axis, -1)] if state else []
        y = _filter_axis(b, a, x, *zk)
        finals += [_move(_final(b, a, x, zk[0], y), -1, axis)] if state else []
    y = _move(y, -1, axis)
    return (y, np.stack(finals)) if state else y


@register_function(
    "sosfilt_zi",
    numerical=False,
    samples=lambda s: [call(_sections(s, 2))],
    raises="ValueError: The array has not the shape (sections, 6).",
)
def sosfilt_zi(sos):
    """Return the state of second-order sections after a constant signal of 1.

    >>> fad.scipy.signal.sosfilt_zi(np.array([[0.5, 0.0, 0.0, 1.0, -0.5, 0.0]]))
    array([[0.5, 0. ]])
    """
    sos = as_array(sos)
    _check_sections(sos)
    states, scale = [], 1.0
    for k in range(sos.shape[0]):
        b, a = sos[k, :3], sos[k, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(states)


# --- forwards and backwards -----------------------------------------------------------------------------------------


def extend(x: Any, n: int, how: Any) -> Any:
    """Extend the last axis by n samples on each side: "odd", "even", "constant" or "zeros"."""
    if n < 1 or how is None:
        return x
    widths = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if how in ("odd", "even"):
        if n > x.shape[-1] - 1:
            raise ValueError(f"The extension length n ({n}) is too big. It must not exceed {x.shape[-1] - 1}.")
        return np.pad(x, widths, "reflect", reflect_type=how)
    modes: dict[str, Any] = {"constant": "edge", "zeros": "constant"}
    return np.pad(x, widths, modes[how])


def _padding(padtype: Any, padlen: Any, x: Any, taps: int) -> int:
    if padtype not in ("even", "odd", "constant", None):
        raise ValueError(f"padtype must be 'even', 'odd', 'constant', or None, not {padtype!r}")
    edge = 0 if padtype is None else taps * 3 if padlen is None else padlen
    if x.shape[-1] <= edge:
        raise ValueError(f"The length of the input vector x must be greater than padlen, which is {edge}.")
    if edge < 0:
        raise ValueError("padlen must be a nonnegative integer")
    return edge


def _both_ways(x: Any, edge: int, padtype: Any, run: Any) -> Any:
    """Filter the extended last axis forwards and backwards, each from the steady state of its first sample."""
    y = extend(x, edge, padtype)
    for _ in range(2):
        y = run(y, y[..., :1])[..., ::-1]
    return y[..., edge : y.shape[-1] - edge] if edge else y


@register_function("filtfilt", samples=lambda s: [
    call(s.real(2), np.array([1.0, -0.4], s.dtype), s.real(12)),
    call(s.real(3), np.array([1.0, 0.3, 0.1], s.dtype), s.real(11, 2), axis=0, padtype="even", padlen=4),
    call(s.real(2), np.array([1.0, -0.4], s.dtype), s.real(5), padtype="constant", padlen=2),
    call(s.real(2), np.array([1.0, -0.4], s.dtype), s.real(5), padtype=None)])  # fmt: skip
def filtfilt(b, a, x, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None):
    """Filter forwards and backwards, without a shift in phase; of traced values with ``method="pad"`` only.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import filtfilt
    >>> fad.grad(lambda x: np.sum(filtfilt([0.5, 0.5], [1.0], x, padlen=2)))(np.ones(5))
    array([1.25, 0.75, 1.  , 0.75, 1.25])
    """
    if method != "pad":
        if method != "gust":
            raise ValueError("method must be 'pad' or 'gust'.")
        raise ValueError("filtfilt of traced values takes method='pad' only, not 'gust'")
    b, a = (np.atleast_1d(as_array(v)) for v in (b, a))
    x = as_array(x)
    axis = normalize_axis(axis, x.ndim)
    b, a, x = _operands(b, a, _move(x, axis, -1))
    edge = _padding(padtype, padlen, x, max(b.shape[0], a.shape[0]))
    zi = lfilter_zi(b, a)
    y = _both_ways(x, edge, padtype, lambda y, first: _filter_axis(b, a, y, zi * first))
    return _move(y, -1, axis)


@register_function(
    "sosfiltfilt",
    numerical=False,
    samples=lambda s: [
        call(_sections(s, 2), s.real(16)),
        call(_sections(s, 1), s.real(5, 2), axis=0, padtype="even", padlen=2),
    ],
)
def sosfiltfilt(sos, x, axis=-1, padtype="odd", padlen=None):
    """Filter by second-order sections, forwards and backwards, without a shift in phase.

    >>> fad.scipy.signal.sosfiltfilt(np.array([[0.5, 0.0, 0.0, 1.0, -0.5, 0.0]]), np.ones(12)).round(6)[:3]
    array([1., 1., 1.])
    """
    x = as_array(x)
    axis = normalize_axis(axis, x.ndim)
    sos, x = _operands(sos, _move(x, axis, -1))
    _check_sections(sos)
    taps = 2 * sos.shape[0] + 1
    idle = np.minimum(np.sum(sos[:, 2] == 0), np.sum(sos[:, 5] == 0))
    edge = _padding(padtype, padlen, x, taps - int(idle))
    zi = sosfilt_zi(sos)

    def run(y, first):
        state = zi.reshape(zi.shape[0], *[1] * (y.ndim - 1), 2) * first
        return sosfilt(sos, y, -1, state)[0]

    return _move(_both_ways(x, edge, padtype, run), -1, axis)
