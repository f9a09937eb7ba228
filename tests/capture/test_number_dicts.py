"""Dictionaries of numbers by keys that the steps of a loop compute: it stays one, and they hold what Python's do."""

import collections

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
Y = np.array([0.31, 0.52, -1.13, 0.93, -0.29])
STEPS = 24
LABELS = [0, 3, 1, 1, 4, 0, 3, 2] * 3
COSTS = {1: 0.5, 4: 1.5}


def weigh(d):
    """Return a number that shows the items of a dictionary and their order."""
    return sum((place + 1) * (key + 7) * value for place, (key, value) in enumerate(d.items())) + len(d)


def sums_by_remainder(x):
    d = {}
    for i in range(STEPS):
        k = (i * 5) % 7
        d[k] = d.get(k, 0.0) + x[i % 5]
    return weigh(d)


def keys_in_another_order_before(x):
    d = {6: x[0], 2: x[1], 0: 2.5}
    for i in range(STEPS):
        k = (i * 5) % 7
        if k not in d:
            d[k] = 0.0
        d[k] += x[i % 5]
    return weigh(d)


def the_length_in_each_step(x):
    d, s = {}, 0.0
    for i in range(STEPS):
        d[i % 6 - 3] = d.get(i % 6 - 3, 0.0) + x[i % 5]
        s += len(d) * x[0]
    return s + weigh(d)


def reading_a_default_inserts_it(x):
    d, s = collections.defaultdict(float), 0.0
    for i in range(STEPS):
        s += d[i % 9] * x[1]
        d[(i * 2) % 9] += x[i % 5]
    return s + weigh(d)


def reading_a_counter_does_not(x):
    c, s = collections.Counter(), 0.0
    for i in range(STEPS):
        c[i % 5] += i % 3
        s += c[7] + c[(i + 1) % 5] * x[i % 5]
    return s + sum(v * x[k] for k, v in c.items()) + len(c)


def values_decide_which_keys(x):
    d = {}
    for i in range(STEPS):
        if np.sin(x[i % 5] * i) > 0.3:
            d[i % 7] = d.get(i % 7, 1.0) + x[i % 5] * i
        elif i % 2 in d:
            d[i % 2] -= 0.1 * x[i % 5]
    return weigh(d)


def infinite_slopes_of_absent_items(x):
    d = {}
    for i in range(STEPS):
        d[i % 7] = d.get(i % 7, 0.0) + x[i % 5] ** 2
        d[(i + 1) % 7] = np.sqrt(d[(i + 3) % 7]) if (i + 3) % 7 in d else x[0]
    return weigh(d)


def what_is_there_is_read(x):
    d, s = {3: x[0]}, 0.0
    for i in range(STEPS):
        if i % 6 in d and d[i % 6] > 0.0:
            s += d[i % 6]
        d[(i * 5) % 6] = x[i % 5] * i
    return s


def a_table_by_two_counters(x):
    D = {}
    for i in range(6):
        D[i, 0] = x[0] * i
    for j in range(5):
        D[0, j] = x[1] * j
    for i in range(1, 6):
        for j in range(1, 5):
            D[i, j] = min(D[i - 1, j] + x[2] * i, D[i, j - 1] + x[3] * j, D[i - 1, j - 1] + x[(i + j) % 5] ** 2)
    return D[5, 4] + len(D) + sum((n + 1) * v for n, v in enumerate(D.values())) + list(D)[7][1]


def beyond_the_edge_of_a_table(x):
    D = {}
    for i in range(6):
        for j in range(5):
            D[i, j] = D.get((i - 1, j), x[0]) + D.get((i, j - 1), x[1]) * 0.5 + x[j]
    return D[5, 4] + len(D) + list(D)[7][1]


def distances_of_a_graph(x):
    edges = [(i, (i * 7 + 3) % 12) for i in range(12)] + [(i, i + 1) for i in range(11)]
    dist = dict.fromkeys(range(12), np.inf)
    dist[0] = 0.0
    for _ in range(5):
        for k, (u, v) in enumerate(edges):
            w = x[k % 5] ** 2 + 1.0
            if dist[u] + w < dist[v]:
                dist[v] = dist[u] + w
    return dist[11] + dist[7]


def an_attribute(x):
    class Tally:
        def __init__(self):
            self.sums, self.n = {}, 0

        def add(self, k, v):
            self.sums[k] = self.sums.get(k, 0.0) + v
            self.n += 1

    p = Tally()
    for i in range(STEPS):
        p.add(i % 5, x[i % 5])
    return weigh(p.sums) * p.n


def constant_keys_beside_others(x):
    d = {}
    for i in range(STEPS):
        d[9] = x[1] * i
        d[i % 4] = d.get(i % 4, 0.0) + x[i % 5]
    return weigh(d)


def keys_that_follow_one_from_another(x):
    d, k = {1: 0.0}, 1
    for i in range(STEPS):
        k = (3 * k + 1) % 101
        d[k] = d.get(k, 0.0) + x[i % 5]
    return weigh(d)


def keys_that_values_give(x):
    d = dict.fromkeys(range(5), 0.0)
    for i in range(STEPS):
        d[int(abs(np.sin(x[i % 5] * i)) * 4.99)] += x[i % 5] * i
    return weigh(d)


def numpys_integers(x):
    labels, d = np.array(LABELS), {}
    for i in range(STEPS):
        d[labels[i]] = d.get(labels[i], 0.0) + x[i % 5]
    return weigh(d) + sum(type(k) is np.int64 for k in d)


def labels_in_a_list(x):
    d = collections.defaultdict(float)
    for k, v in zip(LABELS, np.tile(x, 5), strict=False):
        d[k] += v
    return weigh(d) + sum(type(k) is int for k in d)


def pairs_of_labels(x):
    a, d = np.array(LABELS), {}
    for i in range(STEPS):
        d[a[i], a[-i]] = d.get((a[i], a[-i]), 0.0) + x[i % 5] * i
    return sum((n + 1) * v * (i + 2 * j + 1) for n, ((i, j), v) in enumerate(d.items()))


def until_a_value_is_large(x):
    d, i, s = {}, 0, 0.0
    while s < 30.0:
        d[i % 5] = d.get(i % 5, 0.0) + x[i % 5] ** 2 + 0.1
        s += d[i % 5]
        i += 1
    return s + weigh(d)


def until_a_break(x):
    d = {}
    for i in range(10 * STEPS):
        d[i % 5] = d.get(i % 5, 0.0) + x[i % 5] ** 2 + 0.1
        if d[i % 5] > 8.0:
            break
    return weigh(d)


def defaults_that_are_set(x):
    d, s = {}, 0.0
    for i in range(STEPS):
        s += d.setdefault(i % 5, x[i % 5] * i) * x[0]
        d[i % 5] *= 0.9
    return s + weigh(d)


def defaults_of_constant_keys(x):
    d, s = {}, 0.0
    for _ in range(STEPS):
        s += d.setdefault("a", x[1]) * x[0]
        d["a"] *= 0.9
    return s + d["a"]


def tables_that_are_only_read(x):
    table, pairs, s = {1: x[0], 4: x[1], 9: 2.0}, {(0, 1): 2.0, (1, 2): 3.0}, 0.0
    for i in range(STEPS):
        s += table.get(i, x[2]) * i + COSTS.get(i % 6, 0.25) * x[i % 5] + pairs.get((i % 2, i % 3), 0.5) * x[3]
        if i in table:
            s += table[i] * x[3]
    return s


def integers_stay_integers(x):
    d, e = {}, {0: 5, 1: 7}
    for i in range(STEPS):
        if i % 4 in d:
            d[i % 4] += 1
        else:
            d[i % 4] = 1
        e[i % 2] = e[i % 2] // 2 + i
    assert all(type(v) is int for v in (*d.values(), *e.values()))
    return sum(v * x[k] for k, v in (*d.items(), *e.items()))


def integers_that_become_floats(x):
    d = {}
    for i in range(STEPS):
        if i % 4 not in d:
            d[i % 4] = 0
        d[i % 4] += x[i % 5]
    return weigh(d)


def booleans(x):
    seen, s = {}, 0.0
    for i in range(STEPS):
        if not seen.get(i % 5, False):
            s += x[i % 5]
        seen[i % 5] = True
    return s * weigh(seen)


def functions_that_know_it(x):
    memo, d, counts = {}, collections.defaultdict(float), [0.0] * 6

    def remember(n):
        if n not in memo:
            memo[n] = np.sin(x[n % 5] * n)
        return memo[n]

    def add(k, v):
        d[k] += v
        counts[k] += 1.0

    def add_twice(k, v):
        add(k, v)
        add(k + 1, remember(k))

    s = 0.0
    for i in range(STEPS):
        add_twice(i % 5, x[i % 5])
        s += remember(i % 7) * x[1]
    return s + weigh(memo) + weigh(d) + weigh(dict(enumerate(counts)))


CAPTURED = [
    sums_by_remainder, keys_in_another_order_before, the_length_in_each_step, reading_a_default_inserts_it,
    reading_a_counter_does_not, values_decide_which_keys, infinite_slopes_of_absent_items, what_is_there_is_read,
    a_table_by_two_counters, beyond_the_edge_of_a_table, distances_of_a_graph, an_attribute,
    constant_keys_beside_others, keys_that_follow_one_from_another, keys_that_values_give, numpys_integers,
    labels_in_a_list, pairs_of_labels, until_a_value_is_large, until_a_break, defaults_that_are_set,
    defaults_of_constant_keys, tables_that_are_only_read, integers_that_become_floats, booleans,
    functions_that_know_it,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_it_is_captured_and_right(f):
    what, text = report_of(f, X)
    assert "captured" in what, text
    assert "step by step" not in text, text
    agree(f, X, Y, order=1)


# --- others -----------------------------------------------------------------------------------------------------------


def another_name_knows_it(x):
    d = {0: x[0]}
    same, s = [d], 0.0
    for i in range(STEPS):
        d[i % 5] = d.get(i % 5, 0.0) + x[i % 5]
        s += same[0][0]
    return s + weigh(d)


def keys_that_are_no_integers(x):
    d = {}
    for i in range(STEPS):
        d[(i % 5) * 1.0] = d.get(i % 5, 0.0) + x[i % 5]
    return weigh(d) + sum(type(k) is float for k in d)


def keys_that_equal_integers(x):
    d = {1.0: x[0], False: x[1]}
    for i in range(STEPS):
        d[i % 3] = d.get(i % 3, 0.0) + x[i % 5]
    return weigh(d) + sum(type(k) is float for k in d) + 2 * sum(type(k) is bool for k in d)


def keys_that_are_answers(x):
    d = {}
    for i in range(STEPS):
        d[i % 3 == 0] = d.get(i % 3 == 0, 0.0) + x[i % 5]
    return weigh(d) + sum(type(k) is bool for k in d)


def keys_of_two_types(x):
    labels, d = np.array(LABELS), {}
    for i in range(STEPS):
        d[labels[i]] = x[i % 5]
        d[i % 4] = d.get(i % 4, 0.0) + x[0]
    return weigh(d) + sum(type(k) is int for k in d)


def texts_as_well(x):
    d = {"n": 0.0}
    for i in range(STEPS):
        d[i % 3] = d.get(i % 3, 0.0) + x[i % 5]
        d["n"] += 1
    return d["n"] * d[0]


def nothing_as_default(x):
    d, s = {}, 0.0
    for i in range(STEPS):
        v = d.get(i % 4)
        if v is None:
            d[i % 4] = x[i % 5]
        else:
            s += v
    return s


def arrays(x):
    d = {0: x * 1.0, 1: x * 2.0}
    for i in range(STEPS):
        row = d[i % 2]
        row += x
        row *= 0.5
    return sum(np.sum(v) for v in d.values())


def items_that_are_taken_out(x):
    d = {}
    for i in range(STEPS):
        d[i % 4] = d.get(i % 4, 0.0) + x[i % 5]
        d.pop((i + 1) % 4, None)
    return weigh(d)


def all_items_in_each_step(x):
    d, s = {}, 0.0
    for i in range(STEPS):
        d[i % 4] = d.get(i % 4, 0.0) + x[i % 5]
        s += sum(d.values())
    return s


def keys_without_bounds(x):
    d, n = {}, 27
    for i in range(STEPS):
        d[n] = d.get(n, 0.0) + x[i % 5]
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    return 0.01 * weigh(d)


def a_function_binds_it_again(x):
    d, s = {}, 0.0

    def add(k, v):
        nonlocal d, s
        d[k] = d.get(k, 0.0) + v
        if k == 3:
            s, d = s + weigh(d), {}

    for i in range(STEPS):
        add(i % 5, x[i % 5])
    return s + weigh(d)


def what_a_function_fills_has_another_name(x):
    d, s = {0: 1.0}, 0.0
    same = [d]

    def add(k, v):
        d[k] = d.get(k, 0.0) + v

    for i in range(STEPS):
        add(i % 4, x[i % 5])
        s += len(same[0])
    return s + weigh(d)


LEFT = [
    another_name_knows_it, keys_that_are_no_integers, keys_that_equal_integers, keys_that_are_answers,
    keys_of_two_types, texts_as_well, nothing_as_default, arrays, items_that_are_taken_out, all_items_in_each_step,
    keys_without_bounds, a_function_binds_it_again, what_a_function_fills_has_another_name,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_another_one_is_left_to_python(f):
    assert "recorded step by step" in report_of(f, X)[1]
    agree(f, X, order=1)


def test_integers_stay_integers():
    agree(integers_stay_integers, X, order=1)


def test_a_key_that_is_not_there_is_an_error():
    def f(x):
        d, s = {0: x[0], 1: x[1]}, 0.0
        for i in range(20):
            s += d[i % 3]
            d[0] = s
        return s

    with fad.config.use(loops="capture"), pytest.raises(KeyError, match="2"):
        fad.jit(f)(X)


def test_a_program_that_sets_keys_it_does_not_show_is_recorded_step_by_step():
    def f(x):
        d, n = {0: x[0], 1: x[1]}, 2
        for i in range(STEPS):
            d[n % 50] = d.get(n % 7, x[2]) + x[i % 5]
            n = 7 * n + 1 if d.get(n // 3, 0.0) > 0.0 else int(abs(10.0 * x[i % 5])) + i
            d[n] = 0.5 * d.get(n, x[1])
        return weigh(d) * 1e-3

    with fad.config.use(loops="capture"):
        np.testing.assert_allclose(fad.make_graph(f)(X)(X), f(X))
        np.testing.assert_allclose(fad.jit(f)(X), f(X))


def test_labels_of_another_call_may_be_others():
    def f(x, labels):
        d, full = collections.defaultdict(float), dict.fromkeys(range(5), 0.5)
        for i in range(STEPS):
            d[int(labels[i])] += x[i % 5]
            full[int(labels[i])] += x[i % 5]
        return weigh(d), weigh(full)

    labels = np.array(LABELS)
    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for other in (labels, labels, labels[::-1].copy()):
            np.testing.assert_allclose(fast(X, other), f(X, other))
        for other in (labels + 7, -labels, labels * 10**9):
            with pytest.raises(KeyError):
                fast(X, other)
        np.testing.assert_allclose(fast(X, labels), f(X, labels))


def test_elements_of_a_batch_may_have_other_keys():
    def f(x):
        d = {}
        for i in range(12):
            key = int(x[i % 5] * 3) % 4
            d[key] = d.get(key, 0.0) + x[i % 5]
        return weigh(d)

    batch = np.random.default_rng(0).normal(size=(4, 5))
    with fad.config.use(loops="capture"):
        wanted = [f(row) for row in batch]
        np.testing.assert_allclose(fad.jit(fad.vmap(f))(batch), wanted)
        np.testing.assert_allclose(fad.vmap(fad.jit(f))(batch), wanted)


@pytest.mark.parametrize("batched", [False, True])
def test_a_type_of_an_item_that_no_step_has_set_is_pythons(batched):
    def f(x):
        d = dict.fromkeys(range(80), 0)
        for i in range(80):
            d[i // 2] = d.get(i // 2, 0.0) + x[0]
        return sum(d.values()) + sum(isinstance(v, int) for v in d.values())

    x = np.array([0.5, 1.5])
    fast = fad.jit(fad.vmap(f)) if batched else fad.jit(f)
    for _ in range(2):
        np.testing.assert_allclose(fast(np.stack([x, 2 * x]) if batched else x), [80.0, 120.0] if batched else 80.0)


def test_numbers_of_two_types_that_depend_on_no_argument_keep_their_types():
    def f(x):
        d = {}
        for i in range(2, 60):
            if i // 2 not in d:
                d[i // 2] = 1.0
            d[i - 1] = i
        return sum(d.values()) + x[0] * sum(isinstance(v, int) for v in d.values())

    x = np.array([0.5, 1.5])
    fast = fad.jit(f)
    for _ in range(2):
        assert fast(x) == f(x)


def test_integers_that_leave_64_bits_are_pythons():
    def f(x):
        d = {}
        for i in range(12):
            d[i % 3] = d.get(i % 3, 2**60 + 1) * 2
        return d[0]

    with fad.config.use(loops="capture"):
        assert fad.jit(f)(X) == f(X)
