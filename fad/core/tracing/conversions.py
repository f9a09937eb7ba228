"""What to write instead, where a traced value was about to become plain numbers and lose its derivative.

The advice is for what the line of the user was doing: storing into a plain array, calling ``np.array`` or
``math.frexp``, indexing, or had called a library that makes plain arrays of its arguments.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from fad.errors import BatchedValueError, FadError, TracerConversionError
from fad.introspect.frames import Step, is_machinery, is_own, library_function, runs_masked_arrays, show_place, step

# Given the name of a library's function, whether fad has one of the same name, for advice.
OFFERED: list[Callable[[str], bool]] = []

_OF_SPARSE = re.compile(r"scipy\.sparse\.\w+_(array|matrix)")  # how the methods of its matrices are named
_SPARSE = re.compile(r"scipy\.sparse\.\w+")  # what makes one
# Functions of SciPy that fad has under another name.
_OTHER_NAMES = {
    f"scipy.optimize.{name}": "scipy.optimize.root" for name in ("broyden1", "broyden2", "anderson", "newton_krylov")
}
_OF_FLAT = "Error setting single item of array."  # what x.flat[i] = v raises, whatever was raised before
_OF_NDITER = "Iterator operand is flagged as writeable, but is an object which cannot be written back to via "
_OF_NDITER += "WRITEBACKIFCOPY"  # and np.nditer(x), whatever its flags
_COVERING = ("setting an array element with a sequence.", _OF_FLAT, _OF_NDITER)
# What Cython and Numba say of a traced value.
_OF_COMPILED = re.compile(
    r"(got|not) '?Tracer'?$|got Tracer\)|^Cannot convert Tracer|^No matching signature found$|^can't unbox array from|"
    r"^bad argument type for built-in operation$|^descriptor '\w+' .*'Tracer'"
)
_OF_METHOD = re.compile(r"^descriptor '(\w+)' (?:for|requires a) '([\w.]+)'")  # of a class, called with a traced value
_OF_MEMORY = "a bytes-like object is required"  # what NumPy says of a traced value where it was to use its memory
_OF_MASKED = (
    "A masked array holds plain numbers: keep the mask apart, and write np.where(mask, 0.0, x) for its values, "
    "np.mean(x, where=~mask) for what is computed of those that count"
)
_MAKE = "Make the array in the function, by NumPy's own functions (np.zeros(n), np.array(y)), and return it"
_BARE = "for the bare numbers, fad.stop_gradient(x)"


def to_array(shape: tuple) -> TracerConversionError:
    """Return the error of a tracer of this shape that was to become a plain array."""
    return _error_of_loss(f"a traced array of shape {shape}", "plain NumPy array", _BARE, _find_converter)


def to_number(kind: str) -> TracerConversionError:
    """Return the error of a tracer of this kind of trace that was to become a Python number."""
    bare = "for the bare number, float(fad.stop_gradient(x))"
    return _error_of_loss(f"a traced value inside {kind}", "plain Python number", bare, _find_caller)


def _error_of_loss(what: str, wanted: str, bare: str, find_caller: Callable) -> TracerConversionError:
    caller = library_function()
    if caller:
        return _to_library(caller, what)
    at = step()
    advice = _OF_MASKED if runs_masked_arrays() else _advice(at)
    error = TracerConversionError(f"{what} was about to become a {wanted}, without its derivative. {advice}; {bare}")
    error.caller = find_caller(at.called)
    return error


def to_number_of_batch(size: int) -> BatchedValueError:
    """Return the error of a batched value that was to become a Python number."""
    caller, at = library_function(), step()
    error = BatchedValueError(
        f"a Python number was requested of a batched value, which stands for {size} numbers inside vmap. "
        f"{_instead(caller) if caller else _advice(at)}; to see the numbers, print(x)"
    )
    error.caller = caller or _find_caller(at.called)
    return error


def written_into(what: str) -> TracerConversionError:
    """Return the error of a traced result that was to be written into an array (``out=``, ``y += x``)."""
    at = step()
    if at.kind == "update":
        name, sign = at.text, at.operator
        advice = _advise_on_store(at) if "[" in name else f"Or write {name} = {name} {sign} x for {name} {sign}= x"
    else:
        advice = "Or write y = f(x) instead of f(x, out=y), and x = x + 1 for np.add(x, 1, out=x)"
    return TracerConversionError(
        f"a traced result was to be written into {what}. Make the array in the function, by NumPy's own functions "
        f"(np.zeros(n), np.empty_like(x), x.copy()), or make it an argument. {advice}"
    )


def error_of_written_outside() -> TracerConversionError:
    """Return the error of a traced value that was to be written into an array from outside of the function."""
    return TracerConversionError(
        "a traced value was to be written into an array from outside of the function, which holds plain numbers and "
        f"would lose the derivative. {_advise_on_store(at) if (at := step()).kind in ('store', 'update') else _MAKE}"
    )


def own_error(error: Exception, refused: BaseException | None) -> BaseException | None:
    """Return fad's own error that a library covered with one of its own, or None.

    What is no Exception ends a run for fad's own reasons, as where batch elements take different paths, and counts too.
    `refused` is what was last refused to a library: C code may lose it altogether, or go on as if nothing had happened.
    """
    if isinstance(error, FadError):
        return None
    own: BaseException | None = error.__cause__
    while isinstance(own, Exception) and not isinstance(own, FadError):
        own = own.__cause__
    frames = _frames(error)
    caller = getattr(refused, "caller", "")
    if own is None and caller and caller.rpartition(".")[2] in [f.co_name for f in frames if not is_own(f.co_filename)]:
        own = refused  # the call that it was refused to is the one that failed, and not fad's of that name
    if own is None and str(error) in (_OF_FLAT, _OF_NDITER):
        own = refused
    return own if own is not None and _by_library(error, frames) else None


def is_of_compiled_code(error: Exception) -> bool:
    """Return whether an error is one of those that Cython and Numba raise where they are given a traced value."""
    return type(error) is TypeError and _OF_COMPILED.search(str(error)) is not None


def of_compiled_code(error: Exception) -> TracerConversionError | None:
    """Return the error of compiled code that was given a traced value, if its own is one of those that Cython's raise.

    Numba's raise some, too. It says what C code met, and not what a program is to write.
    """
    if not is_of_compiled_code(error):
        return None
    at, place, last = error.__traceback__, None, ""
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        last = last if is_own(file) else file
        place = place if is_own(file) or not os.path.isabs(file) else (file, at.tb_lineno)  # not one of Cython's
        at = at.tb_next
    by_numpy = os.path.isabs(last) and not is_machinery(last)  # the user's code called it, and no Cython did
    if by_numpy and str(error).startswith(_OF_MEMORY):
        return TracerConversionError(
            f"an array was to be made of the memory of a traced one ({show_place(place)}), without its derivative. "
            "Write x.reshape(shape) for np.ndarray(shape, dtype, x); an object of a class derived from np.ndarray "
            f"holds plain numbers, so make it of what the transform returns; {_BARE}"
        )
    method = _OF_METHOD.match(str(error))
    if method:
        name, of = method.groups()
        return TracerConversionError(
            f"{of}.{name}(x), the method of a class, takes plain values, and was given a traced one "
            f"({show_place(place)}). Write x.{name}(), the method of the value; {_BARE}"
        )
    numba = "; of a function that Numba compiles, call the Python function, f.py_func" if "numba" in sys.modules else ""
    return TracerConversionError(
        f"compiled code takes plain values, and was given a traced one: {error} ({show_place(place)}). Write it with "
        "NumPy's own functions, or give it its derivatives with fad.custom_vjp or fad.custom_jvp around the "
        f"call{numba}; {_BARE}"
    )


def _frames(error: Exception) -> list[CodeType]:
    """Return what was running when an error was raised, the outermost first."""
    found, at = [], error.__traceback__
    while at is not None:
        found.append(at.tb_frame.f_code)
        at = at.tb_next
    return found


def _by_library(error: Exception, frames: list[CodeType]) -> bool:
    if isinstance(error, SystemError) or str(error) in _COVERING:
        return True
    return bool(frames) and is_machinery(frames[-1].co_filename)


_SAME = {"asarray", "asanyarray", "ascontiguousarray", "asfortranarray"}  # give an array back as it is


# --- advice ------------------------------------------------------------------------------------------------------


def _to_library(name: str, what: str) -> TracerConversionError:
    error = TracerConversionError(
        f"{name} makes plain arrays of its arguments, which would lose the derivative of {what}. "
        f"{_instead(name)}; {_BARE}"
    )
    error.caller = name
    return error


def _instead(name: str) -> str:
    """Return what to write instead of a library's function that makes plain arrays of its arguments."""
    if _OF_SPARSE.fullmatch(name) or (_SPARSE.fullmatch(name) and not is_offered(name)):
        return (
            "a @ x, s * a and x @ a are differentiated; other operations take fad.scipy.sparse.from_scipy(a), or "
            "a matrix of traced numbers made by fad.scipy.sparse.coo_array, csr_array, csc_array or diags"
        )
    if is_offered(name):
        return f"Use fad.{name} instead"
    other = _OTHER_NAMES.get(name, "")
    if is_offered(other):
        return f"Use fad.{other} instead"
    if name.partition(".")[0] not in ("numpy", "scipy"):
        return f"Look at the numbers with {name}(fad.stop_gradient(x)), or return x and look at it then"
    return (
        f"fad has no {name}: write it with NumPy's own functions, or give it its derivatives with fad.custom_vjp or "
        "fad.custom_jvp around the call"
    )


def is_offered(name: str) -> bool:
    """Return whether fad has a function of this full name, ``scipy.linalg.expm``."""
    return any(has(name) for has in OFFERED)


def _advice(at: Step) -> str:
    if at.kind in ("store", "update"):
        return _advise_on_store(at)
    if at.kind == "index" and (joined := re.search(r"\b[rc]_\[", at.text)):
        return f"Write fad.numpy.{joined[0]}...] for {at.text}, or np.concatenate and np.column_stack"
    if at.kind == "index":
        return f"Write fad.numpy.take(a, x, axis=0) for a[x], the index of a plain array: {at.text}"
    if at.kind == "operator" and at.operator == "%":
        return 'To print it, write f"{x:.3f}" for "%.3f" % x'
    if at.kind == "call":
        return _advise_on_call(at)
    return (
        "Use x itself and NumPy's functions: np.frexp for math.frexp, fad.numpy.array([x, y]) or np.stack([x, y]) for "
        "np.array([x, y]), a @ x for a.dot(x), and out = fad.numpy.at(out)[i].set(x) for out[i] = x"
    )


def _advise_on_store(at: Step) -> str:
    text = at.text or "y[i]"  # where there is no source
    name, index = _split_item(text)
    of_field = index[:1] in ("'", '"')
    own = "[" not in text or of_field or at.container is not None  # an array itself, which a dictionary may hold
    if at.kind == "update" and own and not isinstance(at.container, np.ndarray):
        return (
            f"Make the array in the function, by the NumPy that its module imports ({text} = np.array({text})), "
            f"or write {text} = {text} {at.operator} x for {text} {at.operator}= x"
        )
    if of_field:
        return (
            "Make the structured array in the function, by the NumPy that its module imports, or copy it there, "
            f"{name} = {name}.copy(); or keep an array for each field"
        )
    method = {"+": "add", "*": "multiply"}.get(at.operator, "set")
    return (
        f"Make the array in the function, by the NumPy that its module imports ({name} = np.array({name})), "
        f"or write {name} = fad.numpy.at({name})[{index}].{method}(x) for {text} {at.operator}= x, "
        "or collect the parts in a list and np.stack or np.concatenate them"
    )


def _split_item(text: str) -> tuple[str, str]:
    """Return the array and the index of what a line stores into, ``rows[k]`` or ``table["rows"][k]``."""
    try:
        item = ast.parse(text, mode="eval").body
    except SyntaxError:  # the file has changed
        return text, "..."
    return (ast.unparse(item.value), ast.unparse(item.slice)) if isinstance(item, ast.Subscript) else (text, "...")


def _advise_on_call(at: Step) -> str:
    name = at.text.rpartition(".")[2]
    called = at.called
    if in_math := _name_in_math(called):
        own = called.__name__
        advice = f"Write np.{own}(x)" if hasattr(np, own) else "Use NumPy's functions"
        return f"{in_math} takes plain numbers. {advice}"
    if name == "type" or (isinstance(called, type) and issubclass(called, np.inexact)):
        return f"Write x.astype({at.text.removesuffix('.type')}) for {at.text}(x)"
    if called is np.array:
        return f"Write fad.numpy.array([x, y]) for {at.text}([x, y]), or np.stack([x, y]) where all have one shape"
    if getattr(np, name, None) is called is not None and is_offered(f"numpy.{name}"):
        listed = f"fad.numpy.{name}(...) for {at.text}(...), or np.stack([x, y]) for a list in it"
        return f"Write x itself, or {listed}" if name in _SAME else f"Write {listed}"
    if name == "as_integer_ratio":
        return "Compute with x itself, for a Fraction holds a plain number"
    if name == "as_strided":
        windows = "np.lib.stride_tricks.sliding_window_view(x, n)[::step]"
        return f"Write {windows} for windows by {at.text}(...), or x[places] with an array of integers for any others"
    if name == "dot":
        return f"Write a @ x for {at.text}(x), a method of a plain array"
    if _draws(called, name):
        return _advise_on_draw(at.text, name)
    return f"Use x itself for {at.text}(...), and NumPy's functions"


# Standard draws, of which parameters make the others.
_OF_STANDARD = {
    "normal": "loc + scale * {0}(size=x.shape)", "laplace": "loc + scale * {0}(size=x.shape)",
    "logistic": "loc + scale * {0}(size=x.shape)", "gumbel": "loc + scale * {0}(size=x.shape)",
    "uniform": "low + (high - low) * {0}(size=x.shape)", "exponential": "scale * {0}(size=x.shape)",
    "rayleigh": "scale * {0}(size=x.shape)", "lognormal": "np.exp(mean + sigma * {1}normal(size=x.shape))",
    "multivariate_normal": "mean + np.linalg.cholesky(cov) @ {1}normal(size=mean.shape)",
}  # fmt: skip


# Draws that have derivatives in their parameters, or in what they choose from, if they are written in another way.
_REWRITTEN = {
    "gamma": "scale * fad.random.gamma(key, shape)", "standard_gamma": "fad.random.gamma(key, shape)",
    "beta": "fad.random.beta(key, a, b)", "dirichlet": "fad.random.dirichlet(key, alpha)",
    "standard_t": "fad.random.t(key, df)", "choice": "x[{0}(len(x), size, p=fad.stop_gradient(p))]",
}  # fmt: skip


def _draws(called: Any, name: str) -> bool:
    """Return whether something draws random numbers of NumPy's, or has the name of what does, if it is not known."""
    owner = str(getattr(called, "__qualname__", "")).partition(".")[0]
    return owner in ("Generator", "RandomState") or (called is None and hasattr(np.random.RandomState, name))


def _advise_on_draw(text: str, name: str) -> str:
    standard = _OF_STANDARD.get(name, _REWRITTEN.get(name))
    if standard is None:
        return f"NumPy draws plain numbers, without a derivative: write {text}(fad.stop_gradient(x), ...)"
    return f"Write {standard.format(text, text.removesuffix(name))}, for NumPy draws plain numbers"


def find_caller_of_number() -> str:
    """Return the full name of what requests a Python number now, as `_find_caller` does."""
    return _find_caller(step().called)


def _find_caller(called: Any) -> str:
    """Return the full name of what requested a number: float, complex, a function of Python's `math`; '' for any other.

    Without its own name where the line does not tell what it calls, ``pick(k)(x)``: it may be one of those of `math`.
    """
    while type(called) is functools.partial:
        called = called.func
    return _find_converter(called) or ("" if callable(called) else "math.")


def _find_converter(called: Any) -> str:
    """Return the full name of a class of numbers or a function of `math` or `cmath`, or '' for anything else."""
    if isinstance(called, type) and (issubclass(called, np.inexact) or called in (float, complex)):
        return called.__name__ if called.__module__ == "builtins" else f"{called.__module__}.{called.__name__}"
    return _name_in_math(called)


def _name_in_math(called: Any) -> str:
    """Return the full name of a function of Python's `math`, or '' for anything else."""
    module = getattr(called, "__module__", None)
    return f"{module}.{called.__name__}" if module in ("math", "cmath") else ""


def is_wider(out: Any, args: tuple) -> bool:
    """Return whether an array for a result has more digits than the real or complex operand."""
    dtype = getattr(args[0], "dtype", None) if args else None
    if dtype is None or dtype.kind not in "fc" or dtype.kind != out.dtype.kind:
        return False
    return dtype.itemsize < out.dtype.itemsize


def as_computed(ufunc: np.ufunc, x: Any, out: np.dtype) -> Any:
    """Return an operand in the dtype in which NumPy goes along it, for an output of some dtype."""
    dtype = ufunc.resolve_dtypes((out, x.dtype, None), casting="unsafe", reduction=True)[1]
    return x.astype(dtype) if dtype.kind in "fc" and dtype != x.dtype else x


def same_size(out: Any, y: Any, name: str) -> None:
    """Raise as NumPy does if an array for a result that is not broadcast has another shape than the result."""
    if out.shape != np.shape(y):
        raise ValueError(f"output parameter of {name} has the wrong shape: {out.shape} for a result of {np.shape(y)}")
