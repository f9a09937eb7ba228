"""A cotangent that is zero absorbs an infinite partial where masks or index arrays say what is written."""

import cmath
import math

import numpy as np
import pytest

import fad

X = np.array([0.3, 1.1, -0.4, 2.0])
W = np.cos(np.arange(16.0)).reshape(4, 4)


def squares(x):
    d = x[:, None] - x[None, :]
    return d * d


def inverse_distances_by_mask(x):
    r = np.sqrt(squares(x))
    r[r > 0] = 1.0 / r[r > 0]
    return np.sum(np.triu(r, 1) * W)


def a_weight_of_zero_instead_of_a_triangle(x):
    r = np.sqrt(squares(x))
    r[r > 0] = 1.0 / r[r > 0]
    return np.sum(r * W * (1 - np.eye(4)))


def an_element_is_read_before_the_write(x):
    r = np.sqrt(squares(x))
    s = r[0, 1] + np.sum(r[2, :2])
    r[r > 0] = 1.0 / r[r > 0]
    return np.sum(np.triu(r, 1) * W) + s


def infinities_are_replaced_later(x):
    r = 1.0 / np.sqrt(squares(x))
    r[0, 1] *= 2
    r[np.isinf(r)] = 0.0
    return np.sum(r * W)


def elements_of_the_diagonal_are_written(x):
    r = np.sqrt(squares(x))
    for i in range(4):
        r[i, i] = 1.0
    return np.sum(W / r)


def a_row_is_replaced_where_it_meets_itself(x):
    r = np.sqrt(np.abs(x - x[0]))
    r[1:] *= 2.0
    r[:1] = x[1]
    return np.sum(r * W[0])


def a_part_of_a_buffer_is_written_over(x):
    b = np.zeros(6)
    b[:4] = np.sqrt(np.abs(x - x[2]))
    b[2] = x[1] * x[2]
    return np.sum(b[:4] * W[1])


def the_diagonal_is_filled(x):
    r = np.sqrt(squares(x))
    np.fill_diagonal(r, 1.0)
    return np.sum(W / r)


def indices_name_the_diagonal(x):
    r = np.sqrt(squares(x))
    r[0, 1] *= 2
    r[np.arange(4), np.arange(4)] = 1.0
    return np.sum(W / r)


def a_filled_array_is_cut(x):
    r = np.zeros((2, 4, 4))
    r[0] = np.sqrt(squares(x))
    r[:, r[0] == 0] = 1.0
    return np.sum(W / r[0])


def all_is_chosen_again(x):
    r = np.sqrt(squares(x))
    r[:] = np.where(r == 0, 1.0, r)
    return np.sum(W / r)


def what_is_out_of_range_is_cut(x):
    s = x * 1.0
    s[s > 1] = 1
    s[s < 0] = 0
    return np.sum(np.arccos(s) - s * np.sqrt(1 - s**2) + np.sqrt(s))


def a_view_is_cut(x):
    s = np.stack([x, 2 * x])
    rows = s.T
    rows[rows > 1] = 1
    s[:, 2] = 0.5
    s[0, 0] *= 2
    return np.sum(np.arccos(s) ** 2)


def indices_name_what_is_cut(x):
    s = np.abs(x)
    s[[1, 3]] = 1.0
    return np.sum(np.arccos(s) * W[0])


CUTS = [what_is_out_of_range_is_cut, a_view_is_cut, indices_name_what_is_cut]
PROGRAMS = [
    *CUTS,
    inverse_distances_by_mask,
    a_weight_of_zero_instead_of_a_triangle,
    an_element_is_read_before_the_write,
    infinities_are_replaced_later,
    elements_of_the_diagonal_are_written,
    a_row_is_replaced_where_it_meets_itself,
    a_part_of_a_buffer_is_written_over,
    the_diagonal_is_filled,
    indices_name_the_diagonal,
    a_filled_array_is_cut,
    all_is_chosen_again,
]
EVERY = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")


def slopes(f, x, h=1e-4):
    """Return differences of a plain function, extrapolated, along every coordinate."""

    def central(e, h):
        return (f(x + h * e) - f(x - h * e)) / (2 * h)

    return np.stack([(4 * central(e, h / 2) - central(e, h)) / 3 for e in np.eye(4)])


@EVERY
def test_the_gradient_is_finite_and_right(f):
    wanted = slopes(f, X)
    np.testing.assert_allclose(fad.grad(f)(X), wanted, rtol=1e-8)
    pullback = fad.vjp(f, X)[1]
    for _ in range(2):
        np.testing.assert_allclose(pullback(1.0)[0], wanted, rtol=1e-8)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.stack([X, X]))[1], wanted, rtol=1e-8)
    compiled = fad.jit(fad.grad(f))
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), wanted, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_numbers_that_are_written_over_take_no_part_whatever_their_dtype(dtype):
    def f(x):
        b = np.zeros(3, x.dtype)
        b[0] = np.sqrt(x[0])
        b[1:] = np.sqrt(x[:2])
        b[0] = x[1]
        b[1] = x[2]
        return np.sum(b * b).real

    x = np.array([0.0, 1.25, 0.75], dtype)
    g = fad.grad(f)
    for found in (g(x), fad.jit(g)(x), fad.vmap(g)(np.stack([x, x]))[1]):
        np.testing.assert_allclose(found, [0.0, 3.5, 1.5], rtol=1e-6)


def test_the_gradient_is_finite_and_right_in_a_recorded_branch():
    def f(x):
        r = np.sqrt(squares(x))
        r[r == 0] = 1.0
        return np.sum(W / r)

    compiled = fad.jit(fad.grad(lambda x: fad.cond(x[0] > 0, f, np.sum, x)))
    np.testing.assert_allclose(compiled(X), slopes(f, X), rtol=1e-8)


@EVERY
def test_the_second_derivative_is_finite_and_right(f):
    wanted = slopes(fad.grad(f), X)
    np.testing.assert_allclose(fad.hessian(f)(X), wanted, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(fad.jacrev(fad.grad(f))(X), wanted, rtol=1e-7, atol=1e-8)
    columns = [fad.jvp(fad.grad(f), (X,), (e,))[1] for e in np.eye(4)]
    np.testing.assert_allclose(np.stack(columns), wanted, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("f", CUTS, ids=lambda f: f.__name__)
def test_forward_mode_takes_constants_that_were_written_for_constants(f):
    wanted, second = slopes(f, X), slopes(fad.grad(f), X)
    np.testing.assert_allclose([fad.jvp(f, (X,), (e,))[1] for e in np.eye(4)], wanted, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fad.jacfwd(f)(X), wanted, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fad.jit(fad.jacfwd(f))(X), wanted, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fad.jacfwd(fad.jacfwd(f))(X), second, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(fad.jacrev(fad.jacfwd(f))(X), second, rtol=1e-7, atol=1e-8)


def square_of_a_root(x):
    return np.sum(np.sqrt(x) ** 2)


def square_of_a_root_in_an_array_that_is_written(x):
    r = np.sqrt(x)
    r[-1] = 2.0
    return np.sum(r**2)


def square_of_a_root_in_an_array_that_is_written_at_places(x):
    r = np.sqrt(x)
    r[[-1]] = 2.0
    return np.sum(r**2)


def square_of_a_root_in_a_buffer(x):
    b = np.zeros(5)
    b[:4] = np.sqrt(x)
    b[3:] = 1.0
    return np.sum(b * b)


def square_of_some_roots(x):
    return np.sum(np.sqrt(x)[:3] ** 2)


@pytest.mark.parametrize(
    "f",
    [
        square_of_a_root, square_of_a_root_in_an_array_that_is_written, square_of_a_root_in_a_buffer,
        square_of_a_root_in_an_array_that_is_written_at_places, square_of_some_roots,
    ],
)  # fmt: skip
def test_a_cotangent_that_is_zero_by_calculation_absorbs_nothing(f):
    x = np.array([0.0, 1.0, 4.0, 9.0])  # the derivative at 0 is 1
    g = fad.grad(f)
    with np.errstate(all="ignore"):
        for found in (g(x), fad.jit(g)(x), fad.vmap(g)(np.stack([x, x]))[1]):
            assert np.isnan(found[0])
            np.testing.assert_allclose(found[1:3], 1.0)


KEPT = np.array([True, False, True, True])


def write_over_first(r):
    b = r.copy()
    b[0] = 1.0
    return b


def a_buffer_with_a_mask_on_a_row(x):
    b = np.zeros((2, 4))
    b[0] = np.sqrt(np.abs(x - x[0]))
    b[1] = x
    b[0][~KEPT] = 3.0
    b[0][0] = 2.0
    return np.sum(b**2) + np.sum(b[0] * b[1])


def shift_rows_through_views(x):
    b = np.sqrt(x - x[0]) * np.ones((3, 1)) * W[0]
    b[:, 0] = 0.0
    c = np.zeros((3, 4))
    c[1] = np.sqrt(x - x[0])
    c[1][0] = 0.0
    for i in range(1, 3):
        b[i][1:] = c[1][:-1] + b[i][1:]
    return np.sum(b)


TWICE = np.array([2, 2, 1])


def write_at_places(r):
    b = np.zeros(4)
    b[TWICE] = r
    return b


def write_into_rows(r):
    b = np.zeros((2, 4))
    b[1] = r
    b[0][1:] = b[1][1:]
    b[1][0] = 1.0
    return b


def elements_in_a_loop(x):
    r = np.sqrt(x - x[0])
    total = 0.0
    for i in range(1, 4):
        total = total + r[i] * x[i]
    return total


def halves(x):
    first, second = np.split(np.sqrt(np.abs(x - x[0])), 2)
    return first[1] + np.sum(second)


INFINITE, MISSING = np.array([np.inf, 1.0, 2.0, 3.0]), np.array([2.0, np.nan, 1.0, 0.5])
PLACES, WEIGHTS = np.array([0, 1, 1, 3]), np.array([0.0, 1.0, 2.0, 3.0])
UNREAD = {  # each program beside one that never takes the root of zero
    "infinite factor": (lambda x: np.sum((x * INFINITE)[1:] ** 2), lambda x: np.sum((x[1:] * INFINITE[1:]) ** 2)),
    "missing numbers": (
        lambda x: (x * MISSING)[0] + np.sum((MISSING * x)[2:]),
        lambda x: x[0] * 2.0 + np.sum(MISSING[2:] * x[2:]),
    ),
    "slice": (lambda x: np.sum(np.where(x[:3] > 0, np.sqrt(x)[:3], 0.0)), lambda x: np.sum(np.sqrt(x[1:3]))),
    "rest": (lambda x: np.sum(np.log(1 + np.sqrt(x - x[0])[1:])), lambda x: np.sum(np.log(1 + np.sqrt(x[1:] - x[0])))),
    "loop": (elements_in_a_loop, lambda x: np.sum(np.sqrt(x[1:] - x[0]) * x[1:])),
    "reversed": (
        lambda x: np.sum(np.where(x[::-1] > 0, np.sqrt(x)[::-1], 0.0) * W[0]),
        lambda x: np.sum(np.sqrt(x[:0:-1]) * W[0, :-1]),
    ),
    "gathered": (
        lambda x: np.sum(np.where(x[PLACES] > 0, np.sqrt(x)[PLACES], 0.0)),
        lambda x: 2 * np.sqrt(x[1]) + np.sqrt(x[3]),
    ),
    "halves": (halves, lambda x: np.sum(np.sqrt(x[1:] - x[0]))),
    "numbers": (
        lambda x: sum(np.where(a > 0, r, 0.0) for a, r in zip(x, np.sqrt(x), strict=True)),
        lambda x: np.sum(np.sqrt(x[1:])),
    ),
    "row": (
        a_buffer_with_a_mask_on_a_row,
        lambda x: np.sum(x**2) + np.sum(x[2:] - x[0] + np.sqrt(x[2:] - x[0]) * x[2:]) + 2.0 * x[0] + 3.0 * x[1] + 13.0,
    ),
    "zeros and ones": (
        lambda x: np.sum(np.sqrt(squares(x)) * (1 - np.eye(4))),
        lambda x: 2 * sum(x[i] - x[j] for i in range(4) for j in range(i)),
    ),
    "running maximum": (
        lambda x: np.maximum.accumulate(np.sqrt(x[PLACES] - x[0])[::-1]) @ WEIGHTS,
        lambda x: np.sum(WEIGHTS) * np.sqrt(x[3] - x[0]),
    ),
    "comparison": (lambda x: np.sum(np.sqrt(x) * (x > 0)), lambda x: np.sum(np.sqrt(x[1:]))),
    "whole numbers": (
        lambda x: np.sum(np.floor(np.abs(x)).astype(int) * np.sqrt(np.abs(x - x[0]))),
        lambda x: np.floor(x[1:]) @ np.sqrt(x[1:] - x[0]),
    ),
    "product": (lambda x: WEIGHTS @ np.sqrt(np.abs(x - x[0])), lambda x: WEIGHTS[1:] @ np.sqrt(x[1:] - x[0])),
    "matrix": (
        lambda x: np.sum(np.diag(WEIGHTS) @ np.sqrt(np.abs(x - x[0]))[:, None]),
        lambda x: WEIGHTS[1:] @ np.sqrt(x[1:] - x[0]),
    ),
    "last of several": (
        lambda x: np.sum(write_at_places(np.sqrt(x - x[0])[:3])),
        lambda x: np.sum(np.sqrt(x[1:3] - x[0])),
    ),
    "last of several in a copy": (
        lambda x: np.sum(fad.numpy.at(np.zeros(4))[TWICE].set(np.sqrt(x - x[0])[:3])),
        lambda x: np.sum(np.sqrt(x[1:3] - x[0])),
    ),
    "views": (
        shift_rows_through_views,
        lambda x: np.sum(np.sqrt(x[1:] - x[0]) * W[0, 1:]) * 3 + np.sum(np.sqrt(x[1:-1] - x[0])) * 2,
    ),
    "sorted views": (
        lambda x: np.sum(write_into_rows(np.sort(np.sqrt(x - x[0])))),
        lambda x: np.sum(np.sqrt(x[1:] - x[0])) * 2 + 1.0,
    ),
    "checkpoint after": (
        lambda x: np.sum(fad.checkpoint(write_over_first)(np.sqrt(x - x[0]))),
        lambda x: np.sum(np.sqrt(x[1:] - x[0])) + 1.0,
    ),
    "weights in a checkpoint": (
        lambda x: np.sum(fad.checkpoint(lambda r: r * WEIGHTS)(np.sqrt(x - x[0]))),
        lambda x: WEIGHTS[1:] @ np.sqrt(x[1:] - x[0]),
    ),
    "checkpoint before": (
        lambda x: np.sum(write_over_first(fad.checkpoint(lambda x: np.sqrt(x - x[0]))(x))),
        lambda x: np.sum(np.sqrt(x[1:] - x[0])) + 1.0,
    ),
    "checkpoint in a checkpoint": (
        lambda x: np.sum(fad.checkpoint(lambda x: write_over_first(fad.checkpoint(np.sqrt)(x - x[0])))(x)),
        lambda x: np.sum(np.sqrt(x[1:] - x[0])) + 1.0,
    ),
    "einsum": (
        lambda x: np.einsum("ij,ij->", np.sqrt(squares(x)), 1 - np.eye(4)),
        lambda x: 2 * sum(x[i] - x[j] for i in range(4) for j in range(i)),
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_nobody_reads_takes_no_part_in_an_infinite_slope(name):
    f, twin = UNREAD[name]
    x = np.array([0.0, 1.0, 4.0, 9.0])
    g, two = fad.grad(f), np.stack([x, x + 1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(f(x), twin(x))
        wanted = fad.grad(twin)(x)
        for found in (
            g(x), fad.jit(g)(x), fad.grad(fad.jit(f))(x), fad.vmap(g)(two)[0], fad.jvp(g, (x,), (x,))[0],
            fad.grad(lambda p: np.sum(fad.vmap(f)(p)))(two)[0],
        ):  # fmt: skip
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_what_nobody_reads_takes_no_part_whatever_its_dtype(dtype):
    x = np.array([0.0, 1.0, 4.0, 9.0], dtype)
    g = fad.grad(lambda x: np.sum(np.sqrt(x)[1:] ** 3).real)
    with np.errstate(all="ignore"):
        for found in (g(x), fad.jit(g)(x), fad.vmap(g)(x[None])[0]):
            np.testing.assert_allclose(found, 1.5 * np.sqrt(x), rtol=1e-6)
            assert found.dtype == dtype


def others_by_a_write(x):
    total = 0.0
    for i in range(len(x)):
        r = np.sqrt((x - x[i]) ** 2)
        r[i] = 1.0
        total = total + np.sum(1.0 / r)
    return total


def others_by_a_slice(x):
    total = 0.0
    for i in range(len(x)):
        r = np.sqrt(np.abs(x - x[0] * np.cos(0.0 * i)))
        total = total + np.sum(r[1:]) * x[i]
    return total


@pytest.mark.parametrize("f", [others_by_a_write, others_by_a_slice])
def test_what_a_step_of_a_captured_loop_writes_over_or_leaves_out_takes_no_part(f):
    x = np.linspace(0.0, 3.0, 200) ** 2
    compiled = fad.jit(fad.grad(f))
    with np.errstate(all="ignore"):
        wanted = fad.grad(f)(x)
        assert np.isfinite(wanted).all()
        for _ in range(2):
            np.testing.assert_allclose(compiled(x), wanted, rtol=1e-9, atol=1e-9)
    assert "captured: 200 steps" in compiled.explain()


STEEP_FUNCTIONS = {
    "sqrt": (np.sqrt, 0.0), "cbrt": (np.cbrt, 0.0), "log": (np.log, 0.0), "log2": (np.log2, 0.0),
    "log10": (np.log10, 0.0), "log1p": (np.log1p, -1.0), "arcsin": (np.arcsin, 1.0), "arccos": (np.arccos, 1.0),
    "arctanh": (np.arctanh, 1.0), "arccosh": (np.arccosh, 1.0), "reciprocal": (np.reciprocal, 0.0),
    "divide": (lambda x: 2.0 / x, 0.0), "ratio": (lambda x: (x + 1.0) / x, 0.0), "power": (lambda x: x**0.3, 0.0),
    "powers": (lambda x: x**x, 0.0), "negative power": (lambda x: x**-2, 0.0), "negative root": (np.sqrt, -1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", STEEP_FUNCTIONS)
def test_every_function_with_infinite_slopes_is_looked_at(name):
    function, at = STEEP_FUNCTIONS[name]
    inside = 2.0 if name == "arccosh" else 0.5
    x, rest = np.array([at, inside]), np.array([inside])
    with np.errstate(all="ignore"):
        (wanted,) = fad.grad(lambda x: np.sum(function(x)))(rest)
        g = fad.grad(lambda x: np.sum(function(x)[1:]))
        for found in (g(x), fad.jit(g)(x), fad.vmap(g)(x[None])[0]):
            np.testing.assert_allclose(found, [0.0, wanted])


AROUND = {
    "diag": np.diag,
    "pad": lambda x: np.pad(x, ((1, 2),)),
    "places": lambda x: fad.numpy.at(np.zeros(9))[np.array([1, 3, 3, 8])].set(x),
    "added": lambda x: fad.numpy.at(np.zeros(9))[np.array([1, 3, 3, 8])].add(x),
}


@pytest.mark.parametrize("name", AROUND)
def test_zeros_around_what_is_traced_have_no_part_in_an_infinite_partial(name):
    f = lambda x: np.sum(np.sqrt(AROUND[name](x * x)))
    direction = np.array([0.5, -1.0, 0.3, 0.7])
    wanted = fad.grad(f)(X) @ direction
    for transform in (lambda f: f, fad.jit):
        found = transform(lambda x: fad.jvp(f, (x,), (direction,))[1])(X)
        np.testing.assert_allclose(found, wanted)
    assert np.isfinite(wanted)


def test_slopes_of_maths_functions_at_a_pole_are_looked_at():
    x, direction = np.array([0.0, 2.0]), np.array([0.0, 3.0])
    for function in (math.lgamma, math.log, cmath.log, cmath.sqrt):
        away = (function(2.0 + 1e-6) - function(2.0 - 1e-6)).real / 2e-6

        def f(x, function=function):
            r = np.zeros(2)
            for i in range(2):
                r[i] = (function(x[i]) if x[i] > 0 or function is cmath.sqrt else np.log(x[i])).real
            r[0] = 1.0
            return np.sum(r * direction)

        with np.errstate(all="ignore"):
            np.testing.assert_allclose(fad.grad(f)(x), [0.0, 3.0 * away], rtol=1e-8)
