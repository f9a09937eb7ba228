"""What a function finds by name: what its code may read besides its arguments, looked for without running anything.

From a function the walk goes to the globals that its code loads, its closure and its defaults; from an object to the
attributes, methods and properties that some code found so far names; from a container to what is in it. Objects are
read for their types alone: others may stand in for them, and raise when they are looked at.
"""

from __future__ import annotations

import array
import collections
import contextvars
import dis
import functools
import gc
import itertools
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fad.introspect.outer_values import (
    ABSENT,
    MANY,
    Place,
    as_bytes,
    contents,
    entry,
    has_any,
    look_up,
    sample,
    size,
)

_MOST_CODES = 1 << 14  # functions whose names are remembered
MOST = 100  # objects that are looked at, from the function on
CONTAINERS = (dict, list, tuple, set, frozenset, collections.deque)
BUFFERS = (bytearray, memoryview, array.array)
_NUMBERS = (np.ndarray, dict)
PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})  # what holds nothing
# Their code is not read, nor is that of the standard library. Programs name Matplotlib for pictures, from which no
# result is read, and reach thousands of objects there; pytest's code is in every assertion that it has rewritten.
_LIBRARIES = frozenset({"fad", "numpy", "scipy", "cupy", "cupyx", "matplotlib", "mpl_toolkits", "_pytest", "pytest"})
# Classes of objects that are not looked into: arrays of a device, and what has a state that no program reads. What
# changes in them makes no recording stale.
OPAQUE: list[type] = []
# Classes of objects whose code is the library's, and whose attributes and methods are the user's.
OPEN: dict[type, Open] = {}
INSIDE: dict[type, Callable] = {}  # classes of objects of compiled code, and what gives what is in one
LOADED = (sys.modules,)  # the place of a module that a function imports, and that is not loaded yet
TRACED: set[type] = set()  # what stands for an array while a transform runs; entered where it is defined
_CODE = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, staticmethod, classmethod,
    property, np.ufunc, type(np.sum),
)  # fmt: skip
_MAKING = frozenset({"__init__", "__new__", "__post_init__"})  # what a class is called for
_NOT_CALLED = _MAKING | {"__repr__", "__str__", "__init_subclass__", "__del__", "__reduce__", "__reduce_ex__"}
# What a class has for people and tools: an operation does not read it, and code that does names it.
_DESCRIPTIONS = frozenset({
    "__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__annotations__", "__orig_bases__",
    "__firstlineno__", "__static_attributes__",
})  # fmt: skip
# What C code reads of a class that is compiled: each look gives a new number, which is always the same one.
_OFFSETS = frozenset({"__vectorcalloffset__", "__dictoffset__", "__weaklistoffset__"})
_NOT_READ = _NOT_CALLED | _DESCRIPTIONS | _OFFSETS
# Classes of the standard library whose methods read this attribute, and the user's code only the methods.
_WRAPPERS = (collections.UserDict, collections.UserList, collections.UserString)
_WRAPPED = frozenset({"data"})
_IMMUTABLE = 1 << 8  # the flag of a class whose attributes cannot be set
_WHETHER_THERE = frozenset({"hasattr", "getattr"})  # code that names these reads attributes by texts
_ANY_VARIABLE = frozenset({"globals", "eval", "exec"})  # code that names these may read any variable of its module
_OF_PYTHON = frozenset({"__builtins__", "__loader__", "__spec__"})  # variables that every module has
_BY_ANY_NAME = frozenset({"getattr", "vars", "__dict__", "asdict", "astuple", "__getattribute__", "attrgetter"})


class Open(NamedTuple):
    """What the library reads of objects of a class: their attributes, but for private ones and some `others`."""

    private: frozenset = frozenset()  # the private ones that it reads nevertheless
    others: frozenset = frozenset()
    called: frozenset = frozenset()  # methods that it calls


class Owner(NamedTuple):
    """A dictionary of attributes: of an object, of its class or of a class itself."""

    names: Any
    object: Any  # what the descriptors of its class are read from, if it is not the dictionary's own object
    read: Callable
    held: Any  # what they are read from


class Walk:
    """A walk over what functions and objects reach: each object once, and the places where they were found."""

    __slots__ = (
        "places", "found", "names", "most", "missing", "every", "reads_by_any_name",
        "_seen", "_unnamed", "_named", "_texts", "_objects", "_of_libraries",
    )  # fmt: skip

    def __init__(self, roots: Iterable[Any], most: int = MOST, missing: bool = False, every: bool = False):
        self.most = most
        self.missing = missing  # whether attributes that are not there are places, too
        # Whether the places of traced values, functions and classes are noted, too, and none within objects of SciPy's.
        self.every = every
        self.places: list[Place] = []
        self.found: list = []
        self.names: dict[str, None] = {}  # attributes that some code names, in the order in which they were found
        self._seen: set[int] = set()
        self.reads_by_any_name = False  # whether some code may read all attributes of objects
        self._unnamed: dict[str, list[Owner]] = {}  # attributes that no code has named yet
        self._named: list[tuple[Owner, str]] = []  # those that are to be looked at
        self._texts: set[str] = set()  # those that code may have as texts
        self._of_libraries: dict[int, dict] = {}  # the dictionaries of libraries' objects, by id
        self._objects: list[tuple] = []  # the dictionaries of each object and its classes; those that may change, by id
        for x in roots:
            self._add(x)

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while True:
            while at < min(len(self.found), self.most):
                x = self.found[at]
                yield x
                self._visit(x)
                at += 1
            if at < self.most:
                self._look_again()
            if at == len(self.found) or at == self.most:
                break
        self._look_for_gaps()

    def _add(self, x: Any, read: Callable | None = None, held: Any = None, key: Any = None) -> None:
        """Note an object, and the place where it was found."""
        kind = type(x)
        noted = self.every or not (kind in _CODE or kind in TRACED or issubclass(kind, type))
        if read is not None and noted:
            self.places.append(Place(read, held, key, x))
        if kind is str and x.isidentifier():
            self._texts.add(x)
        if kind not in PLAIN and not issubclass(kind, np.generic) and id(x) not in self._seen:
            self._seen.add(id(x))
            self.found.append(x)

    def _visit(self, x: Any) -> None:
        kind = type(x)
        if kind is np.ndarray:
            if x.dtype.hasobject and x.dtype.names is None:
                self._each(x.reshape(-1)[:MANY].tolist())
        elif kind is types.FunctionType:
            self._function(x)
        elif kind is types.MethodType:
            self._each((x.__self__, x.__func__))
        elif kind is types.BuiltinFunctionType:
            self._add(x.__self__)
        elif kind is staticmethod or kind is classmethod:
            self._add(x.__func__)
        elif kind is property:
            self._each((x.fget, x.fset))
        elif issubclass(kind, functools.partial):
            self._each((x.func, *x.args, x.keywords))
            self._object(x)
        elif issubclass(kind, CONTAINERS):
            self._container(x)
            if kind not in CONTAINERS:
                self._object(x)
        elif issubclass(kind, BUFFERS):
            self._buffer(x)
            if kind not in BUFFERS:
                self._object(x)
        elif kind is types.MappingProxyType:
            self._each(gc.get_referents(x))  # what it shows: its own methods may run code of the user's
        elif kind is contextvars.ContextVar:
            self._add(x.get(None), contextvars.ContextVar.get, x)
        elif kind in INSIDE:
            self._each(INSIDE[kind](x))
        elif kind not in TRACED and not issubclass(kind, (types.ModuleType, *OPAQUE)):
            self._object(x)

    def _each(self, xs: Iterable[Any]) -> None:
        for x in xs:
            self._add(x)

    def _function(self, f: types.FunctionType) -> None:
        held = vars(f)
        self._each(held.values())
        self._own(Owner(held, None, entry, held))
        if self.missing:
            self._objects.append(((held, vars(types.FunctionType)), {id(held): held}))
        library = is_of_library(f)
        code = NOTHING if library else code_names(f.__code__)
        for cell in f.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # a cell that is still empty
                continue
            self._add(value, None if library else contents, cell)
            self._module(value, code.attributes)
        if library:
            return
        self._each((*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()))
        known = f.__globals__
        for name in code.loaded if _ANY_VARIABLE.isdisjoint(code.loaded) else _variables(known):
            if name in known:
                self._add(known[name], entry, known, name)
                self._module(known[name], code.attributes)
        for name in imported_names(f):
            self._module(sys.modules.get(name), code.attributes)
            if self.missing and name not in sys.modules:
                self.places.append(Place(has_any, LOADED, frozenset({name}), False))
        for name in code.attributes:
            if name in self.names:
                continue
            self.names[name] = None
            self._named += [(owner, name) for owner in self._unnamed.pop(name, ())]
            if name in _BY_ANY_NAME:
                self.reads_by_any_name = True
        self._texts |= code.texts

    def _module(self, module: Any, names: frozenset) -> None:
        """Look into a module for what a function that names it names besides."""
        if not issubclass(type(module), types.ModuleType) or is_library(vars(module).get("__name__")):
            return
        held = vars(module)
        for name in names & held.keys():
            known = id(held[name]) in self._seen
            self._add(held[name], entry, held, name)
            if not known:
                self._module(held[name], names)

    def _container(self, x: Any) -> None:
        kind = type(x)
        if issubclass(kind, dict):
            for key, value in itertools.islice(dict.items(x), MANY):
                if type(value) in PLAIN and type(value) is not str:  # most are
                    self.places.append(Place(entry, x, key, value))
                else:
                    self._add(value, entry, x, key)
                if type(key) is str or type(key) not in PLAIN:
                    self._add(key)
            self.places.append(Place(size, x, None, size(x, None)))
            return
        items = tuple(itertools.islice(x, MANY))
        self._each(item for item in items if type(item) is str or type(item) not in PLAIN)
        if not issubclass(kind, (tuple, frozenset)):
            self.places.append(Place(sample, x, None, sample(x)))

    def _buffer(self, x: Any) -> None:
        """Note what bytes are in memory that is not an array's: all of them, for reading them does not hold it."""
        try:
            self.places.append(Place(as_bytes, x, None, bytes(x)))
        except ValueError:  # a memoryview that was released
            return

    def _object(self, x: Any) -> None:
        kind = type(x)
        if issubclass(kind, type):
            above: list = []  # what an attribute of a class may be hidden by
            for cls in type.__dict__["__mro__"].__get__(x):
                above.append(vars(cls))
                if not is_library(_module_of(cls)):
                    self._own(Owner(vars(cls), None, look_up, tuple(above)), _MAKING)
            return
        local = issubclass(kind, threading.local)
        held: Any
        try:
            held = (threading.local if local else object).__getattribute__(x, "__dict__")
        except AttributeError:
            held = None
        found = type(held) is dict
        held = held if found else {}
        if is_library(_module_of(kind)):
            self._of_libraries[id(held)] = held
            of_scipy = _module_of(kind)[:6] == "scipy."
            private = _NUMBERS if of_scipy else ()  # a Rotation's numbers may be set, and the entries of a matrix
            for name, v in held.items():
                if name[:1] != "_" or name == "__wrapped__" or type(v) in private:
                    self._add(v, *((entry, held, name) if of_scipy and not self.every else ()))
            if type(slot := getattr(kind, "fun", None)) is types.MemberDescriptorType:
                self._add(slot.__get__(x))
        for name in open_attributes(kind, held):
            self._add(held[name], entry, held, name)
        read_from = (threading.local.__getattribute__, x) if local else (entry, held)  # of the thread that calls
        self._own(Owner(held, None, *read_from), _WRAPPED if issubclass(kind, _WRAPPERS) else frozenset())
        hiding: list = [held]  # what an attribute of a class may be hidden by
        changeable: dict[int, Any] = {id(held): held} if found else {}
        for cls in kind.__mro__:
            hiding.append(vars(cls))
            if not is_library(_module_of(cls)):
                held = tuple(hiding) if changeable else (vars(cls),)
                self._own(Owner(vars(cls), x, look_up, held), frozenset(called_unnamed(kind, cls)))
                if not cls.__flags__ & _IMMUTABLE:
                    changeable[id(cls)] = vars(cls)
        if self.missing:
            self._objects.append((tuple(hiding), changeable))

    def _own(self, owner: Owner, more: frozenset = frozenset()) -> None:
        """Note the attributes of an object: those that some code names, and `more`, are looked at."""
        for name in owner.names:
            if name in self.names or name in more:
                self._named.append((owner, name))
            else:
                self._unnamed.setdefault(name, []).append(owner)

    def _look_again(self) -> None:
        """Look at objects for attributes that the code found since they were visited names."""
        if self.reads_by_any_name:
            self._name_attributes_of_objects()
        named, self._named = self._named, []
        for (names, x, read, held), name in named:
            value = names[name]
            kind = type(value)
            if read is look_up and look_up(held, name) is not value:
                self._add(value)  # another class hides it: what is found there is noted with that class
            elif kind is not types.MemberDescriptorType and kind is not types.GetSetDescriptorType:
                self._add(value, read, held, name)
            elif x is not None and (now := _read(value, x)) is not ABSENT:
                self._add(now, kind.__get__, value, x)

    def _look_for_gaps(self) -> None:
        """Note where objects lack attributes of which some code may ask whether they are there."""
        asked = self._asked_for()
        together: dict[frozenset, dict[int, Any]] = {}  # what some objects lack, and where it might come up
        for dictionaries, changeable in self._objects:
            lacking = asked.difference(*dictionaries)
            if lacking:
                together.setdefault(lacking, {}).update(changeable)
        for lacking, held in together.items():
            if held:
                self.places.append(Place(has_any, tuple(held.values()), lacking, False))

    def _asked_for(self) -> frozenset[str]:
        """Return the attributes of which some code may ask whether they are there."""
        named = self.names if "AttributeError" in self.names else ()  # any of them may raise it
        return frozenset().union(named, () if _WHETHER_THERE.isdisjoint(self.names) else self._texts)

    def _name_attributes_of_objects(self) -> None:
        """Look at all attributes of the objects found so far, not at those of their classes.

        What a library keeps for itself is looked at only if a text has its name.
        """
        for name, owners in self._unnamed.items():
            private = name[:1] == "_" and name not in self._texts
            some = [type(x.names) is dict and not (private and id(x.names) in self._of_libraries) for x in owners]
            self._named += [(owner, name) for owner, read in zip(owners, some, strict=True) if read]
            owners[:] = [owner for owner, read in zip(owners, some, strict=True) if not read]


def open_attributes(kind: type, held: dict) -> list[str]:
    """Return the names of the attributes of an object that code of the library reads, though no code names them."""
    if not issubclass(kind, tuple(OPEN)):
        return []
    some = [x for cls, x in OPEN.items() if issubclass(kind, cls)]
    return [n for n in held if any(n in x.private if n[:1] == "_" else n not in x.others for x in some)]


def called_unnamed(kind: type, cls: type) -> Iterator[str]:
    """Give the methods of a class, of which objects of a kind are, that are called by operators or by the library."""
    called = frozenset().union(*(x.called for of, x in OPEN.items() if issubclass(kind, of)))
    return (n for n in vars(cls) if n in called or (n[:2] == n[-2:] == "__" and n not in _NOT_READ))


def code_of(kind: type) -> Iterator[Any]:
    """Give a class, if it is the user's, and what of its methods is called though no code names it."""
    for cls in kind.__mro__:
        if not is_library(_module_of(cls)):
            yield cls
            yield from (vars(cls)[name] for name in called_unnamed(kind, cls))


def _read(descriptor: Any, x: Any) -> Any:
    """Return what a slot of an object holds, or an attribute that compiled code gives; ABSENT if it is empty.

    And if it makes another thing at each look: then nothing that could change is kept there. What functions say of
    themselves is of no interest.
    """
    try:
        if type(descriptor) is types.MemberDescriptorType:
            return descriptor.__get__(x)
        if descriptor.__name__[:2] == "__" or callable(x):
            return ABSENT
        now = descriptor.__get__(x)
        again = descriptor.__get__(x)
    except Exception:  # compiled code may raise anything
        return ABSENT
    return now if now is again or (type(now) in PLAIN and now == again) else ABSENT


def _variables(module: dict) -> list[str]:
    """Return the names of a module's variables, without Python's own: a loader may reach the program that loads."""
    return [name for name in module if name not in _OF_PYTHON]


def reach(fun: Any) -> Iterator[Any]:
    """Give what a function finds by name, and what that finds, without running anything; each once."""
    return iter(Walk([fun]))


class Names(NamedTuple):
    """What code names: globals, attributes, and modules that it imports."""

    loaded: frozenset
    attributes: frozenset  # the texts among them
    texts: frozenset
    imported: frozenset  # with the number of dots in front of each, and what is taken from it


NOTHING = Names(frozenset(), frozenset(), frozenset(), frozenset())


@functools.lru_cache(_MOST_CODES)
def code_names(code: types.CodeType) -> Names:
    """Return the names in the code of a function and in that of the functions that it makes."""
    codes = codes_of(code)
    loaded = frozenset(name for c in codes for name in _loaded_names(c))
    imported = frozenset(found for c in codes for found in _imports_in(c))
    constants = [x for c in codes for x in c.co_consts]
    for held in constants:  # the names that a loop runs over
        constants += held if type(held) in (tuple, frozenset) else ()
    texts = frozenset(x for x in constants if type(x) is str and x.isidentifier())  # getattr(x, "name")
    return Names(loaded, names_in(code) | texts, texts, imported)


_EXTENDED_ARG, _IMPORT_NAME = dis.EXTENDED_ARG, dis.opmap["IMPORT_NAME"]
_SHIFTS = {dis.opmap["LOAD_GLOBAL"]: 1, dis.opmap["LOAD_NAME"]: 0}  # the bits of an operand behind the number of a name


def operations_in(code: types.CodeType) -> Iterator[tuple[int, int]]:
    """Give the operations of code with their operands, without the texts that `dis` makes of them."""
    text, higher = code.co_code, 0
    for operation, operand in zip(text[::2], text[1::2], strict=True):
        if operation == _EXTENDED_ARG:
            higher = (higher | operand) << 8
        else:
            yield operation, higher | operand
            higher = 0


def _loaded_names(code: types.CodeType) -> Iterator[str]:
    for operation, operand in operations_in(code):
        if operation in _SHIFTS:
            yield code.co_names[operand >> _SHIFTS[operation]]


def _imports_in(code: types.CodeType) -> Iterator[tuple]:
    if _IMPORT_NAME not in code.co_code[::2]:
        return
    before: list[Any] = [0, 0]  # what the two instructions before load: the dots and the names
    for at in dis.get_instructions(code):
        if at.opname == "IMPORT_NAME":
            yield at.argval, *before
        if at.opname != "EXTENDED_ARG":
            before = [before[1], at.argval]


def imported_names(f: types.FunctionType) -> list[str]:
    """Return the full names of the modules that the code of a function imports; what it takes from one may be one."""
    found = []
    for name, dots, taken in code_names(f.__code__).imported:
        package = f.__globals__.get("__package__") or ""
        above = package.split(".")[: package.count(".") + 2 - dots] if dots else []
        full = ".".join([*above, name] if name else above)
        found += [full, *(f"{full}.{x}" for x in taken or ())]
    return found


@functools.lru_cache(_MOST_CODES)
def names_in(code: types.CodeType) -> frozenset[str]:
    """Return the variables of modules and the attributes that code names, and the functions that it makes."""
    return frozenset(name for c in codes_of(code) for name in c.co_names)


def codes_of(code: types.CodeType) -> list[types.CodeType]:
    """Return the code of a function, and of the functions that it makes."""
    found = [code]
    for c in found:
        found += [x for x in c.co_consts if isinstance(x, types.CodeType)]
    return found


def is_of_library(fun: types.FunctionType) -> bool:
    """Return whether a function is of a library whose code is not read.

    One of the user's has a library's module where functools.wraps made it like that one's function.
    """
    return is_library(fun.__module__) and is_library(fun.__globals__.get("__name__"))


def _module_of(cls: type) -> Any:
    return vars(cls).get("__module__", "builtins")


def is_library(module: Any) -> bool:
    """Return whether a module is of fad, NumPy, SciPy or the standard library, given its name."""
    root = module.partition(".")[0] if type(module) is str else ""
    return root in _LIBRARIES or (root in sys.stdlib_module_names and _is_standard(root))


@functools.cache
def _is_standard(root: str) -> bool:
    """Return whether a name of the standard library is not a module of the user's."""
    file = getattr(sys.modules.get(root), "__file__", None)
    return type(file) is not str or file.startswith(os.path.dirname(os.__file__))
