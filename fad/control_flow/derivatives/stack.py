"""A stack that grows: what the steps of a loop keep for the loop that runs backward, where their number has no bound.

A stack is a value of the program, a part of the state of both loops. ``stack_push(stack, *values)`` returns the stack
with the values on top; ``stack_pop(stack)`` returns the stack below the top, and the values. Both leave the stack that
they are given as it was, so two loops may run backward over one. The empty stack is the number zero. In NumPy a stack
is a tuple of the stack below and the values; in native code it is the number of records in memory that grows.

They are made when all derivatives have been taken (`fad.compile.passes.expand_pullbacks`), and have no rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import SCALAR, Type

EMPTY = np.int64(0)
STACK = Type((), np.dtype(np.int64), SCALAR)


def _push(stack: Any, *values: Any, number: int) -> tuple:
    return (stack, *[x.copy() if hasattr(x, "copy") else x for x in values])  # the next step fills buffers again


def _pop(stack: Any, *, number: int) -> tuple:
    return stack


# `number` says which push and pop are of one stack.
push_p = Primitive("stack_push", _push, flat=True, archetype="bare")
pop_p = Primitive("stack_pop", _pop, flat=True, multi=True, archetype="bare")
