"""Slices whose bounds depend on the counter of a loop: the loop is recorded, and does what NumPy does.

Each program runs as plain NumPy, as one recorded loop, in both lowerings, and under every transform.
"""

import os
import random
import warnings

import numpy as np
import pytest

import fad
from fad.compile.targets.select import has_llvm, using

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
N = 6
RNG = np.random.default_rng(3)
X = RNG.uniform(0.5, 1.5, 9)
Y = RNG.uniform(0.5, 1.5, 9)
SQUARE = RNG.normal(size=(N, N)) + 5 * np.eye(N)
SYMMETRIC = SQUARE @ SQUARE.T
TALL = RNG.normal(size=(N, 4))
VECTOR = RNG.normal(size=N)


@pytest.fixture(params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def loops(f, *args):
    return [eq.prim.name for eq in fad.make_graph(f)(*args).equations].count("scan")


# --- programs of linear algebra ------------------------------------------------------------------------------------


def trisolv(L, b):
    def row(i, x):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]
        return x

    return fad.fori_loop(0, N, row, np.full(N, np.nan))


def back_substitution(U, b):
    def row(k, x):
        i = N - 1 - k
        x[i] = (b[i] - U[i, i + 1 :] @ x[i + 1 :]) / U[i, i]
        return x

    return fad.fori_loop(0, N, row, np.full(N, np.nan))


def durbin(r):
    y = np.full(9, np.nan)
    y[0] = -r[0]

    def step(k, state):
        y, alpha, beta = state
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
        return y, alpha, beta

    return fad.fori_loop(1, 9, step, (y, -r[0], np.float64(1.0)))[0]


def lu(A):
    def row(i, A):
        def lower(j, A):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
            return A

        def upper(j, A):
            A[i, j] -= A[i, :i] @ A[:i, j]
            return A

        return fad.fori_loop(i, N, upper, fad.fori_loop(0, i, lower, A))

    return fad.fori_loop(0, N, row, A.copy())


def cholesky(A):
    A = A.copy()
    A[0, 0] = np.sqrt(A[0, 0])

    def row(i, A):
        def lower(j, A):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
            return A

        A = fad.fori_loop(0, i, lower, A)
        A[i, i] = np.sqrt(A[i, i] - np.dot(A[i, :i], A[i, :i]))
        return A

    return fad.fori_loop(1, N, row, A)


def syr2k(C, A):
    def row(i, C):
        C[i, : i + 1] *= 0.5

        def column(k, C):
            C[i, : i + 1] += A[: i + 1, k] * 1.5 * A[i, k] + A[: i + 1, k] * A[i, k]
            return C

        return fad.fori_loop(0, 4, column, C)

    return fad.fori_loop(0, N, row, C.copy())


def trmm(A, B):
    def row(i, B):
        def column(j, B):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
            return B

        return fad.fori_loop(0, 4, column, B)

    return fad.fori_loop(0, N, row, B.copy())


def symm(C, A):
    def row(i, state):
        def column(j, state):
            C, t = state
            C[:i, j] += 1.5 * C[i, j] * A[i, :i]
            t[j] = C[:i, j] @ A[i, :i]
            return C, t

        C, t = fad.fori_loop(0, 4, column, state)
        C[i, :] += A[i, i] + 1.5 * t
        return C, t

    return fad.fori_loop(0, N, row, (C.copy(), np.zeros(4)))[0]


def covariance(data):
    def step(i, C):
        C[i:4, i] = C[i, i:4] = data[:, i] @ data[:, i:4] / 3.0
        return C

    return fad.fori_loop(0, 4, step, np.zeros((4, 4)))


def leading_blocks(A):
    A = 0.1 * A

    def step(k, y):
        y[:k] += A[:k, :k] @ y[:k] + np.sum(A[:k, :k], axis=0) - np.mean(A[:k, 1:], axis=1)
        y[k] = np.max(A[:k, :k] @ A[:k, :k].T) + np.linalg.norm(A[:k, k:])
        return y

    return fad.fori_loop(1, N, step, np.ones(N))


def moving_window(x):
    def step(i, x):
        x[i : i + 3] *= np.cos(x[i - 1 : i + 2])
        w = x[i + 1 : i + 3]
        w[0] = 2.0 * w[1]
        x[i] += np.prod(x[i : i + 4 : 2]) + x[i + 2 : i - 1 : -1] @ x[i : i + 3]
        return x

    return fad.fori_loop(1, 6, step, x.copy())


def windows_of_two_axes(A):
    def row(i, s):
        def column(j, s):
            block = A[i : i + 2, j : j + 3]
            s[i, 0, j] += np.sum(block * A[0:2, j : j + 3]) + np.linalg.det(A[i : i + 2, 1:3])
            return s

        return fad.fori_loop(0, 3, column, s)

    return fad.fori_loop(0, 4, row, np.zeros((4, 1, 3)))


ALGEBRA = [
    (trisolv, (SQUARE, VECTOR)), (back_substitution, (SQUARE, VECTOR)), (durbin, (X * 0.2,)), (lu, (SQUARE,)),
    (cholesky, (SYMMETRIC,)), (syr2k, (SQUARE, TALL)), (trmm, (SQUARE, TALL)), (symm, (TALL, SQUARE)),
    (covariance, (TALL,)), (leading_blocks, (SQUARE,)), (moving_window, (X,)), (windows_of_two_axes, (SQUARE,)),
]  # fmt: skip

# --- one operation each, for every k of a loop; in x beside the slice there is what none of them may touch ------------

OPERATIONS = {
    "sum": lambda x, y, k: np.sum(x[:k] * y[:k]),
    "sum of the rest": lambda x, y, k: x[k:].sum() - np.sum(y[k:] / x[k:]),
    "both bounds": lambda x, y, k: np.sum(x[k - 1 : k + 2] * y[k : k + 3]),
    "from the end": lambda x, y, k: np.sum(np.log(x[-k:])) + np.sum(x[:-k] ** 2),
    "beyond the end": lambda x, y, k: np.sum(x[k : k + 5] * y[k : k + 5]) + np.sum(x[: 3 * k]),
    "empty": lambda x, y, k: np.sum(x[k:k]) + np.sum(1.0 / x[k + 4 :]) + np.sum(x[9:k]) + x[k : k - 1] @ y[k : k - 1],
    "backward": lambda x, y, k: np.sum(x[:k][::-1] * y[:k]) + x[k::-1] @ y[: k + 1] + x[:k:-1] @ y[k + 1 :],
    "every other": lambda x, y, k: np.sum(x[k : k + 4 : 2]) + np.sum(x[1:8][:k]),
    "part of a part": lambda x, y, k: np.sum(x[: k + 1][1:] * x[: k + 1][:-1]) + x[k:][0] * x[:k][-1],
    "other alignment": lambda x, y, k: (
        np.sum(x[:k] * y[-k:]) + np.sum(x[k:] / y[: 9 - k]) + x[2 : k + 2] @ y[1 : k + 1]
    ),
    "extremes": lambda x, y, k: np.max(x[:k]) * np.min(y[k - 1 :]) + np.argmax(x[:k] * y[:k]) * x[0],
    "mean and variance": lambda x, y, k: np.mean(x[:k] ** 2) + np.var(x[: k + 1]) + x[: k + 1].std(ddof=0),
    "product": lambda x, y, k: np.prod(x[:k]) + np.cumprod(y[k - 1 :])[-1],
    "cumsum": lambda x, y, k: np.sum(np.cumsum(x[:k]) * y[:k]) + np.sum(1.0 / np.cumsum(y[k:])),
    "norm": lambda x, y, k: np.linalg.norm(x[:k]) + np.linalg.norm(x[:k] - 2.0 * y[:k]),
    "outer": lambda x, y, k: np.sum(np.outer(x[:k], y[k:]) ** 2) + np.sum(x[:k, None] * y[None, :k] * x[:k]),
    "where": lambda x, y, k: np.sum(np.where(x[:k] > y[:k], np.sqrt(x[:k]), y[:k])) + np.sum(np.clip(x[:k], 0.8, 1.2)),
    "length": lambda x, y, k: x[:k].shape[0] * x[0] + np.sum(x[:k]) / x[:k].size,
    "division": lambda x, y, k: np.sum(1.0 / (x[:k] - x[k])) + np.sum(np.log(np.abs(x[:k] - x[k]))),
    "diff": lambda x, y, k: np.sum(np.diff(x[: k + 1]) ** 2) + np.sum(np.dot(y[:k], 2.0)),
    "any": lambda x, y, k: np.any(x[:k] > 1.4) * x[0] + np.all(y[k:] > 0.6) * y[1],
    "copy": lambda x, y, k: np.sum(np.ones_like(x[:k]) * x[:k].copy().astype(np.float64).T) + np.vdot(x[:k], y[:k]),
    "sort": lambda x, y, k: np.sort(x[:k])[0] + np.sum(np.sort(x[k:]) ** 2) + np.sum(np.sort(np.outer(x, y)[:, k:], 0)),
    "median": lambda x, y, k: np.median(x[:k]) * np.median(y[k - 1 : k + 3]) + np.sum(np.median(np.outer(x, y)[:k], 0)),
    "quantiles": lambda x, y, k: np.quantile(x[:k], 0.3) + np.percentile(y[k - 1 :], 80, axis=0),
    "deviation of one": lambda x, y, k: np.std(x[:k]) + np.std(y[k - 1 : k]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_slices_is_numpys(name, lowering):
    operation = OPERATIONS[name]

    def by_loop(x, y):
        return fad.fori_loop(1, 6, lambda k, s: s + operation(x, y, k), 0.0)

    def by_python(x, y):
        return sum(operation(x, y, k) for k in range(1, 6))

    assert loops(by_loop, X, Y) >= 1
    assert len(fad.make_graph(by_loop)(X, Y)) < 40
    turn = list(OPERATIONS).index(name) + (lowering == "llvm")
    check(by_loop, by_python, (X, Y), slice(turn % 2, None, 2))


@pytest.mark.parametrize(("program", "args"), ALGEBRA)
def test_a_program_with_slices_is_one_loop_and_does_what_numpy_does(program, args, lowering):
    assert loops(program, *args) == 1
    # without jit the loops run in Python, by plain slices
    check(program, program, args, slice(lowering == "llvm", None, 2))


def check(by_loop, by_python, args, others=slice(None)):
    """Compare value and gradient, and second derivative, tangent and batches, with those of plain slices, in two calls.

    Where there are many programs, these others can take turns from one to the next, and from one lowering to the other.
    """

    def weighted(f):
        def value(*xs):
            y = f(*xs)
            return np.sum(np.sin(y) * np.cos(np.arange(1.0, np.size(y) + 1.0)).reshape(np.shape(y)))

        return value

    ts = tuple(np.cos(np.arange(x.size)).reshape(x.shape) for x in args)
    slow, fast = weighted(by_python), weighted(by_loop)
    every = tuple(range(len(args)))
    grads = [fad.grad(f, argnums=every) for f in (slow, fast)]
    batch = tuple(np.stack([x, 1.1 * x]) for x in args)
    along = [lambda *xs, g=g: fad.jvp(g, xs, ts)[1] for g in grads]
    more = [
        (*along, args),
        (*[lambda *xs, f=f: fad.jvp(f, xs, ts)[1] for f in (slow, fast)], args),
        (lambda *xs: np.stack([by_python(*[x[k] for x in xs]) for k in (0, 1)]), fad.vmap(by_loop), batch),
        (lambda *xs: [np.stack(g) for g in zip(*[grads[0](*[x[k] for x in xs]) for k in (0, 1)], strict=True)],
         fad.vmap(grads[1]), batch),
    ]  # fmt: skip
    for expected, got, xs in ((by_python, by_loop, args), (*grads, args), *more[others]):
        wanted, jitted = expected(*xs), fad.jit(got)
        for _ in range(2):
            for a, b in zip(fad.tree.leaves(jitted(*xs)), fad.tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


def test_gradients_agree_with_differences():
    for program, args in ALGEBRA:
        fad.testing.check_grads(fad.jit(lambda *xs, f=program: np.sum(np.sin(f(*xs)))), args, order=1)


# --- what lies beside a slice ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [np.nan, np.inf, 0.0])
def test_what_lies_beside_a_slice_reaches_neither_values_nor_derivatives(beside, lowering):
    def f(x):
        y = np.full(8, beside)
        y[0] = x[0]

        def step(k, y):
            y[k] = np.sum(x[k] / y[:k]) + np.sum(np.log(y[:k])) + np.sqrt(y[:k]) @ y[:k][::-1] + np.mean(y[:k] ** -0.5)
            y[:k] *= 1.0 + 0.01 / np.max(y[:k])
            return y

        return fad.fori_loop(1, 8, step, y)

    assert loops(f, X[:8]) == 1
    with np.errstate(all="raise"):
        check(f, f, (X[:8],))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_statistics_of_a_slice_have_the_types_of_numpys_and_know_nan(dtype, lowering):
    y = np.array([3, 1, 2, 2, 5, 4, 0, 7]).astype(dtype)

    def f(x):
        found = np.zeros((8, 3))
        for k in range(1, 8):
            kept = x[:k]
            found[k] = np.median(kept), np.quantile(kept, 0.25), np.max(np.sort(kept))
        return found, np.median(x[:3])

    with fad.config.use(loops="capture"), np.errstate(all="ignore"):
        for given in (y, np.where(np.arange(8) == 4, np.nan, y).astype(dtype) if y.dtype.kind == "f" else y[::-1]):
            fast, wanted = fad.jit(f), f(given)
            for _ in range(2):
                for a, b in zip(fast(given), wanted, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-6)
                    assert a.dtype == b.dtype


# --- what is not supported: the loop runs step by step, and is right ------------------------------------------------

UNSUPPORTED = {
    "lengths that may differ": lambda x, k: np.sum(x[:k][:2] * x[k : 2 * k][:2]),
    "several quantiles": lambda x, k: np.sum(np.quantile(x[:k], [0.3, 0.5])),
    "argsort": lambda x, k: np.sum(np.argsort(x[:k])) * x[0],
    "reshape": lambda x, k: np.sum(x[: 2 * k].reshape(2, k)[0]),
    "len": lambda x, k: len(x[:k]) * x[0],
    "concatenate": lambda x, k: np.sum(np.concatenate([x[:k], x[k:]]) * x),
    "iteration": lambda x, k: sum(v * v for v in x[:k]),
    "mask beside it": lambda x, k: np.sum(x[:k][x[:k] > 0.9]),
    "method": lambda x, k: x[:k].repeat(2).sum(),
    "an element that may be missing": lambda x, k: x[k:][2] + x[: k + 2][1],
    "the largest of none": lambda x, k: np.max(x[k - 1 : 4]) if k < 5 else x[0],
    "with an array": lambda x, k: np.sum(x[:k] * np.ones(k)),
    "another norm": lambda x, k: np.linalg.norm(x[:k], 1),
    "a step of a variable length": lambda x, k: np.sum(x[: k + 1 : 2]),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_recorded_step_by_step(name):
    operation = UNSUPPORTED[name]

    def by_loop(x):
        return fad.fori_loop(1, 5, lambda k, s: s + operation(x, k), 0.0)

    def by_python(x):
        return sum(operation(x, k) for k in range(1, 5))

    for f, g in ((by_loop, by_python), (fad.grad(by_loop), fad.grad(by_python))):
        fast = fad.jit(f)
        for _ in range(2):
            np.testing.assert_allclose(fast(X), g(X), rtol=1e-10)


@pytest.mark.parametrize(
    "statement",
    [
        lambda x, k: x[:k].__setitem__(slice(None), x[: k + 1]),
        lambda x, k: np.max(x[k:k]),
        lambda x, k: x[:k] + x[: k + 1],
        lambda x, k: x[:k] @ x[: k + 1],
        lambda x, k: x[:k][k],
    ],
)
def test_what_numpy_refuses_raises_numpys_error(statement):
    def f(x):
        x = x.copy()

        def step(k, x):
            statement(x, k)
            return x

        return fad.fori_loop(2, 5, step, x)

    with pytest.raises((ValueError, IndexError)):
        f(X)
    with pytest.raises((ValueError, IndexError)):
        fad.jit(f)(X)


def test_views_of_slices_are_views():
    def f(x):
        def step(k, x):
            part, window, whole = x[:k], x[k : k + 3], x[: k + 2]
            x[0] = 0.5 * x[k] * x[1]  # the views see it
            part[:] = part * 0.9
            inner = whole[1:]
            inner -= 0.1 * whole[0] * x[0]
            window[1:] = 0.3 * window[:-1] + 0.1 * part[0]
            part += 0.1
            own = part * 1.0
            own[0] = 0.7
            own[1:] += 0.1 * own[0]
            x[k + 1] += 0.1 * (np.sum(own) + np.sum(window) + inner[0])
            return x

        return fad.fori_loop(1, 6, step, x.copy())

    assert loops(f, X) == 1
    check(f, f, (X,))


# --- random programs -------------------------------------------------------------------------------------------------

REDUCTIONS = [np.sum, np.mean, np.prod, np.linalg.norm, np.max, np.min, np.var, lambda v: np.sum(np.cumsum(v))]


def random_bound(rng):
    c = rng.randrange(-3, 9)
    return rng.choice([
        lambda k: None, lambda k: k, lambda k: k + c, lambda k: k - c, lambda k: -k, lambda k: 2 * k + c,
        lambda k: c - k, lambda k: k // 2, lambda k: c,
    ])  # fmt: skip


def random_slice(rng):
    low, high, step = random_bound(rng), random_bound(rng), rng.choice([None, 1, 1, -1])
    return lambda k: slice(low(k), high(k), step)


def random_program(seed):
    rng = random.Random(seed)
    first, second = random_slice(rng), random_slice(rng)
    reduce, kind = rng.choice(REDUCTIONS), rng.randrange(6)
    shift = rng.randrange(3)

    def step(x, y, k):
        a, b = x[first(k)], y[first(k)]
        if kind == 0:
            return reduce(a * b)
        if kind == 1:
            return reduce(a) * np.sum(y[second(k)])
        if kind == 2:
            return np.dot(a, b[::-1]) + np.sum(x[shift : k + shift] / y[:k])
        if kind == 3:
            y[first(k)] = a * 0.5 + x[k]
        elif kind == 4:
            y[first(k)] += np.sum(x[second(k)]) * a[::-1]
        else:
            x[second(k)] *= 0.9 * y[second(k)]
        return reduce(y[first(k)])

    def program(loop, x, y):
        x, y = x.copy(), y.copy()

        def body(k, state):
            x, y, s = state
            return x, y, s + step(x, y, k)

        return loop(1, 5, body, (x, y, np.float64(0.0)))[1:]

    return program


def python_loop(start, stop, body, state):
    for k in range(start, stop):
        state = body(k, state)
    return state


def test_random_slices_are_numpys():
    recorded = 0
    for seed in range(int(os.environ.get("FAD_SLICE_PROGRAMS", "24"))):
        program = random_program(seed)

        def by_loop(x, y, program=program):
            return program(fad.fori_loop, x, y)

        def by_python(x, y, program=program):
            return program(python_loop, x, y)

        def total(f):
            return lambda x, y: np.sum(f(x, y)[0]) + 2.0 * f(x, y)[1]

        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the mean of nothing
            try:
                wanted = [*by_python(X, Y), *fad.grad(total(by_python), argnums=(0, 1))(X, Y)]
            except (ValueError, IndexError):
                with pytest.raises((ValueError, IndexError)):
                    fad.jit(by_loop)(X, Y)
                continue
            fast, derivative = fad.jit(by_loop), fad.jit(fad.grad(total(by_loop), argnums=(0, 1)))
            recorded += loops(by_loop, X, Y) == 1
            for _ in range(2):
                got = [*fast(X, Y), *derivative(X, Y)]
                for a, b in zip(got, wanted, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9, err_msg=f"seed {seed}")
    assert recorded > 10
