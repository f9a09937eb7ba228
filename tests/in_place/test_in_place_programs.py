"""Programs that change arrays in place are under every transform what they are in plain NumPy."""

import numpy as np
import pytest
from in_place.corners import CORNERS
from in_place.writing_programs import PROGRAMS, a_narrow_buffer_rounds
from numpy_versions import WITH_SET_SHAPES

import fad

X = np.array([1.1, 2.2, 0.7, 3.4])
EYE = np.eye(4)
IN_DOUBLE_PRECISION = [f for f in PROGRAMS + CORNERS if f is not a_narrow_buffer_rounds]
EVERY = pytest.mark.parametrize("f", PROGRAMS + CORNERS, ids=lambda f: f.__name__)


def differences(f, x, h=1e-5):
    """Return the gradient of a plain program by differences extrapolated to no distance."""

    def central(e, h):
        return (f(x + h * e) - f(x - h * e)) / (2 * h)

    single = f.__name__ == "a_narrow_buffer_rounds"
    h = 0.05 if single else h
    return np.array([(4 * central(e, h / 2) - central(e, h)) / 3 for e in np.eye(x.size)])


def close(found, wanted, f, rtol=1e-7):
    rtol = 1e-4 if f.__name__ == "a_narrow_buffer_rounds" else rtol
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * (1 + np.max(np.abs(wanted))))


@EVERY
def test_value_and_gradient_are_those_of_the_plain_program_and_the_argument_stays_as_it_was(f):
    x = X.copy()
    value, g = fad.value_and_grad(f)(x)
    np.testing.assert_array_equal(x, X)
    close(value, f(X.copy()), f, 1e-14)
    close(g, differences(f, X), f)


@EVERY
def test_a_pullback_can_be_called_again_and_results_may_be_overwritten(f):
    y, pullback = fad.vjp(lambda x: (f(x), x), X)
    first = pullback((1.0, np.ones(4)))[0]
    y[1][...] = 0.0
    np.testing.assert_array_equal(pullback((1.0, np.ones(4)))[0], first)


@EVERY
def test_forward_mode_agrees(f):
    g = differences(f, X)
    close([fad.jvp(f, (X,), (e,))[1] for e in EYE], g, f)
    close([fad.linearize(f, X)[1](e) for e in EYE], g, f)


@EVERY
def test_a_batch_is_a_loop(f):
    xs = np.stack([X, X * 1.01, X * 0.99])
    close(fad.vmap(f)(xs), [f(x.copy()) for x in xs], f, 1e-13)
    close(fad.vmap(fad.grad(f))(xs), [fad.grad(f)(x) for x in xs], f, 1e-12)


@EVERY
def test_a_jitted_program_agrees_in_every_call(f):
    value, gradient = fad.jit(f), fad.jit(fad.grad(f))
    for x in (X, X * 1.01, X):
        given = x.copy()
        close(value(given), f(x.copy()), f, 1e-12)
        close(gradient(given), fad.grad(f)(x), f, 1e-11)
        np.testing.assert_array_equal(given, x)


@pytest.mark.parametrize("f", IN_DOUBLE_PRECISION, ids=lambda f: f.__name__)
def test_second_derivatives_agree_in_every_nesting(f):
    wanted = np.stack([differences(lambda x, i=i: fad.grad(f)(x)[i], X, 1e-4) for i in range(4)])
    for found in (fad.hessian(f)(X), fad.jacobian(fad.grad(f))(X), fad.jacrev(fad.grad(f))(X)):
        close(found, wanted, f, 1e-5)


@EVERY
def test_checkpoint_scan_and_jet_agree(f):
    g = differences(f, X)
    close(fad.grad(lambda x: fad.checkpoint(lambda y: f(y * 1.0))(x))(X), g, f)
    last = fad.grad(lambda x: fad.scan(lambda c, _: (c + f(x * 1.0), None), 0.0, np.zeros(2))[0])(X)
    close(last, 2 * g, f)


# --- arrays that the function is given --------------------------------------------------------------------------------


def into_a_given_buffer(x, buffer, options):
    buffer[:4] = x**2
    options["rows"][0] += x[0]
    view = buffer[1:3]
    buffer[1] *= 3.0
    view[1] = options["rows"][0]
    return np.sum(buffer) + np.sum(options["rows"] ** 2)


@pytest.mark.parametrize("transform", [fad.grad, fad.jacobian, lambda f: fad.jit(fad.grad(f))])
def test_arguments_that_are_not_differentiated_are_values_that_may_be_written(transform):
    buffer, rows = np.arange(5.0), np.array([2.0, 3.0])
    wanted = differences(lambda x: into_a_given_buffer(x, buffer.copy(), {"rows": rows.copy()}), X)
    close(transform(into_a_given_buffer)(X, buffer, {"rows": rows}), wanted, into_a_given_buffer)
    np.testing.assert_array_equal(buffer, np.arange(5.0))
    np.testing.assert_array_equal(rows, [2.0, 3.0])


def test_a_batch_writes_into_an_argument_that_is_the_same_for_all():
    def f(x, table):
        table[1] = x[0]
        return np.sum(table * x)

    xs, table = np.stack([X, 2 * X]), np.ones(4)
    close(fad.vmap(f, in_axes=(0, None))(xs, table), [f(x, table.copy()) for x in xs], f)
    np.testing.assert_array_equal(table, np.ones(4))


# --- what is refused --------------------------------------------------------------------------------------------------


def integers(x):
    b = np.zeros(3, int)
    b[0] = x[0]
    return np.sum(b)


def a_growing_left_side(x):
    s = x[:1]
    s += x
    return np.sum(s)


def a_wrong_cast(x):
    b = np.arange(4)
    b += x * 0.5
    return np.sum(b)


def a_read_only_view(x):
    np.broadcast_to(x, (3, 4))[0] = 1.0
    return np.sum(x)


def an_element_of_a_number(x):
    y = x[0]
    y[0] = 1.0
    return y


def an_index_out_of_range(x):
    x[7] = 1.0
    return np.sum(x)


def a_shape_that_does_not_fit(x):
    x[1:3] = x
    return np.sum(x)


REFUSED = [
    (integers, fad.errors.ItemAssignmentError, "dtype int64"),
    (a_growing_left_side, ValueError, "non-broadcastable output operand"),
    (a_wrong_cast, TypeError, "same_kind"),
    (a_read_only_view, ValueError, "read-only"),
    (an_element_of_a_number, TypeError, "does not support item assignment"),
    (an_index_out_of_range, IndexError, "out of bounds"),
    (a_shape_that_does_not_fit, ValueError, "broadcast"),
]


@pytest.mark.parametrize(("f", "error", "text"), REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_numpy_refuses_is_refused_in_its_words(f, error, text):
    if f is not integers:  # NumPy rounds it
        with pytest.raises(error, match=text):
            f(X.copy())
    for transform in (fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (x,))):
        with pytest.raises(error, match=text):
            transform(f)(X)


def test_what_is_kept_after_the_transform_is_numbers():
    kept = {}

    def f(x):
        b = np.zeros(4)
        b[:] = x**2
        kept["b"] = b
        return np.sum(b)

    fad.grad(f)(X)
    np.testing.assert_array_equal(np.asarray(kept["b"]), X**2)
    np.testing.assert_array_equal(np.sin(kept["b"]), np.sin(X**2))
    assert isinstance(kept["b"], np.ndarray)


def test_an_inner_derivative_that_writes_into_an_outer_array_leaves_a_value_there():
    def f(x):
        trail = np.zeros(2)

        def inner(y):
            trail[0] = y * x[0]
            return y**3 * x[1]

        slope = fad.grad(inner)(x[2])
        return slope * trail[0]

    # 3 x2^2 x1 * x2 x0
    wanted = differences(lambda x: 3 * x[2] ** 3 * x[1] * x[0], X)
    close(fad.grad(f)(X), wanted, f)


def test_numpy_is_the_users_own_again_after_a_transform():
    def f(x):
        b = np.zeros(2)
        b[0] = x
        assert np.zeros is not zeros
        return b[0]

    zeros = np.zeros
    fad.grad(f)(1.0)
    assert np.zeros is zeros
    with pytest.raises(ZeroDivisionError):
        fad.grad(lambda x: f(x) * (1 // 0))(1.0)
    assert np.zeros is zeros


def test_a_traced_array_says_how_it_lies_in_memory():
    def f(x):
        m = x.reshape(2, 2)
        plain = np.array([1.1, 2.2, 0.7, 3.4]).reshape(2, 2)
        assert m.strides == plain.strides
        assert m.T.strides == plain.T.strides
        assert m.T.flags.f_contiguous
        assert m.base is x
        assert m.copy().base is None
        assert np.shares_memory(m[0], x)
        assert not np.shares_memory(m[0], m[1])
        assert not np.shares_memory(m, m.copy())
        return np.sum(m)

    for transform in (fad.grad, fad.jit):
        transform(f)(X)
    assert fad.vmap(f)(np.stack([X, X])).shape == (2,)


def test_a_shape_is_not_assigned_where_a_view_has_the_other():
    def f(x):
        first = x[:2]
        x.shape = (2, 2)
        return np.sum(first * x)

    with pytest.raises(AttributeError, match=r"x\.reshape"):
        fad.grad(f)(X)


@WITH_SET_SHAPES
def test_the_shape_of_an_array_without_elements_is_assigned():
    def f(x):
        rows = np.array([])
        rows.shape = (0, 4)
        x.shape = np.shape(x)
        return np.sum(np.concatenate([rows, x[None]]) ** 2)

    for transform in (fad.grad(f), fad.jit(fad.grad(f))):
        np.testing.assert_array_equal(transform(X), 2 * X)


def test_functions_that_share_their_code_may_write_or_not():
    runs = []

    def writes(x):
        y = np.zeros(4)
        y[1:] = x[1:]
        return y

    def doubles(x):
        return 2.0 * x

    def composed(step):
        def f(x):
            runs.append(step)
            return np.sum(step(x) ** 2)

        return f

    for step in (doubles, writes, doubles, writes):
        g = fad.grad(composed(step))(X)
        np.testing.assert_allclose(g, 8 * X if step is doubles else 2 * X * [0, 1, 1, 1])
    assert runs == [doubles, writes, doubles, writes]  # each was known before it ran


def test_functions_that_hold_each_other_are_looked_at_once():
    def even(x, n):
        return x if n == 0 else odd(x * 2.0, n - 1)

    def odd(x, n):
        return even(x * 3.0, n - 1)

    assert fad.grad(lambda x: even(x, 2))(1.0) == 6.0


@EVERY
def test_what_is_watched_agrees(f):
    with fad.debug.nans():
        found = fad.grad(f)(X)
    close(found, fad.grad(f)(X), f, 1e-14)
    assert fad.saved(f)(X).total >= 0


def test_eigenvalues_that_are_repeated_may_be_written_after_others_that_are_not():
    """Where values are repeated their derivative is a limit, which the tape keeps beside the array."""
    shifts = [np.diag([0.0, 0.0, 5.0]), np.zeros((3, 3)), np.eye(3)]

    def written(a):
        rows = np.zeros((3, 3))
        for k in range(3):
            rows[k] = np.linalg.eigh(a + shifts[k])[0]
        return np.sum(rows**2)

    def stacked(a):
        return np.sum(np.stack([np.linalg.eigh(a + shift)[0] for shift in shifts]) ** 2)

    a = np.diag([2.0, 1.0, 1.0])
    np.testing.assert_allclose(fad.grad(written)(a), fad.grad(stacked)(a), atol=1e-12)
