"""Where in the user's own program we are: the file and line behind a call, for messages and for tables."""

from __future__ import annotations

import ast
import builtins
import contextlib
import contextvars
import functools
import inspect
import io
import itertools
import linecache
import opcode
import os
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

# Frames of these files and packages are machinery between the user and us, never the user's own line. A package is
# known by the folder it was imported from: the user's own folders may have any name.
_FAD = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FILES = (
    _FAD, "<__array_function__", "<frozen importlib",
    "<fad.jit>",  # programs of jit
    contextlib.__file__, functools.__file__,  # decorators of ours and of the user's pass through these
)  # fmt: skip
_PACKAGES = (
    "importlib", "numpy", "scipy", "cupy", "cupyx", "optree", "matplotlib", "mpl_toolkits", "pandas",
    "seaborn",
)  # fmt: skip


_is_machinery: dict[str, bool] = {}


def note_machinery(module: types.ModuleType) -> None:
    """Note that a module is one of those between fad and the user."""
    _is_machinery[str(getattr(module, "__file__", None))] = True


def is_machinery(file: str) -> bool:
    """Return whether a file is fad's own or one of the libraries between fad and the user."""
    known = _is_machinery.get(file)
    if known is None:
        packages = [sys.modules[name] for name in _PACKAGES if name in sys.modules]
        folders = (folder + os.sep for package in packages for folder in getattr(package, "__path__", ()))
        known = _is_machinery[file] = file.startswith((*_FILES, *folders))
    return known


def is_own(file: str) -> bool:
    """Return whether a file is one of fad's."""
    return file.startswith(_FAD)


def user_place() -> tuple[str, int] | None:
    """Return file name and line number of the innermost frame that is the user's; cheap, to be shown later."""
    frame = _user_frame()
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _user_frame() -> types.FrameType | None:
    return next(user_frames(), None)


def user_frames() -> Iterator[types.FrameType]:
    """Yield the frames of the user's own code that led here, from the innermost outward."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_machinery(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def runs_masked_arrays() -> bool:
    """Return whether the user's line has called NumPy's masked arrays."""
    frame, user = sys._getframe(1), _user_frame()
    while frame is not None and frame is not user and not frame.f_globals.get("__name__", "").startswith("numpy.ma."):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not user


def show_place(place: tuple[str, int] | None) -> str:
    """Return ``'file.py:12: y = np.foo(x)'`` for a place, or ``''`` for none."""
    if place is None:
        return ""
    name, number = place
    return f"{name}:{number}: {linecache.getline(name, number).strip()}".rstrip(": ")


def user_line() -> str:
    """Return the user's own line that led here, as text."""
    return show_place(user_place())


class Step(NamedTuple):
    """What the user's line is doing at this moment."""

    kind: str  # "store", "update" (+=), "index", "operator", "call", or "" where it is not known
    text: str = ""  # what is stored into or updated, what is indexed, what is called
    operator: str = ""
    called: Any = None  # the function, where the text names one
    container: Any = None  # what an item of is updated, likewise


def is_printing() -> bool:
    """Return whether what the user's line makes of a value is shown and no more: by print, a logger or a warning."""
    if _showing.get():
        return True
    frame = _user_frame()
    if frame is None or frame.f_globals.get("__name__") in _SHOWING:
        return frame is not None
    code, at = frame.f_code, frame.f_lasti // 2
    places = list(code.co_positions())
    here = _span(places[at])
    for k in range(len(places)):
        if opcode.opname[code.co_code[2 * k]].startswith("CALL"):
            span = _span(places[k])
            around = k == at or (here and span and span[0] <= here[0] and here[1] <= span[1])
            if around and _shows(code, 2 * k, frame):
                return True
    return False


def is_printing_number() -> bool:
    """Return whether the number that is requested is for ``"%f" % x``, text that is shown and no more."""
    at = step()
    return _showing.get() or (at.kind == "operator" and at.operator == "%" and is_printing())


_SHOWING = ("logging", "warnings", "_warnings")
_showing: contextvars.ContextVar[bool] = contextvars.ContextVar("showing", default=False)


@contextlib.contextmanager
def showing() -> Iterator[None]:
    """Make texts that are shown and no more, for a line of the user's."""
    token = _showing.set(True)
    try:
        yield
    finally:
        _showing.reset(token)


def _span(position: tuple) -> tuple | None:
    first, last, start, end = position
    return None if None in position else ((first, start), (last, end))


def _shows(code: types.CodeType, at: int, frame: types.FrameType) -> bool:
    """Return whether a call prints, logs or warns."""
    text = _source(code, at)
    if not text:  # where the file cannot be read, as in an interactive session
        return "print" in code.co_names
    return is_showing(_call(text, frame).called)


def is_showing(called: Any) -> bool:
    """Return whether a function prints, logs or warns."""
    owner = getattr(called, "__self__", None)
    modules = {getattr(called, "__module__", None), type(owner).__module__}
    to_screen = owner is not None and (owner is sys.stdout or owner is sys.stderr)
    return called is print or to_screen or not modules.isdisjoint(_SHOWING)


_OPERATORS = {0: "+", 5: "*", 6: "%", 8: "**", 10: "-", 11: "/"}  # of the instruction BINARY_OP; 13 more for +=
_SUBSCRIPT = 26  # and x[i], from Python 3.14 on
_CALLS = ("CALL", "PRECALL")  # Python 3.11 does a call in the latter, once a function has run a few times


def step() -> Step:
    """Return the step of the user's own line that led here, read off the instruction that is running."""
    frame = _user_frame()
    if frame is None:
        return Step("")
    code, at = frame.f_code, frame.f_lasti
    while code.co_code[at] == 0:  # the cache behind an instruction that called a Python function
        at -= 2
    name, argument = opcode.opname[code.co_code[at]], code.co_code[at + 1]
    text = _source(code, at)
    if name.startswith("STORE_S"):  # STORE_SUBSCR, STORE_SLICE
        return Step("store", text)
    if name.startswith("BINARY_S") or (name == "BINARY_OP" and argument == _SUBSCRIPT):
        return Step("index", text)
    if name == "BINARY_OP":
        sign = _OPERATORS.get(argument % 13, "")
        left = text.partition(f"{sign}=")[0].strip()
        updates = 13 <= argument < _SUBSCRIPT and sign and left
        held = _container(left, frame) if updates else None
        return Step("update", left, sign, container=held) if updates else Step("operator", text, sign)
    return _call(text, frame) if name.startswith(_CALLS) else Step("")


def _source(code: types.CodeType, at: int) -> str:
    """Return the source text of one instruction, or what is left of it where the file cannot be read."""
    first, last, start, end = next(itertools.islice(code.co_positions(), at // 2, None))
    if first is None or last is None or start is None or end is None:
        return ""
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")


@contextlib.contextmanager
def without_syntax_warnings() -> Iterator[None]:
    """Leave out what Python warns of in a user's text, such as "\\m": it did so when the user's file was compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # what Python 3.11 makes of an unknown escape sequence
        yield


def _call(text: str, frame: types.FrameType) -> Step:
    try:
        with without_syntax_warnings():
            call = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return Step("")
    if not isinstance(call, ast.Call):
        return Step("")
    return Step("call", ast.unparse(call.func), called=_look_up(call.func, frame))


def _container(text: str, frame: types.FrameType) -> Any:
    """Return the object of which a text is an item, as far as it is known without a run."""
    try:
        with without_syntax_warnings():
            item = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return _look_up(item.value, frame) if isinstance(item, ast.Subscript) else None


def _look_up(node: ast.expr, frame: types.FrameType) -> Any:
    """Return the function that ``name``, ``module.name`` or ``self.table["name"]`` means in a frame.

    None for what would need a run.
    """
    if isinstance(node, ast.Attribute):
        owner = _look_up(node.value, frame)
        known = isinstance(owner, (types.ModuleType, io.TextIOBase)) or type(owner).__module__ == "logging"
        return (getattr if known else inspect.getattr_static)(owner, node.attr, None)
    if isinstance(node, ast.Subscript):
        owner, key = _look_up(node.value, frame), _look_up(node.slice, frame)
        try:
            return owner[key] if type(owner) in (dict, list, tuple) and type(key) in (str, int) else None
        except LookupError:
            return None
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.Name):
        return None
    scopes = (frame.f_locals, frame.f_globals, vars(builtins))
    return next((scope[node.id] for scope in scopes if node.id in scope), None)


# Libraries that make plain arrays of what they are given. NumPy asks its protocols first, with a few exceptions.
_LIBRARIES = {"scipy", "matplotlib", "pandas", "sklearn", "seaborn", "skimage"}


def library_function() -> str:
    """Return the public name of the function of another library that is running, or ``''`` for none.

    It is what the user called: the outermost of the library's frames that follow each other on the stack.
    """
    frame = sys._getframe(1)
    found = ""
    while frame is not None:
        parts = frame.f_globals.get("__name__", "").split(".")
        if parts[0] in _LIBRARIES and len(parts) > 1:
            found = _public_name(frame, parts) or found or ".".join(parts[:2])
        elif parts[0] == "numpy":
            found = _undispatch(frame, parts) or found
        elif found:
            break
        frame = frame.f_back
    return found


def _public_name(frame: Any, parts: list[str]) -> str:
    """Return the name under which a user called the function of a frame, or ``''`` for a wrapper."""
    public = ".".join(itertools.takewhile(lambda part: not part.startswith("_"), parts))
    name, owner = frame.f_code.co_name, frame.f_locals.get("self")
    if owner is not None:  # norm.logpdf is a method of the distribution norm; CubicSpline.__init__ is CubicSpline
        if name == "__call__" and (own := _name_in(public, owner)):  # an object that stands in for a function
            return f"{public}.{own}"
        # A distribution, or one with its parameters; an object of another library may not be there yet, in part.
        given = getattr(getattr(owner, "dist", owner), "name", None) if parts[0] == "scipy" else None
        if isinstance(given, str):
            return f"{public}.{given}.{name}"
        return "" if type(owner).__name__.startswith("_") else f"{public}.{type(owner).__name__}"
    inner = frame.f_locals.get("f")
    if name == "wrapper" and isinstance(inner, types.FunctionType):  # SciPy's decorator for stacks of arrays
        parts, name = inner.__module__.split("."), inner.__name__
        public = ".".join(itertools.takewhile(lambda part: not part.startswith("_"), parts))
    name = _name_of_wrapped(frame, public) or name
    return "" if name in ("wrapper", "wrapped", "inner") or name.startswith(("<", "_")) else f"{public}.{name}"


def _name_of_wrapped(frame: Any, module: str) -> str:
    """Return the name in a module of the function that a decorator's function runs, or ``''``."""
    for held in map(frame.f_locals.get, frame.f_code.co_freevars):
        if isinstance(held, types.FunctionType):
            public = getattr(sys.modules.get(module), held.__name__, None)
            while public is not None and public is not held:
                public = getattr(public, "__wrapped__", None)
            if public is held:
                return held.__name__
    return ""


def _name_in(module: str, thing: Any) -> str:
    return next((name for name, value in vars(sys.modules[module]).items() if value is thing), "")


def _undispatch(frame: Any, parts: list[str]) -> str:
    """Return the name of a NumPy function that asks no protocol, so that it cannot take traced arrays."""
    owner = type(frame.f_locals.get("self")).__name__
    if owner == "vectorize":
        return "numpy.vectorize"
    if parts[1:2] != ["polynomial"]:
        return ""
    name = frame.f_code.co_name
    return f"numpy.polynomial.{owner}" if owner != "NoneType" else "" if name[0] in "_<" else ".".join([*parts, name])
