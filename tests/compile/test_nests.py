"""Loop nests as one function: values to the bit, derivatives, errors, interrupts, arrays that are changed in place."""

import _thread
import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from random_nests import random_nest, total

import fad
from fad.compile.pipeline import optimise
from fad.compile.targets.select import using
from fad.staging.record import make_graph


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def nest(f, *args):
    """Return f compiled for such arguments; all its loops must be one function."""
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    assert "loops are one function each" in fast.explain(), fast.explain()
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    return fast


def assert_same(f, *args, derivative=True):
    """Check that f gives in one function what it gives without jit, to the bit, and the same gradient."""
    for got, wanted in zip(fad.tree.leaves(nest(f, *args)(*args)), fad.tree.leaves(f(*args)), strict=True):
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        np.testing.assert_array_equal(got, wanted)
    if derivative:
        g = fad.grad(total(lambda *xs: fad.tree.leaves(f(*xs))), argnums=tuple(range(len(args))))
        for got, wanted in zip(nest(g, *args)(*args), g(*args), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)


def gauss_seidel(A):
    def column(j, state):
        i, A = state
        A = A.copy()
        A[i, j] = (A[i - 1, j] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j]) / 5.0
        return i, A

    def row(i, A):
        return fad.fori_loop(1, A.shape[1] - 1, column, (i, A))[1]

    return fad.fori_loop(0, 3, lambda t, A: fad.fori_loop(1, A.shape[0] - 1, row, A), A)


def heat(u):
    def step(t, u):
        u = u.copy()
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return u

    return fad.fori_loop(0, 5, step, u)


def test_updates_of_elements_are_in_place_and_round_as_numpys(rng):
    assert_same(gauss_seidel, rng.normal(size=(7, 8)))


def test_updates_of_slices_round_as_numpys(rng):
    assert_same(heat, rng.normal(size=300))


@pytest.mark.parametrize("n", [3, 5, 40, 300])
def test_an_update_that_reads_what_it_overwrites_reads_the_old_values(rng, n):
    def shift(t, u):
        u = u.copy()
        u[1:] = u[:-1]
        u[:-1] = 0.5 * u[1:] + u[:-1]
        u[::2] = u[::-1][::2] + 1.0
        return u

    assert_same(lambda u: fad.fori_loop(0, 4, shift, u), rng.normal(size=n))


MOVED = {
    "backwards": lambda part: part[::-1],
    "rows backwards": lambda part: part[::-1, :],
    "transposed": lambda part: part.T,
    "looked up": lambda part: part[np.arange(18)[::-1].copy()],
}


@pytest.mark.parametrize("of", [lambda part: 2.0 * part, lambda part: part], ids=["computed", "stored"])
@pytest.mark.parametrize("moved", MOVED)
def test_what_an_update_reads_at_other_places_is_read_before_they_are_overwritten(rng, moved, of):
    def step(t, u):
        u = u.copy()
        u[1:-1, 1:-1] += 0.3 * MOVED[moved](of(u[1:-1, 1:-1]))
        return u

    assert_same(lambda u: fad.fori_loop(0, 6, step, u), rng.normal(size=(20, 20)))


@pytest.mark.parametrize("n", [4, 500])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_arrays_may_be_exchanged_in_each_step(rng, n, steps):
    def step(t, state):
        a, b, c = state
        return b, 0.5 * a + c, b[::-1] + 0.0

    def f(a, b, c, n):
        return fad.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(s[0], s[1])), (0, (a, b, c)))[1]

    args = [rng.normal(size=n) for _ in range(3)]
    fast = nest(f, *args, steps)
    for got, wanted in zip(fast(*args, steps), f(*args, steps), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_new_state_may_be_read_from_several_old_ones(rng):
    def step(t, state):
        a, b = state
        return 0.9 * b + a[0], a

    assert_same(lambda a, b: fad.fori_loop(0, 5, step, (a, b)), rng.normal(size=200), rng.normal(size=200))


def test_a_loop_of_no_steps_gives_its_first_state(rng):
    def f(x, n):
        def step(i, state):
            x, s = state
            x = x.copy()
            x[i] = s
            return x, s + x[0]

        return fad.fori_loop(0, n, step, (x, x[1]))

    x = rng.normal(size=200)
    fast = nest(f, x, 3)
    for n in (3, 0, -2, 1):
        for got, wanted in zip(fast(x, n), f(x, n), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_rows_of_xs_and_ys_run_backwards_too(rng):
    def f(x, A):
        def step(s, row):
            s = 0.5 * s + row[1:3]
            return s, (s, row[0] * row, row[3])

        return fad.scan(step, x, A, reverse=True)

    assert_same(f, rng.normal(size=2), rng.normal(size=(50, 4)))


def test_bounds_may_depend_on_outer_counters(rng):
    def f(L, b):
        def row(i, x):
            s = fad.fori_loop(0, i, lambda j, s: s - L[i, j] * x[j], b[i])
            x = x.copy()
            x[i] = s / L[i, i]
            return x

        return fad.fori_loop(0, len(b), row, np.zeros(len(b)))

    args = rng.normal(size=(9, 9)) + 9 * np.eye(9), rng.normal(size=9)
    np.testing.assert_array_equal(nest(f, *args)(*args), f(*args))


def test_negative_positions_count_from_the_end(rng):
    def f(x, k):
        def step(i, x):
            x = x.copy()
            x[k - i] += x[i] * x[-1 - i]
            return x

        return fad.fori_loop(0, 3, step, x)

    x = rng.normal(size=40)
    fast = nest(f, x, -1)
    for k in (-1, 2, 39):
        np.testing.assert_array_equal(fast(x, k), f(x, k))


@pytest.mark.parametrize("k", [3, -42, 60])
def test_a_position_outside_an_array_is_numpys_error(rng, k):
    def f(x, k):
        def step(i, x):
            x = x.copy()
            x[i] = x[i + k]
            return x

        return fad.fori_loop(0, 40, step, x)

    x = rng.normal(size=40)
    fast = nest(f, x, 0)
    with pytest.raises(IndexError, match="out of bounds"):
        fast(x, k)
    np.testing.assert_array_equal(fast(x, -1), f(x, -1))


def test_branches_are_branches(rng):
    def f(x, k):
        def step(i, state):
            x, up, n = state
            x = fad.cond(up, lambda x: x[::-1] * 0.5, lambda x: x + n, x)
            n = fad.switch(i % 3, [lambda n: n + 1, lambda n: n, lambda n: n * 2], n)
            return x, np.logical_not(up), n

        return fad.fori_loop(0, 7, step, (x, x[0] > 100.0, k))

    for n in (4, 300):
        x = rng.normal(size=n)
        for got, wanted in zip(nest(f, x, 3)(x, 3), f(x, 3), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32])
def test_other_dtypes_compute_as_numpy(rng, dtype):
    def f(A):
        def step(i, A):
            A = A.copy()
            A[i, 1:] = A[i - 1, :-1] + A[i, 1:]
            A[:, i] = np.maximum(A[:, i], A[i, i])
            return A

        return fad.fori_loop(1, 5, step, A)

    assert_same(f, (100 * rng.normal(size=(6, 6))).astype(dtype), derivative=False)


@pytest.mark.parametrize("n", [5, 12])  # on the stack, and elsewhere
def test_a_row_read_before_an_inner_loop_is_as_it_was_behind_it(rng, n):
    def f(x, A):
        def step(i, state):
            total, A = state
            A = 0.5 * A
            A[2] += x
            row = A[2]
            A = fad.fori_loop(0, 3, lambda j, A: fad.cond(j == 1, lambda A: 0.5 * A, lambda A: A, A), A)
            return total + row, A

        return fad.fori_loop(0, 3, step, (x, A))

    assert_same(f, rng.normal(size=n), rng.normal(size=(n, n)))


def test_booleans_are_kept_in_arrays(rng):
    def f(x):
        def step(i, state):
            seen, x = state
            seen = seen.copy()
            seen[i] = np.logical_or(x[i] > 0.0, seen[i - 1])
            return seen, np.where(seen, x, x * 0.5)

        return fad.fori_loop(1, 20, step, (np.zeros(20, bool), x))

    assert_same(f, rng.normal(size=20), derivative=False)


def test_sums_and_products_of_rows(rng):
    def f(A, x):
        def step(i, state):
            A, x = state
            A = A.copy()
            A[i, 1:-1] = A[i, 1:-1] / np.sum(np.abs(A[i])) + 0.1 * np.dot(A[i - 1, 2:], x[2:])
            return A, 0.5 * x + 0.01 * np.tanh(A[1, 2]) * (A.T @ A[:, i]) / (1 + np.max(A, axis=0) ** 2)

        return fad.fori_loop(0, len(A), step, (A, x))

    args = rng.normal(size=(30, 30)), rng.normal(size=30)
    for g in (f, fad.grad(total(f), argnums=(0, 1))):
        for got, wanted in zip(nest(g, *args)(*args), g(*args), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-12)


def test_a_long_sum_within_a_nest_is_compensated():
    def f(x):
        def step(i, s):
            return s * 0.0 + np.sum(x * (i + 1.0))

        return fad.fori_loop(0, 2, step, 0.0)

    x = np.full(60_000, 0.1)
    got = nest(f, x)(x)
    assert abs(got - 12_000.0) < 1e-10


def test_pythons_integers_grow_beyond_64_bits():
    def f(k, x):
        def step(i, state):
            k, x = state
            x = x.copy()
            x[i] += 1.0
            return k * 3, x

        return fad.fori_loop(0, 60, step, (k, x))

    x = np.zeros(100)
    fast = fad.jit(f)
    for k in (1, 0, 7):
        assert fast(k, x)[0] == k * 3**60


def test_what_a_caller_holds_is_not_overwritten(rng):
    A = rng.normal(size=(7, 8))
    before = A.copy()
    fast = nest(gauss_seidel, A)
    one, other = fast(A), fast(2.0 * A)
    np.testing.assert_array_equal(A, before)
    np.testing.assert_array_equal(one, gauss_seidel(A))
    np.testing.assert_array_equal(other, gauss_seidel(2.0 * A))


def test_a_linear_body_stores_nothing(rng):
    for f, x in ((gauss_seidel, rng.normal(size=(6, 6))), (heat, rng.normal(size=20))):
        graph = optimise(make_graph(fad.grad(lambda x, f=f: np.sum(f(x) ** 2)))(x))
        loops = [eq for eq in graph.equations if eq.prim.archetype == "loop"]
        assert len(loops) == 2
        assert all(len(eq.outs) == eq.params["carries"] for eq in loops)
        assert all(len(eq.ins) == eq.params["consts"] + eq.params["carries"] for eq in loops)


def test_the_cotangent_of_what_a_nest_reads_is_added_up_in_one_array(rng):
    def f(L, x):
        def row(i, x):
            s = fad.fori_loop(0, 6, lambda j, s: s + L[i, j] * x[j], 0.0)
            x = x.copy()
            x[i] = s
            return x

        return np.sum(fad.fori_loop(0, 6, row, x))

    args = rng.normal(size=(6, 6)), rng.normal(size=6)
    graph = optimise(make_graph(fad.grad(f))(*args))
    backward = graph.equations[-1].params["body"]
    sizes = [backward.types[o].shape for eq in backward.equations for o in eq.outs if eq.prim.name in ("add", "scan")]
    assert sizes.count((6, 6)) == 1  # the loop's own sum, which begins with that of the loop around it
    np.testing.assert_allclose(fad.jit(fad.grad(f))(*args), fad.grad(f)(*args), rtol=1e-12)


@pytest.fixture
def interrupts():
    """Let Ctrl-C raise KeyboardInterrupt, also where the shell that started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_a_nest():
    def f(x, n):
        def step(i, x):
            def inner(j, x):
                x = x.copy()
                x[j] = x[j] * 0.999 + i * 1e-9
                return x

            return fad.fori_loop(0, 100, inner, x)

        return fad.fori_loop(0, n, step, x)

    x = np.ones(100)
    fast = nest(f, x, 3)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    started = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fast(x, 10**12)
    assert time.perf_counter() - started < 5.0
    timer.join()
    np.testing.assert_array_equal(fast(x, 2), f(x, 2))


def test_a_body_that_is_not_fit_runs_by_the_driver(rng):
    def f(A):
        return fad.fori_loop(0, 4, lambda i, A: 0.01 * (A @ A) + i, A)

    A = rng.normal(size=(64, 64))
    with using("llvm"):
        fast = fad.jit(f)
        fast(A)
        got = fast(A)
    assert "one function each" not in fast.explain()
    np.testing.assert_allclose(got, f(A), rtol=1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_a_random_nest_gives_what_it_gives_in_numpy(seed):
    f, args = random_nest(seed, whiles=seed % 3 == 0)
    with using("numpy"):
        slow = fad.jit(f)
        slow(*args)
        wanted = slow(*args)
    for got, a in zip(nest(f, *args)(*args), wanted, strict=True):
        np.testing.assert_allclose(got, a, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(100, 106))
def test_the_gradient_of_a_random_nest_is_what_it_is_in_numpy(seed):
    f, args = random_nest(seed)
    g = fad.grad(total(f), argnums=(0, 1, 2, 3, 4))
    with using("numpy"):
        slow = fad.jit(g)
        slow(*args)
        wanted = slow(*args)
    for got, a in zip(nest(g, *args)(*args), wanted, strict=True):
        np.testing.assert_allclose(got, a, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("n", [28, 30, 31])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_loops_that_run_backward_along_arrays_are_compiled(n, dtype):
    x = np.linspace(0.1, 1.0, n).astype(dtype)

    def turn(x):
        for _ in range(200):
            x = 0.5 * x + 0.1 * x[::-1] + 0.01 * (2 * x[::-1]).sum()
        return x

    np.testing.assert_allclose(nest(turn, x)(x), turn(x), rtol=1e-12 if dtype is np.float64 else 2e-5)


def test_loops_with_different_hints_are_compiled_together():
    x = np.linspace(0.1, 1.0, 600)

    def sums(x):
        for _ in range(200):
            x = 0.5 * x + 1e-4 * ((2 * x).sum() + (x[:100] ** 2).sum()) + 1e-4 * (x[::-1] * x).sum()
        return x

    np.testing.assert_allclose(nest(sums, x)(x), sums(x), rtol=1e-12)


QUIET = {
    "maximum": lambda x: (x[::-1] * 2.0).max(),
    "power": lambda x: x[::-1] ** x,
    "function of the C library": lambda x: np.fmod(x[::-1], 0.3),
    "system": lambda x: np.linalg.solve((np.outer(x[:9], x[:9]) + np.eye(9))[::-1], x[:9]),
    "sum": lambda x: (x[::-1] * x).sum(),
}


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_printed_of_loops_that_run_backward(name, capfd):
    f, x = QUIET[name], np.linspace(0.1, 1.0, 41)

    def turn(x):
        total = 0.0 * f(x)
        for k in range(120):
            total = 0.5 * total + f(x + 0.01 * k)
        return total

    np.testing.assert_allclose(nest(turn, x)(x), turn(x), rtol=1e-11)
    assert capfd.readouterr().err == ""
