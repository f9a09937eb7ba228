"""Windows and delay lines that are deques, or lists that each step moves by a place, in captured loops."""

from collections import deque

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def a_moving_average(x):
    window, y, total = deque(maxlen=4), 1.0, 0.0
    for i in range(40):
        y = 0.9 * y + 0.1 * x[i % 5]
        window.append(y)
        total += (y - sum(window) / len(window)) ** 2
    return total + window[0]


def what_numpy_makes_of_a_window(x):
    window, y = deque([x[0], x[1], 0.5], maxlen=3), 0.0
    for i in range(30):
        y = y + np.mean(window) + 0.1 * max(window) + 0.1 * np.max(window) + np.array(window) @ x[1:4]
        window.append(np.sin(y) * x[i % 5])
    return y


def a_delay_line(x):
    line, y = deque([0.0] * 6), 0.0
    for i in range(40):
        y = x[i % 5] + 0.5 * line.popleft()
        line.append(y)
    return y + sum(line)


def a_list_that_moves(x):
    line, y = [0.0] * 6, 0.0
    for i in range(40):
        y = x[i % 5] + 0.5 * line[0]
        line = line[1:] + [y]
    return y + sum(line)


def another_name_sees_it(x):
    window = deque([x[0], x[1]], maxlen=2)
    same, total = window, 0.0
    for i in range(30):
        window.appendleft(0.5 * window[1] + x[i % 5])
        total += same[0] * same[1]
    return total + sum(same)


def moved_in_one_way(x):
    window, total = deque([x[0], x[1], x[2]]), 0.0
    for i in range(30):
        if window[0] > 0.3:
            window.rotate(1)
        else:
            window.append(window.popleft() + x[i % 5])
        total += window[0]
    return total + sum(window)


class Smoother:
    def __init__(self, n):
        self.window = deque(maxlen=n)

    def __call__(self, v):
        self.window.append(v)
        return sum(self.window) / len(self.window)


def windows_of_objects(x):
    wide, narrow, total = Smoother(4), Smoother(2), 0.0
    for i in range(40):
        total += wide(narrow(x[i % 5] + 0.1 * total))
    return total + narrow.window[-1]


def a_window_of_arrays(x):
    window, total = deque([x, 2 * x], maxlen=2), 0.0
    for _ in range(30):
        u = 0.5 * window[0] + 0.3 * np.sin(window[1])
        window.append(u)
        total += u @ x
    return total + np.sum(window[0] * window[1])


def in_a_while_loop_that_stops(x):
    window, y, k = deque(maxlen=3), 2.0, 0
    while True:
        y = 0.8 * y + 0.01 * x[0]
        window.append(y)
        k += 1
        if len(window) == 3 and window[0] - window[-1] < 0.05:
            break
    return sum(window) + 0.01 * k


def in_an_inner_loop(x):
    window, total = deque([x[0], 0.3], maxlen=2), 0.0
    for _ in range(6):
        for j in range(5):
            window.append(0.5 * window[0] + x[j])
        total += window[0] * window[1]
    return total


def a_long_window(x):
    window, total = deque([0.0] * 100), 0.0
    for i in range(40):
        window.append(x[i % 5])
        total += window.popleft() + window[90] * window[-1]
    return total


def a_long_window_that_is_filled(x):
    window, total = deque(maxlen=70), 0.0
    for i in range(100):
        window.append(np.sin(i * x[i % 5]))
        total += 0.1 * window[-1] * window[0]
    return total + window[3]


def a_long_delay_that_begins_with_integers(x):
    line, y = [0] * 100, x[0]
    for _ in range(150):
        late = line.pop(0)
        line.append(y)
        y = y + 0.05 * (x[1] * late / (1.0 + late**2) - x[2] * y)
    return y + sum(line) * 0.1


def a_delay_line_by_pop(x):
    line, y = [0.0] * 6, 0.0
    for i in range(40):
        y = x[i % 5] + 0.5 * line.pop(0)
        line.append(y)
    return y + sum(line)


def the_newest_first(x):
    past, y = [x[0], x[1], x[2], 0.5], 1.0
    for i in range(40):
        y = y + 0.01 * (55 * past[0] - 59 * past[1] + 37 * past[2] - 9 * past[3])
        past.insert(0, np.cos(y) * x[i % 5])
        past.pop()
    return y + past[1] * past[-1]


def the_oldest_is_deleted(x):
    past, y = [x[0], x[1], x[2]], 1.0
    for i in range(40):
        y = 0.9 * y + 0.01 * (23 * past[-1] - 16 * past[-2] + 5 * past[-3])
        past.append(np.cos(y) * x[i % 5])
        del past[0]
    return y + past[1] * past[-1]


def adams_and_bashforth(x):
    y, slopes, h = np.array([x[1], x[2]]), [], 0.01
    for _ in range(40):
        slopes.append(np.array([y[1], -x[0] * y[0]]))
        if len(slopes) > 3:
            slopes.pop(0)
        if len(slopes) == 1:
            y = y + h * slopes[-1]
        elif len(slopes) == 2:
            y = y + h * (1.5 * slopes[-1] - 0.5 * slopes[-2])
        else:
            y = y + h * (23 * slopes[-1] - 16 * slopes[-2] + 5 * slopes[-3]) / 12
    return np.sum(y) + np.sum(slopes[0])


def the_last_few_are_kept(x):
    y, past = x[0], []
    for i in range(40):
        past.append(y * x[i % 5])
        past = past[-4:]
        y = 0.5 * y + 0.1 * sum(past)
    return y + past[0] * past[-1]


def limited_memory(x):
    w, steps, changes = x.copy(), [], []
    a = np.diag(np.arange(1.0, 6.0)) + 0.1
    g = a @ w - 1.0
    for _ in range(20):
        q, rates = g.copy(), []
        for s, y in zip(reversed(steps), reversed(changes)):  # noqa: B905
            r = (s @ q) / (y @ s)
            rates.append(r)
            q = q - r * y
        if steps:
            q = q * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
        for s, y, r in zip(steps, changes, reversed(rates)):  # noqa: B905
            q = q + (r - (y @ q) / (y @ s)) * s
        new = w - 0.3 * q
        slope = a @ new - 1.0
        steps.append(new - w)
        changes.append(slope - g + 1e-3)
        if len(steps) > 3:
            steps.pop(0)
            changes.pop(0)
        w, g = new, slope
    return np.sum(w**2)


class Memory:
    def __init__(self):
        self.past = [0.3, 0.1]

    def push(self, v):
        self.past.append(v)
        return self.past.pop(0)


def a_window_of_an_object(x):
    memory, y = Memory(), x[0]
    for i in range(30):
        y = 0.5 * y + memory.push(y * x[i % 5])
    return y + memory.past[1]


def the_same_list_by_two_names(x):
    line = [x[0], x[1]]
    same, total = line, 0.0
    for i in range(30):
        line.append(0.5 * line.pop(0) + x[i % 5])
        total += same[0] * same[1]
    return total + sum(same)


def a_stack_for_each_step(x):
    total = 0.0
    for i in range(20):
        stack = [x[0], x[1] * i]
        stack.append(x[2])
        stack.append(stack.pop() + stack.pop())
        total = 0.5 * total + stack.pop() * stack[0]
    return total


def a_list_that_another_name_knew(x):
    past, total = [x[0], x[1]], 0.0
    keep = past
    for i in range(20):
        past.append(total * 0.1 + x[i % 5])
        past = past[-3:]
        total += past[0] * past[-1] * len(keep)
    return total + sum(keep)


def a_second_name_within_the_step(x):
    past, total = [x[0], x[1], x[2]], 0.0
    for i in range(20):
        same = past
        past.append(total * 0.1 + x[i % 5])
        past = past[-3:]
        same[0] = 0.5
        total += past[0] * past[-1] + same[0] + len(same)
    return total + sum(past) + sum(same)


def lists_that_are_swapped(x):
    p, q = [x[0], x[1]], [x[2], x[3]]
    for i in range(20):
        p.append(0.5 * p.pop(0) + x[i % 5])
        p, q = q, p
    return p[0] + 2 * p[1] + 3 * q[0] + 4 * q[1]


def longer_at_one_end_or_the_other(x):
    past = [x[0], x[1], x[2]]
    for i in range(20):
        if past[0] > 0.2:
            past.append(0.5 * past[-1] + x[i % 5])
        else:
            past.insert(0, x[i % 5])
        past = past[-3:]
    return past[0] + 2 * past[1] + 3 * past[2]


def a_window_of_a_loop_around(x):
    line, total = [x[0], x[1], x[2]], 0.0
    for k in range(5):
        for i in range(20):
            line.append(0.5 * line.pop(0) + 0.1 * x[i % 5])
        total += line[0] * k
    return total + sum(line)


def a_window_for_each_step(x):
    total = 0.0
    for k in range(5):
        line = [x[0], x[1], x[2]]
        for i in range(20):
            line.append(0.5 * line.pop(0) + 0.1 * x[i % 5])
        total += line[0] * k
    return total


def a_function_moves_it(x):
    def push(line, v):
        line.append(v)
        return line.pop(0)

    line, y = [0.1, 0.2, 0.3], x[0]
    for i in range(20):
        y = 0.5 * y + push(line, y * x[i % 5])
    return y + sum(line)


def a_long_window_in_one_way(x):
    line, total = [0.0] * 70, 0.0
    for i in range(20):
        if x[i % 5] > 0.4:
            line.append(x[i % 5] * i)
            total += line.pop(0)
        else:
            line[3] = total * 0.1
        total += line[-1] + line[0]
    return total + sum(line)


def turned_in_one_way(x):
    line, total = [x[0], x[1], x[2]], 0.0
    for i in range(30):
        if line[0] > 0.3:
            line.reverse()
            line[0] = line[0] * 0.5
        else:
            line.append(line.pop(0) + x[i % 5])
        total += line[0]
    return total + sum(line)


CAPTURED = [
    a_moving_average, what_numpy_makes_of_a_window, a_delay_line, a_list_that_moves, another_name_sees_it,
    moved_in_one_way, windows_of_objects, a_window_of_arrays, in_a_while_loop_that_stops, in_an_inner_loop,
    a_long_window, a_long_window_that_is_filled, a_long_delay_that_begins_with_integers, a_delay_line_by_pop,
    the_newest_first, the_oldest_is_deleted, adams_and_bashforth, the_last_few_are_kept, a_window_of_an_object,
    the_same_list_by_two_names, a_stack_for_each_step, turned_in_one_way, a_list_that_another_name_knew,
    a_second_name_within_the_step, lists_that_are_swapped, longer_at_one_end_or_the_other, a_window_of_a_loop_around,
    a_window_for_each_step, a_function_moves_it, a_long_window_in_one_way,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_moves_a_window_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X, 0.7 * X, 0.4 * X)


def test_the_memory_of_an_optimiser_is_a_window():
    text = report_of(limited_memory, X)[1]
    assert "captured: 16 steps, state g, w, a list, a list" in text, text  # in which loops over the memory are unrolled
    agree(limited_memory, X)


def a_window_that_grows(x):
    window, total = deque([x[0]]), 0.0
    for i in range(20):
        window.append(0.5 * window[-1] + x[i % 5])
        total += sum(window)
    return total


def a_window_as_long_as_values_decide(x):
    window, total = deque(), 0.0
    for i in range(20):
        window.append(x[i % 5])
        while window[0] < x[i % 5] - 0.2:
            window.popleft()
        total += len(window) * x[i % 5]
    return total


def a_window_whose_arrays_are_written(x):
    window = deque([x * 1.0, 2 * x])
    for _ in range(6):
        window[0][1:] = 0.5 * window[0][:-1] + 0.3 * np.sin(window[1][1:])
        window.rotate(1)
    return np.sum(window[0] * window[1])


def lists_in_a_window(x):
    window, total = deque([[0.0, 1.0], [x[1], x[0]]], maxlen=2), 0.0
    for _ in range(20):
        window.append([window[0][1] * 0.5, window[1][0] + x[2]])
        window[0][1] += 1.0
        total += window[0][0] * window[1][1]
    return total


def given_another_name_in_one_way(x):
    window, kept, total = deque([x[0], x[1]], maxlen=2), deque([0.0, 0.0]), 0.0
    for i in range(20):
        window.append(0.5 * window[0] + x[i % 5])
        if x[i % 5] > 0.8:
            kept = window
        total += kept[0] * window[1]
    return total + kept[1]


def given_another_name_in_every_step(x):
    window, kept, total = deque([x[0], x[1]], maxlen=2), deque([0.0, 0.0]), 0.0
    for i in range(20):
        total += kept[0]
        kept = window
        window.append(0.5 * window[0] + x[i % 5])
        total += kept[1]
    return total + kept[0]


def changed_behind_the_loop(x):
    window = deque([x[0], x[1]], maxlen=2)
    for i in range(20):
        last = window
        window.append(0.5 * window[0] + x[i % 5])
    window.append(x[2])
    return last[1] + last[0] * 2


def chosen_of_two(x):
    window, other, total = deque([x[0], x[1]], maxlen=2), deque([0.1, 0.2], maxlen=2), 0.0
    for i in range(20):
        chosen = window if x[i % 5] > 0.5 else other
        chosen.append(0.5 * window[0] + x[i % 5])
        total += window[1] + 2 * other[1]
    return total


def a_long_window_of_integers(x):
    line, total = [1] * 100, 0.0
    for i in range(20):
        k = line.pop(0)
        line.append((k * 3 + i) % 5)
        total += x[k] * line[-1]
    return total + line[-1] / 2


def a_long_window_of_arrays(x):
    line, total = [x * 0.0] * 100, 0.0
    for i in range(20):
        line.append(x * i)
        total += line.pop(0)[0] + line[-1] @ x
    return total


def a_queue_that_empties(x):
    waiting, total = [0, 1, 2, 3, 4] * 4, x[0]
    for _ in range(20):
        total = total * 0.5 + x[waiting.pop()]
    return total + len(waiting)


def a_search_in_depth(x):
    stack, total = [0], 0.0
    while stack:
        i = stack.pop()
        total = total + np.sin(x[i % 5] * i)
        if 2 * i + 2 < 40:
            stack.append(2 * i + 1)
            stack.append(2 * i + 2)
    return total


def a_list_within_a_window(x):
    window, total = [[x[0], 0.1], [x[1], 0.2]], 0.0
    for i in range(20):
        window.append([window[0][0] * 0.5, x[i % 5]])
        last = window.pop(0)
        last[0] = 3.0
        total += last[0] * window[0][1]
    return total + window[1][0]


def arrays_of_a_list_that_are_written(x):
    line, total = [x * 1.0, x * 2.0], 0.0
    for i in range(20):
        u = line.pop(0)
        line.append(u)
        u[i % 5] *= 0.5
        total += np.sum(line[0] * line[1])
    return total


LEFT = [
    a_long_window_of_integers, a_long_window_of_arrays, a_queue_that_empties, a_list_within_a_window,
    arrays_of_a_list_that_are_written,
    a_window_that_grows, a_window_as_long_as_values_decide, a_window_whose_arrays_are_written, lists_in_a_window,
    given_another_name_in_one_way, given_another_name_in_every_step, changed_behind_the_loop,
    chosen_of_two,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_another_window_is_left_to_python(f):
    assert "recorded step by step" in report_of(f, X)[1]
    agree(f, X)


def test_a_search_in_depth_is_right():
    agree(a_search_in_depth, X)


OUTER = deque([0.5, 0.2], maxlen=2)


def test_a_window_from_outside_is_moved_as_without_jit():
    def f(x):
        total = 0.0
        for i in range(20):
            OUTER.append(float(i))
            total += x[i % 5] * OUTER[0]
        return total

    fast = fad.jit(fad.grad(f))
    for _ in range(2):
        OUTER.extend([0.5, 0.2])
        wanted = fad.grad(f)(X)
        OUTER.extend([0.5, 0.2])
        np.testing.assert_allclose(fast(X), wanted)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_numbers_that_have_not_been_moved_out_stay_pythons(n):
    def f(x):
        line = deque([0.0] * 5)
        for i in range(n):
            line.append(x[i] * 2)
            line.popleft()
        return NARROW * line[0], NARROW * line[4]

    def chained(x):
        a = b = c = 0.0
        for i in range(n):
            c = b + 1.0
            b = a + 1.0
            a = x[i]
        return NARROW * a, NARROW * b, NARROW * c

    x = np.arange(10.0)
    for g in (f, chained):
        with fad.config.use(loops="capture"):
            found = fad.jit(g)(x)
        for y, z in zip(found, g(x), strict=True):
            assert y.dtype == z.dtype
            np.testing.assert_allclose(y, z)


NARROW = np.ones(3, np.float32)


def test_numpy_takes_a_deque_of_traced_values():
    def f(x):
        window = deque([x[0], 2 * x[1], x[0] * x[2]])
        return np.mean(window) + np.std(window) + np.sum(np.array(window) ** 2) + np.asarray(window)[1]

    plain = np.array([(f(X + d) - f(X - d)) / 2e-6 for d in 1e-6 * np.eye(5)])
    np.testing.assert_allclose(fad.grad(f)(X), plain, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), plain, rtol=1e-6, atol=1e-9)
