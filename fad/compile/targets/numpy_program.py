"""The NumPy lowering: a graph becomes one Python function of NumPy calls.

Operations are called directly, and intermediate arrays lie in buffers that are kept from call to call. Loops are
Python's ``for`` and ``while``, and branches its ``if``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.ir.recorded_kinds import forward_of
from fad.compile.passes.loop_bodies import is_control
from fad.compile.runtime.failures import EQUATIONS, FILE
from fad.compile.schedule.numpy_buffers import Plan, plan_memory
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.programs.graph import ARRAY, Equation, Graph, GuardFailed, Type, ask, has_effects, same_outcome
from fad.core.runs.journal import with_journal
from fad.ops.arrangement.structural import broadcast_p

_MARK = "  # "


class NumPyProgram:
    """A graph as one Python function of NumPy calls; ``program(xs)`` returns the list of outputs."""

    lowering = "numpy"

    def __init__(self, graph: Graph, writer: Writer | None = None):
        self.graph = graph
        self.waiting: list[list] = []  # sets of buffers that no call is using
        writer = writer or Writer()
        self.text = writer.program(graph)
        self.specs = writer.specs
        space = {**writer.space, EQUATIONS: writer.equations(self.text)}
        exec(compile(self.text, FILE, "exec"), space)
        self.function = space["program"]
        if any(map(has_effects, graph.equations)):
            self.function = with_journal(self.function)

    def __call__(self, xs: list) -> list:
        try:
            buffers = self.waiting.pop()
        except IndexError:
            buffers = [np.empty(shape, dtype) for shape, dtype in self.specs]
        outs = self.function(xs, buffers)
        self.waiting.append(buffers)
        return outs

    def notes(self) -> list[str]:
        size = sum(int(np.prod(s)) * d.itemsize for s, d in self.specs)
        return [f"{len(self.graph)} NumPy calls, {len(self.specs)} buffers of {size} bytes together"]


class Writer:
    """Writes the function; a body's values have names with a number of its own in front.

    With `lends`, results may lie in memory of operands, constants or each other: the caller copies them at once.
    """

    def __init__(self, lends: bool = False) -> None:
        self.lends = lends
        self.space: dict[str, Any] = {
            "check": _check,
            "empty": np.empty,
            "zeros": np.zeros,
            "int64": np.int64,
            "fresh": _fresh,
        }
        self.functions: dict[int, str] = {}
        self.specs: list[tuple] = []
        self.bodies = 0
        self.called: list[Equation] = []  # a line that calls an operation ends with its number here

    def program(self, graph: Graph) -> str:
        names, plan = self.name_values(graph)
        lines = self.lines(graph, names, plan)
        head = ["def program(xs, buffers):"]
        if graph.inputs:
            head.append(f"    {', '.join(names[i] for i in graph.inputs)}, = xs")
        if self.specs:
            head.append(f"    {', '.join(f'b{k}' for k in range(len(self.specs)))}, = buffers")
        out = f"    return [{', '.join(self.results(graph, names))}]"
        return "\n".join([*head, *[f"    {line}" for line in lines], out])

    def results(self, graph: Graph, names: dict[int, str]) -> list[str]:
        """Return what is handed out."""
        copied = () if self.lends else _copy_shared(graph)
        return [names[i] + (".copy()" if i in copied else "") for i in graph.outputs]

    def equations(self, text: str) -> dict[int, Equation]:
        """Return the operation that each line of the text calls, by the line's number."""
        ends = [line.rpartition(_MARK) for line in text.splitlines()]
        return {n: self.called[int(number)] for n, (_, mark, number) in enumerate(ends, 1) if mark}

    def name_values(self, graph: Graph) -> tuple[dict[int, str], Plan]:
        """Name the values of a graph: variables, buffers and constants."""
        n, self.bodies = self.bodies, self.bodies + 1
        start = len(self.specs)
        plan = self.plan(graph)
        self.specs += plan.specs
        names = {i: f"v{n}_{i}" for i in range(len(graph.types))}
        names.update({i: f"b{start + k}" for i, k in plan.buffer.items()})
        for i, c in graph.constants.items():
            names[i] = f"c{n}_{i}"
            self.space[names[i]] = self.constant(c, graph.types[i])
        return names, plan

    def constant(self, c: Any, t: Type) -> Any:
        return c

    def plan(self, graph: Graph) -> Plan:
        return plan_memory(graph)

    def function(self, f: Any) -> str:
        if id(f) not in self.functions:
            name = f"f{len(self.functions)}_{getattr(f, '__name__', 'op').strip('<>')}"
            self.functions[id(f)] = name
            self.space[name] = f
        return self.functions[id(f)]

    def hold(self, value: Any) -> str:
        name = f"p{len(self.space)}"
        self.space[name] = value
        return name

    def maker(self, name: str, body: Graph, v: int) -> str:
        """Return the name of the function that makes the array in which a loop stacks a value of its body."""
        return name

    def lines(self, graph: Graph, names: dict[int, str], plan: Plan) -> list[str]:
        return [line for k, eq in enumerate(graph.equations) for line in self.step(k, eq, graph, names, plan)]

    def step(self, k: int, eq: Equation, graph: Graph, names: dict[int, str], plan: Plan) -> list[str]:
        """Return the lines of one equation, the k-th."""
        if eq.prim.archetype == "loop":
            return self.loop(eq, names)
        if eq.prim.archetype == "branch":
            return self.branch(eq, names)
        if eq.is_guard:
            return [f"check({self.hold((eq, k))}, {names[eq.ins[0]]})"]
        return [self.call(eq, forward_of(eq, graph), names, plan)]

    def mark(self, eq: Equation) -> str:
        """Return the end of a line that may raise for the values that an operation finds."""
        self.called.append(eq)
        return f"{_MARK}{len(self.called) - 1}"

    def call(self, eq: Equation, forward: Callable, names: dict[int, str], plan: Plan) -> str:
        ins = [names[i] for i in eq.ins]
        if eq.params:
            ins.append(f"**{self.hold(eq.params)}")
        end = self.mark(eq)
        if eq.outs[0] in plan.buffer:
            return f"{self.function(forward)}({', '.join(ins)}, out={names[eq.outs[0]]}){end}"
        outs = ", ".join(names[o] for o in eq.outs) + ("," if eq.prim.multi and len(eq.outs) == 1 else "")
        return f"{outs} = {self.function(forward)}({', '.join(ins)}){end}"

    def loop(self, eq: Equation, names: dict[int, str]) -> list[str]:
        loop = Loop(eq)
        body = loop.body
        inner, plan = self.name_values(body)
        inner.update((i, names[o]) for i, o in zip(loop.const_inputs, loop.consts, strict=True))
        outs, stacks, done = ([names[o] for o in some] for some in loop.results)
        before = [f"{inner[i]} = {names[o]}" for i, o in zip(loop.carry_inputs, loop.carry, strict=True)]
        for name, v in zip(stacks, loop.ys, strict=True):
            t = body.types[v]
            make = self.maker("empty" if loop.stop == "length" else "zeros", body, v)
            before.append(f"{name} = {make}({(loop.length, *t.shape)}, {self.hold(t.dtype)})")
        at = f"t{self.bodies}"
        if loop.indexed:
            inner[loop.index_input] = at
        count = names[loop.count] if loop.stop == "count" else str(loop.length)
        if loop.has_condition:
            head = [f"{at} = 0", f"while {inner[loop.carry_inputs[0]]}:"]
            stored = f"[min({at}, {(loop.length or 1) - 1})]"
        else:
            run = f"range({count} - 1, -1, -1)" if loop.reverse else f"range({count})"
            head, stored = [f"for {at} in {run}:"], f"[{at}]"
        steps = self.begin_step(loop)
        steps += [f"{inner[i]} = {names[o]}[{at}]" for i, o in zip(loop.x_inputs, loop.xs, strict=True)]
        steps += self.lines(body, inner, plan)
        steps += [f"{name}{stored} = {inner[v]}{self.mark(eq)}" for name, v in zip(stacks, loop.ys, strict=True)]
        if loop.carry:
            new = ", ".join(inner[v] for v in loop.carry_outputs)
            steps.append(f"{', '.join(inner[i] for i in loop.carry_inputs)} = {new}")
        after = [f"{o} = {inner[i]}" for o, i in zip(outs, loop.carry_inputs, strict=True)]
        if loop.stop != "length":  # there may have been no step
            after = [
                f"{o} = fresh({inner[i]}, {names[v]})"
                for o, i, v in zip(outs, loop.carry_inputs, loop.carry, strict=True)
            ]
        if loop.has_condition:
            steps.append(f"{at} += 1")
            after.append(f"{done[0]} = int64({at})")
        return [*before, *head, *[f"    {line}" for line in steps or ["pass"]], *after]

    def begin_step(self, loop: Loop) -> list[str]:
        """Return what a step of a loop begins with."""
        return []

    def branch(self, eq: Equation, names: dict[int, str]) -> list[str]:
        found: list[str] = []
        branches = eq.params["branches"]
        last = len(branches) - 1
        for k, graph in enumerate(branches):
            inner, plan = self.name_values(graph)
            inner.update((i, names[o]) for i, o in zip(graph.inputs, eq.ins[1:], strict=True))
            steps = self.lines(graph, inner, plan)
            steps += [f"{names[o]} = {inner[v]}" for o, v in zip(eq.outs, graph.outputs, strict=True)]
            head = "else:" if k == last else f"{'elif' if k else 'if'} {names[eq.ins[0]]} <= {k}:"
            if last == 0:
                head = "if True:"
            found += [head, *[f"    {line}" for line in steps or ["pass"]]]
        return found


def _copy_shared(graph: Graph) -> set[int]:
    """Return the outputs that are handed out as copies, so that each may be written into and none is another's memory.

    They are constants, results of loops and branches, whose bodies may have constants, and views: of arguments, of all
    these, of broadcast arrays, and of other outputs.
    """
    viewed: dict[int, int] = {}  # view -> the array
    held = {i for i in graph.constants if graph.types[i].kind == ARRAY}
    held.update(o for eq in graph.equations if is_control(eq) for o in eq.outs if graph.types[o].kind == ARRAY)
    shared = {*graph.inputs, *held}
    for eq in graph.equations:
        if eq.is_view and graph.types[eq.outs[0]].kind == ARRAY:
            viewed[eq.outs[0]] = viewed.get(eq.ins[0], eq.ins[0])
            if eq.prim is broadcast_p:
                shared.add(viewed[eq.outs[0]])
    roots = Counter(viewed.get(i, i) for i in set(graph.outputs))
    views = {i for i in graph.outputs if i in viewed and (viewed[i] in shared or roots[viewed[i]] > 1)}
    return views | held


def _fresh(y: Any, x: Any) -> Any:
    """Return a result that is not the operand itself, which belongs to somebody else."""
    return y.copy() if y is x and hasattr(y, "copy") else y


def _check(guard: tuple, x: Any) -> None:
    eq, k = guard
    found = ask(x, eq.params["convert"])
    if not same_outcome(eq.params["outcome"], found):
        raise GuardFailed(eq, k, found)
