"""Comprehensions, and Python's functions over many numbers, are loops: captured, and in all else what Python has."""

import builtins
import functools
import itertools
import math
import operator

import numpy as np
import pytest
from capture.agreement import agree, close, report_of

import fad

X = np.array([0.3, 1.1, -0.7, 0.9, 0.2, 1.6, -0.4, 0.8, 1.3, 0.6, -0.2, 0.5, 0.7, 1.2, 0.1, 0.4, 1.9, -1.1])


def a_list(x):
    return np.sum(np.array([np.sin(v) * k for k, v in enumerate(x)]) ** 2)


def one_in_another(x):
    return np.sum(np.array([[a * b for a in x[:4]] for b in x]) ** 2)


def two_loops_and_conditions(x):
    return sum(a * b**2 for a in x if a > 0.0 for b in x[:5] if b < 1.0)


def a_sum_from_a_start(x):
    return sum((v * w for v, w in zip(x, x[::-1], strict=True)), x[0])


def the_greatest_and_the_least(x):
    return max(np.sin(3.0 * v) * v for v in x) * min((v - 0.5) ** 2 for v in x if v > 0.0)


def a_triangle(x):
    return sum(x[i] * x[j] ** 2 for i in range(len(x)) for j in range(i))


def questions(x):
    return np.sum(x**2) if any(v > 1.5 for v in x) and not all(v > -1.0 for v in x) else np.prod(x)


def in_a_loop(x):
    s, total = 0.0, 0.0
    for k in range(len(x)):
        s = s + 0.1 * sum(np.cos(s) * v for v in x[:3]) + max(0, x[k], 0.2 * s)
        s = np.mean(np.array([np.tanh(0.5 * s + v) for v in x[:4]]))
        total += s
    return total


def names_of_their_own(x):
    k, v = 2.0, x[1]
    return sum(v * k for v in [k * v for v in x]) * v


def tuples_and_sorted_lists(x):
    return np.stack(tuple(v * v for v in x))[3] * sorted(-v for v in x)[0]


def methods_of_a_class(x):
    class Weights:
        def __init__(self, w):
            self.__w = w

        def total(self):
            return sum(self.__w[k] * k for k in range(len(self.__w)))

    return Weights(x).total()


def without_a_generator(x):
    return sum(x**2) / len(x) + max(x * x) * min([v * 3.0 for v in x]) + (x[0] if any(x > 1.0) else x[1])


def rows(x):
    return np.sum(sum(np.outer(x, x[:3])) ** 2)


def tuples_of_a_list(x):
    pairs = [(v, v * w) for v, w in zip(x, np.cos(x), strict=True)]
    total = 0.0
    for a, b in pairs:
        total += a * b
    return total + sum(a + b for a, b in pairs)


def functions_over_many(x):
    products = math.prod(1.0 + 0.1 * v for v in x) * math.prod(x[:3] + 2.0)
    some = np.fromiter((np.sin(v) for v in x), float)
    both = list(map(lambda a, b: a * b, x, np.cos(x)))
    return products * sum(map(abs, x - 0.5)) + sum((b - a) ** 2 for a, b in itertools.pairwise(x)) + both[3] * some[4]


def reductions(x):
    decayed = functools.reduce(lambda a, b: 0.9 * a + np.sin(b), x)
    product = functools.reduce(operator.mul, [0.1 * v + 1.0 for v in x], 0.5)
    shear = functools.reduce(lambda m, v: m @ np.array([[1.0, v], [0.0, 1.0]]), x, np.eye(2))
    return decayed * product + functools.reduce(max, x) * shear[0, 1]


def log_or_nothing(v):
    with np.errstate(divide="ignore"):
        return np.log(v)


def without_warnings(x):
    total = 0.0
    for v in x:
        with np.errstate(all="ignore"):
            w = np.sqrt(v * v + 0.1)
            if v > 0.25:
                total = 0.5 * total + v * w
        total = total + (log_or_nothing(v) if v > 0.0 else v)
    return total


def places_of_several_axes(x):
    table, total = np.zeros((6, 3)), 0.0
    for i, j in itertools.product(range(6), range(3)):
        total = total + x[i] * x[j] ** 2
    for i, j in np.ndindex(table.shape):
        table[i, j] = x[i] * np.sin(x[j]) + i
    for (i, j), v in np.ndenumerate(x.reshape(6, 3)):
        total += v * table[i, j] * (i + 2 * j)
    return total + sum(np.exp(-((a - b) ** 2)) for a, b in itertools.combinations(x, 2))


def in_a_dictionary(x):
    names = "abc"
    rates = {n: {m: np.sin(x[0] + i + j) for j, m in enumerate(names)} for i, n in enumerate(names)}
    state = dict.fromkeys(names, x[1])
    for k in range(12):
        state = {n: sum(state[m] * rates[m][n] for m in names) / 3.0 + x[k] for n in names}
    return sum(state.values())


def an_integer_before_it_is_a_sum(x):
    total, count, best = 0, 0, 0
    for v in x:
        if v > 0.25:
            total, count = total + v * v, count + 1
        if v > best:
            best = v
    tally = {"count": 0, "total": 0}
    for v in x:
        if v < 0.75:
            tally["total"] += v
            tally["count"] += 1
    return total / count + best + tally["total"] / tally["count"]


CAPTURED = [
    a_list, one_in_another, two_loops_and_conditions, a_sum_from_a_start, the_greatest_and_the_least, questions,
    a_triangle, in_a_loop, places_of_several_axes, functions_over_many, names_of_their_own, in_a_dictionary,
    tuples_of_a_list, an_integer_before_it_is_a_sum, reductions, without_warnings,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_comprehension_is_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text


@pytest.mark.parametrize(
    "f", [tuples_and_sorted_lists, methods_of_a_class, without_a_generator, rows], ids=lambda f: f.__name__
)
def test_a_fold_gives_what_pythons_does(f):
    agree(f, X)


def test_a_sum_of_a_thousand_elements_is_no_thousand_operations():
    x = np.linspace(0.1, 1.0, 1000)
    for f in (lambda x: sum(x) / len(x), lambda x: max(x * x), lambda x: sum(v**2 for v in x if v > 0.5)):
        assert len(fad.make_graph(f)(x).equations) < 20


def a_place_that_is_written(x):
    ys, total = [2.0 * v for v in x], 0.0
    for y in ys:
        total = total + y * x[0]
        ys[15] = total
    return total


def the_last_is_written(x):
    ys, total = [], 0.0
    for v in x:
        ys.append(v * 2.0)
    for k, y in enumerate(ys):
        total += y * k
        ys[-1] = total
    return total


def a_row_is_written(x):
    rows, total = [[v, v * v] for v in x], 0.0
    for a, b in rows:
        total += a * b
        rows[16][1] = total
    return total


@pytest.mark.parametrize(
    "f", [a_place_that_is_written, the_last_is_written, a_row_is_written], ids=lambda f: f.__name__
)
def test_a_loop_over_a_list_that_it_changes_reads_what_python_reads(f):
    agree(f, X)


def test_what_no_step_traces_stays_pythons():
    def f(x):
        places = [2 * k for k in range(9)]
        names = {f"p{k}": k for k in places}
        half = np.array([k % 2 == 0 for k in range(len(x))])
        assert {type(k) for k in places} == {int}
        assert type(sum(k for k in places)) is int
        assert max(len(name) for name in names) == 3
        return np.sum(x[places]) + np.sum(x[half]) + x[sum(1 for k in places if k > 8)] * names["p4"]

    with fad.config.use(loops="capture"):
        close(fad.jit(f)(X), f(X), "value")


def test_functions_made_in_a_comprehension_share_its_variable():
    def f(x):
        return sum(g(x[0]) for g in [lambda y: y * k for k in range(4)])  # noqa: B023

    assert fad.jit(f)(X) == f(X)


def test_a_name_that_is_not_pythons_own_is_asked_as_it_is():
    def f(x, sum, max=builtins.max):
        return sum(v for v in x) + max(v for v in x)

    assert fad.jit(f, static_argnums=1)(X, lambda vs: 2.0 * list(vs)[1]) == f(X, lambda vs: 2.0 * list(vs)[1])


@pytest.mark.parametrize("f", [
    lambda x: max(v for v in x if v > 9.0), lambda x: sum(x[k + 1] for k in range(len(x))), lambda x: sum(["a", x[0]]),
    lambda x: max(max for max in x if max > 9.0), lambda x: sum((s for s in "ab"), ""),
    lambda x: min(v for v in [None, 1]),
])  # fmt: skip
def test_what_python_raises_a_comprehension_raises(f):
    with pytest.raises((ValueError, IndexError, TypeError)) as expected:
        f(X)
    with fad.config.use(loops="capture"), pytest.raises(expected.type):
        fad.jit(f)(X)


def test_an_object_whose_method_takes_a_generator_is_made_once():
    def f(x):
        given = [x[:3], x[3:]]
        total = given.pop().sum(initial=sum(v for v in x[:2]))

        class Doubled:
            def sum(self, vs):
                return 2.0 * sum(vs)

        made = [Doubled(), Doubled()]
        return total + made.pop().sum(v for v in x) * len(made)

    assert fad.jit(f)(X) == f(X)


SEEN = []


def test_a_function_that_map_calls_keeps_its_effects():
    def seen(v):
        SEEN.append(1)
        return v * v

    def f(x):
        SEEN.clear()
        return sum(map(seen, x)) * len(SEEN)

    with fad.config.use(loops="capture"):
        close(fad.jit(f)(X), f(X), "value")


def test_an_integer_that_stays_one_is_told_apart():
    def f(x):
        total = 0
        for v in x:
            if v > 9.0:
                total = total + v
        return x[0] * 2.0 if isinstance(total, int) else x[1]

    with fad.config.use(loops="capture"):
        assert fad.jit(f)(X) == f(X)


def test_an_integer_that_stays_one_is_an_index():
    def f(x):
        total = 0
        for v in x:
            if v > 9.0:
                total = total + v
        return x[total] * sum(x[k + 1] for k in range(total + 2))

    agree(f, X, order=1)


def test_the_gradient_of_a_plain_sum_has_the_shape_of_its_argument():
    def f(x):
        total = 0.0
        for v in x:
            total = total + v
        return total**2

    with fad.config.use(loops="capture"):
        assert fad.jit(fad.grad(f))(X).shape == X.shape
        assert fad.jit(fad.hessian(f))(X).shape == (*X.shape, *X.shape)


def in_an_if(x):
    total = 0.0
    for v in x:
        y = np.sqrt(v)
        if y > 0.1:
            total = total + y
    return total


@pytest.mark.parametrize("f", [
    in_an_if, lambda x: sum(min(1.0 / v, 10.0) for v in x), lambda x: max(np.sqrt(v) for v in x),
    lambda x: fad.scan(
        lambda s, v: (s + fad.cond(v > 0.1, lambda y: y, lambda y: 0.0, np.log(v)), None), 0.0, x
    )[0],
])  # fmt: skip
def test_what_a_choice_does_not_take_meets_no_infinite_derivative(f):
    x = np.array([0.5, 0.0, 0.7, 0.0, 0.9])
    with np.errstate(all="ignore"), fad.config.use(loops="capture"):
        fast = fad.jit(fad.grad(f))
        for _ in range(2):
            slope = fast(x)
            assert np.all(np.isfinite(slope)), slope
            assert not np.any(slope[[1, 3]]), slope
            assert slope[4], slope
