"""A jitted call under reverse mode: one run of the function is recorded together with its pullback.

The recording is of the function under ``vjp`` and of a sweep, whose cotangents are further inputs. Two programs are
made of it: one computes what the function returns, the other the cotangents of its arguments. So the function itself
runs once, whatever it counts, appends or fills besides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.programs.graph import Graph, has_effects
from fad.jitting.call import JittedCall, describe, own
from fad.staging.outer_state import OuterState
from fad.staging.record import Recording, record, recorder
from fad.staging.record_trace import OuterTracer
from fad.transforms.arguments.check import is_inexact
from fad.transforms.arguments.mutation import Earlier
from fad.transforms.reverse.slopes import are_finite
from fad.transforms.vjp import deferring_looks, vjp


class ReverseCall(JittedCall):
    """One call of a function of flat leaves, some of which a reverse-mode transform traces."""

    __slots__ = ("given", "mine", "run_flat")

    def __init__(self, jitted: Any, flat: Callable, given: list, values: list, mine: list):
        super().__init__(jitted, flat, None, values, [True] * len(values), values, ())
        self.given = given
        self.mine = mine

    def answer(self) -> Any:
        """Return what the function returns: plain values if a program has a path for the call, else traced ones."""
        return self.run((None, tuple([tuple(describe(x)) for x in self.xs]), ()), None)

    def eager(self) -> Any:
        """Run the function without jit on the traced values, which is all that the derivative needs then."""
        return self.fun(*map(own, self.given))

    def make_recording(self, outer: OuterState, before: Earlier) -> Recording:
        sweep = _Sweep(self.fun, self.mine)
        in_tree = tree.structure((tuple(self.xs), {}))
        whole = record(sweep, in_tree, self.leaves, self.traced, outer=outer, before=before)
        out = whole.result[0]
        n = len(tree.leaves(out))
        graph = whole.graph
        forward = graph.replace(equations=graph.equations[: sweep.start], outputs=graph.outputs[:n])
        recording = Recording(forward, tree.structure(out), out, whole.outer, whole.by_layout, whole.remembers)
        if sweep.is_complete:
            _freeze(graph.constants.values(), sweep.copies)
            recording.pull = RecordedPull(type(self.jitted)(_pull(graph, sweep, n), None, None, None), sweep.unsure)
        elif whole.outer.changed:  # the function cannot run for its pullback once more
            raise OuterTracer
        return recording


class RecordedPull:
    """The program of a pullback; one that is `unsure` may not know of all that is zero by selection."""

    __slots__ = ("program", "unsure")

    def __init__(self, program: Callable, unsure: bool):
        self.program = program
        self.unsure = unsure

    def __call__(self, values: list, cts: list, again: Callable) -> list:
        """Return the cotangents of the arguments, from ``again(values, cts)`` where these are not finite."""
        found = self.program(values, cts)
        return again(values, cts) if self.unsure and not are_finite(found) else found


class _Sweep:
    """The function that is recorded: it returns the results of another one, and the cotangents of its arguments."""

    def __init__(self, fun: Callable, mine: list):
        self.fun = fun
        self.mine = mine
        self.start = 0  # the first equation of the sweep
        self.cts: list[int] = []  # the numbers of the results' cotangents
        self.is_complete = False  # whether a sweep was recorded that is right for all cotangents
        self.unsure = False  # whether it may leave out something that is zero by selection
        self.copies: set[int] = set()  # the ids of constants that nobody else has

    def __call__(self, *values: Any) -> tuple:
        out, pullback = vjp(fill(self.fun, values, self.mine), *choose(values, self.mine))
        trace: Any = recorder.get()
        self.start = len(trace.equations)
        cotangents: Any = ()
        if not any(map(has_effects, trace.equations)):  # a sweep would do theirs as well, and no other rank might
            ys, structure = tree.flatten(out)
            given = [trace.new(_one_like(y)) for y in ys]
            self.cts = [ct.info for ct in given]
            cts = [ct if is_inexact(y) else y for ct, y in zip(given, ys, strict=True)]
            try:
                # the cotangents are none that a caller has given
                with np.errstate(all="ignore"), deferring_looks() as looks:
                    cotangents = pullback(tree.unflatten(structure, cts))
                self.unsure = looks.wanted
                self.is_complete = not any(eq.is_guard for eq in trace.equations[self.start :])
            except Exception:  # the pullback's own to raise: it may never be called
                pass
        self.copies = {id(copy) for copy, _ in trace.snapshots.kept.values()}
        return out, cotangents


def fill(flat: Callable, values: Any, mine: list) -> Callable:
    """Return a function of those arguments that are traced; the others are fixed."""

    def some(*xs):
        it = iter(xs)
        return flat(*[next(it) if m else v for v, m in zip(values, mine, strict=True)])

    return some


def choose(values: Any, mine: list) -> tuple:
    return tuple(v for v, m in zip(values, mine, strict=True) if m)


def _one_like(y: Any) -> Any:
    """Return the cotangent that a sweep is recorded with."""
    if not is_inexact(y):
        return 0.0  # it is not read; an int of Python's has no dtype
    one = np.ones(y.shape, y.dtype)
    return one if one.ndim else one[()]


def _pull(graph: Graph, sweep: _Sweep, n: int) -> Callable:
    """Return a function that runs the recorded sweep, given the values of the arguments and the results' cotangents.

    The guards of the forward pass hold, since its path was taken.
    """
    start = sweep.start
    forward = [eq for eq in graph.equations[:start] if not eq.is_guard]
    program = graph.replace(
        inputs=[*graph.inputs, *sweep.cts], equations=[*forward, *graph.equations[start:]], outputs=graph.outputs[n:]
    )

    def pull(values, cts):
        return program(*values, *cts)

    return pull


def _freeze(constants: Any, copies: set[int]) -> None:
    """Make the copies among constants read-only, so that a program which is made of this one need not watch them."""
    for c in constants:
        if id(c) in copies:
            c.flags.writeable = False
