"""A jitted function sees what changed in objects of the standard library: namespaces, partials, buffers, functions."""

import argparse
import array
import collections
import contextvars
import functools
import logging
import threading
import types

import numpy as np
import pytest

import fad

X = np.arange(1.0, 7.0)


def calls(f, change):
    """Compare a jitted function with the plain one before and after something changed; return the jitted one."""
    fast = fad.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(fast(X), f(X))
    change()
    for _ in range(3):
        np.testing.assert_array_equal(fast(X), f(X))
    return fast


def of_attribute(x):
    return x * of_attribute.w


def of_helper(x):
    return x * getattr(of_attribute, "bias", 1.0)


def with_attributes(held, **values):
    for name, value in values.items():
        setattr(held, name, value)
    return held


class Table(collections.UserDict):
    pass


class Entries(dict):
    pass


OF_THE_STANDARD_LIBRARY = {
    "a namespace": lambda: types.SimpleNamespace(v=2),
    "a namespace of arguments": lambda: argparse.Namespace(v=2),
    "a partial": lambda: with_attributes(functools.partial(int), v=2),
    "a cached function": lambda: with_attributes(functools.cache(lambda: 1), v=2),
    "a function": lambda: with_attributes(lambda: 1, v=2),
    "an exception": lambda: with_attributes(ValueError(), v=2),
    "values of a thread": lambda: with_attributes(threading.local(), v=2),
    "a dictionary with attributes": lambda: with_attributes(Entries(), v=2),
    "a table with attributes": lambda: with_attributes(Table(), v=2),
}


@pytest.mark.parametrize("make", OF_THE_STANDARD_LIBRARY.values(), ids=OF_THE_STANDARD_LIBRARY)
@pytest.mark.parametrize("after", [3, np.arange(6.0)], ids=["a number", "an array"])
def test_an_attribute_of_an_object_of_the_standard_library_is_watched(make, after):
    held = make()
    assert calls(lambda x: x * held.v, lambda: setattr(held, "v", after)).cache_info().misses == 2
    calls(lambda x: x * getattr(held, "w", 1.0), lambda: setattr(held, "w", after))


@pytest.mark.parametrize("kind", [types.SimpleNamespace, argparse.Namespace])
def test_loop_bounds_and_nested_namespaces_are_watched(kind):
    held = kind(inner=kind(n=2), _scale=2.0)

    def f(x):
        for _ in range(held.inner.n):
            x = x * held._scale
        return x * vars(held.inner)["n"]

    calls(f, lambda: setattr(held.inner, "n", 3))
    calls(f, lambda: setattr(held, "_scale", 3.0))
    calls(f, lambda: setattr(held, "inner", kind(n=1)))


SHOWN = {0: 2}
CHANGING_CONTENTS = {
    "UserDict": (lambda: collections.UserDict({0: 2}), lambda held: held.__setitem__(0, 3)),
    "a class of UserDict": (lambda: Table({0: 2}), lambda held: held.__setitem__(0, 3)),
    "another dictionary of a UserDict": (lambda: Table({0: 2}), lambda held: setattr(held, "data", {0: 3})),
    "UserList": (lambda: collections.UserList([2]), lambda held: held.__setitem__(0, 3)),
    "UserString": (lambda: collections.UserString("2"), lambda held: setattr(held, "data", "3")),
    "bytearray": (lambda: bytearray(5000), lambda held: held.__setitem__(4321, 3)),
    "memoryview": (lambda: memoryview(bytearray(5000)), lambda held: held.__setitem__(4321, 3)),
    "array.array": (lambda: array.array("d", [2.0]), lambda held: held.__setitem__(0, 3.0)),
    "what a proxy shows": (lambda: types.MappingProxyType(SHOWN), lambda held: SHOWN.__setitem__(0, 3)),
    "a longer bytearray": (lambda: bytearray(b"\2"), lambda held: held.append(3)),
}


@pytest.mark.parametrize("name", CHANGING_CONTENTS)
def test_the_contents_of_an_object_of_the_standard_library_are_watched(name):
    make, change = CHANGING_CONTENTS[name]
    held = make()
    calls(lambda x: x * sum(float(held[k]) for k in range(len(held))), lambda: change(held))


def test_a_context_variable_and_the_keywords_of_a_partial_are_watched():
    scale = contextvars.ContextVar("scale", default=2.0)
    calls(lambda x: x * scale.get(), lambda: scale.set(3.0))
    scaled = functools.partial(lambda x, by: x * by, by=2.0)
    calls(lambda x: scaled(x), lambda: scaled.keywords.__setitem__("by", 3.0))


def test_a_value_of_another_thread_is_seen_there():
    held = threading.local()
    held.v = 2.0
    fast = fad.jit(lambda x: x * held.v)
    fast(X)
    fast(X)
    found = []

    def of_another_thread():
        held.v = 3.0
        found.append(fast(X))

    thread = threading.Thread(target=of_another_thread)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], X * 3.0)
    np.testing.assert_array_equal(fast(X), X * 2.0)


def test_an_attribute_of_the_function_itself_is_watched():
    of_attribute.w = 2.0
    try:
        calls(of_attribute, lambda: setattr(of_attribute, "w", 3.0))
        calls(of_helper, lambda: setattr(of_attribute, "bias", 5.0))
    finally:
        of_attribute.__dict__.clear()


def test_what_a_logger_and_a_thread_keep_for_themselves_is_no_reason_to_record():
    log, thread = logging.getLogger("fad.test.outer.state"), threading.Thread(target=int)

    def f(x):
        log.debug("called by %s", thread.name)
        return x * 2.0

    def change():
        log.isEnabledFor(logging.ERROR)
        thread.start()
        thread.join()

    assert calls(f, change).cache_info().misses == 1
