"""What random imperative programs found, each as the smallest program that shows it: fad does what a plain run does."""

import numpy as np
import pytest
from numpy._core._exceptions import UFuncTypeError
from numpy_versions import WITH_CROSS_OF_PLANE_VECTORS

import fad
from fad.errors import BatchingError

X = np.array([0.5, -1.25, 2.0])


def runs(f, x):
    """Return what a function gives in a plain run and under transforms, each on an argument of its own."""
    return f(np.copy(x)), [
        fad.vjp(f, np.copy(x))[0],
        fad.jvp(f, (np.copy(x),), (np.copy(x),))[0],
        fad.jit(f)(np.copy(x)),
        fad.jvp(lambda x: fad.jvp(f, (x,), (x,))[0], (np.copy(x),), (np.copy(x),))[0],
    ]


def same(f, x):
    wanted, found = runs(f, x)
    for got in found:
        for w, g in zip(fad.tree.leaves(wanted), fad.tree.leaves(got), strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize(
    "text",
    [
        "x **= 2; np.putmask(x, True, 0.25)", "x /= 2; x[()] = 1.5", "x += x; x[...] /= 2",
        "x[()] /= 2; y = x.T; y *= 3",
        "y = np.sum(x); np.putmask(x.reshape(1), True, 2); x *= y", "np.put(x, [0, -1], [1.5, 3])", "x.flat[0] = x * x",
        "y = x[...]; y[...] /= 2; y //= 0.5", "y = np.empty_like(x); y[...] = -x; y[...] /= 2; x *= y",
        "y = np.nan_to_num(x, copy=False); x[...] = 7; x += y", "y = np.squeeze(x); y -= 1; x *= y",
        "x.real = 3; x *= 2",
    ],
)  # fmt: skip
def test_an_array_without_axes_is_written_like_any_other(text):
    names = {"np": np}
    exec("def f(x):\n    " + text.replace("; ", "\n    ") + "\n    return x\n", names)
    f, x = names["f"], np.array(0.522)
    same(f, x)
    h = 1e-6
    slope = (f(np.array(x + h)) - f(np.array(x - h))) / (2 * h)
    for got in (fad.grad(f)(x), fad.jacfwd(f)(x), fad.jacrev(f)(x), fad.jit(fad.grad(f))(x)):
        np.testing.assert_allclose(got, slope, 1e-7, 1e-7)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x[...] = 2", "does not support item assignment"), ("x[...] /= 2", "does not support item assignment"),
        ("x.real = 2", "objects is not writable"), ("np.nan_to_num(x, copy=False)", "Unable to avoid copy"),
        ("np.put(x, [0], 5)", None), ("x.fill(3)", None), ("x.flat[0] = 3", None),
    ],
)  # fmt: skip
def test_a_number_of_a_batch_is_no_array_as_in_a_loop(text, error):
    names = {"np": np}
    exec(f"def f(x):\n    {text}\n    return x\n", names)
    if error is None:
        np.testing.assert_array_equal(fad.vmap(names["f"])(X), [names["f"](x) for x in X])
        return
    with pytest.raises((TypeError, AttributeError, ValueError), match=r"item assignment|not writable|avoid copy"):
        names["f"](X[0])
    with pytest.raises((TypeError, AttributeError, ValueError), match=error):
        fad.vmap(names["f"])(X)


def test_what_ellipsis_takes_of_a_number_is_an_array_of_its_own():
    def f(z):
        a = z[...]
        a[...] /= 2
        b = a
        b *= z
        return a, z

    np.testing.assert_array_equal(fad.vmap(f)(X), [X**2 / 2, X])
    np.testing.assert_array_equal(fad.vmap(fad.grad(lambda z: f(z)[0]))(X), X)
    (_, aux), g = fad.value_and_grad(lambda z: (f(z)[0] * 1, f(z)[0]), has_aux=True)(np.float64(2.0))
    assert (aux, g) == (2.0, 2.0)


@pytest.mark.parametrize("strided", [lambda x: np.stack([x, x], -1)[..., 0], lambda x: np.flip(x), lambda x: x])
def test_a_view_of_an_argument_with_gaps_is_what_numpy_makes_of_it(strided):
    """What is written into a copy goes nowhere."""

    def f(x):
        x[0] = 7
        x.ravel()[1] = 8
        np.ascontiguousarray(x)[2] = 9
        x.reshape(-1)[0] += 1
        return x

    x = strided(X)
    wanted = f(strided(X.copy()))
    fast = fad.jit(f)
    for got in (fad.vjp(f, x)[0], fad.jvp(f, (x,), (x,))[0], fast(x), fast(x), fad.linearize(f, x)[0]):
        np.testing.assert_array_equal(got, wanted)


def test_a_program_of_jit_is_right_for_the_layout_that_it_was_recorded_for():
    def f(x):
        a = np.ascontiguousarray(x)
        x[0] = 5
        x.ravel()[1] = a[0, 2]
        return x, a

    c = np.arange(6.0).reshape(2, 3)
    fast = fad.jit(f)
    for _ in range(3):
        for make in (np.array, np.asfortranarray, lambda x: np.stack([x, x], -1)[..., 0]):
            for g, w in zip(fast(make(c)), f(make(c.copy())), strict=True):
                np.testing.assert_array_equal(g, w)
    assert fast.cache_info().hits == 6
    order = fad.jit(lambda x: np.ravel(x, "K"))
    for x in (c, np.asfortranarray(c), c):
        np.testing.assert_array_equal(order(x), np.ravel(x, "K"))


def test_a_jacobian_by_rows_sees_what_was_written_through_a_view_of_an_array_without_axes():
    def f(x):
        np.putmask(x.reshape(1), True, 2)
        return x * 3

    for jacobian in (fad.jacrev, fad.jacfwd):
        assert jacobian(f)(np.array(1.0)) == 0.0


def test_elements_of_flat_of_an_array_that_no_name_leads_to():
    class Holder:
        pass

    def fill(x):
        a = np.ones_like(x)
        a.flat[0] = x[1]
        return a * x

    holder = Holder()
    holder.fill = fill
    np.testing.assert_array_equal(fad.jvp(lambda x: holder.fill(x), (X,), (X,))[1], [2 * X[0] * X[1], X[1], X[2]])


@pytest.mark.parametrize(
    "text", ["x.imag[0] = 3", "x.imag.fill(2)", "v = np.imag(x); v += 1", "v = np.imag(x)[1:]; v[0] = 3"]
)
def test_the_imaginary_part_of_a_real_array_is_not_written(text):
    names = {"np": np}
    exec("def f(x):\n    " + text.replace("; ", "\n    ") + "\n    return np.sum(x)\n", names)
    f = names["f"]
    batch = lambda f: lambda x: fad.vmap(f)(x[None])
    for transform in (lambda f: f, fad.grad, batch, fad.jit, lambda f: fad.grad(lambda x: np.sum(fad.grad(f)(x)))):
        with pytest.raises(ValueError, match="read-only"):
            transform(f)(np.copy(X))


@pytest.mark.parametrize("out", [np.ones((3, 3), ">f8"), np.ones((3, 3), "f4"), np.ones((3, 3), order="F")])
def test_dot_writes_into_arrays_alone_that_numpy_takes(out):
    def f(x, y):
        np.dot(x, x, out=y)
        return y

    x, fine, fast = np.outer(X, X), np.ones((3, 3)), fad.jit(f)
    batch = lambda x, y: fad.vmap(f)(x[None], y[None])
    for run in (f, fast, batch, fast):
        np.testing.assert_array_equal(np.reshape(run(x, fine.copy()), (3, 3)), x @ x)
        with pytest.raises(ValueError, match=r"output array .*dtype|output array is not acceptable"):
            run(x, out.copy("K"))


def test_piecewise_of_a_number_is_an_array_that_is_written():
    def f(x):
        y = np.piecewise(x, [x > 0], [lambda v: 2 * v, lambda v: v])
        y[...] = np.sin(x + y)
        return y * x

    np.testing.assert_allclose(fad.vmap(f)(X), [f(x) for x in X], 1e-14)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(X), [fad.grad(f)(x) for x in X], 1e-14)


@pytest.mark.parametrize(
    "text",
    [
        "y = np.zeros(3); y[...] = x; return y", "y = np.zeros(()); y[...] = x[0]; return y.T",
        "y = np.zeros(3); y[0] = x[0]; return y[1:], y.T", "y = np.ones(3); y *= x; return {'a': y[::-1]}",
    ],
)  # fmt: skip
def test_the_first_call_of_jit_gives_arrays_for_buffers_as_later_ones_do(text):
    names = {"np": np}
    exec("def f(x):\n    " + text.replace("; ", "\n    ") + "\n", names)
    fast = fad.jit(names["f"])
    for _ in range(3):
        for got, wanted in zip(fad.tree.leaves(fast(X)), fad.tree.leaves(names["f"](X)), strict=True):
            assert type(got) is np.ndarray  # isinstance is true of a tracer, too
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("y = np.zeros(5); y[[7, 9]] = x", ValueError), ("y = np.zeros(5); y[[7, 9]] = x[1:]", IndexError),
        ("x[[7, 9]] = np.ones(4)", ValueError), ("y = np.zeros(5); y *= x[1:] * 1j", UFuncTypeError),
        ("y = np.zeros(5); y *= x[1:]", ValueError), ("y = np.zeros(5, int); y += x", UFuncTypeError),
    ],
)  # fmt: skip
def test_of_two_mistakes_in_a_write_the_error_is_that_of_numpy(text, error):
    names = {"np": np}
    exec("def f(x):\n    " + text.replace("; ", "\n    ") + "\n    return x\n", names)
    f = names["f"]
    calls = [f, fad.jit(f), lambda x: fad.vjp(f, x), lambda x: fad.jvp(f, (x,), (x,)), lambda x: fad.vmap(f)(x[None])]
    for call in calls:
        with pytest.raises(error) as caught:
            call(np.copy(X))
        assert caught.type is error or error not in (ValueError, IndexError)


@pytest.mark.parametrize(
    "text",
    [
        "a = np.arange(3); np.add.at(a, [0, 0, 1], 0.6); return x, a",
        "a = np.arange(3); np.subtract.at(a, [2, 2], np.array([0.7])); return x * a, a",
        "a = np.arange(6).reshape(3, 2); np.add.at(a, [0, 0], 1.5); return x, a",
        "a = np.zeros(2); np.add.at(a, [0, 0], x[:2]); return a",
    ],
)  # fmt: skip
def test_at_casts_each_sum_to_integers_as_numpy_does(text):
    names = {"np": np}
    exec("def f(x):\n    " + text.replace("; ", "\n    ") + "\n", names)
    same(names["f"], X)


def test_out_of_another_dtype_and_shape_is_refused_for_its_dtype():
    def f(x):
        return np.exp(x * 1j, out=np.zeros(5))

    for call in (f, fad.jit(f), lambda x: fad.vjp(f, x), lambda x: fad.jvp(f, (x,), (x,))):
        with pytest.raises(UFuncTypeError):
            call(X)


@pytest.mark.parametrize(
    "text", ["x @= np.ones((1, 3, 3))", "x @= x[None, None] * 2", "np.matmul(x, x[None] * 1, out=x)", "x[0] @= x[None]"]
)
def test_a_matrix_takes_the_product_with_a_stack_of_one_matrix(text):
    names = {"np": np}
    exec("def f(x):\n    " + text + "\n    return x\n", names)
    same(names["f"], np.arange(9.0).reshape(3, 3))


@pytest.mark.parametrize(
    ("text", "size"),
    [("x @= np.ones((3, 1))", "3 is different from 1"),
     ("y = x[None] * x[:, None]; y @= y[:, :1]", "3 is different from 1"),
     ("y = x[:2] * 1; np.matmul(x, np.ones((3, 1)), out=y)", "2 is different from 1")],
)  # fmt: skip
def test_the_axes_of_a_matrix_product_are_not_broadcast_when_it_is_written(text, size):
    names = {"np": np}
    exec("def f(x):\n    " + text.replace("; ", "\n    ") + "\n    return x\n", names)
    f = names["f"]
    for call in (f, fad.jit(f), lambda x: fad.vjp(f, x), lambda x: fad.jvp(f, (x,), (x,))):
        with pytest.raises(ValueError, match=size):
            call(np.copy(X))


@pytest.mark.parametrize(
    "make",
    [lambda x: np.sort(x, axis=1), lambda x: np.partition(x, 1, axis=0), lambda x: np.pad(x, 1, mode="wrap"),
     lambda x: np.pad(x, ((0, 1), (1, 0)), mode="linear_ramp"), lambda x: np.pad(x, 0, mode="edge")],
    ids=["sort", "partition", "pad", "pad with a ramp", "pad by nothing"],
)  # fmt: skip
@pytest.mark.parametrize("taken", [np.asfortranarray, np.transpose, lambda x: x[:, ::-1], lambda x: x[::-1, ::-1]])
def test_a_result_lies_in_memory_as_numpys_does(make, taken):
    x = taken(np.array([[0.5, -1.0, 2.0], [0.25, 3.0, -0.5], [1.5, 0.75, -2.0]]))
    f = lambda x: np.reshape(make(x), (-1,), order="A")
    np.testing.assert_array_equal(fad.vjp(f, x)[0], f(x))
    np.testing.assert_array_equal(fad.jvp(f, (x,), (x,))[0], f(x))
    fast = fad.jit(f)
    for given in (np.copy(x, order="C"), x, np.copy(x, order="F")):
        np.testing.assert_array_equal(fast(given), f(given))


@WITH_CROSS_OF_PLANE_VECTORS
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("a", [X, -X[:2], np.zeros(3)])
@pytest.mark.parametrize("b", [np.array([-0.0, -0.0]), np.array([-0.0, 0.0, -0.0]), np.array([1.0, -0.0])])
def test_zeros_of_a_cross_product_have_numpys_signs(a, b):
    wanted = np.cross(a, b)
    for got in (fad.jvp(np.cross, (a, b), (a, b))[0], fad.vjp(np.cross, a, b)[0]):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("make", [np.ones_like, lambda x: x * 1.0])
@pytest.mark.parametrize("take", [lambda a: a[a >= 0], lambda a: a[[0, 1], [1, 0]]])
def test_what_a_mask_takes_in_a_batch_can_be_written_through_its_ravel(make, take):
    def f(x):
        taken = take(make(x))
        taken.ravel()[0] = 7.0
        return taken

    x = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(fad.vmap(f)(x), np.stack([f(row) for row in x]))


@pytest.mark.parametrize(
    "text",
    [
        "m[0] = x[1]", "m[0] = x[1] > 0", "m.fill(x[1] > 0)", "m.flat[0] = x[1] > 0", "m[:1] = x[1] > 0",
        "m[...] = x > 0", "n[0] = m; n[0][()] = x[1] > 0", "n = np.logical_not(m); n[-1] = x[0] > x[1]; m ^= n",
    ],
)  # fmt: skip
def test_batch_elements_answer_differently_where_numpy_asks_for_a_boolean(text):
    namespace = {"np": np, "outside": X}
    exec(f"def f(x):\n    m = outside > 1; n = [0]; {text}\n    return np.where(m, x * x, 2 * x)", namespace)
    f, xs = namespace["f"], np.stack([X, -X, 3 * X])
    np.testing.assert_array_equal(fad.vmap(f)(xs), [f(x) for x in xs])
    np.testing.assert_array_equal(fad.vmap(fad.jacobian(f))(xs), [fad.jacobian(f)(x) for x in xs])
    np.testing.assert_array_equal(fad.jit(fad.vmap(f))(xs), [f(x) for x in xs])
    gradients = fad.grad(lambda xs: np.sum(fad.vmap(f)(xs)))(xs)
    np.testing.assert_array_equal(gradients, [fad.grad(lambda x: np.sum(f(x)))(x) for x in xs])


def test_a_write_into_a_part_without_elements_depends_on_nothing():
    def f(x):
        y = x // 0.5
        y[[0, 0]] += 2
        y[-3].reshape(1)[1:] *= 1.5
        return x + y

    np.testing.assert_array_equal(fad.sparse.jacobian(f)(X).toarray(), np.eye(3))


def test_a_mask_of_an_argument_that_has_derivatives_by_nothing_selects_what_it_selects():
    def f(x, y):
        y[np.array([True, False, False])] = y[y < 1] + 1
        return x, y

    y = np.array([2.25, 2.0, -1.5])
    for jacobian in (fad.jacfwd, fad.jacrev, fad.jacobian, lambda f: fad.jit(fad.jacfwd(f))):
        assert [j.shape for j in jacobian(f)(np.zeros(0), np.copy(y))] == [(0, 0), (3, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "w = y.copy(); w[[1, 2]] = y[[1, 2]]", "w = y.copy(); w[x > 0] = y[x > 0]", "w = y * 1; w[[0, 2]] *= 1",
        "w = np.where(x > 0, y, y * 2) / np.where(x > 0, 1, 2); w[x > 3] = 0", "w = np.zeros(3); w[x > 9] = 1; w += y",
        "w = y.copy(); w[[2]] = y[2]; w[x < 0] = y[x < 0]", "w = y.copy(); np.put(w, [0, 1], y[:2]); w = w[::-1][::-1]",
        "w = np.piecewise(y, [x > 0], [lambda v: v, lambda v: v]); w[[0]] = y[0]",
        "w = np.stack([y, y]); w[:, [1]] = y[1]; w = w[[0, 1]].mean(0)",
        "w = y.copy(); w[[1]] = y[1]; w = np.where(x > 0, w, w); w[[0]] = y[0]",
    ],
)  # fmt: skip
def test_cotangents_that_are_zero_as_it_happens_have_derivatives(text):
    namespace = {"np": np}
    exec(f"def f(x):\n    y = 2 * np.sin(x); {text}\n    return w", namespace)
    goal = 2 * np.sin(X)  # which f meets at X: so the cotangent of w is zero there, and its derivative is not

    def loss(x):
        return np.sum((namespace["f"](x) - goal) ** 2)

    np.testing.assert_array_equal(fad.grad(loss)(X), 0.0)
    wanted = np.diag(8 * np.cos(X) ** 2)
    hessians = [
        fad.hessian(loss), fad.jacrev(fad.grad(loss)), fad.jacfwd(fad.jacfwd(loss)), fad.jit(fad.hessian(loss)),
        lambda x: fad.vmap(fad.hessian(loss))(x[None])[0], fad.jacobian(fad.grad(loss), mode="fwd"),
        lambda x: fad.jacfwd(lambda x: fad.vmap(fad.grad(loss))(x[None])[0])(x),
    ]  # fmt: skip
    for hessian in hessians:
        np.testing.assert_allclose(hessian(X), wanted, atol=1e-12)
        np.testing.assert_allclose(fad.hvp(loss, (X,), (X,))[1], wanted @ X, atol=1e-12)


def test_what_a_mask_replaced_takes_no_part_in_an_infinite_partial_at_second_order_either():
    def f(x, first=1):
        r = np.sqrt(x)
        r[r > 0] = 1 / r[r > 0]
        return np.sum(r[first:] * x[first:] ** 2)

    x = np.array([0.0, 1.0, 4.0])
    with np.errstate(all="ignore"):
        for derivative in (fad.grad(f), fad.jit(fad.grad(f)), lambda x: fad.jvp(fad.grad(f), (x,), (x,))[0]):
            np.testing.assert_allclose(derivative(x), 1.5 * np.sqrt(x))
        for hessian in (fad.hessian(f), fad.jit(fad.hessian(f)), fad.jacrev(fad.grad(f))):
            np.testing.assert_allclose(np.diag(hessian(x))[1:], 0.75 / np.sqrt(x[1:]))
        computed = fad.grad(lambda x: f(x, 0))(x)  # the first cotangent, x**2, is zero by calculation
        assert np.isnan(computed[0])
        np.testing.assert_allclose(computed[1:], 1.5 * np.sqrt(x[1:]))


def test_a_jacobian_by_columns_does_not_depend_on_where_its_pull_is_zero():
    def f(x):
        return np.fft.irfft(np.piecewise(x, [x > 0], [lambda v: 2 * v, lambda v: v]))

    x = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
    for jacobian in (fad.jacobian(f), fad.jit(fad.jacobian(f)), lambda x: fad.vmap(fad.jacobian(f))(x[None])[0]):
        np.testing.assert_allclose(jacobian(x), fad.jacrev(f)(x), atol=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "y = x * 2; y[[0, 1]] = 3", "y = x * 2; y[x > 0] = x[x > 0]", "y = x.copy(); y[1:] *= y[:-1]",
        "y = x * 0.5; y[x != 1] *= 0.25", "y = np.outer(x, x); np.fill_diagonal(y, x)", "y = x * 2; y[0] = 1",
        "y = x.copy(); np.place(y, y > 0, 2)", "y = x * np.inf; y[x < 9] = x[x < 9]",
    ],
)  # fmt: skip
def test_derivatives_of_writes_keep_single_precision(text):
    namespace = {"np": np}
    exec(f"def f(x):\n    {text}\n    return y", namespace)
    f, x = namespace["f"], X.astype(np.float32)
    gradient = fad.grad(lambda x: np.sum(f(x)))
    with np.errstate(all="ignore"):
        for found in (
            fad.jacrev(f)(x), fad.jacfwd(f)(x), fad.jacobian(f)(x), gradient(x), fad.jit(gradient)(x),
            fad.jacfwd(gradient)(x), fad.vmap(gradient)(x[None]), fad.jit(fad.jacrev(f))(x), fad.jacrev(gradient)(x),
        ):  # fmt: skip
            assert found.dtype == np.float32


def test_batch_elements_whose_eigenvalues_are_real_take_their_own_way():
    def f(x):
        r = np.roots(x.ravel()[:3])
        return np.piecewise(x, [x > 0], [lambda v: v, lambda v: v * r.size])

    xs = np.array([[1.0, 1.0, 1.0, -3.0], [1.0, -3.0, 1.0, 2.0], [1.0, 1.0, -1.0, -2.0]])
    np.testing.assert_array_equal(fad.vmap(f)(xs), [f(x) for x in xs])


def test_a_function_that_asks_something_else_when_it_runs_again_is_refused():
    asked = []

    def f(x):
        asked.append(0)
        y = x * 1
        if len(asked) % 2:
            return y if np.sum(x) > 0 else -y
        return x[x > 0]

    with pytest.raises(BatchingError, match="does not do the same twice"):
        fad.vmap(f)(np.stack([X, -X]))


def test_an_element_that_is_not_there_is_missed_before_what_it_is_given_is_looked_at():
    def f(x):
        y = x.copy()
        y[0] = x
        return y

    for call in (lambda x: fad.vmap(f)(x[None]), lambda x: fad.jvp(f, (x,), (x,)), fad.jit(f), f):
        with pytest.raises(IndexError, match="out of bounds"):
            call(np.zeros(0))


def picks_an_array(x, y, log):
    """Write into an array that values picked, and that has another name: its loop is recorded step by step then."""
    log[0] += 1
    a, b = x.copy(), y.copy()
    kept, total = a, 0.0
    for i in range(500):
        kept = b if x[0] > i else a
        total = total + np.sum(kept) * 0.001
    kept[0] = 5
    return a.sum() + b.sum() + total


@pytest.mark.parametrize(
    "transform",
    [fad.jit, lambda f: fad.jit(fad.grad(f)), lambda f: fad.grad(fad.jit(f)), fad.make_graph],
    ids=["jit", "jit of grad", "grad of jit", "make_graph"],
)
def test_a_recording_that_begins_again_writes_outside_once(transform):
    log = np.zeros(2)
    call = transform(lambda x, y: picks_an_array(x, y, log))
    for k in range(3):
        call(X, X + 1)
        assert log[0] == k + 1


def test_a_recording_that_begins_again_sees_a_write_into_a_large_array():
    log = np.zeros(100_000)
    with fad.config.use(check_mutation="full"), pytest.raises(fad.errors.MutationError):
        fad.jit(lambda x, y: picks_an_array(x, y, log))(X, X + 1)


@pytest.mark.parametrize(
    "product",
    [
        lambda x: np.tensordot(np.ones(2), x, axes=0),
        lambda x: np.tensordot(np.ones((3, 2)), x, axes=1),
        lambda x: np.tensordot(np.ones((2, 3)), x, axes=([1], [-1])),
        lambda x: np.inner(np.ones((2, 3)), x),
        lambda x: np.dot(np.ones((2, 2)), x[None]),
        lambda x: np.einsum("ij,j->i", np.ones((2, 3)), x[0]),
    ],
)
def test_products_in_a_batch_lie_in_memory_as_those_of_its_elements(product):
    def f(x):
        y = product(x)
        y.ravel()[0] = 7.0
        return y

    batch = np.arange(18.0).reshape(3, 2, 3)
    np.testing.assert_array_equal(fad.vmap(f)(batch), [f(x) for x in batch])
