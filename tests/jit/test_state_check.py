"""The native comparison of outer state notices what the comparison in Python notices, and nothing else."""

import collections
import contextvars
import gc
import random
import threading
import types

import numpy as np
import pytest

import fad
from fad.compile.targets.select import has_llvm
from fad.staging.outer_state import OuterState

pytestmark = pytest.mark.skipif(not has_llvm(), reason="needs llvmlite")


def check_of(fun):
    from fad.compile.runtime.state_check import StateCheck

    outer = OuterState([fun])
    outer.settle([])
    return outer, StateCheck(outer)


class Holder:
    """Has attributes that functions name, in the object and in the class."""

    of_class = 1.5
    table = np.arange(4.0)

    def __init__(self, **given):
        self.__dict__.update(given)


class Slots:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


BIG = 20_000  # elements: more bytes than are compared in full


def made():
    """Return functions that read state of every kind, and changes to that state: names of what each reads."""
    state = types.SimpleNamespace()
    state.holder = Holder(a=1.0, b="text", c=[1.0, 2.0], d={"k": 1.0, 3: 4.0, (1, 2): 5.0}, e=np.arange(6.0))
    state.number = 2.0
    state.slots = Slots(3.0)
    state.rows = [1.0, [2.0, 3.0], np.ones(2)]
    state.few = {"x": 1.0}
    state.counted = collections.defaultdict(float, x=1.0)
    state.queue = collections.deque([1.0, 2.0])
    state.raw = bytearray(b"abc")
    state.variable = contextvars.ContextVar("variable", default=1.0)
    state.local = threading.local()
    state.local.v = 2.0
    state.strided = np.arange(12.0)[::2]
    state.columns = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    state.block = np.arange(12.0).reshape(3, 4)[:, 1:3]
    state.crossed = np.arange(24.0).reshape(2, 3, 4)[:, ::2, ::3]
    state.large = np.zeros(BIG)
    state.large_columns = np.zeros((100, BIG // 100), order="F")
    state.middle = np.zeros(1000)
    state.names = np.array(["a", "bc"])
    holder, number, slots, rows, few = state.holder, state.number, state.slots, state.rows, state.few
    counted, queue, raw, variable, local = state.counted, state.queue, state.raw, state.variable, state.local
    arrays = [getattr(state, k) for k in (
        "strided", "columns", "block", "crossed", "large", "large_columns", "middle", "names"
    )]  # fmt: skip

    def function(x):
        found = holder.a, holder.b, holder.c[0], holder.d["k"], holder.e, holder.of_class, Holder.table, slots.v
        some = getattr(holder, "missing", 1.0), hasattr(holder, "absent"), few["x"], counted["x"], queue[0], local.v
        return found, some, number, rows[1][0], raw[0], variable.get(), arrays

    def rebind(value):
        nonlocal number
        number = value

    state.rebind = rebind
    state.function = function
    return state


def write(x, index, value):
    x[index] = value


CHANGES = {
    "an attribute": lambda s: setattr(s.holder, "a", 2.0),
    "a text": lambda s: setattr(s.holder, "b", "other"),
    "an attribute that is gone": lambda s: delattr(s.holder, "a"),
    "an attribute of the class": lambda s: setattr(Holder, "of_class", 2.5),
    "an attribute that hides it": lambda s: setattr(s.holder, "of_class", 2.5),
    "an attribute that was missing": lambda s: setattr(s.holder, "missing", 2.0),
    "one of the class that was missing": lambda s: setattr(Holder, "absent", 2.0),
    "an element": lambda s: write(s.holder.c, 0, 3.0),
    "one element more": lambda s: s.holder.c.append(3.0),
    "one element less": lambda s: s.holder.c.pop(),
    "an entry": lambda s: write(s.holder.d, "k", 2.0),
    "an entry of a number": lambda s: write(s.holder.d, 3, 2.0),
    "an entry of a tuple": lambda s: write(s.holder.d, (1, 2), 2.0),
    "one entry more": lambda s: write(s.holder.d, "new", 2.0),
    "an entry for another": lambda s: (s.few.pop("x"), write(s.few, "y", 1.0)),
    "an entry of a subclass": lambda s: write(s.counted, "x", 2.0),
    "one entry more of a subclass": lambda s: s.counted["y"],
    "an element of an element": lambda s: write(s.rows[1], 0, 7.0),
    "an array of a list": lambda s: write(s.rows, 2, np.zeros(2)),
    "an array's element in a list": lambda s: write(s.rows[2], 1, 5.0),
    "a deque": lambda s: write(s.queue, 0, 5.0),
    "bytes": lambda s: write(s.raw, 0, 1),
    "a context variable": lambda s: s.variable.set(3.0),
    "a variable of the thread": lambda s: setattr(s.local, "v", 3.0),
    "a slot": lambda s: setattr(s.slots, "v", 4.0),
    "an empty slot": lambda s: delattr(s.slots, "v"),
    "a variable of the closure": lambda s: s.rebind(3.0),
    "a variable of another type": lambda s: s.rebind(2),
    "an array": lambda s: write(s.holder.e, 5, 9.0),
    "an array of the class": lambda s: write(Holder.table, 0, 9.0),
    "another array": lambda s: setattr(s.holder, "e", np.arange(1.0, 7.0)),
    "a strided array": lambda s: write(s.strided, 5, 9.0),
    "an array of columns": lambda s: write(s.columns, (2, 3), 9.0),
    "a block of an array": lambda s: write(s.block, (2, 1), 9.0),
    "a crossed array": lambda s: write(s.crossed, (1, 1, 1), 9.0),
    "a large array": lambda s: write(s.large, slice(None), 9.0),
    "the last of a large array": lambda s: write(s.large, -1, 9.0),
    "large columns": lambda s: write(s.large_columns, slice(None), 9.0),
    "a middle array": lambda s: write(s.middle, 617, 1.0),
    "a zero of the other sign": lambda s: write(s.middle, 3, -0.0),
    "an array of texts": lambda s: write(s.names, 1, "cb"),
}


@pytest.fixture(autouse=True)
def _classes_are_as_before():
    before, table = dict(vars(Holder)), Holder.table.copy()
    yield
    for name in set(vars(Holder)) - set(before):
        delattr(Holder, name)
    Holder.of_class, Holder.table[:] = before["of_class"], table


@pytest.mark.parametrize("name", CHANGES)
def test_each_kind_of_change_is_noticed(name):
    state = made()
    outer, check = check_of(state.function)
    assert not check.is_stale()
    assert not outer.is_stale()
    CHANGES[name](state)
    assert outer.is_stale()
    assert check.is_stale()
    assert check.differs(check.address)


def test_a_table_without_what_native_code_does_not_read_says_by_itself_that_nothing_changed():
    holder, array = Holder(a=1.0, c=[1.0]), np.ones(3)
    _, check = check_of(lambda x: (holder.a, holder.c[0], array, hasattr(holder, "absent")))
    assert check.differs(check.address) == 0
    holder.unread = 2.0
    assert not check.is_stale()


class Base:
    __match_args__ = ("a", "b"[:1])
    of_class = [1.0]


class Hiding(Base):
    __match_args__ = (*Base.__match_args__,)  # equal, and another object
    of_class = [1.0]


def test_an_attribute_that_an_equal_one_hides_does_not_differ_in_every_call():
    x = Hiding()
    _, check = check_of(lambda y: (x.of_class, x.__match_args__))
    assert check.differs(check.address) == 0
    Hiding.of_class.append(2.0)
    assert check.is_stale()


class Listing(dict):
    def keys(self):
        return [*super().keys()]

    def __len__(self):
        return 1


def test_a_dictionary_whose_class_has_keys_of_its_own_is_compared():
    held = Listing(a=1.0, b=2.0)
    outer, check = check_of(lambda x: (held["a"], held["b"], [*held.items()]))
    assert not check.is_stale()
    held["c"] = 3.0
    assert check.is_stale()
    assert outer.is_stale()


SAME = {
    "an equal number": lambda s: setattr(s.holder, "a", s.holder.a + 0.0),
    "an equal text": lambda s: setattr(s.holder, "b", "".join(["te", "xt"])),
    "an equal number of the closure": lambda s: s.rebind(s.number + 0.0),
    "an equal list": lambda s: setattr(s.holder, "c", list(s.holder.c)),
    "an equal array": lambda s: setattr(s.holder, "e", s.holder.e.copy()),
    "an equal element": lambda s: write(s.holder.c, 0, s.holder.c[0] + 0.0),
    "an equal entry": lambda s: write(s.holder.d, "k", s.holder.d["k"] + 0.0),
    "an attribute that nobody reads": lambda s: setattr(s.holder, "unread", 1.0),
    "one that is written and gone": lambda s: (setattr(s.holder, "missing", 1.0), delattr(s.holder, "missing")),
    "the same array": lambda s: write(s.holder.e, 0, s.holder.e[0]),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("after", CHANGES)
def test_equal_things_are_no_change_and_what_changes_behind_them_is_noticed(name, after):
    state = made()
    outer, check = check_of(state.function)
    for _ in range(3):
        SAME[name](state)
        assert not outer.is_stale()
        assert not check.is_stale()
    CHANGES[after](state)
    assert check.is_stale() == outer.is_stale()


def test_any_order_of_changes_is_noticed_alike():
    draw = random.Random(0)
    steps = [*CHANGES.values(), *SAME.values()]
    for _ in range(60):
        state = made()
        outer, check = check_of(state.function)
        for step in draw.sample(steps, 4):
            try:
                step(state)
            except (AttributeError, IndexError, KeyError):
                continue
            assert check.is_stale() == outer.is_stale()


def test_what_a_table_points_to_lives_as_long_as_it():
    state = made()
    _, check = check_of(state.function)
    state.holder.a, state.holder.c, state.holder.d, state.holder.e = 2.0, [3.0], {"k": 2.0}, None
    state.rebind(5.0)
    del state
    gc.collect()
    some = [[1.0 * k] for k in range(1000)]
    assert check.is_stale()
    assert len(some) == 1000


class Odd:
    """A key that cannot be compared."""

    def __hash__(self):
        return hash("k")

    def __eq__(self, other):
        raise AssertionError("this was compared")


def test_no_error_of_a_key_stays_behind():
    held = {Odd(): 1.0}
    more = {str(k): float(k) for k in range(100)}

    def f(x):
        return x * len(held) + more["3"]

    fast = fad.jit(f)
    for _ in range(3):
        assert fast(2.0) == 5.0
    more["3"] = 4.0
    assert fast(2.0) == 6.0


def test_an_array_in_other_memory_is_read_where_it_lies_now():
    x = np.arange(6.0)
    _, check = check_of(lambda y: y * x[0])
    x.resize(3000, refcheck=False)
    assert check.is_stale()
    x.resize(6, refcheck=False)
    assert not check.is_stale()
    x[5] = 7.0
    assert check.is_stale()


def test_nothing_is_looked_at_where_mutation_is_not_checked():
    state = made()
    _, check = check_of(state.function)
    state.holder.a = 2.0
    with fad.config.use(check_mutation="off"):
        assert not check.is_stale()
    assert check.is_stale()


def test_what_many_objects_lack_is_asked_of_each_and_noticed_where_it_comes_up():
    kinds = [type(f"Kind{n}", (), {}) for n in range(30)]
    objects = [kind() for kind in kinds]

    def function(x):
        return [(hasattr(o, "a"), getattr(o, "b", 0.0), getattr(o, "c", None)) for o in objects]

    _, check = check_of(function)
    assert not check.is_stale()
    for owner in (objects[17], kinds[29]):
        owner.b = 1.0
        assert check.is_stale()
        del owner.b
        assert not check.is_stale()


def test_a_question_after_what_objects_lack_is_kept_once_for_each_of_them():
    objects = [type(f"Kind{n}", (), {})() for n in range(30)]

    def function(x):
        return [(hasattr(o, "a"), getattr(o, "b", 0.0), getattr(o, "c", None)) for o in objects]

    _, check = check_of(function)
    known = check.table.dictionaries
    for held in [d for o in objects for d in (vars(o), gc.get_referents(vars(type(o)))[0])]:
        assert known[id(held)].lacking == {"a", "b", "c"}
        assert len(known[id(held)].gaps) == 1


def test_a_picture_that_a_program_may_draw_brings_in_nothing_of_matplotlib():
    plt = pytest.importorskip("matplotlib.pyplot")
    shown = False

    def function(x):
        if shown:
            figure, axes = plt.subplots()
            axes.plot(getattr(x, "real", x))
            figure.canvas.mpl_connect("key_release_event", lambda event: event.key)
        return x

    outer, check = check_of(function)
    assert len(outer.places) < 10
    assert not check.is_stale()
