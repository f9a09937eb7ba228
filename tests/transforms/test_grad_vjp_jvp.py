"""grad, value_and_grad, vjp and jvp: trees, aux, argument choice, many calls, and programs as people write them."""

import dataclasses
import functools
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import fad
import fad.nn
import fad.ops.products.conv
from fad.errors import PullbackConsumedError
from fad.transforms.vjp import Tape

X = np.array([0.5, -1.0, 2.0])


def test_grad_by_name_and_by_position():
    f = lambda x, *, scale, shift=0.0: np.sum(x * scale + shift)
    np.testing.assert_array_equal(fad.grad(f, argnames="scale")(X, scale=3.0), X.sum())
    np.testing.assert_array_equal(fad.grad(f)(X, scale=3.0), [3.0, 3.0, 3.0])
    g = fad.grad(f, argnums=(), argnames=("scale", "shift"))(X, scale=3.0, shift=1.0)
    assert g == (X.sum(), 3.0)


def test_argnames_find_arguments_given_by_position():
    assert fad.grad(lambda x, y: x * y * y, argnames="y")(2.0, 3.0) == 12.0


def test_default_arguments_and_partials_and_methods():
    class Model:
        def __init__(self, k):
            self.k = k

        def loss(self, x, p=2):
            return self.k * np.sum(x**p)

        def __call__(self, x):
            return self.loss(x, 3)

    np.testing.assert_allclose(fad.grad(Model(2.0).loss)(X), 4 * X)
    np.testing.assert_allclose(fad.grad(Model(2.0))(X), 6 * X**2)
    np.testing.assert_allclose(fad.grad(functools.partial(Model(1.0).loss, p=4))(X), 4 * X**3)


def test_the_transformed_function_keeps_its_name_and_docstring():
    def loss(x):
        """Return the loss."""
        return x * x

    assert fad.grad(loss).__name__ == "loss"
    assert fad.vmap(loss).__doc__ == "Return the loss."


def test_trees_of_every_kind():
    p = {"w": [X, (2.0, None)], "e": {}}
    g = fad.grad(lambda p: np.sum(p["w"][0] ** 2) * p["w"][1][0])(p)
    np.testing.assert_allclose(g["w"][0], 4 * X)
    assert g["w"][1] == (np.sum(X**2), None)
    assert g["e"] == {}


def test_a_pullback_may_be_called_many_times_and_differentiated():
    y, pullback = fad.vjp(lambda x: x**3, X)
    np.testing.assert_allclose(pullback(y)[0], 3 * X**2 * y)
    np.testing.assert_allclose(pullback(2 * y)[0], 6 * X**2 * y)
    np.testing.assert_allclose(fad.jacrev(lambda ct: pullback(ct)[0])(y), np.diag(3 * X**2))


def test_vjp_of_vjp_and_jvp_of_vjp_in_closures():
    def hvp_by_reverse(x, v):
        return fad.grad(lambda x: np.sum(fad.grad(lambda x: np.sum(x**4))(x) * v))(x)

    np.testing.assert_allclose(hvp_by_reverse(X, X), 12 * X**3)
    np.testing.assert_allclose(fad.jvp(fad.grad(lambda x: np.sum(x**4)), (X,), (X,))[1], 12 * X**3)


def test_values_used_many_times_add_up():
    f = lambda x: sum(x * k for k in range(10)) * x
    assert fad.grad(f)(2.0) == 180.0


def test_a_long_chain_does_not_recurse():
    def f(x):
        for _ in range(5000):
            x = x * 1.0001
        return x

    np.testing.assert_allclose(fad.grad(f)(1.0), 1.0001**5000)


def test_recursion_in_the_function():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert fad.grad(power)(2.0, 5) == 80.0


def test_newton_with_a_while_loop():
    def root(a):
        x = 1.0
        while abs(x * x - a) > 1e-14:
            x = 0.5 * (x + a / x)
        return x

    np.testing.assert_allclose(fad.grad(root)(2.0), 0.5 / np.sqrt(2.0))
    np.testing.assert_allclose(fad.grad(fad.grad(root))(2.0), -0.25 * 2.0**-1.5, rtol=1e-6)


def test_an_input_returned_as_it_is_and_twice():
    y, pullback = fad.vjp(lambda x: (x, x), X)
    assert pullback((X, X))[0].tolist() == (2 * X).tolist()
    np.testing.assert_array_equal(y[0], X)


def test_gradients_do_not_share_memory_with_each_other_or_with_arguments():
    f = lambda x, y: np.sum(x + y)
    gx, gy = fad.grad(f, (0, 1))(X, X.copy())
    gx += 1
    np.testing.assert_array_equal(gy, np.ones(3))
    ct = np.ones(3)
    (c,) = fad.vjp(lambda x: x, X)[1](ct)
    c += 1
    np.testing.assert_array_equal(ct, np.ones(3))


def test_integer_outputs_beside_real_ones():
    out, tangent = fad.jvp(lambda x: (x * 2, np.argmax(x)), (X,), (X,))
    assert out[1] == 2
    np.testing.assert_array_equal(tangent[0], 2 * X)
    assert tangent[1] == 0


def test_mixed_precision_inputs_keep_their_own():
    a, b = X.astype(np.float32), X
    ga, gb = fad.grad(lambda a, b: np.sum(a * b), (0, 1))(a, b)
    assert (ga.dtype, gb.dtype) == (np.float32, np.float64)


def test_order_of_memory_does_not_matter():
    a = np.arange(6.0).reshape(2, 3)
    for x in (a, np.asfortranarray(a), a[::-1, ::-1], np.broadcast_to(a[:1], (2, 3)), a.T.copy().T):
        np.testing.assert_allclose(fad.grad(lambda x: np.sum(np.sin(x) * a))(x), np.cos(x) * a)


def test_numpy_code_that_knows_nothing_of_fad():
    def softmax(x, axis=-1):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    logits = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])
    labels = np.array([1, 2])
    loss = lambda z: -np.log(softmax(z)[np.arange(2), labels]).mean()
    one_hot = np.eye(3)[labels]
    np.testing.assert_allclose(fad.grad(loss)(logits), (softmax(logits) - one_hot) / 2)


def test_derivatives_of_derivatives_to_sixth_order():
    f = lambda x: np.exp(2 * x)
    for n in range(1, 7):
        f = fad.grad(f)
        np.testing.assert_allclose(f(0.3), 2**n * np.exp(0.6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_dtypes_of_gradients(dtype):
    z = X.astype(dtype)
    g = fad.grad(lambda z: np.sum(np.abs(z) ** 2))(z)
    assert g.dtype == dtype
    np.testing.assert_allclose(g, 2 * np.conj(z), rtol=1e-6)


PRODUCTS = {
    "linear": (fad.nn.functional.linear, (3, 4), (2, 4), (2,)),
    "conv": (functools.partial(fad.ops.products.conv.conv, padding=1), (2, 3, 6), (4, 3, 3)),
    "einsum": (functools.partial(np.einsum, "ij,kj->ik"), (3, 4), (2, 4)),
    "matmul": (np.matmul, (3, 4), (4, 2)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_result_of_a_product_is_not_kept_for_the_way_back_which_does_not_read_it(name):
    product, *shapes = PRODUCTS[name]
    made = []

    def loss(*xs):
        y = product(*xs)
        made.append(weakref.ref(y.wrapped if y.wrapped.base is None else y.wrapped.base))
        return np.sum(fad.nn.functional.relu(y))  # which keeps its own result

    _, pullback = fad.vjp(loss, *[np.ones(s) for s in shapes])
    assert made[0]() is None
    assert pullback(1.0)[0].shape == shapes[0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("number", [0, 0.0, -1.5, np.inf, -np.inf, np.nan, np.float64(0.5), np.int64(-1)])
@pytest.mark.parametrize("choose", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_a_choice_against_a_number_has_the_derivative_of_one_against_an_array(choose, number, dtype):
    x = np.array([1.0, -1.0, 0.0, -0.0, np.nan, np.inf, -np.inf, -1.5, 0.5], dtype)
    ct = np.arange(1, 10).astype(dtype)
    pulled = lambda f, x: fad.vjp(f, x)[1](ct)[0]
    expected = pulled(lambda x: choose(x, np.full(9, number, dtype)), x)
    for call in (choose, lambda x, c: choose(c, x)):
        f = lambda x, call=call: call(x, number).astype(dtype)
        np.testing.assert_array_equal(pulled(f, x), expected, strict=True)
        traced, _ = fad.jvp(lambda x, f=f: pulled(f, x), (x,), (np.ones_like(x),))
        np.testing.assert_array_equal(traced, expected, strict=True)


def test_what_the_way_back_has_read_is_not_held_while_the_next_rule_runs():
    made, alive = [], []

    @fad.custom_vjp
    def last(x):
        return x

    def rule(_, ct):
        alive.append(made[0]() is not None)
        return (ct,)

    last.defvjp(lambda x: (x, None), rule)

    def loss(x):
        z = x + 1.0
        made.append(weakref.ref(z.wrapped))  # which the product alone keeps
        return np.sum(last(x) * z)

    fad.grad(loss)(np.ones(3))
    assert alive == [False]


def test_the_derivative_of_a_maximum_in_single_precision_makes_nothing_of_double():
    graph = fad.make_graph(fad.grad(lambda x: np.sum(np.maximum(x, 0.0))))(np.ones(3, np.float32))
    assert "f64" not in str(graph)


def test_a_vector_of_a_tree_goes_back_into_leaves_of_their_dtypes_and_kinds():
    leaves = {"a": np.ones((2, 2), np.float32), "b": 3.0, "c": np.arange(3), "d": np.ones((), complex)}
    flat, unravel = fad.tree.ravel(leaves)
    assert flat.dtype == complex
    back = unravel(flat.real)
    for name, x in leaves.items():
        assert back[name].dtype == np.result_type(x)
        assert np.shape(back[name]) == np.shape(x)
        np.testing.assert_array_equal(back[name], x)
    assert not isinstance(back["b"], np.ndarray)


@pytest.mark.parametrize("shape", [(4,), (6,), (1, 5)])
def test_only_a_vector_of_its_length_goes_back_into_a_tree(shape):
    _, unravel = fad.tree.ravel({"a": np.ones((2, 2)), "b": 3.0})
    with pytest.raises(ValueError, match="unravel takes a vector of 5 elements"):
        unravel(np.ones(shape))


def test_the_tangent_of_a_number_is_a_number_though_it_was_given_as_an_array():
    y, t = fad.jvp(lambda x: x, (np.float64(3.0),), (np.array(1.0),))
    assert type(y) is type(t) is np.float64


def test_a_tape_that_was_swept_and_not_kept_is_refused():
    tape = Tape(np.sin, fad.tree.structure((0.0,)), [np.float64(0.0)], has_aux=False)
    assert tape.pull([1.0], keep=True) == tape.pull([1.0], keep=False) == [1.0]
    with pytest.raises(PullbackConsumedError):
        tape.pull([1.0], keep=False)


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("kind", ["f8", "f4", "c16"])
def test_a_derivative_may_be_given_in_either_byte_order(order, kind):
    x = np.array([1.0, 2.0], ">" + kind)  # as a file's: gradients come in the machine's order, and go back in
    v = np.array([3.0, 4.0], order + kind)
    f = lambda x: x * x
    want = np.array([6.0, 16.0])
    for found in (
        fad.jvp(f, (x,), (v,))[1],
        fad.linearize(f, x)[1](v),
        fad.vjp(f, x)[1](v)[0],
        fad.vjp(f, x.astype(kind))[1](v)[0],
        fad.jet(f, (x,), ([v],))[1][0],
        fad.jit(lambda x, v: fad.jvp(f, (x,), (v,))[1])(x, v),
        fad.hvp(lambda x: np.sum((x * x * x).real) / 3, (x,), (v,))[1],
        fad.linear_transpose(lambda v: 2 * x * v, x)(v)[0],
    ):
        np.testing.assert_array_equal(found, want)
        assert found.dtype == np.dtype(kind)
    np.testing.assert_array_equal(fad.vjp(lambda x: x.copy(), x)[1](v)[0], v)


def test_the_settings_of_a_dataclass_are_no_leaves():
    @functools.partial(fad.tree.register_dataclass, data_fields=["w"], meta_fields=["act", "name"])
    @dataclasses.dataclass(frozen=True)
    class Layer:
        w: np.ndarray
        act: Callable
        name: str = "layer"

    def loss(layer, x):
        assert layer.name == "first"
        return np.sum(layer.act(layer.w @ x))

    layer, x = Layer(np.eye(2), np.tanh, "first"), np.array([0.1, 0.2])
    want = np.outer(1 - np.tanh(x) ** 2, x)
    for gradient in (fad.grad(loss), fad.jit(fad.grad(loss))):
        found = gradient(layer, x)
        assert (found.act, found.name) == (np.tanh, "first")
        np.testing.assert_allclose(found.w, want)
    relu = fad.jit(fad.grad(loss))(dataclasses.replace(layer, act=fad.nn.functional.relu), x)
    np.testing.assert_allclose(relu.w, [x, x])
    assert fad.vmap(lambda layer: layer.act(layer.w))(layer).shape == (2, 2)


def test_a_field_may_say_itself_that_it_is_a_setting():
    @fad.tree.register_dataclass
    @dataclasses.dataclass
    class Scale:
        by: float
        unit: str = dataclasses.field(default="m", metadata={"static": True})

    assert fad.grad(lambda s: s.by**2)(Scale(3.0, "km")) == Scale(6.0, "km")
    with pytest.raises(fad.errors.TreeMismatchError):
        fad.tree.map(lambda a, b: a + b, Scale(3.0, "km"), Scale(3.0, "m"))


def test_fields_of_a_dataclass_that_are_in_no_list_are_refused():
    @dataclasses.dataclass
    class Pair:
        a: float
        b: float

    for lists in (dict(data_fields=["a"], meta_fields=[]), dict(meta_fields=["c"]), dict(data_fields=["a", "a"])):
        with pytest.raises(ValueError, match="must have each field of Pair once"):
            fad.tree.register_dataclass(Pair, **lists)
