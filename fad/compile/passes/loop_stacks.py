"""A loop whose steps are put together: what its values are in all steps at once, as stacks with one row a step.

A value is known for all steps where the loop runs along it, or where it is a slice, at the counter, of an array that
no step changes. The bounds of a slice, ``A[i, i:]``, are masks: what a mask leaves is not read, and not multiplied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.lowered_ops import BLOCK_PRODUCT, CHOSEN_PRODUCT
from fad.compile.ir.uses import home_of
from fad.compile.passes.constants import as_uniform
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.programs.graph import ARRAY, Equation
from fad.ops.arrangement.structural import reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p
from fad.ops.ufuncs.elementwise import greater, greater_equal, less, less_equal, logical_and, logical_not
from fad.ops.ufuncs.selection import where_p

MOST = 1 << 26  # bytes of the stacks that any loop may get; one with large operands and results may get as many again
_DEEPEST = 8  # operations between a choice and what it is of
_LINEAR = ("+", "-", "*", "/", "neg")  # symbols of operations
_COMPARED = (less, less_equal, greater, greater_equal, logical_not, logical_and)
_WHOLE = slice(None)
_MOST_OF = 0.8  # of a product from which on all of it is computed
_BLOCK = 192  # rows of a product of which a mask says which columns of each are wanted


class Slice(NamedTuple):
    """A slice at the counter plus a number, along an axis of an array that no step changes."""

    array: int
    axis: int
    first: int


class Matrix(NamedTuple):
    """A matrix that no step changes, perhaps transposed; of what it is then a mask chooses rows (axis 0) or columns."""

    array: int
    transposed: bool
    mask: int | None
    axis: int


class LoopStacks:
    """One loop that is being rewritten; what it writes into the program stands before or behind the loop."""

    def __init__(self, work: Builder, eq: Equation):
        self.work = work
        self.types = work.types
        self.eq = eq
        self.loop = Loop(eq)
        self.body = self.loop.body
        self.made = {o: e for e in self.body.equations for o in e.outs}
        self.users: dict[int, list[Equation]] = {}
        self.uses: dict[int, int] = dict.fromkeys(self.body.outputs, 0)
        for e in self.body.equations:
            for i in e.ins:
                self.users.setdefault(i, []).append(e)
        for i in (*self.body.outputs, *(i for e in self.body.equations for i in e.ins)):
            self.uses[i] = self.uses.get(i, 0) + 1
        self.xs = dict(zip(self.loop.x_inputs, self.loop.xs, strict=True))
        self.consts = dict(zip(self.loop.const_inputs, self.loop.consts, strict=True))
        state = zip(self.loop.carry_inputs, self.loop.carry_outputs, self.loop.carry, strict=True)
        self.consts.update({i: x for i, o, x in state if i == o})  # what no step changes
        self.budget = max(MOST, sum(self.types[i].nbytes for i in {*eq.ins, *eq.outs}))
        self.known: dict[Any, int] = {}  # what was written into the program already

    def takes(self, *values: int) -> bool:
        """Return whether stacks of these values of the body fit the budget, and charge it."""
        nbytes = self.loop.length * sum(self.body.types[v].nbytes for v in values)
        if nbytes > self.budget:
            return False
        self.budget -= nbytes
        return True

    def as_rows(self, stack: int, matrix: bool) -> int:
        """Return a stack of rows, or of matrices, as one matrix."""
        if not matrix:
            return stack
        steps, rows, columns = self.types[stack].shape
        return self.work.reshape(stack, (steps * rows, columns))

    # --- what no step changes -----------------------------------------------------------------------------------------

    def is_fixed(self, v: int) -> bool:
        """Return whether a value of the body is an array from outside, or a transpose of one."""
        e = self.made.get(v)
        transposed = e is not None and e.prim is transpose_p and self.is_fixed(e.ins[0])
        return transposed or (v in self.consts and self.body.types[v].kind == ARRAY)

    def find_outside(self, v: int) -> int:
        """Return what a fixed value is outside of the loop."""
        if v in self.consts:
            return self.consts[v]
        if v not in self.known:
            e = self.made[v]
            self.known[v] = self.work.transpose(self.find_outside(e.ins[0]), e.params["axes"])
        return self.known[v]

    def orient(self, matrix: Matrix, transposed: bool) -> int:
        """Return a fixed matrix outside of the loop, or with `transposed` its transpose."""
        whole = self.find_outside(matrix.array)
        return self.work.matrix_transpose(whole) if matrix.transposed != transposed else whole

    def times(self, left: int, right: int, wanted: np.ndarray | None = None) -> int:
        """Return the product of two arrays outside of the loop; a mask may say which elements of it are wanted."""
        blocks = None if wanted is None else _blocks(wanted)
        if blocks is None:
            return self.work.matmul(left, right)
        return self.work.product(BLOCK_PRODUCT, left, right, blocks=blocks, of="results")

    def times_chosen(self, left: int, mask: int, right: int) -> int:
        """Return the product of two arrays outside of the loop; a mask says which elements of the left one count."""
        known = self.work.constants.get(mask)
        return self.work.product(CHOSEN_PRODUCT, left, mask, right, blocks=None if known is None else _blocks(known))

    def mask_stack(self, v: int, stacks: dict, transposed: bool) -> int:
        """Return a mask in all steps; what depends on the counter alone is a constant."""
        known = self.known_mask(v)
        if known is not None:
            return self.work.constant(np.ascontiguousarray(known.T if transposed else known))
        return self.work.matrix_transpose(stacks[v]) if transposed else stacks[v]

    # --- what is known for all steps ----------------------------------------------------------------------------------

    def count_from(self, i: int, depth: int = 0) -> int | None:
        """Return what a number of the body is in the first step, if it rises by one a step."""
        if self.loop.indexed and i == self.loop.index_input:
            return 0
        e = self.made.get(i)
        symbol = None if e is None else e.prim.symbol
        if e is None or symbol not in ("+", "-") or self.body.types[i].shape or depth > _DEEPEST:
            return None
        for counter, number in (e.ins, e.ins[::-1])[: 1 + (symbol == "+")]:
            c, start = self.body.constants.get(number), self.count_from(counter, depth + 1)
            if start is not None and c is not None and np.ndim(c) == 0 and int(c) == c:
                return start + (int(c) if symbol == "+" else -int(c))
        return None

    def place_of(self, e: Equation, first: int, size: tuple) -> tuple[int, int] | None:
        """Return the axis that an index takes at the counter, and where it begins; it takes all of the other axes."""
        template = e.params["template"]
        others = [p for p in template if type(p) is not str]
        if len(e.ins) != first + 1 or len(template) != len(size) or any(p != _WHOLE for p in others):
            return None
        start, axis = self.count_from(e.ins[first]), next((d for d, p in enumerate(template) if type(p) is str), None)
        if start is None or axis is None or not 0 <= start <= size[axis] - self.loop.length:
            return None
        return axis, start

    def slice_of(self, v: int) -> Slice | None:
        e = self.made.get(v)
        if e is None or e.prim is not getitem_p or not self.is_fixed(e.ins[0]):
            return None
        place = self.place_of(e, 1, self.body.types[e.ins[0]].shape)
        return None if place is None else Slice(e.ins[0], *place)

    def is_known(self, v: int) -> bool:
        """Return whether a value of the body is known for all steps."""
        return v in self.xs or self.slice_of(v) is not None

    def rows(self, v: int) -> int:
        """Return the stack of a value that is known for all steps."""
        if v in self.xs:
            return self.xs[v]
        found = self.slice_of(v)
        assert found is not None
        key = ("rows", found)
        if key not in self.known:
            stack, n = self.find_outside(found.array), self.loop.length
            rank = len(self.types[stack].shape)
            if found.axis:
                stack = self.work.transpose(stack, (found.axis, *[d for d in range(rank) if d != found.axis]))
            if self.types[stack].shape[0] != n:
                index = (slice(found.first, found.first + n), *[_WHOLE] * (rank - 1))
                stack = self.work.getitem(stack, index)
            self.known[key] = stack
        return self.known[key]

    # --- masks --------------------------------------------------------------------------------------------------------

    def vector(self, v: int) -> int:
        """Return the array of one axis that a value is but for axes of one place."""
        n = max(self.body.types[v].shape, default=1)
        while len(self.body.types[v].shape) > 1:
            e = self.made.get(v)
            if e is None or e.prim not in (reshape_p, getitem_p, transpose_p) or len(e.ins) != 1:
                return v
            if e.prim is getitem_p and any(p not in (None, Ellipsis, _WHOLE) for p in e.params["template"]):
                return v
            if self.body.types[e.ins[0]].size != n or self.body.types[v].size != n:
                return v
            v = e.ins[0]
        return v

    def known_mask(self, v: int) -> np.ndarray | None:
        """Return a mask in all steps, a row for each, if it depends on nothing but the counter."""
        found = self._in_all_steps(v, 0)
        shape = (self.loop.length, *self.body.types[v].shape)
        return None if found is None else np.broadcast_to(found, shape)

    def _in_all_steps(self, v: int, depth: int) -> Any:
        """Return a value in all steps by the axes behind the first one, if that is known."""
        first = self.count_from(v)
        if first is not None:
            return first + np.arange(self.loop.length)[:, None]
        c = self.body.constants.get(v)
        if c is None and v in self.consts:
            c = self.work.constants.get(self.consts[v])
        if c is not None:
            return np.asarray(c)[None] if np.ndim(c) == 1 else c if np.ndim(c) == 0 else None
        e = self.made.get(v)
        if e is None or depth > _DEEPEST or e.prim not in _COMPARED or len(self.body.types[v].shape) != 1:
            return None
        xs = [self._in_all_steps(i, depth + 1) for i in e.ins]
        return None if any(x is None for x in xs) else e.prim.forward(*xs)

    def mask_of(self, e: Equation) -> tuple[int, int] | None:
        """Return the mask by which an operation chooses of a matrix, or of a vector, and its axis from the end.

        None if it chooses no whole rows or columns.
        """
        if e.prim is not where_p or home_of(self.work.graph) is not None:
            return None
        shape, own = self.body.types[e.outs[0]].shape, self.body.types[e.ins[0]].shape
        n = max(own, default=1)
        mask = self.vector(e.ins[0])
        if self.body.types[e.ins[1]].shape != shape or self.body.types[mask].shape != (n,) or n == 1:
            return None
        if own[-1] == n:
            return mask, 1
        return (mask, 2) if len(own) == 2 else None

    def matrix(self, v: int) -> Matrix | None:
        """Return the fixed matrix that a value is, transposed or chosen from."""
        transposed, mask, axis = False, None, 0
        while not self.is_fixed(v):
            e = self.made.get(v)
            if e is None or len(self.body.types[v].shape) != 2:
                return None
            if e.prim is transpose_p:
                transposed = not transposed
                v = e.ins[0]
                continue
            found = self.mask_of(e)
            if found is None or mask is not None:
                return None
            mask, from_end = found
            axis = (2 - from_end) ^ transposed
            v = e.ins[1]
        return Matrix(v, transposed, mask, axis)

    def is_read_only_where(self, v: int, mask: int, depth: int = 0) -> bool:
        """Return whether all that reads a vector chooses by a mask what it makes of it."""
        if v in self.body.outputs or depth > _DEEPEST:
            return False
        for e in self.users.get(v, ()):
            (o, *_), found = e.outs, self.mask_of(e)
            if found == (mask, 1) and e.ins[1] == v and v not in (e.ins[0], e.ins[2]):
                continue
            same = self.body.types[o].shape == self.body.types[v].shape
            if e.prim.symbol not in _LINEAR or not same or not self.is_read_only_where(o, mask, depth + 1):
                return False
        return True

    def is_zero_outside(self, v: int, mask: int, depth: int = 0) -> bool:
        """Return whether a vector is zero wherever a mask is false."""
        e = self.made.get(v)
        if e is None or depth > _DEEPEST:
            return False
        if e.prim in (reshape_p, getitem_p):
            inner = self.vector(v)
            return inner != v and self.is_zero_outside(inner, mask, depth + 1)
        if e.prim is where_p:
            return self.mask_of(e) == (mask, 1) and self.number(e.ins[2]) == 0
        if e.prim.symbol in ("+", "-", "neg"):
            return all(self.is_zero_outside(i, mask, depth + 1) for i in e.ins)
        if e.prim.symbol not in ("*", "/"):
            return False
        pairs = (e.ins, e.ins[::-1])[: 1 + (e.prim.symbol == "*")]
        for x, factor in pairs:
            c = self.number(factor)
            if c is not None and np.isfinite(c) and c != 0 and self.is_zero_outside(x, mask, depth + 1):
                return True
        return False

    def number(self, v: int) -> Any:
        """Return the number that a constant of the body is everywhere, if it is one."""
        c = self.body.constants.get(v)
        return None if c is None else as_uniform(np.asarray(c))


def _blocks(mask: np.ndarray) -> tuple | None:
    """Return which columns a mask chooses in blocks of its rows; None if that is most of them.

    A block is ``(first row, end, first column, end)``, and there is at least one column in each.
    """
    found = []
    for start in range(0, len(mask), _BLOCK):
        some = mask[start : start + _BLOCK]
        columns = np.flatnonzero(some.any(axis=0))
        low, high = (int(columns[0]), int(columns[-1]) + 1) if columns.size else (0, 1)
        found.append((start, start + len(some), low, high))
    size = sum((b - a) * (d - c) for a, b, c, d in found)
    return tuple(found) if size < _MOST_OF * mask.size else None
