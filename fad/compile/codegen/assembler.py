"""Putting a native program together: each step becomes rows of a table of functions, or a NumPy call between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.compile.codegen.axis_ops import add_row
from fad.compile.codegen.control_flow import in_numpy, native_branch, native_loop
from fad.compile.codegen.convolution import add_convolution
from fad.compile.codegen.gather_scatter import add_lookup
from fad.compile.codegen.instruction_table import MOST_AXES, Table
from fad.compile.codegen.llvm.guards_and_gathers import guard_text
from fad.compile.codegen.llvm.interrupt_check import glance_text
from fad.compile.codegen.llvm.worker_pool import pool_text
from fad.compile.codegen.matmul import add_product
from fad.compile.codegen.special_functions import add_special
from fad.compile.ir.kernel import Node
from fad.compile.ir.lowered_ops import COMPLEX
from fad.compile.ir.slice_writes import left_out, outside, with_ellipsis
from fad.compile.ir.types import I64, LLVM_TYPE
from fad.compile.legalize.conv_layout import lay_examples_last
from fad.compile.legalize.decompose import composed
from fad.compile.legalize.gemm_accumulate import add_products
from fad.compile.legalize.narrow_selects import narrow_choices
from fad.compile.legalize.pooling import expand_pools, lay_by_rows, split_sums
from fad.compile.legalize.push_slices_up import slice_sooner
from fad.compile.legalize.scatter_to_gather import gather_scatters
from fad.compile.legalize.split_complex import split_complex
from fad.compile.machine.signals import Watch
from fad.compile.passes.cse import share_copies
from fad.compile.runtime import entry_point, jit_engine
from fad.compile.schedule.split_reductions import in_stages
from fad.compile.schedule.steps import Step, node_facts, shown
from fad.core.graph import ARRAY, NUMBER, Equation, Graph, GuardFailed, ask, same_outcome

_HOW = {"sum_over": "", "max_over": " maximum", "min_over": " minimum"}
_REWRITES = (
    composed, narrow_choices, expand_pools, slice_sooner, lay_examples_last, split_sums, lay_by_rows, gather_scatters,
    split_complex, share_copies, add_products,
)  # fmt: skip
# What programs need besides their kernels: the way in, the look at the clock, the pool of threads.
RUNTIME: dict[str, Callable[[], str]] = {**entry_point.RUNTIME, "glance": glance_text, "pool_run": pool_text}
_GUARDED = (np.dtype(bool), np.dtype(np.int64))


class Build(Table):
    """All that is known while a program is put together; the program keeps it alive."""

    def __init__(self, graph: Graph, inner: bool = False, index: int = -1, carried: Iterable = ()):
        self.recorded = graph
        for rewrite in _REWRITES:
            graph = rewrite(graph)
        super().__init__(graph, inner, index, carried)
        self.counts = {k: n for k, n in shown(self.steps).items() if k not in ("view", "call")}
        self.parts: list[tuple] = []  # ("run", from, to) | ("call", function, step)
        self.fallbacks: list[str] = []
        self.guards: dict[int, int] = {}  # table index -> position of the equation
        # guards have no results, and other operations may have been written anew
        self.position = {eq.outs[0] if eq.outs else id(eq): k for k, eq in enumerate(self.recorded.equations)}
        self.watch = Watch()
        self.fails = False  # whether a body has rows that may stop the program
        self.inners: list[tuple] = []  # (function that fills in what a row says of its bodies, what it keeps alive)

    def run(self) -> None:
        self.prepare()
        found = jit_engine.addresses({**self.kernels, **RUNTIME})
        self.watch.memory[0] = found["glance"]
        self._fill(found)

    def inner(self, graph: Graph, index: int = -1, carried: Iterable = ()) -> Build | None:
        """Return the flat program of a body, which may overwrite inputs; None if it has operations of NumPy's."""
        body = Build(graph, True, index, carried)
        body.watch = self.watch
        body.prepare()
        if body.fallbacks:
            self.fallbacks += body.fallbacks
            return None
        self.kernels.update(body.kernels)
        return body

    def prepare(self) -> None:
        """Write the table: all but the addresses of functions."""
        self.arrange()
        start = 0
        for step in self.steps:
            before = len(self.table)
            call = self._emit(step)
            if call is not None:
                if before > start:
                    self.parts.append(("run", start, before))
                start = len(self.table)
                self.parts.append(("call", call, step))
        if len(self.table) > start:
            self.parts.append(("run", start, len(self.table)))

    # --- steps --------------------------------------------------------------------------------------------------

    def _emit(self, step: Step) -> Callable | None:
        """Add a step to the table; return a function instead if it is a NumPy call."""
        if step.kind == "view":
            return None
        if step.kind == "loop":
            return self._loop(step)
        if step.kind == "sum":
            return self._sum(step)
        if step.kind == "matmul":
            eq = step.equations[0]
            return None if add_product(self, eq) else self._call(eq)
        if step.kind == "pieces":
            return self._pieces(step.equations[0])
        if step.kind == "lookup":
            eq = step.equations[0]
            return None if add_lookup(self, eq) else self._call(eq)
        if step.kind == "convolution":
            eq = step.equations[0]
            return None if add_convolution(self, eq) else self._call(eq)
        if step.kind == "row":
            eq = step.equations[0]
            return None if add_row(self, eq) or add_special(self, eq) else self._call(eq)
        if step.kind == "guard":
            return self._guard(step.equations[0])
        eq = step.equations[0]
        return None if eq.prim.name == "reshape_to" and self._reshape(eq) else self._call(eq)

    def _nodes(self, equations: list, templates: list) -> tuple:
        """Return the nodes of a fused group, its operands in order, and the number of each value."""
        graph = self.graph
        made = {eq.outs[0] for eq in equations}
        operands: list[int] = []
        seen: dict[int, int] = {}
        for eq, text in zip(equations, templates, strict=True):
            for k in node_facts(graph, eq, text)[1]:
                i = eq.ins[k]
                if i not in made and i not in seen:
                    seen[i] = len(operands)
                    operands.append(i)
        nodes, types = [], []
        for n, (eq, text) in enumerate(zip(equations, templates, strict=True)):
            work, read, selects = node_facts(graph, eq, text)
            for new, old in enumerate(read):
                if new != old:
                    text = text.replace(f"{{{old}}}", f"{{{new}}}")
            nodes.append(Node(text, tuple(seen[eq.ins[k]] for k in read), work, selects))
            types.append(LLVM_TYPE[graph.types[eq.outs[0]].dtype])
            seen[eq.outs[0]] = len(operands) + n
        return tuple(nodes), tuple(types), operands, seen

    def _loop(self, step: Step) -> Callable | None:
        nodes, types, operands, numbers = self._nodes(step.equations, step.templates)
        outs = sorted(step.members)
        if not outs:
            return None
        arrays = [self.at[i] for i in operands] + [self.at[o] for o in outs]
        extents, strides = self._layout(step.shape, arrays)
        if len(extents) > MOST_AXES:
            return self._one_by_one(step)
        self._kernel(nodes, types, operands, outs, [numbers[o] for o in outs], extents, strides)
        return None

    def _sum(self, step: Step) -> Callable | None:
        inside = len(step.templates)
        sums = step.equations[inside:]
        eq = sums[0]
        axis = eq.params["axis"]
        outs = [s.outs[0] for s in sums]
        shape = self.graph.types[eq.ins[0]].shape
        if inside:
            nodes, types, operands, numbers = self._nodes(step.equations[:inside], step.templates)
        else:
            nodes, types, operands, numbers = (), (), [eq.ins[0]], {eq.ins[0]: 0}
        stored = sorted(step.members.difference(outs))
        values = [numbers[o] for o in stored]
        for s in sums:
            values.append(numbers[s.ins[0]])
            if self.graph.types[s.ins[0]].dtype != self.graph.types[s.outs[0]].dtype:  # truth values are counted
                nodes = (*nodes, Node("{0}", (values[-1],), I64, False))
                types = (*types, I64)
                values[-1] = len(operands) + len(nodes) - 1
        start, stop = axis[0], axis[-1] + 1
        if axis == tuple(range(start, stop)):
            flat = [1 if d in axis else n for d, n in enumerate(shape)]
            arrays = [self.at[i] for i in (*operands, *stored)]
            arrays += [np.broadcast_to(self.at[o].reshape(flat), shape) for o in outs]
            extents, strides = self._layout(shape, arrays, kept=(start, stop))
            summed = [k for k, (s, n) in enumerate(zip(strides[-1], extents, strict=True)) if s == 0]
            inner = stop == len(shape)
            if inner:
                summed = [k for k in summed if k == len(extents) - 1 or extents[k] > 1]
            else:
                summed = [k for k in summed if k < len(extents) - 1 or extents[k] > 1]
            if len(extents) <= MOST_AXES and summed:
                how = ("inner" if inner else f"axis{summed[-1]}") + _HOW[eq.prim.name]
                targets, steps, rest = in_stages(self, outs, extents, strides, summed)
                self._kernel(nodes, types, operands, [*stored, *targets], values, extents, steps, how, len(stored))
                for part, o, lengths, moves, k in rest:
                    how = ("inner" if inner else f"axis{k}") + _HOW[eq.prim.name]
                    self._kernel((), (), [part], [o], [0], lengths, moves, how)
                return None
        return self._one_by_one(step)

    def _pieces(self, eq: Equation) -> Callable | None:
        """Copy or add arrays into slices of a result: joins, scattered slices, functional updates."""
        o = eq.outs[0]
        target = self.at[o]
        writes = []  # (array, value it belongs to or None, place in the target, add)
        if eq.prim.name == "join":
            start, axis = 0, eq.params["axis"]
            for i in eq.ins:
                stop = start + self.at[i].shape[axis]
                writes.append((self.at[i], i, (slice(None),) * axis + (slice(start, stop),), False))
                start = stop
        elif eq.prim is COMPLEX:
            for i, part in zip(eq.ins, (target.real, target.imag), strict=True):
                writes.append((self.at[i], i, part, False))
        elif eq.prim.name == "scatter":
            indices = eq.params["indices"]
            rest = left_out(indices, target.shape)
            apart = rest is not None
            rest = rest if apart else outside(indices[0], target.shape)
            zero = np.zeros((), target.dtype)
            self.kept.append(zero)
            writes += [(zero, None, index, False) for index in rest]
            adds = [n > 0 and not apart for n in range(len(indices))]
            writes += [(self.at[i], i, index, add) for i, index, add in zip(eq.ins, indices, adds, strict=True)]
        else:
            if not self.in_place(eq.ins[0], o):
                writes.append((self.at[eq.ins[0]], eq.ins[0], (), False))
            writes.append((self.at[eq.ins[1]], eq.ins[1], eq.params["template"], eq.prim.name == "index_add"))
        places = [index if type(index) is np.ndarray else target[with_ellipsis(index)] for _, _, index, _ in writes]
        layouts = [
            self._layout(place.shape, [source, place]) for (source, *_), place in zip(writes, places, strict=True)
        ]
        if any(len(extents) > MOST_AXES for extents, _ in layouts):
            return self._call(eq)
        for (source, i, index, add), place, (extents, strides) in zip(writes, places, layouts, strict=True):
            if place.size and not self.is_there(i, o, index):
                self._write(source, i, place, o, add, extents, strides)
        return None

    def failing(self, eq: Equation) -> None:
        """Say that the next row of the table stops the program where this equation has no answer."""
        if self.within:
            self.fails = True
        else:
            self.guards[len(self.table)] = self.position[eq.outs[0] if eq.outs else id(eq)]

    def _guard(self, eq: Equation) -> Callable | None:
        i = eq.ins[0]
        t = self.graph.types[i]
        want = eq.params["outcome"]
        position = self.position[id(eq)]
        if t.shape == () and type(want) in (bool, int) and t.dtype in _GUARDED:
            width = 8 if t.dtype.kind == "b" else 64
            if (width == 8) == (type(want) is bool):
                self.failing(eq)
                self._function(f"guard{width}", lambda: guard_text(width))
                self.words.append(self.address(i, len(self.words)))
                self.words.append(int(want))
                return None
        at = self.at
        convert = eq.params["convert"]
        get = self._getter(i)

        def check():
            found = ask(get(at), convert)
            if not same_outcome(want, found):
                raise GuardFailed(eq, position, found)

        return check

    def _getter(self, i: int) -> Callable:
        kind = self.graph.types[i].kind
        if kind == ARRAY:
            return lambda at: at[i]
        if i in self.graph.constants:
            c = self.graph.constants[i]
            return lambda at: c
        return (lambda at: at[i].item()) if kind == NUMBER else (lambda at: at[i][()])

    def _call(self, eq: Equation) -> Callable | None:
        """Return a NumPy call of an operation, from the arena to the arena."""
        if eq.prim.archetype in ("loop", "branch"):
            native = native_loop if eq.prim.archetype == "loop" else native_branch
            if native(self, eq):
                self.counts[eq.prim.name] = self.counts.get(eq.prim.name, 0) + 1
                return None
            eq = in_numpy(self.graph, eq)
        self.fallbacks.append(eq.prim.name)
        at, params, outs = self.at, eq.params, eq.outs
        getters = [self._getter(i) for i in eq.ins]
        forward = eq.prim.forward
        if isinstance(forward, np.ufunc) and not params and not eq.prim.multi and self.at[outs[0]].ndim:
            target = outs[0]
            return lambda: forward(*[get(at) for get in getters], out=at[target])
        if eq.prim.multi:

            shared = not self.over.keys().isdisjoint(outs)  # then results may be operands that others overwrite

            def many():
                ys = forward(*[get(at) for get in getters], **params)
                for o, y in zip(outs, [np.array(y) for y in ys] if shared else ys, strict=True):
                    at[o][...] = y

            return many

        def one():
            at[outs[0]][...] = forward(*[get(at) for get in getters], **params)

        return one

    def _one_by_one(self, step: Step) -> Callable:
        """Return a function that runs a group's operations as NumPy calls."""
        calls = [(eq.prim.forward, [self._getter_or_local(i) for i in eq.ins], eq) for eq in step.equations]
        at = self.at
        stored = set(self._stored(step))
        self.fallbacks += [eq.prim.name for eq in step.equations]

        def run():
            local: dict[int, Any] = {}
            for forward, getters, eq in calls:
                y = forward(*[get(at, local) for get in getters], **eq.params)
                o = eq.outs[0]
                local[o] = y
                if o in stored:
                    at[o][...] = y

        return run

    def _getter_or_local(self, i: int) -> Callable:
        get = self._getter(i)
        return lambda at, local: local[i] if i in local else get(at)

    # --- putting it together ------------------------------------------------------------------------------------

    def _fill(self, found: dict[str, int]) -> None:
        for fill, *_ in self.inners:
            fill(found)
        self.arguments = np.array(self.words or [0], np.int64)
        start = self.arguments.ctypes.data
        self.functions = np.array([found[name] for name, _ in self.table] or [0], np.uint64)
        for word, name in self.late:
            self.arguments[word] = found[name]
        self.pointers = np.array([start + 8 * word for _, word in self.table] or [0], np.int64)
        self.runs = []
        for part in self.parts:
            if part[0] == "run":
                _, a, b = part
                starts = (self.functions.ctypes.data + 8 * a, self.pointers.ctypes.data + 8 * a)
                row = np.array([*starts, b - a, self.watch.address], np.int64)
                self.runs.append((row.ctypes.data, a, row))
            else:
                self.runs.append((None, part[1], part[2]))
