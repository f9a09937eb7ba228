"""Lists to which each step of a loop appends: the loop stays one, and the list holds what Python's would."""

import dataclasses
import types

import numpy as np
import pytest
from capture.agreement import agree, close, report_of

import fad

X = np.array([1.0, 0.5, 2.0])
STEPS = 12


def states(x):
    seen, h = [x], x
    for t in range(STEPS):
        h = np.tanh(h * 0.9 + 0.1 * t)
        seen.append(h)
    return np.sum(np.array(seen) ** 2) + len(seen)


def before_and_behind_the_step(x):
    seen, h = [], x
    for _ in range(STEPS):
        seen.append(h)
        h = np.sin(h) + x[0]
        seen.append(h * 2.0)
    return np.sum(np.stack(seen)[::3] ** 2)


def numbers_and_tuples(x):
    times, pairs, t = [], [], 0.0
    for i in range(STEPS):
        t += 0.1
        times.append(t)
        pairs.append((i, t * x[0]))
    return np.mean(np.array(times) * np.array([y for _, y in pairs])) + pairs[3][0] * pairs[2][1]


def copies_of_an_array_that_is_written(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u[0] += 1.0
        seen.append(u.copy())
    return np.sum(np.array(seen) ** 2)


def written_after_it_was_appended(x):
    seen, u = [], x * 1.0
    for i in range(STEPS):
        w = u * 1.0
        seen.append(w)
        w[0] = i
        u = u * 1.01 + 0.1 * w
    return np.sum(np.array(seen) ** 2)


def slices(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        seen.append(u[1:])
        u = u * 1.01
    return np.sum(np.array(seen) ** 2)


def the_last_element(x):
    ys, ts = [x[0]], [0.0]
    for _ in range(STEPS):
        ys.append(ys[-1] + 0.1 * np.sin(ys[-1]) * x[1])
        ts.append(ts[-1] + 0.1)
    return ys[-1] * ts[-1] + sum(ys)


def elements_by_the_number_of_the_step(x):
    ys = [x[0], x[1]]
    for i in range(2, STEPS):
        ys.append(ys[i - 1] * 0.5 + ys[i - 2] * 0.4 + ys[0])
    return np.mean(np.array(ys) ** 2) + ys[3]


def one_and_two_from_the_end(x):
    ys = [1.0, 1.0]
    for _ in range(STEPS):
        ys.append((ys[-1] + ys[-2]) * x[0] * 0.5)
        ys.append(ys[-1] * x[1] + ys[-3])
    return ys[-1] + len(ys)


def one_that_is_not_the_last(x):
    ys, s = [x[0], 0.1], x[1]
    for i in range(STEPS):
        s = 0.8 * s + 0.1 * ys[-2]
        ys.append(x[i % 3] * s)
    return s + ys[-1]


def the_last_few(x):
    ys = [x[0], x[1], x[2]]
    for k in range(STEPS):
        ys.append(sum(ys[-3:]) / 3.01 + 0.01 * len(ys) * x[k % 3])
    return ys[-1] * ys[2]


def arrays_made_of_the_last(x):
    us = [x * 1.0]
    for i in range(STEPS):
        u = us[-1].copy()
        u[1:] += 0.1 * us[-1][:-1]
        u[0] = i * 0.01
        us.append(u)
    return np.sum(np.array(us) ** 2) + us[3][2] * us[-1][1]


def pairs(x):
    states = [(x[0], 0.0)]
    for _ in range(STEPS):
        a, b = states[-1]
        states.append((a + 0.1 * b, b - 0.1 * np.sin(a)))
    return states[-1][0] + sum(a * b for a, b in states)


def lists_of_an_object_and_a_dictionary(x):
    class Run:
        def __init__(self):
            self.y, self.seen = x[0], []

        def step(self):
            self.y = self.y * 0.9 + 0.1
            self.seen.append(self.y)

    run, other = Run(), {"t": [0.0], "z": [x[1]]}
    for _ in range(STEPS):
        run.step()
        other["z"].append(other["z"][-1] * 0.99 + other["t"][-1] * run.y)
        other["t"].append(other["t"][-1] + 0.1)
    return sum(run.seen) * other["z"][-1] + sum(other["t"])


def objects(x):
    @dataclasses.dataclass
    class Point:
        x: float
        y: float

    path, p = [], Point(x[0], x[1])
    for _ in range(STEPS):
        p = Point(p.x + 0.1 * p.y, p.y - 0.1 * p.x)
        path.append(Point(p.x * 2, p.y))
    return sum(q.x * q.y for q in path) + path[-1].x


def a_list_for_each_step(x):
    s = 0.0
    for k in range(STEPS):
        row = [x[0]]
        for j in range(20):
            row.append(row[-1] * 0.9 + s * 0.001 * j)
        s = s + row[-1] * k + len(row)
    return s


def read_by_a_function(x):
    seen, u = [x], x

    def last():
        return seen[-1]

    for _ in range(STEPS):
        seen.append(u)
        u = last() * 1.01
    return np.sum(np.array(seen) ** 2)


def while_time_is_left(x):
    t, ts, ys = 0.0, [0.0], [x[0]]
    while t < 1.0:
        ys.append(ys[-1] + 0.1 * np.sin(ys[-1] + t) * x[1])
        t += 0.1
        ts.append(t)
    return ys[-1] * ts[-1] + sum(ys) * len(ys)


def while_the_last_is_small_and_the_list_is_short(x):
    us = [x * 1.0]
    while np.max(us[-1]) < 4.0 and len(us) < 20:
        us.append(us[-1] * 1.2 + 0.1)
    return np.sum(np.array(us) ** 2)


def until_a_break(x):
    ys, y = [], x[0]
    for k in range(40):
        y = y * 1.1 + 0.1 * x[1]
        ys.append(y * k)
        if y > 2.0:
            break
    else:
        y = y * 100.0
    return sum(ys) + k + y


def far_from_the_end(x):
    ys = [x[0] * k for k in range(6)]
    for _ in range(STEPS):
        ys.append(ys[-5] * 0.9 + ys[-1] * x[1])
    return np.sum(np.array(ys) ** 2)


def far_from_the_end_twice_in_a_step(x):
    ys = [x[0] * k for k in range(7)]
    for _ in range(STEPS):
        ys.append(ys[-6] * 0.9)
        ys.append(ys[-3] + ys[-1] * x[1])
    return np.sum(np.array(ys) ** 2)


def far_from_the_end_in_a_way_of_an_if(x):
    ys = [x[0] * k for k in range(4)]
    while len(ys) < STEPS:
        ys.append(ys[-4] * 0.9 if ys[-1] > 1.0 else ys[-3] + x[1])
    return np.sum(np.array(ys) ** 2)


def so_many_steps_ago(x):
    ys = [x[0] * k for k in range(4)]
    for i in range(4, STEPS):
        ys.append(ys[i - 4] * 0.9 + x[1])
    return np.sum(np.array(ys) ** 2)


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


def objects_of_which_the_first_changes(x):
    ps = [Point(x[0], x[1])]
    for _ in range(STEPS):
        ps[0].x = ps[0].x + 1.0
        ps.append(Point(ps[-1].x * 0.9, ps[-1].y))
    return sum(p.x for p in ps) * x[2]


def an_object_that_the_list_holds_first(x):
    p = {"at": [x[0], x[1]]}
    ps = [p]
    for _ in range(STEPS):
        p["at"][1] += 0.1 * x[2]
        ps.append({"at": [ps[-1]["at"][0] * 0.9, ps[-1]["at"][1]]})
    return sum(p["at"][0] * p["at"][1] for p in ps)


def arrays_of_many_elements(x):
    us, ts, u, t = [x], [], x, 0.0
    for _ in range(40):
        u, t = u * 0.97, t + 0.1
        us.append(u)
        ts.append((t, u[0] * t))
    first, again = np.array(us), np.array(us)
    first[5] = 0.0
    parts = np.stack(us[::-1]) * 2.0, np.array(us[1:30:2]) ** 2, np.array([us[3], *us[8:30], us[2]])
    times = np.array([t for t, _ in ts]) * np.array([y for _, y in ts[::-1]])
    return sum(np.sum(part * np.arange(len(part))[:, None]) for part in (first, again, *parts)) + np.sum(times)


def lists_that_are_added(x):
    ts, ys = [0.0], [x[0]]
    for _ in range(STEPS):
        ts += [ts[-1] + 0.1]
        ys += [ys[-1] * 0.9 + x[1], np.sin(ts[-1] * x[2])]
    total = 0.0
    for y, z in zip(ys, ys[::-1], strict=True):
        total = total + y * z**2
    return np.sum(np.array(ys) ** 2) + ts[-1] + total


CAPTURED = [
    states, before_and_behind_the_step, numbers_and_tuples, copies_of_an_array_that_is_written,
    written_after_it_was_appended, slices, the_last_element, elements_by_the_number_of_the_step,
    one_and_two_from_the_end, the_last_few, one_that_is_not_the_last, arrays_made_of_the_last, pairs,
    lists_of_an_object_and_a_dictionary, objects, while_time_is_left, while_the_last_is_small_and_the_list_is_short,
    until_a_break, a_list_for_each_step, read_by_a_function, far_from_the_end, far_from_the_end_twice_in_a_step,
    far_from_the_end_in_a_way_of_an_if, so_many_steps_ago, objects_of_which_the_first_changes,
    an_object_that_the_list_holds_first, arrays_of_many_elements, lists_that_are_added,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_appends_is_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text


def test_elements_before_that_the_first_steps_lack_are_carried():
    def f(x):
        errors = []
        for t in range(400):
            past = sum(0.1 * x[k] * errors[t - 1 - k] for k in range(2) if t - 1 - k >= 0)
            errors.append(x[0] * np.sin(0.3 * t) - past)
        return np.array(errors)

    fast = fad.jit(f)
    close(fast(X), f(X), "value", 1e-12)
    assert "captured: 398 steps, state errors[-1], errors[-2]" in fast.explain()
    close(fad.jit(fad.jacobian(f))(X), fad.jacobian(f)(X), "derivative")


def one_array_all_along(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u[0] += 1.0
        seen.append(u)
    return np.sum(np.array(seen) ** 2)


def the_last_is_written_behind(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u = u * 1.01
        seen.append(u)
    u[0] = 100.0 * x[1]
    return np.sum(np.array(seen) ** 2)


def elements_are_written_behind(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u = u * 1.01
        seen.append(u)
    seen[3][0] = x[2]
    seen[-1][1] = 3.0
    return np.sum(np.array(seen) ** 2) + np.sum(u)


def the_first_is_written_by_another_name(x):
    seen, u = [], x * 1.0
    first = u
    for _ in range(STEPS):
        seen.append(u)
        u = u * 1.01
    first[0] = 9.0 * x[1]
    return np.sum(np.array(seen) ** 2)


def names_go_round(x):
    seen, u, v = [], x * 1.0, x * 2.0
    for _ in range(STEPS):
        u, v = v, u * 1.01
        seen.append(u)
    v[0] = 5.0
    return np.sum(np.array(seen) ** 2) + np.sum(u * v)


def rows_of_an_array(x):
    seen, u = [], np.zeros((STEPS, 3))
    for i in range(STEPS):
        u[i] = x * i
        seen.append(u[i])
    u[5] = 3.0
    return np.sum(np.array(seen) ** 2)


def one_array_from_outside(x):
    seen, one = [], np.ones(3)
    for _ in range(STEPS):
        seen.append(one)
    seen[0][1] = 5.0
    return np.sum(np.array(seen) @ x)


def read_by_another_name(x):
    seen, u = [], x
    alias = seen
    for _ in range(STEPS):
        u = u * 1.01 + 0.001 * len(alias)
        seen.append(u)
    return np.sum(np.array(seen) ** 2)


def read_as_a_whole(x):
    seen = [x]
    for _ in range(STEPS):
        seen.append(sum(seen) * 0.1)
    return np.sum(np.array(seen) ** 2)


def read_from_the_middle(x):
    seen = [x[0]]
    for i in range(STEPS):
        seen.append(np.sin(seen[i // 2]) + x[1])
    return sum(seen)


def written_when_it_is_in_the_list(x):
    seen = [x * 1.0]
    for i in range(STEPS):
        seen.append(seen[-1] * 1.01)
        seen[-1][0] = i
        seen[-2][1] = 0.5
    return np.sum(np.array(seen) ** 2)


def written_as_the_last_of_the_step_before(x):
    seen = [x * 1.0]
    for i in range(STEPS):
        u = seen[-1]
        u[0] = i * x[1]
        seen.append(u * 1.01)
    return np.sum(np.array(seen) ** 2)


def objects_with_another_name(x):
    path, p = [], types.SimpleNamespace(x=x[0])
    for _ in range(STEPS):
        p = types.SimpleNamespace(x=p.x * 1.1)
        path.append(p)
    p.x = 100.0 * x[1]
    return sum(q.x for q in path)


def runs_over_the_list(x):
    seen, s = [x[0], x[1]], 0.0
    for a, _ in zip(seen, range(STEPS), strict=False):
        seen.append(a * 0.9)
        s = s + a
    return s + len(seen)


def in_some_steps(x):
    seen, u = [], x
    for i in range(STEPS):
        u = u * 1.1
        if u[0] > 2.0:
            seen.append(u)
        if i % 2:
            continue
        seen.append(u)
    return np.sum(np.array(seen) ** 2)


def rows_of_rows(x):
    rows = []
    for i in range(STEPS):
        row = []
        for j in range(STEPS):
            row.append(x[0] * i * j)
        rows.append(row)
    return np.sum(np.array(rows) ** 2)


AS_PYTHON_DOES = [
    one_array_all_along, the_last_is_written_behind, elements_are_written_behind, the_first_is_written_by_another_name,
    names_go_round, rows_of_an_array, one_array_from_outside, read_by_another_name,
    read_as_a_whole, read_from_the_middle, written_when_it_is_in_the_list, written_as_the_last_of_the_step_before,
    objects_with_another_name, runs_over_the_list, in_some_steps, rows_of_rows,
]  # fmt: skip


@pytest.mark.parametrize("f", AS_PYTHON_DOES, ids=lambda f: f.__name__)
def test_a_list_holds_what_pythons_would(f):
    if f is in_some_steps:
        for x in (X, 3 * X, X):
            np.testing.assert_allclose(fad.jit(f)(x), f(x))
    else:
        agree(f, X)


def test_what_is_appended_keeps_its_kind_and_a_callers_list_is_its_own():
    def kinds(x, out):
        numbers = []
        for i in range(40):
            numbers.append((i, 0.5 * i, x[0], x))
            out.append(x * i)
        return numbers

    with fad.config.use(loops="capture"):
        given, wanted = [], []
        found, plain = fad.jit(lambda x: kinds(x, given))(X), kinds(X, wanted)
    assert [type(y) for y in fad.tree.leaves(found)] == [type(y) for y in fad.tree.leaves(plain)]
    assert len(given) == len(wanted)


def test_an_array_of_what_was_appended_joins_no_elements_one_by_one():
    def f(x):
        ys, y = [x], x
        for i in range(3000):
            y = y * 0.99
            if i % 3:
                ys.append(y)
        return np.sum(np.array(ys) ** 2)

    joins = [eq for eq in fad.make_graph(fad.grad(f))(1.0).equations if eq.prim.name == "join"]
    assert [len(eq.ins) for eq in joins] == [2]
    np.testing.assert_allclose(fad.jit(fad.grad(f))(1.1), fad.grad(f)(1.1), rtol=1e-12)


def test_a_list_that_each_step_makes_anew_says_nothing_of_how_many_steps_there_are():
    def f(x):
        y, s = x[0], 0.0
        while s < 1.0:
            slopes = [y]
            slopes.append(y * (1.0 - s))
            s = s + 0.01 * x[1]
            y = y + 0.01 * (slopes[0] - slopes[1])
        return y

    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for pace in (1.0, 2.0, 3.0):
            x = np.array([1.0, pace])
            close(fast(x), f(x), "value")
        assert fast.cache_info().paths == 1
