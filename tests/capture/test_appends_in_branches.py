"""Lists to which some steps of a loop append, or inner loops: it stays one loop, and the list is as in Python."""

import dataclasses

import numpy as np
import pytest
from capture.agreement import close, differences, report_of

import fad

X = np.array([1.03, 0.47, 1.9])
STEPS = 24


def every_third_step(x):
    seen, u = [], x
    for i in range(STEPS):
        u = u * 0.9 + 0.1 * np.sin(u)
        if i % 3 == 0:
            seen.append(u.copy())
    return np.sum(np.array(seen) ** 2) + len(seen)


def where_a_value_decides(x):
    events, v, t = [], x[0], 0.0
    for _ in range(STEPS):
        v, t = v + 0.3 * x[1] + 0.1, t + 0.5
        if v > 1.5:
            events.append((t, v * x[2]))
            v = v - 1.0
    return sum(t * v for t, v in events) + len(events)


def in_either_way(x):
    ys = [x[0]]
    for _ in range(STEPS):
        if ys[-1] > 1.0:
            ys.append(0.4 * ys[-1])
        else:
            ys.append(ys[-1] + 0.3 * x[1])
    return ys[-1] * ys[5] + len(ys)


def in_either_way_and_once_more_in_one(x):
    ys, y = [], x[0]
    for i in range(STEPS):
        y = 0.8 * y + 0.2 * x[1]
        if y > 0.7:
            ys.append(y)
            ys.append(2.0 * y)
        elif i % 2:
            ys.append(-y)
        else:
            ys.append(3.0 * y)
        ys.append(y * y)
    return np.sum(np.array(ys) * np.cos(np.arange(len(ys))))


def behind_continue(x):
    ys, y = [], 0.2 * x[0]
    for _ in range(STEPS):
        y = 3.3 * y * (1.0 - y)
        if y < 0.6:
            continue
        ys.append(y * x[1])
    return np.mean(np.array(ys))


def behind_break(x):
    ys, y = [], x[0]
    for i in range(STEPS):
        y = y * 1.1
        if y > 4.0 * x[2]:
            ys.append(100.0 * y)
            break
        if i % 2:
            ys.append(y)
    return sum(ys)


def in_a_while_loop(x):
    ts, t, h = [0.0], 0.0, 0.3
    while t < 3.0:
        error = np.abs(np.sin(5.0 * t)) * h
        if error < 0.2:
            t = t + h * x[1]
            ts.append(t)
            h = h * 1.2
        else:
            h = h * 0.6
    return sum(ts) + len(ts)


def only_what_is_larger_than_the_last(x):
    best, y = [0.1 * x[0]], 0.3
    for i in range(STEPS):
        y = y + 0.2 * np.cos(1.7 * i) * x[1]
        if y > best[-1]:
            best.append(y)
    return np.sum(np.array(best) ** 2) * best[-1]


def by_a_function_and_an_attribute(x):
    class Log:
        def __init__(self):
            self.seen = []

        def add(self, y):
            if y > 0.5:
                self.seen.append(y)

    log, y = Log(), x[0]
    for i in range(STEPS):
        y = y * 0.95 + 0.1 * np.sin(i)
        log.add(y)
    return sum(log.seen)


def objects_and_ints(x):
    @dataclasses.dataclass
    class Hit:
        number: int
        place: float

    hits, y = [], x[0]
    for i in range(STEPS):
        y = y * 0.95 + 0.1 * np.sin(i)
        if y > 0.6 and i > 2:
            hits.append(Hit(i, y))
    return sum(hit.number * hit.place for hit in hits)


def two_lists(x):
    low, high, y = [], [], x[0]
    for i in range(STEPS):
        y = y * 0.9 + 0.3 * np.sin(2.0 * i)
        (high if i % 4 == 0 else low).append(0.0) if i == 1000 else None
        if y > 0.3:
            high.append(y)
        elif y > 0.0:
            low.append(y)
    return sum(high) - 2.0 * sum(low) + len(low)


def nested_ifs(x):
    ys, y = [], x[0]
    for i in range(STEPS):
        y = y * 0.9 + 0.4 * np.sin(3.0 * i)
        if y > 0.0:
            ys.append(y)
            if y > 0.5:
                ys.append(y**2)
                if i % 2:
                    ys.append(y**3)
            ys.append(1.0)
    return np.sum(np.array(ys) * np.arange(len(ys)))


def by_inner_loops(x):
    ys = [x[0]]
    for i in range(6):
        for j in range(5):
            ys.append(x[1] * i + j * x[2] ** 2)
        ys.append(-1.0 * x[0])
    return np.sum(np.array(ys) * np.cos(np.arange(len(ys))))


def some_steps_of_inner_loops(x):
    near = []
    for i in range(6):
        for j in range(6):
            d = np.abs(x[0] * np.sin(1.3 * i) - x[1] * np.cos(0.9 * j))
            if i != j and d < 0.6:
                near.append((i, j, d))
                near.append((j, i, -0.5 * d))
    return sum((i + 0.1 * j) * d for i, j, d in near) + len(near)


def the_last_in_inner_loops(x):
    ys = [x[0]]
    for _ in range(5):
        for j in range(5):
            ys.append(0.5 * ys[-1] + x[1] * j)
        ys.append(ys[-1] + ys[-3] * 0.1)
    return np.sum(np.array(ys) * np.arange(len(ys)))


def arrays_of_inner_loops_that_are_written(x):
    us, u = [x * 1.0], x * 1.0
    for i in range(5):
        for j in range(5):
            u = 0.5 * u + 0.1 * j
            us.append(u * 1.0)
        w = us[-1]
        w[0] = 5.0 * i
        u = u * 1.1 + w
    return np.sum(np.array(us) * np.arange(len(us))[:, None])


def inner_loops_in_an_if(x):
    us, u = [], x
    for i in range(8):
        u = 0.9 * u + 0.2 * np.sin(u * i)
        if u[0] > 0.6:
            for k in range(5):
                u = u * 0.95
                us.append(u * k)
        else:
            us.append(u)
    return np.sum(np.array(us) ** 2 * np.arange(len(us))[:, None])


def three_deep(x):
    ys = []
    for i in range(3):
        for j in range(3):
            for k in range(3):
                if (i + j + k) % 2:
                    ys.append(x[0] * i - x[1] * j * k)
            ys.append(x[2])
    return np.sum(np.array(ys) * np.sin(np.arange(len(ys))))


def triangular(x):
    ys = []
    for i in range(7):
        for j in range(i):
            ys.append(x[0] * i - x[1] * j)
    return np.sum(np.array(ys) * np.arange(len(ys)))


def pairs_that_are_near(x):
    p = np.stack([np.sin(np.arange(7.0) * x[0]), np.cos(np.arange(7.0) ** 2 * x[1])], axis=1)
    near = []
    for i in range(7):
        for j in range(i + 1, 7):
            d = p[i] - p[j]
            r = np.sqrt(np.sum(d * d))
            if r < 1.2:
                near.append((i, j, r))
    return sum((i + 0.1 * j) * r for i, j, r in near) * x[2]


def reads_the_length(x):
    ys, y = [], x[0]
    for _ in range(STEPS):
        y = y * 0.95
        if len(ys) < 5:
            ys.append(y)
    return sum(ys)


def until_there_are_enough(x):
    ys, y, t = [], x[0], 0
    while len(ys) < 6:
        t += 1
        y = 0.5 * y + x[1] * np.sin(3.0 * t + len(ys)) + 0.1
        if y > 0.1 * x[1]:
            ys.append(y)
            if y > 0.5:
                ys.append(len(ys) * x[2])
    return sum(ys)


def where_there_is_none_or_a_smaller_one(x):
    best, more, y = [], [], 0.3
    for i in range(STEPS):
        y = y + 0.2 * np.cos(1.7 * i) * x[1]
        if not best or y > best[-1]:
            best.append(y)
        if best:
            more.extend([y, x[0] * i])
    return np.sum(np.array(best) ** 2) * best[-1] + sum(more)


def sums_that_begin_again(x):
    sums, counts, y = [0.0], [0], x[0]
    for i in range(STEPS):
        y = np.cos(y * 1.3 + i)
        if sums[-1] + y > 0.1 * x[1]:
            sums.append(sums[-1] + y)
            counts.append(counts[-1] + 1)
        else:
            sums.append(0.0)
            counts.append(0)
    return sum(s * k for s, k in zip(sums, counts, strict=True)) + sums[-1] * x[2]


def only_what_is_no_smaller_than_the_last(x):
    ys, y = [], 0.3
    for i in range(STEPS):
        y = y + 0.2 * np.cos(1.7 * i) * x[1]
        if ys and y < ys[-1]:
            continue
        ys.append(y * x[0])
    return sum(ys) + len(ys)


def nothing_in_a_step_that_is_looked_at(x):
    ys, y = [x[0]], x[1]
    for _ in range(STEPS):
        y = 0.9 * y + 0.1 * ys[-1]
        if len(x) > 3:
            ys.append(y)
    return y * ys[-1]


CAPTURED = [
    every_third_step, where_a_value_decides, in_either_way, in_either_way_and_once_more_in_one, behind_continue,
    behind_break, in_a_while_loop, only_what_is_larger_than_the_last, by_a_function_and_an_attribute,
    objects_and_ints, nested_ifs, by_inner_loops, some_steps_of_inner_loops, inner_loops_in_an_if, three_deep,
    the_last_in_inner_loops, arrays_of_inner_loops_that_are_written,
    triangular, pairs_that_are_near, reads_the_length, until_there_are_enough,
    where_there_is_none_or_a_smaller_one, sums_that_begin_again, nothing_in_a_step_that_is_looked_at,
    only_what_is_no_smaller_than_the_last,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_some_of_whose_steps_append_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    with fad.config.use(loops="capture"):
        fast, steep = fad.jit(f), fad.jit(fad.grad(f))
        for x in (X, 0.7 * X, X):  # other steps append for each
            close(fast(x), f(x), (f.__name__, x), 1e-12)
            close(steep(x), differences(f, x), (f.__name__, x), 3e-5)
        if f in CAPTURED[::4]:
            curve = fad.grad(lambda y: np.sum(fad.grad(f)(y)))
            close(fad.jit(curve)(X), curve(X), (f.__name__, "second derivative"), 1e-8)


def reads_the_last_array(x):
    us = [x]
    for i in range(STEPS):
        u = us[-1] * 0.9
        if i % 2:
            us.append(u)
            us[-1][0] = 0.3
    return np.sum(np.array(us) ** 2)


def within_another_loop(x):
    s = 0.0
    for i in range(6):
        row = []
        for j in range(6):
            if (i + j) % 2:
                row.append(x[1] * j)
        s = s + sum(row)
    return s


def written_behind_the_inner_loop(x):
    us, u = [], x
    for i in range(5):
        for j in range(5):
            u = u * 0.9 + 0.01 * j
            us.append(u)
        u[0] = 0.1 * i
    return np.sum(np.array(us) ** 2)


def the_last_of_an_inner_loop(x):
    ys = [x[0]]
    for i in range(5):
        for j in range(5):
            ys.append(0.5 * ys[-1] + x[1] * j)
        ys[-1] *= 0.5
        ys.append(ys[-1] + len(ys) * i)
    return np.sum(np.array(ys) * np.arange(len(ys)))


OTHERS = [
    reads_the_last_array, within_another_loop, two_lists, written_behind_the_inner_loop,
    the_last_of_an_inner_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_other_uses_of_such_a_list_give_what_python_gives(f):
    for loops in ("capture", "auto"):
        with fad.config.use(loops=loops):
            close(fad.jit(f)(X), f(X.copy()), (f.__name__, loops), 1e-12)
            close(fad.jit(fad.grad(f))(X), fad.grad(f)(X), (f.__name__, loops), 1e-12)


def test_a_batch_whose_elements_append_in_the_same_steps_is_one_loop():
    batch = np.stack([X, 1.001 * X])
    for f in (every_third_step, where_a_value_decides):
        with fad.config.use(loops="capture"):
            close(fad.jit(fad.vmap(f))(batch), np.array([f(x) for x in batch]), f.__name__, 1e-12)
