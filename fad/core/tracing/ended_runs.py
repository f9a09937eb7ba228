"""How a run of the user's function ends for fad's own reasons: what it does then is right for some values alone.

What is raised is no Exception, which user code may catch. A bare ``except:`` catches it all the same, and the function
goes on along a path that it would never take. So the reason is kept, and raised again when the function is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from fad.core.tracing.trace import Trace


def end_run(trace: Trace, why: BaseException, cause: Exception | None = None) -> NoReturn:
    """End the run of a trace."""
    trace.ended = why
    try:
        raise why from cause
    finally:
        del why  # whose traceback holds this frame, and all that the function has made


def run_to_end(trace: Trace, run: Callable[[], Any]) -> Any:
    """Return what a function gives that runs under a trace; raise what ended it, also if the function caught it."""
    try:
        return run()
    finally:
        if trace.ended is not None:
            raise trace.ended


def go_on(trace: Trace) -> None:
    """Let the run of a trace go on that had ended: what ended it is tried another way."""
    trace.ended = None
