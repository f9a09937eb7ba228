"""Testing derivatives: what fad's own rules must pass, for users' functions and rules too."""

import importlib
from typing import Any

from fad.core.primitives.samples import Call, Sampler, call
from fad.testing.gradcheck import check_grads
from fad.testing.numerical import numerical_jvp
from fad.testing.programs import SMOOTH, Program
from fad.testing.suite import CLAUSES, contract

__all__ = ["CLAUSES", "SMOOTH", "Call", "Program", "Sampler", "call", "check_grads", "contract", "numerical_jvp"]


def __getattr__(name: str) -> Any:
    if name != "strategies":  # which needs hypothesis
        raise AttributeError(f"module 'fad.testing' has no attribute {name!r}")
    return importlib.import_module("fad.testing.strategies")


def __dir__() -> list[str]:
    return [*__all__, "strategies"]
