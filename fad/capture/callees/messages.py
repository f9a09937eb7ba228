"""Warnings and messages of loggers in the steps of a captured loop: shown while the program is recorded, as prints are.

Where they come from is the line of the user's that gave them, which the step that shows them no longer knows.
"""

from __future__ import annotations

import itertools
import logging
import types
import warnings
from collections.abc import Callable
from typing import Any

from fad.capture.body.context import refuse
from fad.capture.callees.printing import StepText, show_in_step
from fad.capture.rewriting.expressions import is_made
from fad.introspect.frames import user_frames

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


def warn_in_step(message: Any, category: Any = None, stacklevel: int = 1, **options: Any) -> None:
    """Warn in each step of the loop that is captured."""
    if any(x is not None for x in options.values()) or not isinstance(message, (str, StepText, Warning)):
        refuse("it warns with options")
    frame = _find_frame(max(stacklevel, 1))
    known, module = frame.f_globals.setdefault("__warningregistry__", {}), frame.f_globals.get("__name__", "<string>")
    place = frame.f_code.co_filename, frame.f_lineno, module, known

    def warn(text: Any = message) -> None:
        warnings.warn_explicit(text, UserWarning if category is None else category, *place)

    show_in_step("warns", warn, () if isinstance(message, Warning) else (message,))


def log_in_step(f: types.MethodType) -> Callable:
    """Return a method of a logger as the steps of a captured loop are to call it."""
    logger: logging.Logger = f.__self__  # type: ignore[assignment]
    name = f.__name__
    if name in _LEVELS:
        return lambda message, *args, **options: _log(logger, _LEVELS[name], message, args, options)
    if name == "log":
        return lambda level, message, *args, **options: _log(logger, level, message, args, options)
    return f if name in ("isEnabledFor", "getEffectiveLevel") else refuse(f"it calls Logger.{name}")


def _log(logger: logging.Logger, level: int, message: Any, args: tuple, options: dict) -> None:
    if not logger.isEnabledFor(level):
        return  # nothing that a step may do changes that
    if options:
        refuse("it logs with options")
    frames = list(itertools.islice(user_frames(), 8))
    name = next((frame.f_code.co_name for frame in frames if not is_made(frame.f_code)), frames[0].f_code.co_name)
    place = frames[0].f_code.co_filename, frames[0].f_lineno

    def show(text: Any, *values: Any) -> None:
        logger.handle(logger.makeRecord(logger.name, level, *place, text, values, None, name))

    show_in_step("logs", show, (message, *args))


def _by_root(name: str) -> Callable:
    def log(*args: Any, **options: Any) -> None:
        if not logging.root.handlers:
            logging.basicConfig()
        log_in_step(getattr(logging.root, name))(*args, **options)

    return log


def _find_frame(level: int) -> types.FrameType:
    frames = list(itertools.islice(user_frames(), level))
    return frames[-1]


SHOWN_IN_STEP: dict[Callable, Callable] = {
    warnings.warn: warn_in_step,
    **{getattr(logging, name): _by_root(name) for name in (*_LEVELS, "log")},
}
