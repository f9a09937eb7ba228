"""jit tells at recording that a function drew random numbers, or read a clock, that its program would repeat."""

import random
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.stats

import fad
from fad.errors import ImpureFunctionWarning

X = np.ones(3)
outside = np.random.default_rng(0)
from_random = random.Random(0)
from_system = random.SystemRandom()


class Noise:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, x):
        return x + self.rng.normal(size=x.shape)

    def method(self, x):
        return x + self.rng.normal()


def helper(shape):
    return outside.normal(size=shape)


def made_here():
    rng = np.random.RandomState(0)
    return lambda x: x * rng.rand()


class StandsIn:
    """An object that stands in for another, which is not there yet, as those of web frameworks do."""

    __class__ = property(lambda self: self.absent)

    def __getattr__(self, name):
        raise RuntimeError("there is nothing behind it")


def beside_a_stand_in(function):
    """Return a function that holds a stand-in; pytest looks at what a module holds."""
    stands_in = StandsIn()
    return lambda x: function(x) if stands_in is not None else x


FROZEN = {
    "numpy's global generator": lambda x: x + np.random.rand(3),
    "one of its functions by name": lambda x, draw=np.random.standard_normal: x + draw(3),
    "a global Generator": lambda x: x + outside.normal(size=3),
    "a Generator of a function called": lambda x: x + helper(3),
    "a Generator kept in a closure": made_here(),
    "a Generator of a callable object": Noise(),
    "a Generator of a method's object": Noise().method,
    "random's global generator": lambda x: x * random.random(),
    "an instance of random.Random": lambda x: x * from_random.gauss(0.0, 1.0),
    "a gradient": fad.grad(lambda x: np.sum(x * np.random.rand(3))),
    "a function with static arguments, under grad": fad.grad(
        lambda x: np.sum(fad.jit(lambda x, n: x * outside.normal(size=n), static_argnums=1)(x, 3))
    ),
    "time": lambda x: x + time.time(),
    "a counter of the processor": lambda x: x + time.perf_counter(),
}


@pytest.mark.parametrize("name", FROZEN)
def test_numbers_that_a_program_would_repeat_are_warned_of_at_recording_with_the_line(name):
    function = FROZEN[name]
    with pytest.warns(ImpureFunctionWarning, match=r"test_jit_hidden_inputs\.py:\d+: .*argument") as seen:
        (function if name.endswith("under grad") else fad.jit(function))(X)
    warning = seen[0]
    assert {w.category for w in seen} == {ImpureFunctionWarning}
    assert warning.filename == __file__


def test_an_object_that_may_not_be_looked_at_does_not_hide_what_is_drawn():
    with pytest.warns(ImpureFunctionWarning, match="np.random.rand"):
        fad.jit(beside_a_stand_in(lambda x: x + np.random.rand()))(X)


def test_the_line_named_is_the_one_that_draws():
    def f(x):
        y = np.sin(x)
        noise = np.random.normal(size=3)  # here
        return y + noise

    with pytest.warns(ImpureFunctionWarning, match=r"noise = np\.random\.normal\(size=3\)  # here"):
        fad.jit(f)(X)


def test_a_draw_in_a_library_is_warned_of_without_its_line_where_no_other_thread_may_have_drawn(monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # tests before this one may have left threads
    with pytest.warns(ImpureFunctionWarning, match=r"numpy\.random.*fad\.random"):
        fad.jit(lambda x: x + scipy.stats.norm.rvs(size=3))(X)


def test_an_operation_that_draws_for_ends_of_its_own_is_not_warned_of():
    a = np.diag([1.0, 2.0, 3.0]) + 0.1
    for f in (fad.scipy.linalg.logm, lambda a: fad.scipy.linalg.fractional_matrix_power(a, 0.3)):
        np.testing.assert_array_equal(fad.jit(f)(a), f(a))
    looped = fad.jit(lambda a: fad.fori_loop(0, 2, lambda i, x: fad.scipy.linalg.logm(x) + a, a))
    assert looped(a).shape == (3, 3)


def test_a_draw_in_another_thread_is_not_taken_for_the_functions():
    started, done = threading.Event(), threading.Event()

    def draws():
        started.wait(120)
        np.random.rand()
        done.set()

    def f(x):
        started.set()
        done.wait(120)
        return x + 1.0

    thread = threading.Thread(target=draws)
    thread.start()
    fad.jit(f)(X)
    thread.join()


def test_a_program_is_warned_of_once():
    fast = fad.jit(lambda x: x + np.random.rand())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in (2, 3, 4, 4):
            fast(np.ones(n))
    assert [w.category for w in seen] == [ImpureFunctionWarning]


PURE = {
    "an object that may not be looked at": beside_a_stand_in(lambda x: x + 1.0),
    "the system's generator, which has no state": lambda x: x + 1.0 if from_system.random() >= 0.0 else x,
    "a key": lambda x: x + fad.random.normal(fad.random.key(0), x.shape),
    "a generator made inside": lambda x: x + np.random.default_rng(0).normal(size=3),
    "a generator not drawn from": lambda x: x + float(outside is not None),
    "a clock that is only printed": lambda x: [time.time(), x + 1.0][1],
}


@pytest.mark.parametrize("function", PURE.values(), ids=PURE)
def test_a_function_without_hidden_draws_is_not_warned_of(function):
    fad.jit(function)(X)


def test_numpy_random_is_not_imported_for_it():
    code = "import sys, fad; fad.jit(lambda x: x + 1.0)(1.0); sys.exit('numpy.random' in sys.modules)"
    before = subprocess.run([sys.executable, "-c", "import sys, numpy, fad; sys.exit('numpy.random' in sys.modules)"])
    assert subprocess.run([sys.executable, "-c", code]).returncode == before.returncode


@pytest.mark.parametrize("holder", ["dict", "list", "nested"])
def test_a_generator_in_a_container_is_found(holder, monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # tests before this one may have left threads
    rng = np.random.default_rng(0)
    held = {"dict": {"noise": rng}, "list": [rng], "nested": {"all": [1.0, {"noise": rng}]}}[holder]

    def f(x):
        found = held["noise"] if holder == "dict" else held[0] if holder == "list" else held["all"][1]["noise"]
        return x + found.normal(size=x.shape)

    with pytest.warns(ImpureFunctionWarning, match="draws random numbers from a Generator of numpy"):
        fad.jit(f)(X)


@pytest.mark.parametrize("of_its_own", [False, True], ids=["no dictionary", "a dictionary"])
def test_an_attribute_of_a_class_that_goes_and_comes_back_is_noticed(of_its_own):
    Scale = type("Scale", (tuple,), {"factor": 2.0, **({} if of_its_own else {"__slots__": ()})})
    s = Scale()
    f = fad.jit(lambda x: x * getattr(s, "factor", 1.0))
    assert [f(3.0) for _ in range(3)] == [6.0] * 3
    del Scale.factor
    assert [f(3.0) for _ in range(3)] == [3.0] * 3
    Scale.factor = 5.0
    assert [f(3.0) for _ in range(3)] == [15.0] * 3
    if of_its_own:
        s.factor = 7.0
        assert [f(3.0) for _ in range(3)] == [21.0] * 3


def test_a_column_of_a_table_is_seen_to_be_another():
    pandas = pytest.importorskip("pandas")  # whose tables keep their arrays in objects of compiled code
    table = pandas.DataFrame({"rate": [1.0, 2.0, 3.0]})
    total = fad.jit(lambda x: np.sum(table["rate"].to_numpy() * x))
    assert [total(2.0), total(2.0), total(2.0)] == [12.0, 12.0, 12.0]
    table["rate"] = table["rate"] * 10.0
    assert total(2.0) == 120.0
