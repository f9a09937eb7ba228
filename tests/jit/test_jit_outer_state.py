"""A jitted function that reads something from outside its arguments sees what it is now, in every call."""

import collections
import functools
import importlib
import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest

import fad

X = np.arange(1.0, 7.0)
XX = X.reshape(2, 3)


def calls(f, change, x=X):
    """Compare a jitted function with the plain one before and after something changed; return the jitted one."""
    fast = fad.jit(f)
    for _ in range(3):
        same(fast(x), f(x))
    change()
    for _ in range(3):
        same(fast(x), f(x))
    return fast


def same(got, want):
    for y, w in zip(fad.tree.leaves(got), fad.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(y, w)


def fill(x, values):
    def change():
        x[...] = values

    return change


PARAMETERS = {
    "repeat": (lambda x, v: np.repeat(x, v), [1, 2, 0, 1, 2, 0], [2, 1, 1, 0, 2, 0]),
    "roll": (lambda x, v: np.roll(XX * x[0], v, axis=(0, 1)), [1, 2], [0, 1]),
    "take": (lambda x, v: np.take(x, v), [1, 2], [0, 1]),
    "an index": (lambda x, v: x[v], [1, 2], [0, 1]),
    "a mask": (lambda x, v: x[v], [True] * 6, [False, True] * 3),
    "split": (lambda x, v: np.split(x, v), [1, 2], [2, 3]),
    "pad": (lambda x, v: np.pad(x, v), [1, 2], [2, 1]),
    "the value of a pad": (lambda x, v: np.pad(x, 2, constant_values=v), [1, 2], [2, 3]),
    "reshape": (lambda x, v: x.reshape(v), [2, 3], [3, 2]),
    "transpose": (lambda x, v: x.reshape(1, 2, 3).transpose(v), [0, 1, 2], [1, 0, 2]),
    "an axis": (lambda x, v: np.sum(x.reshape(2, 3), axis=int(v[0])), [1], [0]),
    "bins": (lambda x, v: np.histogram(x, bins=v, weights=x)[0], [0.0, 3.0, 7.0], [0.0, 2.0, 7.0]),
    "where": (lambda x, v: np.where(v, x, 0.0), [True] * 6, [False] * 6),
    "percentile": (lambda x, v: np.percentile(x, v), [10.0, 20.0], [20.0, 30.0]),
    "delete": (lambda x, v: np.delete(x, v), [1, 2], [2, 3]),
    "insert": (lambda x, v: np.insert(x, v, 0.0), [1, 2], [2, 3]),
    "interp": (lambda x, v: np.interp(x, v, [1.0, 2.0, 3.0]), [1.0, 2.0, 5.0], [2.0, 3.0, 5.0]),
    "tile": (lambda x, v: np.tile(x, v), [2, 3], [3, 2]),
    "polyval": (lambda x, v: np.polyval(v, x), [1.0, 2.0], [2.0, 3.0]),
    "gradient": (lambda x, v: np.gradient(x, v), [0.0, 1, 2, 3, 4, 5], [0.0, 1, 2, 3, 4, 6]),
    "average": (lambda x, v: np.average(x, weights=v), [0.0, 1, 2, 3, 4, 5], [0.0, 1, 2, 3, 4, 6]),
    "full": (lambda x, v: np.full(v, x[0]), [2, 3], [3, 2]),
    "reduceat": (lambda x, v: np.add.reduceat(x, v), [0, 2], [0, 3]),
    # Weights of sum 8: the mean and the products are exact, in whatever order a BLAS adds them up.
    "cov": (lambda x, v: np.cov(x, fweights=v), [1, 2, 1, 2, 1, 1], [1, 2, 1, 1, 2, 1]),
    "a number": (lambda x, v: x * float(v.sum()), [1.0, 2.0], [2.0, 3.0]),
    "a NumPy number": (lambda x, v: x * v.max(), [1.0, 2.0], [2.0, 3.0]),
    "a decision": (lambda x, v: x if v[0] > 0 else -x, [1.0, 2.0], [-2.0, 3.0]),
    "a position": (lambda x, v: x[int(v[0])], [1, 2], [2, 3]),
    "an array made of it": (lambda x, v: x * (v * 2)[0], [1.0, 2.0], [3.0, 4.0]),
    "how many": (lambda x, v: x * len(list(v[v > 0])), [1.0, 2.0], [-3.0, 4.0]),
    "text": (lambda x, v: x * len(v[0]), ["a", "bc"], ["bc", "a"]),
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("stride", [1, 2])
def test_an_array_that_is_a_parameter_or_gives_plain_numbers_may_be_overwritten(name, stride):
    f, before, after = PARAMETERS[name]
    v = np.repeat(np.array(before), stride, axis=0)[::stride]
    assert calls(lambda x: f(x, v), fill(v, after)).cache_info().misses == 2


@pytest.mark.parametrize("n", [1_000, 4_000, 1_000_000])
def test_an_array_of_many_elements_may_be_overwritten(n):
    v = np.zeros(n)
    calls(lambda x: x * float(v.sum()), fill(v, 3.0))


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_element_among_thousands_may_be_overwritten(order):
    v = np.zeros((60, 60), order=order)
    calls(lambda x: x * float(v.sum()), fill(v[17, 19:20], 1.0))


class Holder:
    def __init__(self, v):
        self.v = v

    def method(self):
        return float(self.v.sum())

    @property
    def total(self):
        return float(self.v.sum())

    def __add__(self, other):
        return float(self.v.sum()) + other

    def __call__(self, x):
        return x * self.method()

    def step(self, x):
        return x * self.v[0]

    @functools.partial(fad.jit, static_argnums=0)
    def static(self, x):
        return x * float(self.v.sum())

    @fad.jit
    def jitted(self, x):
        return x * float(self.v.sum())


class Slots:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


def of_class(v):
    class Configuration:
        table = v

    return lambda x: x * float(Configuration.table[0])


def of_default(v):
    def helper(x, v=v, *, w=v):
        return x * float(v[0]) + float(w[1])

    return lambda x: helper(x)


def of_module(v):
    module = types.ModuleType("settings")
    module.table = v
    return lambda x: x * float(module.table[0])


def of_custom_rule(v):
    scaled = fad.custom_vjp(lambda x: x * float(v.sum()))
    scaled.defvjp(lambda x: (scaled(x), None), lambda _, ct: (ct,))
    return lambda x: scaled(x)


HOLDERS = {
    "an attribute": lambda v: (lambda o: lambda x: x * float(o.v[0]))(Holder(v)),
    "an attribute of an attribute": lambda v: (lambda o: lambda x: x * float(o.v.v[0]))(Holder(Holder(v))),
    "an attribute named by text": lambda v: (lambda o: lambda x: x * float(getattr(o, "v")[0]))(Holder(v)),  # noqa: B009
    "a slot": lambda v: (lambda o: lambda x: x * float(o.v[0]))(Slots(v)),
    "a method": lambda v: (lambda o: lambda x: x * o.method())(Holder(v)),
    "a property": lambda v: (lambda o: lambda x: x * o.total)(Holder(v)),
    "an operator": lambda v: (lambda o: lambda x: x * (o + 1.0))(Holder(v)),
    "a bound method": lambda v: Holder(v).step,
    "a callable object": Holder,
    "a class": of_class,
    "a default": of_default,
    "a module": of_module,
    "a list": lambda v: (lambda held: lambda x: x * float(held[1][0]))([1.0, v]),
    "nested containers": lambda v: (lambda held: lambda x: x * float(held["z"][0][0]["v"][0]))({"z": [({"v": v},)]}),
    "a deque": lambda v: (lambda held: lambda x: x * float(held[0][0]))(collections.deque([v])),
    "an array of objects": lambda v: (lambda held: lambda x: x * float(held[1][0]))(np.array([None, v], object)),
    "a partial": lambda v: functools.partial(lambda v, x: x * float(v.sum()), v),
    "a generator": lambda v: lambda x: x * sum(float(k) for k in v),
    "a jitted function": lambda v: (lambda inner: lambda x: inner(x) + 1.0)(fad.jit(lambda x: x * float(v.sum()))),
    "a derivative": lambda v: fad.grad(lambda x: np.sum(x * x) * float(v.sum())),
    "a custom rule": of_custom_rule,
    "a vectorised function": lambda v: (lambda g: lambda x: x * g(1.0))(np.vectorize(lambda k: float(v.sum()) + k)),
    "beside hundreds": lambda v: (lambda held: lambda x: x * float(v[0]) + len(held))([[0.5 * k] for k in range(300)]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDERS)
def test_an_array_may_be_overwritten_wherever_the_function_finds_it(name):
    v = np.array([1.0, 2.0])
    f = HOLDERS[name](v)
    assert calls(f, fill(v, [5.0, 7.0])).cache_info().misses == 2


@pytest.mark.parametrize("name", ["jitted", "static"])
def test_the_arrays_of_an_argument_that_is_an_object_may_be_overwritten(name):
    holder = Holder(np.array([1.0, 2.0]))
    step = functools.partial(getattr(Holder, name), holder)
    for k in range(6):
        holder.v[1] = k // 3
        same(step(X), X * (1.0 + k // 3))


@pytest.mark.parametrize(
    "transform", [fad.grad, fad.hessian, lambda f: fad.vmap(f, in_axes=0), lambda f: lambda x: fad.jvp(f, (x,), (x,))]
)
def test_a_jitted_function_under_a_transform_sees_what_changed(transform):
    v = np.array([1.0, 2.0])

    def f(x):
        return np.sum(x * x) * float(v.sum())

    of_jit, of_plain = transform(fad.jit(f)), transform(f)
    for k in range(6):
        v[:] = k // 3 + 1.0
        for got, want in zip(fad.tree.leaves(of_jit(XX)), fad.tree.leaves(of_plain(XX)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)


def test_what_is_bound_to_something_else_is_seen():
    holder, listed, named = Holder(2.0), [1.0, 2.0], {"k": 2.0}
    number = 2.0

    def f(x):
        return x * number * holder.v * listed[0] * len(listed) * named["k"]

    def again():
        nonlocal number
        number = 3.0

    for change in (
        again, lambda: setattr(holder, "v", 5.0), lambda: listed.append(1.0), lambda: listed.__setitem__(0, 7.0),
        lambda: named.__setitem__("k", 11), lambda: setattr(holder, "v", np.ones(6)), lambda: listed.pop(),
    ):  # fmt: skip
        assert calls(f, change).cache_info().misses == 2


class _Model:
    power = 2.0


class _Derived(_Model):
    pass


def test_an_attribute_that_hides_one_of_the_class_is_seen():
    model, derived = _Model(), _Derived()
    calls(lambda x: x**model.power, lambda: setattr(model, "power", 3.0))
    calls(lambda x: x if model.power == 3.0 else -x, lambda: delattr(model, "power"))
    try:
        calls(lambda x: x**derived.power, lambda: setattr(_Derived, "power", 4.0))
    finally:
        del _Derived.power


@pytest.mark.parametrize("names", [("bias", "scale"), ["bias"], {"bias": 1}], ids=["tuple", "list", "keys"])
def test_an_attribute_that_was_not_there_is_seen_where_its_name_is_a_value(names):
    model = _Model()

    def f(x):
        for name in names:
            if hasattr(model, name):
                x = x + getattr(model, name)
        return x

    calls(f, lambda: setattr(model, "bias", 5.0))


def test_an_attribute_that_was_not_there_is_seen_where_its_name_is_in_a_loop_of_the_code():
    model = _Model()

    def f(x):
        for name in ("bias", "scale"):
            if hasattr(model, name):
                x = x + getattr(model, name)
        return x

    calls(f, lambda: setattr(model, "bias", 5.0))


@pytest.mark.parametrize("table", [{0: "bias"}, {0: {1: "bias"}}], ids=["flat", "nested"])
def test_an_attribute_that_was_not_there_is_seen_where_its_name_is_in_a_dictionary(table):
    model = _Model()

    def f(x):
        name = table[0] if type(table[0]) is str else table[0][1]
        return x + getattr(model, name, 1.0)

    calls(f, lambda: setattr(model, "bias", 5.0))


@pytest.mark.parametrize("names", [["bias"], {"bias": 1}], ids=["list", "keys"])
def test_an_attribute_that_was_not_there_is_seen_where_an_error_tells_so(names):
    model = _Model()

    def f(x):
        for name in names:
            try:
                x = x + getattr(model, name)
            except AttributeError:
                x = x - 1.0
        return x

    calls(f, lambda: setattr(model, "bias", 5.0))


def test_an_attribute_or_a_global_that_was_not_there_is_seen():
    model = _Model()
    calls(lambda x: x * 2 if hasattr(model, "bias") else x, lambda: setattr(model, "bias", 0.0))
    calls(lambda x: x * getattr(model, "scale", 1.0), lambda: setattr(model, "scale", 5.0))

    def tried(x):
        try:
            return x * model.factor
        except AttributeError:
            return x

    calls(tried, lambda: setattr(model, "factor", 7.0))


def test_an_array_that_another_one_takes_the_place_of_is_seen():
    holder = Holder(np.array([1.0, 2.0]))
    calls(lambda x: x * holder.v[0], lambda: setattr(holder, "v", np.array([3.0, 4.0])))


def test_equal_numbers_and_arrays_in_the_same_place_are_no_change():
    holder = Holder(np.array([1.0, np.nan]))
    holder.n, holder.sizes = 1000.0, [1.5, (2.5, float("nan"))]

    def change():
        holder.v, holder.n, holder.sizes = holder.v.copy(), holder.n + 0.0, [1.5, (2.5, float("nan"))]

    f = calls(lambda x: x * holder.v[0] * holder.n * holder.sizes[0], change)
    assert f.cache_info().misses == 1
    holder.v[0] = 2.0  # the array that is there now
    same(f(X), X * 2.0 * 1000.0 * 1.5)


def test_a_zero_of_the_other_sign_and_a_number_of_another_type_are_changes():
    for before, after in ((0.0, -0.0), (1, 1.0), (True, 1), (np.float32(2.0), 2.0)):
        holder = Holder(before)
        change = functools.partial(setattr, holder, "v", after)
        fast = calls(lambda x, holder=holder: np.copysign(x, x * holder.v) * holder.v, change)
        assert fast.cache_info().misses == 2


def test_what_the_function_itself_appends_and_counts_is_not_repeated_and_no_reason_to_record():
    log, holder = [], Holder(0)

    def f(x):
        log.append("called")
        holder.v += 1
        return x * 2.0

    fast = fad.jit(f)
    for _ in range(4):
        fast(X)
    assert fast.cache_info().misses == 1
    assert log == ["called"]


def test_what_other_methods_count_is_no_reason_to_record():
    class Trainer:
        def __init__(self):
            self.rate, self.epoch, self.history = 0.5, 0, []
            self.step = fad.jit(self.update)

        def update(self, x):
            return x - self.rate * x

        def train(self, x):
            for _ in range(4):
                self.epoch += 1
                x = self.step(x)
                self.history.append(x)
            return x

    trainer = Trainer()
    trainer.train(X)
    assert trainer.step.cache_info().misses == 1
    trainer.rate = 0.25
    same(trainer.step(X), X - 0.25 * X)


def test_a_function_that_is_found_by_name_may_be_any_object_and_is_not_run():
    class Odd:
        def __getattribute__(self, name):
            raise AssertionError("this was looked at")

    odd = Odd()
    calls(lambda x: x * 2.0 if odd is not None else x, lambda: None)


def test_nothing_is_watched_where_nothing_is_found():
    fast = fad.jit(lambda x: np.sin(x) * 2.0)
    fast(X)
    (path,) = next(iter(fast._signatures.values())).paths
    assert not path.depends


BY_A_COMPOSED_NAME = {
    "globals": "def f(x):\n    return x * globals()['WEI' + 'GHT']\n",
    "eval": "def f(x):\n    return x * eval('WEI' + 'GHT')\n",
    "exec": "def f(x):\n    found = {}\n    exec('y = WEI' + 'GHT', globals(), found)\n    return x * found['y']\n",
    "in a helper": "def held():\n    return globals()['WEI' + 'GHT']\ndef f(x):\n    return x * held()\n",
}


@pytest.mark.parametrize("source", BY_A_COMPOSED_NAME.values(), ids=BY_A_COMPOSED_NAME)
@pytest.mark.parametrize("change", ["overwritten", "another array", "a number"])
def test_what_is_found_by_a_name_that_the_code_composes_is_watched(source, change):
    names = {"WEIGHT": np.full(6, 2.0), "__name__": "program"}
    exec(source, names)

    def changed():
        if change == "overwritten":
            names["WEIGHT"][...] = 5.0
        else:
            names["WEIGHT"] = np.full(6, 7.0) if change == "another array" else 3.0

    calls(names["f"], changed)


def test_another_array_in_the_place_of_one_that_a_function_copied_and_wrote_into_is_seen():
    made = [np.array([[1.0, 2.0], [0.5, 1.0]]) for _ in range(4)]
    table, in_list, in_dict, held = made[0], [made[1]], {"table": made[2]}, SimpleNamespace(table=made[3])
    find = [lambda: table, lambda: in_list[0], lambda: in_dict["table"], lambda: held.table]

    def follow(get):
        def f(x):
            y = get().copy()
            y[0] = x
            return np.sum(y * y, axis=0)

        return f

    functions = [follow(get) for get in find]
    jitted = [fad.jit(f) for f in functions]
    x = np.array([1.5, 2.5])
    for f, g in zip(functions, jitted, strict=True):
        np.testing.assert_allclose(g(x), f(x))
    table, in_list[0], in_dict["table"], held.table = (np.full((2, 2), 3.0 + k) for k in range(4))
    for f, g in zip(functions, jitted, strict=True):
        np.testing.assert_allclose(g(x), f(x))
    for get, f, g in zip(find, functions, jitted, strict=True):
        get()[1] = 9.0
        np.testing.assert_allclose(g(x), f(x))


@pytest.mark.parametrize(
    "statement", ["from . import settings", "from .settings import GAINS", "import {package}.settings as settings"]
)
def test_a_module_that_the_function_imports_is_read_again(statement, tmp_path, monkeypatch):
    package = f"package_{abs(hash(statement))}"
    gain = "GAINS[0]" if "GAINS" in statement else "settings.GAINS[0]"
    texts = {
        "__init__": "",
        "settings": "GAINS = [2.0]",
        "calls": f"def f(x):\n    {statement.format(package=package)}\n    return x * {gain}\n",
    }
    (tmp_path / package).mkdir()
    for name, text in texts.items():
        (tmp_path / package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    compiled = fad.jit(importlib.import_module(f"{package}.calls").f)
    assert compiled(1.0) == 2.0
    sys.modules[f"{package}.settings"].GAINS[0] = 3.0
    assert compiled(1.0) == 3.0


class Settings:
    gain = 2.0
    table = np.array([1.0, 2.0])

    def scale(self, x):
        return x * self.gain + self.table.sum()


class Derived(Settings):
    def scale(self, x):
        return super().scale(x)


@pytest.mark.parametrize("f", [lambda x: Derived.gain * x + Derived.table.sum(), lambda x: Derived().scale(x)])
def test_what_a_class_has_from_another_is_watched(f, monkeypatch):
    jitted = fad.jit(f)
    for _ in range(2):
        assert jitted(3.0) == 9.0
    monkeypatch.setattr(Settings, "gain", 5.0)
    assert jitted(3.0) == 18.0
    monkeypatch.setattr(Settings, "table", np.zeros(2))
    assert jitted(3.0) == 15.0
    monkeypatch.setattr(Derived, "gain", 1.0, raising=False)
    assert jitted(3.0) == 3.0
