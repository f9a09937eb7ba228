"""The lowering for arrays of a device: groups of elementwise operations are kernels, the rest calls of its library.

Nothing here waits for the device but a guard, a ``while`` and a branch, which ask it for a number. Arrays that no
later step reads are let go at once, so that the device's pool has their memory again.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.codegen.cuda import spelling
from fad.compile.codegen.device_kernels import Kernel, fits
from fad.compile.ir.expressions import weight
from fad.compile.ir.uses import use_counts
from fad.compile.passes.constants import as_uniform
from fad.compile.schedule.fusion import Step, join
from fad.compile.schedule.numpy_buffers import Plan
from fad.compile.schedule.sink import compute_where_used
from fad.compile.targets.device_replay import Replays, count_launches
from fad.compile.targets.numpy_program import NumPyProgram, Writer
from fad.core.programs.graph import ARRAY, Equation, Graph, Type, place_constant

# What a kernel may weigh, which bounds the time to compile it and the registers it needs; and the arrays and numbers
# that it reads and writes: they are arguments, of which a kernel of CUDA may have 4 kB.
MOST_WEIGHT, MOST_ARGUMENTS, MOST_AXES = 500, 24, 8
LARGE = 1 << 16  # elements above which a launch costs less than its memory


class DeviceProgram(NumPyProgram):
    """A graph as one Python function that launches kernels and calls the array library of a device."""

    def __init__(self, graph: Graph, backend: Any, kernels: bool = True):
        self.lowering = f"kernels for {backend.name}"
        self.backend = backend
        self.writer = _Writer(backend, kernels)
        super().__init__(graph, self.writer)
        self.replays = None
        if hasattr(backend, "Replay"):
            run = lambda xs: self.function(xs, [])
            self.replays = Replays(graph, run, backend, self.writer.launches, self.writer.called_with)

    def __call__(self, xs: list) -> list:
        found = None if self.replays is None else self.replays(xs)
        return super().__call__(xs) if found is None else found

    def notes(self) -> list[str]:
        kernels, calls = self.writer.kernels, self.writer.calls
        fused = sum(len(k.equations) for k in kernels)
        found = [f"kernels: {len(kernels)}, which compute {fused} operations"]
        found += [f"  {k.describe()}" for k in kernels]
        called = ", ".join(f"{n} {name}" for name, n in sorted(calls.items()))
        found.append(f"calls of the array library: {called or 'none'}")
        return found if self.replays is None else [*found, self.replays.note()]


class _Writer(Writer):
    """Writes a program whose steps are kernels and calls, and lets go of what is not read any more."""

    def __init__(self, backend: Any, fuse: bool):
        super().__init__()
        self.backend = backend
        self.fuse = fuse
        self.kernels: list[Kernel] = []
        self.calls: Counter[str] = Counter()
        self.launches = 0
        self.called_with: set[tuple[int, int]] = set()  # by graph: what is given to calls, and not to kernels alone
        self.space.update(device_empty=backend.empty, device_zeros=backend.zeros)

    def plan(self, graph: Graph) -> Plan:
        return Plan()  # the device's pool gives memory to each request

    def name_values(self, graph: Graph) -> tuple[dict[int, str], Plan]:
        """Name the values of a graph; arrays of indices that only the device reads are there once and for all."""
        names, plan = super().name_values(graph)
        homes = _homes(graph)
        for i, c in graph.constants.items():
            if type(c) is np.ndarray and c.ndim and c.dtype.kind in "iu":
                readers = [eq for eq in graph.equations if i in eq.ins]
                if readers and all(not homes.isdisjoint(eq.ins) for eq in readers):
                    self.space[names[i]] = self.backend.from_host(c)
        return names, plan

    def constant(self, c: Any, t: Type) -> Any:
        number = as_uniform(c) if t.home is not None and t.size > 1 else None
        return (
            place_constant(c, t)
            if number is None
            else np.broadcast_to(place_constant(np.asarray(number, t.dtype), t), t.shape)
        )

    def maker(self, name: str, body: Graph, v: int) -> str:
        return f"device_{name}" if v in _homes(body) else name

    def lines(self, graph: Graph, names: dict[int, str], plan: Plan) -> list[str]:
        found: list[str] = []
        steps = plan_steps(graph, self.fuse)
        last = {i: k for k, step in enumerate(steps) for eq in step.equations for i in eq.ins}
        kept = {names[i] for i in (*graph.outputs, *graph.inputs, *graph.constants)}
        for k, step in enumerate(steps):
            if step.kind == "loop":
                found.append(self.launch(graph, step, names))
                made = step.members
                self.launches += 1
            else:
                (eq,) = step.equations
                self.called_with.update((id(graph), i) for i in eq.ins)
                self.launches += count_launches(eq)
                if not eq.is_guard:
                    self.calls[eq.prim.name] += 1
                found += self.step(step.number, eq, graph, names, plan)
                made = set(eq.outs)
            read = {i for eq in step.equations for i in eq.ins if last[i] == k}
            dead = {names[i] for i in read | {o for o in made if o not in last}} - kept
            inside = {names[o] for eq in step.equations for o in eq.outs} - {names[o] for o in made}
            if dead - inside:
                found.append(f"del {', '.join(sorted(dead - inside))}")
        return found

    def call(self, eq: Equation, forward: Callable, names: dict[int, str], plan: Plan) -> str:
        return super().call(eq, self.backend.matmul if forward is np.matmul else forward, names, plan)

    def launch(self, graph: Graph, step: Step, names: dict[int, str]) -> str:
        kernel = Kernel(self.backend, graph, step.equations, sorted(step.members))
        self.kernels.append(kernel)
        outs = ", ".join(names[o] for o in kernel.outs)
        return f"{outs}, = {self.hold(kernel)}.run({', '.join(names[i] for i in kernel.ins)})"


# --- the plan ---------------------------------------------------------------------------------------------------------


def plan_steps(graph: Graph, fuse: bool = True) -> list[Step]:
    """Return the steps of a program in an order in which they can be run, close to that of the program."""
    homes = _homes(graph)
    level: dict[int, int] = dict.fromkeys([*graph.inputs, *graph.constants], -1)
    group: dict[int, Step] = {}
    steps: list[Step] = []
    last_guard = -1
    for number, eq in enumerate(graph.equations):
        lowest = max((level[i] for i in eq.ins), default=-1)
        text = _template(graph, eq, homes) if fuse else None
        if text is not None:
            step = join(graph, eq, level, group, weight(text), _limits)
            if step is None:
                step = Step("loop", lowest + 1, number, eq, graph.types[eq.outs[0]].shape)
                steps.append(step)
            step.templates.append(text)
            step.weight += weight(text)
            group[eq.outs[0]] = step
        else:
            at = max(lowest + 1, last_guard + (not eq.is_guard))  # no call before a guard that it came after
            step = Step("guard" if eq.is_guard else "call", at, number, eq)
            steps.append(step)
            last_guard = at if eq.is_guard else last_guard
        for o in eq.outs:
            level[o] = step.level
    steps = sorted((s for s in steps if s.equations), key=lambda s: (s.level, s.number))
    steps = compute_where_used(graph, steps, group, MOST_ARGUMENTS, MOST_WEIGHT, smallest=0, keep_comparisons=True)
    return _in_order(_resize(graph, _side_by_side(graph, steps)))


def _homes(graph: Graph) -> set[int]:
    """Return the values that live on the device; passes make new ones without saying where."""
    found = {i for i, t in enumerate(graph.types) if t.home is not None}
    for eq in graph.equations:
        if not found.isdisjoint(eq.ins):
            found.update(o for o in eq.outs if graph.types[o].kind == ARRAY)
    return found


def _template(graph: Graph, eq: Equation, homes: set[int]) -> str | None:
    """Return the template of an operation that a kernel can compute, or None."""
    if eq.is_guard or len(eq.outs) != 1 or eq.outs[0] not in homes:
        return None
    if len(graph.types[eq.outs[0]].shape) > MOST_AXES:
        return None
    if any(graph.types[i].kind == ARRAY and i not in homes for i in eq.ins):
        return None
    how = spelling(graph, eq)
    return None if how is None else how.text


def _limits(shape: tuple) -> tuple[int, int]:
    return MOST_WEIGHT, MOST_ARGUMENTS


def _side_by_side(graph: Graph, steps: list[Step]) -> list[Step]:
    """Let small groups of one level and shape be one launch: none of them reads what another computes.

    Large ones stay apart, for what is computed together is in memory together; but comparisons, which take little of
    it, join another look at the same arrays.
    """
    uses = use_counts(graph)
    open_groups: dict[tuple, Step] = {}
    for step in steps:
        if step.kind != "loop":
            continue
        size = math.prod(step.shape)
        key: tuple = (step.level, step.shape)
        if size > LARGE:
            key += (frozenset(i for i in _outside(step.equations, uses)[0] if graph.types[i].size == size),)
        first = open_groups.setdefault(key, step)
        if first is step:
            continue
        if size > LARGE and not any(_compares(graph, s, uses) for s in (first, step)):
            open_groups[key] = step
            continue
        both = [*first.equations, *step.equations]
        if first.weight + step.weight > MOST_WEIGHT or sum(map(len, _outside(both, uses))) > MOST_ARGUMENTS:
            open_groups[key] = step
            continue
        first.equations, step.equations = both, []
        first.weight += step.weight
    return [s for s in steps if s.equations]


def _compares(graph: Graph, step: Step, uses: dict[int, int]) -> bool:
    return all(graph.types[o].dtype == bool for o in _outside(step.equations, uses)[1])


def _outside(equations: list[Equation], uses: dict[int, int]) -> tuple[set[int], set[int]]:
    """Return what a group reads, and what it must store, for something else reads it."""
    inside = Counter(i for eq in equations for i in eq.ins)
    made = [eq.outs[0] for eq in equations]
    return set(inside).difference(made), {o for o in made if uses[o] > inside[o]}


def _resize(graph: Graph, steps: list[Step]) -> list[Step]:
    """Find what each group stores; cut what has too many arguments, and call what is an operation alone."""
    uses = use_counts(graph)
    number = {id(eq): k for k, eq in enumerate(graph.equations)}
    found: list[Step] = []

    def add(equations: list[Equation], step: Step) -> None:
        read, stored = _outside(equations, uses)
        if len(equations) > 1 and len(stored) + len(read) > MOST_ARGUMENTS:
            middle = len(equations) // 2
            add(equations[:middle], step)
            add(equations[middle:], step)
            return
        whole = len(equations) > 1 and fits(graph, equations, stored)
        for some in [equations] if whole else [[eq] for eq in equations]:
            new = Step("loop" if whole else "lone", step.level, number[id(some[-1])], some[0], step.shape)
            new.equations = some
            new.members = stored if whole else set(some[0].outs)
            found.append(new)

    for step in steps:
        if step.kind == "loop":
            add(step.equations, step)
        else:
            found.append(step)
    return found


def _in_order(steps: list[Step]) -> list[Step]:
    """Sort the steps so that each comes after what it reads, and otherwise as late as its last operation came.

    So a value is computed when it is wanted, and waits in memory no longer than it did in the program.
    """
    makers = {o: s for s in steps for o in s.members}
    readers: dict[int, list[Step]] = {}
    missing: dict[int, int] = {}
    guard = None
    for step in sorted(steps, key=lambda s: s.number):
        wanted = {id(makers[i]): makers[i] for eq in step.equations for i in eq.ins if i in makers}
        if step.kind in ("call", "guard") and guard is not None:
            wanted[id(guard)] = guard  # a guard's answer holds for what comes after it alone
        wanted.pop(id(step), None)
        missing[id(step)] = len(wanted)
        for key in wanted:
            readers.setdefault(key, []).append(step)
        guard = step if step.kind == "guard" else guard
    ready = [(s.number, k, s) for k, s in enumerate(steps) if not missing[id(s)]]
    heapq.heapify(ready)
    found: list[Step] = []
    while ready:
        _, _, step = heapq.heappop(ready)
        found.append(step)
        for reader in readers.get(id(step), ()):
            missing[id(reader)] -= 1
            if not missing[id(reader)]:
                heapq.heappush(ready, (reader.number, len(steps) + len(found), reader))
    return found
