"""Paths: the ways through a jitted function recorded for one signature, distinguished by their guards' outcomes.

A path is a graph, and the program that is made of it when it is first run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.backends import is_numpy_array, is_on_device
from fad.compile.passes.loop_bodies import is_control
from fad.compile.pipeline import optimise
from fad.compile.runtime.failures import running
from fad.compile.schedule.numpy_buffers import newly_shared
from fad.compile.schedule.peak_memory import loops_kept, peak_bytes
from fad.compile.targets.select import lower
from fad.config import bytes_of, memory_limit
from fad.core.programs.graph import ARRAY, Graph, GuardFailed, has_effects, same_outcome
from fad.core.programs.refusals import OF_VALUES, may_refuse
from fad.errors import ImpureFunctionError, MemoryLimitError
from fad.introspect.collection import pause_collection
from fad.introspect.frames import show_place, user_line
from fad.introspect.loops import steps_of
from fad.staging.record import is_recording
from fad.transforms.batching.batch_trace import batching
from fad.transforms.reverse.steep_programs import has_steep

MAX_PATHS = 32
MAX_SIGNATURES = 256
MAX_CHANGES = 8  # recordings in turn that were of no use, since what the function finds outside changed


def strides_of(xs: Any) -> list:
    """Return how arrays lie in memory."""
    return [x.strides for x in xs if type(x) is np.ndarray]


def _is_array(x: Any) -> bool:
    return is_numpy_array(x) or is_on_device(x)


class Path:
    """One recorded way through the function: its graph, and the program made of it when it is first run again."""

    __slots__ = (
        "graph",
        "out_tree",
        "answers",
        "outer",
        "is_stale",
        "depends",
        "differs",
        "table",
        "copied",
        "handed",
        "loops",
        "remembers",
        "swapped",
        "strides",
        "program",
        "entry",
        "numbers",
        "single",
        "simple",
        "donated",
        "effects",
        "pull",
        "steep",
    )

    def __init__(self, recording: Any, xs: list, donated: tuple = (), loops: Iterable = ()):
        self.donated = donated
        self.loops = [str(entry) for entry in loops]  # what became of each loop of Python's
        self.remembers: bool = recording.remembers
        self.graph: Graph = recording.graph
        self.out_tree = recording.out_tree
        self.outer = recording.outer
        self.is_stale = self.outer.is_stale
        self.answers = [eq.params["outcome"] for eq in self.graph.guards()]
        self.program: Any = None
        self.entry: Any = None  # what runs the program, with one Python call less
        self.numbers: dict[int, int] = {}
        self.copied: list[int] = []  # the outputs that may lie in memory of others
        self.handed: list[int] = []  # those that are donated arguments as they were given
        types = [(k, self.graph.types[i]) for k, i in enumerate(self.graph.outputs)]
        self.swapped = [(k, t.dtype) for k, t in types if t.kind == ARRAY and not t.dtype.isnative]  # in byte order
        self.strides = strides_of(xs) if recording.by_layout else []  # as the arguments must lie in memory
        self.effects = any(map(has_effects, self.graph.equations))
        self.depends = bool(self.outer or self.strides or self.effects)  # on more than the values of its arguments
        self.differs: Callable[[int], Any] = bool  # given `table`: whether what it depends on may have changed
        self.table = 1
        self.single = self.out_tree is tree.structure(0.0)
        self.simple = False  # whether the entry's one output is the result
        self.pull = recording.pull
        self.steep: bool | None = None

    def is_steep(self) -> bool:
        """Return whether an operation of the program may have an infinite slope."""
        if self.steep is None:
            self.steep = has_steep(self.graph)
        return self.steep

    def compile(self) -> None:
        with pause_collection():
            self._compile()

    def _compile(self) -> None:
        graph = optimise(self.graph)
        guards = [k for k, eq in enumerate(graph.equations) if eq.is_guard]
        self.numbers = {position: n for n, position in enumerate(guards)}
        program = lower(graph, self.donated)
        given = {graph.inputs[n] for n in self.donated}
        shared, outs = newly_shared(self.graph, graph), graph.outputs
        self.handed = [k for k in shared if outs[k] in given and outs[k] not in outs[:k]]
        self.copied = [k for k in shared if k not in self.handed]
        self.simple = self.single and not shared and not self.swapped
        self.entry = getattr(program, "run", program)
        if self.outer and program.lowering == "llvm":
            self._compare_natively()
        self.program = program

    def _compare_natively(self) -> None:
        from fad.compile.runtime.state_check import StateCheck

        check = StateCheck(self.outer)
        self.is_stale = check.is_stale
        if not self.strides and not self.effects:
            self.table = check.address
            self.differs = check.differs

    def check_memory(self) -> None:
        """Raise MemoryLimitError if the program is expected to take more than `memory_limit`."""
        limit = memory_limit.get()
        if limit is not None and (peak := peak_bytes(optimise(self.graph))) > bytes_of(limit):
            raise MemoryLimitError(
                f"a program is expected to take {peak} bytes of memory beside its arguments, and the limit is "
                f"{bytes_of(limit)}: raise it, fad.config.use(memory_limit={peak}), or work on smaller arrays",
                peak,
            )

    def _memory_described(self) -> Iterator[str]:
        if any(map(is_control, self.graph.equations)):
            graph = optimise(self.graph)
            yield f"  expected to take {peak_bytes(graph)} bytes of memory at most, beside its arguments"
            yield from (f"  {line}" for line in loops_kept(graph))

    @property
    def takes_over(self) -> bool:
        """Return whether the program writes results into the memory of donated arguments."""
        return bool(getattr(self.program, "reused", None))

    def is_unfit(self, xs: Any) -> bool:
        """Whether arguments lie in memory otherwise, or something from outside them has changed."""
        return (bool(self.strides) and self.strides != strides_of(xs)) or self.is_part() or self.is_stale()

    def is_part(self) -> bool:
        """Whether a recording is under way, in which its effects must be seen, or a batch, which they must join."""
        return self.effects and (is_recording() or bool(batching.get()))

    def describe(self) -> Iterator[str]:
        """Give the lines of ``explain``: what was recorded, under which guards, and how the program runs."""
        heads = ", ".join(str(self.graph.types[i]) for i in self.graph.inputs)
        yield f"({heads}): {len(self.graph)} operations recorded, {len(self.answers)} guards"
        for eq in self.graph.guards():
            yield f"  guard: the answer was {eq.params['outcome']!r} at {eq.params['line']}"
        for line in self.loops:
            yield f"  {line}"
        if self.outer:
            arrays, others = len(self.outer.arrays), len(self.outer.places)
            yield f"  {arrays} arrays and {others} other things from outside are watched for changes"
        yield from self._memory_described()
        if self.program is None:
            yield "  not compiled yet: it was called once"
            return
        yield f"  lowering: {self.program.lowering}"
        for note in self.program.notes():
            yield f"  {note}"

    def run(self, xs: Any) -> Any:
        outs = self.entry(xs)
        for k in self.copied:
            outs[k] = outs[k].copy() if _is_array(outs[k]) else outs[k]
        for k in self.handed:
            outs[k] = outs[k][...]  # an array of its own, for the one that was given may not be passed again
        for k, dtype in self.swapped:
            outs[k] = outs[k].astype(dtype, copy=False)
        return outs[0] if self.single else tree.unflatten(self.out_tree, outs)


class Signature:
    """All paths recorded for one signature; `paths[0]` is tried first."""

    __slots__ = ("paths", "full", "by_layout", "used", "changes", "rounded", "unrecorded")

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.full = False
        self.by_layout = False  # whether this is empty, and there is one for each way in which arguments lie in memory
        self.used = False  # whether a program of it has run since signatures were last forgotten
        self.changes = 0  # how often in turn a recording was of no use, since what it depends on outside had changed
        self.rounded = 0  # how often one was, since the program of its path takes these values for another path's
        self.unrecorded = 0  # calls without a path that run without jit before the next one is recorded

    def note_change(self) -> None:
        """Note that something outside changed; after several times in turn calls are run without jit."""
        self.changes += 1
        self.full = self.full or self.changes > MAX_CHANGES

    def note_rounding(self) -> None:
        """Note that rounding alone led a call to no path; of the calls like it fewer and fewer are recorded.

        One of them may be of a new path, so that recording never ends.
        """
        self.rounded += 1
        self.unrecorded = 2 ** (self.rounded - MAX_CHANGES) - 1 if self.rounded > MAX_CHANGES else 0

    def leaves_unrecorded(self) -> bool:
        """Return whether a call without a path is to run without jit."""
        waits = self.full or self.unrecorded > 0
        self.unrecorded -= self.unrecorded > 0
        return waits

    def matching(self, path: Path, n: int, answer: Any) -> Path | None:
        """Return a path that agrees with `path` on its first n answers, and has `answer` next."""
        for other in self.paths:
            if (
                len(other.answers) > n
                and same_outcome(other.answers[n], answer)
                and all(map(same_outcome, other.answers[:n], path.answers[:n]))
            ):
                return other
        return None

    def has(self, path: Path) -> bool:
        """Return whether there is a path with the same answers."""
        n = len(path.answers)
        return any(len(p.answers) == n and all(map(same_outcome, p.answers, path.answers)) for p in self.paths)

    def describe(self) -> Iterator[str]:
        """Give the lines of ``explain``, path by path."""
        for path in self.paths:
            yield from path.describe()
        if self.changes > MAX_CHANGES:
            yield "  what it finds outside changes in every call, so the function runs without jit"
        elif self.full:
            yield f"  more than {MAX_PATHS} paths: further ones run without jit"
        elif self.rounded > MAX_CHANGES:
            yield "  rounding alone decides some of the questions, so some calls run without jit"


def forget_unused(signatures: dict[Any, Signature]) -> None:
    """Forget a quarter of the signatures: the oldest of those that no call has used since the last time, if there are.

    The fast path to a program does not say that it was used: who calls this must close it, so that calls say it again.
    """
    unused = [key for key, signature in signatures.items() if not signature.used]
    for key in (unused or list(signatures))[: MAX_SIGNATURES // 4]:
        del signatures[key]
    for signature in signatures.values():
        signature.used = False


def why_so_many(key: Any) -> str:
    """Say what probably makes one signature after another of a function, by the last one's key."""
    _, leaves, static, *_ = key
    for x in (*leaves, *(part[-1] for parts in static for part in parts)):
        if callable(x) and not isinstance(x, type):
            name = getattr(x, "__qualname__", type(x).__name__)
            return f"its argument {name} is another object each time. Make it once, before the calls"
    return "its arguments' shapes or structures change on every call, or static ones' values. Pad or pass arrays"


def raised_by_operation(error: Exception) -> bool:
    """Return whether an operation of a program raised for its values: it did so before donated memory was written."""
    eq = running(error.__traceback__)
    return eq is not None and may_refuse(eq.prim, eq.ins)


def is_of_values(error: Exception) -> bool:
    """Whether an operation of a program raised an error for its values: the function may know what to do then."""
    return isinstance(error, OF_VALUES) and running(error.__traceback__) is not None


def again(error: Exception, fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Run a function without jit after its program failed: it may catch the error, and if not shows its own lines."""
    try:
        return fun(*args, **kwargs)
    except Exception as own:
        if type(own) is type(error) and not hasattr(own, "__notes__"):
            for note in getattr(error, "__notes__", ()):
                own.add_note(note)
        _note_steps(own)
        raise own from own.__cause__


def _note_steps(error: Exception) -> None:
    """Say in a note in which steps of the user's loops an error was raised: no frame shows it."""
    known = getattr(error, "__notes__", ())
    for line in steps_of(error):
        if line not in known:
            error.add_note(line)


def note_operation(error: Exception) -> None:
    """Say in a note which operation of a program failed, and where it was recorded."""
    eq = running(error.__traceback__)
    if eq is None or hasattr(error, "__notes__"):
        return
    line = show_place(eq.place)
    where = f"recorded at {line}" if line else "in a program of jit: call the function without jit to see its line"
    name = eq.prim.name.removeprefix("python_").removeprefix("exact_")
    error.add_note(f"  in the operation {name}, {where}")


def _agrees(answers: list, other: Path, xs: list) -> bool:
    """Return whether a path, run in NumPy operation by operation, gives these answers, as far as it goes."""
    found = list(other.answers)
    try:
        other.graph(*xs)
    except GuardFailed as failed:
        n = sum(eq.is_guard for eq in other.graph.equations[: failed.position])
        found[n:] = [failed.found]
    except Exception:
        return False
    return len(found) <= len(answers) and all(map(same_outcome, answers, found))


def _asks_alike(path: Path, replayed: Path, n: int) -> bool:
    """Return whether two recordings compute the first answers in the same way, and the n-th as well.

    A function that does so depends on nothing else: the loops in it, which NumPy or native code ran, round otherwise.
    """
    return len(path.answers) > n and _questions(path.graph, n).key() == _questions(replayed.graph, n).key()


def _questions(graph: Graph, n: int) -> Graph:
    """Return the part of a program that computes what the first n guards and the next one ask about."""
    guards = [k for k, eq in enumerate(graph.equations) if eq.is_guard]
    before = graph.equations[: guards[n]]
    asked = [graph.equations[k].ins[0] for k in guards[: n + 1]]
    needed, kept = set(asked), []
    for eq in reversed(before):
        if not eq.is_guard and not needed.isdisjoint(eq.outs):
            needed.update(eq.ins)
            kept.append(eq)
    constants = {i: c for i, c in graph.constants.items() if i in needed}
    return graph.replace(constants=constants, equations=kept[::-1], outputs=asked)


def check_pure(path: Path, expected: list | None, replayed: Path | None, xs: list) -> None:
    """Raise if a recording did not give the answers that its values gave on replay.

    Compiled programs round otherwise than NumPy; so in doubt it is compared what the answers are computed of, and
    NumPy is asked what the replayed path says to the values.
    And where another loop is captured, for arrays that lie otherwise in memory, other guards stand in another order;
    so they do where the function remembers earlier calls, and each path asks all that its own result depends on.
    """
    for n, answer in enumerate(expected or ()):
        if len(path.answers) <= n or not same_outcome(path.answers[n], answer):
            if path.remembers:
                return
            if replayed is not None and (
                path.loops != replayed.loops or _asks_alike(path, replayed, n) or _agrees(path.answers, replayed, xs)
            ):
                return
            guards = path.graph.guards()
            line = guards[min(n, len(guards) - 1)].params["line"] if guards else user_line()
            raise ImpureFunctionError(
                "a jitted function took another path on the same values: it depends on something besides its "
                f"arguments, as on time, NumPy's random generators or a changed variable. First seen at {line}. "
                "Pass what changes as an argument (keys of fad.random for random numbers)"
            )
