"""Which functions need NumPy's overlay (`overlay`): seen in their code, or learned from a run that failed.

Functions that never write are recognised by their code, and keep NumPy's own. Where a function is called in a way that
its caller's code does not show, the first write fails; then the transform runs its function again with the overlay
(`fad.core.runs.running`), and knows the next time. Where that fails, too, all of NumPy's functions take lists and
return handles.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from fad.backends import is_numpy_default
from fad.core.runs.callees import (
    DATA,
    called_functions,
    compares_classes,
    constructs_arrays,
    held_by,
    imports_library,
    may_identify,
    wrapped_in,
    writes_arrays,
)
from fad.core.runs.overlay import (
    BUILTINS,
    NAMES_OF_NUMBERS,
    REPLACED,
    build,
    convert_in,
    has_exchanged,
    is_converting,
    is_exchanged,
    is_number_class,
)
from fad.core.runs.stand_ins import find_all, holds_harmful, names_harmful
from fad.core.runs.transformed import LinearMap, Transformed, Wrapping
from fad.core.tracing.conversions import find_caller_of_number, is_of_compiled_code, is_offered
from fad.core.tracing.like_users import modules_with, sees_overlay
from fad.core.tracing.tracer import Tracer
from fad.errors import MissingRuleError
from fad.introspect.frames import is_machinery, is_own
from fad.introspect.reachable import is_library, names_in

_MOST_KNOWN = 4096
_known: dict[Any, tuple[Needs, list]] = {}  # by the ids of a function's parts: what it needs, and the parts
_met: dict[Any, tuple] = {}  # by the same: what its runs were seen to need besides
_NOBODY: Any = None, None, None
_latest: list[tuple] = [_NOBODY]  # code and module of the function without closure that was asked for last; its needs
# Functions that were seen to need the overlay: where, whether a write failed in spite of it, where np.ndarray is made.
_learned: dict[types.CodeType, tuple] = {}
# Functions that were seen to need handles from all of NumPy's functions, and whether on the arrays from outside, too.
_need_all: dict[types.CodeType, bool] = {}


def is_refused_by_c(error: Exception) -> bool:
    """Return whether compiled code insisted on a plain array or number.

    NumPy's generators do, NumPy of an object's own array, and FITPACK, whose error hides the one that it met.
    """
    text = str(error)
    if type(error) is ValueError:
        return text == "object __array__ method not producing an array"
    if type(error) is IndexError:
        return text.startswith("_dfitpack.") and text.endswith(" can't be converted to double")
    if is_of_compiled_code(error):
        return True
    return type(error) is TypeError and text.endswith("must be numpy.ndarray, not Tracer")


def is_met_in_library(error: BaseException) -> bool:
    """Return whether a library's own function met what traced arrays have not, such as ``x.byteswap()``."""
    if not isinstance(error, MissingRuleError):
        return False
    files, at = [], error.__traceback__
    while at is not None:
        files.append(at.tb_frame.f_code.co_filename)
        at = at.tb_next
    outside = [file for file in files if not is_own(file)]
    return bool(outside) and is_machinery(outside[-1])


def find_frames(error: BaseException) -> list[types.FrameType]:
    """Return the frames of the user's functions in which an error arose."""
    found = []
    at = error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if sees_overlay(file) and not file.endswith(".pyx"):  # Cython's frames have the variables of their library
            found.append(at.tb_frame)
        at = at.tb_next
    return found


def find_catching(error: BaseException | None) -> types.FrameType | None:
    """Return the frame of the function that caught an error, None where none did.

    The traceback begins there. It begins with the traced value where C code caught the error, which had asked it for
    numbers: the function that called the C code met another error, or none.
    """
    if error is None or error.__traceback__ is None:
        return None
    frame = error.__traceback__.tb_frame
    return frame.f_back if frame.f_code in _ASKED else frame


_ASKED = {method.__code__ for method in (Tracer.__array__, Tracer.__float__, Tracer.__complex__)}


def find_constructing(functions: Iterable[tuple[types.CodeType, dict]]) -> tuple:
    """Return the module dictionaries in which functions call ``np.ndarray``, and none compares classes with it.

    Of the functions, there are code and dictionaries.
    """
    functions = list(functions)
    comparing = {id(space) for code, space in functions if compares_classes(code)}
    found = {id(space): space for code, space in functions if constructs_arrays(code)}
    return tuple([space for k, space in found.items() if k not in comparing])


def is_of_array(error: BaseException) -> bool:
    """Return whether a traced value was to become a plain array, as what NumPy makes of a list of them."""
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code is Tracer.__array__.__code__:
            return True
        at = at.tb_next
    return False


def is_in_sparse_matrix(error: BaseException) -> bool:
    """Return whether an error arose in SciPy's code of sparse matrices: what was asked was not a stand-in for one."""
    at = error.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__")).startswith("scipy.sparse."):
            return True
        at = at.tb_next
    return False


def find_reach(error: BaseException) -> list:
    """Return what the functions in which an error arose could write into: their variables, and what they find by name.

    Not all that their modules hold: a notebook's, or a test runner's, reach the whole session.
    """
    frames = find_frames(error)
    return [*[dict(frame.f_locals) for frame in frames], *map(_function_of, frames)]  # from 3.13 on they are no dict


def _function_of(frame: types.FrameType) -> FunctionType:
    """Return a function that finds by name what the function that runs in a frame finds."""
    code, held = frame.f_code, frame.f_locals
    cells = [types.CellType(held[name]) if name in held else types.CellType() for name in code.co_freevars]
    return FunctionType(code, frame.f_globals, None, None, tuple(cells))


def _find_holders(frames: list[types.FrameType]) -> list[dict]:
    """Return what holds NumPy's functions among the variables of functions: the module in ``self.xp``, or a namespace.

    Of an object these are the attributes. A namespace is a module that passes NumPy's functions on, and that a program
    has chosen when it ran; or one that code names, as a part of another (``gs.linalg.expm(x)``).
    """
    found = {}
    for x in itertools.chain.from_iterable([*frame.f_locals.values(), *frame.f_globals.values()] for frame in frames):
        if not isinstance(x, (types.ModuleType, FunctionType, type)):
            try:
                held = object.__getattribute__(x, "__dict__")
            except AttributeError:
                continue
            if type(held) is dict and any(value is np for value in list(held.values())):
                found[id(held)] = held
    for frame in frames:
        names = names_in(frame.f_code)
        held = [*frame.f_locals.values(), *[frame.f_globals.get(name) for name in names]]
        for x in held:  # which grows
            if type(x) is types.ModuleType and not is_library(x.__name__) and id(vars(x)) not in found:
                found[id(vars(x))] = vars(x)
                held += [vars(x)[name] for name in names if name in vars(x)]
    return list(found.values())


def learn(
    error: BaseException, overlaid: Sequence[dict], wide: bool = False, around: Sequence = ()
) -> tuple[tuple, bool, bool]:
    """Return the module dictionaries of the functions in which an error arose, and whether it was in one that writes.

    The third result is whether a write failed in spite of the overlay in these dictionaries: then it was one into an
    array from outside. Where not all of NumPy's functions return handles (`wide`), a plain array that NumPy was to make
    was none. All of this but `writes` is remembered, of the functions of the frames `around`, too.
    """
    frames = [*around, *find_frames(error)]
    spaces = {id(frame.f_globals): frame.f_globals for frame in frames}
    codes = [frame.f_code for frame in frames]
    spaces.update({id(space): space for space in [*modules_with(codes), *_find_holders(frames)]})
    if not REPLACED:
        build()
    find_all()
    if any(imports_library(code) for code in codes):
        spaces[id(vars(builtins))] = vars(builtins)
    converts = learn_to_convert(error)
    found = tuple([space for space in spaces.values() if has_exchanged(space)])
    found += tuple([s for s in converts if all(s is not t for t in found)])
    writes = bool(codes) and writes_arrays(codes[-1])
    failed = writes and {id(space) for space in found} <= {id(space) for space in overlaid}
    failed = failed and (wide or not is_of_array(error))
    if found or writes:
        _forget()
        constructs = find_constructing((frame.f_code, frame.f_globals) for frame in frames)
        _learned.update((code, (found, failed, constructs)) for code in codes)
    return found, writes, failed


def learn_to_convert(error: BaseException) -> tuple:
    """Return the dictionary of the module that called ``float(x)`` or ``np.float64(x)``, where an error arose by that.

    The names are exchanged there from now on, but for a class of which a function of the module may ask whether
    something is that class, ``type(x) is float``: what stands for a class is not the class.
    """
    frames = find_frames(error)
    if not frames or is_converting(frames[-1].f_globals):
        return ()
    kept = _find_kept(getattr(error, "caller", None), frames)
    if kept is None:
        return ()
    convert_in(frames[-1].f_globals, kept)
    return (frames[-1].f_globals,)


def may_convert(caller: str | None, frames: Sequence[types.FrameType]) -> bool:
    """Return whether what requested a plain number was a class of numbers, which may be exchanged in its module.

    It is `caller`, or a function that was given the class, as in ``map(float, xs)``. The module is that of the last
    of the frames.
    """
    return _find_kept(caller, frames) is not None


def _find_kept(caller: str | None, frames: Sequence[types.FrameType]) -> frozenset[str] | None:
    """Return which of Python's classes of numbers must not be exchanged with the others; None where none may be."""
    if caller is None or not frames:
        return None
    code, space = frames[-1].f_code, frames[-1].f_globals
    wanted = {caller} if is_number_class(caller) else NAMES_OF_NUMBERS & names_in(code)
    codes = [*_codes_in(space), *[frame.f_code for frame in frames if frame.f_globals is space]]
    asked = {name for c in codes for name in NAMES_OF_NUMBERS & names_in(c) if may_identify(c, name)}
    if not wanted or not asked <= BUILTINS.keys() - space.keys() - wanted:
        return None
    return frozenset(asked)


def is_to_exchange() -> bool:
    """Return whether what the user's line calls makes a number of a traced value, but will not in another run.

    That is a class of numbers or a function of `math`, under a name or in a table where it is not exchanged yet.
    """
    frames = []
    frame = sys._getframe(1)
    while frame is not None:
        if sees_overlay(frame.f_code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    if not frames or is_exchanged(frames[0].f_globals):
        return False
    caller = find_caller_of_number()
    if is_number_class(caller):
        return may_convert(caller, frames[::-1])
    return is_offered(caller) and not caller.endswith(".")


def _codes_in(space: dict) -> list[types.CodeType]:
    """Return the code of the functions and methods that a module holds."""
    found = list(space.values())
    found += [x for kind in found if isinstance(kind, type) for x in list(vars(kind).values())]
    return [x.__code__ for x in found if isinstance(x, FunctionType) and x.__globals__ is space]


def learn_to_widen(frames: Sequence[types.FrameType], lends: bool) -> None:
    """Remember that the functions that run in frames need handles from all of NumPy's functions.

    With `lends` they need those on the arrays from outside, too.
    """
    _forget()
    _need_all.update({frame.f_code: lends or _need_all.get(frame.f_code, False) for frame in frames})


def is_learned(frames: Sequence[types.FrameType]) -> bool:
    """Return whether all functions that run in frames are known to need the overlay."""
    return all(frame.f_code in _learned for frame in frames)


class Needs:
    """What a function needs to run on traced values, and whether it is still to run for the first time."""

    __slots__ = ("spaces", "failed", "wide", "constructs", "first", "nothing")

    def __init__(self, spaces: tuple, failed: bool, wide: bool, constructs: tuple):
        self.spaces = spaces  # the module dictionaries in which it needs the overlay: none if it writes no new array
        self.failed = failed  # whether a write failed in it: it needs handles on the arrays from outside
        self.wide = wide  # whether all of NumPy's functions are to return handles
        self.constructs = constructs  # the dictionaries in which the class of arrays is to make them
        self.first = True
        self.nothing = False  # whether it has run before, and runs as it is

    def note_run(self) -> None:
        """Note that the function runs for the first time."""
        self.first = False
        self.nothing = not (self.spaces or self.failed or self.wide or self.constructs)


def needs_of(function: Callable) -> Needs:
    """Return what a function needs, as its code and that of the functions which it calls tell, or earlier runs did."""
    on_host = is_numpy_default()
    alone = type(function) is FunctionType and not (
        function.__closure__ or function.__defaults__ or function.__kwdefaults__
    )
    if alone and on_host:
        code, space, needs = _latest[0]
        if function.__code__ is code and function.__globals__ is space:
            return needs  # called again
    parts: Any = [function.__code__, function.__globals__] if alone else _parts(function)
    key = (on_host, *map(id, parts))  # code compares by contents, which takes time
    known = _known.get(key)
    if known is None:
        if len(_known) > _MOST_KNOWN:
            _forget()
            _met.clear()
        needs = _look(function, not on_host)
        if key in _met:
            spaces, failed, wide, constructs, _ = _met[key]
            needs.spaces = tuple({id(space): space for space in (*needs.spaces, *spaces)}.values())
            needs.failed, needs.wide = needs.failed or failed, needs.wide or wide
            needs.constructs = (*needs.constructs, *constructs)
        known = _known[key] = needs, parts
    if alone and on_host:
        _latest[0] = *parts, known[0]
    return known[0]


def _forget() -> None:
    """Let what functions need be looked up again."""
    _known.clear()
    _latest[0] = _NOBODY


def remember(function: Callable, spaces: tuple, failed: bool, wide: bool, constructs: tuple) -> None:
    """Remember what a run of a function needed, for it may have picked functions that its code does not show."""
    parts = _parts(function)
    key = (is_numpy_default(), *map(id, parts))
    distinct = tuple({id(space): space for space in spaces}.values())
    _met[key] = distinct, failed, wide, constructs, parts
    _known.pop(key, None)
    _latest[0] = _NOBODY


def _parts(function: Any) -> list:
    """Return the code, the classes and the modules that a function is made of, without the data that it holds.

    Functions that call the same ones through their closures are made of the same.
    """
    parts: list = []
    waiting = [function]
    for f in waiting:
        kind = type(f)
        if kind is FunctionType:
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


def _look(function: Callable, on_device: bool) -> Needs:
    """Return what a function needs as its code tells; where new arrays are those of a device, all have handles."""
    spaces: dict[int, dict] = {}
    imports = failed = wide = at_once = False
    writes = on_device
    functions = []
    constructs: tuple = ()
    for f in called_functions(function):
        code = f.__code__
        if not sees_overlay(code.co_filename):
            continue
        functions.append((code, f.__globals__))
        spaces[id(f.__globals__)] = f.__globals__
        learned, also_failed, also_constructs = _learned.get(code, ((), False, ()))
        spaces.update((id(s), s) for s in learned)
        failed = failed or also_failed or _need_all.get(code, False)
        constructs += also_constructs
        wide = wide or code in _need_all
        writes = writes or code in _learned or writes_arrays(code)
        imports = imports or imports_library(code)
        if holds_harmful(code, held_by(f)):
            at_once = failed = True  # what stands for it is lent to its place
        at_once = at_once or names_harmful(f)
    if at_once:
        find_all()
    if imports:
        spaces[id(vars(builtins))] = vars(builtins)  # for its __import__
    found = tuple(spaces.values()) if writes or at_once else ()
    return Needs(found, failed, wide, constructs + find_constructing(functions))
