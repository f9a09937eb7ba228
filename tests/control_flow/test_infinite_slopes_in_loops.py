"""What is not used of a loop or a branch has the derivative zero, though a slope in its body be infinite there."""

import numpy as np
import pytest

import fad
from fad import control

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

X = np.array([0.0, 1.0, 4.0, 0.25])
MASK = np.array([0.0, 1.0, 1.0, 2.0])
V = np.cos(np.arange(4.0))


def a_python_loop(x):
    r = 0.1 * x
    for i in range(20):
        r = 0.5 * np.tanh(r) + np.sqrt(x * x + 0.0 * i * r)
    return r


def elements_of_a_python_loop(x):
    r = np.zeros(4)
    for i in range(4):
        r[i] = np.log(1.0 + np.sqrt(x[i]))
    return r


def a_loop_in_a_loop(x):
    r = x
    for _ in range(12):
        for i in range(3):
            r = np.sqrt(r) + 0.1 * i * x
        r = np.where(x > 0, 0.5 * r, 0.0)
    return r


def two_loops(x):
    r = x
    for _ in range(12):
        r = np.sqrt(r * x)
    s = np.zeros(4)
    for i in range(1, 4):
        s[i] = r[i] * np.exp(-x[i])
    return s


def rows_of_a_scan(x):
    step = lambda c, u: (0.5 * c + np.sqrt(u), np.sqrt(u) * c)
    return control.scan(step, 0.3 * np.sqrt(x), np.stack([x, 2 * x, x]))[1][2]


def a_fori_loop(x):
    return control.fori_loop(0, 3, lambda i, c: 1.5 * np.sqrt(c), x)


def as_many_steps_as_a_value_says(x):
    return control.fori_loop(0, (3 * x[1]).astype(int), lambda i, c: 1.5 * np.sqrt(c), x)


def a_while_loop(x):
    return control.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, 1.5 * np.sqrt(s[1])), (0, x))[1]


def a_branch(x):
    return control.cond(x[1] > 0, np.sqrt, lambda x: 2 * x, x)


def a_branch_in_a_loop(x):
    step = lambda i, r: control.switch(i % 2, [lambda r: np.sqrt(r * x), lambda r: 0.9 * r], r)
    return control.fori_loop(0, 4, step, x)


PROGRAMS = [
    a_python_loop, elements_of_a_python_loop, a_loop_in_a_loop, two_loops, rows_of_a_scan, a_fori_loop,
    as_many_steps_as_a_value_says, a_while_loop, a_branch, a_branch_in_a_loop,
]  # fmt: skip
AFTER = {
    "where": lambda x, r: np.sum(np.where(x > 0, r, 0.0) ** 2),
    "slice": lambda x, r: np.sum(r[1:] ** 2),
    "a constant": lambda x, r: np.sum(np.sin(r) * MASK),
    "a comparison": lambda x, r: np.sum(np.exp(-r) * (x > 0)),
    "a product": lambda x, r: MASK @ r,
}
ALONG = {
    "jit of grad": lambda f: fad.jit(fad.grad(f)),
    "grad of jit": lambda f: fad.grad(fad.jit(f)),
    "jit of vmap of grad": lambda f: lambda x: fad.jit(fad.vmap(fad.grad(f)))(np.stack([x, x]))[1],
    "jit of jacfwd": lambda f: fad.jit(fad.jacfwd(f)),
}
SECOND = {
    "jit of jvp of grad": lambda f: fad.jit(lambda x: fad.jvp(fad.grad(f), (x,), (V,))[1]),
    "jit of grad of grad": lambda f: fad.jit(fad.grad(lambda x: V @ fad.grad(f)(x))),
    "jit of grad of jvp": lambda f: fad.jit(fad.grad(lambda x: fad.jvp(f, (x,), (V,))[1])),
}


# each program with two of what may come after it, a few with all; in second order with the first of these
CASES = [(f, name) for k, f in enumerate(PROGRAMS) for name in [*AFTER, *AFTER][k % 5 :: 3][:2]]
IN_SECOND_ORDER = CASES[::2]
CASES += [(f, name) for f in (a_fori_loop, a_while_loop, a_branch) for name in AFTER if (f, name) not in CASES]


def with_safe_values(f, after):
    """Return the program that never meets the infinite slope: it computes with 1 where nothing is used."""
    return lambda x: after(x, np.where(x > 0, f(np.where(x > 0, x, 1.0)), 0.0))


@pytest.mark.parametrize(("f", "name"), CASES, ids=lambda v: getattr(v, "__name__", v))
def test_what_is_not_used_of_a_loop_or_branch_has_no_part_in_the_derivative(f, name):
    after = AFTER[name]
    safe = fad.grad(with_safe_values(f, after))
    wanted, curve = safe(X), fad.jvp(safe, (X,), (V,))[1]
    assert np.isfinite(wanted).all()
    assert np.isfinite(curve).all()
    with fad.config.use(loops="capture"):
        for how, make in {**ALONG, **(SECOND if (f, name) in IN_SECOND_ORDER else {})}.items():
            fast = make(lambda x: after(x, f(x)))
            for _ in range(2):
                np.testing.assert_allclose(
                    fast(X), wanted if how in ALONG else curve, rtol=1e-7, atol=1e-9, err_msg=how
                )


@pytest.mark.parametrize("f", [a_fori_loop, a_while_loop, rows_of_a_scan, a_branch], ids=lambda f: f.__name__)
def test_a_program_for_finite_slopes_is_left_where_one_is_infinite(f):
    slope = lambda x: fad.grad(lambda x: np.sum(f(x)[1:] ** 2))(x)
    fast = fad.jit(slope)
    for x in (X + 1.0, X + 1.0, X, X, X + 2.0):
        wanted = fad.grad(with_safe_values(f, AFTER["slice"]))(x)
        np.testing.assert_allclose(fast(x), wanted, rtol=1e-9)


@pytest.mark.parametrize("f", [a_fori_loop, a_while_loop], ids=lambda f: f.__name__)
def test_a_zero_that_a_loop_computes_still_meets_an_infinite_slope_in_it(f):
    fast = fad.jit(fad.grad(lambda x: np.sum((f(x) ** 8)[:2])))
    for _ in range(2):
        np.testing.assert_array_equal(np.isnan(fast(X)), [True, False, False, False])


def test_gradients_that_a_captured_loop_takes_drop_it_too():
    inner = lambda x: control.fori_loop(0, 2, lambda i, c: np.sqrt(c), x)
    slope = fad.grad(lambda x: np.sum(inner(x)[1:]))
    safe = fad.grad(with_safe_values(inner, lambda x, r: np.sum(r[1:])))

    def descend(x, slope):
        for _ in range(20):
            x = x - 0.01 * slope(x)
        return x

    wanted = descend(X, safe)
    with fad.config.use(loops="capture"):
        fast = fad.jit(lambda x: descend(x, slope))
        for _ in range(2):
            np.testing.assert_allclose(fast(X), wanted, rtol=1e-9)


def root_times_cosine(x, r):
    return np.cos(r) * np.sqrt(x)


INFINITE_TANGENTS = {
    "a loop": lambda x: control.fori_loop(0, 2, lambda i, r: root_times_cosine(x, r), x),
    "a while loop": lambda x: control.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, root_times_cosine(x, s[1])), (0, 1.0 * x)
    )[1],
    "a loop in a loop": lambda x: control.fori_loop(
        0, 2, lambda i, r: control.fori_loop(0, 2, lambda j, r: root_times_cosine(x, r), r), x
    ),
}


@pytest.mark.parametrize("how", SECOND)
@pytest.mark.parametrize("name", INFINITE_TANGENTS)
def test_infinite_tangents_of_a_state_that_is_not_used_have_no_part_in_second_derivatives(name, how):
    f, after = INFINITE_TANGENTS[name], AFTER["slice"]
    wanted = fad.jvp(fad.grad(with_safe_values(f, after)), (X,), (V,))[1]
    np.testing.assert_allclose(SECOND[how](lambda x: after(x, f(x)))(X), wanted, rtol=1e-7, atol=1e-9)


BEFORE = {
    "where": lambda x: np.where(x > 0, x, 0.0),
    "maximum": lambda x: np.maximum(x - 0.5, 0.0),
}


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize(
    "f", [rows_of_a_scan, a_fori_loop, as_many_steps_as_a_value_says, a_while_loop, a_branch, a_branch_in_a_loop],
    ids=lambda f: f.__name__,
)
def test_what_is_chosen_before_a_loop_or_branch_has_no_tangent_in_it_elsewhere(f, name):
    program = lambda x: V @ f(np.where(x > 0, BEFORE[name](x), 0.0) + 0.0) ** 2
    wanted = fad.grad(program)(X)
    assert np.isfinite(wanted).all()
    for fast in (fad.jit(fad.jacfwd(program)), fad.jit(lambda x: fad.linearize(program, x)[1](V))):
        for _ in range(2):
            found = fast(X)
            np.testing.assert_allclose(found, wanted if np.ndim(found) else wanted @ V, rtol=1e-9, atol=1e-12)
