"""Reads and writes through views of an array, in a recorded body, as reads and writes of the array itself.

``y = x[1:]`` and ``y[t] = v`` are recorded as what they mean for values that do not change: a part is taken, a changed
copy of it is made, and that is put back. A loop whose body does so touches the whole part in every step, and so does
its pullback, where it is zeros of the array's size that are added up. Here the indices are composed instead, ``x[1 + t]
= v``, before any derivative is taken.

A view is known by its *base*, a value that is no view of another one, and its `_Place` there. A value that was written
through a view is the same place of a new base, which equals the old one everywhere else; so putting it back into
the old one gives the new one.

An integer that is not known must lie in the view, and the array's own check does not tell. Where the view has all of an
axis it does. Where the integer is known to lie in bounds none is needed, and elsewhere it is looked up in a table of
the places that the view has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fad.control_flow.bodies.intervals import interval_of
from fad.control_flow.bodies.loop_layout import Inputs, Outputs
from fad.control_flow.bodies.subgraph import Body
from fad.control_flow.lengths.slice_bounds import by_axis
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY as IS_ARRAY
from fad.core.programs.graph import NUMBER, SCALAR, Equation, Graph, Type
from fad.core.programs.rewriter import Rewriting, rename
from fad.ops.arrangement.structural import inverse, reshape_p, transpose_p
from fad.ops.layout.index_layout import ARRAY, index_layout
from fad.ops.places.indexing import getitem_p, index_set_p
from fad.ops.ufuncs.elementwise import add, multiply
from fad.staging.python_numbers import on_numbers

_WORD = np.dtype(np.int64)
_MOVES = (getitem_p, index_set_p, transpose_p, reshape_p)


class _At(NamedTuple):
    """A place on an axis by a value of the program: an integer, or an array of integers."""

    value: int


class _Place(NamedTuple):
    """What part of an array a view is.

    For each axis of the array there is a range, an integer or an `_At`; `order` says which axis of the array each axis
    of the view is.
    """

    parts: tuple
    order: tuple


class _Change(NamedTuple):
    """How a value came from another one: it was written inside of each of some places, and equals it elsewhere."""

    before: int
    inside: list


def compose_views(body: Body, rows: bool = False) -> None:
    """Let a body index and write the arrays that views belong to, where it indexes and writes views.

    With `rows` it goes on to read views of arrays from outside that it does not write: a loop may take them as rows.
    """
    work = _Composition(body, rows)
    for eq in body.graph.equations:
        work.take(eq)
    if work.changed:
        work.replace_body()


class _Composition(Rewriting):
    """The body that is being rewritten, and what is known of its values."""

    def __init__(self, body: Body, rows: bool):
        super().__init__(body.graph)
        self.body = body
        self.changed = False
        self.alias: dict[int, int] = {}
        self.views: dict[int, tuple[int, _Place]] = {}
        self.changes: dict[int, _Change] = {}
        self.moved: dict[tuple, int] = {}  # indices that were computed from others
        self.reshaped: dict[int, int] = {}
        self.made = {o: eq for eq in body.graph.equations for o in eq.outs}
        self.given = dict(zip(body.graph.inputs, body.captured, strict=False))
        self.tables: dict[range, int] = {}
        self.kept = self._read_only() if rows else set()

    def _read_only(self) -> set[int]:
        """Return the views of arrays from outside that the body does not write, directly or through views."""
        root: dict[int, int] = {i: i for i in self.given}
        written: set[int] = set()
        for eq in self.graph.equations:
            if eq.prim in _MOVES and eq.ins[0] in root:
                root[eq.outs[0]] = root[eq.ins[0]]
                written.update({root[eq.ins[0]]} if eq.prim is index_set_p else ())
        return {v for v, x in root.items() if x not in written}

    def replace_body(self) -> None:
        """Put the rewritten program in the place of the body's, without views that nothing needs any more."""
        outputs = [self.alias.get(o, o) for o in self.graph.outputs]
        alive, kept = set(outputs), []
        for eq in reversed(self.equations):
            if eq.prim in _MOVES and alive.isdisjoint(eq.outs):
                continue
            alive.update(eq.ins)
            kept.append(eq)
        n = len(self.given)
        inputs = [*self.graph.inputs[:n], *self.tables.values(), *self.graph.inputs[n:]]
        self.body.captured = [*self.body.captured, *[np.arange(r.start, r.stop, r.step) for r in self.tables]]
        self.equations = kept[::-1]
        self.body.graph = self.finish().replace(inputs=inputs, outputs=outputs)

    # --- equations ------------------------------------------------------------------------------------------------

    def take(self, eq: Equation) -> None:
        """Take an equation over, or what does the same without views."""
        eq = rename(eq, self.alias)
        done = False
        if eq.prim is getitem_p:
            done = self.read(eq)
        elif eq.prim is index_set_p:
            done = self.write(eq)
        elif eq.prim is reshape_p:
            done = self.reshape(eq)
        elif eq.prim is transpose_p:
            done = self.transpose(eq)
        if done:
            self.changed = True
        else:
            self.equations.append(eq)

    def read(self, eq: Equation) -> bool:
        x, *arrays = eq.ins
        base, place = self.view(x)
        part = None if base in self.kept else self.part(base, place, eq, arrays)
        if part is None:
            return False
        if not self.has_arrays(part):
            self.views[eq.outs[0]] = base, part
        if base == x:
            return False
        self.emit_read(base, part, eq)
        return True

    def write(self, eq: Equation) -> bool:
        x, v, *arrays = eq.ins
        base, place = self.view(x)
        part = self.part(base, place, eq, arrays)
        out = eq.outs[0]
        if part is None or self.types[out] != self.types[x]:
            return False
        if not is_sorted(part.order) and self.types[v].shape != tuple([len(part.parts[k]) for k in part.order]):
            return False
        source, there = self.view(v)
        changes = self.changes_between(source, base, part) if there == part else None
        if changes:  # a part that was written is put back
            for change in changes:
                change.inside.append(place)
            self.stand_for(eq, source, place)
            return True
        if base == x:
            return False
        new = self.emit_write(base, v, part, eq)
        self.changes[new] = _Change(base, [part, place])
        self.stand_for(eq, new, place)
        return True

    def transpose(self, eq: Equation) -> bool:
        base, place = self.view(eq.ins[0])
        place = place._replace(order=tuple([place.order[k] for k in eq.params["axes"]]))
        if place == self.whole(base):
            self.alias[eq.outs[0]] = base
            return True
        self.views[eq.outs[0]] = base, place
        return False

    def reshape(self, eq: Equation) -> bool:
        """Let what is given back the shape that it had be what it was."""
        (x,), (out,) = eq.ins, eq.outs
        self.reshaped[out] = x
        before = self.reshaped.get(x)
        if before is None or self.types[before] != self.types[out]:
            return False
        self.alias[out] = before
        return True

    def stand_for(self, eq: Equation, base: int, place: _Place) -> None:
        """Let the result of an equation be a place of a base."""
        (out,) = eq.outs
        if place == self.whole(base):
            self.alias[out] = base
        else:
            self.views[out] = base, place
            self.emit_read(base, place, eq)

    def changes_between(self, new: int, base: int, part: _Place) -> list[_Change] | None:
        """Return the changes that made a value of another one, if all are inside of a part."""
        found = []
        while new != base:
            change = self.changes.get(new)
            if change is None or part not in change.inside:
                return None
            found.append(change)
            new = change.before
        return found

    def emit_read(self, base: int, part: _Place, eq: Equation) -> None:
        (out,) = eq.outs
        shape = self.types[out].shape
        template, arrays = self.template(base, part)
        if not shape and self.types[out].kind == IS_ARRAY:
            template = (*template, Ellipsis)
        if is_sorted(part.order):
            self.emit(getitem_p, (base, *arrays), {"template": template}, eq, out)
            return
        axes = inverse(tuple(np.argsort(part.order).tolist()))
        plain = Type(tuple([shape[k] for k in inverse(axes)]), self.types[out].dtype, home=self.types[out].home)
        taken = self.emit(getitem_p, (base, *arrays), {"template": template}, eq, self.add_value(plain))
        self.emit(transpose_p, (taken,), {"axes": axes}, eq, out)

    def emit_write(self, base: int, v: int, part: _Place, eq: Equation) -> int:
        template, arrays = self.template(base, part)
        if not is_sorted(part.order):
            axes = tuple(np.argsort(part.order).tolist())
            t = self.types[v]
            permuted = Type(tuple([t.shape[k] for k in axes]), t.dtype, home=t.home)
            v = self.emit(transpose_p, (v,), {"axes": axes}, eq, self.add_value(permuted))
        return self.emit(index_set_p, (base, v, *arrays), {"template": template}, eq, self.add_value(self.types[base]))

    def emit(self, prim: Any, ins: tuple, params: dict, eq: Equation, out: int) -> int:
        self.equations.append(Equation(prim, ins, params, (out,), eq.place))
        return out

    # --- places ---------------------------------------------------------------------------------------------------

    def view(self, v: int) -> tuple[int, _Place]:
        """Return the base of a value and the place that it is."""
        return self.views[v] if v in self.views else (v, self.whole(v))

    def whole(self, v: int) -> _Place:
        shape = self.types[v].shape
        return _Place(tuple(map(range, shape)), tuple(range(len(shape))))

    def part(self, base: int, place: _Place, eq: Equation, arrays: list) -> _Place | None:
        """Return the place of what an index takes of a view, or None if that cannot be said by one index."""
        template = eq.params["template"]
        if any(part is None for part in template) or any(self.types[i].dtype.kind not in "iu" for i in arrays):
            return None
        sizes = self.types[base].shape
        values = iter(arrays)
        parts, order = list(place.parts), []
        for axis, part in zip(place.order, by_axis(template, len(place.order)), strict=True):
            within = parts[axis]
            if part is ARRAY:
                at = self.at(next(values), within, sizes[axis], eq.place)
                if at is None:
                    return None
                parts[axis] = at
            elif type(part) is int and not -len(within) <= part < len(within):
                return None
            else:
                parts[axis] = within[part]
                order += [axis] if type(part) is slice else []
        found = _Place(tuple(parts), tuple(order))
        return found if self.keeps_axes(base, place, template, arrays, found) else None

    def keeps_axes(self, base: int, place: _Place, template: tuple, arrays: list, part: _Place) -> bool:
        """Return whether the axes of index arrays stand where they stood."""
        if not self.has_arrays(part):
            return True
        if not is_sorted(place.order):
            return False
        *_, before = index_layout(template, self.stand_ins(arrays), len(place.order))
        now, all_arrays = self.template(base, part)
        *_, after = index_layout(now, self.stand_ins(all_arrays), len(part.parts))
        return before == after

    def stand_ins(self, arrays: list) -> list:
        """Return arrays of the shapes of index arrays."""
        return [np.broadcast_to(np.intp(0), self.types[i].shape) for i in arrays]

    def has_arrays(self, part: _Place) -> bool:
        return any(type(p) is _At and self.types[p.value].shape for p in part.parts)

    def template(self, base: int, place: _Place) -> tuple[tuple, list]:
        """Return the index of a place, as `split_index` gives it."""
        template: list = []
        for part, whole in zip(place.parts, map(range, self.types[base].shape), strict=True):
            if type(part) is range:
                template.append(slice(None) if part == whole else as_slice(part))
            else:
                template.append(ARRAY if type(part) is _At else part)
        while len(template) > 1 and template[-1] == slice(None):
            template.pop()
        return tuple(template), [part.value for part in place.parts if type(part) is _At]

    def at(self, i: int, within: range, size: int, line: Any) -> _At | None:
        """Return the place on an axis that an index value means on a range of it; None if it lives on a device."""
        if within == range(size):
            return _At(i)
        if self.types[i].home is not None:
            return None
        low, high = self.bounds(i)
        n = len(within)
        known = self.types[i].dtype == _WORD and low is not None and high is not None
        if not known or low < -n or high >= n or low < 0 <= high:  # type: ignore[operator]
            return _At(self.looked_up(i, within, line))
        start = within.start + (within.step * n if high < 0 else 0)  # type: ignore[operator]
        return _At(self.moved_by(add, self.moved_by(multiply, i, within.step), start))

    def looked_up(self, i: int, within: range, line: Any) -> int:
        """Return the places on an axis of a range of it, by a table, of which NumPy refuses the indices it would."""
        if within not in self.tables:
            self.tables[within] = self.add_value(Type((len(within),), _WORD))
        key = "look up", i, within
        if key not in self.moved:
            shape = self.types[i].shape
            self.moved[key] = self.add_value(Type(shape, _WORD, IS_ARRAY if shape else SCALAR))
            ins = self.tables[within], i
            self.equations.append(Equation(getitem_p, ins, {"template": (ARRAY,)}, (self.moved[key],), line))
        return self.moved[key]

    def moved_by(self, prim: Primitive, i: int, k: int) -> int:
        """Return a value times a number, or the sum."""
        if k == (prim is multiply):
            return i
        key = prim, i, k
        if key not in self.moved:
            t = self.types[i]
            number = self.add_value(Type((), _WORD, NUMBER))
            self.constants[number] = k
            prim = on_numbers(prim) if t.kind == NUMBER else prim
            out = self.add_value(t if t.kind == NUMBER or t.shape else Type((), _WORD, SCALAR))
            self.equations.append(Equation(prim, (i, number), {}, (out,)))
            self.moved[key] = out
        return self.moved[key]

    def bounds(self, i: int) -> tuple[int | None, int | None]:
        """Return the least and the most that the integers of a value of the body can be."""
        if not self.types[i].shape:
            return interval_of(self.body.trace, i)
        x = self.given.get(i, self.constants.get(i))
        if type(x) is np.ndarray and x.size:
            return int(x.min()), int(x.max())
        eq = self.made.get(i)
        if eq is not None and eq.prim is reshape_p:
            return self.bounds(eq.ins[0])
        if eq is None or eq.prim is not add:
            return None, None
        ends = [self.bounds(k) for k in eq.ins]
        return tuple([None if None in column else sum(column) for column in zip(*ends, strict=True)])  # type: ignore


def reshape_carries(graph: Graph, params: dict) -> tuple[Graph, dict[int, tuple]]:
    """Let the body of a loop take in another shape those arrays that it reads and returns in that shape alone.

    Returns the body, and the shapes by number in the carry. A pullback would have to add up arrays in one shape and in
    the other.
    """
    own, ends = Inputs.split(graph.inputs, params), Outputs.split(graph.outputs, params)
    uses: dict[int, list[Equation]] = {}
    for eq in graph.equations:
        for i in eq.ins:
            uses.setdefault(i, []).append(eq)
    made = {o: eq for eq in graph.equations for o in eq.outs}
    work = Rewriting(graph)
    shapes: dict[int, tuple] = {}
    same: dict[int, int] = {}
    for k, (i, o) in enumerate(zip(own.carry, ends.carry, strict=True)):
        last = made.get(o)
        if last is None or last.prim is not reshape_p or graph.inputs.count(i) > 1 or i in ends.join():
            continue
        t = graph.types[last.ins[0]]
        first = uses.get(i, [])
        if not first or any(eq.prim is not reshape_p or graph.types[eq.outs[0]] != t for eq in first):
            continue
        own.carry[k], ends.carry[k] = work.add_value(t), last.ins[0]
        shapes[k] = t.shape
        same.update({eq.outs[0]: own.carry[k] for eq in first})
    if not shapes:
        return graph, {}
    work.equations = [rename(eq, same) for eq in graph.equations if eq.outs[0] not in same]
    outputs = [same.get(o, o) for o in ends.join()]
    return work.finish().replace(inputs=own.join(), outputs=outputs), shapes


def as_slice(r: range) -> slice:
    """Return the slice that takes a range of an axis."""
    if not r:
        return slice(0, 0, None)
    stop = r[-1] + (1 if r.step > 0 else -1)
    return slice(r.start, stop if stop >= 0 else None, r.step)


def is_sorted(axes: tuple) -> bool:
    """Return whether axes are in ascending order."""
    return list(axes) == sorted(axes)
