"""The pullback of a loop whose steps have no bound becomes two loops: one pushes onto a stack, the other pops from it.

Where the loop itself stands before its pullback, with the same operands, it is the one that pushes: it runs once.
"""

from __future__ import annotations

import itertools
from typing import Any

from fad.control_flow.pullback import active_operands, pullback_p
from fad.control_flow.scan import scan_p
from fad.control_flow.split_pullback import accumulate_outputs
from fad.control_flow.stack import EMPTY, STACK, pop_p, push_p
from fad.core.graph import Equation, Graph, Type
from fad.core.primitive import REGISTRY

_numbers = itertools.count()  # of stacks


def expand_pullbacks(graph: Graph) -> Graph:
    """Replace pullbacks of loops by loops, in this graph; bodies have their turn when they are optimised."""
    if not any(eq.prim is pullback_p for eq in graph.equations):
        return graph
    return _Expansion(graph).run()


class _Pushed:
    """A loop that pushes: the number of its stack, the stack when it is done, and the number of its steps."""

    def __init__(self, number: int, stack: int, count: int):
        self.number = number
        self.stack = stack
        self.count = count


class _Expansion:
    """The program while it is rewritten."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.types, self.constants = list(graph.types), dict(graph.constants)
        self.equations: list[Equation | None] = list(graph.equations)
        self.empty = self._new(STACK)
        self.constants[self.empty] = EMPTY

    def run(self) -> Graph:
        equations: list[Equation] = []
        loops: dict[Any, tuple[int, Equation]] = {}  # the loops so far: where they are among the equations
        pushed: dict[Any, _Pushed] = {}
        for eq in self.graph.equations:
            if eq.prim is pullback_p:
                key = _key(eq)
                loop_key = key[:2]
                if key not in pushed:
                    at, loop = loops.pop(loop_key, (None, None))
                    made, pushed[key] = self._pushing(eq, loop)
                    if at is None:
                        equations.append(made)
                    else:
                        equations[at] = made
                equations += self._popping(eq, pushed[key])
                continue
            if eq.prim.archetype == "loop":
                loops[id(eq.params["body"]), eq.ins] = len(equations), eq
            equations.append(eq)
        return self.graph.replace(types=self.types, constants=self.constants, equations=equations)

    def _new(self, t: Type) -> int:
        self.types.append(t)
        return len(self.types) - 1

    def _pushing(self, eq: Equation, loop: Equation | None) -> tuple[Equation, _Pushed]:
        """Return the loop that pushes; it has the results of `loop`, if there is one."""
        params = {k: v for k, v in eq.params.items() if k not in ("loop", "active", "seeds", "cut")}
        m, until, cut = params["carries"], params["stop"] == "cond", eq.params["cut"]
        n = len(eq.ins) - sum(eq.params["seeds"])
        body, number = cut.forward, next(_numbers)
        carried = body.outputs[:m]
        outs = list(loop.outs[:m]) if loop else [self._new(body.types[o]) for o in carried]
        count = loop.outs[m] if loop and until else self._new(STACK) if until else eq.ins[params["consts"]]
        ins, stack = eq.ins[:n], self.empty
        if cut.kept:
            stack = self._new(STACK)
            ins, outs = (*ins, self.empty), [*outs, stack]
            types = [*body.types, STACK, STACK]
            below, above = len(body.types), len(body.types) + 1
            push = Equation(push_p, (below, *body.outputs[m:]), {"number": number}, (above,))
            body = body.replace(
                types=types, inputs=[*body.inputs, below], equations=[*body.equations, push], outputs=[*carried, above]
            )
            params["carries"] = m + 1
        params["body"] = body
        made = Equation(eq.params["loop"], ins, params, tuple([*outs, count] if until else outs), eq.place)
        return made, _Pushed(number, stack, count)

    def _popping(self, eq: Equation, pushed: _Pushed) -> list[Equation]:
        """Return the loop that pops: it carries the stack, sums of what is added up over the steps, and cotangents."""
        params, cut = eq.params, eq.params["cut"]
        c, index = params["consts"], params["index"]
        seeds = sum(params["seeds"])
        consts = [k for k in active_operands(params) if k < c]
        body, sums = accumulate_outputs(cut.backward, len(consts))
        inputs, outputs = cut.backward.inputs, list(body.outputs)
        fixed, kept, cts = inputs[: c + index], inputs[c + index : c + index + cut.kept], inputs[c + index + cut.kept :]
        zeros = [self._new(self.types[eq.ins[k]]) for k in consts]
        equations = [
            Equation(REGISTRY["zeros_from"], (eq.ins[k],), {}, (z,)) for k, z in zip(consts, zeros, strict=True)
        ]
        state, first = [*zeros, *eq.ins[len(eq.ins) - seeds :]], [*sums, *cts]
        outs = list(eq.outs)
        if cut.kept:
            above, below = len(body.types), len(body.types) + 1
            pop = Equation(pop_p, (above,), {"number": pushed.number}, (below, *kept))
            body = body.replace(types=[*body.types, STACK, STACK], equations=[pop, *body.equations])
            state, first, outputs = [pushed.stack, *state], [above, *first], [below, *outputs]
            outs = [self._new(STACK), *outs]
        body = body.replace(inputs=[*fixed, *first], outputs=outputs)
        new = {
            "body": body, "consts": c, "carries": len(state), "length": None, "reverse": not params["reverse"],
            "index": index, "stop": "count", "save": "none", "adjoint": True,
        }  # fmt: skip
        ins = (*eq.ins[:c], pushed.count, *state)
        return [*equations, Equation(scan_p, ins, new, tuple(outs), eq.place)]


def _key(eq: Equation) -> tuple:
    n = len(eq.ins) - sum(eq.params["seeds"])
    return id(eq.params["body"]), eq.ins[:n], eq.params["active"], eq.params["seeds"]
