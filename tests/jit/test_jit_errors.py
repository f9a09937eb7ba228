"""Errors in the replay of a jitted call: the type and words are NumPy's, and a note has the operation and its line."""

import linecache

import numpy as np
import pytest

import fad
from fad import control
from fad.compile.targets.select import has_llvm, using

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
A, X, AT = np.eye(3), np.arange(10.0), np.array([1, 2])
XS = np.stack([X, X])


@pytest.fixture(autouse=True, params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def replayed(f, *args):
    """Return a jitted function that has recorded and compiled its path."""
    fast = fad.jit(f)
    fast(*args)
    fast(*args)
    return fast


def note(error):
    (found,) = error.value.__notes__
    return found


def inverted(a):
    b = a * 2.0
    return np.linalg.inv(b) + 1.0  # inverted here


def factored(a):
    return np.sum(np.linalg.cholesky(a))  # factored here


def looked_up(x, at):
    y = np.sin(x)
    return y[at] * 2.0  # looked up here


def changed(x, at):
    return fad.numpy.at(x)[at].set(1.0)  # changed here


def raised(x, at):
    return at ** (at - 1)


def repeated(x, at):
    step = lambda k, s: s + x[at[0] + k]  # repeated here
    return control.fori_loop(0, 3, step, 0.0)


def inverted_in_turn(a):
    step = lambda k, s: np.linalg.inv(s)  # inverted in turn here
    return control.fori_loop(0, 3, step, a)


def chosen(x, at):
    return control.cond(at[0] > 3, lambda v: v[at] * 2.0, lambda v: v[:2], x)  # chosen here


@pytest.mark.parametrize(
    ("f", "good", "bad", "kind", "operation", "line"),
    [
        (inverted, (A,), (0 * A,), np.linalg.LinAlgError, "inverse", "inverted here"),
        (fad.grad(lambda a: np.sum(inverted(a))), (A,), (0 * A,), np.linalg.LinAlgError, "linalg.inv", "inverted here"),
        (factored, (A,), (-A,), np.linalg.LinAlgError, "cholesky_of", "factored here"),
        (inverted_in_turn, (A,), (0 * A,), np.linalg.LinAlgError, "inverse", "inverted in turn here"),
        (looked_up, (X, AT), (X, AT + 99), IndexError, "getitem", "looked up here"),
        (
            fad.grad(lambda x, at: np.sum(looked_up(x, at) ** 2)),
            (X, AT),
            (X, AT - 99),
            IndexError,
            "getitem",
            "looked up",
        ),
        (fad.vmap(looked_up), (XS, AT), (XS, AT + 99), IndexError, "getitem", "looked up"),
        (changed, (X, AT), (X, AT + 99), IndexError, "index_set", "changed here"),
        (repeated, (X, AT), (X, AT + 7), IndexError, "getitem", "repeated here"),
        (chosen, (X, AT), (X, AT + 99), IndexError, "getitem", "chosen here"),
        (raised, (X, AT), (X, AT - 1), ValueError, "power", "without jit"),
    ],
)
def test_a_replay_that_fails_names_the_operation_and_the_line_that_it_was_recorded_at(
    f, good, bad, kind, operation, line
):
    with pytest.raises(kind) as plain:
        replayed(f, *good).__wrapped__(*bad)
    fast = replayed(f, *good)
    for _ in range(2):
        with pytest.raises(kind) as error:
            fast(*bad)
        assert str(error.value) == str(plain.value)
        assert operation in note(error)
        assert line in note(error)
    for a, b in zip(fad.tree.leaves(fast(*good)), fad.tree.leaves(f(*good)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_line_is_the_last_one_that_ran_where_an_operation_stands_in_several():
    def f(a, b):
        first = np.linalg.inv(a)
        second = np.linalg.inv(b)  # the second
        return first + second

    fast = replayed(f, A, 2 * A)
    with pytest.raises(np.linalg.LinAlgError) as error:
        fast(A, 0 * A)
    assert "# the second" in note(error)


def test_a_long_loop_that_fails_natively_names_the_line_in_its_body():
    def f(x, start):
        step = lambda k, s: s + x[(start + k) // 10_000]  # in the body
        return control.fori_loop(0, 30_000, step, 0.0)

    fast = replayed(f, X, 0)
    with pytest.raises(IndexError, match="index 10 is out of bounds") as error:
        fast(X, 75_000)
    assert "# in the body" in note(error)


def test_every_operation_has_its_line_where_it_was_recorded_under_errors_of_numpy():
    with using("numpy"), np.errstate(all="raise"):
        fast = replayed(lambda x: np.log(x) + 1.0, X + 1.0)  # recorded here
        with pytest.raises(FloatingPointError, match="divide by zero") as error:
            fast(X)
    assert "in the operation log, recorded at" in note(error)
    assert "# recorded here" in note(error)


def test_recording_looks_up_the_lines_of_those_operations_alone_that_refuse_some_values(monkeypatch):
    from fad.staging import record_trace

    seen = []
    monkeypatch.setattr(record_trace, "user_place", lambda: seen.append(1) or None)
    fad.jit(lambda x: np.sum(np.sin(x[1:]) * x[0]) + np.max(x.reshape(5, 2) @ x[:2]))(X)
    assert not seen
    fad.jit(lambda x, at: x[at])(X, AT)
    assert len(seen) == 1


# --- functions that know what to do ------------------------------------------------------------------------------


def or_zeros(a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.zeros_like(a)


def or_nothing(x, at):
    try:
        return np.sum(x[at])
    except IndexError:
        return 0.0


def or_infinite(x, y):
    try:
        return x / y
    except ZeroDivisionError:
        return np.inf if x > 0 else -np.inf


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (or_zeros, [(A,), (0 * A,), (2 * A,), (0 * A,)]),
        (or_nothing, [(X, AT), (X, AT + 99), (X, AT + 1)]),
        (or_infinite, [(3.0, 2.0), (3.0, 0.0), (-3.0, 0.0), (1.0, 4.0)]),
    ],
)
def test_a_function_that_catches_the_error_of_an_operation_does_so_in_every_call(f, calls):
    fast = fad.jit(f)
    for _ in range(2):
        for args in calls:
            for _ in range(2):
                np.testing.assert_array_equal(fast(*args), f(*args))
    assert fast.cache_info().paths == 1


def guarded_lookup(x, at):
    return x[at] * 2.0 if np.sum(at) < 5 else np.zeros(2)


def guarded_quotient(x, y):
    return x / y if y != 0 else 7.0


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (guarded_lookup, [(X, AT), (X, AT + 40), (X, AT - 1), (X, AT + 50)]),
        (guarded_quotient, [(1.0, 2.0), (1.0, 0.0), (1.0, 4.0), (2.0, 0.0)]),
    ],
)
def test_an_operation_behind_a_question_that_has_another_answer_now_is_not_run(f, calls):
    fast = fad.jit(f)
    for _ in range(2):
        for args in calls:
            for _ in range(2):
                np.testing.assert_array_equal(fast(*args), f(*args))
    assert fast.cache_info().paths == 2


def test_floating_point_errors_may_be_caught_as_well():
    def f(x):
        try:
            return np.log(x)
        except FloatingPointError:
            return np.zeros_like(x)

    fast = replayed(f, X + 1.0)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(fast(X), 0.0 * X)
    np.testing.assert_allclose(fast(X + 1.0), np.log(X + 1.0), rtol=1e-15)


def raising_in_a_part(x):
    y = 2.0 * x
    with np.errstate(divide="raise"):
        return y + np.log(x)


def caught_in_a_part(x):
    try:
        return raising_in_a_part(x)
    except FloatingPointError:
        return x


def raising_around_a_loop(x):
    with np.errstate(all="raise"):
        for _ in range(5):
            x = x + np.log(x)
    return x


def raising_in_a_loop(x):
    for _ in range(5):
        with np.errstate(all="raise"):
            x = x + np.log(x)
    return x


@pytest.mark.parametrize(
    "f", [raising_in_a_part, caught_in_a_part, raising_around_a_loop, raising_in_a_loop], ids=lambda f: f.__name__
)
def test_a_part_of_a_function_may_ask_for_floating_point_errors(f):
    fast = fad.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(fast(X + 1.0), f(X + 1.0))
    if f is caught_in_a_part:
        np.testing.assert_array_equal(fast(0.0 * X), 0.0 * X)
        return
    for call in (fast, fad.jit(fad.grad(lambda x: np.sum(f(x))))):
        for _ in range(2):
            with pytest.raises(FloatingPointError, match="divide by zero"):
                call(0.0 * X)


def test_donated_arguments_are_there_for_a_function_that_catches_the_error():
    def f(p, a):
        try:
            return p * 2.0, np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return p * 3.0, a

    fast = fad.jit(f, donate_argnums=0)
    for a, factor in ((A, 2.0), (A, 2.0), (0 * A, 3.0), (A, 2.0)):
        np.testing.assert_array_equal(fast(np.full((100, 100), 5.0), a)[0], 5.0 * factor)


def test_an_exception_from_outside_runs_nothing_again(monkeypatch):
    runs = []
    fast = fad.jit(lambda x: runs.append(1) or x * 2.0)
    fast(X)
    fast(X)
    (path,) = next(iter(fast._signatures.values())).paths

    def stopped(xs):
        raise TimeoutError("five seconds")

    monkeypatch.setattr(path, "entry", stopped)
    with pytest.raises(TimeoutError):
        fast(X)
    assert len(runs) == 1


def test_the_traceback_is_that_of_the_function():
    fast = replayed(inverted, A)
    with pytest.raises(np.linalg.LinAlgError) as error:
        fast(0 * A)
    assert "inverted" in [entry.name for entry in error.traceback]
    assert error.value.__suppress_context__


def test_a_guard_that_fails_is_no_error_and_has_no_note():
    fast = replayed(lambda x: np.linalg.inv(x) if x[0, 0] > 0 else x, A)
    np.testing.assert_array_equal(fast(-A), -A)


def test_the_place_survives_the_passes():
    graph = fad.make_graph(lambda a: np.linalg.inv(a.T.T * 1.0))(A)
    from fad.compile.pipeline import optimise

    (eq,) = [eq for eq in optimise(graph).equations if eq.prim.name == "inverse"]
    name, number = eq.place
    assert "a.T.T" in linecache.getline(name, number)
