"""A native program while it is put together: what scheduling has decided, and the rows that code generation adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fad.compile.codegen.instruction_table import Table
from fad.compile.machine.signals import Watch
from fad.compile.schedule.buffers import Body, Memory
from fad.core.programs.graph import Equation, Graph

if TYPE_CHECKING:
    from fad.compile.codegen.python_rows import Calls
    from fad.compile.runtime.linker import Code

_UNCOUNTED = ("view", "call", "control")  # they have no kernels, or count their own


class Program:
    """A graph, where its values live, and the table that runs it; the finished program keeps it alive."""

    def __init__(self, recorded: Graph, memory: Memory, compile_body: Callable, run_in_numpy: Callable, watch: Watch):
        self.recorded = recorded  # the graph before it was legalized, whose equations guards are numbered by
        self.graph = memory.graph
        self.memory = memory
        self.table = Table(memory)
        self.compile_body = compile_body  # (graph, Body, Watch) -> Program
        self.run_in_numpy = run_in_numpy  # Graph -> a function that runs it
        self.watch = watch
        self.counts = {k: n for k, n in Counter(s.kind for s in memory.steps).items() if k not in _UNCOUNTED}
        self.nests: list[int] = []  # of each loop that is one function: how many of its updates are in place
        self.parts: list[tuple] = []  # ("run", from, to) | ("call", function, step)
        self.fallbacks: list[str] = []  # operations that NumPy runs
        self.guards: dict[int, int | None] = {}  # row of the table -> position of the equation, if it was recorded
        self.stopping: set[int] = set()  # results of operations that may stop the program
        # guards have no results, and other operations may have been rewritten
        self.position = {eq.outs[0] if eq.outs else id(eq): k for k, eq in enumerate(recorded.equations)}
        self.fails = False  # whether a body has rows that may stop the program
        self.known_places: dict[tuple[int, int], Any] = {}  # large constant index arrays, as lookups read them
        self.python_row: Calls | None = None  # the calls of the last row that calls Python
        self.bodies: list[Program] = []
        self.when_linked: list[Callable[[], None]] = []  # write what rows say of bodies
        self.code: Code = None  # type: ignore[assignment]  # set by the linker

    def failing(self, eq: Equation) -> None:
        """Say that the next row of the table stops the program where this equation has no answer."""
        self.stopping.update(eq.outs)
        if self.memory.within:
            self.fails = True
        else:
            self.guards[len(self.table.rows)] = self.position.get(eq.outs[0] if eq.outs else id(eq))

    def inner(self, graph: Graph, body: Body) -> Program:
        """Return the program of a body, which is not a part of this one yet."""
        return self.compile_body(graph, body, self.watch)

    def add_bodies(self, bodies: list[Program], when_linked: Callable[[], None]) -> None:
        """Keep the programs of a row's bodies, and what is to be done once they have addresses."""
        for body in bodies:
            self.table.kernels.update(body.table.kernels)
            self.nests += body.nests
            self.fallbacks += body.fallbacks
        self.bodies += bodies
        self.when_linked.append(when_linked)
