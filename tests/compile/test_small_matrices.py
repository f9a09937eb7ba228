"""Linear algebra of small matrices and of stacks of them as native code, alone and within loops."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from natively import compiled, native

import fad

SIZES = (1, 2, 3, 5, 8, 9, 17, 32)
LEADS = ((), (3,), (2, 2))


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def regular(rng, *shape):
    """Return matrices that need their rows exchanged."""
    n = shape[-1]
    return rng.normal(size=shape) + 2 * np.sqrt(n) * np.eye(n)[rng.permutation(n)]


def definite(rng, *shape):
    a = rng.normal(size=shape)
    return a @ a.swapaxes(-1, -2) + np.eye(shape[-1])


FUNCTIONS = {
    "solve": lambda a, b: np.linalg.solve(a, b),
    "inv": lambda a, b: np.linalg.inv(a),
    "det": lambda a, b: np.linalg.det(a),
    "slogdet": lambda a, b: np.linalg.slogdet(a)[0] + np.linalg.slogdet(a)[1],
    "cholesky": lambda a, b: np.linalg.cholesky(a),
    "upper": lambda a, b: np.linalg.cholesky(a, upper=True),
}


def operands(rng, name, lead, n):
    make = definite if name in ("cholesky", "upper") else regular
    return make(rng, *lead, n, n), rng.normal(size=(*lead, n, 2))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("lead", LEADS)
def test_values_are_those_of_numpy(rng, name, lead):
    f = FUNCTIONS[name]
    for n in SIZES:
        a, b = operands(rng, name, lead, n)
        got, wanted = native(f, a, b), f(a, b)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("lead", LEADS)
def test_gradients_are_those_without_jit(rng, name, lead):
    for n in (2, 5, 17) if lead else (1, 2, 4, 5, 9, 17):
        a, b = operands(rng, name, lead, n)
        g = fad.grad(lambda a, b: (FUNCTIONS[name](a, b) ** 2).sum(), argnums=(0, 1))
        wanted = g(a, b)
        for got, x in zip(native(g, a, b), wanted, strict=True):
            np.testing.assert_allclose(got, x, rtol=1e-8, atol=1e-10 * (1 + np.abs(x).max()))


def test_single_precision_is_computed_in_double(rng):
    a = regular(rng, 4, 6, 6).astype(np.float32)
    b = rng.normal(size=(4, 6, 1)).astype(np.float32)
    for f in (FUNCTIONS["solve"], FUNCTIONS["inv"], FUNCTIONS["det"]):
        got, wanted = native(f, a, b), f(a, b)
        assert got.dtype == wanted.dtype == np.float32
        np.testing.assert_allclose(got, wanted, rtol=2e-7, atol=1e-7)


def test_operands_lie_in_any_order_and_are_broadcast(rng):
    a, b = regular(rng, 4, 4), rng.normal(size=(3, 2, 4))
    f = lambda a, b: np.linalg.solve(a.T, b.swapaxes(1, 2)) + np.linalg.inv(a[::-1, ::-1])[:, :2]
    np.testing.assert_allclose(compiled(f, a, b)(a, b), f(a, b), rtol=1e-11)


@pytest.mark.parametrize("n", [2, 3, 9])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_singular_matrices_raise_as_in_numpy(rng, n, lead):
    a, b = regular(rng, *lead, n, n), rng.normal(size=(*lead, n, 1))
    singular = a.copy()
    singular[..., -1, :] = 0.0
    for name in ("solve", "inv"):
        fast = compiled(FUNCTIONS[name], a, b)
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            fast(singular, b)
        np.testing.assert_allclose(fast(a, b), FUNCTIONS[name](a, b), rtol=1e-11)


@pytest.mark.parametrize("n", [2, 9])
def test_indefinite_matrices_raise_as_in_numpy(rng, n):
    a = definite(rng, n, n)
    fast = compiled(np.linalg.cholesky, a)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        fast(a - 2 * np.trace(a) * np.eye(n))


@pytest.mark.parametrize("n", [2, 9])
def test_determinants_of_singular_matrices_are_zero(rng, n):
    a = regular(rng, n, n)
    fast = compiled(lambda a: (np.linalg.det(a), *np.linalg.slogdet(a)), a)
    assert fast(np.zeros((n, n))) == (0.0, 0.0, -np.inf)


def test_the_lower_triangle_is_read_of_a_matrix_for_cholesky(rng):
    a = definite(rng, 5, 5)
    np.testing.assert_allclose(native(np.linalg.cholesky, np.tril(a)), np.linalg.cholesky(a), rtol=1e-12)


def test_triangular_systems_of_scipy_are_native(rng):
    linalg = pytest.importorskip("scipy.linalg")
    for n in (3, 12):
        a, b = regular(rng, n, n), rng.normal(size=(n, 2))
        for options in ({"lower": True}, {}, {"unit_diagonal": True}, {"lower": True, "trans": 1}):
            np.fill_diagonal(a, 3.0)
            f = lambda a, b, options=options: linalg.solve_triangular(a, b, **options)
            np.testing.assert_allclose(native(f, a, b), f(a, b), rtol=1e-10)
            g = fad.grad(lambda a, b, f=f: (f(a, b) ** 2).sum())
            np.testing.assert_allclose(native(g, a, b), g(a, b), rtol=1e-9, atol=1e-12)


# --- loops -----------------------------------------------------------------------------------------------------------

OBSERVED = np.random.default_rng(3).normal(size=(120, 3)).cumsum(0)


def by_inverse(e, S, HP):
    inverse = np.linalg.inv(S)
    return 0.5 * (e @ inverse @ e + np.log(np.linalg.det(S))), (inverse @ HP).T


def by_solving(e, S, HP):
    return 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(S)[1]), np.linalg.solve(S, HP).T


def by_factor(e, S, HP):
    factor = np.linalg.cholesky(S)
    z = np.linalg.solve(factor, e)
    gain = np.linalg.solve(factor.T, np.linalg.solve(factor, HP)).T
    return 0.5 * z @ z + np.log(np.diagonal(factor)).sum(), gain


def filter_of(how, n):
    """Return the negative log-likelihood of a Kalman filter with n states, as anyone would write it."""
    F, H = np.eye(n) * 0.9 + 0.1 * np.eye(n, k=1), np.eye(3, n)

    def likelihood(noise):
        Q, R = np.exp(noise[0]) * np.eye(n), np.exp(noise[1]) * np.eye(3)
        x, P, total = np.zeros(n), np.eye(n), 0.0
        for y in OBSERVED:
            x, P = F @ x, F @ P @ F.T + Q
            e, HP = y - H @ x, H @ P
            found, gain = how(e, HP @ H.T + R, HP)
            x, P, total = x + gain @ e, P - gain @ HP, total + found
        return total

    return likelihood


@pytest.mark.parametrize(
    ("how", "n"), [(by_inverse, 4), (by_inverse, 10), (by_solving, 4), (by_solving, 6), (by_factor, 6), (by_factor, 10)]
)
def test_a_kalman_filter_and_its_gradient_are_native_loops(how, n):
    f, noise = filter_of(how, n), np.array([-1.0, 0.5])
    np.testing.assert_allclose(native(f, noise), f(noise), rtol=1e-10)
    fast = compiled(fad.grad(f), noise)
    assert "captured: 120 steps" in fast.explain()
    assert "calls of NumPy" not in fast.explain()
    step = 1e-5 * np.eye(2)
    differences = [(f(noise + d) - f(noise - d)) / 2e-5 for d in step]
    np.testing.assert_allclose(fast(noise), differences, rtol=1e-6)
    np.testing.assert_allclose(fast(noise), fad.grad(f)(noise), rtol=1e-9)


def test_hessians_go_through_loops_with_small_matrices():
    f, noise = filter_of(by_inverse, 4), np.array([-1.0, 0.5])
    exact = [(fad.grad(f)(noise + d) - fad.grad(f)(noise - d)) / 2e-5 for d in 1e-5 * np.eye(2)]
    np.testing.assert_allclose(fad.jit(fad.hessian(f))(noise), exact, rtol=1e-6)


@pytest.mark.parametrize("n", [2, 4, 5, 7])
def test_determinants_in_loops_have_derivatives_at_singular_matrices(rng, n):
    stack = rng.normal(size=(200, n, n))
    stack[7, 0] = stack[7, 1]
    stack[8] = 0.0

    def weigh(stack):
        total = 0.0
        for k in range(200):
            total = total + (k + 1) * np.linalg.det(stack[k] + 0.0 * total)
        return total

    together = lambda stack: (np.linalg.det(stack) * np.arange(1, 201)).sum()
    wanted = fad.grad(together)(stack)
    fast = compiled(fad.grad(weigh), stack)
    assert "captured: 200 steps" in fast.explain()
    for g in (fad.grad(weigh), fast):
        np.testing.assert_allclose(g(stack), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    direction = rng.normal(size=stack.shape)
    got, wanted = (fad.jvp(fad.grad(f), (stack,), (direction,))[1] for f in (weigh, together))
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_factors_in_loops_are_differentiated_as_outside(rng):
    symmetric = definite(rng, 3, 3)

    def repeat(a):
        total = 0.0
        for k in range(150):
            total = total + (np.linalg.cholesky(a + 0.0 * total) ** 3 * (k + 1)).sum()
        return total

    once = lambda a: (np.linalg.cholesky(a) ** 3).sum() * 150 * 151 / 2
    for a in (symmetric, np.tril(symmetric)):
        fast = compiled(fad.grad(repeat), a)
        assert "captured: 150 steps" in fast.explain()
        np.testing.assert_allclose(fast(a), fad.grad(once)(a), rtol=1e-10)


@pytest.mark.parametrize("shapes", [((5, 6), (6, 7)), ((9, 3), (3, 10)), ((3, 16), (16, 3)), ((2, 5), (5, 5))])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_small_matrices_in_loops_keep_their_values(rng, shapes, dtype):
    x, y = (rng.normal(size=shape).astype(dtype) for shape in shapes)

    def accumulate(x, y):
        total = np.zeros((x.shape[0], y.shape[1]), x.dtype)
        for _ in range(100):
            total = total + x @ y + (y.T @ x.T).T
        return total

    tolerance = 1e-11 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(native(accumulate, x, y), accumulate(x, y), rtol=tolerance)
