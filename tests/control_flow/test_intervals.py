"""What is known of the integers of a recorded loop: bounds that hold in every step, and differences that are fixed."""

import random

import numpy as np
import pytest

import fad
from fad.control_flow.bodies.intervals import form_of, interval

N = 7


def in_nest(look, loops=2):
    """Return what `look` says of the counters i, j, ... of a nest ``for i in range(N): for j in range(i, N): ...``."""
    found = []

    def nest(counters, state):
        if len(counters) == loops:
            found.append(look(*counters))
            return state
        start = counters[-1] if counters else 0
        return fad.fori_loop(start, N, lambda k, s: nest([*counters, k], s), state)

    fad.make_graph(lambda x: nest([], x))(1.0)
    return found[-1]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda i, j: i, (0, N - 1)),
        (lambda i, j: j, (0, N - 1)),
        (lambda i, j: j - i, (0, N - 1)),
        (lambda i, j: j - i + 1, (1, N)),
        (lambda i, j: N - 1 - j, (0, N - 1)),
        (lambda i, j: i - j, (1 - N, 0)),
        (lambda i, j: (i + 3) - i, (3, 3)),
        (lambda i, j: 2 * j - j, (0, N - 1)),
        (lambda i, j: -i, (1 - N, 0)),
        (lambda i, j: i * j, (0, (N - 1) ** 2)),
        (lambda i, j: i // 2, (0, 3)),
        (lambda i, j: i % 3, (0, 2)),
        (lambda i, j: i % 100, (0, N - 1)),
        (lambda i, j: i >> 1, (0, 3)),
        (lambda i, j: i & 3, (0, 3)),
        (lambda i, j: abs(i - j), (0, N - 1)),
        (lambda i, j: np.maximum(i, j), (0, N - 1)),
        (lambda i, j: np.maximum(i, j) - j, (0, 0)),
        (lambda i, j: np.minimum(i, 3), (0, 3)),
        (lambda i, j: np.minimum(i, j) - i, (0, 0)),
        (lambda i, j: np.where(i > j, i, j + 1), (0, N)),
        (lambda i, j: i * 2 * 10**18, (None, None)),
        (lambda i, j: np.asarray(i > j) * 1, (0, 1)),
    ],
)
def test_an_expression_of_counters_has_the_bounds_that_its_operations_give(expression, expected):
    assert in_nest(lambda i, j: interval(expression(i, j))) == expected


def test_bounds_hold_three_loops_deep():
    assert in_nest(lambda i, j, k: interval(k - i), loops=3) == (0, N - 1)
    assert in_nest(lambda i, j, k: interval(k + (N - 1) - j), loops=3)[0] == N - 1


def test_lengths_of_slices_are_compared_by_their_forms():
    assert in_nest(lambda i, j: (form_of(j + 1) - form_of(1 + j)).fixed) == 0
    assert in_nest(lambda i, j: (form_of(j) - form_of(i)).fixed) is None


def test_nothing_is_known_of_an_argument_and_all_of_a_number():
    found = []

    def f(n, x):
        found.append((interval(n), interval(n * 0 + 4), interval(n + 3 - n), interval(x)))
        return x * n

    fad.make_graph(f)(3, 1.0)
    assert found == [((None, None), (4, 4), (3, 3), (None, None))]
    assert interval(5) == (5, 5)
    assert interval(np.int8(-2)) == (-2, -2)
    assert interval(True) == (1, 1)


def test_small_integers_that_may_wrap_around_are_known_by_their_dtype_alone():
    found = []

    def f(n):
        found.append((interval(n), interval(n + np.int8(1)), interval(n // np.int8(2))))
        return n * 1.0

    fad.make_graph(f)(np.int8(3))
    assert found == [((-128, 127), (-128, 127), (-64, 63))]


def test_random_expressions_stay_within_their_bounds():
    rng = random.Random(0)
    operations = [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a + rng.choice((-2, 1, 5)),
        lambda a, b: -a, np.maximum, np.minimum, lambda a, b: a // rng.choice((1, 2, 3)),
        lambda a, b: a % rng.choice((1, 2, 5)), lambda a, b: abs(a), lambda a, b: a * rng.choice((-3, 0, 2)),
    ]  # fmt: skip
    for trial in range(60):
        plan = [(rng.randrange(len(operations)), rng.random(), rng.random()) for _ in range(rng.randrange(1, 7))]

        def value(i, j, seed=trial, plan=plan):
            rng.seed(seed)
            values = [i, j, j - i, 2]
            for k, a, b in plan:
                values.append(operations[k](values[int(a * len(values))], values[int(b * len(values))]))
            return values[-1]

        low, high = in_nest(lambda i, j, value=value: interval(value(i, j)))
        seen = [int(value(i, j)) for i in range(N) for j in range(i, N)]
        assert low is None or low <= min(seen)
        assert high is None or high >= max(seen)


@pytest.mark.parametrize("jitted", [False, True])
def test_the_gradient_of_a_triangular_nest_needs_no_unrolling(jitted):
    def f(x):
        def row(i, total):
            return fad.fori_loop(0, i, lambda j, s: s + np.sin(x[i]) * x[j] ** 2, total)

        return fad.fori_loop(0, N, row, 0.0)

    x = np.random.default_rng(0).normal(size=N)
    graph = fad.make_graph(fad.grad(f))(x)
    assert not graph.guards()
    assert sum(eq.prim.name == "scan" for eq in graph.equations) == 2
    g = fad.jit(fad.grad(f)) if jitted else fad.grad(f)
    expected = np.array([np.cos(x[i]) * np.sum(x[:i] ** 2) + 2 * x[i] * np.sum(np.sin(x[i + 1 :])) for i in range(N)])
    for _ in range(3):
        np.testing.assert_allclose(g(x), expected, rtol=1e-12)
    fad.testing.check_grads(f, (x,), order=2)
