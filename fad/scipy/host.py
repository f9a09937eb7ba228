"""Calls of SciPy's solvers: opaque to every transform, with rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.handles import buffers
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import Tracer, youngest
from fad.core.tracing.values import stop_gradient
from fad.errors import CustomRuleError
from fad.staging.record_trace import RecordTrace
from fad.transforms.arguments.check import is_inexact
from fad.transforms.custom_rules import Call
from fad.transforms.jvp import jvp
from fad.transforms.vjp import vjp


class HostCall(Call):
    """A call of a library that wants plain arrays. ``jit`` records it as one operation, run again at every replay."""

    __slots__ = ()
    opaque = True

    def __call__(self, *xs: Any) -> list:
        trace = youngest(xs)
        if type(trace) is not RecordTrace:
            return super().__call__(*xs)
        operation = Primitive(self.name, lambda *xs: tuple(self.fun(*xs)), multi=True)
        return list(trace.process(operation, xs, {}))


def host_function(name: str, fun: Callable) -> HostCall:
    """Return ``fun(*xs) -> ys``, of flat lists, as a host call whose derivatives are host calls as well.

    `fun` need not be recordable or batchable, but it must be differentiable: each rule is a host call of the derivative
    of `fun`, and so on for every order. A ``vmap`` runs it for one batch element after the other.
    """

    def moving(xs: Any, values: Any) -> list:
        return [v for x, v in zip(xs, values, strict=True) if is_inexact(x)]

    def replace(xs: Any, values: Any) -> list:
        new = iter(values)
        return [next(new) if is_inexact(x) else x for x in xs]

    def push(xs: list, ts: list) -> tuple[list, list]:
        n = len(xs)

        def both(*operands: Any) -> list:
            xs, ts = operands[:n], operands[n:]
            ys, tys = jvp(lambda *m: fun(*replace(xs, m)), tuple(moving(xs, xs)), tuple(ts))
            return [*ys, *tys]

        out = host_function(name, both)(*xs, *moving(xs, ts))
        return out[: len(out) // 2], out[len(out) // 2 :]

    def pull(xs: list, cts: list) -> list:
        n = len(xs)

        def back(*operands: Any) -> list:
            xs, cts = operands[:n], operands[n:]
            return list(vjp(lambda *m: fun(*replace(xs, m)), *moving(xs, xs))[1](list(cts)))

        found = iter(host_function(name, back)(*xs, *cts))
        return [next(found) if is_inexact(x) else None for x in xs]

    def batch(size: int, batched: list, xs: list) -> tuple[list, list]:
        ys = [call(*[x[i] if b else x for x, b in zip(xs, batched, strict=True)]) for i in range(size)]
        columns = [np.stack(column) for column in zip(*ys, strict=True)]
        return columns, [True] * len(columns)

    call: Any = HostCall(name, fun, push, lambda *xs: (call(*xs), list(xs)), pull, batch)
    return call


def needs_host_call(operands: Any) -> bool:
    """Whether ``jit`` or ``vmap`` hold the operands, beneath the derivatives that are being taken."""
    return any(type(buffers.plain(x)) is Tracer for x in tree.leaves(stop_gradient(operands)))


def plain(x: Any) -> Any:
    """Return what a solver may see of a function's result: the numbers, without derivatives."""
    return check_found(stop_gradient(x))


def check_found(x: Any) -> Any:
    """Return a result of a function that was given plain numbers for all traced values that fad found in it."""
    x = buffers.plain(x)
    if type(x) is Tracer:
        raise CustomRuleError(
            "a function given to a solver uses a traced value in a place where fad does not find it (an iterator, a "
            "set, an object of a C library). Pass it in args"
        )
    return x
