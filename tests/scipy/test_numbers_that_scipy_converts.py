"""Where SciPy makes Python numbers of what it is given, ``jit`` records one path, and not one for each number."""

import warnings

import numpy as np
import pytest
from scipy import integrate, interpolate, linalg, optimize, signal

import fad

TIMES = np.linspace(0.0, 2.0, 7)
KNOTS = interpolate.splrep(TIMES, TIMES**3)

PROGRAMS = {
    "quad": lambda a: integrate.quad(lambda x: a * x, 0, a)[0],
    "quad of a constant interval": lambda a: integrate.quad(lambda x: a * x, 0, 1)[0],
    "dblquad": lambda a: integrate.dblquad(lambda y, x: a * x * y, 0, a, 0, 1)[0],
    "nquad": lambda a: integrate.nquad(lambda y, x: a * x * y, [[0, a], [0, 1]])[0],
    "brentq": lambda a: optimize.brentq(lambda x: x * x - a, 0.0, 5.0),
    "brenth": lambda a: optimize.brenth(lambda x: x * x - a, 0.0, 5.0),
    "bisect": lambda a: optimize.bisect(lambda x: x * x - a, 0.0, 5.0),
    "ridder": lambda a: optimize.ridder(lambda x: x * x - a, 0.0, 5.0),
    "fmin": lambda a: optimize.fmin(lambda x: ((x - a) ** 2).sum(), np.zeros(1), disp=False).sum(),
    "splint": lambda a: interpolate.splint(0, a, KNOTS),
    "chirp": lambda a: signal.chirp(TIMES, a, 1.0, 2.0).sum(),
    "cheby1": lambda a: signal.cheby1(2, a, 0.3)[0].sum(),
    "cheby2": lambda a: signal.cheby2(2, 20 * a, 0.3)[0].sum(),
    "iirnotch": lambda a: signal.iirnotch(a / 5, 3.0)[0].sum(),
    "iirpeak": lambda a: signal.iirpeak(a / 5, 3.0)[0].sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_path_serves_all_numbers_and_a_gradient_leaves_it_alone(name):
    f = PROGRAMS[name]
    compiled = fad.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(36):
            found = compiled(1.1 + 0.01 * k)
            if k == 1:
                fad.grad(f)(1.1)
            np.testing.assert_allclose(found, f(1.1 + 0.01 * k), rtol=1e-4)


PYTHONS = {
    "quad": lambda a: integrate.quad(lambda t: a * t, 0.0, 1.0)[0],
    "brentq": lambda a: optimize.brentq(lambda t: t - a, -9.0, 9.0),
    "root_scalar": lambda a: optimize.root_scalar(lambda t: t - a, bracket=(-9.0, 9.0)).root,
    "splint": lambda a: interpolate.splint(0.0, a, interpolate.splrep(np.arange(5.0), np.arange(5.0))),
    "norm": lambda a: linalg.norm(np.ones(2) * a),
}


@pytest.mark.parametrize("name", PYTHONS)
def test_what_scipy_gives_as_pythons_number_widens_no_single_precision(name):
    f, single = PYTHONS[name], np.ones(2, np.float32)
    compiled = fad.jit(lambda a: (f(a), f(a) * single))
    for _ in range(2):
        number, product = compiled(1.5)
        assert type(number) is type(f(1.5)) is float
        assert product.dtype == (f(1.5) * single).dtype == np.float32
    assert fad.vjp(lambda a: f(a) * single, 1.5)[0].dtype == np.float32
