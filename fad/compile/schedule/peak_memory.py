"""How much memory a program is expected to take at once, beside its arguments, and what its loops keep.

The estimate serves every target: values live from where they are computed to where they are last read, views and
updates of a value that nobody reads again take no memory, and a loop takes that of one step and its state once more.
A native program takes the memory of its values in one piece for the whole run, and a loop's beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from fad.compile.passes.loop_bodies import is_control
from fad.control_flow.bodies.loop_layout import Loop
from fad.control_flow.derivatives.stack import push_p
from fad.core.programs.graph import Equation, Graph


def peak_bytes(graph: Graph) -> int:
    """Return the bytes that an optimised program takes at most, with its results but without its arguments."""
    return _peak(graph, set())


def _peak(graph: Graph, outside: set[int]) -> int:
    """Return the same of a body, of which the values `outside` are counted by its loop."""
    last = {i: k for k, eq in enumerate(graph.equations) for i in eq.ins}
    last.update(dict.fromkeys(graph.outputs, len(graph.equations)))
    owner = {i: i for i in (*graph.inputs, *graph.constants)}
    end: dict[int, int] = {}  # value -> where it, and what lies in its memory, is last read
    made: list[tuple[int, int]] = []
    for k, eq in enumerate(graph.equations):
        for o in eq.outs:
            x = eq.ins[0] if eq.ins else -1
            shares = eq.prim.view is not None or (eq.prim.updates and last.get(x, -1) == k)
            owner[o] = owner[x] if shares else o
            if not shares:
                made.append((k, o))
            end[owner[o]] = max(end.get(owner[o], k), last.get(o, k))
    change = [0] * (len(graph.equations) + 2)
    for k, o in made:
        size = 0 if o in outside else graph.types[o].nbytes
        change[k] += size
        change[end[o] + 1] -= size
    live = most = 0
    for amount in change:
        live += amount
        most = max(most, live)
    return most + max(map(_transient, graph.equations), default=0)


def _transient(eq: Equation) -> int:
    """Return what a loop or branch takes while it runs, beside its results."""
    if not is_control(eq):
        return 0
    if eq.prim.archetype == "branch":
        return max(_peak(g, {*g.inputs, *g.outputs}) for g in eq.params["branches"])
    loop = Loop(eq)
    state = sum(loop.body.types[i].nbytes for i in loop.carry_inputs)
    return state + _peak(loop.body, {*loop.body.inputs, *loop.body.outputs})


def loops_kept(graph: Graph) -> Iterator[str]:
    """Give a line for each loop that keeps its state now and then, or pushes onto a stack."""
    for eq in graph.equations:
        if not is_control(eq):
            continue
        for body in eq.bodies:
            pushed = [e for e in body.equations if e.prim is push_p]
            for e in pushed:
                size = sum(body.types[i].nbytes for i in e.ins[1:])
                yield f"a {eq.prim.name} pushes {size} bytes in each step onto a stack that grows"
        inner = [e for body in eq.bodies for e in body.equations if e.prim.archetype == "loop"]
        if eq.params.get("save") == "carry" and len(inner) == 1 and Loop(eq).ys:
            size = sum(eq.bodies[0].types[i].nbytes for i in Loop(eq).carry_inputs)
            steps, each = eq.params["length"], inner[0].params["length"]
            yield f"a scan keeps its state of {size} bytes {steps} times, every {each} steps, and runs these again"
        for body in eq.bodies:
            yield from loops_kept(body)
