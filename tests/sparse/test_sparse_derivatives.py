"""Sparse Jacobians and Hessians against the dense ones, and what they promise about passes, patterns and transforms."""

import itertools
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fad
from fad.errors import (
    BatchedValueError,
    ComplexGradientError,
    DerivativeError,
    IntegerInputError,
    NonScalarOutputError,
    ShapeMismatchError,
)
from fad.sparse import colouring, dependence, derivatives
from fad.sparse.colouring import cost, find_heavy, plan_passes, plan_symmetric
from fad.sparse.sets import sort_by_counting
from fad.testing.programs import SMOOTH
from fad.testing.strategies import programs_and_points

X = np.linspace(-1.0, 1.5, 12)


def tridiagonal(x):
    return np.exp(x) * np.concatenate([x[1:], x[:1]]) + np.sin(x)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def laplace(u):
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return around - 4 * inner + inner**3


def arrow(x):
    return np.concatenate([np.sum(x**2)[None], x[1:] ** 3 * x[0]])


def blocks(x):
    return np.linalg.solve(x.reshape(3, 2, 2) + 3 * np.eye(2), np.ones((3, 2, 1)))


JACOBIANS = {
    "tridiagonal": (tridiagonal, X), "a grid": (laplace, np.sin(np.arange(30.0)).reshape(5, 6)), "an arrow": (arrow, X),
    "blocks": (blocks, X), "one number": (np.sum, X), "of one number": (lambda x: x * X, np.float64(2.0)),
    "constant": (lambda x: np.ones(3), X), "single precision": (tridiagonal, X.astype(np.float32)),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("name", JACOBIANS)
def test_a_sparse_jacobian_is_the_dense_one(name, mode):
    f, x = JACOBIANS[name]
    found = fad.sparse.jacobian(f, mode=mode)(x)
    dense = np.asarray(fad.jacobian(f)(x))
    assert isinstance(found, scipy.sparse.csr_array)
    assert found.has_sorted_indices
    assert name == "constant" or found.dtype == dense.dtype
    np.testing.assert_allclose(found.toarray(), dense.reshape(found.shape), rtol=1e-6 if dense.itemsize == 4 else 1e-13)


HESSIANS = {
    "a chain": (rosenbrock, X),
    "a full row": (lambda x: np.sum(x[0] * np.cos(x)), X),
    "a grid": (lambda u: np.sum(np.diff(u, axis=0) ** 2) + np.sum(np.diff(u, axis=1) ** 4), X.reshape(3, 4)),
    "a linear function": (np.sum, X),
    "determinants": (lambda x: np.sum(np.linalg.det(x.reshape(3, 2, 2))), X),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_a_sparse_hessian_is_the_dense_one(name):
    f, x = HESSIANS[name]
    found = fad.sparse.hessian(f)(x)
    np.testing.assert_allclose(found.toarray(), fad.hessian(f)(x).reshape(x.size, x.size), rtol=1e-12, atol=1e-12)


def shared(x):
    """Return what one number, and three more for each, take part in."""
    return x[0] * np.arange(1.0, 5.0) + x[0] ** 2 * np.sum(x[1:].reshape(4, 3) ** 2, axis=1)


def test_full_columns_are_pushed_where_rows_are_pulled_for_the_rest():
    x = np.append(X, 2.0)
    for f in (shared, lambda x: np.append(shared(x), x[0] + x[1:].sum())):
        for derivative in (fad.sparse.jacobian(f), fad.jit(fad.sparse.jacobian(f))):
            for _ in range(3):
                np.testing.assert_allclose(derivative(x).toarray(), fad.jacobian(f)(x), rtol=1e-13)


@pytest.mark.parametrize(
    ("derivative", "f", "passes"),
    [
        (fad.sparse.jacobian, lambda x: shared(np.resize(x, 13)) + 0 * x[0], "1 forward and 1 in reverse"),
        (fad.sparse.jacobian, lambda x: x[1:] ** 2 - x[:-1], "2 forward"),
        (fad.sparse.jacobian, np.sum, "1 in reverse"),
        (fad.sparse.jacobian, arrow, "2 forward and 1 in reverse"),
        (fad.sparse.jacobian, lambda x: np.ones(3), "none"),
        (fad.sparse.hessian, rosenbrock, "3 forward"),
        (fad.sparse.hessian, lambda x: np.sum(x[0] * np.cos(x)), "2 forward"),
    ],
)
def test_the_number_of_passes_does_not_grow_with_the_size(derivative, f, passes):
    for n in (12, 500):
        assert derivative(f).explain(np.ones(n)).endswith(f"passes: {passes}")


def test_inputs_and_outputs_may_be_trees():
    def f(p, scale):
        return {"b": p["a"] * scale, "a": (p["c"][1:] * p["a"][0], p["c"][0])}

    p = {"a": np.array([1.0, 2.0]), "c": np.array([3.0, 4.0, 5.0])}
    found = fad.sparse.jacobian(f)(p, scale=2.0).toarray()
    np.testing.assert_array_equal(
        found, [[4, 0, 0, 1, 0], [5, 0, 0, 0, 1], [0, 0, 1, 0, 0], [2, 0, 0, 0, 0], [0, 2, 0, 0, 0]]
    )
    both = fad.sparse.jacobian(lambda x, k, y: x * y * k, argnums=(0, 2))(p["a"], 3.0, p["a"])
    np.testing.assert_array_equal(both.toarray(), [[3, 0, 3, 0], [0, 6, 0, 6]])


@st.composite
def _patterns(draw, symmetric=False):
    m, n = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    n = m if symmetric else n
    dense = np.array(draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=m, max_size=m)))
    return dense | dense.T if symmetric else dense


@given(_patterns(), st.sampled_from(["auto", "fwd", "rev"]))
@settings(max_examples=150, deadline=None)
def test_every_entry_of_any_matrix_is_read_off_the_products_of_its_plan(pattern, mode):
    entries = np.where(pattern, np.arange(1.0, pattern.size + 1).reshape(pattern.shape), 0.0)
    plan = plan_passes(scipy.sparse.csr_array(pattern), mode)
    right, left = plan.members
    products = np.concatenate([(right @ entries.T).reshape(-1), (left @ entries).reshape(-1)])
    np.testing.assert_array_equal(products[plan.first.take], entries[plan.places])
    assert plan.pulls == 0 or mode != "fwd"
    assert plan.pushes == 0 or mode != "rev"
    assert plan.pushes + plan.pulls <= sum(pattern.shape)


@given(_patterns(), st.sampled_from(["auto", "fwd", "rev"]), st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_a_plan_is_found_exactly_where_it_costs_at_most_what_is_allowed(pattern, mode, most):
    pattern = scipy.sparse.csr_array(pattern)
    found, wanted = plan_passes(pattern, mode, most), plan_passes(pattern, mode)
    assert (found is not None) == (cost(wanted) <= most)
    if found is not None:
        np.testing.assert_array_equal(found.first.take, wanted.first.take)


@given(_patterns(symmetric=True))
@settings(max_examples=100, deadline=None)
def test_every_entry_of_a_symmetric_matrix_is_read_off_products_from_the_right(pattern):
    n = len(pattern)
    entries = np.where(pattern, np.add.outer(np.arange(1.0, n + 1), np.arange(1.0, n + 1)) ** 2, 0.0)
    plan = plan_symmetric(scipy.sparse.csr_array(pattern))
    right, left = plan.members
    np.testing.assert_array_equal((right @ entries).reshape(-1)[plan.first.take], entries[plan.places])
    assert len(left) == 0
    assert plan.pushes <= n


# Programs most of whose steps keep a derivative sparse: without sums over everything.
LOCAL = {name: step for name, step in SMOOTH.items() if not any(w in name for w in ("mean", "dot", "@", "loop"))}


@given(programs_and_points(inputs=2, table={**LOCAL, "x - roll(y)": lambda x, y: x - np.roll(y, 1)}))
@settings(deadline=None)
def test_on_random_programs_the_sparse_jacobian_is_the_dense_one(drawn):
    f, xs = drawn
    found = fad.sparse.jacobian(f, argnums=(0, 1))(*xs).toarray()
    dense = np.concatenate(fad.jacobian(f, argnums=(0, 1))(*xs), axis=1)
    np.testing.assert_allclose(found, dense, rtol=1e-9, atol=1e-9)


@given(programs_and_points(inputs=1))
@settings(deadline=None)
def test_on_random_programs_the_sparse_hessian_is_the_dense_one(drawn):
    f, (x,) = drawn
    found = fad.sparse.hessian(f.scalar)(x).toarray()
    np.testing.assert_allclose(found, fad.hessian(f.scalar)(x), rtol=1e-9, atol=1e-9)


def _moving(x):
    return x * x[np.argmax(x)] if x[0] > 0 else x[::-1] * x


def test_places_that_change_with_the_values_are_found_again():
    derivative, dense = fad.sparse.jacobian(_moving), fad.jacobian(_moving)
    for x in ([1.0, 2.0, 3.0], [-1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 3.0, 2.0]):
        np.testing.assert_array_equal(derivative(np.array(x)).toarray(), dense(np.array(x)))


def test_a_compiled_sparse_jacobian_is_recorded_again_where_its_places_change():
    derivative, dense = fad.jit(fad.sparse.jacobian(_moving)), fad.jacobian(_moving)
    for x in ([1.0, 2.0, 3.0], [1.5, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]):
        np.testing.assert_array_equal(derivative(np.array(x)).toarray(), dense(np.array(x)))


def test_a_compiled_jacobian_of_a_linear_function_is_a_constant_that_may_be_written_into():
    for f in (lambda x: 2 * x, lambda x: 3 * x[np.array([0, 0, 2])]):
        compiled, wanted = fad.jit(fad.sparse.jacobian(f)), fad.jacobian(f)(X[:3])
        for _ in range(4):
            found = compiled(X[:3])
            assert found.indptr.size == 4
            np.testing.assert_array_equal(found.toarray(), wanted)
            found.data[:] = 7.0


SHORTER = {
    "sorted": lambda x: np.sort(np.sin(x.astype(np.float32))),
    "of longer results": lambda x: np.sort(np.interp(x, np.array([-9.0, 0.0, 9.0]), np.array([0.0, 1.0, 0.5]))),
    "half precision": lambda x: np.sort(np.sin(x.astype(np.float16))).astype(float) ** 2,
    "of loops": lambda x: x[np.argsort(x)] * np.sin(x.astype(np.float32))[::-1],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SHORTER)
def test_places_are_seen_where_a_function_computes_with_shorter_numbers(name, dtype, monkeypatch):
    f, x = SHORTER[name], X[:5].astype(dtype)
    looked = []
    find = dependence.dependences
    monkeypatch.setattr(derivatives, "dependences", lambda *args: looked.append(1) or find(*args))
    plain = fad.sparse.jacobian(f)
    for derivative in (plain, fad.jit(plain), fad.jit(fad.sparse.jacobian(f, mode="rev"))):
        for point in (x, x + dtype(0.125), -x, x[::-1].copy(), x):
            np.testing.assert_allclose(derivative(point).toarray(), fad.jacobian(f)(point), rtol=5e-3, atol=1e-5)
    looked.clear()
    plain(x), plain(x)
    assert not looked


def test_a_pattern_that_is_given_holds_for_a_function_that_computes_with_shorter_numbers():
    f = lambda x: np.sin(3 * x.astype(np.float32)) / 3
    derivative = fad.sparse.jacobian(f, pattern=np.eye(X.size))
    for x in (X, -X, X + 1):
        np.testing.assert_allclose(derivative(x).toarray(), fad.jacobian(f)(x), rtol=1e-5)
    with pytest.raises(DerivativeError, match="lacks places"):
        fad.sparse.jacobian(lambda x: f(x) + x[0], pattern=np.eye(X.size))(X)


def test_a_function_may_gather_otherwise_in_each_run():
    runs = itertools.count()
    index = np.array([0, 0, 2])

    def f(x):
        for _ in range(next(runs) % 3):
            x[index] * 2.0
        return x[index] ** 2

    for _ in range(5):
        np.testing.assert_allclose(fad.sparse.jacobian(f)(X).toarray(), fad.jacobian(lambda x: x[index] ** 2)(X))


def test_gathers_in_a_loop_that_a_program_runs_as_one_are_seen():
    def f(x):
        steps, heights = 1.0, np.append(np.heaviside(x, 0.5), 1.0)
        while steps < 4 and heights[2] < 9:
            steps = steps * 2
            np.resize(heights, 7)
        return x**2

    for derivative in (fad.sparse.jacobian(f), fad.jit(fad.sparse.jacobian(f))):
        for x in (X[:3], X[:3] + 1, -X[:3]):
            np.testing.assert_array_equal(derivative(x).toarray(), np.diag(2 * x))


@pytest.mark.parametrize("options", [{}, {"mode": "rev"}, {"check": False}, {"mode": "rev", "check": False}])
def test_another_number_of_outputs_for_the_same_shapes_is_found_again(options):
    derivative = fad.sparse.jacobian(lambda x: x[x > 0] ** 2, **options)
    for x in ([1.0, -2.0, 3.0], [1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [-1.0, -2.0, 3.0]):
        np.testing.assert_array_equal(
            derivative(np.array(x)).toarray(), fad.jacobian(lambda x: x[x > 0] ** 2)(np.array(x))
        )


def test_a_given_pattern_is_used_and_checked():
    banded = np.eye(4) + np.eye(4, k=1)
    derivative = fad.sparse.jacobian(lambda x: x[0] * x, pattern=banded)
    with pytest.raises(DerivativeError, match=r"lacks places in row 1"):
        derivative(np.ones(4))
    with pytest.raises(DerivativeError, match=r"has 4 rows"):
        fad.sparse.jacobian(lambda x: x[:3], pattern=banded)(np.ones(4))
    with pytest.raises(ShapeMismatchError, match=r"has 4 columns, but the input has 5 elements"):
        derivative(np.ones(5))
    right = fad.sparse.jacobian(lambda x: x * x, pattern=banded)
    np.testing.assert_array_equal(right(np.arange(4.0)).toarray(), 2 * np.diag(np.arange(4.0)))
    assert right.explain(np.ones(4)) == "4 x 4 with 7 places; passes: 2 forward"
    loose = fad.sparse.jacobian(lambda x: x[0] * x, pattern=np.eye(4), check=False)
    assert loose(np.ones(4)).nnz == 4


def test_the_pattern_of_a_hessian_may_be_one_triangle():
    pattern = np.tri(12) - np.tri(12, k=-2)
    found = fad.sparse.hessian(rosenbrock, pattern=pattern, check=False)(X).toarray()
    np.testing.assert_allclose(found, fad.hessian(rosenbrock)(X), rtol=1e-12)
    with pytest.raises(ShapeMismatchError, match=r"pattern of a Hessian is square, but it has shape \(2, 3\)"):
        fad.sparse.hessian(rosenbrock, pattern=np.ones((2, 3)))


def test_a_matrix_may_be_written_into_without_changing_the_next():
    derivative = fad.sparse.jacobian(lambda x: x[1:] * x[:-1])
    first = derivative(np.array([0.0, 1.0, 2.0]))
    first.eliminate_zeros()
    first.indices[:] = 0
    np.testing.assert_array_equal(derivative(np.array([3.0, 1.0, 2.0])).toarray(), [[1, 3, 0], [0, 2, 1]])


def test_sparse_derivatives_compose_with_other_transforms():
    def f(a):
        return np.sum(fad.sparse.jacobian(lambda x: a * x[1:] * np.sin(x[:-1]))(X).data ** 2)

    dense = fad.grad(lambda a: np.sum(fad.jacobian(lambda x: a * x[1:] * np.sin(x[:-1]))(X) ** 2))
    np.testing.assert_allclose(fad.grad(f)(2.0), dense(2.0), rtol=1e-12)
    hessian = fad.sparse.hessian(rosenbrock)
    np.testing.assert_allclose(
        fad.grad(lambda x: np.sum(hessian(x).toarray() ** 2))(X),
        fad.grad(lambda x: np.sum(fad.hessian(rosenbrock)(x) ** 2))(X), rtol=1e-10,
    )  # fmt: skip
    many = np.stack([X, X[::-1]])
    np.testing.assert_allclose(
        fad.vmap(lambda x: hessian(x).toarray())(many), fad.vmap(fad.hessian(rosenbrock))(many), rtol=1e-12, atol=1e-12
    )


def test_places_are_found_where_another_transform_traces_constants_of_the_function():
    def f(a):
        inner = fad.grad(lambda x: np.sum(np.cosh(x) * a) + 0.1 * np.sum(x[1:] * x[:-1]) ** 2)
        return np.sum(fad.sparse.jacobian(inner)(X[:4]).data)

    wanted = np.sum(np.cosh(X[:4]))
    assert fad.grad(f)(2.0) == pytest.approx(wanted)
    assert fad.jit(fad.grad(f))(2.0) == pytest.approx(wanted)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.array([1.0, 2.0])), wanted)


def test_inside_vmap_the_places_must_be_known():
    many = np.stack([X, X])
    with pytest.raises(BatchedValueError, match=r"Call it once outside"):
        fad.vmap(lambda x: fad.sparse.jacobian(tridiagonal)(x).data)(many)
    pattern = fad.sparse.pattern(tridiagonal)(X)
    found = fad.vmap(lambda x: fad.sparse.jacobian(tridiagonal, pattern=pattern)(x).toarray())(many)
    np.testing.assert_allclose(found, fad.vmap(fad.jacobian(tridiagonal))(many), rtol=1e-13)


def test_chunks_change_nothing():
    dense = fad.jacobian(tridiagonal)(X)
    for size in (1, 2, None):
        found = fad.sparse.jacobian(tridiagonal, mode="fwd", chunk_size=size)(X)
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-13)
        np.testing.assert_allclose(
            fad.sparse.jacobian(tridiagonal, mode="rev", chunk_size=size)(X).toarray(), dense, rtol=1e-13
        )


def test_what_is_no_real_function_of_real_numbers_is_refused():
    with pytest.raises(IntegerInputError, match=r"fad.sparse.jacobian"):
        fad.sparse.jacobian(tridiagonal)(np.arange(3))
    with pytest.raises(ComplexGradientError, match=r"fad.sparse.jacobian needs a real input"):
        fad.sparse.jacobian(tridiagonal)(X + 1j)
    with pytest.raises(ComplexGradientError, match=r"fad.sparse.jacobian needs a real output"):
        fad.sparse.jacobian(lambda x: x * 1j)(X)
    with pytest.raises(NonScalarOutputError):
        fad.sparse.hessian(tridiagonal)(X)
    with pytest.raises(TypeError, match=r"write fad.sparse.hessian\(f\)\(x\) for fad.sparse.hessian\(f\(x\)\)"):
        fad.sparse.hessian(rosenbrock(X))
    with pytest.raises(ValueError, match=r"must be 'auto', 'fwd' or 'rev', not 'forward'"):
        fad.sparse.jacobian(tridiagonal, mode="forward")


def test_a_stiff_equation_is_solved_with_its_sparse_jacobian():
    from scipy.integrate import solve_ivp

    def heat(t, u):
        return 1e4 * (np.concatenate([u[1:], u[:1] * 0]) - 2 * u + np.concatenate([u[:1] * 0, u[:-1]])) - u**3

    jacobian = fad.sparse.jacobian(lambda u: heat(0.0, u))
    start = np.sin(np.linspace(0, np.pi, 60))
    solved = solve_ivp(heat, (0.0, 0.01), start, method="BDF", jac=lambda t, u: jacobian(u), rtol=1e-8, atol=1e-10)
    dense = solve_ivp(heat, (0.0, 0.01), start, method="BDF", rtol=1e-8, atol=1e-10)
    assert solved.success
    assert jacobian.explain(start).endswith("passes: 3 forward")
    np.testing.assert_allclose(solved.y[:, -1], dense.y[:, -1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "line",
    [
        "fad.sparse", "fad.scipy.special", "import fad.scipy.special", "import fad.sparse",
        "from fad.scipy.integrate import solve_ivp", "import fad.compat.autograd.scipy.stats",
        "fad.eager.erf(fad.eager.ones(2))", "fad.eager.special.erf", "fad.eager.linalg.matrix_exp(fad.eager.eye(2))",
        "fad.random.truncated_normal(fad.random.key(0), -1.0, 1.0, (2,))",
    ],
)  # fmt: skip
def test_without_scipy_an_error_says_what_to_install(line):
    program = (
        "import sys; sys.modules['scipy'] = None; import fad\n"
        f"try: {line}\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "ExtraNotInstalledError fad.scipy and fad.sparse need SciPy: pip install 'fad[scipy]'" in run.stdout


@pytest.mark.parametrize("output", [None, (), {"a": ()}])
def test_a_function_without_outputs_has_a_jacobian_without_rows(output):
    derivative = fad.sparse.jacobian(lambda x: output)
    for run in (derivative, fad.jit(derivative)):
        for x in (np.ones(3), np.zeros(3)):
            assert run(x).shape == (0, 3)


@pytest.mark.parametrize("seed", range(20))
def test_rows_to_be_computed_alone_are_those_that_cost_least_so(seed):
    rng = np.random.default_rng(seed)
    counts, price = rng.integers(0, 12, rng.integers(0, 15)) ** 2, rng.choice([0.5, 1.0, 2.0])
    ordered = np.append(np.sort(counts)[::-1], 0)
    costs = ordered + price * np.arange(ordered.size)
    found, alone = find_heavy(counts, price)
    assert found == min(costs)
    assert price * len(alone) + max(np.delete(counts, alone), default=0) == found


@pytest.mark.parametrize("size", [0, 1, 50])
def test_numbers_are_sorted_by_counting_as_a_stable_sort_does(size):
    keys = np.random.default_rng(size).integers(0, 9, size).astype(np.int32)
    assert np.array_equal(sort_by_counting(keys, 9), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("size", [1, 9, 20, 51, 52])
def test_a_grid_takes_at_most_the_passes_that_colouring_column_by_column_takes(size):
    def on_grid(u):
        around = np.pad(u.reshape(size, size), 1)
        around = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
        return (around - 4 * u.reshape(size, size)).reshape(-1) + u**3

    u = np.linspace(-1.0, 1.0, size * size)
    pattern = fad.sparse.pattern(on_grid)(u)
    plan = plan_passes(pattern, "fwd")
    with mock.patch.object(colouring, "_colour_in_turns", return_value=None):
        assert cost(plan) <= cost(plan_passes(pattern, "fwd"))
    seen = np.zeros((plan.pushes, size * size), int)
    for column, colour in enumerate(plan.pushed):
        seen[colour] += pattern[:, [column]].toarray().ravel()
    assert seen.max() == 1
