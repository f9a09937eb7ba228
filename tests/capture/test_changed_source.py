"""What runs is computed, and not what stands in a file that has other text by now under a function's name and line."""

import importlib
import inspect
import sys

import numpy as np
import pytest

import fad
from fad.capture.rewriting.convert import find_source

X = np.array([1.0, 2.0, 3.0])
FILE = """
import numpy as np

SCALE = 1.0

def scaled(x):
    total = 0.0
    for k in range(3):
        total = total + 2.0 * x[k] ** 2
    return total

class Model:
    def __init__(self):
        self.__factor = 3.0

    def __call__(self, x, *, power=2):
        total = SCALE
        while total < 10.0:
            total = total + self.__factor * np.sum(x ** power)
        return total

def chosen(x):
    rule = lambda v: sum(2.0 * w for w in v)
    return rule(x)
"""
CHANGES = {
    "a constant": (("2.0 * x[k]", "5.0 * x[k]"), ("3.0", "4.0"), ("2.0 * w", "7.0 * w")),
    "an operator": (("+ 2.0", "- 2.0"), ("total + self", "total * self"), ("2.0 * w", "2.0 + w")),
    "a name": (("x[k] ** 2", "x[0] ** 2"), ("np.sum", "np.max"), ("sum(2.0", "max(2.0")),
    "an argument": (("scaled(x)", "scaled(x, y=1.0)"), ("power=2", "power=2, more=1"), ("lambda v", "lambda v, w=0")),
    "a function": (("def scaled", "def other"), ("__call__", "call"), ("def chosen", "def taken")),
}


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "edited_later.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("edited_later")
    del sys.modules["edited_later"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_was_edited_after_its_import_changes_nothing(module, change):
    text = FILE
    for old, new in change:
        assert old in text
        text = text.replace(old, new)
    with open(module.__file__, "w") as file:
        file.write(text)
    for f in (module.scaled, module.Model(), module.chosen):
        compiled, slope = fad.jit(f), fad.jit(fad.grad(f))
        for x in (X, 1.1 * X):
            np.testing.assert_allclose(compiled(x), f(x))
            np.testing.assert_allclose(slope(x), fad.grad(f)(x))
        np.testing.assert_allclose(fad.grad(f)(X)[0], (f(X + [1e-6, 0, 0]) - f(X - [1e-6, 0, 0])) / 2e-6, 1e-6)


def test_loops_of_a_file_that_stayed_are_captured(module):
    for f in (module.scaled, module.Model()):
        compiled = fad.jit(f)
        compiled(X)
        assert "loop at edited_later.py" in str(compiled.explain())


def test_a_function_with_the_place_of_another_is_not_that_one():
    def inner(x):
        total = 0.0
        for k in range(3):
            total = total + missing * x[k]  # noqa: F821
        return total

    line = inner.__code__.co_firstlineno
    names = {"double": lambda x: 2.0 * np.sum(x)}
    text = "\n" * (line - 1) + "def inner(x):\n    for k in range(2):\n        x = double(x)\n    return x\n"
    exec(compile(text, __file__, "exec"), names)
    np.testing.assert_allclose(fad.jit(names["inner"])(X), 24.0)
    np.testing.assert_allclose(fad.jit(fad.grad(names["inner"]))(X), 4.0 * np.ones(3))


def with_assertion(x):
    total = 0.0
    for k in range(3):
        assert np.ndim(x) == 1, "what pytest compiles in another way"
        total = total + x[k] ** 2
    return total


def test_functions_with_assertions_are_found():
    assert find_source(with_assertion.__code__) is not None
    np.testing.assert_allclose(fad.jit(with_assertion)(X), np.sum(X**2))


def test_functions_of_all_kinds_are_found():
    def outer(a, /, b=1, *args, c, d=2, **kwargs):
        def inner(v):
            return [np.sin(a + w) for w in v if w > b] + [c, d, args, kwargs]

        return inner

    def generating(x):
        yield from (v * x for v in range(3))

    def defining(x):
        class Inner(dict):
            held = x

            def read(self):
                return [self.held, np.sin(x)]

        return Inner

    class Kind:
        def own(self):
            return super().__repr__(), __class__, self.__name

        @property
        def read(self) -> float:
            import math

            value: float = math.pi
            return value

    functions = [
        outer,
        outer(1, c=2),
        generating,
        defining,
        Kind.own,
        Kind.read.fget,
        lambda x, *y: (x, y),
        np.polynomial.polynomial.polyval,
    ]
    for f in functions:
        assert find_source(inspect.unwrap(f).__code__) is not None, f


def doubled(x):
    return x * 2.0


class Doubling:
    def doubled(self, x):
        return doubled(x) + 1.0


def nested_sum(x, depth=2):
    return np.sum(x) if depth == 0 else np.sum(x) + nested_sum(x, depth - 1)


def steps_of_itself(x, depth=1):
    if depth:
        return steps_of_itself(x, 0)
    for _ in range(50):
        x = 0.9 * x + 0.1 * np.sin(x)
    return np.sum(x)


def test_a_function_that_calls_one_of_its_own_name_is_found():
    def inner(x, depth):
        return x if depth == 0 else inner(x * 2.0, depth - 1)

    for f in (nested_sum, Doubling.doubled, inner):
        assert find_source(f.__code__) is not None, f.__qualname__


def test_the_loop_of_a_function_that_calls_itself_is_captured():
    with fad.config.use(loops="capture"):
        fast = fad.jit(fad.grad(steps_of_itself))
        np.testing.assert_allclose(fast(X), fad.grad(steps_of_itself)(X), rtol=1e-12)
    assert "captured: 50 steps" in fast.explain()
