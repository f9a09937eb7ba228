"""Native programs: a flat table of compiled functions and their arguments, run by a small native driver.

All intermediate values live in one arena, planned once; a call writes its arguments there (large ones are pointed to
instead), runs the table, and copies the results out. Operations without a kernel are NumPy calls on the same arena,
in the middle of the program.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.groups import Step, node_facts, plan_steps, shown
from fad.compile.llvm import engine
from fad.compile.llvm.emit import LLVM_TYPE
from fad.compile.llvm.fixed import DRIVER, dots_text, guard_text, rows_text
from fad.compile.llvm.kernels import Kernel, Node, facts, kernel_text
from fad.core.graph import ARRAY, NUMBER, Equation, Graph, GuardFailed, ask, same_outcome

LARGE = 1 << 15  # bytes above which an argument or result is pointed to, not copied
SMALL_PRODUCT = 48**3  # multiplications up to which a matrix product is done here and not by BLAS
MOST_AXES = 4
_GUARDED = (np.dtype(bool), np.dtype(np.int64))

_run_table = None


def _driver() -> Callable:
    global _run_table
    if _run_table is None:
        address = engine.addresses({"driver": lambda: DRIVER})["driver"]
        _run_table = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)
    return _run_table


class NativeProgram:
    """A graph as native code; ``program(xs)`` returns the list of outputs."""

    lowering = "llvm"

    def __init__(self, graph: Graph):
        self.graph = graph
        build = _Build(graph)
        build.run()
        self.kinds = build.counts
        self.fallbacks = build.fallbacks
        self.arena = build.arena
        self.kernels = len(build.kernels)
        self.lock = threading.Lock()
        self.keep = build
        self.function = _entry_point(build)

    def __call__(self, xs: Any) -> list:
        with self.lock:
            return self.function(xs)

    def notes(self) -> list[str]:
        lines = [
            f"{sum(self.kinds.values())} steps ({', '.join(f'{n} {k}' for k, n in sorted(self.kinds.items()))}), "
            f"{self.kernels} different kernels, {self.arena.nbytes} bytes of memory"
        ]
        if self.fallbacks:
            names = sorted(set(self.fallbacks))
            lines.append(f"{len(self.fallbacks)} calls of NumPy for operations without a kernel: {', '.join(names)}")
        return lines


class _Place:
    """The memory of one value that is no view: offset in the arena, or an outside array known at each call."""

    __slots__ = ("value", "nbytes", "first", "last", "outside", "offset", "slots")

    def __init__(self, value: int, nbytes: int):
        self.value = value
        self.nbytes = nbytes
        self.first = -1
        self.last = -1
        self.outside = False
        self.offset = 0
        self.slots: list[tuple[int, int]] = []  # (word in the argument table, offset in bytes)


class _Build:
    """All that is known while a program is put together; the program keeps it alive."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.steps: list[Step] = plan_steps(graph)
        self.counts = {k: n for k, n in shown(self.steps).items() if k not in ("view", "call")}
        self.at: dict[int, Any] = {}  # value -> array, or view of one
        self.base: dict[int, int] = {}  # value -> value whose memory it is in
        self.places: dict[int, _Place] = {}
        self.views: list[tuple[Equation, int]] = []
        self.kernels: dict[str, Callable] = {}
        self.words: list[int] = []  # all arguments of all kernels
        self.table: list[tuple[str, int]] = []  # (function, first word)
        self.parts: list[tuple] = []  # ("run", from, to) | ("call", function) | ("guard", table index, equation)
        self.fallbacks: list[str] = []
        self.guards: dict[int, int] = {}  # table index -> position of the equation
        self.position = {id(eq): k for k, eq in enumerate(graph.equations)}
        self.escaping: dict[int, set[int]] = {}
        self.layouts: dict[Any, tuple] = {}
        self.addresses: dict[int, int] = {}
        self.kept: list = []  # constants made on the way

    def run(self) -> None:
        self._split_wide()
        self._find_places()
        self._lay_out()
        self._make_arrays()
        start = 0
        for step in self.steps:
            before = len(self.table)
            call = self._emit(step)
            if call is not None:
                if before > start:
                    self.parts.append(("run", start, before))
                start = len(self.table)
                self.parts.append(("call", call))
        if len(self.table) > start:
            self.parts.append(("run", start, len(self.table)))
        self._link()

    # --- memory -------------------------------------------------------------------------------------------------

    def _split_wide(self) -> None:
        """Find what each loop must store: what a later step, an output or a guard reads."""
        reads: dict[int, int] = dict.fromkeys(self.graph.outputs, -1)
        for k, step in enumerate(self.steps):
            for eq in step.equations:
                for i in eq.ins:
                    if i not in step.members or step.kind == "sum":
                        reads.setdefault(i, k)
        for step in self.steps:
            if step.kind == "loop":
                step.members = {o for o in step.members if o in reads}

    def _model(self, i: int) -> np.ndarray:
        t = self.graph.types[i]
        return np.empty(t.shape, t.dtype)

    def _find_places(self) -> None:
        graph = self.graph
        for i, c in graph.constants.items():
            if graph.types[i].dtype.kind != "O":
                self.at[i] = np.asarray(c)
                self.base[i] = i
        for i in graph.inputs:
            self._new(i, -1, outside=graph.types[i].kind == ARRAY)
        for k, step in enumerate(self.steps):
            for eq in step.equations:
                for i in eq.ins:
                    if i in self.base and self.base[i] in self.places:
                        self.places[self.base[i]].last = k
            if step.kind == "view":
                self._find_view(step, k)
            else:
                for o in self._stored(step):
                    self._new(o, k, outside=False)
        end = len(self.steps)
        for i in graph.outputs:
            place = self.places.get(self.base.get(i, -1))
            if place is not None:
                whole = place.value == i and place.nbytes > LARGE and graph.types[i].kind == ARRAY
                place.outside = place.outside or (whole and place.first >= 0)
                place.last = end

    def _stored(self, step: Step) -> Any:
        if step.kind == "loop":
            return sorted(step.members)
        if step.kind == "sum":
            return step.equations[-1].outs
        return step.equations[0].outs

    def _new(self, i: int, k: int, outside: bool) -> None:
        model = self._model(i)
        self.at[i] = model
        self.base[i] = i
        place = _Place(i, model.nbytes)
        place.first = place.last = k
        place.outside = outside and model.nbytes > LARGE
        self.places[i] = place

    def _find_view(self, step: Step, k: int) -> None:
        (eq,) = step.equations
        x, o = eq.ins[0], eq.outs[0]
        y = eq.prim.forward(self.at[x], **eq.params)
        if isinstance(y, np.ndarray) and np.may_share_memory(y, self.at[x]) and (y.size or not self.at[x].size):
            self.at[o] = y
            self.base[o] = self.base[x]
            self.views.append((eq, o))
        else:
            step.kind = "call"
            if y is not None and not isinstance(y, np.ndarray):
                y = np.asarray(y)
            self._new(o, k, outside=False)

    def _lay_out(self) -> None:
        """Give every inside place an offset; memory that is free again goes to the next value of the same size class."""
        starting: dict[int, list[_Place]] = {}
        ending: dict[int, list[_Place]] = {}
        for place in self.places.values():
            if not place.outside:
                starting.setdefault(place.first, []).append(place)
                ending.setdefault(place.last, []).append(place)
        free: dict[int, list[int]] = {}
        top = 0
        for k in range(-1, len(self.steps) + 1):
            for place in starting.get(k, ()):
                size = 64 * max(1, 1 << max(0, math.ceil(math.log2(max(1, place.nbytes) / 64))))
                if place.nbytes > 1 << 16:
                    size = -(-place.nbytes // 4096) * 4096
                waiting = free.get(size)
                if waiting:
                    place.offset = waiting.pop()
                else:
                    place.offset, top = top, top + size
            for place in ending.get(k, ()):
                size = 64 * max(1, 1 << max(0, math.ceil(math.log2(max(1, place.nbytes) / 64))))
                if place.nbytes > 1 << 16:
                    size = -(-place.nbytes // 4096) * 4096
                free.setdefault(size, []).append(place.offset)
        raw = np.zeros(top + 64, np.uint8)
        shift = -raw.ctypes.data % 64
        self.arena = raw[shift : shift + top]
        self.raw = raw

    def _make_arrays(self) -> None:
        start = _data(self.arena)
        for i, place in self.places.items():
            if not place.outside:
                t = self.graph.types[i]
                self.at[i] = np.ndarray(t.shape, t.dtype, self.arena, place.offset)
                self.addresses[i] = start + place.offset
        for eq, o in self.views:
            self.at[o] = eq.prim.forward(self.at[eq.ins[0]], **eq.params)

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
            return self._matmul(step.equations[0])
        if step.kind == "pieces":
            return self._pieces(step.equations[0])
        if step.kind == "guard":
            return self._guard(step.equations[0])
        return self._call(step.equations[0])

    def _address(self, i: int) -> int:
        """Return the address of a value's first element, and remember the word if it is known at each call only."""
        address = self.addresses.get(i)
        if address is None:
            address = self.addresses[i] = _data(self.at[i])
        return self._address_in(None, i, address)

    def _address_in(self, array: Any, i: int, address: int = 0) -> int:
        """Return the address of a piece of a value's memory, likewise."""
        address = address or _data(array)
        place = self.places.get(self.base[i])
        if place is not None and place.outside:
            place.slots.append((len(self.words), address - _data(self.at[place.value])))
        return address

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
        self._kernel(nodes, types, operands, outs, [numbers[o] for o in outs], extents, strides, "")
        return None

    def _kernel(self, nodes, types, operands, outs, values, extents, strides, reduce) -> None:
        graph = self.graph
        kinds = tuple(LLVM_TYPE[graph.types[i].dtype] for i in operands)
        modes = tuple(_mode(self.at[i], s, extents) for i, s in zip(operands, strides[: len(operands)], strict=True))
        kernel = Kernel(len(extents), kinds, modes, nodes, types, tuple(values), reduce)
        name, words = facts(kernel)
        self._function(name, lambda: kernel_text(kernel))
        everything = [*operands, *outs]
        for word in words:
            if word[0] == "n":
                self.words.append(extents[word[1]])
            elif word[0] == "p":
                self.words.append(self._address(everything[word[1]]))
            else:
                self.words.append(strides[word[1]][word[2]])

    def _sum(self, step: Step) -> Callable | None:
        eq = step.equations[-1]
        axis = eq.params["axis"]
        x, o = eq.ins[0], eq.outs[0]
        shape = self.graph.types[x].shape
        if len(step.equations) > 1:
            nodes, types, operands, numbers = self._nodes(step.equations[:-1], step.templates)
            value = numbers[x]
        else:
            nodes, types, operands, value = (), (), [x], 0
        ndim = len(shape)
        inner = axis == tuple(range(ndim - len(axis), ndim))
        outer = axis == tuple(range(len(axis)))
        out = self.at[o].reshape([1 if d in axis else n for d, n in enumerate(shape)])
        arrays = [*[self.at[i] for i in operands], np.broadcast_to(out, shape)]
        if inner:
            extents, strides = self._layout(shape, arrays, kept=("inner", ndim - len(axis)))
            if len(extents) <= MOST_AXES and _inner_is_one(extents, strides):
                self._kernel(nodes, types, operands, [o], [value], extents, strides, "inner")
                return None
        elif outer:
            extents, strides = self._layout(shape, arrays, kept=("outer", len(axis)))
            if 2 <= len(extents) <= MOST_AXES and strides[-1][0] == 0 and 0 not in strides[-1][1:]:
                self._kernel(nodes, types, operands, [o], [value], extents, strides, "outer")
                return None
        return self._one_by_one(step)

    def _matmul(self, eq: Equation) -> Callable | None:
        x, y = (self.at[i] for i in eq.ins)
        o = eq.outs[0]
        a = x if x.ndim == 2 else x[None, :]
        b = y if y.ndim == 2 else y[:, None]
        m, k, n = a.shape[0], a.shape[1], b.shape[1]
        if m * k * n > SMALL_PRODUCT or m * k * n == 0:
            return self._call(eq)
        t = LLVM_TYPE[self.graph.types[o].dtype]
        size = self.at[o].itemsize
        if b.strides[1] == size or n == 1:
            if n == 1 and (b.strides[0] == size or k == 1) and (a.strides[1] == size or k == 1):
                self._function(f"mm_dots_{t}", lambda: dots_text(t, True))
            else:
                self._function(f"mm_rows_{t}", lambda: rows_text(t))
        elif b.strides[0] == size and a.strides[1] == size:
            self._function(f"mm_dots_{t}", lambda: dots_text(t, True))
        else:
            self._function(f"mm_any_{t}", lambda: dots_text(t, False))
        for i in (*eq.ins, o):
            self.words.append(self._address(i))
        self.words += [m, n, k, *a.strides, *b.strides, n * size]
        return None

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
        elif eq.prim.name == "scatter":
            zero = np.zeros((), target.dtype)
            self.kept.append(zero)
            writes.append((zero, None, (), False))
            indices = eq.params["indices"]
            writes += [(self.at[i], i, index, len(indices) > 1) for i, index in zip(eq.ins, indices, strict=True)]
        else:
            writes.append((self.at[eq.ins[0]], eq.ins[0], (), False))
            writes.append((self.at[eq.ins[1]], eq.ins[1], eq.params["template"], eq.prim.name == "index_add"))
        places = [target[_with_ellipsis(index)] for _, _, index, _ in writes]
        layouts = [
            self._layout(place.shape, [source, place]) for (source, *_), place in zip(writes, places, strict=True)
        ]
        if any(len(extents) > MOST_AXES for extents, _ in layouts):
            return self._call(eq)
        for (source, i, _, add), place, (extents, strides) in zip(writes, places, layouts, strict=True):
            if place.size:
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
        name, words = facts(kernel)
        self._function(name, lambda: kernel_text(kernel))
        for word in words:
            if word[0] == "n":
                self.words.append(extents[word[1]])
            elif word[0] == "p":
                array, value = arrays[word[1]]
                self.words.append(_data(array) if value is None else self._address_in(array, value))
            else:
                self.words.append(strides[word[1]][word[2]])

    def _guard(self, eq: Equation) -> Callable | None:
        i = eq.ins[0]
        t = self.graph.types[i]
        want = eq.params["outcome"]
        position = self.position[id(eq)]
        if t.shape == () and type(want) in (bool, int) and t.dtype in _GUARDED:
            if (t.dtype.kind == "b") == (type(want) is bool):
                width = 8 if t.dtype.kind == "b" else 64
                self.guards[len(self.table)] = position
                self._function(f"guard{width}", lambda: guard_text(width))
                self.words.append(self._address(i))
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

    def _call(self, eq: Equation) -> Callable:
        """Return a NumPy call of an operation, from the arena to the arena."""
        self.fallbacks.append(eq.prim.name)
        at, params, outs = self.at, eq.params, eq.outs
        getters = [self._getter(i) for i in eq.ins]
        forward = eq.prim.forward
        if isinstance(forward, np.ufunc) and not params and self.at[outs[0]].ndim:
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

    def _link(self) -> None:
        found = engine.addresses({**self.kernels, "driver": lambda: DRIVER})
        self.arguments = np.array(self.words or [0], np.int64)
        start = self.arguments.ctypes.data
        self.functions = np.array([found[name] for name, _ in self.table] or [0], np.uint64)
        self.pointers = np.array([start + 8 * word for _, word in self.table] or [0], np.int64)
        self.runs = []
        for part in self.parts:
            if part[0] == "run":
                _, a, b = part
                row = np.array([self.functions.ctypes.data + 8 * a, self.pointers.ctypes.data + 8 * a, b - a], np.int64)
                self.runs.append((row.ctypes.data, a, row))
            else:
                self.runs.append((None, part[1], None))


def _with_ellipsis(index: Any) -> tuple:
    """Return an index that gives an array even where it names one element."""
    index = index if type(index) is tuple else (index,)
    return index if any(p is Ellipsis for p in index) else (*index, ...)


def _data(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _broadcast_strides(a: np.ndarray, shape: tuple) -> tuple:
    missing = len(shape) - a.ndim
    return (0,) * missing + tuple([0 if n == 1 else s for s, n in zip(a.strides, a.shape, strict=True)])


def _collapse(shape: tuple, strides: tuple, kept: tuple) -> tuple:
    """Drop axes of length one and merge neighbours; return ``(extents, strides per array)``."""
    border = kept[1] if kept else -1
    axes: list[list] = []  # [extent, strides per array, side of the border]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        mine = [s[d] for s in strides]
        side = d >= border
        if axes and axes[-1][2] == side and all(o == m * n for o, m in zip(axes[-1][1], mine, strict=True)):
            axes[-1][0] *= n
            axes[-1][1] = mine
        else:
            axes.append([n, mine, side])
    if kept and kept[0] == "inner" and (not axes or not axes[-1][2]):
        axes.append([1, [0] * len(strides), True])
    if kept and kept[0] == "outer":
        if not axes or axes[0][2]:
            axes.insert(0, [1, [0] * len(strides), False])
        if not axes[-1][2]:
            axes.append([1, [8] * (len(strides) - 1) + [8], True])
    if not axes:
        axes.append([1, [0] * len(strides), True])
    extents = tuple(a[0] for a in axes)
    return extents, tuple(tuple(a[1][k] for a in axes) for k in range(len(strides)))


def _inner_is_one(extents: tuple, strides: tuple) -> bool:
    """Tell whether the summed axes merged into one, behind the kept ones."""
    out = strides[-1]
    return out[-1] == 0 and all(s != 0 or n == 1 for s, n in zip(out[:-1], extents[:-1], strict=True))


def _mode(array: np.ndarray, strides: tuple, extents: tuple) -> str:
    if extents[-1] == 1:
        return "c" if len(extents) == 1 or any(strides[:-1]) else "u"
    if not any(strides):
        return "u"
    if strides[-1] == 0:
        return "0"
    return "c" if strides[-1] == array.itemsize else "s"


# --- the call -------------------------------------------------------------------------------------------------


def _entry_point(build: _Build) -> Callable:
    """Write the function that a call runs: arguments in, the table, results out."""
    graph = build.graph
    space: dict[str, Any] = {"drive": _driver(), "copyto": np.copyto, "at": build.at, "fail": _failer(build)}
    lines = ["def run(xs):"]
    if graph.inputs:
        lines.append(f"    {', '.join(f'x{k}' for k in range(len(graph.inputs)))}, = xs")
    for k, i in enumerate(graph.inputs):
        place = build.places[i]
        if place.outside:
            space[f"point{k}"] = _pointer(build, i)
            lines.append(f"    point{k}(x{k})")
        elif graph.types[i].shape == ():
            space[f"a{k}"] = build.at[i]
            lines.append(f"    a{k}[()] = x{k}")
        elif build.at[i].size:
            space[f"a{k}"] = build.at[i]
            lines.append(f"    copyto(a{k}, x{k})")
    for i, place in build.places.items():
        if place.outside and place.first >= 0:
            space[f"fresh{i}"] = _fresh(build, i)
            lines.append(f"    y{i} = fresh{i}()")
    for n, (row, what, _) in enumerate(build.runs):
        if row is None:
            space[f"call{n}"] = what
            lines.append(f"    call{n}()")
        else:
            lines.append(f"    code = drive({row})")
            if build.guards:
                lines.append(f"    if code: fail({what} + code - 1)")
    lines.append(f"    return [{', '.join(_output(build, space, i) for i in graph.outputs)}]")
    exec(compile("\n".join(lines), "<fad.jit>", "exec"), space)
    return space["run"]


def _output(build: _Build, space: dict, i: int) -> str:
    graph = build.graph
    t = graph.types[i]
    if t.dtype.kind == "O":
        space[f"o{i}"] = graph.constants[i]
        return f"o{i}"
    if i in graph.inputs:
        return f"x{graph.inputs.index(i)}"
    place = build.places.get(i)
    if place is not None and place.outside:
        return f"y{i}"
    base = build.places.get(build.base[i])
    if base is not None and base.outside:
        return f"at[{i}].copy()"
    space[f"o{i}"] = build.at[i]
    if t.kind == ARRAY:
        return f"o{i}.copy()"
    return f"o{i}.item()" if t.kind == NUMBER else f"o{i}[()]"


def _failer(build: _Build) -> Callable:
    graph = build.graph

    def fail(index: int) -> None:
        position = build.guards[index]
        eq = graph.equations[position]
        raise GuardFailed(eq, position, ask(build.at[eq.ins[0]][()], eq.params["convert"]))

    return fail


def _mover(build: _Build, i: int) -> Callable:
    """Return a function that lets a value that lives outside be another array from now on."""
    place = build.places[i]
    words = np.array([w for w, _ in place.slots], np.intp)
    offsets = np.array([o for _, o in place.slots], np.int64)
    arguments, at = build.arguments, build.at
    views = _views_of(build, i)

    def move(x: np.ndarray) -> None:
        arguments[words] = offsets + _data(x)
        at[i] = x
        for eq, o in views:
            at[o] = eq.prim.forward(at[eq.ins[0]], **eq.params)

    return move


def _views_of(build: _Build, i: int) -> list:
    return [(eq, o) for eq, o in build.views if build.base[o] == i]


def _pointer(build: _Build, i: int) -> Callable:
    move = _mover(build, i)

    def point(x: Any) -> None:
        move(x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order="C"))

    return point


def _fresh(build: _Build, i: int) -> Callable:
    move = _mover(build, i)
    t = build.graph.types[i]

    def fresh() -> np.ndarray:
        y = np.empty(t.shape, t.dtype)
        move(y)
        return y

    return fresh
