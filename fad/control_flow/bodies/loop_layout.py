"""How the values of a loop are laid out: its operands and results, and the inputs and outputs of its body.

    operands            consts..., [steps], carry..., xs...
    results             carry..., ys..., [steps]
    inputs of the body  consts..., [number], carry..., x...
    outputs             carry..., y...

Each is a tuple of lists here, which ``split`` makes of a flat sequence (of values, or of what is known of each) and
``join`` puts in a row again. `steps`, how many there are, and `number`, which one it is, are lists of one or none: the
first is an operand where a value says it (``stop="count"``), and a result where the loop stops by itself ("cond").
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fad.core.programs.graph import Equation

GUESSED_STEPS = 32  # of a loop whose number of steps is not known, where its cost is estimated


class Operands(NamedTuple):
    """The operands of a loop."""

    consts: list
    steps: list
    carry: list
    xs: list

    @classmethod
    def split(cls, items: Iterable, params: dict) -> Operands:
        return cls(*_cut(items, params["consts"], params["stop"] == "count", params["carries"]))

    def join(self) -> list:
        return _chain(self)

    def select(self, marks: Inputs) -> Operands:
        """Return the operands whose inputs of the body are marked, and the number of steps."""
        consts, carry = select_marked(self.consts, marks.consts), select_marked(self.carry, marks.carry)
        return Operands(consts, self.steps, carry, select_marked(self.xs, marks.xs))

    def at_inputs(self, number: list) -> Inputs:
        """Return what stands for the inputs of the body, with `number` for the number of a step."""
        return Inputs(self.consts, number, self.carry, self.xs)


class Inputs(NamedTuple):
    """The inputs of a loop's body."""

    consts: list
    number: list
    carry: list
    xs: list

    @classmethod
    def split(cls, items: Iterable, params: dict) -> Inputs:
        return cls(*_cut(items, params["consts"], params["index"], params["carries"]))

    def join(self) -> list:
        return _chain(self)

    def select(self, marks: Inputs) -> Inputs:
        """Return the inputs that are marked."""
        return Inputs(*map(select_marked, self, marks))

    def at_operands(self, steps: list) -> Operands:
        """Return what stands for the operands of the loop, with `steps` for how many there are."""
        return Operands(self.consts, steps, self.carry, self.xs)

    def layout(self) -> dict[str, Any]:
        """Return the parameters of a loop that say how many values of each kind there are."""
        return {"consts": len(self.consts), "carries": len(self.carry), "index": bool(self.number)}


class Outputs(NamedTuple):
    """The outputs of a loop's body."""

    carry: list
    ys: list

    @classmethod
    def split(cls, items: Iterable, params: dict) -> Outputs:
        return cls(*_cut(items, params["carries"]))

    def join(self) -> list:
        return _chain(self)

    def select(self, marks: Outputs) -> Outputs:
        """Return the outputs that are marked."""
        return Outputs(*map(select_marked, self, marks))


class Results(NamedTuple):
    """The results of a loop: the last state, what the steps gave, and their number where it was not known before."""

    carry: list
    ys: list
    steps: list

    @classmethod
    def split(cls, items: Sequence, params: dict) -> Results:
        stacked = len(items) - params["carries"] - has_condition(params)
        return cls(*_cut(items, params["carries"], stacked))

    def join(self) -> list:
        return _chain(self)

    def select(self, marks: Outputs) -> Results:
        """Return the results whose outputs of the body are marked, and the number of steps."""
        return Results(*Outputs(self.carry, self.ys).select(marks), self.steps)


class BackwardInputs(NamedTuple):
    """The inputs of a body run backward: those of the body but its carry, what was kept for it, and cotangents.

    `finals` are the parts of the state of which it reads what the loop leaves.
    """

    consts: list
    finals: list
    number: list
    xs: list
    kept: list
    cts: list

    @classmethod
    def split(cls, items: Sequence, params: dict, kept: int, cts: int, finals: int = 0) -> BackwardInputs:
        xs = len(items) - params["consts"] - finals - params["index"] - kept - cts
        return cls(*_cut(items, params["consts"], finals, params["index"], xs, kept))

    def join(self) -> list:
        return _chain(self)


def has_condition(params: dict) -> bool:
    """Return whether a loop stops by itself: when the first of its state, a boolean, is false."""
    return params["stop"] == "cond"


def select_marked(items: Iterable, marks: Iterable) -> list:
    """Return the items that are marked."""
    return [x for x, mark in zip(items, marks, strict=True) if mark]


def place_marked(items: Iterable, marks: Iterable) -> list:
    """Return the items, in their order, where marks are, and None elsewhere."""
    rest = iter(items)
    return [next(rest) if mark else None for mark in marks]


def put_beside(a: Any, b: Any) -> Any:
    """Return the values of two layouts of one kind as one: of each kind those of `a` come first."""
    return type(a)(*[[*x, *y] for x, y in zip(a, b, strict=True)])


def join_layers(layers: list) -> Any:
    """Return values of one layout, given several times, as one: of each kind those of the first layer come first."""
    return functools.reduce(put_beside, layers)


def split_layers(items: Iterable, one: Any, n: int) -> list[list]:
    """Return the values of each of `n` layers that were joined, in a row; `one` is the layout of one of them."""
    kinds = _cut(items, *[n * len(kind) for kind in one])
    return [_chain([k[i * len(o) : (i + 1) * len(o)] for k, o in zip(kinds, one, strict=False)]) for i in range(n)]


def _cut(items: Iterable, *sizes: int) -> list[list]:
    """Return lists of the first items, so many each, and one of the rest."""
    rest = list(items)
    parts = []
    for n in sizes:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def _chain(parts: Iterable[list]) -> list:
    return [x for part in parts for x in part]


class Loop:
    """The equation of a loop (not of its pullback), with its values and those of its body sorted."""

    def __init__(self, eq: Equation):
        params = self.params = eq.params
        body = self.body = params["body"]
        self.length, self.reverse, self.stop = params["length"], params["reverse"], params["stop"]
        self.has_condition = has_condition(params)
        self.operands, self.results = Operands.split(eq.ins, params), Results.split(eq.outs, params)
        self.inputs, self.outputs = Inputs.split(body.inputs, params), Outputs.split(body.outputs, params)
        self.consts, steps, self.carry, self.xs = self.operands
        self.const_inputs, number, self.carry_inputs, self.x_inputs = self.inputs
        self.carry_outputs, self.ys = self.outputs
        self.count = steps[0] if steps else -1  # the number of steps, where it is an operand
        self.index_input = number[0] if number else -1
        self.indexed = bool(number)
        self.needs_number = bool(number or self.xs or self.ys or self.has_condition)
