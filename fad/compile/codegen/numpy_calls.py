"""Operations without a kernel: NumPy calls on the memory of a native program, in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.codegen.program import Program
from fad.compile.ir.recorded_kinds import forward_of
from fad.compile.schedule.fusion import Step
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, NUMBER, Equation, Graph


def numpy_call(program: Program, eq: Equation) -> Callable:
    """Return a NumPy call of an operation, from the arena to the arena."""
    program.fallbacks.append(eq.prim.name)
    at, outs = program.memory.at, eq.outs
    space: dict[str, Any] = {"at": at, "forward": forward_of(eq, program.graph), "params": eq.params, "array": np.array}
    operands = [_operand_text(program, i, space) for i in eq.ins]
    if eq.params:
        operands.append("**params")
    if isinstance(space["forward"], np.ufunc) and not eq.params and not eq.prim.multi and at[outs[0]].ndim:
        lines = [f"forward({', '.join([*operands, f'out=at[{outs[0]}]'])})"]
    elif eq.prim.multi:
        shared = not program.memory.over.keys().isdisjoint(outs)  # then results may be operands that others overwrite
        lines = [f"ys = forward({', '.join(operands)})"]
        lines += ["ys = [array(y) for y in ys]"] if shared else []
        lines += [f"at[{o}][...] = ys[{k}]" for k, o in enumerate(outs)]
    else:
        lines = [f"at[{outs[0]}][...] = forward({', '.join(operands)})"]
    exec("\n    ".join(["def run():", *lines]), space)
    return space["run"]


def _operand_text(program: Program, i: int, space: dict[str, Any]) -> str:
    """Return how a call reads a value."""
    kind = program.graph.types[i].kind
    if kind != ARRAY and i in program.graph.constants:
        space[f"c{i}"] = program.graph.constants[i]
        return f"c{i}"
    return f"at[{i}]" if kind == ARRAY else f"at[{i}].item()" if kind == NUMBER else f"at[{i}][()]"


def one_by_one(program: Program, step: Step) -> Callable:
    """Return a function that runs a group's operations as NumPy calls."""
    calls = [(eq.prim.forward, [_getter_or_local(program, i) for i in eq.ins], eq) for eq in step.equations]
    at = program.memory.at
    stored = set(program.memory.stored_by(step))
    program.fallbacks += [eq.prim.name for eq in step.equations]

    def run():
        local: dict[int, Any] = {}
        for forward, getters, eq in calls:
            y = forward(*[get(at, local) for get in getters], **eq.params)
            o = eq.outs[0]
            local[o] = y
            if o in stored:
                at[o][...] = y

    return run


def getter(program: Program, i: int) -> Callable:
    kind = program.graph.types[i].kind
    if kind == ARRAY:
        return lambda at: at[i]
    if i in program.graph.constants:
        c = program.graph.constants[i]
        return lambda at: c
    return (lambda at: at[i].item()) if kind == NUMBER else (lambda at: at[i][()])


def _getter_or_local(program: Program, i: int) -> Callable:
    get = getter(program, i)
    return lambda at, local: local[i] if i in local else get(at)


def as_one_call(program: Program, eq: Equation) -> Equation:
    """Return a loop or branch as one call of a program that NumPy runs."""
    k, ins = len(eq.ins), eq.ins
    types = [program.graph.types[i] for i in (*ins, *eq.outs)]
    outs = tuple(range(k, len(types)))
    same = Equation(eq.prim, tuple(range(k)), eq.params, outs, eq.place)
    run = program.run_in_numpy(Graph(types, list(range(k)), {}, [same], list(outs)))
    return Equation(Primitive(eq.prim.name, lambda *xs: run(list(xs)), multi=True), ins, {}, eq.outs, eq.place)
