"""What a constant zero multiplies has no part in a derivative, though its slope be infinite; a computed zero has."""

import numpy as np
import pytest

import fad

pytestmark = pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")

POINTS = np.array([[0.0, 0.1], [1.0, 0.3], [0.2, 2.0]])
OTHERS = 1.0 - np.eye(3)


def squares(x):
    d = x[:, None] - x[None, :]
    return np.sum(d * d, axis=-1)


def distances(x):
    return np.sqrt(squares(x))


def pairs(x):
    """Return the distances between different points: the program that has no infinite slope."""
    return np.sqrt(squares(x)[OTHERS > 0])


def inverse_distances_times_a_mask(x):
    return (1 - np.eye(3)) / (distances(x) + np.eye(3))


def a_product_in_place(x):
    r = distances(x)
    r *= 1 - np.eye(3)
    return r


def a_ufunc_with_an_output(x):
    return np.multiply(distances(x), OTHERS, out=np.zeros((3, 3)))


# each program, and what it computes of `pairs`
ELEMENTWISE = {
    "a mask after": (lambda x: np.sum(distances(x) * (1 - np.eye(3))), np.sum),
    "a mask before": (lambda x: np.sum(OTHERS * distances(x) ** 2 * 3.0), lambda r: np.sum(3.0 * r**2)),
    "booleans": (lambda x: np.sum(distances(x) * ~np.eye(3, dtype=bool)), np.sum),
    "integers": (lambda x: np.sum(np.exp(-distances(x)) * (1 - np.eye(3, dtype=int))), lambda r: np.sum(np.exp(-r))),
    "a numerator": (lambda x: np.sum(inverse_distances_times_a_mask(x)), lambda r: np.sum(1 / r)),
    "in place": (lambda x: np.sum(a_product_in_place(x) ** 2), lambda r: np.sum(r**2)),
    "an output": (lambda x: np.sum(a_ufunc_with_an_output(x) ** 3), lambda r: np.sum(r**3)),
    "a broadcast mask": (lambda x: np.sum(distances(x)[:1] * np.array([0.0, 1, 1])), lambda r: np.sum(r[:2])),
    "a number": (lambda x: np.sum(distances(x) * 0.0) + np.sum(squares(x)), lambda r: np.sum(r**2)),
}
PRODUCTS = {
    "einsum": (lambda x: np.einsum("ij,ij->", distances(x), 1 - np.eye(3)), np.sum),
    "einsum to rows": (
        lambda x: np.sum(np.einsum("ij,ij->i", 1 - np.eye(3), distances(x)) ** 2),
        lambda r: np.sum(np.sum(r.reshape(3, 2), axis=1) ** 2),
    ),
    "vdot": (lambda x: np.vdot(distances(x), OTHERS), np.sum),
    "dot": (lambda x: np.dot(distances(x)[0], OTHERS[0]), lambda r: np.sum(r[:2])),
    "a row times a matrix": (lambda x: np.sum(np.array([0.0, 1, 1]) @ distances(x)[:, :1]), lambda r: np.sum(r[:2])),
}


def differentiate(how, f, x):
    if how == "jvp":
        return np.array([fad.jvp(f, (x,), (t,))[1] for t in np.eye(6).reshape(6, 3, 2)]).reshape(3, 2)
    if how == "vmap":
        return fad.vmap(fad.jacfwd(f))(x[None])[0]
    return {"jacfwd": fad.jacfwd, "grad": fad.grad, "jit": lambda f: fad.jit(fad.jacfwd(f))}[how](f)(x)


@pytest.mark.parametrize("how", ["grad", "jvp", "jacfwd", "vmap"])
@pytest.mark.parametrize("name", [*ELEMENTWISE, *PRODUCTS])
def test_what_a_constant_zero_multiplies_has_no_part_in_the_derivative(name, how):
    f, of_pairs = {**ELEMENTWISE, **PRODUCTS}[name]
    found = differentiate(how, f, POINTS)
    np.testing.assert_allclose(found, fad.grad(lambda x: of_pairs(pairs(x)))(POINTS), rtol=1e-12)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_compiled_product_of_elements_drops_what_a_constant_zero_multiplies(name):
    f, of_pairs = ELEMENTWISE[name]
    found = differentiate("jit", f, POINTS)
    np.testing.assert_allclose(found, fad.grad(lambda x: of_pairs(pairs(x)))(POINTS), rtol=1e-12)


SECOND = {
    "forward over reverse": lambda f: fad.jacfwd(fad.grad(f)),
    "forward over forward": lambda f: fad.jacfwd(fad.jacfwd(f)),
    "reverse over reverse": lambda f: fad.jacrev(fad.grad(f)),
    "reverse over forward": lambda f: fad.jacrev(fad.jacfwd(f)),
}


@pytest.mark.parametrize("order", SECOND)
@pytest.mark.parametrize("name", [*ELEMENTWISE, *PRODUCTS])
def test_second_derivatives_drop_it_too(name, order):
    f, of_pairs = {**ELEMENTWISE, **PRODUCTS}[name]
    wanted = fad.hessian(lambda x: of_pairs(pairs(x)))(POINTS)
    np.testing.assert_allclose(SECOND[order](f)(POINTS), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_forward_mode_drops_it_in_every_dtype(dtype):
    x, mask = np.array([0.0, 4.0], dtype), np.array([0, 1], dtype)
    for f in (lambda x: np.sqrt(x) * mask, lambda x: mask / (np.sqrt(x) + (1 - mask))):
        y, t = fad.jvp(f, (x,), (np.ones_like(x),))
        assert t.dtype == y.dtype == dtype
        np.testing.assert_allclose(t[0], 0.0)
        assert np.isfinite(t[1])
        assert t[1] != 0


COMPUTED = {
    "a square": lambda x: np.sqrt(x) ** 2,
    "a product with itself": lambda x: np.sqrt(x) * np.sqrt(x),
    "an inverse of an inverse": lambda x: 1.0 / (1.0 / x),
    "a zero that depends on x": lambda x: np.sqrt(x) * (x * np.array([0.0, 1.0])),
}


@pytest.mark.parametrize("transform", [fad.jacfwd, fad.jacrev], ids=["jacfwd", "jacrev"])
@pytest.mark.parametrize("name", COMPUTED)
def test_a_computed_zero_drops_nothing(name, transform):
    assert np.isnan(transform(COMPUTED[name])(np.array([0.0, 1.0]))[0, 0])


def test_an_infinite_tangent_reaches_what_a_constant_other_than_zero_multiplies():
    x, a = np.array([0.0, 4.0]), np.array([[2.0, 1.0], [0.0, 1.0]])
    _, t = fad.jvp(lambda x: a @ np.sqrt(x), (x,), (np.ones(2),))
    np.testing.assert_array_equal(t, [np.inf, 0.25])
    _, t = fad.jvp(lambda x: np.sqrt(x) * a, (x,), (np.ones(2),))
    np.testing.assert_array_equal(t, [[np.inf, 0.25], [0.0, 0.25]])


MASKS = {
    "a comparison": lambda x: (x > 0).astype(float),
    "signs": np.sign,
    "steps": lambda x: np.heaviside(x, 0.0),
    "counts": lambda x: np.floor(np.minimum(x, 1.0)),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_numbers_that_the_function_makes_count_in_a_batch_too(name):
    mask = MASKS[name]
    x = np.array([0.0, 1.0, 4.0])
    wanted, curve = np.array([0.0, 1.0, 0.5]), np.diag([0.0, -0.5, -0.0625])
    for f in (lambda x: 2.0 * np.sum(np.sqrt(x) * mask(x)), lambda x: 2.0 * np.dot(mask(x), np.sqrt(x))):
        np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.stack([x, x]))[1], wanted)
        np.testing.assert_allclose(fad.vmap(fad.jacfwd(f))(np.stack([x, x]))[1], wanted)
        np.testing.assert_allclose(fad.vmap(fad.hessian(f))(np.stack([x, x]))[0], curve)


FINITE_AT_FIRST = {
    "a numerator": lambda x: np.zeros(3) / (x**1.5 + 1),
    "a number": lambda x: 0.0 / (1 + x**1.5),
    "a factor": lambda x: x**1.5 * np.zeros(3),
}


@pytest.mark.parametrize("order", SECOND)
@pytest.mark.parametrize("name", FINITE_AT_FIRST)
def test_second_derivatives_that_alone_are_infinite_are_dropped_too(name, order):
    f = lambda x: np.sum(FINITE_AT_FIRST[name](x))
    np.testing.assert_array_equal(SECOND[order](f)(np.array([0.0, 1.0, 4.0])), np.zeros((3, 3)))


JITTED = {
    "jit of grad": lambda f: fad.jit(fad.grad(f)),
    "grad of jit": lambda f: fad.grad(fad.jit(f)),
    "jit of jacfwd": lambda f: fad.jit(fad.jacfwd(f)),
    "jit of vmap of grad": lambda f: lambda x: fad.jit(fad.vmap(fad.grad(f)))(np.stack([x, x]))[1],
}


@pytest.mark.parametrize("how", JITTED)
@pytest.mark.parametrize("name", MASKS)
def test_masks_of_numbers_that_a_compiled_function_makes_count_too(name, how):
    mask = MASKS[name]
    x = np.array([0.0, 1.0, 4.0])
    for f, wanted in (
        (lambda x: 2.0 * np.sum(np.sqrt(x) * mask(x)), [0.0, 1.0, 0.5]),
        (lambda x: np.sum(mask(x) / (1.0 + np.sqrt(x))), [0.0, -0.125, -1 / 36]),
    ):
        slope = JITTED[how](f)
        for _ in range(3):
            np.testing.assert_allclose(slope(x), wanted)
        curve = fad.jit(fad.hessian(f))
        for _ in range(3):
            np.testing.assert_allclose(curve(x), fad.hessian(f)(x), rtol=1e-12, atol=1e-15)


def roots_times(x, m):
    return np.sum(np.sqrt(x) * m * 2.0)


def over_roots(x, m):
    return np.sum(m / (1.0 + np.sqrt(x)))


def roots_in_a_loop(x, m):
    s = 0.0
    for i in range(len(x)):
        s = s + m[i] * np.sqrt(x[i])
    return s


def roots_of_arrays_in_a_loop(x, m):
    s = 0.0
    for _ in range(30):
        s = s + np.sum(np.sqrt(x) * m)
    return s


WITH_MASKS = [roots_times, over_roots, roots_in_a_loop, roots_of_arrays_in_a_loop]


@pytest.mark.parametrize("f", WITH_MASKS, ids=lambda f: f.__name__)
def test_masks_that_a_compiled_function_is_given_count_too(f):
    x = np.concatenate([np.zeros(2), np.linspace(0.5, 2.0, 28)])
    m = np.concatenate([[0.0, 0.0, 0.0], np.linspace(-1.0, 1.0, 27)])
    with fad.config.use(loops="capture"):
        for transform in (fad.grad, fad.jacfwd, fad.hessian):
            fast, wanted = fad.jit(transform(f)), transform(f)(x, m)
            assert np.isfinite(wanted).all()
            for _ in range(3):
                np.testing.assert_allclose(fast(x, m), wanted, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(fad.grad(lambda x: fad.jit(f)(x, m))(x), fad.grad(f)(x, m), rtol=1e-12)


BY_FACTORS = {"forward": fad.jacfwd, "reverse": fad.jacrev}


@pytest.mark.parametrize("by", BY_FACTORS)
@pytest.mark.parametrize("f", WITH_MASKS, ids=lambda f: f.__name__)
def test_a_compiled_derivative_has_its_derivative_by_a_factor_that_is_zero(f, by):
    x, m = np.array([1.0, 4.0, 0.25]), np.array([0.0, 1.0, 0.0])
    with fad.config.use(loops="capture"):
        for slope in (fad.grad(f), fad.jacfwd(f)):
            wanted = BY_FACTORS[by](lambda m, slope=slope: slope(x, m))(m)
            assert np.all(np.diag(wanted) != 0)
            fast = fad.jit(slope)
            for jitted in (fast, lambda x, m, fast=fast: 1.0 * fast(x, m)):
                found = BY_FACTORS[by](lambda m, jitted=jitted: jitted(x, m))
                np.testing.assert_allclose(found(m), wanted, rtol=1e-12)
                np.testing.assert_allclose(fad.jit(found)(m), wanted, rtol=1e-12)
                np.testing.assert_allclose(fad.vmap(found)(np.stack([m, m]))[1], wanted, rtol=1e-12)


def test_an_infinite_slope_reaches_a_factor_of_a_compiled_derivative():
    x, m = np.array([0.0, 4.0]), np.array([0.0, 0.0])
    slope = fad.jit(fad.grad(roots_times))
    np.testing.assert_array_equal(np.diag(fad.jacrev(lambda m: slope(x, m))(m)), [np.inf, 0.5])


def test_a_watched_sweep_drops_what_a_given_mask_does_too():
    x, m = np.array([0.0, 4.0]), np.array([0.0, 1.0])
    with fad.debug.nans():
        np.testing.assert_array_equal(fad.jit(fad.grad(roots_times))(x, m), [0.0, 0.5])


def curve(f):
    """Return second derivatives along curves, each through all coefficients at once."""
    return lambda x, t: fad.jet(f, (x,), ([t, np.zeros_like(t)],))[1]


@pytest.mark.parametrize("name", [*ELEMENTWISE, *PRODUCTS])
def test_linearize_and_taylor_mode_drop_it_too(name):
    f, of_pairs = {**ELEMENTWISE, **PRODUCTS}[name]
    t = np.cos(np.arange(6.0)).reshape(3, 2)
    wanted = curve(lambda x: of_pairs(pairs(x)))(POINTS, t)
    np.testing.assert_allclose(fad.linearize(f, POINTS)[1](t), wanted[0], rtol=1e-12)
    np.testing.assert_allclose(curve(f)(POINTS, t), wanted, rtol=1e-9)
    if name in ELEMENTWISE:
        np.testing.assert_allclose(fad.jit(curve(f))(POINTS, t), wanted, rtol=1e-9)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_computed_zero_drops_nothing_in_taylor_mode(name):
    assert np.isnan(curve(COMPUTED[name])(np.array([0.0, 1.0]), np.ones(2))[0][0])


def roots_of_roots(x):
    for _ in range(12):
        x = np.sqrt(x)
    return x


def roots_while(x):
    i = 0
    while i < 3:
        x = np.sqrt(x)
        i += 1
    return x


def a_root_or_not(x):
    return fad.cond(x[1] > 0, np.sqrt, lambda x: 2.0 * x, x)


@pytest.mark.parametrize("f", [roots_of_roots, roots_while, a_root_or_not], ids=lambda f: f.__name__)
def test_forward_mode_drops_what_comes_of_a_captured_loop_or_branch(f):
    x, m = np.array([0.0, 1.0, 4.0]), np.array([0.0, 1.0, 0.5])
    g = lambda x, m: np.sum(f(x) * m)
    wanted = fad.jacfwd(g)(x, m)
    assert np.isfinite(wanted).all()
    with fad.config.use(loops="capture"):
        for fast in (fad.jit(fad.jacfwd(g)), fad.jit(lambda x, m: fad.linearize(lambda x: g(x, m), x)[1](x))):
            for _ in range(3):
                found = fast(x, m)
                np.testing.assert_allclose(found, wanted if np.ndim(found) else wanted @ x, rtol=1e-12)


def in_a_scan(x, m):
    return fad.scan(lambda c, u: (c + u[0] * u[1], None), 0.0, (np.sqrt(x), m))[0]


@pytest.mark.parametrize("how", ["grad", "jit of grad", "jacrev of grad"])
def test_rows_of_a_scan_that_a_zero_multiplies_have_no_part(how):
    x, m = np.array([0.0, 1.0, 4.0]), np.array([0.0, 1.0, 0.5])
    if how == "jacrev of grad":
        curve = fad.jacrev(fad.grad(in_a_scan))(x, m)
        np.testing.assert_allclose(curve, np.diag([0.0, -0.25, -1 / 64]), atol=1e-15)
        return
    slope = fad.grad(in_a_scan) if how == "grad" else fad.jit(fad.grad(in_a_scan))
    for _ in range(3):
        np.testing.assert_allclose(slope(x, m), [0.0, 0.5, 0.125])


MASKED_PRODUCTS = {
    "dot": lambda x, m: np.dot(np.sqrt(x), m),
    "matmul": lambda x, m: np.sum((np.outer(m, m) @ np.sqrt(x)[:, None]) ** 2),
    "einsum": lambda x, m: np.einsum("i,i->", m, np.sqrt(x)),
    "vdot": lambda x, m: np.exp(np.vdot(m, np.sqrt(x))),
}


@pytest.mark.parametrize("how", ["jit of grad", "grad of jit", "jit of vmap of grad"])
@pytest.mark.parametrize("product", MASKED_PRODUCTS)
@pytest.mark.parametrize("name", MASKS)
def test_products_with_masks_that_a_compiled_function_makes_drop_it_in_reverse_mode(name, product, how):
    x = np.array([0.0, 1.0, 4.0])
    f = lambda x: MASKED_PRODUCTS[product](x, MASKS[name](x))
    slope, wanted = JITTED[how](f), fad.grad(f)(x)
    assert np.isfinite(wanted).all()
    for _ in range(3):
        np.testing.assert_allclose(slope(x), wanted, rtol=1e-12)


def root_of_a_product(x, m):
    return np.exp(-np.sqrt(x) @ m)


def product_of_a_matrix(x, m):
    return np.sum(np.tanh(np.diag(m) @ np.sqrt(x)[:, None]) ** 2)


def sum_over_three(x, m):
    return np.einsum("i,i,i->", np.sqrt(x), m, x + 1.0)


def products_in_a_loop(x, m):
    return np.sum(fad.fori_loop(0, 3, lambda i, c: 0.5 * c + np.sqrt(x * c) @ np.outer(m, m), x)[1:])


def zeros_for_the_next_step(x, m):
    return np.sum(fad.fori_loop(0, 3, lambda i, c: np.sqrt(np.where(m > 0, c * x, 0.0)), x))


def a_product_in_a_branch(x, m):
    return fad.cond(x[1] > 0, lambda x: np.sqrt(x) @ m, np.sum, x)


def signs_in_a_product(x, m):
    return np.sqrt(x) @ (np.sign(x) * m)


COMPILED_ALONG = {
    "grad": lambda f: fad.jit(fad.grad(f)),
    "grad of jit": lambda f: lambda x, m: fad.grad(fad.jit(f))(x, m),
    "jacfwd": lambda f: fad.jit(fad.jacfwd(f)),
    "vmap of grad": lambda f: lambda x, m: fad.jit(fad.vmap(fad.grad(f)))(np.stack([x, x]), np.stack([m, m]))[1],
}
COMPILED_SECOND = {name: lambda f, along=along: fad.jit(along(f)) for name, along in SECOND.items()}


@pytest.mark.parametrize(
    "f",
    [
        root_of_a_product, product_of_a_matrix, sum_over_three, products_in_a_loop, zeros_for_the_next_step,
        a_product_in_a_branch, signs_in_a_product,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_products_with_masks_that_a_compiled_function_is_given_drop_what_meets_their_zeros(f):
    x, m = np.array([0.0, 1.0, 4.0, 0.25]), np.array([0.0, 1.0, 1.0, 2.0])
    safe = fad.grad(lambda x: f(np.where(x > 0, x, 1.0), m))
    for name, along in COMPILED_ALONG.items():
        fast = along(f)
        for _ in range(2):
            np.testing.assert_allclose(fast(x, m), safe(x), rtol=1e-9, atol=1e-12, err_msg=name)
    curve = fad.jacfwd(safe)(x)
    for name, along in COMPILED_SECOND.items():
        np.testing.assert_allclose(along(f)(x, m), curve, rtol=1e-8, atol=1e-10, err_msg=name)


def test_a_program_for_products_with_finite_slopes_is_left_where_one_is_infinite():
    x, m = np.array([0.0, 1.0, 4.0]), np.array([0.0, 1.0, 2.0])
    for fast in (fad.jit(fad.grad(root_of_a_product)), fad.jit(fad.jacfwd(root_of_a_product))):
        for point in (x + 1.0, x + 1.0, x, x, x + 2.0):
            wanted = fad.grad(root_of_a_product)(point, m)
            assert np.isfinite(wanted).all()
            np.testing.assert_allclose(fast(point, m), wanted, rtol=1e-12)
