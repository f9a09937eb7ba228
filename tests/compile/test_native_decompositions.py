"""Eigenvalues, singular values, QR and pseudo-inverses are native, by NumPy's own LAPACK: to the last bit."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from natively import compiled, native

import fad

SHAPES = [(1, 1), (3, 3), (6, 6), (2, 5, 5), (40, 40), (7, 3), (3, 7), (2, 3, 4, 2), (1, 5), (5, 1)]
OF_ALL = {
    "svd": np.linalg.svd, "reduced svd": lambda a: np.linalg.svd(a, full_matrices=False),
    "qr": np.linalg.qr, "complete qr": lambda a: np.linalg.qr(a, "complete"), "r of qr": lambda a: np.linalg.qr(a, "r"),
    "pinv": np.linalg.pinv,
}  # fmt: skip
OF_SQUARE = {
    "eigh": np.linalg.eigh, "eigh of the upper triangle": lambda a: np.linalg.eigh(a, "U"),
    "eigh of what is transposed": lambda a: np.linalg.eigh(np.swapaxes(a, -1, -2) * 1.5),
}  # fmt: skip
VALUES = {"eigvalsh": np.linalg.eigvalsh, "svdvals": lambda a: np.linalg.svd(a, compute_uv=False)}
RNG = np.random.default_rng(0)
A = RNG.normal(size=(5, 5)) * 0.3


def draw(shape, dtype=float):
    return np.random.default_rng(len(shape) + shape[-1]).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("name", [*OF_ALL, *OF_SQUARE])
def test_results_are_numpys_to_the_last_bit(name):
    f = {**OF_ALL, **OF_SQUARE}[name]
    for dtype in (float, np.float32):
        for shape in SHAPES:
            a = draw(shape, dtype)
            if (name in OF_SQUARE and shape[-1] != shape[-2]) or (name == "pinv" and dtype is np.float32):
                continue
            for got, wanted in zip(fad.tree.leaves(native(f, a)), fad.tree.leaves(f(a)), strict=True):
                assert (got.dtype, got.shape, got.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes()), (a, f)


@pytest.mark.parametrize("name", VALUES)
def test_values_alone_are_numpys(name):
    for shape in SHAPES:
        if name == "svdvals" or shape[-1] == shape[-2]:
            a = draw(shape)
            np.testing.assert_allclose(native(VALUES[name], a), VALUES[name](a), rtol=1e-12, atol=1e-13)


def turned(x):
    """Principal axes of a matrix that changes from step to step."""
    for _ in range(40):
        w, v = np.linalg.eigh(A + A.T + np.diag(x))
        x = np.tanh(v[:, 0] ** 2 * w[-1] + 0.5 * x)
    return x


def stretched(x):
    for _ in range(40):
        u, s, vh = np.linalg.svd(A + np.diag(x))
        x = np.tanh((u @ vh)[0] + s[0] * x * 0.1)
    return x


def triangular(x):
    total = np.zeros(5)
    for k in range(40):
        q, r = np.linalg.qr(A * (1.0 + 0.01 * k) + np.diag(x + 2.0))
        total = 0.5 * total + r[0] + q[:, 0]
    return total


def fitted(x):
    for _ in range(40):
        x = np.tanh(np.linalg.lstsq(A + np.diag(x + 3.0), x)[0])
    return x


def of_stacks(x):
    total = 0.0
    for k in range(10):
        total = total + np.linalg.eigvalsh((A + A.T) * np.cos(x + k)[:, None, None])
    return total[0]


@pytest.mark.parametrize("f", [turned, stretched, triangular, fitted, of_stacks], ids=lambda f: f.__name__)
def test_a_loop_of_decompositions_is_one_function_and_does_what_numpy_does(f):
    x = RNG.normal(size=5)
    with fad.config.use(loops="capture"):
        np.testing.assert_allclose(native(f, x), f(x), rtol=1e-11, atol=1e-13)
        assert "one function each" in compiled(f, x).explain()


@pytest.mark.parametrize("f", [np.linalg.eigh, np.linalg.svd, np.linalg.pinv])
def test_what_does_not_converge_is_numpys_error_and_the_next_call_is_right(f):
    def program(a):
        return sum(np.sum(y) for y in fad.tree.leaves(f(a)))

    a = draw((6, 6))
    fast = compiled(program, a)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="converge"):
            fast(np.full((6, 6), np.nan))
        np.testing.assert_allclose(fast(a), program(a))
