"""Which operation a program was running when it failed: read off the traceback, so that other calls pay nothing.

A program is a Python text. Its namespace says under `EQUATIONS` which equation each of its lines runs.
"""

from __future__ import annotations

from types import TracebackType

from fad.core.programs.graph import Equation

FILE = "<fad.jit>"  # of the texts of programs
EQUATIONS = "equations"


def running(traceback: TracebackType | None) -> Equation | None:
    """Return the operation that failed: the innermost, where a program runs another."""
    found = None
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename == FILE:
            found = frame.f_globals[EQUATIONS].get(traceback.tb_lineno, found)
        traceback = traceback.tb_next
    return found
