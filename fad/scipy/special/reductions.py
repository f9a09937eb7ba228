"""logsumexp, softmax and log_softmax, right where entries are minus infinity."""

from __future__ import annotations

import numpy as np

from fad.backends import behind
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import stack_list
from fad.core.tracing.values import stop_gradient


def _peak(a, axis):
    """Return the maximum along `axis` as a constant, 0 where it is not finite: the shift of a stable exponential."""
    top = np.max(np.real(stop_gradient(a)), axis=axis, keepdims=True)
    return np.where(np.isfinite(top), top, np.zeros_like(top))


def _samples(s):
    return [
        call(s.real(3, 4)),
        call(s.real(3, 4), axis=1),
        call(s.real(2, 3, 4), axis=(0, 2)),
        call(np.array([0.5, -np.inf, 1.5], dtype=s.dtype)),
    ]


def _logsumexp_samples(s):
    return [*_samples(s), call(s.real(3, 4), axis=0, b=s.real(3, 4, low=0.2, high=2.0), keepdims=True)]


@public(name="special.logsumexp", samples=_logsumexp_samples)
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    """Return log(sum(b * exp(a))) over `axis`, without overflow; entries -inf count as nothing.

    Parameters
    ----------
    a, b : arrays
        Exponents, and optional weights of any sign.
    axis : int, tuple of int or None
    keepdims, return_sign : bool
        With `return_sign`, the sign of the sum is returned beside the logarithm of its absolute value.

    Returns
    -------
    array, or (array, sign)

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.special import logsumexp
    >>> fad.grad(logsumexp)(np.array([0.0, 0.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    a = _array(a)
    if b is not None:
        b = _array(b)
        a, b = np.broadcast_arrays(a, b) if a.shape != b.shape else (a, b)
        a = np.where(b == 0, -np.inf, a)
    top = _peak(a, axis)
    terms = _exp(a - top)
    total = np.sum(terms if b is None else b * terms, axis=axis, keepdims=keepdims)
    shift = top if keepdims else np.squeeze(top, axis=axis)
    if total.dtype.kind == "c":
        return (_log(np.abs(total)) + shift, total / np.abs(total)) if return_sign else np.log(total) + shift
    if return_sign:
        return _log(np.abs(total)) + shift, np.sign(total)
    if b is not None and _any_negative(total):
        total = np.where(total < 0, np.nan, total)
    return _log(total) + shift


def _any_negative(x):
    """Return whether any number may be negative; what a device holds is not waited for."""
    return behind(x).name != "numpy" or bool(np.any(stop_gradient(x) < 0))


def _array(x):
    x = stack_list(x)
    if not hasattr(x, "dtype"):
        return np.asarray(x, dtype=float)
    return x if x.dtype.kind in "fc" else x.astype(float)


def _exp(x):
    # Where x is -inf (or the shift took an infinity from itself) the term is constant, and has derivative 0.
    gone = x == -np.inf
    return np.where(gone, 0.0, np.exp(np.where(gone, np.zeros_like(x), x)))


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


@public(name="special.softmax", samples=_samples)
def softmax(x, axis=None):
    """Return exp(x) / sum(exp(x)) over `axis`; entries -inf get weight 0 and derivative 0.

    Parameters
    ----------
    x : array_like, real
    axis : int, tuple of int or None
        Over which is normalised; None takes all.

    Returns
    -------
    array
        Of the shape of `x`, with the sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> from fad.scipy.special import softmax
    >>> softmax(np.array([0.0, 0.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    x = _array(x)
    e = _exp(x - _peak(x, axis))
    return e / np.sum(e, axis=axis, keepdims=True)


@public(name="special.log_softmax", samples=lambda s: _samples(s)[:3])
def log_softmax(x, axis=None):
    """Return log(softmax(x)) over `axis`, without overflow or underflow.

    Parameters
    ----------
    x : array_like, real
    axis : int, tuple of int or None
        Over which is normalised; None takes all.

    Returns
    -------
    array
        Of the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from fad.scipy.special import log_softmax
    >>> log_softmax(np.array([1000.0, 0.0]))
    array([    0., -1000.])
    """
    x = _array(x)
    shifted = x - _peak(x, axis)
    return shifted - np.log(np.sum(_exp(shifted), axis=axis, keepdims=True))


def softplus(x, **options):
    """Return log(1 + exp(x)), without overflow.

    Parameters
    ----------
    x : array_like, real

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    TypeError
        the operand is complex or a string.

    Examples
    --------
    >>> fad.scipy.special.softplus(0.0).round(6)
    np.float64(0.693147)
    >>> fad.grad(fad.scipy.special.softplus)(0.0)
    np.float64(0.5)
    """
    return np.logaddexp(0.0, x, **options)
