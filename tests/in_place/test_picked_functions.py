"""Functions that are picked while the program runs: the first writes nothing, the next one writes into arrays."""

import importlib
import itertools

import numpy as np
import pytest

import fad
from fad.core.runs.overlay_needs import needs_of
from fad.errors import ItemAssignmentError, TracerConversionError

_number = itertools.count(1)
X = np.array([0.5, -1.25, 2.0])
BEGINNING = """
import numpy as np
acc = np.zeros(2)

def plain(x):
    return np.sum(x * {n})

def writing(x):
    acc[...] += 1
    y = np.zeros(3)
    y[:] = x * {n}
    return np.sum(y * y)

def own(x):
    y = np.zeros(3)
    y[:] = x * {n}
    return np.sum(y * y)

class Layer:
    def __init__(self):
        self.by_name = {{"plain": plain, "writing": writing, "own": own}}

    def call(self, x):
        return self.by_name[key[0]](x)

layer = Layer()
key = ["plain"]
"""
FOUND = {
    "a dictionary": "table = dict(plain=plain, writing=writing, own=own)\ndef f(x):\n    return table[key[0]](x)",
    "a list of pairs": "table = [('plain', plain), ('writing', writing), ('own', own)]\n"
    "def f(x):\n    return [g for name, g in table if name == key[0]][0](x)",
    "a default": "def f(x, table=(dict(plain=plain, writing=writing, own=own),)):\n    return table[0][key[0]](x)",
    "a method": "def f(x):\n    return layer.call(x)",
    "an attribute": "def f(x):\n    return layer.by_name[key[0]](x)",
}
HIDDEN = "def f(x, n={n}):\n    return globals()[key[0]](x, *[{n}][1:])"
CALLS = {
    "grad": lambda f: fad.grad(f)(X), "jvp": lambda f: fad.jvp(f, (X,), (X,))[1], "jit": lambda f: fad.jit(f)(X),
    "vmap": lambda f: fad.vmap(f)(np.stack([X, X])), "vmap of grad": lambda f: fad.vmap(fad.grad(f))(np.stack([X, X])),
    "grad of grad": lambda f: fad.grad(lambda x: np.sum(fad.grad(f)(x) ** 2))(X),
}  # fmt: skip


def module(text):
    """Return the names of a program whose code no other one has, for what is known of code is kept."""
    names = {"__name__": "program"}
    exec((BEGINNING + text).format(n=next(_number)), names)
    return names


@pytest.mark.parametrize("how", FOUND)
@pytest.mark.parametrize("call", CALLS)
def test_a_function_in_a_table_writes_once(call, how):
    names, wanted = module(FOUND[how]), module(FOUND[how])
    for key in ("plain", "writing", "writing", "own"):
        names["key"][0] = key
        before = names["acc"].copy()
        CALLS[call](names["f"])
        np.testing.assert_array_equal(names["acc"] - before, float(key == "writing"))
    n = wanted["f"].__globals__  # the numbers are right, too
    n["key"][0] = "own"
    np.testing.assert_allclose(fad.grad(n["f"])(X), fad.jit(fad.grad(n["f"]))(X))


@pytest.mark.parametrize("call", CALLS)
def test_a_function_that_nothing_led_to_raises_if_it_writes_twice_outside(call):
    names = module(HIDDEN)
    CALLS[call](names["f"])
    names["key"][0] = "writing"
    with pytest.raises(ItemAssignmentError, match="picked while the program ran wrote into an array of shape"):
        CALLS[call](names["f"])
    names["acc"][:] = 0
    CALLS[call](names["f"])  # known now
    np.testing.assert_array_equal(names["acc"], 1.0)


@pytest.mark.parametrize("call", CALLS)
def test_a_function_that_nothing_led_to_may_write_into_arrays_of_its_own(call):
    names = module(HIDDEN)
    CALLS[call](names["f"])
    names["key"][0] = "own"
    found = CALLS[call](names["f"])
    np.testing.assert_array_equal(found, CALLS[call](names["own"]))
    np.testing.assert_array_equal(names["acc"], 0.0)


def test_one_text_in_two_modules_writes_into_arrays_of_both():
    code = compile("def f(x):\n    b = np.zeros(2)\n    b[0] = x\n    return b[0] * K\n", "<text>", "exec")
    for k in (2.0, 3.0):
        names = {"np": np, "K": k}
        exec(code, names)
        assert needs_of(names["f"]).spaces == (names,)
        assert fad.grad(names["f"])(1.5) == k


@pytest.mark.parametrize("wrap", [fad.jit, fad.checkpoint], ids=["jit", "checkpoint"])
@pytest.mark.parametrize("call", ["grad", "jvp", "grad of grad"])
def test_functions_that_are_wrapped_alike_are_not_taken_for_one_another(call, wrap):
    def run(wrapped, x):
        outer = lambda x: np.sum(wrapped(x))
        if call == "jvp":
            return fad.jvp(outer, (x,), (x,))
        return (fad.grad if call == "grad" else lambda f: fad.grad(fad.grad(f)))(outer)(x)

    text = "import numpy as np\nacc = np.array([1.5])\n\ndef f(x):\n    {}\n    return np.ascontiguousarray(x * {})\n"
    for statement in ("pass", "np.multiply(acc, acc, out=acc)"):
        names = {}
        exec(text.format(statement, next(_number)), names)
        wanted = 1.5 if statement == "pass" else 2.25
        try:
            run(wrap(names["f"]), np.array(0.5))
        except ItemAssignmentError:  # which runs it again later
            assert wrap is fad.checkpoint
        else:
            np.testing.assert_array_equal(names["acc"], wanted)


PACKAGE = {
    "__init__": "",
    "makers": "import numpy as np\nclass State:\n    def __init__(self):\n        self.table = np.eye(2)\n",
}
IMPORTS = {
    "a module": "    import {package}.makers\n    state = {package}.makers.State()",
    "a class": "    from {package}.makers import State\n    state = State()",
    "a class of the own package": "    from .makers import State\n    state = State()",
    "a module of the own package": "    from . import makers\n    state = makers.State()",
}


@pytest.fixture
def import_where(tmp_path, monkeypatch):
    """Import a function that imports another module of its package only when it is called, as against circles."""

    def make(statement):
        package = f"package_{next(_number)}"
        (tmp_path / package).mkdir()
        calls = f"def f(x):\n{statement.format(package=package)}\n    state.table *= x\n    return state.table.sum()\n"
        for name, text in {**PACKAGE, "calls": calls}.items():
            (tmp_path / package / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        return importlib.import_module(f"{package}.calls").f

    return make


@pytest.mark.parametrize("call", ["grad", "jvp", "jit", "vmap"])
@pytest.mark.parametrize("how", IMPORTS)
def test_a_class_that_the_function_imports_makes_arrays_that_can_be_written(how, call, import_where):
    f = import_where(IMPORTS[how])
    want = CALLS[call](lambda x: x[0] + x[1])
    for _ in range(2):
        np.testing.assert_allclose(CALLS[call](lambda x: f(x[:2])), want)


class Model:
    """Holds NumPy's module, as programs for several array libraries do."""

    def __init__(self):
        self.xp = np

    def total(self, x):
        y = self.xp.zeros(4)
        y[:3], y[3] = x, x[0] ** 2
        return self.xp.sum(y)


class Shim:
    def __init__(self):
        self.module = np

    def __getattr__(self, name):
        return getattr(self.module, name)


shim = Shim()


def total_by_shim(x):
    y = shim.empty(4)
    y[:3], y[3] = x, x[0] ** 2
    return shim.sum(y)


@pytest.mark.parametrize("call", CALLS)
def test_numpy_in_an_attribute_makes_arrays_that_can_be_written(call):
    want = CALLS[call](lambda x: np.sum(x) + x[0] ** 2)
    for model in (Model(), Model()):
        for _ in range(2):
            np.testing.assert_allclose(CALLS[call](model.total), want)
        assert model.xp is np
    np.testing.assert_allclose(CALLS[call](total_by_shim), want)
    assert shim.module is np


def test_an_error_that_was_caught_before_a_call_does_not_run_the_function_twice():
    kept, runs = [], []

    def keep(x):
        kept.append(x[0])
        return x

    def count(x):
        runs.append(1)
        return x * len(runs)

    fad.jit(keep)(np.ones(2))
    with pytest.raises(TracerConversionError):
        float(kept[0])
    np.testing.assert_array_equal(fad.jvp(count, (np.ones(2),), (np.ones(2),))[0], np.ones(2))
    assert len(runs) == 1
