"""Contractions: einsum in every form, and the products written in it."""

import numpy as np
import pytest

import fad


def _random_einsum(rng):
    """Draw subscripts and operands: repeated letters, unit axes, ellipses, implicit and explicit results."""
    letters = "abcde"[: rng.integers(1, 6)]
    sizes = {c: int(rng.integers(1, 4)) for c in letters}
    dots = rng.random() < 0.3
    terms, operands = [], []
    for _ in range(rng.integers(1, 5)):
        term = "".join(rng.choice(list(letters), rng.integers(0, 4)))
        own: dict = {}
        shape = tuple(own.setdefault(c, sizes[c] if rng.random() > 0.15 else 1) for c in term)
        if dots and rng.random() < 0.7:
            at, width = int(rng.integers(0, len(term) + 1)), int(rng.integers(0, 3))
            term, shape = term[:at] + "..." + term[at:], shape[:at] + (2, 3)[2 - width :] + shape[at:]
        terms.append(term)
        operands.append(rng.standard_normal(shape))
    subscripts = ",".join(terms)
    if rng.random() < 0.7:
        used = [c for c in letters if c in subscripts]
        result = "".join(rng.permutation(used)[: rng.integers(0, len(used) + 1)]) if used else ""
        subscripts += "->" + ("..." if "." in subscripts else "") + result
    return subscripts, operands


@pytest.mark.parametrize("seed", range(200))
def test_einsum_of_traced_operands_equals_numpys_whatever_the_subscripts(seed):
    subscripts, operands = _random_einsum(np.random.default_rng(seed))
    f = lambda *xs: np.einsum(subscripts, *xs)
    try:
        wanted = f(*operands)
    except ValueError:
        with pytest.raises(ValueError, match="einsum"):
            fad.jvp(f, tuple(operands), tuple(operands))
        return
    value, tangent = fad.jvp(f, tuple(operands), tuple(operands))
    np.testing.assert_allclose(value, wanted, atol=1e-12)
    np.testing.assert_allclose(tangent, len(operands) * wanted, atol=1e-12)  # homogeneous: Euler's identity
    ct = np.ones_like(wanted)
    back = fad.vjp(f, *operands)[1](ct)
    for x, g in zip(operands, back, strict=True):
        np.testing.assert_allclose(np.sum(x * g), np.sum(wanted), atol=1e-11)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int32, np.uint16, np.float32])
def test_einsum_of_traced_operands_keeps_the_dtype_of_narrow_numbers(dtype):
    x, y = np.array([[3, 0, 2], [1, 5, 0]], dtype), np.array([[1, 2], [0, 4]], dtype)
    for subscripts, operands in (("ij->i", (x,)), ("ij,kl->k", (x, y)), ("ii->", (y,)), ("ij,kl->", (x, y))):
        want = np.einsum(subscripts, *operands)
        (y_traced,) = fad.make_graph(lambda *xs, s=subscripts: np.einsum(s, *xs))(*operands)(*operands)
        np.testing.assert_array_equal(y_traced, want)
        assert y_traced.dtype == want.dtype


def test_a_long_chain_is_multiplied_in_a_good_order():
    # In the order written, the intermediate of the first two operands would hold 10**10 numbers.
    n = 100_000
    u, v, w = np.ones(n), np.ones(n), np.ones(n)
    g = fad.grad(lambda u: np.einsum("i,j,j->", u, v, w))(u)
    np.testing.assert_array_equal(g, np.full(n, float(n)))


def test_errors_of_shapes_are_numpys():
    x = np.ones((2, 3))
    for f in (
        lambda x: np.einsum("ij,jk", x, x),
        lambda x: np.tensordot(x, x, 1),
        lambda x: x @ x,
        lambda x: np.dot(x, x),
    ):
        with pytest.raises(ValueError, match=r"mismatch|size"):
            fad.grad(lambda x, f=f: np.sum(f(x)))(x)


def test_products_of_mixed_precision_give_each_operand_a_cotangent_of_its_own_dtype():
    a, b = np.ones((2, 3), "f4"), np.ones((3, 2), "c16")
    for f in (np.matmul, np.dot, lambda a, b: np.einsum("ij,jk", a, b), lambda a, b: np.tensordot(a, b, 1)):
        y, pull = fad.vjp(f, a, b)
        ga, gb = pull(np.ones_like(y))
        assert (y.dtype, ga.dtype, gb.dtype) == ("c16", "f4", "c16")


def test_batched_matrices_times_one_matrix_give_its_cotangent_by_one_product():
    x, w = np.random.default_rng(0).standard_normal((5, 4, 3)), np.ones((3, 2))
    g = fad.grad(lambda w: np.sum(np.sin(x @ w)))(w)
    np.testing.assert_allclose(g, np.einsum("bij,bik->jk", x, np.cos(x @ w)))


@pytest.mark.parametrize("f", [lambda x: x.trace() ** 2, lambda x: (x @ x).trace(1) * x.trace(offset=-1)])
def test_the_method_trace_is_the_function(f):
    x = np.random.default_rng(0).standard_normal((3, 3))
    directions = 1e-5 * np.eye(9).reshape(9, 3, 3)
    want = np.reshape([(f(x + e) - f(x - e)) / 2e-5 for e in directions], (3, 3))
    for g in (fad.grad(f), fad.jacfwd(f), fad.jit(fad.grad(f)), lambda x: fad.vmap(fad.grad(f))(x[None])[0]):
        np.testing.assert_allclose(g(x), want, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("subscripts", "shapes", "dtypes"),
    [
        ("i...,i...->...", [(4, 1), (1, 1)], "?l"), ("ij,k->k", [(4, 1), (2,)], "?d"),
        ("ij,k->k", [(200, 2), (2,)], "bd"), ("i,i,k->k", [(3,), (3,), (2,)], "bbd"),
        ("ij,k->k", [(4, 1), (2,)], "?D"), ("ij,k->jk", [(9, 2), (2,)], "fd"),
    ],
)  # fmt: skip
def test_einsum_adds_up_narrow_operands_in_the_dtype_of_the_result(subscripts, shapes, dtypes):
    xs = [np.full(shape, 1 if kind == "?" else 100.1).astype(kind) for shape, kind in zip(shapes, dtypes, strict=True)]
    wanted = np.einsum(subscripts, *xs)
    for found in (fad.jit(lambda *xs: np.einsum(subscripts, *xs))(*xs), fad.ops.products.einsum.einsum(subscripts,
    *xs)):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


_A, _B = np.arange(24.0).reshape(2, 3, 4), np.arange(40.0).reshape(2, 4, 5) - 7.0
_ALONG = [
    (np.matmul, _A, _B, [(1, 2), (1, 2), (2, 0)]), (np.matmul, _A, _B, [(-2, -1), (1, 2), (-1, -2)]),
    (np.matmul, _A, _A, [(2, 0), (0, 2), (0, 1)]), (np.matmul, _A[0, 0], _B, [0, (1, 2), 0]),
    (np.matmul, _A, _A[0, 0], [(1, 2), (0,), (1,)]), (np.vecdot, _A, _A, [1, 1]), (np.vecdot, _A, _A, [(0,), 0, ()]),
    (np.matvec, _A, _A[0, :, 0], [(2, 1), 0, 0]), (np.vecmat, _A[0, 0], _A, [0, (2, 1), 1]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "y", "axes"), _ALONG)
def test_products_along_named_axes_are_numpys(f, x, y, axes):
    wanted = f(x, y, axes=axes)
    run = lambda x, y: f(x, y, axes=axes)
    found, pullback = fad.vjp(run, x, y)
    same = [found, fad.jit(run)(x, y), fad.jvp(run, (x, y), (x, y))[0], fad.vmap(run)(x[None], y[None])[0]]
    for z in same:
        np.testing.assert_array_equal(z, wanted)
    of_x, of_y = pullback(wanted)
    np.testing.assert_allclose(np.sum(of_x * x), np.sum(wanted * wanted))
    np.testing.assert_allclose(np.sum(of_y * y), np.sum(wanted * wanted))
    into = np.zeros_like(wanted)
    f(x, y, out=into, axes=axes)
    np.testing.assert_array_equal(fad.jvp(lambda x: _into(f, x, y, axes, wanted.shape), (x,), (x,))[0], into)


def _into(f, x, y, axes, shape):
    out = np.zeros(shape)
    f(x, y, out=out, axes=axes)
    return out


@pytest.mark.parametrize(
    "axes", [((1, 2), (1, 2), (1, 2)), [(1, 2), (1, 2)], [(1,), (1, 2), (1, 2)], [1, (1, 2), (1, 2)], [(1, 5)] * 3]
)
def test_axes_that_name_no_matrices_are_numpys_errors(axes):
    x = _A
    with pytest.raises((TypeError, ValueError)) as wanted:
        np.matmul(x, x.swapaxes(1, 2), axes=axes)
    with pytest.raises(wanted.type):
        fad.jvp(lambda x: np.matmul(x, x.swapaxes(1, 2), axes=axes), (x,), (x,))


def test_einsum_goes_along_a_path_that_was_planned_for_a_traced_operand():
    a = np.arange(4.0).reshape(2, 2) + 1

    def total(x):
        path, _ = np.einsum_path("ij,jk,kl->", a, x, a)
        return np.einsum("ij,jk,kl->", a, x, a, optimize=path)

    wanted = np.outer(np.sum(a, axis=0), np.sum(a, axis=1))
    for gradient in (fad.grad(total), fad.jit(fad.grad(total))):
        np.testing.assert_allclose(gradient(a), wanted, rtol=1e-14)
