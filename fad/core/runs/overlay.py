"""NumPy as user code sees it while a transform runs: the functions that make arrays give arrays that can be written.

``np.zeros(n)`` makes memory that cannot carry a derivative. So for the time of a transform the name `np` in the modules
of a function that writes into arrays stands for a copy of NumPy's module, in which the functions that make arrays
return handles (`fad.core.handles.buffers`). NumPy itself is left untouched: no library, and no other thread, sees a
difference. Names of other libraries are replaced with it: those of SciPy's functions by fad's own
(`fad.scipy.stand_ins`). Which functions need that is found by `fad.core.runs.overlay_needs`.
"""

from __future__ import annotations

import builtins
import operator
import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fad.core.handles import results_as_handles
from fad.core.handles.iterators import broadcast, fromiter, ndenumerate, nditer
from fad.core.handles.makers import MAKERS, Grid, converter, maker, of_lists, wrap_made
from fad.core.handles.random_sources import own_generator, random_module
from fad.core.runs.callees import CONVERTERS
from fad.core.runs.stand_ins import LIBRARIES, NUMPYS, OBJECTS, stand_for
from fad.core.tracing.numpy_dispatch import FUNCTIONS
from fad.core.tracing.views import RUNS


class _Array(type):
    """The class ``np.ndarray`` of the overlay: it makes handles, and its instances are NumPy's arrays."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, np.ndarray)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, np.ndarray)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is np.ndarray

    def __hash__(cls) -> int:
        return hash(np.ndarray)

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ndarray, name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        y = np.ndarray(*args, **kwargs)
        return wrap_made(y) if y.base is None else y


def _import(name: str, globals: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Import a module, for builtins.__import__: a function of the user's gets what stands in."""
    module = _import_module(name, globals, *args, **kwargs)
    entry = _swapped.get(id(globals)) if RUNS.buffers else None
    if entry is None:
        return module
    return _find_table(entry[3])[id(np)] if module is np else LIBRARIES.get(id(module), module)


_import_module = builtins.__import__
REPLACED: dict[int, Any] = {}  # by the id of what it stands for
_OTHERS: dict[str, Any] = {}


class _Needs(NamedTuple):
    """What a module needs of the overlay besides functions that make handles."""

    # Handles of all of NumPy's functions: a function wrote into what another one gave
    # (`fad.core.handles.results_as_handles`).
    wide: bool = False
    # A class ``np.ndarray`` that makes handles, too. It is no class to view arrays as or to derive from, and
    # ``type(x) is np.ndarray`` is to stay true of plain arrays: elsewhere it is NumPy's own.
    constructs: bool = False
    converts: bool = False  # classes of numbers that convert traced ones, `NUMBERS`

    def joined(self, other: _Needs) -> _Needs:
        return _Needs(*map(operator.or_, self, other))


_tables: dict[_Needs, dict[int, Any]] = {}  # what stands for what, as `REPLACED`, for modules that need more
_wide: dict[int, Any] = {}  # and what stands for NumPy's functions and parts where all results are handles
_ARRAY = _Array("ndarray", (), {"__doc__": np.ndarray.__doc__, "__module__": "numpy"})


def replace(name: str, value: Any) -> None:
    """Let the overlay have something else under a name of NumPy's, which may be of a module: ``lib.scimath.sqrt``."""
    _OTHERS[name] = value


def build() -> None:
    """Make the overlay, when it is first needed: all operations are known then."""
    module = types.ModuleType("numpy", np.__doc__)
    vars(module).update(vars(np))
    functions = {name: f for name, f in vars(np).items() if type(f) is type(np.sum)}
    named: dict[str, Any] = {name: of_lists(f) for name, f in functions.items() if f in FUNCTIONS}
    named |= {name: maker(getattr(np, name)) for name in MAKERS}
    named |= {name: converter(getattr(np, name)) for name in CONVERTERS}
    named |= {name: Grid(getattr(np, name)) for name in ("mgrid", "ogrid")}
    named |= {name: value for name, value in _OTHERS.items() if "." not in name}
    named |= {f.__name__: f for f in (ndenumerate, nditer, broadcast, fromiter)}
    vars(module).update(named, random=random_module())
    REPLACED.update({id(getattr(np, name)): f for name, f in named.items()})
    for name, value in _OTHERS.items():
        if "." in name:
            _replace_in_module(module, name, value)
    REPLACED.update({id(np): module, id(np.random): module.random})
    REPLACED.update({id(getattr(np.random, n)): vars(module.random)[n] for n in np.random.__all__})
    NUMPYS.update(REPLACED)
    REPLACED[id(_import_module)] = _import
    _tables[_Needs()] = REPLACED
    OBJECTS[np.random.Generator] = own_generator
    _stand_ins.update({np.random.Generator: stand_for, np.vectorize: stand_for})


def _replace_in_module(overlay: types.ModuleType, name: str, value: Any) -> None:
    """Put something else in the place of a name of one of NumPy's modules: copies of the modules hold it."""
    own, place = np, overlay
    *parts, last = name.split(".")
    for part in parts:
        own = getattr(own, part)
        if id(own) not in REPLACED:
            copied = types.ModuleType(own.__name__, own.__doc__)
            vars(copied).update(vars(own))
            REPLACED[id(own)] = vars(place)[part] = copied
        place = REPLACED[id(own)]
    REPLACED[id(getattr(own, last))] = vars(place)[last] = value


def _find_table(needs: _Needs) -> dict[int, Any]:
    """Return what stands for what in a module: a superset of the table for less."""
    if needs not in _tables:
        table = dict(REPLACED)
        if needs.wide:
            _wide.update({} if _wide else results_as_handles.build(REPLACED[id(np)]))
            table.update(_wide)
        named: dict[str, Any] = {}
        if needs.constructs:
            named["ndarray"] = table[id(np.ndarray)] = _ARRAY
        if needs.converts:
            table.update(NUMBERS)
            named |= {name: NUMBERS[id(value)] for name, value in vars(np).items() if id(value) in NUMBERS}
        module = types.ModuleType("numpy", np.__doc__)
        vars(module).update(vars(table[id(np)]), **named)
        table[id(np)] = module
        _tables[needs] = table
    return _tables[needs]


# What stands for Python's classes of numbers, by their names, and for those and NumPy's, by the id of the class, in the
# modules of programs that convert traced values.
BUILTINS: dict[str, type] = {}
NUMBERS: dict[int, type] = {}
NAMES_OF_NUMBERS: set[str] = set()  # under which programs know these classes
# By id, the dictionaries of these modules, and which of Python's classes are not exchanged there.
_converting: dict[int, tuple[dict, frozenset[str]]] = {}
_ABSENT = object()  # a name that a module itself does not have
_stand_ins: dict[type, Callable] = {}  # what makes the stand-in of an object, by its class


def exchange_objects(kind: type) -> None:
    """Let names of the objects of a class be exchanged for what stands in for them, by `OBJECTS` of the stand-ins."""
    _stand_ins[kind] = stand_for


def has_exchanged(space: dict) -> bool:
    """Return whether a module's dictionary has something for which another thing stands in while a transform runs."""
    return any(id(x) in REPLACED or id(x) in LIBRARIES or type(x) in _stand_ins for x in space.values())


_lock = threading.Lock()
# The id of a module's dictionary -> [dictionary, names and what they stood for, uses, what it needs, how many names of
# other libraries were known]
_swapped: dict[int, list] = {}


def swap_in(spaces: tuple, wide: bool, constructing: tuple) -> None:
    """Let names in modules' dictionaries stand for what stands in for them, until `swap_out`.

    In those of `constructing` the class of arrays makes handles, too.
    """
    if not REPLACED:
        build()
    with _lock:
        for space in spaces:
            entry = _swapped.get(id(space))
            needs = _Needs(wide, any(space is s for s in constructing), id(space) in _converting)
            if entry is None:
                names = _find_names(space, _find_table(needs))
                entry = _swapped[id(space)] = [space, names, 0, needs, _count_known()]
                for name, _, stands_in in names:
                    space[name] = stands_in
            if needs.converts:
                _swap_in_builtins(entry)
            _widen_entry(entry, needs)
            entry[2] += 1
        known = _count_known()
        for entry in _swapped.values():
            if entry[4] != known:  # it was exchanged in an earlier run
                _swap_in_libraries(entry)


def _count_known() -> int:
    return len(LIBRARIES) + len(_stand_ins)


class _Found(NamedTuple):
    """Which names of a module are exchanged while they stand for what they stood for, by the ids of that."""

    known: tuple  # the id of the table, and how much of other libraries was known
    keys: tuple
    ids: tuple
    classes: tuple  # and the ids of their classes
    names: list[tuple]


_found: dict[int, _Found] = {}  # by the id of the module's dictionary
_FEW_NAMES = 60  # which are looked at as quickly
_MOST_FOUND = 1000  # modules
_NO_NUMPY: dict[int, Any] = {}  # the table where NumPy's names are exchanged already; tables are told by their ids


def _find_names(space: dict, table: dict[int, Any]) -> list[tuple]:
    """Return the names in a module's dictionary that are exchanged, what they stand for, and what stands in for it.

    To see which have changed takes a quarter of looking for all. Ids keep nothing of the user's alive. They may be used
    again, but not by what is exchanged: that is kept for good, or, where each object has its own, told by its class.
    """
    if len(space) < _FEW_NAMES:
        return _look_for_names(space, table)
    values, before = space.values(), _found.get(id(space))
    now = _Found(
        (id(table), _count_known()), tuple(space), tuple(map(id, values)), tuple(map(id, map(type, values))), []
    )
    if before is None or now[:2] != before[:2]:
        now.names[:] = _look_for_names(space, table)
    elif now[:4] == before[:4]:
        return list(before.names)
    else:
        pairs = zip(now.keys, now.ids, before.ids, now.classes, before.classes, strict=True)
        changed = {name: space[name] for name, x, y, kind, other in pairs if x != y or kind != other}
        now.names[:] = [entry for entry in before.names if entry[0] not in changed]
        now.names.extend(_look_for_names(changed, table))
    if len(_found) >= _MOST_FOUND:
        _found.clear()
    _found[id(space)] = now
    return list(now.names)


def _look_for_names(space: dict, table: dict[int, Any]) -> list[tuple]:
    replaced, of_libraries, makers = table.get, LIBRARIES.get, _stand_ins.get  # in one pass: modules have many names
    return [
        (name, value, found)
        for name, value in space.items()
        if (found := replaced(id(value))) is not None
        or (found := of_libraries(id(value))) is not None
        or ((make := makers(type(value))) is not None and (found := make(value)) is not None)
    ]


def swapped_in() -> tuple[tuple, bool, tuple]:
    """Return the dictionaries in which names are exchanged now, and the other arguments of `swap_in` for the same."""
    entries = list(_swapped.values())
    constructing = tuple([space for space, _, _, needs, _ in entries if needs.constructs])
    return tuple([entry[0] for entry in entries]), any(entry[3].wide for entry in entries), constructing


def convert_in(space: dict, kept: frozenset[str]) -> None:
    """Let the names of classes of numbers be exchanged in a module, whenever NumPy's functions are.

    Some of Python's are kept, of which a function there may ask whether something is that class.
    """
    _converting[id(space)] = space, kept
    NUMPYS.update(NUMBERS)


def is_converting(space: dict) -> bool:
    """Return whether the names of classes of numbers are exchanged in a module, whenever NumPy's functions are."""
    return id(space) in _converting


def is_number_class(name: str) -> bool:
    """Return whether a full name is that of such a class, ``float`` or ``numpy.float64``."""
    return name in BUILTINS or (name.startswith("numpy.") and name[len("numpy.") :] in NAMES_OF_NUMBERS)


def is_exchanged(space: dict) -> bool:
    """Return whether names are exchanged in a module now, and what tables and objects hold is lent with them."""
    entry = _swapped.get(id(space))
    return entry is not None and entry[3].wide


def _swap_in_builtins(entry: list) -> None:
    space, names = entry[:2]
    for name, kind in BUILTINS.items():
        if name not in space and name not in _converting[id(space)][1]:
            names.append((name, _ABSENT, kind))
            space[name] = kind


def _swap_in_libraries(entry: list) -> None:
    """Let names of other libraries stand for what was found since the names of NumPy's were exchanged."""
    space, names = entry[:2]
    for found in _find_names(space, _NO_NUMPY):
        names.append(found)
        space[found[0]] = found[2]
    entry[4] = _count_known()


def _widen_entry(entry: list, needs: _Needs) -> None:
    """Exchange what stands in for NumPy's names if more is needed than before."""
    space, names, _, before, _ = entry
    needs = needs.joined(before)
    if needs == before:
        return
    more = _find_table(needs)
    known = {name: (value, stood_in) for name, value, stood_in in names}
    for name, now in list(space.items()):
        own, stood_in = known.get(name, (now, now))
        if now is stood_in and id(own) in more:
            known[name] = own, more[id(own)]
            space[name] = more[id(own)]
    entry[1] = [(name, own, stands_in) for name, (own, stands_in) in known.items()]
    entry[3] = needs


def swap_out(spaces: tuple) -> None:
    """Let names stand for what they stood for, where no other transform needs them exchanged."""
    with _lock:
        for space in spaces:
            entry = _swapped[id(space)]
            entry[2] -= 1
            if not entry[2]:
                del _swapped[id(space)]
                for name, value, stood_in in entry[1]:
                    if space.get(name) is stood_in:
                        _put_back(space, name, value)


def _put_back(space: dict, name: str, value: Any) -> None:
    if value is _ABSENT:
        del space[name]
    else:
        space[name] = value
