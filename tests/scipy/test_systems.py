"""Linear systems, windows and partial fractions of traced numbers, in programs with SciPy's names."""

from __future__ import annotations

import numpy as np
import pytest

import fad

signal = pytest.importorskip("scipy.signal")

from scipy.signal import windows  # noqa: E402

A, B = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([[0.0], [1.0]])
C, D = np.array([[1.0, 0.0]]), np.array([[0.0]])
TWO = np.array([[0.3, -0.2], [1.0, 0.4]])
T = np.linspace(0.0, 3.0, 30)
U = np.sin(T)
X = np.array([1.1, 0.7, 1.3])
PLAIN = signal.lti([1.0], [1.0, 2.0, 3.0])


def _quotient(x):
    return [x[0]], [1.0, x[1], x[2]]


PROGRAMS = {
    "an answer of matrices": lambda x: signal.lsim((A * x[0], B * x[1], C, D), U * x[2], T, x[:2])[1],
    "an answer to steps": lambda x: signal.lsim(_quotient(x), U, T, interp=False)[2],
    "an answer to nothing": lambda x: signal.lsim((A, B, C, D), None, T * x[0], x[1:])[1],
    "an answer at one time": lambda x: signal.lsim((A, B, C, D), np.stack([x[:1]]), [0.5], x[1:])[1],
    "several inputs": lambda x: signal.lsim((A, TWO * x[0], TWO, TWO), np.stack([U, U * x[1]], 1), T)[1],
    "a system of SciPy's": lambda x: signal.lsim(PLAIN, U * x[0], T)[1],
    "a step": lambda x: signal.step(_quotient(x))[1],
    "an impulse": lambda x: np.stack(signal.impulse(_quotient(x), N=20)),
    "roots": lambda x: signal.step(([], [-x[0], -x[1]], x[2]), T=T)[1],
    "discrete": lambda x: np.concatenate(signal.cont2discrete((A * x[0], B, C, D), x[1])[:2], 1),
    "discrete, by lines": lambda x: signal.cont2discrete(_quotient(x), 0.1, "foh")[0],
    "discrete, by a share": lambda x: signal.cont2discrete((A, B, C, D), 0.1 * x[0], "gbt", alpha=x[1] / 2)[3],
    "a double integrator": lambda x: np.stack(
        [f.ravel() for f in signal.ss2tf(np.array([[0.0, 1], [0, 0]]) * x[0], B * x[1], C * x[2], D)]
    ),
    "a response": lambda x: signal.bode(_quotient(x), [1.0, 2.0])[1] + signal.bode(_quotient(x), [1.0, 2.0])[2],
    "a response of roots": lambda x: np.abs(signal.freqresp(([], [-x[0], -x[1]], x[2]), [0.5])[1]),
    "feedback": lambda x: signal.place_poles(A * x[0], B, -x[1:]).gain_matrix,
    "conjugate poles": lambda x: signal.place_poles(A, B, np.stack([-x[0] + 1j * x[1], -x[0] - 1j * x[1]])).gain_matrix,
    "residues": lambda x: np.abs(signal.residue([1.0, x[0], 2.0, 1.0], [1.0, x[1], x[2]])[0]),
    "residues of delays": lambda x: np.abs(signal.residuez([1.0, x[0]], [1.0, x[1], x[2]])[0]),
    "a quotient": lambda x: np.concatenate(signal.deconvolve(np.tile(x, 2), x[:2] + 1.0)),
    "a window": lambda x: windows.kaiser(8, x[0]) + windows.gaussian(8, x[1]) + windows.exponential(8, tau=x[2]),
    "a wide window": lambda x: windows.tukey(9, x[1]) + windows.tukey(9, x[0]) + windows.tukey(9, -x[0]),
    "windows of side lobes": lambda x: windows.chebwin(8, 60 * x[0]) + windows.taylor(8, 4, 30 * x[1]),
    "a window by name": lambda x: signal.get_window(("kaiser", x[0]), 8) + signal.get_window(x[1], 8),
    "a spectrum": lambda x: signal.welch(U, window=("general_gaussian", x[0], 3 * x[1]), nperseg=16)[1],
    "a filter": lambda x: signal.firwin(7, 0.3, window=("kaiser", x[0])),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_systems_and_windows_have_scipys_values_and_the_derivatives_of_their_differences(program):
    value = program(X)
    wanted = np.stack([(program(X + d) - program(X - d)) / 2e-6 for d in 1e-6 * np.eye(3)], -1)
    for jacobian in (fad.jacfwd(program), fad.jacrev(program), fad.jit(fad.jacrev(program))):
        np.testing.assert_allclose(jacobian(X), wanted, 1e-5, 1e-7)
    np.testing.assert_allclose(fad.jvp(program, (X,), (X,))[0], value, 1e-10, 1e-12)
    np.testing.assert_allclose(fad.jit(program)(X), value, 1e-10, 1e-12)
    many = fad.vmap(program)(np.stack([X, 1.01 * X]))
    np.testing.assert_allclose(many, np.stack([value, program(1.01 * X)]), 1e-10, 1e-12)
    slope = fad.grad(lambda s: np.sum(program(X + s * np.cos(X)) ** 2))
    np.testing.assert_allclose(fad.grad(slope)(0.0), (slope(1e-5) - slope(-1e-5)) / 2e-5, 1e-4, 1e-4)


def test_long_answers_are_those_of_scipy():
    times, inputs = np.linspace(0.0, 40.0, 1001), np.random.default_rng(0).normal(size=1001)
    system = (A, B, C, D)
    np.testing.assert_allclose(
        fad.jvp(lambda u: signal.lsim(system, u, times)[1], (inputs,), (inputs,))[0],
        signal.lsim(system, inputs, times)[1], 1e-9, 1e-10,
    )  # fmt: skip


REFUSED = {
    "poles that meet": (lambda x: signal.residue([1.0], np.stack([x[0], 0.0, 0.0]))[0], ValueError, "simple poles"),
    "several inputs": (lambda x: signal.place_poles(np.diag(x), np.eye(3, 2), -x), NotImplementedError, "one input"),
    "times that jump": (lambda x: signal.lsim((A, B, C, D), x, x**2)[1], ValueError, "equally spaced"),
    "an improper system": (lambda x: signal.tf2ss(x, [1.0, 2.0]), ValueError, "Improper"),
    "a method": (lambda x: signal.cont2discrete((A * x[0], B, C, D), 0.1, "none"), ValueError, "none"),
    "a share": (lambda x: signal.cont2discrete((A, B, C, D), 0.1, "gbt", 2 * x[0]), ValueError, "interval"),
    "a window of no length": (lambda x: windows.kaiser(-1, x[0]), ValueError, "non-negative"),
    "a window without parameters": (lambda x: signal.get_window(("hann", x[0]), 5), ValueError, "hann"),
}  # fmt: skip


@pytest.mark.parametrize(("program", "error", "says"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_derivative_is_refused(program, error, says):
    with pytest.raises(error, match=says):
        fad.vjp(program, X)
