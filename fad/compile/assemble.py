"""Putting a native program together: each step becomes rows of a table of functions, or a NumPy call between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.composed import composed
from fad.compile.groups import Step, node_facts, shown
from fad.compile.inner import in_numpy, native_branch, native_loop
from fad.compile.llvm import engine
from fad.compile.llvm.emit import I64, LLVM_TYPE
from fad.compile.llvm.fixed import DRIVER, guard_text
from fad.compile.llvm.interrupts import glance_text, watch
from fad.compile.llvm.kernels import Kernel, Node, facts, kernel_text
from fad.compile.llvm.pool import pool, pool_text
from fad.compile.lookups import add_lookup
from fad.compile.memory import Memory
from fad.compile.parts import cut, summed_axis
from fad.compile.pieces import data_address, left_out, outside, with_ellipsis
from fad.compile.planes import COMPLEX, split_complex
from fad.compile.pools import expand_pools, lay_by_rows, split_sums
from fad.compile.products import add_product
from fad.compile.rows import add_row
from fad.compile.specials import add_special
from fad.compile.stencils import gather_scatters
from fad.core.graph import ARRAY, NUMBER, Equation, Graph, GuardFailed, Type, ask, same_outcome

MOST_AXES = 4
_HOW = {"sum_over": "", "max_over": " maximum", "min_over": " minimum"}
_GUARDED = (np.dtype(bool), np.dtype(np.int64))


class Build(Memory):
    """All that is known while a program is put together; the program keeps it alive."""

    def __init__(self, graph: Graph, inner: bool = False, index: int = -1):
        self.recorded = graph
        for rewrite in (composed, expand_pools, split_sums, lay_by_rows, gather_scatters, split_complex):
            graph = rewrite(graph)
        super().__init__(graph, inner, index)
        self.counts = {k: n for k, n in shown(self.steps).items() if k not in ("view", "call")}
        self.kernels: dict[str, Callable] = {}
        self.words: list[int] = []  # all arguments of all kernels
        self.table: list[tuple[str, int]] = []  # (function, first word)
        self.parts: list[tuple] = []  # ("run", from, to) | ("call", function, step)
        self.fallbacks: list[str] = []
        self.guards: dict[int, int] = {}  # table index -> position of the equation
        # guards have no results, and other operations may have been written anew
        self.position = {eq.outs[0] if eq.outs else id(eq): k for k, eq in enumerate(self.recorded.equations)}
        self.fails = False  # whether a body has rows that may stop the program
        self.layouts: dict[Any, tuple] = {}
        self.kept: list = []  # constants made on the way
        self.late: list[tuple[int, str]] = []  # (word, the function whose address it will be)
        self.inners: list[tuple] = []  # (function that fills in what a row says of its bodies, what it keeps alive)

    def run(self) -> None:
        self.prepare()
        found = engine.addresses({**self.kernels, "driver": lambda: DRIVER, "glance": glance_text})
        watch().memory[0] = found["glance"]
        self._fill(found)

    def inner(self, graph: Graph, index: int = -1) -> Build | None:
        """Return the flat program of a body; None if it has operations that are NumPy calls."""
        body = Build(graph, True, index)
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

    # --- memory -------------------------------------------------------------------------------------------------

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
            return None if add_lookup(self, eq, _collapse) else self._call(eq)
        if step.kind == "row":
            eq = step.equations[0]
            return None if add_row(self, eq) or add_special(self, eq) else self._call(eq)
        if step.kind == "guard":
            return self._guard(step.equations[0])
        eq = step.equations[0]
        return None if eq.prim.name == "reshape_to" and self._reshape(eq) else self._call(eq)

    def _function(self, name: str, text: Callable) -> None:
        self.kernels.setdefault(name, text)
        self.table.append((name, len(self.words)))

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

    def _layout(self, shape: tuple, arrays: list, kept: tuple = ()) -> tuple:
        """Collapse the axes over which all arrays run evenly; return the extents and each array's strides.

        Axes below ``kept`` belong to another group than the rest, with which they do not merge.
        """
        strides = tuple([_broadcast_strides(a, shape) for a in arrays])
        key = (shape, strides, kept)
        found = self.layouts.get(key)
        if found is None:
            found = self.layouts[key] = _collapse(shape, strides, kept)
        return found

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

    def _kernel(self, nodes, types, operands, outs, values, extents, strides, reduce="", stored=0) -> None:
        graph = self.graph
        kinds = tuple(LLVM_TYPE[graph.types[i].dtype] for i in operands)
        modes = tuple(_mode(self.at[i], s, extents) for i, s in zip(operands, strides[: len(operands)], strict=True))
        kernel = Kernel(len(extents), kinds, modes, nodes, types, tuple(values), reduce, False, stored)
        everything = [*operands, *outs]
        split = cut(kernel, extents)
        if split is None or split[0] != summed_axis(kernel):
            self._rows(kernel, extents, strides, lambda k, offset, _: self._point(everything[k], offset), split)
        else:
            self._sum_of_parts(kernel, everything, extents, strides, split)

    def _sum_of_parts(self, kernel: Kernel, everything: list, extents, strides, split: tuple) -> None:
        """Add up in parts: the parts' sums go into an array of their own, and are added after."""
        first, n = len(kernel.modes) + kernel.stored, len(split[1])
        outs, rest = everything[first:], extents[1:]
        sums = [np.empty((n, *rest), self.graph.types[o].dtype) for o in outs]
        self.kept += sums
        numbers = {start: k for k, (start, _) in enumerate(split[1])}
        own = [(0, *p.strides[1:]) for p in sums]

        def point(k: int, offset: int, start: int) -> int:
            if k < first:
                return self._point(everything[k], offset)
            return data_address(sums[k - first][numbers[start] :])

        self._rows(kernel, extents, (*strides[:first], *own), point, split)
        how = ("inner" if len(extents) == 1 else "axis0") + kernel.reduce[len(kernel.reduce.split(" ")[0]) :]
        for o, partial, steps in zip(outs, sums, strides[first:], strict=True):
            t = LLVM_TYPE[partial.dtype]
            total = Kernel(len(extents), (t,), ("c",), (), (), (0,), how)
            places = lambda k, offset, _, o=o, p=partial: data_address(p) if k == 0 else self._point(o, 0)
            self._rows(total, (n, *rest), (partial.strides, steps), places)

    def _point(self, i: int, offset: int) -> int:
        return self.address(i, len(self.words), offset)

    def _rows(self, kernel: Kernel, extents, strides, point: Callable, split: Any = None) -> None:
        """Add a kernel to the table, whole or in parts; ``point(k, offset, start)`` gives the address of array k."""
        name, words = facts(kernel)
        if split is None:
            self._function(name, lambda: kernel_text(kernel))
            self._row(words, extents, strides, point, 0, (0, extents[0]))
            return
        self.kernels.setdefault(name, lambda: kernel_text(kernel))
        self._function("pool_run", pool_text)
        self.late.append((len(self.words) + 1, name))
        axis, bounds = split
        self.words += [len(bounds), 0, len(words), pool().address]
        for part in bounds:
            self._row(words, extents, strides, point, axis, part)

    def _row(self, words, extents, strides, point, axis: int, part: tuple[int, int]) -> None:
        start, stop = part
        for word in words:
            if word[0] == "n":
                self.words.append(stop - start if word[1] == axis else extents[word[1]])
            elif word[0] == "p":
                offset = start * strides[word[1]][axis] if start else 0
                self.words.append(point(word[1], offset, start))
            else:
                self.words.append(strides[word[1]][word[2]])

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
            if len(extents) <= MOST_AXES and len(summed) == 1:
                where = "inner" if inner else f"axis{summed[0]}"
                how = where + _HOW[eq.prim.name]
                self._kernel(nodes, types, operands, [*stored, *outs], values, extents, strides, how, len(stored))
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

    def _write(self, source, i, place, o, add, extents, strides) -> None:
        t = LLVM_TYPE[place.dtype]
        mode = _mode(source, strides[0], extents)
        spread = extents[-1] > 1 and strides[1][-1] != place.itemsize
        if add:
            modes = (mode, "s" if spread else "c")
            node = (Node("({0} + {1})", (0, 1), t, False),)
            kernel = Kernel(len(extents), (t, t), modes, node, (t,), (2,), "", spread)
            arrays = [(source, i), (place, o), (place, o)]
            strides = (strides[0], strides[1], strides[1])
        else:
            kernel = Kernel(len(extents), (t,), (mode,), (), (), (0,), "", spread)
            arrays = [(source, i), (place, o)]

        def point(k: int, offset: int, _: int) -> int:
            array, value = arrays[k]
            if value is None:
                return data_address(array) + offset
            return self.address_in(value, len(self.words), data_address(array) + offset)

        self._rows(kernel, extents, strides, point, cut(kernel, extents))

    def _reshape(self, eq: Equation) -> bool:
        """Copy an array that does not lie evenly into a new shape; false if it has too many axes."""
        (x,), (o,) = eq.ins, eq.outs
        source, place = self.at[x], self.at[o]
        if place.dtype not in LLVM_TYPE or not place.size or not place.flags.c_contiguous:
            return False
        place = place.reshape(source.shape)
        extents, strides = self._layout(source.shape, [source, place])
        if len(extents) > MOST_AXES:
            return False
        self._write(source, x, place, o, False, extents, strides)
        return True

    def copy(self, source: tuple, o: int) -> bool:
        """Copy an array, or one element everywhere, into a value; `source` is the array and the value it is, if any."""
        extents, strides = self._layout(self.at[o].shape, [source[0], self.at[o]])
        if len(extents) > MOST_AXES:
            return False
        if source[1] is None:
            self.kept.append(source[0])
        self._write(*source, self.at[o], o, False, extents, strides)
        return True

    def expanded(self, array: np.ndarray, i: int | None, shape: tuple) -> tuple[np.ndarray, int | None]:
        """Return an array, value i if it is one, broadcast to a shape in memory without gaps."""
        if i is None or i in self.graph.constants:
            return np.ascontiguousarray(np.broadcast_to(array, shape)), None
        v = len(self.graph.types)
        self.graph.types.append(Type(shape, array.dtype))
        self.base[v] = v
        self.at[v] = np.empty(shape, array.dtype)
        extents, strides = self._layout(shape, [array, self.at[v]])
        self._write(array, i, self.at[v], v, False, extents, strides)
        return self.at[v], v

    def failing(self, eq: Equation) -> None:
        """Say that the next row of the table stops the program where this equation has no answer."""
        if self.within:
            self.fails = True
        else:
            self.guards[len(self.table)] = self.position[eq.outs[0] if eq.outs else id(eq)]

    def contiguous(self, i: int, rows: bool = False) -> int:
        """Return a value that lies in memory without gaps, a copy if need be; with `rows`, each of its rows does."""
        a = self.at[i]
        if a.flags.c_contiguous or (rows and (a.ndim == 1 or (len(a) and a[0].flags.c_contiguous))):
            return i
        v = len(self.graph.types)
        self.graph.types.append(self.graph.types[i])
        self.base[v] = v
        if i in self.graph.constants:
            self.at[v] = np.ascontiguousarray(a)
            return v
        self.at[v] = np.empty(a.shape, a.dtype)
        extents, strides = self._layout(a.shape, [a, self.at[v]])
        self._write(a, i, self.at[v], v, False, extents, strides)
        return v

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

            def many():
                for o, y in zip(outs, forward(*[get(at) for get in getters], **params), strict=True):
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
                row = np.array([*starts, b - a, watch().address], np.int64)
                self.runs.append((row.ctypes.data, a, row))
            else:
                self.runs.append((None, part[1], part[2]))


def _broadcast_strides(a: np.ndarray, shape: tuple) -> tuple:
    if a.shape == shape:
        return a.strides
    missing = len(shape) - a.ndim
    return (0,) * missing + tuple([0 if n == 1 else s for s, n in zip(a.strides, a.shape, strict=True)])


def _collapse(shape: tuple, strides: tuple, kept: tuple) -> tuple:
    """Drop axes of length one and merge neighbours; return ``(extents, strides per array)``.

    With `kept` ``(start, stop)``, the axes from start to stop are summed: they merge among themselves only,
    stay one axis at least, and what follows them does, too.
    """
    start, stop = kept or (0, 0)
    axes: list[list] = []  # [extent, strides per array, side: before, within or behind the summed axes]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        mine = [s[d] for s in strides]
        side = (d >= start) + (d >= stop)
        if axes and axes[-1][2] == side and all(o == m * n for o, m in zip(axes[-1][1], mine, strict=True)):
            axes[-1][0] *= n
            axes[-1][1] = mine
        else:
            axes.append([n, mine, side])
    if kept and not any(side == 1 for *_, side in axes):
        before = sum(side == 0 for *_, side in axes)
        axes.insert(before, [1, [0] * len(strides), 1])
    if not axes or (kept and stop < len(shape) and axes[-1][2] != 2):
        axes.append([1, [0] * len(strides), 2])
    extents = tuple(a[0] for a in axes)
    return extents, tuple(tuple(a[1][k] for a in axes) for k in range(len(strides)))


def _mode(array: np.ndarray, strides: tuple, extents: tuple) -> str:
    if extents[-1] == 1:
        return "c" if len(extents) == 1 or any(strides[:-1]) else "u"
    if not any(strides):
        return "u"
    if strides[-1] == 0:
        return "0"
    return "c" if strides[-1] == array.itemsize else "s"
