"""Linear systems: how their forms become one another, systems in discrete time, and their answers to inputs.

A system is given as SciPy's functions take it: (numerator, denominator), (zeros, poles, gain), (A, B, C, D), or an
object of SciPy's, which holds plain numbers.
"""

from __future__ import annotations

import operator
import types
from typing import Any

import numpy as np
import scipy.signal

from fad.core.primitives.primitive import has_tracer, public
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.linalg import expm
from fad.scipy.registration import registrar
from fad.scipy.signal.forms import normalize, tf2zpk, zpk2tf
from fad.scipy.signal.response import freqs, freqs_zpk

register_function = registrar("signal")


# --- forms ----------------------------------------------------------------------------------------------------------


def _quotients(s):
    return [
        call(s.positive(2), np.array([2.0, 0.9, 1.3], s.dtype) + 0.1 * s.real(3)),
        call(s.positive(3), s.positive(3)),
        call(s.positive(2, 2), s.positive(4)),
    ]


@register_function("tf2ss", complex=False, samples=_quotients, raises="ValueError: There are more zeros than poles.")
def tf2ss(num, den):
    """Return the matrices (A, B, C, D) of a transfer function, in the controller's form.

    >>> fad.scipy.signal.tf2ss(np.array([1.0]), np.array([1.0, 3.0, 2.0]))[0]
    array([[-3., -2.],
           [ 1.,  0.]])
    """
    num, den = normalize(num, den)
    num = num[None] if num.ndim == 1 else num
    n, more = den.shape[0] - 1, den.shape[0] - num.shape[1]
    if more < 0:
        raise ValueError("Improper transfer function. `num` is longer than `den`.")
    num = np.concatenate([np.zeros_like(num, shape=(num.shape[0], more)), num], axis=1)
    if n == 0:
        return np.zeros((1, 1)), np.zeros((1, num.shape[1])), np.zeros((num.shape[0], 1)), num
    a = np.concatenate([-den[None, 1:], np.eye(n - 1, n)])
    return a, np.eye(n, 1), num[:, 1:] - num[:, :1] * den[1:], num[:, :1]


def _complete(a: Any, b: Any, c: Any, d: Any) -> list:
    """Return the matrices of a system with two axes each, checked as SciPy does."""
    a, b, c, d = (np.zeros((0, 0)) if x is None else np.atleast_2d(as_array(x)) for x in (a, b, c, d))
    n = a.shape[0] or b.shape[0] or c.shape[1]
    inputs, outputs = b.shape[1] or d.shape[1], c.shape[0] or d.shape[0]
    found = []
    shapes = (n, n), (n, inputs), (outputs, n), (outputs, inputs)
    for name, x, shape in zip("ABCD", (a, b, c, d), shapes, strict=True):
        x = x if x.size else np.zeros(shape)
        if x.shape != shape:
            raise ValueError(f"Parameter {name} has shape {x.shape} but should be {shape}!")
        found.append(x)
    return found


def _characteristic(a: Any) -> Any:
    """Return the coefficients of the characteristic polynomial, by the traces of Faddeev and Le Verrier.

    They are smooth in the matrix, where eigenvalues are not: two of a double integrator are the same.
    """
    n, coefficients = a.shape[0], [np.ones_like(a, shape=())]
    m = np.zeros_like(a)
    for k in range(1, n + 1):
        m = a @ m + coefficients[-1] * np.eye(n, dtype=a.dtype)
        coefficients.append(-np.trace(a @ m) / k)
    return np.stack(coefficients)


def _matrices(s):
    a = np.array([[-0.5, 1.2], [-0.8, -0.3]], s.dtype)
    return [
        call(a + 0.1 * s.real(2, 2), s.real(2, 1), s.real(1, 2), s.real(1, 1)),
        call(a + 0.1 * s.real(2, 2), s.real(2, 2), s.real(3, 2), s.real(3, 2), 1),
    ]


_NO_INPUT: dict = {"complex": False, "raises": "ValueError: There is no such input, or shapes do not fit."}


@register_function("ss2tf", samples=_matrices, **_NO_INPUT)
def ss2tf(A, B, C, D, input=0):
    """Return the transfer functions from one input of a system of matrices to its outputs.

    >>> a, b, c, d = np.array([[-3.0, -2.0], [1.0, 0.0]]), np.eye(2, 1), np.array([[0.0, 1.0]]), np.zeros((1, 1))
    >>> fad.scipy.signal.ss2tf(a, b, c, d)[1]
    array([1., 3., 2.])
    """
    A, B, C, D = _complete(A, B, C, D)
    if input >= D.shape[1]:
        raise ValueError("System does not have the input specified.")
    b, d = B[:, input : input + 1], D[:, input : input + 1]
    if not A.size:
        return d.reshape(-1), 1.0
    den = _characteristic(A)
    rows = [_characteristic(A - b @ C[k : k + 1]) + (d[k, 0] - 1) * den for k in range(C.shape[0])]
    return np.stack(rows), den


@register_function(
    "zpk2ss", complex=False, raises="ValueError: There are more zeros than poles.",
    samples=lambda s: [call(s.real(1), -s.positive(2), s.positive()), call([], -s.positive(3), s.positive())],
)  # fmt: skip
def zpk2ss(z, p, k):
    """Return the matrices (A, B, C, D) of zeros, poles and gain.

    >>> fad.scipy.signal.zpk2ss([], np.array([-1.0]), 2.0)[2]
    array([[2.]])
    """
    return tf2ss(*zpk2tf(z, p, k))


@register_function(
    "ss2zpk", **_NO_INPUT,
    samples=lambda s: [call(np.diag(-s.positive(2)), s.positive(2, 1), s.positive(1, 2), s.positive(1, 1))],
)  # fmt: skip
def ss2zpk(A, B, C, D, input=0):
    """Return the zeros, the poles and the gain from one input of a system of matrices.

    >>> fad.scipy.signal.ss2zpk(np.diag([-1.0, -2.0]), np.ones((2, 1)), np.ones((1, 2)), np.ones((1, 1)))[1].round(9)
    array([-2., -1.])
    """
    return tf2zpk(*ss2tf(A, B, C, D, input))


def _state_space(system: Any) -> list:
    """Return the matrices of a system, in whatever form it is given."""
    if hasattr(system, "to_ss"):
        theirs = system.to_ss()
        return _complete(theirs.A, theirs.B, theirs.C, theirs.D)
    forms = {2: tf2ss, 3: zpk2ss, 4: _complete}
    if len(system) not in forms:
        raise ValueError("a system has 2 (num, den), 3 (z, p, k) or 4 (A, B, C, D) parts, or is an object of SciPy's")
    return _complete(*forms[len(system)](*system))


def _continuous(name: str, system: Any) -> list:
    if isinstance(system, scipy.signal.dlti):
        raise AttributeError(f"{name} can only be used with continuous-time systems.")
    return _state_space(system)


# --- discrete time --------------------------------------------------------------------------------------------------


_ALPHAS = {
    "bilinear": 0.5, "tustin": 0.5, "euler": 0.0, "forward_diff": 0.0, "backward_diff": 1.0,
}  # fmt: skip


def _systems(s):
    a, b, c, d = _matrices(s)[0].args
    return [
        call((a, b, c, d), 0.3),
        call((a, b, c, d), 0.3, "foh"),
        call((a, b, c, d), 0.3, "tustin"),
        call((a, b, c, d), 0.3, "gbt", 0.2),
        call((a, b, c, [[0.0]]), 0.3, "impulse"),
        call((s.positive(2), s.positive(3)), 0.2),
    ]


@register_function(
    "cont2discrete", complex=False, samples=_systems,
    raises="ValueError: There is no such method, or it does not take the system.",
)  # fmt: skip
def cont2discrete(system, dt, method="zoh", alpha=None):
    """Return a system in discrete time, with steps of `dt`, in the form in which it is given.

    >>> a = np.array([[-1.0]])
    >>> step = lambda dt: fad.scipy.signal.cont2discrete((a, -a, -a, 0.0 * a), dt)[0][0, 0]
    >>> fad.grad(step)(1.0).round(6)
    np.float64(-0.367879)
    """
    if hasattr(system, "to_ss"):
        return system.to_discrete(dt=dt, method=method, alpha=alpha)
    if len(system) == 2:
        return (*ss2tf(*cont2discrete(tf2ss(*system), dt, method, alpha)[:4]), dt)
    if len(system) == 3:
        return (*ss2zpk(*cont2discrete(zpk2ss(*system), dt, method, alpha)[:4]), dt)
    if len(system) != 4:
        raise ValueError("First argument must either be a tuple of 2 (tf), 3 (zpk), or 4 (ss) arrays.")
    a, b, c, d = map(as_array, system)
    n = a.shape[0]
    if method in _ALPHAS or method == "gbt":
        alpha = _ALPHAS.get(method, alpha)
        if alpha is None:
            raise ValueError("Alpha parameter must be specified for the generalized bilinear transform (gbt) method")
        if not 0 <= stop_gradient(alpha) <= 1:
            raise ValueError("Alpha parameter must be within the interval [0,1] for the gbt method")
        back = np.eye(n) - alpha * dt * a
        bd = np.linalg.solve(back, dt * b)
        ad = np.linalg.solve(back, np.eye(n) + (1.0 - alpha) * dt * a)
        return ad, bd, np.linalg.solve(back.T, c.T).T, d + alpha * (c @ bd), dt
    if method == "zoh":
        ad, bd = _hold(_double(a), _double(b), dt)
        return ad, bd, c, d, dt
    if method == "foh":
        ad, first, second = _ramp(a, b, dt)
        return ad, first - second + ad @ second, c, d + c @ second, dt
    if method == "impulse":
        if not np.allclose(stop_gradient(d), 0):
            raise ValueError("Impulse method is only applicable to strictly proper systems")
        ad = expm(a * dt)
        return ad, ad @ b * dt, c, c @ b * dt, dt
    raise ValueError(f"Unknown transformation method '{method}'")


def _double(x: Any) -> Any:
    return x.astype(np.result_type(x, float))


def _hold(a: Any, b: Any, dt: Any) -> tuple:
    """Return what a step makes of the state, and of an input that is constant in it."""
    n = a.shape[0]
    e = expm(np.block([[a * dt, b * dt], [np.zeros((b.shape[1], n + b.shape[1]))]]))[:n]
    return e[:, :n], e[:, n:]


def _ramp(a: Any, b: Any, dt: Any) -> tuple:
    """Return what a step makes of the state, of the input at its start, and of how much that rises in it."""
    n, m = b.shape
    none = np.zeros((m, n + m))
    e = expm(np.block([[a * dt, b * dt, np.zeros((n, m))], [none, np.eye(m)], [np.zeros((m, n + 2 * m))]]))[:n]
    return e[:, :n], e[:, n : n + m], e[:, n + m :]


# --- answers --------------------------------------------------------------------------------------------------------


def _accumulate(a: Any, x: Any) -> Any:
    """Return the rows of ``y[i] = y[i - 1] @ a + x[i]``: sums over 1, 2, 4 … rows, each of twice as many."""
    reach = 1
    while reach < x.shape[0]:
        x = np.concatenate([x[:reach], x[reach:] + x[:-reach] @ a])
        a, reach = a @ a, 2 * reach
    return x


def _inputs(s):
    a, b, c, d = _matrices(s)[0].args
    times = [0.0, 0.3, 0.6, 0.9, 1.2]
    return [
        call((a, b, c, d), s.real(5), times),
        call((a, b, c, d), s.real(5), times, s.real(2), interp=False),
        call((s.positive(2), s.positive(3)), s.real(3), [0.1, 0.3, 0.5], s.real(2)),
        call((a, b, c, d), None, times, s.real(2)),
    ]


_TIMES: dict = {
    "complex": False, "rounding": "single",
    "raises": "ValueError: Times are negative or not equally spaced, or shapes do not fit.",
}  # fmt: skip


@register_function("lsim", samples=_inputs, **_TIMES)
def lsim(system, U, T, X0=None, interp=True):
    """Return the times, the outputs and the states of a system in continuous time with an input.

    >>> t, u = np.linspace(0.0, 1.0, 11), np.ones(11)
    >>> last = lambda rate: fad.scipy.signal.lsim((np.stack([rate]), np.stack([1.0, rate])), u, t)[1][-1]
    >>> fad.grad(last)(1.0).round(6)
    np.float64(0.367879)
    """
    a, b, c, d = _continuous("lsim", system)
    times = np.atleast_1d(as_array(T))
    plain = stop_gradient(times)
    if times.ndim != 1:
        raise ValueError("T must have one axis")
    if plain[0] < 0:
        raise ValueError("Initial time must be nonnegative")
    n, steps = a.shape[0], times.shape[0]
    start = np.zeros(n) if X0 is None else np.broadcast_to(as_array(X0), (n,))
    start = start @ expm(a.T * times[0])  # the identity at 0
    none = U is None or (type(U) in (int, float) and U == 0)
    u = np.zeros((steps, b.shape[1])) if none else np.atleast_1d(as_array(U))
    u = u[:, None] if u.ndim == 1 else u
    if u.shape != (steps, b.shape[1]):
        raise ValueError("U must have the same number of rows as elements in T, and a column for each input.")
    if steps == 1:
        return times, np.squeeze(start[None] @ c.T + u @ d.T), np.squeeze(start[None])
    dt = times[1] - times[0]
    if not np.allclose(plain[1:] - plain[:-1], stop_gradient(dt)):
        raise ValueError("Time steps are not equally spaced.")
    if none:
        ad, driven = expm(a * dt), np.zeros((steps - 1, n))
    elif interp:
        ad, first, second = _ramp(a, b, dt)
        driven = u[:-1] @ (first - second).T + u[1:] @ second.T
    else:
        ad, held = _hold(a, b, dt)
        driven = u[:-1] @ held.T
    x = _accumulate(ad.T, np.concatenate([start[None], driven]))
    x = x.astype(a.dtype) if a.dtype.kind == x.dtype.kind else x  # in the precision of the system
    y = np.squeeze(x @ c.T)
    return times, y if none else y + np.squeeze(u @ d.T), np.squeeze(x)


def _response_times(a: Any, n: int) -> Any:
    """Return times up to seven times the slowest decay, which follow the system, as SciPy chooses them."""
    slowest = np.min(np.abs(np.real(np.linalg.eigvals(a))))
    slowest = np.where(slowest == 0, 1.0, slowest)
    return np.linspace(0.0, 1.0, n) * (7.0 / slowest)


def _answers(s):
    a, b, c, d = _matrices(s)[0].args
    times = [0.0, 0.3, 0.6, 0.9]
    return [
        call((a, b, c, d), None, times),
        call((a, b, c, d), s.real(), times),
        call((s.positive(2), s.positive(3)), N=7),
    ]


@register_function("impulse", samples=_answers, **_TIMES)
def impulse(system, X0=None, T=None, N=None):
    """Return times and the answer of a system in continuous time to an impulse.

    >>> t = np.array([0.0, 0.5, 1.0])
    >>> fad.grad(lambda rate: fad.scipy.signal.impulse(([1.0], np.stack([1.0, rate])), T=t)[1][2])(1.0).round(6)
    np.float64(-0.367879)
    """
    a, b, c, d = _continuous("impulse", system)
    start = np.squeeze(b if X0 is None else b + as_array(X0))
    times = _response_times(a, 100 if N is None else operator.index(N)) if T is None else as_array(T)
    return times, lsim((a, b, c, d), 0.0, times, start, interp=False)[1]


@register_function("step", samples=_answers, **_TIMES)
def step(system, X0=None, T=None, N=None):
    """Return times and the answer of a system in continuous time to an input that is 1 from time 0 on.

    >>> t = np.array([0.0, 0.5, 1.0])
    >>> fad.grad(lambda rate: fad.scipy.signal.step(([1.0], np.stack([1.0, rate])), T=t)[1][2])(1.0).round(6)
    np.float64(-0.264241)
    """
    a, b, c, d = _continuous("step", system)
    times = _response_times(a, 100 if N is None else operator.index(N)) if T is None else as_array(T)
    return lsim((a, b, c, d), np.ones(times.shape, a.dtype), times, X0, interp=False)[:2]


# --- frequencies ----------------------------------------------------------------------------------------------------


def _responses(s):
    a, b, c, d = _matrices(s)[0].args
    return [
        call((s.positive(2), s.positive(3)), s.positive(3)),
        call((a, b, c, d), s.positive(3)),
        call((-s.positive(1), -s.positive(2), s.positive()), s.positive(2)),
    ]


_ONE: dict = {
    "complex": False, "rounding": "single", "raises": "ValueError: The system has several inputs or outputs.",
}  # fmt: skip


@register_function("freqresp", samples=_responses, **_ONE)
def freqresp(system, w=None, n=10000):
    """Return angular frequencies and the complex response of a system in continuous time to them.

    >>> gain = lambda rate: np.abs(fad.scipy.signal.freqresp(([1.0], np.stack([1.0, rate])), [1.0])[1][0])
    >>> fad.grad(gain)(1.0).round(6)
    np.float64(-0.353553)
    """
    wanted = n if w is None else w
    if not hasattr(system, "to_ss") and len(system) == 3:
        return freqs_zpk(*system, worN=wanted)
    if hasattr(system, "to_ss") or len(system) == 4:
        a, b, c, d = _continuous("freqresp", system)
        if d.shape != (1, 1):
            raise ValueError("freqresp() requires a SISO (single input, single output) system.")
        system = ss2tf(a, b, c, d)
    num, den = map(_double, normalize(*system))
    if num.ndim > 1:
        raise ValueError("freqresp() requires a SISO (single input, single output) system.")
    return freqs(num, den, worN=wanted)


@register_function("bode", samples=_responses, **_ONE)
def bode(system, w=None, n=100):
    """Return angular frequencies, the magnitude in decibels and the phase in degrees of a system in continuous time.

    >>> fad.grad(lambda k: fad.scipy.signal.bode((np.stack([k]), [1.0, 1.0]), [1.0])[1][0])(1.0).round(6)
    np.float64(8.68589)
    """
    w, y = freqresp(system, w=w, n=n)
    return w, 20.0 * np.log10(np.abs(y)), np.unwrap(np.arctan2(y.imag, y.real)) * 180.0 / np.pi


# --- feedback -------------------------------------------------------------------------------------------------------


def _feedback(gain: Any) -> Any:
    return lambda A, B, poles: gain(A, B, poles).gain_matrix + 0.0


def place_poles(A: Any, B: Any, poles: Any, method: str = "YT", rtol: float = 1e-3, maxiter: int = 30) -> Any:
    """Return the feedback that gives a system of one input its poles, by Ackermann's formula.

    Of several inputs SciPy chooses among many feedbacks, by an iteration, and that has no derivative.

    Parameters
    ----------
    A : array (n, n)
        The system.
    B : array (n, 1)
        Its input.
    poles : array (n,)
        Real poles, or pairs of conjugate ones.
    method, rtol, maxiter
        As of scipy.signal.place_poles; without effect for one input.

    Returns
    -------
    object
        With ``gain_matrix`` (1, n), ``computed_poles`` and ``requested_poles``.

    Raises
    ------
    NotImplementedError
        if there are several inputs and something is traced.
    ValueError
        if shapes do not fit, or a complex pole has no conjugate.

    Examples
    --------
    >>> from fad.scipy.signal import place_poles
    >>> a, b = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    >>> fad.grad(lambda p: place_poles(a, b, p).gain_matrix[0, 0])(np.array([-1.0, -2.0])).round(9)
    array([-2., -1.])
    """
    if not has_tracer((A, B, poles)):
        return scipy.signal.place_poles(A, B, poles, method, rtol, maxiter)
    A, B, poles = (np.atleast_1d(as_array(x)) for x in (A, B, poles))
    n = A.shape[0]
    if A.ndim != 2 or B.ndim != 2 or A.shape != (n, n) or B.shape[0] != n or poles.shape != (n,):
        shapes = f"{A.shape}, {B.shape} and {poles.shape}"
        raise ValueError(f"A, B and poles must have the shapes (n, n), (n, 1) and (n,), not {shapes}")
    if B.shape[1] != 1:
        raise NotImplementedError(
            "place_poles of traced values takes a system of one input, B of shape (n, 1): of several inputs SciPy "
            "chooses among many feedbacks, by an iteration. fad.scipy.linalg.solve_continuous_are has a derivative"
        )
    polynomial = np.poly(poles)
    if polynomial.dtype.kind == "c":
        raise ValueError("Complex poles must come with their conjugates")
    column, columns, value = B[:, 0], [], np.zeros_like(A)
    for coefficient in polynomial:
        value = A @ value + coefficient * np.eye(n)
        columns.append(column)
        column = A @ column
    reach = np.stack(columns[:n], axis=1)
    gain = (np.linalg.solve(reach.T, np.eye(n)[-1]) @ value)[None]
    found = types.SimpleNamespace(gain_matrix=gain, requested_poles=poles)
    found.computed_poles = np.linalg.eigvals(A - B @ gain)
    return found


_places = lambda s: [
    call(np.diag([0.9, -1.1])[:n, :n].astype(s.dtype) + 0.1 * s.real(n, n), s.positive(n, 1), -s.positive(n))
    for n in (1, 2)
]
public(
    _feedback(scipy.signal.place_poles), name="scipy.signal.place_poles", samples=_places, complex=False,
    rounding="single",
)(_feedback(place_poles))  # fmt: skip
