"""Loops that call code which nobody converts, as operators, properties and caches, and which changes objects."""

import collections
import copy
import dataclasses
import functools
import operator

import numpy as np
import pytest
from capture.agreement import agree, report_of

X = np.array([0.7, 0.3, 1.2])
STEPS = 9


class Body:
    """An object with everything that Python itself may call."""

    calls = 0

    def __init__(self, x):
        self.x = x
        self.count = 0
        self.known = None
        self.seen = {}

    @functools.cached_property
    def square(self):
        return self.x**2

    @property
    def energy(self):
        if self.known is None:
            self.known = self.x**2
        return self.known

    @property
    def watched(self):
        self.count += 1
        return self.x

    def __add__(self, other):
        self.count += 1
        return self.x + other

    def __lshift__(self, other):
        self.x = self.x * 0.5 + other
        return self

    def __getitem__(self, key):
        return self.seen.setdefault(key, self.x * 2.0)

    def __bool__(self):
        self.count += 1
        return self.count < 5

    def __len__(self):
        self.count += 1
        return self.count

    def __iter__(self):
        Body.calls += 1
        return iter((self.x, 1.0))

    def __eq__(self, other):
        self.count += 1
        return self.count % 2 == 0

    __hash__ = object.__hash__

    def __str__(self):
        self.count += 1
        return "b" * self.count

    def __copy__(self):
        self.count += 1
        return Body(self.x)


class Slotted:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0

    @property
    def next(self):
        self.count += 1
        return self.count


class Memory(dict):
    def __missing__(self, key):
        self[key] = 1.5
        return self[key]


class Attributes:
    def __init__(self, x):
        self.x = x

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        value = self.__dict__[name] = self.x * 2.0
        return value


class Gone:
    count = 0

    def __init__(self, x):
        self.x = x

    def __del__(self):
        Gone.count += 1


class Positive:
    """A descriptor that a class does not give itself, as most are written."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind=None):
        return getattr(owner, self.name)

    def __set__(self, owner, value):
        setattr(owner, self.name, np.maximum(value, 0.2))


class Described:
    x = Positive()

    def __init__(self, x):
        self.x = x


class Slow:
    rate = 0.5


class Fast(Slow):
    rate = 0.9


def a_cached_property_in_a_way_of_an_if(x):
    b = Body(x[0])
    for k in range(STEPS):
        if k > 4:
            b.square  # noqa: B018
        b.x = b.x + 0.1 * x[1]
    return b.x * b.square


def a_property_that_remembers(x):
    b = Body(x[0])
    for k in range(STEPS):
        if k > 4:
            b.energy  # noqa: B018
        b.x = b.x + 0.1 * x[1]
    return b.x * b.energy


def a_property_that_counts(x):
    b = Body(x[0])
    for _ in range(STEPS):
        b.x = b.x * 0.9 + 0.1 * b.watched
    return b.x * b.count


def an_operator_that_counts(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        s = (b + s) * 0.5
    return s * b.count


def an_operator_that_changes_its_operand(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        b << s
        s = s * 0.9
    return b.x


def truth_that_ends_a_loop(x):
    b, s = Body(x[0]), x[1]
    while b:
        s = s * 0.9 + 0.1
    return s * b.count


def truth_that_chooses(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        s = s * 0.9
        if b:
            s = s + 1.0
    return s * b.count


def a_length_that_grows(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        s = s * 0.9 + len(b)
    return s


def iteration_that_counts_in_the_class(x):
    Body.calls, b, s = 0, Body(x[0]), x[1]
    for _ in range(STEPS):
        s = s * 0.9 + sum(b)
    return s * Body.calls


def equality_that_alternates(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        s = s * 0.9 + (1.0 if b == 1 else 0.0)
    return s


def text_that_grows(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        s = s * 0.9 + len(f"{b}")
    return s


def a_copy_that_counts(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        s = s * 0.9 + copy.copy(b).x
    return s * b.count


def the_key_of_a_sort(x):
    b, s = Body(x[0]), x[1]

    def key(k):
        b.count += 1
        return -k

    for _ in range(STEPS):
        s = s * 0.9 + sorted([1, 3, 2], key=key)[0]
    return s * b.count


def a_factory_of_a_dataclass(x):
    made = []

    def make():
        made.append(1)
        return 0.5

    @dataclasses.dataclass
    class State:
        x: float
        k: float = dataclasses.field(default_factory=make)

    p = State(x[0])
    for _ in range(STEPS):
        p = State(p.x * 0.9)
    return p.x * len(made)


def functions_of_operator(x):
    d, h = {"a": x[0]}, [x[1]]
    for k in range(STEPS):
        operator.setitem(d, "a", d["a"] * 0.9)
        operator.iadd(h, [x[2] * k])
    return d["a"] * sum(h)


def a_slot(x):
    b, s = Slotted(), x[0]
    for _ in range(STEPS):
        s = s * 0.9 + b.next
    return s * b.count


def an_object_that_each_step_makes(x):
    s = x[0]
    for _ in range(STEPS):
        b = Body(s)
        if s > 1.0:
            b.energy  # noqa: B018
        b.x = b.x * 0.5
        s = 1.5 * np.cos(s) + 0.1 * b.energy
    return s


def an_end_that_counts(x):
    Gone.count, p = 0, Gone(x[0])
    for _ in range(STEPS):
        p = Gone(p.x * 0.9)
    return p.x * Gone.count


def a_class_that_is_set(x):
    b, s = Slow(), x[0]
    for _ in range(STEPS):
        s = s * b.rate + 0.1
        b.__class__ = Fast
    return s * b.rate


def a_descriptor(x):
    b = Described(x[0])
    for _ in range(STEPS):
        b.x = b.x - 0.15 * x[1]
    return b.x * x[2]


LEFT = [
    a_cached_property_in_a_way_of_an_if, a_property_that_remembers, a_property_that_counts, an_operator_that_counts,
    an_operator_that_changes_its_operand, truth_that_ends_a_loop, truth_that_chooses, a_length_that_grows,
    iteration_that_counts_in_the_class, equality_that_alternates, text_that_grows, a_copy_that_counts,
    the_key_of_a_sort, a_factory_of_a_dataclass, functions_of_operator, a_slot,
    an_object_that_each_step_makes, an_end_that_counts, a_class_that_is_set, a_descriptor,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_a_loop_whose_operators_change_objects_is_run_by_python(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert "captured" not in what, text


# --- what is one value by two places ----------------------------------------------------------------------------------


def the_dictionary_of_an_object(x):
    b = Body(x[0])
    d = vars(b)
    for _ in range(STEPS):
        b.x = b.x * 0.9 + 0.1 * x[1]
        d["x"] = d["x"] + 0.01
    return b.x


def either_of_two_places(x):
    b = Body(x[0])
    d = vars(b)
    for i in range(STEPS):
        if b.x > 0.3:
            b.x = b.x * 0.5 + 0.1 * x[1]
        else:
            d["x"] = d["x"] + 0.2 * i * x[2]
        d["x"] *= 1.1
    return b.x * d["x"]


def an_element_and_all_elements(x):
    line, total = [x[0], x[1], x[2]], 0.0
    for i in range(STEPS):
        line[0] = line[0] * 0.9 + x[1]
        line.append(line.pop(0) + 0.1 * i)
        line[-1] *= 0.5
        total += line[0] * line[2]
    return total + sum(line)


@pytest.mark.parametrize(
    "f", [the_dictionary_of_an_object, either_of_two_places, an_element_and_all_elements], ids=lambda f: f.__name__
)
def test_a_value_that_is_bound_by_two_places_is_one(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X, 0.7 * X, 0.4 * X)


# --- what is made once and kept is made in the first step -------------------------------------------------------------


def a_cached_property(x):
    b = Body(x[0])
    for _ in range(STEPS):
        b.x = b.x + 0.1 * b.square
    return b.x * b.square


def a_cached_property_in_a_while_loop(x):
    b, n = Body(x[0]), 0
    while b.x < 1.5:
        b.x = b.x + 0.1 + 0.01 * b.energy
        n += 1
    b.x = b.x * 2.0
    return b.x * b.energy * n


def an_item_that_a_subscript_makes(x):
    b, s = Body(x[0]), x[1]
    for _ in range(STEPS):
        s = s * 0.5 + b[2]
    return s * len(b.seen)


def an_item_that_a_dictionary_makes(x):
    d, s = Memory(), x[0]
    while s < 2.0:
        s = s + 0.3 * d["a"] * x[1]
    return s * len(d)


def an_attribute_that_is_made_when_it_is_asked(x):
    b, s = Attributes(x[0]), x[1]
    while s < 2.0:
        s = s + 0.1 * b.speed
    return s * len(vars(b))


KEPT = [
    a_cached_property, a_cached_property_in_a_while_loop, an_item_that_a_subscript_makes,
    an_item_that_a_dictionary_makes, an_attribute_that_is_made_when_it_is_asked,
]  # fmt: skip


@pytest.mark.parametrize("f", KEPT, ids=lambda f: f.__name__)
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_what_is_made_once_and_kept_is_made_by_the_first_step(f, scale):
    agree(f, X * scale, order=2 if scale == 1.0 else 1)
    if scale == 1.0:
        what, text = report_of(f, X)
        assert "captured" in what, text


def test_who_looks_at_objects_again_is_none_who_knows_them():
    def f(x):
        p = collections.OrderedDict(a=x[0], b=[x[1]])
        q = [Body(x[0]), {"u": np.zeros(3)}]
        for k in range(STEPS):
            p["a"] = p["a"] * 0.9 + p["b"][-1]
            p["b"].append(p["a"])
            q[0] = Body(q[0].x * 0.9)
            q[1]["u"] = q[1]["u"] + x
            q[1]["u"][1] += 0.1 * k
        return p["a"] * sum(p["b"]) + q[0].x * np.sum(q[1]["u"])

    agree(f, X)
    what, text = report_of(f, X)
    assert "captured" in what, text


CALLS = 0


def a_global_variable_of_a_property(x):
    global CALLS
    CALLS = 0

    class Rate:
        @property
        def now(self):
            global CALLS
            CALLS += 1
            return 0.5

    rate, s = Rate(), x[0]
    for _ in range(STEPS):
        s = s * 0.9 + rate.now
    return s * CALLS


def a_variable_around_a_property(x):
    calls = 0

    class Rate:
        @property
        def now(self):
            nonlocal calls
            calls += 1
            return 0.5

    rate, s = Rate(), x[0]
    for _ in range(STEPS):
        s = s * 0.9 + rate.now
    return s * calls


@pytest.mark.parametrize("f", [a_global_variable_of_a_property, a_variable_around_a_property])
def test_variables_that_a_property_binds_are_looked_at(f):
    agree(f, X)
    assert "it changes a global or nonlocal variable by code that is not seen" in report_of(f, X)[1]


def test_the_report_says_that_an_object_is_returned():
    class At:
        def __init__(self, x):
            self.x = x

        def __len__(self):
            return 1

        def __getitem__(self, key):
            return (self.x,)[key]

    def find(x):
        p = At(x[0])
        for _ in range(STEPS):
            p.x = p.x * 1.2 + 0.1
            if p.x > 3.0:
                return p
        return At(x[1])

    def f(x):
        return find(x).x * x[2]

    agree(f, X)
    assert "it returns something that is no array" in report_of(f, X)[1]
