"""``stats.norm(m).expect(f)``: derivatives in the parameters, in what the function uses, and in the ends."""

import functools

import numpy as np
import pytest
import scipy.stats as st
from scipy.stats import expon, gamma, norm

import fad

BEFORE = st.gamma(2.0, scale=1.5)
PROGRAMS = {
    "of a frozen one": lambda m: st.norm(m, 1.0).expect(lambda v: v**2),
    "by name": lambda m: norm.expect(lambda v: v**2 * m, loc=m, scale=1 + m),
    "of a shape": lambda m: st.gamma(m, scale=2.0).expect(lambda v: np.exp(-m * v)),
    "of one from before": lambda m: BEFORE.expect(lambda v: np.exp(-m * v)),
    "between ends": lambda m: BEFORE.expect(lambda v: np.exp(-m * v), lb=0.2, ub=m + 1),
    "conditional": lambda m: expon(scale=m).expect(lambda v: v, ub=2.0, conditional=True),
    "of the number itself": lambda m: gamma(m).expect() * m,
    "with args": lambda m: gamma.expect(lambda v: v * m, args=(m,), scale=m),
    "of a support with ends": lambda m: st.uniform(0, m).expect(lambda v: v**3),
    "of a kink": lambda m: st.norm(m, 1).expect(lambda v: max(v, 0)),
    "of counts": lambda m: st.poisson(m).expect(lambda k: k**2),
    "of few counts": lambda m: st.binom(7, m / 3).expect(lambda k: k * m, lb=2, conditional=True),
    "without a parameter": lambda m: st.poisson(3).expect(lambda k: m**k) + st.geom.expect(args=(m / 3,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_expected_values_have_their_derivatives_in_every_transform(name):
    f = PROGRAMS[name]
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    slope = lambda m: (f(m + 1e-4) - f(m - 1e-4)) / 2e-4
    value, gradient = fad.value_and_grad(f)(1.4)
    np.testing.assert_allclose(value, f(1.4), rtol=1e-8)
    close(gradient, slope(1.4))
    close(fad.jvp(f, (1.4,), (1.0,))[1], slope(1.4))
    close(fad.vmap(f)(np.array([1.4, 1.2])), [f(1.4), f(1.2)])
    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for m in (1.4, 1.2):
        close(fast(m), f(m))
        close(steep(m), slope(m))
