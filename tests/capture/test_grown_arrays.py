"""Arrays that each step of a loop makes longer by NumPy's functions: the loop stays one, the array is Python's."""

import numpy as np
import pytest
from capture.agreement import agree, close, report_of
from numpy import append, concatenate

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
STEPS = 24


def samples_of_a_chain(x):
    rng = np.random.default_rng(0)
    chain, q = np.array([x[0]]), x[0]
    for _ in range(STEPS):
        p = q + 0.3 * rng.normal()
        if np.log(rng.random()) < 0.5 * (q**2 - p**2):
            q = p
        chain = np.append(chain, q)
    return np.mean(chain) + np.std(chain)


def an_empty_array_at_first(x):
    path, s = np.array([]), x[0]
    for i in range(STEPS):
        s = 0.9 * s + 0.1 * x[i % 5]
        path = np.append(path, s)
    return np.mean(path**2) + path[3] + len(path)


def the_last_elements(x):
    path = x[:2]
    for i in range(STEPS):
        path = append(path, 0.5 * path[-1] + 0.3 * path[-2] + 0.1 * x[i % 5] + 0.01 * path[i])
    return np.sum(path**2) + path[0]


def rows_below_rows(x):
    u = x.copy()
    path = u
    for _ in range(STEPS):
        u = 0.9 * u + 0.1 * np.sin(u[::-1])
        path = np.vstack([path, u])
    return np.mean(path**2 * np.arange(STEPS + 1)[:, None])


def rows_of_an_empty_table(x):
    table = np.empty((0, 3))
    for i in range(STEPS):
        table = np.append(table, [[i, x[0] * i, np.sin(x[1] * i)]], axis=0)
    return np.sum(table[:, 1] * table[:, 2]) + table[3, 0]


def columns_beside_columns(x):
    path = x.reshape(5, 1)
    for _ in range(STEPS):
        path = concatenate((path, (0.9 * path[:, -1] + 0.1 * np.sin(path[::-1, -1]))[:, None]), axis=-1)
    return np.mean(path**2 * np.arange(STEPS + 1))


def columns_by_hstack(x):
    path, u = x[:, None], x
    for _ in range(STEPS):
        u = np.tanh(0.9 * u + 0.1)
        path = np.hstack([path, u[:, None]])
    return np.mean(path**2 * np.arange(STEPS + 1))


def columns_by_column_stack(x):
    path, u = x, x
    for _ in range(STEPS):
        u = np.tanh(0.9 * u + 0.1)
        path = np.column_stack((path, u))
    return np.mean(path**2 * np.arange(STEPS + 1))


def several_at_once(x):
    path = np.zeros(0)
    for i in range(STEPS):
        path = np.append(path, [x[i % 5], np.sin(i * x[0])])
        path = np.concatenate([path, x[:3] * i, [1.0]])
    return np.sum(path * np.cos(np.arange(len(path))))


def the_last_of_several(x):
    path = x * 1.0
    for i in range(STEPS):
        path = np.append(path, 0.5 * np.sin(path[-3:]) + 0.1 * path[-1] * i)
    return np.sum(path * np.cos(np.arange(len(path))))


def read_as_a_whole_while_several_come(x):
    path, total = x[:2], 0.1
    for i in range(9):
        if i % 3 < 2:
            path = np.concatenate((path, 0.5 * path[-2:] + 0.1))
        total = total + 0.1 * np.mean(path) + 0.01 * path[len(path) // 2]
    return total


def in_brackets(x):
    path, rows, u = x[:1], x[:, None], x
    for i in range(STEPS):
        u = np.tanh(0.9 * u + 0.1)
        path = np.r_[path, 0.5 * path[-1], x[i % 5] * i, u[:2]]
        rows = np.c_[rows, u, u[::-1] * path[-1]]
    return np.sum(path * np.cos(np.arange(len(path)))) + np.sum(rows * np.cos(np.arange(2 * STEPS + 1)))


def how_long_it_is(x):
    path, total = x[:1], 0.0
    for _ in range(STEPS):
        path = np.append(path, 0.9 * path[-1])
        total += path[-1] * len(path) + 0.1 * path.size + 0.01 * path.shape[0] + path.ndim
    return total + path.size


def until_a_time(x):
    t, y, ts, ys = 0.0, x[0], np.array([0.0]), np.array([x[0]])
    while t < 2.0:
        h = 0.1 * (1.0 + 0.1 * np.sin(t))
        y = y - h * y * x[1]
        t = t + h
        ts = np.append(ts, t)
        ys = np.append(ys, y)
    return np.sum((ts[1:] - ts[:-1]) * ys[1:])


def until_it_is_long_enough(x):
    ys = x[:2]
    while len(ys) < 30 and ys[-1] < 100.0:
        ys = np.append(ys, 0.9 * ys[-1] + 0.2 * ys[-2])
    return np.sum(ys**2)


def until_a_break(x):
    ys, y = np.array([]), x[0]
    for k in range(60):
        y = y * 1.1 + 0.1 * x[3]
        ys = np.append(ys, y * k)
        if y > 5.0:
            break
    return np.sum(ys) + len(ys)


def some_of_the_steps(x):
    events, s = np.array([]), x[0]
    for i in range(STEPS):
        s = 0.5 * np.sin(s + 1.3 * i) + 0.4 * x[i % 5]
        if s > 0.3:
            events = np.append(events, s * i)
    return np.sum(events) + 0.1 * len(events)


def more_in_one_way(x):
    path, s = x[:1], x[1]
    for i in range(STEPS):
        s = 0.5 * np.sin(s + 1.3 * i) + 0.4 * x[i % 5]
        if s > 0.3:
            path = np.append(path, [s, s * i])
        elif s > 0.0:
            path = np.append(path, 2.0 * s)
        path = np.append(path, 0.1)
    return np.sum(path * np.cos(np.arange(len(path))))


def behind_continue(x):
    rows, u = x[None], x
    for i in range(STEPS):
        u = 0.5 * np.sin(u + 1.3 * i) + 0.4 * x[i % 5]
        if u[0] < 0.2:
            continue
        rows = np.vstack((rows, u))
    return np.sum(rows**2) + len(rows)


def in_an_inner_loop(x):
    path, s = np.array([]), x[0]
    for i in range(8):
        for j in range(5):
            s = 0.9 * s + 0.1 * x[j]
            path = np.append(path, s * i)
        path = np.append(path, 0.5)
    return np.sum(path * np.cos(np.arange(len(path))))


def the_last_in_an_inner_loop(x):
    path = x[None]
    for i in range(8):
        for j in range(5):
            path = np.vstack((path, 0.9 * path[-1] + 0.1 * np.sin(path[-1, j])))
        path = np.append(path, path[-2:] * i, axis=0)
    return np.sum(path * np.cos(np.arange(len(path)))[:, None])


def one_for_each_step(x):
    total, w = 0.0, np.cos(np.arange(13.0))
    for i in range(8):
        row = np.array([x[0] * i])
        for j in range(12):
            row = np.append(row, 0.9 * row[-1] + x[j % 5])
        total += row @ w
    return total


def a_row_that_is_written_later(x):
    u, path = x.copy(), np.zeros((0, 5))
    for i in range(STEPS):
        u[i % 5] += 0.1
        path = np.vstack([path, u])
        u[0] *= 0.9
    return np.sum(path**2 * np.arange(STEPS)[:, None])


def written_behind_the_loop(x):
    path = x * 1.0
    before = path
    for i in range(STEPS):
        path = np.append(path, x[i % 5] * i)
    path[0], path[-1] = 9.0, x[1] ** 2
    return np.sum(before**2) + np.sum(path**2)


def integers_to_index_by(x):
    places, total = np.array([], dtype=int), 0.0
    for i in range(STEPS):
        places = np.append(places, (3 * i) % 5)
        total += x[places[-1]]
    return total + np.sum(x[places] * np.arange(STEPS))


CAPTURED = [
    samples_of_a_chain, an_empty_array_at_first, the_last_elements, rows_below_rows, rows_of_an_empty_table,
    columns_beside_columns, columns_by_hstack, columns_by_column_stack, several_at_once,
    read_as_a_whole_while_several_come, the_last_of_several,
    in_brackets, how_long_it_is, until_a_time, until_it_is_long_enough, until_a_break, some_of_the_steps,
    more_in_one_way, behind_continue, in_an_inner_loop, the_last_in_an_inner_loop, one_for_each_step,
    a_row_that_is_written_later, written_behind_the_loop, integers_to_index_by,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_makes_an_array_longer_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X, 0.8 * X, 0.6 * X)


def join(path, v):
    old = path
    path = np.append(path, v)
    return np.append(path, old[-1])


def another_name_knows_it(x):
    path, total = x[:1], 0.0
    for i in range(STEPS):
        old = path
        path = np.append(path, x[i % 5])
        total += old[-1] * path[-1]
    return total


def a_function_knows_it(x):
    path, total = x[:1], 0.0

    def shown(known=None):
        return path if known is None else known[-1]

    for i in range(STEPS):
        old = shown()
        path = np.append(path, x[i % 5])
        total += shown(old) * path[-1]
    return total


def appended_by_the_users_function(x):
    path = x[:1]
    for _ in range(STEPS):
        path = join(path, 0.9 * path[-1])
    return np.sum(path**2)


def two_made_of_one(x):
    path, other, total = x[:1], x[:1], 0.0
    for i in range(STEPS):
        other = np.append(path, 3.0 * i)
        path = np.append(path, x[i % 5])
        total += other[-1] * path[-1] * len(other)
    return total + np.sum(other)


def put_before_it(x):
    path = x[:1]
    for i in range(STEPS):
        path = np.append(x[i % 5] * i, path)
    return np.sum(path * np.arange(STEPS + 1))


def written_in_the_loop(x):
    path = x[:2]
    for i in range(STEPS):
        path = np.append(path, x[i % 5] * i)
        path[-2] *= 0.5
    return np.sum(path**2)


def a_row_of_it_is_written(x):
    path = np.stack([x, 2.0 * x])
    for _ in range(STEPS):
        row = path[-1]
        row[0] = 0.5
        path = np.vstack([path, 0.9 * row])
    return np.sum(path**2)


def longer_and_longer_pieces(x):
    path = x[:1]
    for i in range(8):
        path = np.append(path, x[: i % 3])
    return np.sum(path * np.arange(len(path)))


def returned_from_the_loop(x):
    def run():
        path = x[:1]
        for i in range(STEPS):
            path = np.append(path, x[i % 5] * i)
            if path[-1] > 3.0:
                return path
        return 2.0 * path

    return np.sum(run() ** 2)


LEFT = [
    another_name_knows_it, a_function_knows_it, appended_by_the_users_function, two_made_of_one,
    put_before_it, written_in_the_loop, a_row_of_it_is_written, longer_and_longer_pieces, returned_from_the_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_another_growing_array_is_left_to_python(f):
    assert "recorded step by step" in report_of(f, X)[1]
    agree(f, X)


def widened_by_what_is_appended(x):
    path = np.array([1, 2])
    for i in range(STEPS):
        path = np.append(path, x[i % 5])
    return path


def narrow_numbers_and_pythons(x):
    path, t = x.astype(np.float32), 0.0
    for _ in range(STEPS):
        path = np.append(path, np.float32(0.5) * path[-1])
        path = np.append(path, t)
        t += 0.1
    return path


def narrow_numbers(x):
    path = x.astype(np.float32)
    for i in range(STEPS):
        path = np.append(path, path[-1] * np.float32(0.9) + path[i])
    return path


def flags_and_integers(x):
    large, places = np.array([], dtype=bool), np.array([], dtype=int)
    for i in range(STEPS):
        large = np.append(large, x[i % 5] > 0.5)
        places = np.append(places, (i * i) % 5)
    return large, places, x[places]


def complex_numbers(x):
    path = np.array([])
    for i in range(STEPS):
        path = np.append(path, np.exp(1j * x[i % 5]))
    return path


def a_table_that_becomes_flat(x):
    path = np.stack([x, x])
    for i in range(STEPS):
        path = np.append(path, x[i % 5])
    return path


@pytest.mark.parametrize(
    "f",
    [
        widened_by_what_is_appended, narrow_numbers_and_pythons, narrow_numbers, flags_and_integers, complex_numbers,
        a_table_that_becomes_flat,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_the_array_has_the_type_of_pythons(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    for loops in ("capture", "record"):
        with fad.config.use(loops=loops):
            fast = fad.jit(f)
            for _ in range(2):
                close(fast(X), f(X), (f.__name__, loops))


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_steps_make_it_as_long_as_python_does(n):
    def f(x):
        path = x * 1.0
        for i in range(n):
            path = np.append(path, path[-1] * i)
        return path

    with fad.config.use(loops="capture"):
        close(fad.jit(f)(X), f(X), n)


def test_an_error_of_the_joining_function_is_numpys():
    def f(x):
        path = x[None]
        for i in range(STEPS):
            path = np.vstack([path, x[: 5 - i // 20]])
        return np.sum(path)

    with fad.config.use(loops="capture"), pytest.raises(ValueError, match="array at index 0 has size 5"):
        fad.jit(f)(X)


def test_how_many_elements_there_are_may_change_from_call_to_call():
    fast = fad.jit(fad.grad(some_of_the_steps))
    with fad.config.use(loops="capture"):
        for k in (1.0, 0.9, 1.0, 0.5, 0.9):
            np.testing.assert_allclose(fast(X * k), fad.grad(some_of_the_steps)(X * k))


def test_a_thousand_appends_that_are_not_captured_have_a_gradient():
    def f(x):
        path = x[:1]
        for i in range(1200):
            path = np.append(path, x[i % 5] * path[-1])
        return np.sum(path)

    with fad.config.use(loops="record"):
        np.testing.assert_allclose(fad.jit(fad.grad(f))(X), fad.grad(f)(X))
