"""SciPy's function for plain arguments, and fad's for traced ones: what stands under SciPy's names chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.core.handles.makers import wrap_made
from fad.core.runs.stand_ins import stand_for
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import RUNS
from fad.errors import MissingRuleError, TracerConversionError
from fad.scipy.holders import HOLDERS, take_plain
from fad.scipy.sparse.array import SparseArray, SparseMatrix

_TRACED = (Tracer, SparseArray, SparseMatrix)



def choose(original: Callable, own: Callable, always: bool = False) -> Callable:
    """Return a function that is fad's for traced values and for functions, which may hold some, and else SciPy's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        asked_later = always
        if any(map(callable, (*args, *kwargs.values()))):
            args, kwargs = tuple(map(_stand_for, args)), {name: _stand_for(value) for name, value in kwargs.items()}
            asked_later = True
        if not is_traced((args, kwargs)):
            if RUNS.depth and asked_later:
                return prefer(own, original, *args, **kwargs)
            given = {name: _take_own(value) for name, value in kwargs.items()}
            return _stand_for(original(*map(_take_own, args), **given))
        given, options = take_plain(args), take_plain(kwargs)
        if is_traced((given, options)):
            return own(*args, **kwargs)
        return _wrap(call(*given, **options))

    call.__name__, call.__doc__ = original.__name__, own.__doc__
    return call


def _stand_for(y: Any) -> Any:
    """Return what stands for an object of SciPy's while a transform runs, such as a curve's derivative, or it."""
    return stand_for(y) if RUNS.depth else y


def is_traced(x: Any) -> bool:
    """Return whether arguments hold traced values, or a sparse matrix of fad's."""
    if type(x) in (list, tuple, dict):
        return any(map(is_traced, x.values() if type(x) is dict else x))
    return type(x) in _TRACED or (type(x) in HOLDERS and x.is_written())


def _take_own(x: Any) -> Any:
    """Return SciPy's object in the place of what stands for it: its functions may hand that to C code."""
    if type(x) in (list, tuple):
        return type(x)(map(_take_own, x)) if any(type(part) in (list, tuple, *HOLDERS) for part in x) else x
    return x.stands_for if type(x) in HOLDERS else x


def _wrap(y: Any) -> Any:
    """Return what SciPy made of such arrays behind handles, as NumPy's functions do, for the program may write it."""
    return tuple(map(wrap_made, y)) if type(y) is tuple else wrap_made(y)


def prefer(own: Callable, original: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call fad's function, or SciPy's where an option is not fad's."""
    try:
        return own(*args, **kwargs)
    except (MissingRuleError, NotImplementedError) as refused:
        try:
            return original(*args, **kwargs)
        except TracerConversionError:  # traced values are for fad's alone, which has said what to write
            raise refused from None
