"""What the search for dependences says of each operation, beside the operation's derivative."""

import all_of_fad
import numpy as np
import pytest

import fad
from fad.core.primitives.primitive import REGISTRY, Primitive
from fad.core.tracing.tracer import bind
from fad.errors import NotSparseError
from fad.sparse import sets as of
from fad.sparse.dependence import dependences
from fad.testing.cases import cases

all_of_fad.load()
PRIMITIVES = sorted(name for name, operation in REGISTRY.items() if isinstance(operation, Primitive))


def _column(case, j):
    """Return the derivative of all results of a case in one element of its operands."""
    sizes = np.cumsum([0, *[x.size for x in case.points]])
    k = int(np.searchsorted(sizes, j, side="right")) - 1
    tangents = [np.zeros_like(x) for x in case.points]
    tangents[k] = np.where(np.arange(tangents[k].size) == j - sizes[k], 1.0, 0.0).astype(tangents[k].dtype)
    tangents[k] = tangents[k].reshape(case.points[k].shape)[()]
    _, ts = fad.jvp(case.of(case.diff), case.points, tuple(tangents))
    return np.concatenate([np.ravel(t) for t in ts])


@pytest.mark.parametrize("name", PRIMITIVES)
def test_an_operation_depends_on_every_element_in_which_its_derivative_is_not_zero(name):
    for case in cases(REGISTRY[name], batch=1):
        if not case.differentiable() or not all(x.size for x in case.points):
            continue
        found = dependences(case.of(case.diff), case.points).toarray()
        for j in case.rng.choice(found.shape[1], 2):
            column = _column(case, j)
            seen = np.abs(column) > 1e-12 * max(1.0, np.max(np.abs(column), initial=0.0))
            assert not np.any(seen & ~found[:, j]), f"{case}: element {j}"


A = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
X = np.linspace(0.5, 1.5, 12)
EXACT = {
    "a slice": lambda x: x[1:-1] * x[2:],
    "a reversed one": lambda x: x[::-2],
    "an index array with repetitions": lambda x: x[np.array([0, 3, 3])] ** 2,
    "a mask": lambda x: x[x > 1.0],
    "a transposed product of reshaped parts": lambda x: x.reshape(3, 4).T.reshape(12) * x,
    "a broadcast": lambda x: x[:3, None] * x[None, :3],
    "a join": lambda x: np.concatenate([x[:2], np.ones(3), x[4:5]]),
    "a stack": lambda x: np.stack([x[:3], x[3:6] * x[:3]]),
    "a roll": lambda x: np.roll(x, 3) - x,
    "a padding": lambda x: np.pad(x, (2, 3)),
    "a padding by edges": lambda x: np.pad(x, 1, mode="edge"),
    "a diagonal": lambda x: np.diag(x[:4]).reshape(-1),
    "a difference": np.diff,
    "powers": lambda x: np.vander(x[:3], 4)[:, :3],
    "a sum over rows": lambda x: np.sum(x.reshape(3, 4), axis=1),
    "a norm of rows": lambda x: np.linalg.norm(x.reshape(3, 4), axis=1),
    "a softmax of rows": lambda x: fad.nn.functional.softmax(x.reshape(3, 4), axis=1),
    "a product with a constant matrix": lambda x: A @ x[:4],
    "a product of many columns with a constant matrix": lambda x: A @ x.reshape(4, 3),
    "a product from the right": lambda x: x.reshape(4, 3) @ A,
    "an einsum with a constant matrix": lambda x: np.einsum("ij,kj->ki", A, x.reshape(3, 4)),
    "a product of two traced matrices": lambda x: x.reshape(3, 4) @ x.reshape(4, 3),
    "a stack of products": lambda x: x[:8].reshape(2, 2, 2) @ np.ones((2, 2)),
    "a linear layer": lambda x: fad.nn.functional.linear(x.reshape(3, 4), np.ones((2, 4)), np.ones(2)),
    "a convolution": lambda x: np.convolve(x, [1.0, 0.0, -1.0], "valid"),
    "a convolution of images": lambda x: fad.nn.functional.conv2d(x.reshape(1, 1, 3, 4), np.ones((1, 1, 2, 2))),
    "a mean of windows": lambda x: fad.nn.functional.avg_pool2d(x.reshape(1, 1, 3, 4), 2, stride=1),
    "a part that is set": lambda x: fad.numpy.at(x)[2:4].set(x[:2]),
    "a part that is added": lambda x: fad.numpy.at(x)[np.array([2, 2])].add(x[:2]),
    "inverses of a stack": lambda x: np.linalg.inv(x[:8].reshape(2, 2, 2) + 3 * np.eye(2)),
    "determinants of a stack": lambda x: np.linalg.det(x[:8].reshape(2, 2, 2)),
    "a sorted array": lambda x: np.sort(x[::-1]),
    "stopped numbers": lambda x: fad.stop_gradient(x) * x[::-1],
    "a number that is constant": lambda x: np.ones(3),
}
WIDER = {
    "a maximum over columns": (lambda x: np.max(x.reshape(3, 4), axis=0), 12),
    "a cumulative sum of rows": (lambda x: np.cumsum(x.reshape(3, 4), axis=1), 48),
    "a Fourier transform of rows": (lambda x: np.fft.rfft(x.reshape(3, 4), axis=1).real, 36),
    "a maximum of windows": (lambda x: fad.nn.functional.max_pool2d(x.reshape(1, 1, 3, 4), 2, stride=1), 24),
    "factors of a stack": (lambda x: np.linalg.cholesky(x[:8].reshape(2, 2, 2) + 9 * np.eye(2)), 32),
    "interpolation": (lambda x: np.interp(np.array([0.5, 1.5]), np.arange(4.0), x[:4]), 4),
    "a choice": (lambda x: np.where(x > 1.0, x, 0.0), 12),
    "a rounded number": (lambda x: np.floor(x) + x, 12),
}


@pytest.mark.parametrize("what", EXACT)
def test_the_places_are_exactly_those_at_which_the_derivative_is_not_zero(what):
    found = fad.sparse.pattern(EXACT[what])(X)
    derivative = np.asarray(fad.jacobian(EXACT[what])(X)).reshape(found.shape)
    np.testing.assert_array_equal(found.toarray(), derivative != 0)


@pytest.mark.parametrize("what", WIDER)
def test_places_that_depend_on_the_values_are_all_there(what):
    f, places = WIDER[what]
    found = fad.sparse.pattern(f)(X)
    derivative = np.asarray(fad.jacobian(f)(X)).reshape(found.shape)
    assert not np.any((derivative != 0) & ~found.toarray())
    assert found.nnz == places


def test_a_product_with_a_sparse_matrix_keeps_its_places_for_vector_and_entries():
    from fad.scipy.sparse import coo_array

    rows, columns = np.array([0, 1, 1, 2]), np.array([0, 0, 2, 1])

    def f(z):
        return coo_array((z["entries"], (rows, columns)), shape=(3, 3)) @ z["x"]

    found = fad.sparse.pattern(f)({"entries": np.ones(4), "x": np.ones(3)}).toarray()
    assert found.astype(int).tolist() == [[1, 0, 0, 0, 1, 0, 0], [0, 1, 1, 0, 1, 0, 1], [0, 0, 0, 1, 0, 1, 0]]


def test_an_operation_that_nothing_is_known_of_depends_on_all_of_its_operands():
    unknown = Primitive("unknown", lambda x: x[::-1].copy(), jvp=lambda ts, y, xs, params: ts[0][::-1])
    assert fad.sparse.pattern(lambda x: bind(unknown, x[:3]))(X).nnz == 9


@fad.custom_jvp
def _rounded(x):
    return np.round(x)


_rounded.defjvp(lambda primals, tangents: (np.round(primals[0]), tangents[0]))


@fad.custom_vjp
def _reversed(x):
    return x


_reversed.defvjp(lambda x: (x, None), lambda res, ct: (-ct[::-1],))


@pytest.mark.parametrize("rule", [_rounded, _reversed], ids=["jvp", "vjp"])
def test_a_function_with_a_rule_of_its_own_depends_on_what_its_rule_says(rule):
    found, derivative = fad.sparse.pattern(rule)(X), fad.jacobian(rule)(X)
    np.testing.assert_array_equal(found.toarray(), derivative != 0)


def _loop(x):
    return fad.scan(lambda c, a: (0.5 * c + a, c), 0.0, x)[1]


THROUGH = {
    "jit": lambda f: fad.jit(f),
    "checkpoint": lambda f: fad.checkpoint(f),
    "vmap": lambda f: lambda x: fad.vmap(f)(x.reshape(3, 4)),
    "cond": lambda f: lambda x: fad.cond(np.sum(x) > 0, f, lambda x: x, x),
    "grad": lambda f: fad.grad(lambda x: np.sum(f(x))),
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (x,))[1],
}


@pytest.mark.parametrize("name", THROUGH)
def test_dependences_are_followed_through_other_transforms(name):
    f = THROUGH[name](lambda x: x * np.roll(x, 1) ** 2)
    found, derivative = fad.sparse.pattern(f)(X).toarray(), fad.jacobian(f)(X).reshape(-1, 12)
    np.testing.assert_array_equal(found, derivative != 0)


def test_a_scan_is_followed_step_by_step():
    np.testing.assert_array_equal(fad.sparse.pattern(_loop)(X).toarray(), np.tri(12, k=-1) > 0)


def test_a_matrix_with_too_many_places_is_an_error_that_names_the_operation_and_the_line():
    with pytest.raises(NotSparseError, match=r"in divide, 20000 elements depend on 20000 inputs each") as error:
        fad.sparse.pattern(lambda x: x / np.sum(x))(np.ones(20_000))
    assert "test_dependences_of_operations.py" in str(error.value)


def test_number_of_inputs_and_outputs_may_be_zero():
    assert fad.sparse.pattern(lambda x: x * 2)(np.ones(0)).shape == (0, 0)
    assert fad.sparse.pattern(lambda x: x[:0])(np.ones(3)).shape == (0, 3)
    assert fad.sparse.jacobian(lambda x: x[:0])(np.ones(3)).shape == (0, 3)
    assert fad.sparse.jacobian(lambda x: np.ones(2) + np.sum(x))(np.ones(0)).shape == (2, 0)


def test_sets_of_a_value_are_not_found_for_its_gradient(monkeypatch):
    """They may be as large as everything: of many terms that depend on many inputs each."""
    monkeypatch.setattr(of, "LIMIT", 400)
    x = np.linspace(0.1, 2.0, 200)

    def energy(x):
        return np.sum(np.sin(x) * x) + 0.5 * np.sum(x**2) + np.prod(np.sum(np.cos(x)) * np.ones(3))

    def alone(x):
        return np.sum(np.sin(x) * x) + 0.5 * np.sum(x**2)

    assert dependences(fad.grad(alone), (x,)).nnz == 200
    with pytest.raises(NotSparseError, match="depend on"):
        dependences(fad.grad(energy), (x,))


def test_sets_of_a_sum_in_a_long_loop_are_found_on_its_way():
    def total(x):
        s = np.sum(x[:2])
        for _ in range(3000):
            s = s * 0.5 + np.sum(x[:2])
        return s

    assert dependences(total, (np.ones(4),)).toarray().tolist() == [[True, True, False, False]]


@pytest.mark.parametrize("order", [np.sort, lambda x: np.partition(x, 0)], ids=["sorted", "partitioned"])
def test_few_numbers_in_order_are_found_where_they_come_from(order):
    for n in range(1, 6):
        x = np.arange(n, 0.0, -1.0)
        assert np.array_equal(fad.sparse.jacobian(order)(x).toarray(), fad.jacobian(order)(x))
