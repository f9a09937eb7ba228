"""The traced values that a function holds, wherever it finds them by name, and the function with others in their place.

What a closure, defaults, a partial and a pytree hold is made again with the others. An object that is no pytree keeps
its identity and what is written to it, and so does a module: their traced attributes are exchanged while the function
runs.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fad import tree
from fad.core.handles.buffers import LOST, PLAIN
from fad.core.runs.transformed import LinearMap, Transformed
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import root_of
from fad.errors import CustomRuleError
from fad.introspect.reachable import Walk, code_names, is_library, is_of_library

_MOST = 1000  # objects that are looked into
# What holds nothing that a program could set, or is looked into where its functions are named.
_CLOSED = (
    type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.GeneratorType, np.ndarray, np.generic,
    np.ufunc, type(np.sum), str, bytes, int, float, complex, type(None),
)  # fmt: skip


class _Exchange(NamedTuple):
    """A place in an object or a module, and what builds its contents from other values."""

    read: Callable[[], Any]
    write: Callable[[Any], None]
    build: Callable[[list], Any]


class _Search:
    """What a search through a function found so far."""

    def __init__(self, function: Any):
        self.function = function
        self.held: list = []
        self.seen: dict[int, Callable | None] = {}
        self.exchanges: list[_Exchange] = []

    @functools.cached_property
    def walk(self) -> Walk:
        """A walk through the function, which knows the attributes that some code names: others are not looked at."""
        walk = Walk((self.function,), most=_MOST)
        for _ in walk:
            pass
        return walk

    def exchange(self, x: Any, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        """Note a place in an object or a module if traced values are inside of what it holds."""
        if type(x) in (list, dict):  # it is not made again, for the function may append to it
            if id(x) not in self.seen:
                self.seen[id(x)] = None
                for key, item in list(enumerate(x) if type(x) is list else x.items()):
                    self.exchange(item, functools.partial(_find, x, key), functools.partial(x.__setitem__, key))
            return
        build = _open_value(x, self)
        if build:
            self.exchanges.append(_Exchange(read, write, build))


_REMAKE = "fad_remake"  # the attribute of a function that reads other values: what makes it, and of which values


def find_closed_over(function: Any) -> tuple[list, Callable]:
    """Return the traced values that a function holds, and a function that makes it again with others in their place.

    They are looked for in the cells of its closure, its defaults, the arguments of a partial, the attributes of objects
    and the variables of modules that its code names, and in functions found there. Values are the leaves of pytrees;
    one that is found twice is one. Plain arrays behind handles are left where they are.
    """
    search = _Search(function)
    build = _open_value(function, search)
    if not search.exchanges:
        return search.held, lambda values: _build(build, function, list(values))
    exchanges = search.exchanges

    def make(values: Any) -> Callable:
        made = _with_others(_build(build, function, list(values)), exchanges, list(values))
        vars(made)[_REMAKE] = make, list(values)
        return made

    return search.held, make


def _find(x: Any, key: Any) -> Any:
    try:
        return x[key]
    except LookupError:  # the function took it out
        return None


def _with_others(function: Callable, exchanges: list[_Exchange], values: list) -> Callable:
    """Return a function that finds other values in objects and modules while it runs."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with _hold_others(exchanges, values):
            return function(*args, **kwargs)

    return run


@contextlib.contextmanager
def _hold_others(exchanges: list[_Exchange], values: list) -> Iterator[None]:
    """Let places hold other values for the length of a block; what is bound there meanwhile stays."""
    before = [place.read() for place in exchanges]
    others = [place.build(values) for place in exchanges]
    for place, other in zip(exchanges, others, strict=True):
        place.write(other)
    try:
        yield
    finally:
        for place, other, own in zip(exchanges, others, before, strict=True):
            if place.read() is other:
                place.write(own)


def _open_value(x: Any, search: _Search) -> Callable | None:
    """Collect the traced values inside `x`; return what builds `x` from others in their place, or None."""
    if id(x) in search.seen:
        return search.seen[id(x)]
    if type(x) is Tracer:
        return _open_tracer(x, search)
    if isinstance(x, types.FunctionType):
        if _REMAKE in vars(x):  # the objects that it reads hold the others of an outer solver
            make, held = vars(x)[_REMAKE]
            search.seen[id(x)] = None
            others = _open_value(held, search)
            return others and (lambda values: make(others(values)))
        return _open_function(x, search)
    if isinstance(x, (Transformed, LinearMap)):
        run = _open_value(x.run, search)
        return run and (lambda values: x.with_run(run(values)))
    if isinstance(x, types.MethodType):
        owner, plain = _open_value(x.__self__, search), x.__func__
        return owner and (lambda values: types.MethodType(plain, owner(values)))
    if isinstance(x, functools.partial):
        parts = _open_value((x.func, x.args, x.keywords), search)
        made = lambda func, args, keywords: functools.partial(func, *args, **keywords)
        return parts and (lambda values: made(*parts(values)))
    if isinstance(x, _CLOSED):
        return None
    leaves, structure = tree.flatten(x)
    if len(leaves) == 1 and leaves[0] is x:
        _open_object(x, search)
        return None
    builders = [_open_value(leaf, search) for leaf in leaves]
    if not any(builders):
        return None
    return lambda values: tree.unflatten(
        structure, [_build(b, v, values) for b, v in zip(builders, leaves, strict=True)]
    )


def _open_tracer(x: Tracer, search: _Search) -> Callable | None:
    owner = root_of(x).owner
    if owner in (PLAIN, LOST) or owner.dead:
        return None
    place = len(search.held)
    search.held.append(x)
    search.seen[id(x)] = lambda values: values[place]
    return search.seen[id(x)]


def _open_function(f: types.FunctionType, search: _Search) -> Callable | None:
    search.seen[id(f)] = None  # a function that refers to itself keeps its own closure
    places = f.__closure__ or ()
    cells = [_open_value(_contents(c), search) for c in places]
    defaults = _open_value(f.__defaults__, search)
    keywords = _open_value(f.__kwdefaults__, search)
    if not is_of_library(f):
        _open_variables(f.__globals__, code_names(f.__code__).loaded, code_names(f.__code__).attributes, search)

    def build(values):
        closure = tuple(types.CellType(b(values)) if b else c for b, c in zip(cells, places, strict=True))
        made = types.FunctionType(
            f.__code__, f.__globals__, f.__name__, _build(defaults, f.__defaults__, values), closure or None
        )
        made.__kwdefaults__ = _build(keywords, f.__kwdefaults__, values)
        return made

    if any(cells) or defaults or keywords:
        search.seen[id(f)] = build  # met again, in another function's closure, it is made again there too
    return search.seen[id(f)]


def _open_variables(space: dict, names: frozenset, attributes: frozenset, search: _Search) -> None:
    """Look into the variables of a module that code names, and into those of the modules among them."""
    for name in names & space.keys():
        x = space[name]
        if isinstance(x, types.ModuleType):
            if id(x) not in search.seen and not is_library(x.__name__):
                search.seen[id(x)] = None
                _open_variables(vars(x), attributes, attributes, search)
        else:
            search.exchange(x, functools.partial(_find, space, name), functools.partial(space.__setitem__, name))


def _open_object(x: Any, search: _Search) -> None:
    """Look into the attributes of an object that some code names, and into the closures of its methods."""
    search.seen[id(x)] = None
    if len(search.seen) > _MOST:
        return
    held = getattr(x, "__dict__", None)
    if type(held) is dict:
        every = search.walk.reads_by_any_name or is_library(type(x).__module__)  # the code of a library is not read
        for name in [name for name in held if every or name in search.walk.names]:
            search.exchange(held[name], functools.partial(_find, held, name), functools.partial(held.__setitem__, name))
    for cls in type(x).__mro__:
        for name, attribute in list(vars(cls).items()):
            if type(attribute) is types.MemberDescriptorType:
                _open_slot(x, attribute, search)
            elif not is_library(cls.__module__):
                _open_attribute(cls, name, attribute, search)


def _open_slot(x: Any, slot: types.MemberDescriptorType, search: _Search) -> None:
    read = functools.partial(slot.__get__, x)
    try:
        held = read()
    except AttributeError:  # a slot that is empty
        return
    search.exchange(held, read, functools.partial(slot.__set__, x))


def _open_attribute(cls: type, name: str, x: Any, search: _Search) -> None:
    """Look into what a class holds: a method, whose closure may hold traced values, or a value."""
    if isinstance(x, property):
        functions = [f for f in (x.fget, x.fset) if isinstance(f, types.FunctionType)]
    else:
        f = x.__func__ if isinstance(x, (staticmethod, classmethod)) else x
        functions = [f] if isinstance(f, types.FunctionType) else []
    for f in functions:
        if id(f) not in search.seen:
            _open_method(f, search)
    if not functions and name in search.walk.names:
        search.exchange(x, functools.partial(_find, vars(cls), name), functools.partial(setattr, cls, name))


def _open_method(f: types.FunctionType, search: _Search) -> None:
    """Look into a method, which stays what it is: the contents of its cells and its defaults are exchanged."""
    search.seen[id(f)] = None
    for cell in f.__closure__ or ():
        with contextlib.suppress(ValueError):  # a cell that is not filled yet
            x = cell.cell_contents
            write = functools.partial(setattr, cell, "cell_contents")
            search.exchange(x, functools.partial(getattr, cell, "cell_contents"), write)
    for name in ("__defaults__", "__kwdefaults__"):
        search.exchange(getattr(f, name), functools.partial(getattr, f, name), functools.partial(setattr, f, name))
    if not is_of_library(f):
        _open_variables(f.__globals__, code_names(f.__code__).loaded, code_names(f.__code__).attributes, search)


def _build(builder: Callable | None, x: Any, values: list) -> Any:
    return builder(values) if builder else x


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a cell that is not filled yet
        raise CustomRuleError("a function was used before a variable of its closure had a value") from None
