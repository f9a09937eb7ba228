"""Native programs: a flat table of compiled functions and their arguments, run by a small native driver.

A call writes its arguments into the program's memory (large ones are pointed to instead), runs the table, and copies
the results out. Operations without a kernel are NumPy calls on the same memory, in the middle of the program.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.codegen.program import Program
from fad.compile.ir.slice_writes import view_of
from fad.compile.legalize.numbers.integer_overflow import Beyond
from fad.compile.passes.constants import as_uniform
from fad.compile.pipeline import compile_native
from fad.compile.runtime.entry_point import Shut, builtin, gate, in_turn
from fad.compile.runtime.failures import EQUATIONS, FILE
from fad.compile.schedule.donation import find_reused
from fad.compile.targets.numpy_program import NumPyProgram, Writer
from fad.core.programs.graph import ARRAY, NUMBER, Graph, GuardFailed, ask, has_effects
from fad.core.runs.errstate import calm, is_strict, state
from fad.core.runs.journal import from_the_start, with_journal

_FEW = 16  # addresses that are written one by one sooner than all at once
_REMEMBERED = 2  # large results kept for another call
# The memory is that of one call at a time. The first `if` is a `try` where arrays of the caller are kept meanwhile.
_HEAD = """def run(xs):
    if state() is not calm[0] and strict(): return in_numpy(xs)
    try:
        with gate:
            {0}:"""
_LET_GO = """
            finally: let_go()"""
_FOOT = """
    except Beyond: pass
    except Shut as shut:
        if shut.__traceback__.tb_next is not None: raise
        return in_turn(run, xs)
    return in_numpy(xs)"""  # which has the answer, or the error in NumPy's words: an index out of range, say
_FIRST = _HEAD.count("\n") + 1  # the number of lines before a program's own


class NativeProgram:
    """A graph as native code; ``program(xs)`` returns the list of outputs."""

    lowering = "llvm"

    def __init__(self, graph: Graph, donated: tuple = ()):
        self.graph = graph
        program = compile_native(graph, lambda loop: NumPyProgram(loop, Writer(lends=True)))
        self.kinds = program.counts
        self.fallbacks = program.fallbacks
        self.arena = program.memory.arena
        self.kernels = len(program.table.kernels)
        self.keep = program
        self.reused = find_reused(program, donated) if donated else {}
        self.run = _entry_point(program, graph, self.reused)
        if any(map(has_effects, graph.equations)):
            self.run = with_journal(self.run)

    def __call__(self, xs: Any) -> list:
        return self.run(xs)

    def notes(self) -> list[str]:
        lines = [
            f"{sum(self.kinds.values())} steps ({', '.join(f'{n} {k}' for k, n in sorted(self.kinds.items()))}), "
            f"{self.kernels} different kernels, {_memory_of(self.keep)} bytes of memory"
        ]
        if self.keep.nests:
            lines.append(f"{len(self.keep.nests)} loops are one function each, with all loops in them")
        if self.reused:
            lines.append(f"{len(self.reused)} results take over the memory of donated arguments")
        if self.fallbacks:
            names = sorted(set(self.fallbacks))
            lines.append(f"{len(self.fallbacks)} calls of NumPy for operations without a kernel: {', '.join(names)}")
        return lines

    def steps(self) -> tuple[Graph, list]:
        """Return the program as it was scheduled: its graph, and its steps in the order in which they run."""
        return self.keep.memory.graph, self.keep.memory.steps


def _memory_of(program: Program) -> int:
    """Return the bytes of memory for the intermediate values of a program and of the bodies of its loops."""
    return program.memory.arena.nbytes + sum(map(_memory_of, program.bodies))


# --- the call -----------------------------------------------------------------------------------------------------


def _entry_point(program: Program, graph: Graph, taken: dict[int, int]) -> Callable:
    """Write the function that a call runs: arguments in, the table, results out.

    `graph` is what runs in NumPy where native code does not do. ``taken[i]`` is the number of the argument of which
    result i takes over the memory, if it is large and donated.
    """
    outside = _Outside(program)
    space: dict[str, Any] = {"drive": builtin("drive"), "at": program.memory.at, "fail": _failer(program)}
    in_numpy = _in_numpy(graph)
    if any(map(has_effects, graph.equations)):  # who is in the gate may wait for an effect of this very thread's
        in_numpy = from_the_start(in_numpy)
        space["in_turn"] = lambda run, xs: in_numpy(xs)
    else:
        space["in_turn"] = in_turn
    space.update(gate=gate(), Shut=Shut, let_go=outside.let_go)
    space.update(state=state, calm=calm, strict=is_strict, in_numpy=in_numpy, Beyond=Beyond)
    lines = [*_take_in(program, outside, space), *_give_memory(program, outside, space, taken)]
    lines += _running(program, space, len(lines) + _FIRST)
    lines.append(f"return [{', '.join(_output(program, space, i) for i in program.graph.outputs)}]")
    head, foot = (_HEAD.format("try"), _LET_GO + _FOOT) if outside.read else (_HEAD.format("if True"), _FOOT)
    exec(compile("\n".join([head, *[f"                {line}" for line in lines]]) + foot, FILE, "exec"), space)
    outside.let_go()
    return space["run"]


def _take_in(program: Program, outside: _Outside, space: dict) -> list[str]:
    """Return the lines that write the arguments into the program's memory, or point to them."""
    graph, lines = program.graph, []
    if graph.inputs:
        lines.append(f"{', '.join(f'x{k}' for k in range(len(graph.inputs)))}, = xs")
    for k, i in enumerate(graph.inputs):
        if program.memory.places[i].outside:
            space[f"point{k}"] = outside.pointer(i)
            lines.append(f"z{k} = point{k}(x{k})")
        elif graph.types[i].shape == ():
            space[f"a{k}"] = program.memory.at[i]
            lines.append(f"a{k}[()] = x{k}")
        elif program.memory.at[i].size:
            space[f"a{k}"] = program.memory.at[i]
            lines.append(f"a{k}[...] = x{k}")  # quicker than copyto where they are small
    return lines


def _give_memory(program: Program, outside: _Outside, space: dict, taken: dict[int, int]) -> list[str]:
    """Return the lines that give large results their memory."""
    lines = []
    for i, place in program.memory.places.items():
        if place.outside and place.first >= 0:
            space[f"fresh{i}"] = outside.fresh(i)
            lines.append(f"y{i} = fresh{i}({f'x{taken[i]}' if i in taken else ''})")
    return lines


def _running(program: Program, space: dict, before: int) -> list[str]:
    """Return the lines that run the table and the NumPy calls, behind some others; say which runs what operation."""
    lines, equations = [], space.setdefault(EQUATIONS, {})
    for n, (row, what, step) in enumerate(program.code.runs):
        if row is None:
            space[f"call{n}"] = what
            lines.append(f"call{n}()")
            if len(step.equations) == 1:
                equations[before + len(lines)] = step.equations[0]
        else:
            lines.append(f"code = drive({row})")
            lines.append(f"if code: fail(code, {what})")
    return lines


def _in_numpy(graph: Graph) -> Callable:
    """Return a function that runs the program as NumPy calls, and writes it so when it is first needed."""
    make = functools.cache(lambda: NumPyProgram(graph))
    return lambda xs: make()(xs)


def _output(program: Program, space: dict, i: int) -> str:
    graph = program.graph
    t = graph.types[i]
    if i in graph.inputs:
        return f"x{graph.inputs.index(i)}"
    if i in program.memory.reshaped:
        return f"y{program.memory.reshaped[i]}.reshape({t.shape})"
    root = program.memory.root(i)
    place = program.memory.places.get(root)
    if place is not None and place.outside:
        return f"y{root}"
    base = program.memory.places.get(program.memory.base[i])
    if base is not None and base.outside:
        return f"at[{i}].copy()"
    if t.kind == ARRAY and _is_zeros(graph.constants.get(i)):
        space[f"o{i}"] = functools.partial(np.zeros, t.shape, t.dtype)  # the system has pages of zeros
        return f"o{i}()"
    space[f"o{i}"] = program.memory.at[i]
    if t.kind == ARRAY:
        return f"o{i}.copy()"
    return f"o{i}.item()" if t.kind == NUMBER else f"o{i}[()]"


def _is_zeros(c: Any) -> bool:
    """Return whether a constant is positive zeros."""
    number = None if c is None else as_uniform(np.asarray(c))
    return number is not None and not any(number.tobytes())


def _failer(program: Program) -> Callable:
    graph = program.recorded

    def fail(code: int, start: int) -> None:
        if code < 0:
            program.watch.raise_again()
        position = program.guards[start + code - 1]
        if position is None or not (eq := graph.equations[position]).is_guard:
            raise Beyond
        raise GuardFailed(eq, position, ask(program.memory.at[eq.ins[0]][()], eq.params["convert"]))

    return fail


class _Outside:
    """The values that live outside of a program's memory: large arguments and results, other ones in each call."""

    def __init__(self, program: Program):
        self.program = program
        values = {i for i, place in program.memory.places.items() if place.outside}
        # Python may read any value if the program calls NumPy or reads values, otherwise those that are results
        everything = bool(program.guards) or any(row is None for row, *_ in program.code.runs)
        read = {i for i in program.graph.outputs if i not in program.memory.over and i not in program.memory.reshaped}
        self.views: dict[int, list] = {}
        for eq, o in reversed(program.memory.views):
            if program.memory.base[o] in values and (everything or o in read):
                read.update(eq.ins)
                self.views.setdefault(program.memory.base[o], []).insert(0, (eq, o))
        self.read = values if everything else set(self.views)
        shown = [o for _, o in program.memory.views if program.memory.base[o] in values]
        # a program does not keep the arrays of its last call
        self.let_go = functools.partial(program.memory.at.update, dict.fromkeys([*values, *shown]))

    def mover(self, i: int) -> Callable:
        """Return a function that lets a value be another array from now on."""
        arguments, at, address = self.program.code.arguments, self.program.memory.at, builtin("address")
        slots, views, read = self.program.memory.places[i].slots, self.views.get(i, ()), i in self.read
        many = len(slots) > _FEW
        few = [] if many else slots
        words = np.array([word for word, _ in slots], np.intp)
        offsets = np.array([offset for _, offset in slots], np.int64)
        numbers = arguments.data

        def move(x: np.ndarray) -> None:
            start = address(x)
            for word, offset in few:
                numbers[word] = start + offset
            if many:
                arguments[words] = offsets + start
            if read:
                at[i] = x
            for eq, o in views:
                at[o] = view_of(eq, at[eq.ins[0]])

        return move

    def pointer(self, i: int) -> Callable:
        """Return a function that points to an argument, or to a copy without gaps, and returns what must be kept."""
        move = self.mover(i)

        def point(x: Any) -> Any:
            x = x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order="C")
            move(x)
            return x

        return point

    def fresh(self, i: int) -> Callable:
        """Return a function that gives a large result its memory.

        New memory from the system costs as much as computing it, page by page. So the memory handed out last is
        remembered, and what nobody holds any more is handed out again: each time as an array of its own, because
        the shape or the flags of the last one may have been changed, or its memory donated.
        """
        move = self.mover(i)
        t = self.program.graph.types[i]
        given: list = []

        def fresh(donated: Any = None) -> np.ndarray:
            if donated is not None and donated.flags.carray:
                y = donated.view()  # likewise: it can be distinguished from the donated one
                move(y)
                return y
            for k in range(len(given)):
                if sys.getrefcount(given[k]) == 2:  # the list's own reference, and the argument's
                    y = given[k].view()
                    break
            else:
                given.append(np.empty(t.shape, t.dtype))
                y = given[-1].view()
                del given[:-_REMEMBERED]
            move(y)
            return y

        return fresh
