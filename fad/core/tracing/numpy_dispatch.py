"""NumPy's callables and what answers for each of them; what is said where nothing does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.errors import FadError, MissingRuleError
from fad.introspect.frames import user_line

# NumPy's callables and what answers for each: filled by the operation modules through `fad.core.primitives.primitive`.
UFUNCS: dict[Any, Any] = {}
UFUNC_METHODS: dict[tuple[Any, str], Callable] = {}
FUNCTIONS: dict[Any, Callable] = {}
# Functions refused on purpose, and why.
REFUSED: dict[Any, str] = {}
# Functions that bring in rules for a library's callables the first time one of them meets a tracer: given the callable,
# each may fill the tables above. `fad/__init__.py` puts them here, so that importing fad imports no such library.
LOADERS: list[Callable[[Any], None]] = []
# What gives the advice for a function without a rule; set by `fad.ops.refused`, the last module, which knows all names.
_suggest: list[Callable[[str], str]] = []


def load_rules(ufunc: np.ufunc) -> Callable | None:
    """Let the loaders bring in the rules of the library that a ufunc comes from; return what answers for it then."""
    for load in LOADERS:
        load(ufunc)
    return UFUNCS.get(ufunc)


def add_context(error: Exception, func: Callable, args: Any) -> None:
    """Note the operation, the shapes and the user's line on an error that NumPy would raise too."""
    if isinstance(error, FadError) or hasattr(error, "__notes__"):  # those say it themselves, and once is enough
        return
    shapes = ", ".join(str(x.shape) for x in args if hasattr(x, "shape"))
    error.add_note(f"  in {full_name(func)}" + (f" of shape {shapes}" if shapes else "") + f", at {user_line()}")


def full_name(func: Callable) -> str:
    """Return a function's name below numpy: ``sum``, ``linalg.norm``."""
    name = getattr(func, "__name__", repr(func))
    module = getattr(func, "__module__", None) or ""
    return f"{module[6:]}.{name}" if module.startswith("numpy.") else name


def raise_missing(func: Any, name: str) -> Any:
    reason = REFUSED.get(func)
    if reason:
        raise MissingRuleError(f"numpy.{name} cannot take a traced value: {reason}")
    if name.endswith(" (vectorized)"):  # so NumPy names them
        own = name.removesuffix(" (vectorized)").replace("<lambda>", "f")
        raise MissingRuleError(
            f"np.frompyfunc({own}, ...) was called on a traced value: it makes an array of Python objects, which have "
            f"no derivative. Write np.vectorize({own})(x), which is differentiated"
        )
    advice = _suggest[0](name) if _suggest else ""
    raise MissingRuleError(
        f"numpy.{name} was called on a traced value, and fad has no rule for it. {advice}"
        "Give it one with fad.custom_jvp or fad.custom_vjp, or keep it out of the derivative with fad.stop_gradient"
    )
