"""The linear map of a loop or a branch that has run: tangents are pushed through it later, any number of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.control_flow.bodies.subgraph import Unrecordable
from fad.core.primitives.cotangent import densify
from fad.core.primitives.limits import Crowded
from fad.core.tracing.trace import Trace
from fad.transforms.arguments.check import as_value, is_inexact
from fad.transforms.jvp import jvp


def make_pusher(push: Callable, run: Callable, values: list) -> Callable:
    """Return `push`, a function of tangents of the values, which differentiates `run` where it cannot record a body.

    A derivative may ask a question about values of a step, as that of `np.linalg.eig` does, or find eigenvalues
    repeated that a body takes to be apart. `run` takes the values, and leaves
    nothing of the loop or branch in a recording.
    """

    def push_or_run(tangents: list) -> list:
        mark = Trace().birth
        try:
            return push(tangents)
        except Unrecordable as why:
            if why.trace.birth < mark:
                raise  # it is an older body that cannot be recorded
        except Crowded:
            pass
        moved = {k: densify(t) for k, t in enumerate(tangents) if t is not None}

        def run_moved(*some: Any) -> list:
            given = dict(zip(moved, some, strict=True))
            return list(run([given.get(k, x) for k, x in enumerate(values)]))

        ys, found = jvp(run_moved, [as_value(values[k]) for k in moved], list(moved.values()))
        return [t if is_inexact(y) else None for y, t in zip(ys, found, strict=True)]

    return push_or_run
