"""Recursive filters: lfilter, sosfilt, filtfilt and their kin.

A filter b/a is a convolution with b, then the recursion ``y[n] = w[n] - a[1] y[n-1] - a[2] y[n-2] - ...``. It is a
primitive, run by SciPy's lfilter. Its transpose is the same recursion run backwards, and its derivative in `a` is the
recursion of a convolution; so derivatives of every order stay among the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.signal

from fad.core.archetypes import cast, fit
from fad.core.primitive import Primitive, register
from fad.core.samples import call
from fad.core.tracer import bind
from fad.ops.structural import as_array, normalize_axis
from fad.scipy.doors import on_host
from fad.scipy.kernels import convolve_p
from fad.scipy.signal.convolution import door

# --- the recursion --------------------------------------------------------------------------------------------------


def _forward(a, w):
    on_host("a recursive filter", a, w)
    run = scipy.signal.lfilter
    one = np.ones_like(a, shape=(1,))
    if a.ndim == 1:
        return run(one, np.concatenate([one, a]), w)
    lead = np.broadcast_shapes(a.shape[:-1], w.shape[:-1])
    a, w = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (a, w))
    rows = [run(one, np.concatenate([one, a[i]]), w[i]) for i in np.ndindex(*lead)]
    return np.stack(rows).reshape(w.shape)


def _behind(x: Any, y: Any) -> Any:
    """Return ``sum(x[j] y[n - 1 - j])``: what coefficients 1, 2, ... make of the past of a signal."""
    size = y.shape[-1]
    full = bind(convolve_p, y, x, rank=1, mode="full", method="direct")[..., : size - 1]
    return np.concatenate([np.zeros_like(full, shape=(*full.shape[:-1], 1)), full], axis=-1)


def _adjoint(a: Any, ct: Any) -> Any:
    return bind(recursion_p, a, ct[..., ::-1])[..., ::-1]


def _coefficients(ct, y, a, w):
    """Return ``-sum_n adjoint[n] y[n - j]`` for the coefficients j = 1, 2, ... that the signal is long enough for."""
    size, order = y.shape[-1], a.shape[-1]
    seen = min(order, size - 1)
    late = _adjoint(a, ct)[..., 1:]
    if not seen:
        return np.zeros_like(a)
    past = np.concatenate([np.zeros_like(y, shape=(*y.shape[:-1], seen - 1)), y[..., : size - 1]], axis=-1)
    found = bind(convolve_p, past, late[..., ::-1], rank=1, mode="valid", method="direct")[..., ::-1]
    if seen < order:
        found = np.concatenate([found, np.zeros_like(found, shape=(*found.shape[:-1], order - seen))], axis=-1)
    return fit(-found, a.shape, a.dtype)


def _jvp(tangents, y, xs, params):
    ta, tw = tangents
    source = None if ta is None else -_behind(ta, y)
    if tw is not None:
        source = tw if source is None else source + tw
    return cast(bind(recursion_p, xs[0], source), y.dtype)


def _batch(size, batched, xs, params):
    a, w = xs
    if batched[0]:
        a = a.reshape(size, *[1] * (np.ndim(w) - batched[1] - a.ndim + 1), *a.shape[1:])
    return bind(recursion_p, a, w)


recursion_p = register(
    Primitive(
        "scipy.linear_recursion",
        _forward,
        jvp=_jvp,
        vjp=(_coefficients, lambda ct, y, a, w: fit(_adjoint(a, ct), w.shape, w.dtype)),
        batch=_batch,
        samples=lambda s: [
            call(0.2 * s.real(2), s.real(6)),
            call(0.2 * s.real(3), s.real(2, 3)),
            call(0.2 * s.real(2, 2), s.real(2, 4)),
            call(0.2 * s.real(4), s.real(2)),
        ],
    )
)

# --- lfilter --------------------------------------------------------------------------------------------------------


def _longer(x: Any, n: int) -> Any:
    """Fill up the last axis with zeros to length n."""
    missing = n - x.shape[-1]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing > 0 else x


def _filtered(b: Any, a: Any, x: Any, zi: Any) -> tuple:
    """Run a filter along the last axis; return the result and the final state, for an initial state or None."""
    b, a = b / a[..., :1], a / a[..., :1]
    size, order = x.shape[-1], max(b.shape[-1], a.shape[-1]) - 1
    full = _longer(bind(convolve_p, x, b, rank=1, mode="full", method="direct"), size + order)
    if zi is not None:
        full = full + _longer(zi, size + order)
    source, rest = full[..., :size], full[..., size:]
    if a.shape[-1] == 1:
        return source, rest
    y = bind(recursion_p, a[..., 1:], source)
    if zi is None:
        return y, None
    past = _longer(bind(convolve_p, y, a, rank=1, mode="full", method="direct"), size + order)
    return y, rest - past[..., size:]


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


@door("lfilter", samples=_filter_samples)
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
    y, final = _filtered(b, a, np.moveaxis(x, axis, -1), *[np.moveaxis(z, axis, -1) for z in state] or [None])
    y = np.moveaxis(y, -1, axis)
    return y if zi is None else (y, np.moveaxis(final, -1, axis))


def _state(zi: Any, x: Any, axis: int, order: int) -> Any:
    wanted = tuple(order if i == axis else n for i, n in enumerate(x.shape))
    fits = zi.ndim == x.ndim and zi.shape[axis] == order
    if not fits or any(n not in (1, m) for n, m in zip(zi.shape, wanted, strict=True)):
        raise ValueError(f"Unexpected shape for parameter zi: expected {wanted}, found {zi.shape}.")
    return zi if zi.shape == wanted else np.broadcast_to(zi, wanted)


@door("lfilter_zi", samples=lambda s: [
    call(s.real(3), np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(2)])),
    call(s.real(1), 3.0 * np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(2)])),
    call(s.real(3), np.concatenate([np.ones(1, s.dtype), 0.2 * s.real(1)]))])  # fmt: skip
def lfilter_zi(b, a):
    """Return the state of a filter after a constant signal of 1: what starts it without a jump."""
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


@door("sosfilt", numerical=False, samples=lambda s: [
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
    y, finals = np.moveaxis(x, axis, -1), []
    for k in range(sos.shape[0]):
        zk = np.moveaxis(state[0][k], axis, -1) if state else None
        y, final = _filtered(sos[k, :3], sos[k, 3:], y, zk)
        finals.append(final)
    y = np.moveaxis(y, -1, axis)
    return y if zi is None else (y, np.stack([np.moveaxis(f, -1, axis) for f in finals]))


@door("sosfilt_zi", numerical=False, samples=lambda s: [call(_sections(s, 2))])
def sosfilt_zi(sos):
    """Return the state of second-order sections after a constant signal of 1."""
    sos = as_array(sos)
    _check_sections(sos)
    states, scale = [], 1.0
    for k in range(sos.shape[0]):
        b, a = sos[k, :3], sos[k, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(states)


# --- forwards and backwards -----------------------------------------------------------------------------------------


def extended(x: Any, n: int, how: str | None) -> Any:
    """Extend the last axis by n samples on each side: "odd", "even", "constant" or "zeros"."""
    if n < 1 or how is None:
        return x
    widths = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if how in ("odd", "even"):
        if n > x.shape[-1] - 1:
            raise ValueError(f"The extension length n ({n}) is too big. It must not exceed {x.shape[-1] - 1}.")
        return np.pad(x, widths, "reflect", reflect_type=how)
    return np.pad(x, widths, {"constant": "edge", "zeros": "constant"}[how])


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
    y = extended(x, edge, padtype)
    for _ in range(2):
        y = run(y, y[..., :1])[..., ::-1]
    return y[..., edge : y.shape[-1] - edge] if edge else y


@door("filtfilt", samples=lambda s: [
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
    b, a, x = _operands(b, a, np.moveaxis(x, axis, -1))
    edge = _padding(padtype, padlen, x, max(b.shape[0], a.shape[0]))
    zi = lfilter_zi(b, a)
    y = _both_ways(x, edge, padtype, lambda y, first: _filtered(b, a, y, zi * first)[0])
    return np.moveaxis(y, -1, axis)


@door(
    "sosfiltfilt",
    numerical=False,
    samples=lambda s: [
        call(_sections(s, 2), s.real(16)),
        call(_sections(s, 1), s.real(5, 2), axis=0, padtype="even", padlen=2),
    ],
)
def sosfiltfilt(sos, x, axis=-1, padtype="odd", padlen=None):
    """Filter by second-order sections, forwards and backwards, without a shift in phase."""
    x = as_array(x)
    axis = normalize_axis(axis, x.ndim)
    sos, x = _operands(sos, np.moveaxis(x, axis, -1))
    _check_sections(sos)
    taps = 2 * sos.shape[0] + 1
    idle = np.minimum(np.sum(sos[:, 2] == 0), np.sum(sos[:, 5] == 0))
    edge = _padding(padtype, padlen, x, taps - int(idle))
    zi = sosfilt_zi(sos)

    def run(y, first):
        state = zi.reshape(zi.shape[0], *[1] * (y.ndim - 1), 2) * first
        return sosfilt(sos, y, -1, state)[0]

    return np.moveaxis(_both_ways(x, edge, padtype, run), -1, axis)
