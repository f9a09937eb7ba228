"""Dictionaries and lists that the steps of a loop fill by the counter: it stays one, they hold what Python's do."""

import numpy as np
import pytest
from capture.agreement import agree, close, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
STEPS = 24


def a_table_of_a_recursion(x):
    memo = {0: x[0], 1: x[1]}
    for n in range(2, STEPS):
        memo[n] = 0.5 * memo[n - 1] + 0.3 * np.sin(memo[n - 2]) + 0.01 * memo[0]
    return memo[STEPS - 1] + memo[5] + sum(memo.values())


def an_empty_one_at_first(x):
    found = {}
    for i in range(3, STEPS):
        found[i] = np.sin(x[i % 5] * i)
    return sum(found.values()) + found[7] + 0.1 * sum(found)


def the_last_one(x):
    found = {0: x[0]}
    for i in range(STEPS):
        found[i + 1] = 0.9 * found[i] + 0.1 * x[i % 5] * len(found)
    return found[STEPS] * found[3]


def records_of_the_run(x):
    log, u = {}, x.copy()
    for k in range(STEPS):
        u = 0.9 * u + 0.1 * np.sin(u[::-1])
        log[k] = {"u": u, "size": np.sum(u**2)}
    return log[STEPS - 1]["size"] + np.sum(log[3]["u"]) + len(log)


def every_third_step(x):
    log, s = {}, x[0]
    for k in range(STEPS):
        s = 0.9 * s + 0.1 * x[k % 5]
        if k % 3 == 0:
            log[k] = s
    return sum(key * value for key, value in log.items())


def where_a_value_decides(x):
    log, s = {}, x[0]
    for k in range(STEPS):
        s = 0.5 * np.sin(s + 1.3 * k) + 0.4 * x[k % 5]
        if s > 0.3:
            log[k] = s
    return sum(key * value for key, value in log.items()) + len(log)


def backwards_and_in_strides(x):
    found, other = {}, {}
    for i in range(2 * STEPS, 0, -2):
        found[i] = np.cos(x[i % 5] * i)
        other[3 * i + 1] = found_twice(i) * x[1]
    return found[4] + sum(key * value for key, value in other.items())


def found_twice(i):
    return 2.0 * i


def some_keys_again(x):
    last = {}
    for i in range(STEPS):
        last[i % 7] = np.sin(x[i % 5] * i)
    return sum((key + 1) * value for key, value in last.items()) + len(last)


def others_are_there_before(x):
    found = {2: x[0], 40: x[1]}
    for i in range(STEPS):
        found[i] = x[i % 5] * i
    return sum((k + 1) * value for k, value in enumerate(found.values())) + list(found)[1]


def pairs_of_places(x):
    table = {}
    for i in range(6):
        for j in range(5):
            table[i, j] = np.sin(x[j] * i)
    return sum((i + 2 * j) * value for (i, j), value in table.items())


def pairs_beside_numbers(x):
    table = {0: x[0]}
    for i in range(60):
        table[i, 1] = x[i % 5] * i
        table[i % 7] = np.sin(x[1] * i)
        table[i, 2, i % 3] = x[2]
    return sum(v * (k[0] if type(k) is tuple else k) for k, v in table.items())


def numbers_beside_pairs(x):
    table = {}
    for i in range(60):
        table[-i] = x[i % 5] * i
        table[i, 1] = np.sin(x[1] * i)
    return sum(v * (k[0] if type(k) is tuple else k) for k, v in table.items()) + list(table.values())[1]


def while_a_counter_runs(x):
    n, memo = 0, {0: x[0]}
    while memo[n] < 5.0:
        memo[n + 1] = 1.2 * memo[n] + 0.1
        n += 1
    return sum(memo.values()) + n


def until_a_break(x):
    seen, y = {}, x[0]
    for k in range(60):
        y = y * 1.1 + 0.1 * x[3]
        seen[k] = y * k
        if y > 5.0:
            break
    return sum(seen.values()) + len(seen)


def a_list_that_is_filled(x):
    us = [None] * (STEPS + 1)
    us[0] = x.copy()
    for i in range(STEPS):
        us[i + 1] = np.tanh(0.9 * us[i] + 0.1)
    return np.sum(us[-1]) + np.sum(us[3]) + np.sum(np.array(us) ** 2)


def two_steps_at_once(x):
    us, ts = [0] * (STEPS + 2), [0.0] * (STEPS + 2)
    us[0], us[1] = x.copy(), x * 2.0
    for n in range(1, STEPS + 1):
        us[n + 1] = 0.5 * us[n] + 0.3 * np.sin(us[n - 1]) + 0.01 * us[0]
        ts[n + 1] = ts[n] + 0.1
    return np.sum(us[-1]) * ts[STEPS] + np.sum(us[4])


def pairs_in_a_list(x):
    states = [None] * STEPS
    for k in range(STEPS):
        states[k] = (k, x[k % 5] * np.ones(2))
    return sum(k * np.sum(u) for k, u in states)


def a_list_filled_from_its_end(x):
    ps = [None] * STEPS
    p = x.copy()
    for k in range(STEPS - 1, -1, -1):
        p = 0.9 * p + 0.1 * np.sin(p[::-1])
        ps[k] = p
    return np.sum(np.array(ps) * np.cos(np.arange(STEPS))[:, None])


def some_places_of_a_list(x):
    found = [None, None, None, None]
    for k in range(STEPS):
        found[(2 * k) % 4] = np.sin(x * k)
    return np.sum(found[0] * found[2]) if found[1] is None and found[3] is None else 0.0


CAPTURED = [
    a_list_that_is_filled, two_steps_at_once, pairs_in_a_list, a_list_filled_from_its_end, some_places_of_a_list,
    a_table_of_a_recursion, an_empty_one_at_first, the_last_one, records_of_the_run, every_third_step,
    where_a_value_decides, backwards_and_in_strides, some_keys_again, others_are_there_before, pairs_of_places,
    pairs_beside_numbers, numbers_beside_pairs, until_a_break,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_fills_a_dictionary_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X, 0.8 * X, 0.6 * X)


def another_name_knows_it(x):
    found, total = {}, 0.0
    same = found
    for i in range(STEPS):
        found[i] = x[i % 5] * i
        total += len(same)
    return total + sum(same.values())


def what_is_put_in_is_written(x):
    log, u = {}, x.copy()
    for k in range(STEPS):
        u[k % 5] += 0.1
        log[k] = u
    return sum(np.sum(v * k) for k, v in log.items())


def copies_are_put_in(x):
    log, u = {}, x.copy()
    for k in range(STEPS):
        u[k % 5] += 0.1
        log[k] = u.copy()
    return sum(np.sum(v * k) for k, v in log.items())


def asks_what_there_is(x):
    memo, total = {}, 0.0
    for i in range(STEPS):
        if i % 7 not in memo:
            memo[i % 7] = np.sin(x[i % 5] * i)
        total = total * 0.9 + memo[i % 7]
    return total


def reads_any_place(x):
    memo = {0: x[0]}
    for i in range(1, STEPS):
        memo[i] = 0.5 * memo[i // 2] + x[i % 5]
    return memo[STEPS - 1]


def keys_that_are_no_integers(x):
    seen, t = {}, 0.0
    for i in range(STEPS):
        t += 0.5
        seen[t] = x[i % 5] * i
    return sum(key * value for key, value in seen.items())


def of_numpys_integers(x):
    seen = {}
    for i in np.arange(STEPS):
        seen[i] = x[i % 5] * i
    return sum(key * value for key, value in seen.items())


def constant_keys_as_well(x):
    state = {"t": 0.0}
    for i in range(STEPS):
        state["t"] += 0.1
        state[i] = x[i % 5] * state["t"]
    return sum(v for k, v in state.items() if k != "t") + state["t"]


def read_as_a_whole(x):
    found, total = {}, 0.0
    for i in range(STEPS):
        found[i] = x[i % 5] * i
        total += sum(found.values())
    return total


OUTSIDE = {}


def one_from_outside(x):
    OUTSIDE.clear()
    for i in range(STEPS):
        OUTSIDE[i] = float(i)
    return np.sum(x) * sum(OUTSIDE.values())


def another_name_knows_the_list(x):
    us = [None] * (STEPS + 1)
    us[0] = x.copy()
    same, total = us, 0.0
    for i in range(STEPS):
        us[i + 1] = 0.9 * us[i]
        total += np.sum(same[i + 1])
    return total


def arrays_in_the_list_are_written(x):
    us = [x * 0.0] * (STEPS + 1)
    us[0] = x.copy()
    for i in range(STEPS):
        u = 0.9 * us[i]
        us[i + 1] = u
        u[0] = 0.5
        us[i][1] = 0.1
    return np.sum(np.array(us) * np.arange(STEPS + 1)[:, None])


def read_before_it_is_set(x):
    us = [x * 1.0] * (STEPS + 1)
    for i in range(STEPS):
        us[i] = 0.9 * us[i] + 0.1 * us[i + 1]
    return np.sum(np.array(us) * np.arange(STEPS + 1)[:, None])


LEFT = [
    another_name_knows_the_list, arrays_in_the_list_are_written, another_name_knows_it, what_is_put_in_is_written,
    keys_that_are_no_integers, constant_keys_as_well, read_as_a_whole, one_from_outside,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_another_dictionary_is_left_to_python(f):
    assert "recorded step by step" in report_of(f, X)[1]
    agree(f, X)


@pytest.mark.parametrize(
    "f",
    [while_a_counter_runs, copies_are_put_in, reads_any_place, read_before_it_is_set, asks_what_there_is]
    + [of_numpys_integers],
    ids=lambda f: f.__name__,
)
def test_other_loops_that_fill_one_are_right(f):
    agree(f, X)


def test_a_place_that_a_list_has_not_is_an_error():
    def f(x):
        us = [None] * 20
        us[0] = x
        for i in range(24):
            us[i + 1] = 0.9 * us[i]
        return us[-1]

    with fad.config.use(loops="capture"), pytest.raises(IndexError, match="list assignment index out of range"):
        fad.jit(f)(X)


def test_what_a_list_holds_is_pythons():
    def f(x, n):
        us, kept = [None] * 6, x * 3.0
        us[0], us[5] = x, kept
        for i in range(n):
            us[i + 1] = (i, us[i] * 2.0) if n < 2 else us[i] * 2.0
        kept[0] = 7.0
        return us

    for n in (0, 1, 2, 4):
        wanted = f(X, n)
        with fad.config.use(loops="capture"):
            fast = fad.jit(lambda x: f(x, n))  # noqa: B023
            for _ in range(2):
                got = fast(X)
                assert [type(a) for a in got] == [type(b) for b in wanted]
                close(got, wanted, n)


def test_the_dictionary_is_pythons():
    def f(x, n):
        found, rows, table = {}, {5: x}, {}
        for i in range(n):
            found[i + 4] = x[i % 5] * 2
            rows[n - i] = (i, x * i)
            table[i, 1 - i] = i * 0.5
        return found, rows, table

    for n in (0, 1, 2, STEPS):
        wanted = f(X, n)
        with fad.config.use(loops="capture"):
            fast = fad.jit(lambda x: f(x, n))  # noqa: B023
            for _ in range(2):
                got = fast(X)
                for a, b in zip(got, wanted, strict=True):
                    assert list(a) == list(b)
                    assert {type(part) for key in a for part in (key if type(key) is tuple else (key,))} <= {int}
                    close([*a.values()], [*b.values()], n)
