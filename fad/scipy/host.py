"""Calls of SciPy's solvers: opaque to every transform, with rules of their own."""

from __future__ import annotations

from typing import Any

from fad.core.primitive import Primitive
from fad.core.tracer import youngest
from fad.transforms.custom import Call
from fad.transforms.record import RecordTrace


class HostCall(Call):
    """A call of a library that wants plain arrays. ``jit`` records it as one operation, run anew at every replay."""

    __slots__ = ()
    opaque = True

    def __call__(self, *xs: Any) -> list:
        trace = youngest(xs)
        if type(trace) is not RecordTrace:
            return super().__call__(*xs)
        operation = Primitive(self.name, lambda *xs: tuple(self.fun(*xs)), multi=True)
        return list(trace.process(operation, xs, {}))
