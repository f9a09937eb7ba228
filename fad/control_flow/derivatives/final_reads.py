"""What the backward pass of a loop reads of its state where no later step writes: it is there when the loop is done.

``x[i] = b[i] - L[i, :i] @ x[:i]`` reads what earlier steps have written, once for all. To keep the slices would take
the square of the memory; they are read from the x of the end instead.
"""

from __future__ import annotations

from fad.control_flow.bodies.counters import Counters, Place
from fad.control_flow.bodies.loop_layout import Inputs
from fad.core.programs.graph import Equation, Graph
from fad.core.programs.rewriter import Rewriting
from fad.ops.places.indexing import getitem_p
from fad.ops.ufuncs.selection import where_p


class FinalReads(Rewriting):
    """The equations of a body with its pullback, some of which are to read the state that the loop leaves."""

    def __init__(self, joint: Graph, own: Inputs, steps: int, reverse: bool):
        super().__init__(joint)
        self.equations = list(joint.equations)
        self.counters = Counters(joint, own.number, steps)
        self.made = self.counters.made
        self.steps, self.reverse = steps, reverse
        self.inputs: dict[int, int] = {}  # of parts of the state, by their number: the state that the loop leaves
        self.parts: dict[int, int] = {}  # version -> number of the part of the state
        self.places: dict[int, Place] = {}
        for k, (start, end) in enumerate(zip(own.carry, joint.outputs, strict=False)):
            written = self.counters.versions(start, end) if start != end else None
            if written is not None:
                self.places[k] = written[1]
                self.parts.update(dict.fromkeys(written[0], k))

    def rewrite(self, late: set[int], moving: set[int]) -> dict[int, Equation]:
        """Let what is read of the state be read from what the loop leaves, where it is there; return what makes values.

        `late` are values that the backward pass computes, `moving` those that differ with the state.
        """
        for eq in list(self.equations):
            if eq.prim is getitem_p:
                found = self._element(eq)
            elif eq.prim is where_p and len(eq.ins) == 3:
                found = self._part(eq)
            else:
                continue
            if found is not None and eq.outs[0] not in late and moving.isdisjoint(found[1]):
                self._rewrite(eq, found[0])
        return {o: eq for eq in self.equations for o in eq.outs}

    def pays(self, kept: list[int], left: list[int], seen: set[int]) -> bool:
        """Return whether less is kept where only what is `left` is, which needs the values `seen`."""
        size = lambda some: sum(self.types[v].nbytes for v in some)
        return self.steps * (size(kept) - size(left)) >= size(self.inputs_among(seen).values()) > 0

    def inputs_among(self, seen: set[int]) -> dict[int, int]:
        return {k: i for k, i in self.inputs.items() if i in seen}

    def _towards(self, place: Place) -> int:
        """Return on which side of its own place, 1 or -1, a step finds what steps before it have written."""
        return -1 if (place.step == 1) != self.reverse else 1

    def _element(self, eq: Equation) -> tuple[int, tuple] | None:
        """Return which part of the state an operation reads at the place of an earlier step, and by which values."""
        x, *operands = eq.ins
        k = self.parts.get(x)
        read = self.counters.place(eq, 1) if k is not None else None
        if k is None or read is None:
            return None
        place = self.places[k]
        behind = (read.first - place.first) * self._towards(place)
        same = (read.axis, read.step) == (place.axis, place.step)
        done = behind >= 1 or (behind == 0 and x == self.graph.outputs[k])
        return (k, tuple(operands)) if same and done else None

    def _part(self, eq: Equation) -> tuple[int, tuple] | None:
        """Return the same of a part of which a mask chooses what earlier steps have written."""
        mask, x, other = eq.ins
        operands: tuple = ()
        axis = 0
        k = self.parts.get(x)
        if k is not None:
            axis = self.places[k].axis - len(self.types[x].shape)
        else:
            read = self.made.get(x)
            k = self.parts.get(read.ins[0]) if read is not None and read.prim is getitem_p else None
            if k is None or read is None:
                return None
            operands, template = read.ins[1:], read.params["template"]
            rank, at = len(self.types[read.ins[0]].shape), self.places[k].axis
            if any(p is None or p is Ellipsis for p in template) or any(self.types[i].shape for i in operands):
                return None
            parts = [*template, *[slice(None)] * (rank - len(template))]
            if parts[at] != slice(None):
                return None
            axis = -sum(type(p) is slice for p in parts[at:])
        place = self.places[k]
        same = self.types[x].shape == self.types[eq.outs[0]].shape
        if not same or not self.counters.is_beyond(mask, axis, place, self._towards(place)):
            return None
        return k, (mask, other, *operands)

    def _rewrite(self, eq: Equation, k: int) -> None:
        final = self.inputs.get(k)
        if final is None:
            final = self.inputs[k] = self.add_value(self.types[self.graph.outputs[k]])
        at = self.equations.index(eq)
        if eq.prim is getitem_p:
            self.equations[at] = Equation(eq.prim, (final, *eq.ins[1:]), eq.params, eq.outs, eq.place)
            return
        mask, x, other = eq.ins
        part = final
        if x not in self.parts:
            read = self.made[x]
            part = self.add_value(self.types[x])
            again = Equation(read.prim, (final, *read.ins[1:]), read.params, (part,), read.place)
            self.equations.insert(at, again)
            at += 1
        self.equations[at] = Equation(eq.prim, (mask, part, other), eq.params, eq.outs, eq.place)
