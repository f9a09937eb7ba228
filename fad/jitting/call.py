"""One call of a jitted function that the fast path did not answer: find its program, record it, replay it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import DEVICE_ARRAYS
from fad.capture.runtime import reporting
from fad.config import bytes_of, memory_limit, use
from fad.core.primitives.limits import Crowded, asking
from fad.core.programs.graph import GuardFailed
from fad.core.runs import effects
from fad.core.runs.journal import rewind, run_instead, with_journal
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import copy_layout, snapshot
from fad.errors import MemoryLimitError, PathLimitWarning
from fad.jitting.impurity import Hidden
from fad.jitting.programs import (
    MAX_PATHS,
    MAX_SIGNATURES,
    Path,
    Signature,
    again,
    check_pure,
    forget_unused,
    is_of_values,
    note_operation,
    raised_by_operation,
    strides_of,
    why_so_many,
)
from fad.staging.may_raise import Refused
from fad.staging.outer_state import OuterState
from fad.staging.record import Recording, record, recorder
from fad.staging.record_trace import OuterTracer
from fad.transforms.arguments.mutation import Earlier, overlaps
from fad.transforms.arguments.undo_writes import outside
from fad.transforms.outside.handles import closes_over_tracer


class JittedCall:
    """One call that the fast path did not answer."""

    __slots__ = ("jitted", "fun", "in_tree", "leaves", "traced", "xs", "donated", "written", "path")

    def __init__(self, jitted: Any, fun: Callable, in_tree: Any, leaves: list, traced: list, xs: list, donated: Any):
        self.jitted = jitted
        self.fun = fun
        self.in_tree = in_tree
        self.leaves = leaves
        self.traced = traced
        self.xs = xs
        self.donated = donated
        self.written = False  # whether a program may have written into donated arguments
        self.path: Path | None = None  # the one that answered; None if the function ran without jit

    def run(self, key: Any, quick: Any) -> Any:
        jitted = self.jitted
        signature = jitted._signatures.get(key)
        if signature is not None and signature.by_layout:
            signature.used = True
            key = (*key, *strides_of(self.xs))
            signature = jitted._signatures.get(key)
        if signature is None:
            return self.record(key, None)
        path: Path | None = signature.paths[0] if signature.paths else None
        expected: list | None = None
        last: Path | None = None  # the one that gave these answers
        while path is not None:
            if path.is_part():
                return self.eager()
            if path.depends and path.is_stale():
                with jitted._lock:
                    jitted._quick.clear()
                    stale = [p for p in signature.paths if p.is_stale()]
                    signature.paths = [p for p in signature.paths if p not in stale]
                    signature.full = False
                    signature.note_change()
                return self.record(key, None, arrays=[e.array for p in stale for e in p.outer.arrays])
            if path.program is None:
                with jitted._lock:
                    if path.program is None:
                        path.compile()
            if path.takes_over:
                self.leave_constants(path)
            try:
                self.written = path.takes_over
                out = path.run(self.xs)
            except GuardFailed as failed:  # nothing is taken over before the last guard
                self.written = False
                n = path.numbers[failed.position]
                expected = [*path.answers[:n], failed.found]
                last, path = path, signature.matching(path, n, failed.found)
                continue
            except Exception as error:
                note_operation(error)
                self.written = self.written and not raised_by_operation(error)
                if isinstance(error, Crowded) and not self.written:
                    return self.record_asking(key)
                if self.written or not is_of_values(error):
                    raise
                return again(error, run_instead, error, self.eager)
            self.path = path
            jitted._hits += 1
            signature.used = True
            signature.changes = 0
            self.promote(signature, path, quick)
            return out
        return self.record(key, expected, last)

    def leave_constants(self, path: Path) -> None:
        """Copy the donated arrays if one of them is a constant of the program, too, which would change as it runs."""
        given = [self.xs[k] for k in path.donated]
        if overlaps(given, [x for x, *_ in path.outer.arrays]):
            for k in path.donated:
                self.xs[k] = self.xs[k].copy()

    def promote(self, signature: Signature, path: Path, quick: Any) -> None:
        """Try this path first next time."""
        if signature.paths and signature.paths[0] is not path:
            with self.jitted._lock:
                if path in signature.paths:
                    signature.paths.remove(path)
                    signature.paths.insert(0, path)
        if quick is not None:
            self.jitted._quick[quick] = path

    def eager(self) -> Any:
        """Run the function without jit, on values of its own: what it writes into its arguments is not seen outside."""
        leaves = [own(x) if t else x for x, t in zip(self.leaves, self.traced, strict=True)]
        args, kwargs = tree.unflatten(self.in_tree, leaves)
        return self.fun(*args, **kwargs)

    def make_recording(self, outer: OuterState, before: Earlier) -> Recording:
        return record(self.fun, self.in_tree, self.leaves, self.traced, outer=outer, before=before)

    @with_journal
    def record(self, key: Any, expected: list | None, replayed: Path | None = None, arrays: Any = ()) -> Any:
        jitted = self.jitted
        signature = jitted._signatures.get(key)
        if signature is not None and (signature.leaves_unrecorded() if expected is not None else signature.full):
            return self.eager()
        if closes_over_tracer(jitted.fun):
            return self.eager()
        outer = self.look_outside(arrays)
        hidden = None if jitted._warned_random else Hidden(jitted.fun, outer.found)
        before = outside(jitted.fun, outer.found)
        try:
            with effects.compiling(), reporting() as loops, asking(jitted._asks):
                recording = self.make_recording(outer, before)
            path = Path(recording, self.xs, self.donated, loops.values())
            path.check_memory()
        except MemoryLimitError as error:
            before.undo()
            raise self.find_least(error, arrays) from None
        except (OuterTracer, Refused) as why:
            if isinstance(why, Refused) and not why.trace.dead:  # of a recording around this one
                raise
            before.undo()
            rewind()
            if isinstance(why, Refused) and isinstance(why.error, Crowded) and not jitted._asks:
                return self.record_asking(key)
            return again(why.error, self.eager) if isinstance(why, Refused) else self.eager()
        if path.is_part():
            rewind()
            return self.eager()
        check_pure(path, expected, replayed, self.xs)
        jitted._warned_random = hidden is None or hidden.warn(path.graph)
        with jitted._lock:
            jitted._misses += 1
            if key not in jitted._signatures and len(jitted._signatures) >= MAX_SIGNATURES:
                self.evict(key)
            signature = jitted._signatures.setdefault(key, Signature())
            if path.strides and len(key) == 3:
                signature.paths, signature.by_layout = [], True
                signature = jitted._signatures.setdefault((*key, *path.strides), Signature())
            if path.outer.changed:  # what the program would not repeat
                signature.note_change()
            elif expected is not None and signature.has(path):
                signature.note_rounding()  # the program of that path takes these values for another's
            elif len(signature.paths) >= MAX_PATHS:
                signature.full = True
                warnings.warn(
                    f"jit recorded {MAX_PATHS} paths of {jitted!r} for one signature, and runs others without jit: "
                    f"an if, int() or float() there has many answers, at {path.graph.guards()[-1].params['line']}. "
                    "Keep the number an array, or make the argument static",
                    PathLimitWarning,
                    stacklevel=6,
                )
            else:
                signature.paths.insert(0, path)
        self.path = path
        return recording.result

    def record_asking(self, key: Any) -> Any:
        """Record the function with loops that ask in each step if values are repeated, as they are in this call."""
        with self.jitted._lock:
            self.jitted._asks = True
            self.jitted._signatures.clear()
            self.jitted._quick.clear()
        return self.record(key, None)

    def find_least(self, error: MemoryLimitError, arrays: Any) -> MemoryLimitError:
        """Return the error with the least limit that would do: one loop's error knows nothing of those around it."""
        limit, least = memory_limit.get(), error.least
        assert limit is not None
        while True:
            rewind()
            outer = self.look_outside(arrays)
            before = outside(self.jitted.fun, outer.found)
            try:
                with use(memory_limit=least), effects.compiling(), reporting(), asking(self.jitted._asks):
                    Path(self.make_recording(outer, before), self.xs, self.donated, ()).check_memory()
                break
            except MemoryLimitError as more:
                if more.least <= least:
                    break
                least = more.least
            except Exception:  # it has none to do with memory
                break
            finally:
                before.undo()
        if least == error.least:
            return error
        return MemoryLimitError(
            f"the loops of a program need at least {least} bytes of memory together, but the limit is "
            f"{bytes_of(limit)}: raise it, fad.config.use(memory_limit={least}), or make their states smaller",
            least,
        )

    def look_outside(self, arrays: Any) -> OuterState:
        """Return what the function reads besides its arguments."""
        rest = (x for x, t in zip(self.leaves, self.traced, strict=True) if not t)
        return OuterState([self.fun, self.in_tree, *rest], arrays)

    def evict(self, key: Any) -> None:
        jitted = self.jitted
        forget_unused(jitted._signatures)
        jitted._quick.clear()
        if not jitted._crowded:
            jitted._crowded = True
            warnings.warn(
                f"jit recorded {jitted!r} for {MAX_SIGNATURES} signatures, and from now on forgets those that are not "
                f"in use: {why_so_many(key)}",
                PathLimitWarning,
                stacklevel=7,
            )


def describe(x: Any) -> list:
    """Return what the key of a signature has of an array or number."""
    kind = type(x)
    if kind is np.ndarray:
        return [x.shape, x.dtype]
    return [kind, x.shape, x.dtype] if kind in DEVICE_ARRAYS else [kind]


def own(x: Any) -> Any:
    """Return an argument as an array of the function's own: what it writes into it is not seen outside."""
    if type(x) is Tracer:
        return snapshot(x)
    if type(x) is not np.ndarray:
        return x
    trace = recorder.get()
    if trace is not None:
        trace.constant(x)  # so that a program which has the copy as a constant watches the array
    return copy_layout(x)
