"""Programs written for HIPS autograd run by changing their imports."""

import itertools

import numpy as onp
import pytest

import fad
import fad.compat.autograd.numpy as np
import fad.compat.autograd.numpy.random as npr
from fad.compat import autograd
from fad.compat.autograd import (
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
)
from fad.compat.autograd.extend import (
    defjvp,
    defjvp_argnums,
    defvjp,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    vspace,
)
from fad.compat.autograd.misc import const_graph, flatten
from fad.compat.autograd.misc.fixed_points import fixed_point
from fad.compat.autograd.misc.optimizers import adam, rmsprop, sgd
from fad.compat.autograd.scipy.signal import convolve
from fad.compat.autograd.test_util import check_equivalent, check_grads, scalar_close
from fad.compat.autograd.util import quick_grad_check
from fad.errors import CustomRuleError

X = onp.array([0.3, -0.7, 1.1])


def f(x):
    return np.sum(np.sin(x) * x**2)


def exact(x):
    return onp.cos(x) * x**2 + 2 * x * onp.sin(x)


def test_a_neural_network_written_for_autograd_learns():
    def init(scale, sizes, rs):
        return [(scale * rs.randn(m, n), scale * rs.randn(n)) for m, n in itertools.pairwise(sizes)]

    def predict(params, inputs):
        for W, b in params:
            outputs = np.dot(inputs, W) + b
            inputs = np.tanh(outputs)
        return outputs

    rs = npr.RandomState(0)
    inputs = np.linspace(-2, 2, num=40).reshape((40, 1))
    targets = np.sin(2 * inputs)

    def objective(params, t):
        return np.mean((predict(params, inputs) - targets) ** 2)

    params = init(0.5, [1, 16, 1], rs)
    trained = adam(grad(objective), params, step_size=0.02, num_iters=400)
    assert objective(trained, 0) < 0.05 * objective(params, 0)


@pytest.mark.parametrize(("optimizer", "step"), [(sgd, 0.1), (rmsprop, 0.01), (adam, 0.05)])
def test_an_optimizer_finds_the_minimum_of_a_bowl_in_nested_parameters(optimizer, step):
    def bowl(params, i):
        return np.sum((params["a"] - 1.0) ** 2) + (params["b"] + 2.0) ** 2

    found = optimizer(grad(bowl), {"a": np.zeros(2), "b": 0.0}, step_size=step, num_iters=800)
    assert onp.allclose(found["a"], 1.0, atol=2e-2)
    assert onp.allclose(found["b"], -2.0, atol=2e-2)


def test_the_operators_agree_with_the_derivative_by_hand():
    assert onp.allclose(grad(f)(X), exact(X))
    value, g = value_and_grad(f)(X)
    assert onp.allclose(value, f(X))
    assert onp.allclose(g, exact(X))
    assert onp.allclose(elementwise_grad(np.sin)(X), onp.cos(X))
    assert onp.allclose(deriv(np.sin)(0.3), onp.cos(0.3))
    assert onp.allclose(jacobian(np.sin)(X), onp.diag(onp.cos(X)))
    assert onp.allclose(holomorphic_grad(lambda z: z**3)(1j), -3.0)


def test_products_with_the_hessian_agree_with_the_hessian():
    H, v = hessian(f)(X), onp.array([1.0, 2.0, -1.0])
    assert onp.allclose(hessian_tensor_product(f)(X, v), H @ v)
    hvp, g = make_hvp(f)(X)
    assert onp.allclose(hvp(v), H @ v)
    assert onp.allclose(g, exact(X))
    assert onp.allclose(tensor_jacobian_product(np.sin)(X, v), v * onp.cos(X))
    A = onp.array([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]])
    assert onp.allclose(make_ggnvp(lambda x: np.dot(A, x))(X)(v), A.T @ A @ v)


def test_make_vjp_and_make_jvp_return_what_autograd_returns():
    vjp, y = make_vjp(lambda x, w: x * w, 1)(2.0, 3.0)
    assert (vjp(1.0), y) == (2.0, 6.0)
    assert make_jvp(lambda x: x**2)(3.0)(1.0) == (9.0, 6.0)


def test_arguments_are_picked_by_number_and_by_name():
    def g(x, y, z=2.0):
        return x * y**2 * z

    assert grad(g, 1)(3.0, 4.0) == 48.0
    assert grad(g, (0, 1))(3.0, 4.0) == (32.0, 48.0)
    assert grad_named(g, "y")(3.0, 4.0) == 48.0
    assert dict(multigrad_dict(g)(3.0, 4.0)) == {"x": 32.0, "y": 48.0, "z": 48.0}
    assert grad_and_aux(lambda x: (x**2, {"aux": x}))(3.0) == (6.0, {"aux": 3.0})


def test_integers_count_as_floats_and_one_element_as_a_scalar():
    assert grad(lambda x: x**2)(3) == 6.0
    assert onp.array_equal(grad(lambda x: np.array([1.0, 2.0]).reshape(1, 2) @ x)(np.ones((2, 1))), [[1.0], [2.0]])


def test_an_output_of_many_elements_is_refused():
    with pytest.raises(TypeError, match="jacobian"):
        grad(np.sin)(X)


def test_a_primitive_without_a_rule_raises_autograds_error_and_runs_where_nothing_is_differentiated():
    double = primitive(lambda x: 2.0 * x)
    for transform in (grad, deriv):
        with pytest.raises(NotImplementedError, match="has no rule"):
            transform(double)(1.0)
    assert fad.jit(double)(1.5) == 3.0


def test_a_primitive_keeps_its_rule_under_jit():
    cube = primitive(lambda x: x**3)
    defvjp(cube, lambda ans, x: lambda g: 100.0 * g)
    assert fad.grad(fad.jit(cube))(2.0) == fad.jit(fad.grad(cube))(2.0) == 100.0


def test_rules_in_the_words_of_2017_still_count():
    @primitive
    def product(x, y):
        return x * y

    product.defvjp(lambda g, ans, vs, gvs, x, y: y * g)
    product.defgrad(lambda ans, x, y: lambda g: x * g, argnum=1)
    check_grads(product, modes=["rev"])(2.0, 3.0)
    check_grads(product, 1, modes=["rev"])(2.0, 3.0)
    ignored = primitive(lambda x, y: 0.0 * x * y)
    ignored.defvjp_is_zero([0, 1])
    assert grad(ignored)(1.0, 2.0) == 0.0
    quick_grad_check(lambda x, y: x**2 + y, 1.0, (2.0,))


def test_isinstance_and_type_answer_for_the_value_of_a_traced_array():
    seen = []
    grad(lambda x: seen.append((autograd.isinstance(x, onp.ndarray), autograd.type(x))) or np.sum(x))(X)
    assert seen == [(True, onp.ndarray)]


def test_places_computed_from_traced_numbers_are_plain_integers():
    def f(w):
        places = np.int64(w[:, -1])
        plain = type(places) is onp.ndarray
        assert plain
        assert places.dtype == np.int64
        return np.sum(w[:, :-1][places] ** 2)

    w = onp.array([[0.5, 2.0, 1.0], [1.5, -1.0, 0.0]])
    assert onp.allclose(grad(f)(w), [[1.0, 4.0, 0.0], [3.0, -2.0, 0.0]])


def test_numpys_namespace_has_autograds_own_functions():
    d = onp.random.default_rng(0).normal(size=(2, 3))
    assert onp.allclose(np.make_diagonal(d, axis1=-1, axis2=-2)[1], onp.diag(d[1]))
    check_grads(lambda d: np.make_diagonal(d, axis1=-1, axis2=-2))(d)
    assert onp.allclose(np.where(condition=X > 0, x=X, y=0.0), onp.maximum(X, 0.0))


def test_distributions_are_imported_as_modules():
    import fad.compat.autograd.scipy.stats.multivariate_normal as mvn

    from fad.compat.autograd.scipy.stats import norm

    assert onp.allclose(grad(mvn.entropy, 1)(onp.zeros(2), onp.eye(2)), 0.5 * onp.eye(2))
    assert onp.allclose(grad(norm.logpdf)(1.0), -1.0)


def test_a_fixed_point_has_every_derivative_of_its_equation():
    def sqrt(a):
        return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 10.0, lambda x, y: np.abs(x - y), 1e-12)

    assert onp.allclose([sqrt(2.0), grad(sqrt)(2.0)], [2**0.5, 0.5 / 2**0.5])
    assert onp.allclose(grad(grad(sqrt))(2.0), -0.25 * 2**-1.5)
    step = lambda a: lambda x: {"u": 0.5 * onp.cos(1.0) * np.sin(x["v"]) + a, "v": 0.3 * x["u"]}
    size = lambda x, y: np.sum(np.abs(x["u"] - y["u"]) + np.abs(x["v"] - y["v"]))
    f = lambda a: np.sum(fixed_point(step, a, {"u": onp.zeros(2), "v": onp.zeros(2)}, size, 1e-13)["u"] ** 2)
    check_grads(f, modes=["rev"])(onp.array([0.4, 1.2]))


def test_a_recorded_program_is_not_run_again():
    runs = []

    def f(x, y):
        runs.append(None)
        return grad(lambda x: np.sin(x) + x * 2)(x * y)

    recorded = const_graph(f)
    assert scalar_close(recorded(1.0, 0.5), f(1.0, 0.5))
    assert scalar_close(recorded(0.3, 2.0), f(0.3, 2.0))
    assert len(runs) == 3


@pytest.mark.parametrize("value", [0.0, onp.zeros((3, 2)), 1j * onp.zeros(2), [1.0, (onp.zeros(2), {"k": 0j})]])
def test_a_vector_space_is_spanned_by_its_basis(value):
    space = vspace(value)
    basis = list(space.standard_basis())
    assert len(basis) == space.size
    gram = [[space.inner_prod(x, y) for y in basis] for x in basis]
    assert onp.array_equal(gram, onp.eye(space.size))
    total = space.zeros()
    for x in basis:
        total = space.mut_add(total, x)
    check_equivalent(total, space.ones())
    x, y = space.randn(), space.randn()
    assert space == vspace(space.add(x, y))
    assert onp.isclose(space.inner_prod(x, space.scalar_mul(y, 2.0)), 2 * space.inner_prod(y, x))
    pairs = zip(fad.tree.leaves(space.covector(x)), fad.tree.leaves(y), strict=True)
    assert onp.isclose(sum(onp.real(onp.sum(c * t)) for c, t in pairs), space.inner_prod(x, y))
    check_grads(space.inner_prod, (0, 1))(x, y)


def test_check_grads_names_the_function_and_looks_at_the_direction_too():
    @primitive
    def foo(x):
        return x * 2.0

    @primitive
    def bar(x):
        return x

    defvjp(foo, lambda ans, x: lambda g: bar(g) * 2)
    defvjp(bar, lambda ans, x: lambda g: g * 1.001)
    with pytest.raises(AssertionError, match=r"\(VJP\) check of vjp_foo failed"):
        check_grads(foo, modes=["rev"])(1.0)


@pytest.mark.parametrize(("m", "n"), [(5, 2), (6, 3), (4, 4)])
def test_the_middle_of_a_convolution_is_scipys(m, n):
    signal = pytest.importorskip("scipy.signal")
    rng = onp.random.default_rng(0)
    a, b = rng.normal(size=(m, m + 1)), rng.normal(size=(n, 2))
    assert onp.allclose(convolve(a, b, mode="same"), signal.convolve(a, b, mode="same"))
    check_grads(lambda a, b: convolve(a, b, mode="same"), (0, 1), order=1)(a, b)


def test_a_primitive_takes_its_derivative_from_defvjp_at_every_order():
    @primitive
    def logsumexp(x):
        top = onp.max(x)
        return top + onp.log(onp.sum(onp.exp(x - top)))

    def maker(ans, x):
        return lambda g: g * np.exp(x - ans)

    defvjp(logsumexp, maker)
    weights = onp.exp(X) / onp.exp(X).sum()
    assert onp.allclose(grad(logsumexp)(X), weights)
    assert onp.allclose(hessian(logsumexp)(X), onp.diag(weights) - onp.outer(weights, weights))
    check_grads(logsumexp, modes=["rev"], order=2)(X)


def test_a_primitive_takes_its_derivative_from_defjvp():
    @primitive
    def scaled(x, factor):
        return x * factor

    defjvp(scaled, "same", lambda g, ans, x, factor: g * x)
    assert onp.allclose(make_jvp(lambda x: scaled(x, 3.0))(X)(X)[1], 3.0 * X)
    assert grad(scaled, 1)(2.0, 5.0) == 2.0


def test_rules_for_all_arguments_at_once_are_taken():
    @primitive
    def times(x, y):
        return x * y

    defvjp_argnums(times, lambda nums, ans, args, kwargs: lambda g: tuple(g * args[1 - n] for n in nums))
    defjvp_argnums(
        times, lambda nums, gs, ans, args, kw: sum(g * args[1 - n] for n, g in zip(nums, gs, strict=True))
    )
    assert grad(times, (0, 1))(2.0, 5.0) == (5.0, 2.0)
    assert make_jvp(times, 1)(2.0, 5.0)(1.0) == (10.0, 2.0)


def test_a_primitive_without_a_rule_says_so():
    @primitive
    def bare(x):
        return x

    with pytest.raises(CustomRuleError, match="defvjp"):
        grad(bare)(1.0)


def test_a_notrace_primitive_has_derivative_zero():
    floor = notrace_primitive(onp.floor)
    assert grad(lambda x: floor(x) * x)(2.5) == 2.0


def test_a_vspace_knows_zeros_ones_and_a_basis():
    space = vspace(onp.ones((2, 2)))
    assert space.shape == (2, 2)
    assert onp.array_equal(onp.stack(list(space.standard_basis())).reshape(4, 4), onp.eye(4))


@pytest.mark.parametrize("dtype", [onp.float32, onp.float64, onp.complex128])
@pytest.mark.parametrize("UPLO", ["L", "U"])
def test_eigh_is_a_function_of_one_triangle(UPLO, dtype):
    a = onp.array([[[2.0, 0.5], [0.5, -1.0]], [[0.3, 1.0], [1.0, 0.2]]]).astype(dtype)
    values = grad(lambda x: np.sum(np.linalg.eigh(x, UPLO)[0] ** 3))(a)
    both = grad(lambda x: onp.sum(onp.linalg.eigh(x, UPLO)[0] ** 3))(a)
    off = (onp.tril if UPLO == "L" else onp.triu)(2 * both, -1 if UPLO == "L" else 1)
    assert values.dtype == dtype
    assert onp.allclose(values, off + both * onp.eye(2), rtol=1e-5 if dtype == onp.float32 else 1e-12)
    if dtype == onp.float64:
        check_grads(lambda x: tuple(np.linalg.eigh(x, UPLO)))(a)
    with pytest.raises(onp.linalg.LinAlgError):
        grad(lambda x: np.sum(np.linalg.eigh(x, UPLO)[0]))(onp.ones((2, 3)))


def test_where_of_pythons_values_gives_pythons_values():
    assert type(np.where(True, 1, 2)) is int
    assert np.where(False, [1, 2], [3.0, 4.0]) == [3.0, 4.0]
    assert grad(lambda x: np.where(x > 0, x, 0.0) * 2)(1.0) == 2.0


def test_flatten_gives_a_vector_and_the_way_back():
    flat, unflatten = flatten({"w": onp.ones((2, 2)), "b": (1.0, onp.zeros(3))})
    assert flat.shape == (8,)
    assert unflatten(2 * flat)["b"][0] == 2.0


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["grad", "elementwise_grad", "jacobian", "hessian", "make_jvp", "make_vjp"])
def test_an_operator_agrees_with_autograd_itself(name):
    theirs = pytest.importorskip("autograd", reason="HIPS autograd is not installed")
    import autograd.numpy as anp

    def program(m):
        return lambda x: m.sum(m.tanh(m.outer(x, x)) * m.cos(x)) + m.dot(x, x) ** 2

    ours_fn, theirs_fn = getattr(autograd, name)(program(np)), getattr(theirs, name)(program(anp))
    if name == "make_jvp":
        ours, expected = ours_fn(X)(X), theirs_fn(X)(X)
    elif name == "make_vjp":
        ours, expected = ours_fn(X)[0](1.0), theirs_fn(X)[0](1.0)
    else:
        ours, expected = ours_fn(X), theirs_fn(X)
    assert onp.allclose(ours[1] if name == "make_jvp" else ours, expected[1] if name == "make_jvp" else expected)
