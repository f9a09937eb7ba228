"""Gathers and scatters by integer arrays run natively, with NumPy's answers and NumPy's errors."""

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad import control
from fad.compile.targets.select import using

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(0)


def program(fast):
    (signature,) = fast._signatures.values()
    return signature.paths[0].program


X = RNG.normal(size=(6, 5, 5))
I = np.array([[1, -1, 3], [0, 0, 5]])
J = np.array([2, -5, 0])
LOOKUPS = {
    "rows": lambda x, i, j: x[i],
    "rows of a matrix": lambda x, i, j: x[0][j],
    "columns": lambda x, i, j: x[:, j],
    "last axis": lambda x, i, j: x[..., j],
    "two arrays": lambda x, i, j: x[i, j],
    "three arrays": lambda x, i, j: x[i, j, j],
    "two arrays behind": lambda x, i, j: x[:, j, j],
    "elements": lambda x, i, j: x[:, 0, 0][i],
    "take": lambda x, i, j: np.take(x, j, axis=1),
    "take along": lambda x, i, j: np.take_along_axis(x[0], j[:, None], axis=0),
    "one index for all": lambda x, i, j: x[i[:, :1], j],
    "of what is strided": lambda x, i, j: (x[::2].T[j[2:]], x[:, ::-1][:, j]),
    "then computed with": lambda x, i, j: np.sin(x[i]) * x[j][1:2],
}


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
def test_a_lookup_gives_what_numpy_gives(name, dtype):
    x = X if dtype is np.float64 else (10 * X).astype(dtype)
    f = LOOKUPS[name]
    if dtype in (np.int64, bool) and name == "then computed with":
        x = x.astype(np.float64)
    fast = compiled(f, x, I, J)
    assert name == "of what is strided" or "getitem" not in program(fast).fallbacks
    for i, j in ((I, J), (I[::-1] - 1, np.abs(J) - 1)):
        for a, b in zip(fad.tree.leaves(fast(x, i, j)), fad.tree.leaves(f(x, i, j)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-14)
            assert a.dtype == b.dtype


@pytest.mark.parametrize("name", LOOKUPS)
def test_index_arrays_may_be_of_either_width(name):
    f = LOOKUPS[name]
    for kinds in ((np.int32, np.int32), (np.int64, np.int32)):
        i, j = I.astype(kinds[0]), J.astype(kinds[1])
        fast = compiled(f, X, i, j)
        assert name == "of what is strided" or "getitem" not in program(fast).fallbacks
        for a, b in zip(fad.tree.leaves(fast(X, i, j)), fad.tree.leaves(f(X, i, j)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_derivative_of_a_lookup_adds_up_repeated_rows(name, dtype):
    f = LOOKUPS[name]
    x = X.astype(dtype)

    def loss(x, i, j):
        return sum(np.sum(y * y) for y in fad.tree.leaves(f(x, i, j)))

    for g, args in (
        (fad.grad(loss), (x, I, J)),
        (lambda x: fad.grad(loss)(x, I, J), (x,)),
    ):
        fast = compiled(g, *args)
        np.testing.assert_allclose(fast(*args), g(*args), rtol=1e-12 if dtype is np.float64 else 1e-5, atol=1e-6)


def test_embeddings_and_labels_need_no_call_of_numpy():
    words, labels = RNG.integers(0, 50, (8, 6)), RNG.integers(0, 3, 8)

    def loss(table, w):
        z = np.sum(table[words], axis=1) @ w
        z = z - np.max(z, axis=1, keepdims=True)
        return -np.mean((z - np.log(np.sum(np.exp(z), axis=1, keepdims=True)))[np.arange(8), labels])

    args = RNG.normal(size=(50, 4)), RNG.normal(size=(4, 3))
    fast = compiled(fad.value_and_grad(loss, argnums=(0, 1)), *args)
    assert program(fast).fallbacks == []
    for a, b in zip(
        fad.tree.leaves(fast(*args)), fad.tree.leaves(fad.value_and_grad(loss, argnums=(0, 1))(*args)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_updates_at_integer_arrays_add_or_write_in_order(kind):
    x = RNG.normal(size=(6, 4))
    i = np.array([1, 1, -1, 0], kind)
    v = RNG.normal(size=(4, 4))

    def f(x, v, i):
        return fad.numpy.at(x)[i].add(v), fad.numpy.at(x)[i].set(v), fad.numpy.at(x)[i, i % 4].add(2.0)

    fast = compiled(f, x, v, i)
    assert not {"index_add", "index_set"} & set(program(fast).fallbacks)
    for a, b in zip(fast(x, v, i), f(x, v, i), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "v",
    [np.arange(1.0, 4.0), np.arange(6.0).reshape(3, 2).T, np.array([[4.0], [5.0]])],
    ids=["row", "turned", "column"],
)
def test_constants_that_lie_unevenly_are_added_and_written_natively(v):
    x, i = RNG.normal(size=9), np.array([[0, 3, 5], [1, 2, 7]])

    def f(x, i):
        return fad.numpy.at(x)[i].add(v), fad.numpy.at(x)[i].set(v)

    with using("llvm"):
        fast = compiled(f, x, i)
        assert not {"index_add", "index_set"} & set(program(fast).fallbacks)
        for places in (i, i[::-1].copy()):
            for a, b in zip(fast(x, places), f(x, places), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: fad.numpy.at(x)[i].add(1.0),
        lambda x, i: fad.numpy.at(x)[i].set(np.ones((0, 5, 5))),
        lambda x, i: fad.numpy.at(x)[:, i].add(2.0),
        lambda x, i: fad.numpy.at(np.zeros((3, 2)))[i].add(x[i, 0, :2]),
        lambda x, i: fad.grad(lambda x: np.sum(x[i] ** 2))(x),
        lambda x, i: np.bincount(i, minlength=3),
        lambda x, i: np.bincount(i),
        lambda x, i: np.bincount(i, weights=x[i, 0, 0]),
        lambda x, i: x[i],
    ],
)
def test_an_empty_index_looks_up_and_changes_nothing(f):
    empty = np.zeros(0, np.int64)
    fast = fad.jit(f)
    for _ in range(3):
        got, want = fast(X, empty), f(X, empty)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype


def test_an_index_out_of_range_raises_numpys_error_and_later_calls_are_right():
    f = LOOKUPS["two arrays"]
    fast = compiled(f, X, I, J)
    for i, j in ((I + 1, J), (I, J - 1), (I - 7, J), (I, J + 3)):
        with pytest.raises(IndexError, match="out of bounds"):
            fast(X, i, j)
    np.testing.assert_array_equal(fast(X, I, J), f(X, I, J))


MANY, AMONG = np.random.default_rng(3).integers(-500, 500, 3000), np.random.default_rng(4).integers(0, 7, 3000)


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_large_constant_index_arrays_count_from_the_end_where_they_are_negative(dtype):
    x = np.random.default_rng(5).normal(size=(500, 7))
    i, j = MANY.astype(dtype), AMONG.astype(dtype)

    def look(x):
        i, j = MANY.astype(dtype), AMONG.astype(dtype)  # nobody else has them
        return x[i], x[i, j], x[:, j], fad.numpy.at(x)[i, j].add(x[j, j]), fad.numpy.at(x)[i].set(x[j])

    for a, b in zip(native(look, x), look(x), strict=True):
        np.testing.assert_array_equal(a, b)
    total = native(fad.grad(lambda x: np.sum(x[i.copy(), j.copy()] ** 2)), x)
    counted = np.zeros_like(x)
    np.add.at(counted, (i, j), 1.0)
    np.testing.assert_allclose(total, 2.0 * x * counted, rtol=1e-14)


def test_a_large_constant_index_array_out_of_range_raises_numpys_error():
    run = fad.jit(lambda x: x[MANY.copy()] + 0.0)
    for _ in range(3):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 499"):
            run(np.ones(499))
    np.testing.assert_array_equal(run(np.ones(500)), np.ones(3000))


@pytest.mark.parametrize("n", [1, 40_000])
def test_large_and_single_lookups(n):
    x = RNG.normal(size=(2000, 3))
    i = RNG.integers(-2000, 2000, n)

    def f(x, i):
        return x[i], np.sum(x[i] * x[i])

    fast = compiled(fad.grad(lambda x, i: f(x, i)[1]), x, i)
    np.testing.assert_allclose(fast(x, i), fad.grad(lambda x, i: f(x, i)[1])(x, i), rtol=1e-12)
    np.testing.assert_array_equal(compiled(f, x, i)(x, i)[0], x[i])


# --- in loops ------------------------------------------------------------------------------------------------------

PAIRS = RNG.integers(0, 6, (9, 2))


def _spring(pos):
    def step(i, s):
        p, v = s
        d = p[PAIRS[:, 0]] - p[PAIRS[:, 1]]
        pull = d / np.sqrt(np.sum(d * d, 1) + 0.1)[:, None]
        force = np.zeros_like(p).at[PAIRS[:, 0]].add(-pull).at[PAIRS[:, 1]].add(pull)
        return p + 0.01 * v, v + 0.01 * force

    return control.fori_loop(0, 10, step, (pos, 0.5 * pos))[0]


LOOPS = {
    "a walk through a table": (
        lambda table: control.scan(lambda s, i: (table[s, i % 4], s), 1, np.arange(12))[1], RNG.integers(0, 4, (4, 4)),
    ),
    "a recurrence in place": (
        lambda x: control.fori_loop(2, 20, lambda i, c: c.at[i].set(c[i - 1] * 0.5 - c[i - 2]), x), RNG.normal(size=20),
    ),
    "a histogram": (
        lambda k: control.fori_loop(0, 30, lambda i, c: c.at[k[i]].add(1.0), 0.0 * k[:10]), RNG.integers(0, 10, 30),
    ),
    "the rank of pages": (
        lambda r: control.fori_loop(0, 20, lambda i, r: np.zeros_like(r).at[PAIRS[:, 0]].add(r[PAIRS[:, 1]]) + 0.1, r),
        RNG.normal(size=6),
    ),
    "springs": (_spring, RNG.normal(size=(6, 3))),
    "the gradient through springs": (fad.grad(lambda p: np.sum(_spring(p) ** 2)), RNG.normal(size=(6, 3))),
    "a table between its rows": (
        lambda t: control.fori_loop(0, 9, lambda i, t: np.interp(t, np.arange(5.0), np.arange(5.0) ** 2) * 0.3, t),
        RNG.uniform(0, 4, 12),
    ),
    "a branch that looks up": (
        lambda x: control.fori_loop(
            0, 9, lambda i, s: control.cond(s > 0, lambda s: s - x[i], lambda s: s + x[i + 1], s), 0.5
        ), RNG.normal(size=12),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_looks_up_and_adds_up_does_not_return_to_python(name):
    f, x = LOOPS[name]
    with using("numpy"):
        want = fad.jit(f)(x)
    with using("llvm"):
        fast = fad.jit(f)
        fast(x)
        y = fast(x)
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-13)


def test_an_index_out_of_range_in_a_loop_raises_numpys_error_and_later_calls_are_right():
    def f(x, k):  # in a loop, in a loop in it, and in a branch
        inner = lambda s: control.fori_loop(0, 3, lambda j, s: s + x[k[j] + 0 * j], s)
        step = lambda i, s: control.cond(s < 1e9, inner, lambda s: s, s) + x[k[i]]
        return control.fori_loop(0, 3, step, 0.0)

    x = np.arange(5.0)
    with using("llvm"):
        fast = fad.jit(f)
        for k in ([0, 1, 2], [4, 3, 0]):
            assert fast(x, np.array(k)) == 4.0 * sum(k)
        assert "calls of NumPy" not in fast.explain(), fast.explain()
        for k in ([0, 5, 2], [1, 2, -6]):
            with pytest.raises(IndexError, match=f"index {k[1] if k[1] == 5 else -6} is out of bounds"):
                fast(x, np.array(k))
            assert fast(x, np.array([-1, 1, 2])) == 4 * 7.0


MASK = np.random.default_rng(4).random((7, 9)) > 0.6


def through_masks(x):
    y = x * 1.0
    y[0, MASK] = np.sin(x[2, MASK])
    y[1][~MASK] -= 0.5
    y[:, MASK] *= 2.0
    y[MASK[0, :3]] = x[0, 0]
    return y


def through_masks_in_loops(x):
    wall = np.fromfunction(lambda i, j: (i - 3) ** 2 + (j - 4) ** 2 < 5, x[0].shape)
    y = x * 1.0
    for _ in range(20):
        z = 0.9 * y
        for i in range(3):
            z[i, wall] = y[2 - i, wall]
        y[:] = np.roll(z, 1, axis=2)
    return y


@pytest.mark.parametrize("f", [through_masks, through_masks_in_loops])
def test_known_masks_are_places_without_a_call_of_numpy(f):
    x = np.random.default_rng(5).normal(size=(3, 7, 9))
    g = fad.grad(lambda x: np.sum(np.cos(f(x))))
    with fad.config.use(loops="capture"):
        np.testing.assert_allclose(native(f, x), f(x), rtol=1e-13)
        np.testing.assert_allclose(compiled(g, x)(x), g(x), rtol=1e-12, atol=1e-13)


def test_a_mask_of_values_is_another_program_for_other_values():
    def f(x):
        y = x * 1.0
        y[x > 0] = np.sqrt(x[x > 0])
        return y

    x = np.linspace(-1.0, 1.0, 9)
    fast = compiled(f, x)
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    for shift in (0.0, 0.5, -0.5, 5.0, -5.0, 0.0):
        for _ in range(3):
            np.testing.assert_array_equal(fast(x + shift), f(x + shift))


def test_a_known_mask_may_choose_nothing_or_all():
    def f(x):
        y = x * 1.0
        y[1, MASK & False] = x[0, MASK & False]
        y[2, MASK | True] = x[0, MASK | True] * 2.0
        y[2, :, MASK[0]] += 1.0
        return y

    x = np.random.default_rng(5).normal(size=(3, 7, 9))
    g = fad.grad(lambda x: np.sum(np.cos(f(x))))
    np.testing.assert_array_equal(compiled(f, x)(x), f(x))
    np.testing.assert_allclose(compiled(g, x)(x), g(x), rtol=1e-13)
