"""What stands for the names and objects of other libraries while a transform runs, as far as they have been found."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from fad.introspect.reachable import names_in

# What stands in for a library's function, class or module, by the id of what it stands for; and what makes it for an
# object that was there before, by the object's class. `FINDERS` fill both.
LIBRARIES: dict[int, Any] = {}
OBJECTS: dict[type, Callable[[Any], Any]] = {}
# The same for NumPy's functions where they are not a module's variables: a closure, a default or a class holds them.
NUMPYS: dict[int, Any] = {}
KEPT = "stands_for"  # the attribute of what stands in that keeps the object alive
# What stands in now, by the id of the object: wherever a program holds that, the same stands for it.
MADE: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
FINDERS: list[Callable[[dict, dict], None]] = []
# Functions that do harm in a first run without stand-ins. SciPy's C code prints the error of the function that it is
# given, before it raises it; `golden` and `fmin` only compare values, so that they return numbers that no derivative
# reaches; SciPy does not know a sparse matrix of fad's for one; and what makes Python numbers of its arguments, as
# `math`, quad and brentq do, gives a recorded program constants of one call. Modules that make stand-ins enter theirs.
HARMFUL: dict[str, frozenset[str]] = {
    "scipy.optimize": frozenset({
        "curve_fit", "fsolve", "least_squares", "leastsq", "root", "golden", "fmin", "brentq", "brenth", "bisect",
        "ridder",
    }),
    "scipy.integrate": frozenset({"quad", "dblquad", "tplquad", "nquad"}),
    "scipy.signal": frozenset({"chirp", "cheby1", "cheby2", "iirnotch", "iirpeak"}),
    "scipy.interpolate": frozenset({"splint"}),
    "scipy.sparse": frozenset({"issparse", "isspmatrix", "isspmatrix_csr", "isspmatrix_csc", "sparray", "spmatrix"}),
}  # fmt: skip


def find_all() -> None:
    """Fill the tables, where a program has imported more by now."""
    for find in FINDERS:
        find(LIBRARIES, OBJECTS)


def names_harmful(f: types.FunctionType) -> bool:
    """Return whether a function names one of a library's that is not to run without its stand-in even once."""
    named, known = names_in(f.__code__), f.__globals__
    return any(_names_one_of(title, names, named, known) for title, names in HARMFUL.items() if title in sys.modules)


def holds_harmful(code: types.CodeType, held: list) -> bool:
    """Return whether one of those, or their module, is in the closure or among the defaults of a function."""
    if not held:
        return False
    named, found = names_in(code), {id(x) for x in held}
    return any(
        not _objects(title, names).isdisjoint(found)
        or (not names.isdisjoint(named) and not _either([sys.modules[title]]).isdisjoint(found))
        for title, names in HARMFUL.items()
        if title in sys.modules
    )


def _names_one_of(title: str, functions: frozenset[str], named: frozenset[str], known: dict) -> bool:
    """Return whether code that names `named` reaches one of a library's functions by that, given what it knows."""
    objects = _objects(title, functions)
    if any(id(known[name]) in objects for name in named if name in known):
        return True
    if functions.isdisjoint(named):
        return False
    modules = _either([sys.modules[title], sys.modules[title.partition(".")[0]]])
    return (title in named and title not in known) or any(id(x) in modules for x in known.values())


def _objects(title: str, functions: frozenset[str]) -> set[int]:
    library = sys.modules[title]
    return _either([getattr(library, name) for name in functions if hasattr(library, name)])


def _either(xs: list) -> set[int]:
    """Return the ids of objects, and of what stands for them: another transform may run."""
    return {id(x) for x in xs} | {id(LIBRARIES[id(x)]) for x in xs if id(x) in LIBRARIES}


def has_stand_in(x: Any) -> bool:
    """Return whether something else stands for a library's function or object while a transform runs."""
    kind = type(x)
    if kind is types.MethodType:
        return has_stand_in(x.__self__)
    if kind is functools.partial:
        return any(map(has_stand_in, (x.func, *x.args, *x.keywords.values())))
    if kind is staticmethod:
        return has_stand_in(x.__func__)
    return id(x) in LIBRARIES or kind in OBJECTS or id(x) in NUMPYS


def find_stand_in(x: Any) -> Any:
    """Return what stands for a library's function or object while a transform runs, or None.

    So it does for its methods, and for what functools.partial or staticmethod made of them, or holds.
    """
    if id(x) in LIBRARIES:
        return LIBRARIES[id(x)]
    if id(x) in NUMPYS:
        return NUMPYS[id(x)]
    kind = type(x)
    if kind in OBJECTS:
        return _find_made(x, OBJECTS[kind])
    if kind is types.MethodType and (owner := find_stand_in(x.__self__)) is not None:
        own = getattr(x.__self__, x.__name__, None) == x  # not what a program has bound to it by hand
        return getattr(owner, x.__name__, None) if own else types.MethodType(x.__func__, owner)
    if kind is functools.partial and has_stand_in(x):
        given = {name: stand_for(value) for name, value in x.keywords.items()}
        return functools.partial(stand_for(x.func), *map(stand_for, x.args), **given)
    if kind is staticmethod and (function := find_stand_in(x.__func__)) is not None:
        return staticmethod(function)
    return None


def stand_for(x: Any) -> Any:
    """Return what stands for something while a transform runs: mostly the thing itself."""
    stands_in = find_stand_in(x)
    return x if stands_in is None else stands_in


STOOD_FOR = frozenset({"scipy", "math", "cmath", "statistics", "numba"})  # libraries whose own have stand-ins


def is_librarys(x: Any) -> bool:
    """Return whether a function, or the class of an object, is a library's, so that something may stand in for it."""
    names = str(getattr(x, "__module__", "")), type(x).__module__  # what Numba compiles has the name of the user's
    return any(name.partition(".")[0] in STOOD_FOR for name in names)


def stand_for_given(function: Any) -> Any:
    """Return what stands for a function that a transform is given itself, which no name or place leads to."""
    found = find_stand_in(function)
    if found is None:
        held: Any = function
        while type(held) in (functools.partial, types.MethodType):
            held = held.func if type(held) is functools.partial else held.__self__
        if is_librarys(held):
            find_all()  # it may not have been seen yet
            found = find_stand_in(function)
    return function if found is None else found


def _find_made(x: Any, make: Callable[[Any], Any]) -> Any:
    """Return what stands for an object already, or what is made to stand for it now."""
    found = MADE.get(id(x))
    if found is None:
        found = make(x)
        if found is not None:
            setattr(found, KEPT, x)
            MADE[id(x)] = found
    return found
