"""Strip mining: what large tables between matrix products are computed from runs strip by strip, in a loop.

The distances of many points from some centres, or what a layer gives for many examples, are a table: a product that is
read once or twice and then summed or multiplied again. As whole arrays such tables pass through memory in every step.
In strips of a length that the cache holds, they never leave it, and take no memory either.
"""

from __future__ import annotations

import math

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.legalize.layouts.strip_axes import Axes, on_strip, operand_axes, result_axis, summed_axes, with_length
from fad.compile.passes.dce import drop_dead
from fad.control_flow.bodies.loop_layout import Inputs, Operands, Outputs
from fad.control_flow.scan import scan_p
from fad.core.programs.graph import EFFECT, Equation, Graph, Type
from fad.ops.products.contraction import matmul
from fad.ops.ufuncs.elementwise import add

STRIP = 4 << 20  # bytes of the tables of a strip: the parts of a few threads lie in their caches
LEAST = 2 * STRIP  # of whole tables, from which on strips pay
_MOST_READ_AGAIN = STRIP // 4  # bytes of all that every strip reads and adds to as a whole
_SHORTEST = 128  # places of a strip: a product of fewer rows takes longer for each
_SMALL = 64  # elements up to which a constant goes into the body
_FIXED = (EFFECT, "check", "loop", "branch")  # what keeps its place


def strip_mine(graph: Graph) -> Graph:
    """Rewrite what is computed from large products as loops over strips of them."""
    tried: set[int] = set()
    while True:
        region = _find_region(graph, tried)
        if region is None:
            return graph
        graph = drop_dead(_Rewriter(graph, region).rewrite())


def _find_region(graph: Graph, tried: set[int]) -> _Region | None:
    """Return operations that are to run in strips, from the first large product on; None if there are none."""
    for k, eq in enumerate(graph.equations):
        if eq.prim is not matmul or eq.outs[0] in tried or graph.types[eq.outs[0]].nbytes < LEAST // 4:
            continue
        tried.add(eq.outs[0])
        shape = graph.types[eq.outs[0]].shape
        for axis in sorted(range(len(shape)), key=shape.__getitem__, reverse=True):
            if _reads_little_again(graph, eq, axis):
                region = _Region(graph, k, axis)
                if region.pays():
                    return region
    return None


def _reads_little_again(graph: Graph, eq: Equation, axis: int) -> bool:
    """Return whether the factor of a product that every strip of it reads is small, if there is one."""
    axes = operand_axes(graph, eq, axis)
    return axes is not None and all(
        graph.types[i].nbytes <= _MOST_READ_AGAIN for i, a in zip(eq.ins, axes, strict=True) if a is None
    )


class _Region:
    """Operations that can run on strips, found from a product and the axis of it that is cut."""

    def __init__(self, graph: Graph, start: int, axis: int):
        self.graph = graph
        shape = graph.types[graph.equations[start].outs[0]].shape
        self.length = shape[axis]
        self.shortest = _SHORTEST if axis >= len(shape) - 2 else 1  # matrices of a batch are done one by one anyway
        self.axes: dict[int, int] = {}  # of the values that are strips, the axis
        self.sums: set[int] = set()  # the values that all strips add to
        self.members: dict[int, Axes] = {}  # by number of the operation, the axes of its operands
        self.after: set[int] = set()  # the values that need the result of all strips
        self.made = {o: k for k, eq in enumerate(graph.equations) for o in eq.outs}
        self.readers: dict[int, list[int]] = {}
        for k, eq in enumerate(graph.equations):
            for i in eq.ins:
                self.readers.setdefault(i, []).append(k)
        self.add(start, axis)
        self.follow(start)
        while self.take_in_producers():
            pass

    def follow(self, start: int) -> None:
        """Take in what reads strips, as far as it can run on them."""
        for k, eq in enumerate(self.graph.equations):
            if k <= start:
                continue
            if any(i in self.after or i in self.sums for i in eq.ins):
                self.after.update(eq.outs)
                continue
            known = next((p for p, i in enumerate(eq.ins) if i in self.axes), None)
            if known is not None and not self.take_in_reader(k, known):
                self.after.update(eq.outs)

    def take_in_reader(self, k: int, operand: int) -> bool:
        eq = self.graph.equations[k]
        if len(eq.outs) != 1 or eq.prim.multi:
            return False
        axis = self.axes[eq.ins[operand]]
        found = result_axis(self.graph, eq, operand, axis)
        if found is not None:
            return self.add(k, found)
        axes = summed_axes(self.graph, eq, operand, axis)
        if axes is None or not self.fits(eq, axes):
            return False
        self.members[k] = axes
        self.sums.add(eq.outs[0])
        return True

    def take_in_producers(self) -> bool:
        """Take in what makes operands of which strips are read, if nothing else reads them; return whether any."""
        found = False
        outputs = set(self.graph.outputs)
        for k, axes in list(self.members.items()):
            for i, axis in zip(self.graph.equations[k].ins, axes, strict=True):
                made = self.made.get(i)
                if axis is None or made is None or made in self.members or i in outputs:
                    continue
                if all(self.reads_strips(r, i, axis) for r in self.readers[i]):
                    found |= self.add(made, axis)
        return found

    def reads_strips(self, k: int, value: int, axis: int) -> bool:
        eq = self.graph.equations[k]
        axes = self.members.get(k)
        return axes is not None and all(a == axis for i, a in zip(eq.ins, axes, strict=True) if i == value)

    def add(self, k: int, axis: int) -> bool:
        """Let an operation run on strips along an axis of its result, if it can."""
        eq = self.graph.equations[k]
        axes = operand_axes(self.graph, eq, axis) if len(eq.outs) == 1 and not eq.prim.multi else None
        if axes is None or not self.fits(eq, axes):
            return False
        self.members[k] = axes
        self.axes[eq.outs[0]] = axis
        return True

    def fits(self, eq: Equation, axes: Axes) -> bool:
        """Return whether operands that are strips are read as such, and native code computes with these types."""
        types = [self.graph.types[i] for i in (*eq.ins, *eq.outs)]
        if eq.prim is matmul and (types[0].dtype.kind != "f" or len({t.dtype for t in types}) > 1):
            return False
        return all(self.axes.get(i, a) == a for i, a in zip(eq.ins, axes, strict=True)) and all(
            t.dtype in LLVM_TYPE and t.home is None for t in types
        )

    def inputs(self) -> tuple[dict[tuple[int, int], None], dict[int, None]]:
        """Return the values from outside: those of which strips are read, each with the axis, and those read whole."""
        strips: dict[tuple[int, int], None] = {}
        whole: dict[int, None] = {}
        for k in sorted(self.members):
            for i, axis in zip(self.graph.equations[k].ins, self.members[k], strict=True):
                if axis is None:
                    whole[i] = None
                elif i not in self.axes:
                    strips[i, axis] = None
        return strips, whole

    def outputs(self) -> list[int]:
        """Return the strips that are read from outside."""
        outputs = set(self.graph.outputs)
        members = self.members
        return [i for i in self.axes if i in outputs or any(k not in members for k in self.readers.get(i, ()))]

    def tables(self) -> dict[int, None]:
        """Return the strips that a program of whole arrays would store: products and what is multiplied."""
        found: dict[int, None] = {}
        for k in sorted(self.members):
            eq = self.graph.equations[k]
            if eq.prim is matmul:
                found.update(dict.fromkeys(i for i in (*eq.ins, *eq.outs) if i in self.axes))
        return found

    def pays(self) -> bool:
        """Return whether strips save more than they cost."""
        types, outputs = self.graph.types, self.outputs()
        size = lambda values: sum([types[i].nbytes for i in values])
        strips, whole = self.inputs()
        saved = size(i for i in self.tables() if i not in outputs)
        again = size(whole) + 2 * size(self.sums)
        flat = all(
            math.prod(types[i].shape[:axis]) == 1 for i, axis in [*strips, *[(o, self.axes[o]) for o in outputs]]
        )
        return (
            saved >= LEAST and again <= _MOST_READ_AGAIN and flat and 4 * size(outputs) <= saved
            and self.length >= 4 * self.strip() and self.can_move()
        )  # fmt: skip

    def strip(self) -> int:
        """Return how long a strip is, if possible such that all have one length."""
        strips, _ = self.inputs()
        values = [*self.tables(), *{i: None for i, _ in strips}]
        row = sum([self.graph.types[i].nbytes for i in values]) / self.length
        count = math.ceil(self.length / max(STRIP // max(row, 1), self.shortest))
        even = (n for n in range(count, 2 * count) if self.length % n == 0)
        return self.length // next(even, count)

    def needs_strips(self, eq: Equation) -> bool:
        return any(i in self.sums or i in self.axes or i in self.after for i in eq.ins)

    def can_move(self) -> bool:
        """Return whether what needs the results may run after the last strip: no question may, nor what others see."""
        between = range(min(self.members), max(self.members))
        moved = [self.graph.equations[k] for k in between if k not in self.members]
        return not any(self.needs_strips(eq) and (eq.is_guard or eq.prim.archetype in _FIXED) for eq in moved)


class _Rewriter(Builder):
    """Puts a loop over strips, and a shorter strip if one is left, in the place of a region."""

    def __init__(self, graph: Graph, region: _Region):
        super().__init__(graph)
        self.region = region
        self.strips, self.whole = region.inputs()
        self.sums, self.kept = sorted(region.sums), region.outputs()
        self.length = region.strip()
        self.count, self.left = divmod(region.length, self.length)

    def rewrite(self) -> Graph:
        region, last = self.region, max(self.region.members)
        waiting: list[Equation] = []
        for k, eq in enumerate(self.graph.equations):
            if k == last:
                self.compute_region()
                self.equations += waiting
            elif k not in region.members:
                (waiting if k < last and region.needs_strips(eq) else self.equations).append(eq)
        return self.finish()

    def compute_region(self) -> None:
        """Write the loop and the strip that is left, which give the values that are read from outside."""
        totals, stacks = self.loop()
        ends = self.last_strip(totals) if self.left else []
        for k, (old, stack) in enumerate(zip(self.kept, stacks, strict=True)):
            axis = self.region.axes[old]
            value = self.reshape(stack, with_length(self.types[old].shape, axis, self.count * self.length))
            self.define(old, self.concatenate([value, ends[k]], axis) if ends else value)

    def loop(self) -> tuple[list[int], list[int]]:
        """Write the loop over strips of one length; return the sums and the stacks of what is kept."""
        body = Builder(Graph([], [], {}, [], []))
        operands, inputs = Operands([], [], [], []), Inputs([], [], [], [])
        given: dict[tuple[int, int | None], int] = {}
        for i in self.whole:
            given[i, None] = body.add_value(self.types[i])
            if i in self.constants and np.size(self.constants[i]) <= _SMALL:
                body.constants[given[i, None]] = self.constants[i]
            else:
                operands.consts.append(i)
                inputs.consts.append(given[i, None])
        for i, axis in self.strips:
            strip = self.type_of_strip(i, axis, self.length)
            given[i, axis] = body.add_value(strip)
            c = self.constants.get(i)
            if isinstance(c, np.ndarray) and not any(c.strides):
                body.constants[given[i, axis]] = np.broadcast_to(c.reshape(-1)[:1].reshape(()), strip.shape)
            else:
                operands.xs.append(self.stack(i, axis))
                inputs.xs.append(given[i, axis])
        for o in self.sums:
            operands.carry.append(self.zeros(self.types[o]))
            inputs.carry.append(body.add_value(self.types[o]))
        totals = [body.add_value(self.types[o]) for o in self.sums]
        kept = self.write_strip(body, self.length, given, inputs.carry, totals)
        graph = body.finish().replace(inputs=inputs.join(), outputs=Outputs(totals, kept).join())
        outs = [self.add_value(self.types[o]) if self.left else o for o in self.sums]
        types = [Type((self.count, *body.types[i].shape), body.types[i].dtype) for i in kept]
        stacks = [self.add_value(t) for t in types]
        params = {
            "body": graph, **inputs.layout(), "length": self.count, "reverse": False, "stop": "length", "save": "none",
        }  # fmt: skip
        self.equations.append(Equation(scan_p, tuple(operands.join()), params, (*outs, *stacks)))
        return outs, stacks

    def last_strip(self, totals: list[int]) -> list[int]:
        """Write the operations on the places behind the last whole strip; return what is kept of it."""
        start = self.count * self.length
        given: dict[tuple[int, int | None], int] = {(i, None): i for i in self.whole}
        given.update({(i, axis): self.take_along(i, axis, start, start + self.left) for i, axis in self.strips})
        return self.write_strip(self, self.left, given, totals, self.sums)

    def write_strip(self, work: Builder, length: int, given: dict, before: list[int], after: list[int]) -> list[int]:
        """Write the region's operations on a strip, which add to the totals `before` it; return what is kept of it."""
        axes, found = self.region.axes, given
        for k, places in sorted(self.region.members.items()):
            eq = self.graph.equations[k]
            (o,), t = eq.outs, self.graph.types[eq.outs[0]]
            if o in axes:
                t = self.type_of_strip(o, axes[o], length)
            ins = tuple([found[i, axes.get(i, axis)] for i, axis in zip(eq.ins, places, strict=True)])
            work.place = eq.place
            found[o, axes.get(o)] = work.apply(eq.prim, ins, on_strip(eq, t.shape), t)
        for o, total, new in zip(self.sums, before, after, strict=True):
            work.equations.append(Equation(add, (total, found[o, None]), {}, (new,)))
        return [found[o, axes[o]] for o in self.kept]

    def type_of_strip(self, i: int, axis: int, length: int) -> Type:
        t = self.graph.types[i]
        return Type(with_length(t.shape, axis, length), t.dtype)

    def stack(self, i: int, axis: int) -> int:
        """Return the whole strips of a value, one behind the other along a new first axis."""
        shape = self.types[i].shape
        whole = self.take_along(i, axis, 0, self.count * self.length) if self.left else i
        apart = self.reshape(whole, (*shape[:axis], self.count, self.length, *shape[axis + 1 :]))
        return self.transpose(apart, (axis, *[d for d in range(len(shape) + 1) if d != axis])) if axis else apart

    def zeros(self, t: Type) -> int:
        i = self.add_value(t)
        self.constants[i] = t.zeros()
        return i
