"""Give stacks their memory: a native program's stack is the number of records in memory of the program's own."""

from __future__ import annotations

from fad.compile.machine.stack_memory import StackMemory
from fad.control_flow.derivatives.stack import pop_p, push_p
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph

NATIVE_PUSH = Primitive(
    "native_push", lambda depth, *values, memory: memory.push(int(depth), values), flat=True, archetype="bare"
)
NATIVE_POP = Primitive(
    "native_pop", lambda depth, *, memory: memory.pop(int(depth)), flat=True, multi=True, archetype="bare"
)
_NATIVE = {push_p: NATIVE_PUSH, pop_p: NATIVE_POP}
ON_STACKS = frozenset(_NATIVE.values())


def place_stacks(graph: Graph, memories: dict[int, StackMemory] | None = None) -> Graph:
    """Return a program whose pushes and pops, those in bodies as well, are of memory that grows."""
    memories = {} if memories is None else memories
    equations = []
    for eq in graph.equations:
        params = eq.params
        if eq.prim.archetype == "loop":
            params = {**params, "body": place_stacks(params["body"], memories)}
        elif eq.prim.archetype == "branch":
            params = {**params, "branches": tuple(place_stacks(g, memories) for g in params["branches"])}
        elif eq.prim in _NATIVE:
            number = params["number"]
            if number not in memories:
                values = eq.ins[1:] if eq.prim is push_p else eq.outs[1:]
                memories[number] = StackMemory([graph.types[i] for i in values])
            params = {"memory": memories[number]}
        if params is not eq.params:
            eq = Equation(_NATIVE.get(eq.prim, eq.prim), eq.ins, params, eq.outs, eq.place)
        equations.append(eq)
    return graph.replace(equations=equations)
