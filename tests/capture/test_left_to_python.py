"""Traps of captured loops: aliases, views, names on some paths only, effects on Python's objects, closures, helpers."""

import functools
import itertools
import warnings

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
TABLE = np.linspace(0.5, 1.5, 12)
NAMES = ["a", "b", "c", "d", "e"]


# --- aliases and views --------------------------------------------------------------------------------------


def an_alias_sees_the_writes(x):
    u = x * 1.0
    same = u
    for i in range(5):
        u[i] = u[i - 1] * 0.5
    return np.sum(same**2)


def a_view_taken_before_sees_the_writes(x):
    u = x * 1.0
    tail = u[2:]
    for i in range(5):
        u[i] = u[i - 1] * 0.5
    return np.sum(tail**2)


def a_view_is_written(x):
    u = x * 1.0
    tail = u[2:]
    for i in range(3):
        tail[i] = tail[i - 1] * 0.5 + u[i]
    return np.sum(u**2)


def a_row_is_written(x):
    m = np.outer(x, x)
    for i in range(5):
        row = m[i]
        row[0] = row[1] * 2.0
        row[1:] *= 0.5
    return np.sum(m**2)


def an_array_that_one_way_gives_a_second_name_is_written_by_a_later_loop(x):
    u, v = x * 1.0, x[::-1].copy()
    for i in range(5):
        u = 0.5 * u + 0.2 * x
        if u[0] > -10:
            v = u
            if u[i - 1] > 0.2:
                continue
        u = u  # what follows the branch is in both of its ways
    for _ in range(5):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
    return np.sum(np.sin(u) * v)


def rows_run_over_are_written(x):
    m = np.outer(x, x)
    for row in m:
        row[1] = row[0] + 1.0
        row *= 2.0
    return np.sum(m**2)


def an_array_that_is_run_over_is_written(x):
    u = x * 1.0
    s = 0.0
    for i, v in enumerate(u):
        s = s + v
        u[4 - i] = s * 0.5
    return np.sum(u) + s


def rows_of_a_view_while_it_is_written(x):
    m = np.outer(x, x)
    s = 0.0
    for row in m[1:4]:
        m[3] = m[3] * 0.5 + row
        s = s + np.sum(row)
    return s + np.sum(m)


def a_name_becomes_another_array(x):
    u, v = x * 1.0, x * 2.0
    for i in range(5):
        u[i] = v[i] * 0.5
        if i == 2:
            u = v
    return np.sum(u) + np.sum(v)


def two_names_for_one_array(x):
    u = x * 1.0
    v = u
    for i in range(5):
        v = v + 0.1
        v[i] = u[i] * 2.0
        u = v
    return np.sum(u * v)


def a_view_is_carried(x):
    m = np.outer(x, x)
    row = m[0]
    for i in range(1, 5):
        m[i] = row * 0.5 + m[i]
        row = m[i]
    m[4] = m[4] * 2.0
    return np.sum(row) + np.sum(m)


def rebound_and_written(x):
    u = x * 1.0
    first = u
    for i in range(4):
        u[i] = u[i + 1] * 0.5
        u = u * 1.1
    return np.sum(u) + np.sum(first)


def a_choice_of_arrays_is_written(x):
    u, v = x * 1.0, x * 2.0
    for i in range(5):
        w = u if x[i] > 0.5 else v
        w[i] = w[i] * 3.0
    return np.sum(u * v)


def accept_or_reject(x):
    best, least = x * 1.0, 10.0
    for i in range(6):
        trial = best * (0.9 + 0.05 * i)
        cost = np.sum((trial - 0.5) ** 2)
        if cost < least:
            best, least = trial, cost
    return np.sum(best**2) + least


def flat_and_reshaped(x):
    m = np.outer(x, x)
    line = m.reshape(-1)
    for i in range(24):
        line[i] = line[i + 1] * 0.9
    return np.sum(m[:, 0]) + np.sum(m**2)


def a_buffer_of_the_body(x):
    s = x * 1.0
    for i in range(5):
        b = np.zeros(5)
        b[1:] = s[:-1]
        b[0] = s[4] * x[i]
        s = b
    return np.sum(s**2)


# --- names --------------------------------------------------------------------------------------------------


def bound_on_some_paths(x):
    y = x[0]
    for i in range(5):
        if x[i] > 0.8:
            y = x[i] * 2.0
    return y


def first_bound_on_some_paths(x):
    for i in range(5):
        if x[i] > 0.8:
            z = x[i] * 2.0  # noqa: F841
        s = x[i]
    return s


def kept_from_the_step_before(x):
    s = x[0]
    for i in range(6):
        if i > 0:
            s = s + previous * 0.5  # noqa: F821
        previous = s * x[1]  # noqa: F841
    return s


def none_at_first(x):
    previous, s = None, x[0]
    for i in range(5):
        s = s + (x[i] if previous is None else previous * 0.5)
        previous = x[i]
    return s


def a_state_that_changes_shape_once(x):
    s = 0.0
    for i in range(5):
        s = s + x * x[i]
    return np.sum(s**2)


def the_target_is_changed(x):
    s = 0.0
    for i in range(4):
        i = i + 1
        s = s + x[i]
    return s + i


def a_closure_reads_the_state(x):
    s = x[0]

    def grown(v):
        return s * 0.5 + v

    for i in range(5):
        s = grown(x[i])
    return s


def a_function_made_in_the_body(x):
    s = x[0]
    for i in range(5):

        def add(v):
            return v + x[i] * s  # noqa: B023

        s = add(s) * 0.5
    return s


def a_lambda_over_the_counter(x):
    s = x[0]
    for i in range(5):
        s = (lambda v: v * 0.5 + x[i])(s)
    return s


def a_comprehension_in_the_body(x):
    s = x[0]
    for i in range(5):
        s = s * 0.5 + sum([x[k] * i for k in range(3)])
    return s


def a_walrus(x):
    s, n = x[0], 0
    while (t := s * 0.5 + x[1]) > 0.05 and n < 6:
        s = t
        n += 1
    return s + t


# --- helpers ------------------------------------------------------------------------------------------------


def relax(u, i, w=0.5):
    """Write into an array, as a helper does."""
    u[i] = w * u[i] + (1.0 - w) * u[i - 1]


def a_helper_that_writes(x):
    u = x * 1.0
    for _ in range(3):
        for i in range(1, 5):
            relax(u, i)
    return np.sum(u**2)


def returned(u, i):
    u[i] *= 0.5
    return u


def a_helper_that_writes_and_returns(x):
    u = x * 1.0
    same = u
    for i in range(5):
        u = returned(u, i)
    return np.sum(u) + np.sum(same**2)


def early(v):
    if v > 0.8:
        return v**2
    if v < 0.0:
        w = -v
    else:
        w = v * 2.0
    return w + 1.0


def a_helper_with_early_returns(x):
    s = 0.0
    for i in range(5):
        s = s + early(x[i])
    return s


def powers(v, n):
    total = 0.0
    for k in range(n):
        total = total + v**k
    return total


def a_helper_with_a_loop(x):
    s = x[0]
    for i in range(8):
        s = s * 0.3 + powers(x[1], 3) * i
    return s


def power(v, n):
    return v if n == 0 else v * power(v, n - 1) * 0.5


def a_recursive_helper(x):
    s = x[0]
    for i in range(5):
        s = s * 0.5 + power(x[i], 3)
    return s


class Spring:
    """A helper with a method."""

    def __init__(self, k):
        self.k = k

    def force(self, v):
        return -self.k * v if v > 0.2 else -0.5 * self.k * v


def a_method(x):
    spring = Spring(x[1])
    s = x[0]
    for _ in range(8):
        s = s + 0.1 * spring.force(s)
    return s


def scaled(factor):
    def decorate(f):
        @functools.wraps(f)
        def run(v):
            return factor * f(v)

        return run

    return decorate


@scaled(0.5)
def decorated(v):
    return np.sin(v) + 1.0


def a_decorated_helper(x):
    s = x[0]
    for i in range(5):
        s = decorated(s) + x[i]
    return s


def an_inner_gradient(x):
    s = x[0]
    for i in range(4):
        s = s - 0.1 * fad.grad(lambda v: np.sin(v) * x[i])(s)  # noqa: B023
    return s


# --- what is not captured -----------------------------------------------------------------------------------


def prints(x):
    s = x[0]
    for i in range(5):
        print("step", i)
        s = s + x[i]
    return s


def draws_from_a_generator(x):
    scales = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    s = 0.0
    for i in range(5):
        s = s + next(scales) * x[i]
    return s


def runs_over_a_generator(x):
    s = 0.0
    for v in (k * 0.5 for k in range(5)):
        s = s + x[0] * v
    return s


def looks_up_a_list_of_strings(x):
    s = 0.0
    for i in range(5):
        if NAMES[i] == "c":
            s = s + x[i]
    return s


def fills_a_dictionary(x):
    found = {}
    for i in range(5):
        found[i] = x[i] ** 2
    return found[0] + found[4]


def tries(x):
    s = x[0]
    for i in range(5):
        try:
            s = s + x[i]
        finally:
            s = s * 0.5
    return s


def asserts(x):
    s = x[0]
    for i in range(5):
        assert x[i] > -1.0
        s = s * x[i]
    return s


def changes_shape(x):
    s = x[:1]
    for i in range(4):
        s = np.concatenate([s, s[-1:] * x[i]])
    return np.sum(s)


def counts_in_a_closure(x):
    n = 0

    def count():
        nonlocal n
        n += 1
        return n

    s = x[0]
    for i in range(5):
        s = s + count() * x[i]
    return s


def runs_over_itertools(x):
    s = x[0]
    for i, j in itertools.zip_longest(range(5), range(3), fillvalue=4):
        s = s + x[i] * x[j]
    return s


def pops_from_a_list(x):
    waiting = [0, 1, 2, 3, 4]
    s = x[0]
    for _ in range(5):
        s = s * 0.5 + x[waiting.pop()]
    return s


def factorial_of_python_integers(x):
    p = 1
    for i in range(1, 26):
        p = p * i
    return x[0] * (p % 1000003)


def doubled_integers(x):
    n = 1
    s = x[0]
    for _ in range(80):
        n = n * 2
        s = s * 0.5 + x[1]
    return s * (n % 1000003)


SAME = [
    an_alias_sees_the_writes, a_view_taken_before_sees_the_writes, a_view_is_written, a_row_is_written,
    counts_in_a_closure, tries,
    an_array_that_one_way_gives_a_second_name_is_written_by_a_later_loop,
    rows_run_over_are_written, an_array_that_is_run_over_is_written, rows_of_a_view_while_it_is_written,
    a_name_becomes_another_array, two_names_for_one_array, a_view_is_carried, rebound_and_written,
    a_choice_of_arrays_is_written, accept_or_reject, flat_and_reshaped, a_buffer_of_the_body, bound_on_some_paths,
    first_bound_on_some_paths, kept_from_the_step_before, none_at_first, a_state_that_changes_shape_once,
    the_target_is_changed, a_closure_reads_the_state, a_function_made_in_the_body, a_lambda_over_the_counter,
    a_comprehension_in_the_body, a_walrus, a_helper_that_writes, a_helper_that_writes_and_returns,
    a_helper_with_early_returns, a_helper_with_a_loop, a_recursive_helper, a_method, a_decorated_helper,
    an_inner_gradient, asserts, changes_shape, fills_a_dictionary, looks_up_a_list_of_strings,
    prints,
]  # fmt: skip
LEFT = [
    draws_from_a_generator, runs_over_a_generator,
    runs_over_itertools, pops_from_a_list,
    factorial_of_python_integers, doubled_integers,
]  # fmt: skip


@pytest.mark.parametrize("f", SAME, ids=lambda f: f.__name__)
def test_traps_of_names_and_arrays(f):
    agree(f, X)


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_what_is_not_captured_is_right(f):
    agree(f, X, order=1)


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_effects_are_recorded_step_by_step(f):
    what, text = report_of(f, X)
    assert "captured" not in what, text


def test_a_name_that_no_step_bound_stays_unbound():
    def f(x, n):
        for i in range(n):
            y = x * i
        return y

    for loops in ("capture", "record"):
        with fad.config.use(loops=loops), pytest.raises(UnboundLocalError, match="y"):
            fad.jit(lambda x: f(x, 0))(1.0)


def test_plain_arrays_from_outside_are_written_as_without_jit():
    out = np.zeros(5)

    def f(x):
        for i in range(5):
            out[i] = i * 2.0
        return np.sum(x) + np.sum(out)

    with fad.config.use(loops="capture"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fad.jit(f)(X) == f(X)
    np.testing.assert_array_equal(out, np.arange(5) * 2.0)


def test_printing_happens_once_for_each_step(capsys):
    with fad.config.use(loops="capture"):
        fad.jit(prints)(X)
    assert capsys.readouterr().out == "".join(f"step {i}\n" for i in range(5))


def test_an_error_shows_the_users_line():
    def f(x):
        s = x[0]
        for _ in range(9):
            s = s + np.linalg.not_there(x)
        return s

    with fad.config.use(loops="capture"), pytest.raises(AttributeError) as error:
        fad.jit(f)(X)
    lines = [at.lineno for at in error.traceback if at.path.name == "test_left_to_python.py"]
    assert lines[-1] == f.__code__.co_firstlineno + 2


def test_an_index_out_of_range_is_an_error():
    def f(x, n):
        s = x[0]
        for i in range(9):
            s = s + x[i + n]
        return s

    for loops in ("capture", "record"):
        with fad.config.use(loops=loops):
            g = fad.jit(f)
            g(np.ones(20), 0)
            for _ in range(2):
                with pytest.raises(IndexError):
                    g(np.ones(20), 14)


def read_and_not_used(x, n):
    s = x[0]
    for i in range(9):
        x[i + n]
        s = s * 0.5
    return s


def read_by_name_and_not_used(x, n):
    s = x[0]
    for i in range(9):
        known = x[i, n] if x.ndim == 2 else x[n - i]  # noqa: F841
        s = s * 0.5
    return s


@pytest.mark.parametrize("f", [read_and_not_used, read_by_name_and_not_used])
@pytest.mark.parametrize("transform", [lambda f: f, fad.grad], ids=["value", "gradient"])
def test_an_index_out_of_range_is_an_error_though_nothing_needs_the_element(f, transform):
    g = fad.jit(transform(f))
    g(np.ones(20), np.int64(9))
    for _ in range(2):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 20"):
            g(np.ones(20), np.int64(40))


def test_an_element_that_is_there_may_stay_unread():
    def f(x):
        s = x[0]
        for i in range(9):
            x[i - 4]
            s = s * 0.5
        return s

    g, x = fad.jit(f), np.ones(5)
    with fad.config.use(loops="capture"):
        assert g(x) == f(x)
    assert "captured" in g.explain()


def return_behind_continue(x):
    t = x[0]
    u = x * 1.0
    for i in range(5):
        t = 0.8 * t + 0.06 * i * u[i]
        if u[i] > 0.9:
            continue
        if u[2] > 5.2:
            return np.sum(u)
    return t


def return_behind_continue_backwards(x):
    t = x[0]
    v = 0.5 * x[::-1].copy()
    for i in reversed(range(5)):
        t = 0.8 * t + 0.006 * i * x[i]
        if x[4 - i] > 0.9:
            continue
        if v[2] > 1.2:
            return np.sum(x)
    return t


def return_behind_continue_while(x):
    t, i = x[0], 0
    while i < 5:
        i += 1
        t = 0.8 * t + 0.06 * i * x[i - 1]
        if x[i - 1] > 0.9:
            continue
        if x[2] > 1.1 and i > 3:
            return np.sum(x * x) + t
    return t


@pytest.mark.parametrize("f", [return_behind_continue, return_behind_continue_backwards, return_behind_continue_while])
def test_a_return_behind_a_continue_is_right(f):
    agree(f, X, X[::-1].copy(), 6 * X)


def swapped_and_known(x):
    u, v = x * 1.0, x * 2.0
    known = u
    for _ in range(5):
        u, v = v, u
    u[0] = 5.0
    return np.sum(known * x) + np.sum(v)


def a_while_loop_of_no_steps(x):
    u = x * 1.0
    known = u
    while np.sum(u) > 100.0:
        u = u * 0.5
    u[1] = 7.0
    return np.sum(known * x)


@pytest.mark.parametrize("f", [swapped_and_known, a_while_loop_of_no_steps], ids=lambda f: f.__name__)
def test_arrays_with_two_names_behind_a_loop_are_written(f):
    agree(f, X)


def test_explain_says_what_became_of_each_loop():
    def f(x):
        s, out = x[0], []
        for i in range(4000):
            s = np.sin(s) + x[i % 5]
        for i in range(3):
            s = s * x[i]
        for i in range(150):
            out.insert(1, s * i)
        return sum(out)

    fast = fad.jit(f)
    fast(X)
    text = fast.explain()
    first = f.__code__.co_firstlineno
    name = "loop at test_left_to_python.py"
    assert f"{name}:{first + 2}: captured: 4000 steps, state s" in text
    assert f"{name}:{first + 4}: unrolled: 3 steps" in text
    assert f"{name}:{first + 6}: recorded step by step: a list or deque, from which it may take elements," in text


def two_names_at_first(x):
    u = x * 1.0
    v = u
    for _ in range(4):
        v[1:] = 0.5 * v[1:] + 0.4 * v[:-1]
        u = 0.5 * u + 0.3 * v
    return np.sum(np.sin(u) * v)


def a_view_of_what_is_swapped(x):
    u, v = x * 1.0, x * 0.5
    known = u[1:4]
    for _ in range(5):
        v[1:] = 0.5 * v[1:] + 0.4 * v[:-1]
        u, v = v, u
    return np.sum(known**2) + np.sum(u)


def a_swap_in_one_way(x):
    s, t = 0.1, x[0]
    for i in range(0, 5, 2):
        t = 0.8 * t
        if i % 2 == 0:
            if i > 1:
                continue
            s, t = t, 0.5
    return s + 10.0 * t * x[1]


@pytest.mark.parametrize(
    "f", [two_names_at_first, a_view_of_what_is_swapped, a_swap_in_one_way], ids=lambda f: f.__name__
)
def test_what_random_programs_found(f):
    agree(f, X)


def one_array_for_two_names_of_a_branch(x):
    u, v = x * 1.0, x * 0.5
    for i in range(5):
        if x[i] > 0.5:
            u[i] += 0.2 * x[0]
            u = 0.5 * u + 0.2 * v
            v = u
    return np.sum(np.sin(u) * v)


def test_a_branch_that_leaves_two_names_with_one_array():
    agree(one_array_for_two_names_of_a_branch, X)


def a_flag_is_asked_by_identity(x):
    found, total = False, 0.0
    for i in range(5):
        if x[i] > 1.0:
            found = True
        total = total + (x[i] if found is True else 0.5)
        if found is not False:
            total = total * 1.5
    return total


def a_search_goes_on_while_a_flag_is_false(x):
    total = 0.0
    for start in range(3):
        i, done = start, False
        while done is False:
            total, i = total + x[i], i + 1
            if i == 5 or x[i] > 1.0:
                done = True
    return total


def a_comparison_of_numpy_is_no_flag_of_pythons(x):
    large, total = x[0] > 1.0, 0.0
    for i in range(5):
        total = total + (10.0 * x[i] if large is True else x[i])
        large = not large
    return total


@pytest.mark.parametrize(
    "f",
    [a_flag_is_asked_by_identity, a_search_goes_on_while_a_flag_is_false, a_comparison_of_numpy_is_no_flag_of_pythons],
    ids=lambda f: f.__name__,
)
def test_is_asks_for_the_objects_of_a_plain_run(f):
    agree(f, np.array([0.4, 0.7, 1.3, 0.2, 0.9]))


class _Scaled:
    def __init__(self, twice):
        self.twice = twice

    def __call__(self, x, more=False):
        return x * (2.0 if self.twice is True else 3.0) if more is not True else x * 7.0


def _scaled(x, flags, *, more=False):
    return _Scaled(flags["twice"])(x, more) + (1.0 if more is False else 2.0)


@pytest.mark.parametrize("more", [True, False, 1, np.True_])
@pytest.mark.parametrize("twice", [True, False])
def test_is_finds_the_flags_that_a_jitted_function_is_given(twice, more):
    flags = {"twice": twice}
    compiled, model = fad.jit(_scaled), fad.jit(_Scaled(twice))
    for _ in range(2):
        assert compiled(1.5, flags, more=more) == _scaled(1.5, flags, more=more)
        assert compiled(1.5, flags, more=not more) == _scaled(1.5, flags, more=not more)
        assert model(1.5, more) == _Scaled(twice)(1.5, more)
    assert fad.jit(fad.grad(_scaled))(1.5, flags, more=more) == fad.grad(_scaled)(1.5, flags, more=more)
