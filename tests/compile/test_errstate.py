"""NumPy's error state around compiled programs: what requests more than warnings is honoured, by NumPy."""

import threading

import numpy as np
import pytest

import fad

pytest.importorskip("llvmlite")
from natively import compiled

from fad.core.runs import errstate

X = np.linspace(0.0, 2.0, 9)


def logarithms(x):
    return np.log(x) * 2.0


def test_a_compiled_program_raises_where_numpy_is_set_to():
    fast = compiled(logarithms, X + 1.0)
    with np.errstate(divide="raise"):
        for _ in range(2):
            with pytest.raises(FloatingPointError, match="divide by zero") as error:
                fast(X)
            assert "in the operation log" in error.value.__notes__[0]
        np.testing.assert_allclose(fast(X + 1.0), logarithms(X + 1.0), rtol=1e-15)
    assert fast(X)[0] == -np.inf  # a warning would be an error here
    assert fast.cache_info().misses == 1


def test_guards_paths_and_derivatives_are_right_under_errors_too():
    def f(x):
        return np.sum(np.sqrt(x)) if x[0] > 1.0 else np.sum(x * x)

    fast, slope = compiled(f, X), compiled(fad.grad(f), X)
    with np.errstate(all="raise"):
        for x in (X, X + 2.0, X, X + 2.0):
            np.testing.assert_allclose(fast(x), f(x), rtol=1e-14)
            np.testing.assert_allclose(slope(x), fad.grad(f)(x), rtol=1e-14)


def test_a_function_to_be_called_is_called():
    seen = []
    fast = compiled(logarithms, X + 1.0)
    with np.errstate(divide="call", call=lambda kind, flag: seen.append(kind)):
        fast(X)
    assert seen == ["divide by zero"]


@pytest.mark.parametrize("how", ["ignore", "warn"])
def test_states_that_ask_for_warnings_at_most_are_looked_at_once(how, monkeypatch):
    asked = []
    geterr = np.geterr
    fast = compiled(logarithms, X + 1.0)
    monkeypatch.setattr(np, "geterr", lambda: asked.append(1) or geterr())
    with np.errstate(all=how):
        for _ in range(5):
            assert fast(X)[0] == -np.inf
    assert len(asked) <= 1


def test_the_error_state_is_that_of_the_thread_that_calls():
    fast, found = compiled(logarithms, X + 1.0), []
    with np.errstate(all="raise"):
        other = threading.Thread(target=lambda: found.append(fast(X)[0]))
        other.start()
        other.join()
    assert found == [-np.inf]


def test_without_numpys_variable_the_state_is_asked_for_in_every_call(monkeypatch):
    monkeypatch.setattr(errstate, "state", object)
    with np.errstate(all="ignore"):
        assert not errstate.is_strict()
        assert errstate.calm[0] is not errstate.state()
    with np.errstate(under="print"):
        assert errstate.is_strict()


def test_scipys_own_error_state_is_that_of_the_first_call_and_of_calls_that_run_in_numpy():
    special = pytest.importorskip("scipy.special")
    fast = fad.jit(lambda x: special.gammaln(x) + 1.0)
    with special.errstate(all="raise"):
        with pytest.raises(special.SpecialFunctionError):
            fast(X)
        fast(X + 1.0)
        assert fast(X)[0] == np.inf  # compiled, by pointer
        with np.errstate(all="raise"), pytest.raises(special.SpecialFunctionError):
            fast(X)
