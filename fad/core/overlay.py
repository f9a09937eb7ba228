"""NumPy as user code sees it while a transform runs: the functions that make arrays give arrays that can be written.

``np.zeros(n)`` makes memory that cannot carry a derivative. So for the time of a transform the name `np` in the modules
of a function that writes into arrays stands for a copy of NumPy's module, in which the functions that make arrays
return handles (`fad.core.buffers`). NumPy itself is left untouched: no library, and no other thread, sees a
difference. Functions that never write are recognised by their code, and keep NumPy's own. Where a function is called
in a way that its caller's code does not show, the first write fails; then the transform runs its function again with
the overlay, and knows the next time. Where that fails, too, all of NumPy's functions take lists and return handles.

Names of other libraries are replaced with it: those of SciPy's functions by fad's own (`fad.scipy.stand_ins`).
"""

from __future__ import annotations

import builtins
import functools
import sys
import threading
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fad.backends import is_numpy_default
from fad.core import results_as_handles
from fad.core.callees import (
    CONVERTERS,
    DATA,
    called_functions,
    compares_classes,
    constructs_arrays,
    held_by,
    imports_library,
    wrapped_in,
    writes_arrays,
)
from fad.core.conversions import is_offered
from fad.core.iterators import broadcast, fromiter, ndenumerate, nditer
from fad.core.journal import JOURNAL, forget
from fad.core.like_users import modules_with, sees_overlay
from fad.core.makers import MAKERS, Grid, converter, maker, of_lists, wrap_made
from fad.core.numpy_dispatch import FUNCTIONS
from fad.core.outside import MANY, copies, lend, reaches_device, restore, take_back
from fad.core.random_sources import own_generator, random_module
from fad.core.tracer import Tracer
from fad.core.transformed import LinearMap, Transformed, Wrapping
from fad.core.views import RUNS
from fad.errors import BatchedValueError, ItemAssignmentError, TracerConversionError


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

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        y = np.ndarray(*args, **kwargs)
        return wrap_made(y) if y.base is None else y


def _import(name: str, globals: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Import a module, for builtins.__import__: a function of the user's gets what stands in."""
    module = _import_module(name, globals, *args, **kwargs)
    entry = _swapped.get(id(globals)) if RUNS.buffers else None
    if entry is None:
        return module
    return entry[3][id(np)] if module is np else LIBRARIES.get(id(module), module)


_import_module = builtins.__import__
REPLACED: dict[int, Any] = {}  # by the id of what it stands for
# The same where a function calls ``np.ndarray``: the class makes handles, too. It is no class to view arrays as or to
# derive from, and ``type(x) is np.ndarray`` is to stay true of plain arrays: elsewhere it is NumPy's own.
_CONSTRUCTING: dict[int, Any] = {}
_OTHERS: dict[str, Any] = {}
# What stands in for the names of other libraries, by the id of what it stands for; `FINDERS` fill it.
LIBRARIES: dict[int, Any] = {}
FINDERS: list[Callable[[dict], None]] = []
# The two where a function wrote into what another function of NumPy's gave (`fad.core.results_as_handles`).
_WIDE: dict[int, Any] = {}
_WIDE_CONSTRUCTING: dict[int, Any] = {}


def replace(name: str, value: Any) -> None:
    """Let the overlay have something else under a name of NumPy's."""
    _OTHERS[name] = value


def _build() -> None:
    """Make the overlay, when it is first needed: all operations are known then."""
    module = types.ModuleType("numpy", np.__doc__)
    vars(module).update(vars(np))
    functions = {name: f for name, f in vars(np).items() if type(f) is type(np.sum)}
    named: dict[str, Any] = {name: of_lists(f) for name, f in functions.items() if f in FUNCTIONS}
    named |= {name: maker(getattr(np, name)) for name in MAKERS if hasattr(np, name)}
    named |= {name: converter(getattr(np, name)) for name in CONVERTERS}
    named |= {name: Grid(getattr(np, name)) for name in ("mgrid", "ogrid")}
    named |= _OTHERS | {f.__name__: f for f in (ndenumerate, nditer, broadcast, fromiter)}
    vars(module).update(named, random=random_module())
    REPLACED.update({id(getattr(np, name)): f for name, f in named.items()})
    REPLACED.update({id(np): module, id(np.random): module.random, id(_import_module): _import})
    REPLACED.update({id(getattr(np.random, n)): vars(module.random)[n] for n in np.random.__all__})
    constructor = _Array("ndarray", (), {"__doc__": np.ndarray.__doc__})
    with_constructor = types.ModuleType("numpy", np.__doc__)
    vars(with_constructor).update(vars(module), ndarray=constructor)
    _CONSTRUCTING.update(REPLACED | {id(np): with_constructor, id(np.ndarray): constructor})
    _WIDE.update(results_as_handles.build(module, wrap_made))
    wide_with_constructor = types.ModuleType("numpy", np.__doc__)
    vars(wide_with_constructor).update(vars(_WIDE[id(np)]), ndarray=constructor)
    _WIDE_CONSTRUCTING.update(_WIDE | {id(np): wide_with_constructor, id(np.ndarray): constructor})


_lock = threading.Lock()
# The id of a module's dictionary -> [dictionary, names and what they stood for, uses, what stands in for what, how many
# names of other libraries were known]
_swapped: dict[int, list] = {}


class Running:
    """A transform that runs a function of the user's: NumPy's overlay is in place if the function needs it.

    It runs from the making of this on; ``with`` ends it. `user` is the function of the user's, where that is all that
    `function` calls, with arguments that it holds. `before` are copies of arrays that the function finds by name, if
    there are any.
    """

    __slots__ = (
        "spaces", "function", "lent", "before", "unknown", "effects", "wide", "constructs", "runs", "around",
    )  # fmt: skip
    spaces: tuple
    lent: Sequence[tuple]
    before: Sequence[tuple]
    unknown: Sequence[tuple]

    def __init__(self, function: Callable, user: Callable | None = None, before: Sequence[tuple] = ()):
        self.function = function
        self.spaces = self.lent = self.unknown = ()
        self.before = before
        needs = spaces_of(user or function)
        found, failed, first, self.wide, self.constructs = needs
        if first:
            needs[2] = False
            self.before = before or copies([function])
        self.effects = JOURNAL.next
        self.runs = runs = RUNS.__dict__  # what is known in this thread, found once
        self.around = runs["depth"]
        runs["depth"] = self.around + 1
        if found:
            self._overlay(found)
        if failed or self.wide:
            self.lent = lend(function)

    def __enter__(self) -> Running:
        return self

    def _overlay(self, spaces: tuple) -> None:
        if not REPLACED:
            _build()
        RUNS.buffers += not self.spaces
        self.spaces += spaces
        _swap_in(spaces, self.wide, self.constructs)

    def run(self, call: Callable, own_error: Callable) -> Any:
        """Return what a call of the function gives, after a second one where `retry` says so.

        That runs when the first one's error is done with: its own then has no other before it in the traceback.
        """
        try:
            result = call()
        except Exception as error:
            if not self.retry(error, own_error(error)) and not self.passed_over():
                raise
        else:
            if not self.passed_over():
                return result
        return self.again(call)

    def passed_over(self) -> bool:
        """Return whether the function should run again, for it caught the error of a function that fad has.

        So does a program that tries one function, and goes on with another where that raises.
        """
        refused, self.runs["refused"] = self.runs["refused"], None
        if refused is None or not is_offered(getattr(refused, "caller", "")):
            return False
        caught = refused.__traceback__  # begins where it was caught: solvers of fad's catch it for reasons of their own
        if caught is None or not sees_overlay(caught.tb_frame.f_code.co_filename):
            return False
        return any(frame.f_code not in _learned for frame in _frames(refused)) and self.retry(refused, refused)

    def retry(self, error: Exception, own: BaseException) -> bool:
        """Return whether a function that failed should run again, with what had not been in place.

        That is the overlay, and handles on the arrays from outside. `own` is fad's error, on which a library may have
        put another, `error`; if it is no Exception, it is raised. What the run wrote into arrays from outside is
        undone; its effects are not repeated.
        """
        if not isinstance(own, Exception):
            raise own
        if not isinstance(own, (TracerConversionError, BatchedValueError)) and not _is_refused_by_c(own):
            return False
        if reaches_device(self.function):
            return False  # what the run wrote into arrays of a device is not undone
        found, writes = _learn(error, self.spaces)
        self.constructs = self.constructs or _construct(frame.f_code for frame in _frames(error))
        if found or writes:
            saved = {id(x) for x, _ in self.before}
            reached = copies([self.function, *_known_to(error)], MANY, sys.maxsize)
            self.unknown = [(x, then) for x, then in reached if type(x) is np.ndarray and id(x) not in saved]
        lent = lend(self.function) if writes and not self.lent else []
        if found:
            self._overlay(found)
        self.lent = [*self.lent, *lent]
        if not found and not lent:
            return self._widen(error)
        restore(self.before)
        JOURNAL.next = self.effects
        return True

    def again(self, run: Callable) -> Any:
        """Return what a second run gives; raise if it writes into arrays that were not copied before the first.

        What the first run wrote there nobody knows, but the second does again what the first did: if it leaves the
        arrays alone, or writes what they held, nothing was written twice.
        """
        result = self._run_wider(run)
        for x, then in self.unknown:
            if x.tobytes() != then.tobytes():
                raise ItemAssignmentError(
                    f"a function picked while the program ran wrote into an array of shape {x.shape} and dtype "
                    f"{x.dtype} from outside, and a traced value into one of its own, for which it had to run again: "
                    "the array from outside may have been changed twice. Put back what it held and call again, for "
                    "the function is known now; or make the array in the function, and return it"
                )
        return result

    def _run_wider(self, run: Callable) -> Any:
        try:
            return run()
        except (TracerConversionError, BatchedValueError) as error:
            if not self._widen(error):
                raise
        return run()

    def _widen(self, error: Exception) -> bool:
        """Let all of NumPy's functions take lists and return handles, if a run with the overlay failed; return whether.

        That may help where a write failed, or where NumPy was to make a plain array; and so may handles on the arrays
        from outside, whose methods and indices take traced values (``a.dot(x)``, ``a[np.argsort(x)]``).
        """
        frames = _frames(error)
        if self.wide or not frames or not (writes_arrays(frames[-1].f_code) or _is_of_array(error)):
            return False
        _known.clear()
        _need_all.update([frame.f_code for frame in frames])
        self.wide = True
        self.lent = self.lent or lend(self.function)
        self._overlay(tuple({id(frame.f_globals): frame.f_globals for frame in frames}.values()))
        restore(self.before)
        JOURNAL.next = self.effects
        return True

    def __exit__(self, *_: Any) -> None:
        self.runs["depth"] = self.around
        if not self.around:
            self.runs["refused"] = None
            if self.runs["effects"]:
                forget()
        if self.lent:
            take_back(self.lent)
        if self.spaces:
            RUNS.buffers -= 1
            _swap_out(self.spaces)


def _swap_in(spaces: tuple, wide: bool, constructs: bool) -> None:
    with _lock:
        for space in spaces:
            entry = _swapped.get(id(space))
            if entry is None:
                put = _CONSTRUCTING if constructs else REPLACED
                found = [(k, v, put.get(id(v), LIBRARIES.get(id(v)))) for k, v in space.items()]
                names = [name for name in found if name[2] is not None]
                names += [(k, v, own_generator(v)) for k, v in space.items() if type(v) is np.random.Generator]
                entry = _swapped[id(space)] = [space, names, 0, put, len(LIBRARIES)]
                for name, _, stands_in in names:
                    space[name] = stands_in
            elif entry[4] != len(LIBRARIES):
                _swap_in_libraries(entry)
            _widen_entry(entry, wide, constructs)
            entry[2] += 1


def _swap_in_libraries(entry: list) -> None:
    """Let names of other libraries stand for what was found since the names of NumPy's were exchanged."""
    space, names = entry[:2]
    for name, value in list(space.items()):
        if (stands_in := LIBRARIES.get(id(value))) is not None:
            names.append((name, value, stands_in))
            space[name] = stands_in
    entry[4] = len(LIBRARIES)


def _widen_entry(entry: list, wide: bool, constructs: bool) -> None:
    """Exchange what stands in for NumPy's names if more is needed: handles throughout, or a class that makes them."""
    space, names, _, put, _ = entry
    wide = wide or put[id(np)] in (_WIDE[id(np)], _WIDE_CONSTRUCTING[id(np)])
    constructs = constructs or id(np.ndarray) in put
    more = (_WIDE_CONSTRUCTING if constructs else _WIDE) if wide else _CONSTRUCTING if constructs else REPLACED
    if put[id(np)] is more[id(np)]:
        return
    known = {name: (value, stood_in) for name, value, stood_in in names}
    for name, now in list(space.items()):
        own, stood_in = known.get(name, (now, now))
        if now is stood_in and id(own) in more:
            known[name] = own, more[id(own)]
            space[name] = more[id(own)]
    entry[1] = [(name, own, stands_in) for name, (own, stands_in) in known.items()]
    entry[3] = put | more


def _swap_out(spaces: tuple) -> None:
    with _lock:
        for space in spaces:
            entry = _swapped[id(space)]
            entry[2] -= 1
            if not entry[2]:
                del _swapped[id(space)]
                for name, value, stood_in in entry[1]:
                    if space.get(name) is stood_in:
                        space[name] = value


# --- which functions write -------------------------------------------------------------------------------------------

_MOST_KNOWN = 4096
_known: dict[Any, tuple] = {}  # by the ids of a function's parts: what it needs, and the parts
_LATEST = "latest"  # the key of a function that was asked for last, and what it needs
_learned: dict[types.CodeType, tuple] = {}  # functions that were seen to need the overlay
_need_all: set[types.CodeType] = set()  # functions that were seen to need handles from all of NumPy's functions


def _is_refused_by_c(error: Exception) -> bool:
    """Return whether a compiled function, as those of NumPy's generators, insisted on a plain array."""
    text = str(error)
    refused = text.startswith("Cannot convert Tracer to ") or text.endswith("must be numpy.ndarray, not Tracer")
    return type(error) is TypeError and refused


def _frames(error: BaseException) -> list[types.FrameType]:
    """Return the frames of the user's functions in which an error arose."""
    found = []
    at = error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if sees_overlay(file) and not file.endswith(".pyx"):  # Cython's frames have the variables of their library
            found.append(at.tb_frame)
        at = at.tb_next
    return found


def _construct(codes: Iterable[types.CodeType]) -> bool:
    """Return whether functions call ``np.ndarray``, and none compares classes with it."""
    codes = list(codes)
    return any(map(constructs_arrays, codes)) and not any(map(compares_classes, codes))


def _is_of_array(error: BaseException) -> bool:
    """Return whether a traced value was to become a plain array, as what NumPy makes of a list of them."""
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code is Tracer.__array__.__code__:
            return True
        at = at.tb_next
    return False


def _known_to(error: BaseException) -> list:
    """Return what the functions in which an error arose could write into: their variables, and what they find by name.

    Not all that their modules hold: a notebook's, or a test runner's, reach the whole session.
    """
    frames = _frames(error)
    return [*[dict(frame.f_locals) for frame in frames], *map(_function_of, frames)]  # from 3.13 on they are no dict


def _function_of(frame: types.FrameType) -> types.FunctionType:
    """Return a function that finds by name what the function that runs in a frame finds."""
    code, held = frame.f_code, frame.f_locals
    cells = [types.CellType(held[name]) if name in held else types.CellType() for name in code.co_freevars]
    return types.FunctionType(code, frame.f_globals, None, None, tuple(cells))


def _learn(error: BaseException, overlaid: Sequence[dict]) -> tuple[tuple, bool]:
    """Return the module dictionaries of the functions in which an error arose, and whether it was in one that writes.

    Both are remembered, and whether the write failed in spite of the overlay in these dictionaries: then it was one
    into an array from outside.
    """
    frames = _frames(error)
    spaces = {id(frame.f_globals): frame.f_globals for frame in frames}
    codes = [frame.f_code for frame in frames]
    spaces.update({id(space): space for space in modules_with(codes)})
    if not REPLACED:
        _build()
    for find in FINDERS:
        find(LIBRARIES)
    if any(imports_library(code) for code in codes):
        spaces[id(vars(builtins))] = vars(builtins)
    found = tuple([s for s in spaces.values() if any(id(v) in REPLACED or id(v) in LIBRARIES for v in s.values())])
    writes = bool(codes) and writes_arrays(codes[-1])
    if found or writes:
        _known.clear()
        failed = writes and {id(space) for space in found} <= {id(space) for space in overlaid}
        _learned.update((code, (found, failed)) for code in codes)
    return found, writes


def spaces_of(function: Callable) -> list:
    """Return the module dictionaries in which a function needs the overlay: none if it writes into no new array.

    And whether a write failed in it, whether it is still to run for the first time, whether all of NumPy's functions
    are to return handles, and whether the class of arrays is to make them.
    """
    alone = type(function) is types.FunctionType and not (
        function.__closure__ or function.__defaults__ or function.__kwdefaults__
    )
    parts: Any = (function.__code__, function.__globals__) if alone else _parts(function)
    on_host = is_numpy_default()
    latest = _known.get(_LATEST)
    if alone and on_host and latest is not None and latest[1][0] is parts[0] and latest[1][1] is parts[1]:
        return latest[0]  # called again
    key = (on_host, *map(id, parts))  # code compares by contents, which takes time
    known = _known.get(key)
    if known is None:
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        found, failed, wide, constructs = _look(function, not on_host)
        known = _known[key] = [found, failed, True, wide, constructs], parts
    if alone and on_host:
        _known[_LATEST] = known
    return known[0]


def _parts(function: Any) -> list:
    """Return the code, the classes and the modules that a function is made of, without the data that it holds.

    Functions that call the same ones through their closures are made of the same.
    """
    parts: list = []
    waiting = [function]
    for f in waiting:
        kind = type(f)
        if kind is types.FunctionType:
            parts += (f.__code__, f.__globals__)  # one text may be run in several modules
            for held in held_by(f):
                if type(held) not in DATA and (len(waiting) < 9 or all(held is not x for x in waiting)):
                    waiting.append(held)
        elif kind is types.MethodType:
            parts.append(type(f.__self__))
            waiting += [f.__func__, *_others(wrapped_in(f.__self__), waiting)]
        elif kind is functools.partial:
            waiting += [f.func, *f.args]
        elif kind in (Transformed, LinearMap):
            waiting.append(f.run)
        elif issubclass(kind, Wrapping):
            parts.append(kind)
            waiting.append(f.__wrapped__)
        else:
            parts.append(f if issubclass(kind, (type, types.ModuleType)) else kind)
            waiting += _others(wrapped_in(f), waiting)
    return parts


def _others(found: list, known: list) -> list:
    """Return what is not known yet: an object may wrap itself."""
    return [x for x in found if all(x is not y for y in known)]


def _look(function: Callable, on_device: bool) -> tuple[tuple, bool, bool, bool]:
    """Return what `spaces_of` does; where new arrays are those of a device, all that a function makes has a handle."""
    spaces: dict[int, dict] = {}
    imports = failed = wide = False
    writes = on_device
    codes = []
    for f in called_functions(function):
        code = f.__code__
        if not sees_overlay(code.co_filename):
            continue
        codes.append(code)
        spaces[id(f.__globals__)] = f.__globals__
        learned, also_failed = _learned.get(code, ((), False))
        spaces.update((id(s), s) for s in learned)
        failed = failed or also_failed
        wide = wide or code in _need_all
        writes = writes or code in _learned or writes_arrays(code)
        imports = imports or imports_library(code)
    if imports:
        spaces[id(vars(builtins))] = vars(builtins)  # for its __import__
    return tuple(spaces.values()) if writes else (), failed, wide, _construct(codes)
