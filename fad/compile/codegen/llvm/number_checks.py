"""What is asked of single numbers so that Python would compute with them as native code does, and not raise."""

from __future__ import annotations

import math
from collections.abc import Callable

from fad.compile.codegen.llvm.builder import Emitter, constant


def _is_nonzero(e: Emitter, x: str, t: str) -> str:
    return e.compare("!=", x, constant(0.0, t), t)


def _is_natural(e: Emitter, x: str, t: str) -> str:
    return e.compare(">=", x, constant(0.0, t), t)


def _is_below(limit: float) -> Callable:
    def emit(e: Emitter, x: str, t: str) -> str:
        return e.compare("<", e.call("fabs", x, t=t), constant(limit, t), t)

    return emit


# The `how` of a check -> how to emit whether it holds.
OF_ONE_NUMBER: dict[str, Callable[[Emitter, str, str], str]] = {
    "nonzero": _is_nonzero, "natural": _is_natural, "finite": _is_below(math.inf), "fits": _is_below(2.0**63),
}  # fmt: skip
