"""The pullback of a loop whose steps have no bound becomes two loops: one pushes onto a stack, the other pops from it.

Where the loop itself stands before its pullback, with the same operands, it is the one that pushes: it runs once.
"""

from __future__ import annotations

import itertools
from typing import Any

from fad.control_flow.bodies.loop_layout import BackwardInputs, Inputs, Operands, Outputs, Results, has_condition
from fad.control_flow.derivatives.pullback import active_operands, loop_params, pullback_p, split_cotangents
from fad.control_flow.derivatives.split_pullback import accumulate_outputs
from fad.control_flow.derivatives.stack import EMPTY, STACK, pop_p, push_p
from fad.control_flow.scan import scan_p
from fad.core.programs.graph import Equation, Graph
from fad.core.programs.rewriter import Rewriting
from fad.ops.places.creation import zeros_p

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


class _Expansion(Rewriting):
    """The program while it is rewritten."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.empty = self.add_value(STACK)
        self.constants[self.empty] = EMPTY

    def run(self) -> Graph:
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
                        self.equations.append(made)
                    else:
                        self.equations[at] = made
                self._pop(eq, pushed[key])
                continue
            if eq.prim.archetype == "loop":
                loops[id(eq.params["body"]), eq.ins] = len(self.equations), eq
            self.equations.append(eq)
        return self.finish()

    def _pushing(self, eq: Equation, loop: Equation | None) -> tuple[Equation, _Pushed]:
        """Return the loop that pushes; it has the results of `loop`, if there is one."""
        params, cut, number = loop_params(eq.params), eq.params["cut"], next(_numbers)
        body = cut.forward
        operands = Operands.split(split_cotangents(eq.ins, eq.params)[0], params)
        inputs, (carried, kept) = Inputs.split(body.inputs, params), Outputs.split(body.outputs, params)
        if loop:
            results = Results.split(loop.outs, params)._replace(ys=[])
        else:
            count = [self.add_value(STACK)] if has_condition(params) else []
            results = Results([self.add_value(body.types[o]) for o in carried], [], count)
        stack = self.empty
        if kept:
            stack = self.add_value(STACK)
            below, above = len(body.types), len(body.types) + 1
            push = Equation(push_p, (below, *kept), {"number": number}, (above,))
            operands.carry.append(self.empty)
            inputs.carry.append(below)
            carried.append(above)
            results.carry.append(stack)
            types, equations = [*body.types, STACK, STACK], [*body.equations, push]
            body = body.replace(types=types, inputs=inputs.join(), equations=equations, outputs=carried)
        params.update(body=body, **inputs.layout())
        made = Equation(eq.params["loop"], tuple(operands.join()), params, tuple(results.join()), eq.place)
        (count,) = results.steps or operands.steps
        return made, _Pushed(number, stack, count)

    def _pop(self, eq: Equation, pushed: _Pushed) -> None:
        """Write the loop that pops: it carries the stack, sums of what is added up over the steps, and cotangents."""
        params, cut = eq.params, eq.params["cut"]
        operands, seeds = split_cotangents(eq.ins, params)
        operands = Operands.split(operands, params)
        consts = [eq.ins[k] for k in active_operands(params) if k < params["consts"]] * params["layers"]
        body, sums = accumulate_outputs(cut.backward, len(consts))
        own = BackwardInputs.split(cut.backward.inputs, params, cut.kept, len(seeds))
        zeros = [self.add_value(self.types[x]) for x in consts]
        self.equations += [Equation(zeros_p, (x,), {}, (z,)) for x, z in zip(consts, zeros, strict=True)]
        inputs = Inputs(own.consts, own.number, [*sums, *own.cts], [])
        operands = Operands(operands.consts, [pushed.count], [*zeros, *seeds], [])
        outputs, outs = list(body.outputs), list(eq.outs)
        if cut.kept:
            above, below = len(body.types), len(body.types) + 1
            pop = Equation(pop_p, (above,), {"number": pushed.number}, (below, *own.kept))
            body = body.replace(types=[*body.types, STACK, STACK], equations=[pop, *body.equations])
            operands.carry.insert(0, pushed.stack)
            inputs.carry.insert(0, above)
            outputs.insert(0, below)
            outs.insert(0, self.add_value(STACK))
        new = {
            "body": body.replace(inputs=inputs.join(), outputs=outputs), **inputs.layout(), "length": None,
            "reverse": not params["reverse"], "stop": "count", "save": "none", "adjoint": True,
        }  # fmt: skip
        self.equations.append(Equation(scan_p, tuple(operands.join()), new, tuple(outs), eq.place))


def _key(eq: Equation) -> tuple:
    operands = split_cotangents(eq.ins, eq.params)[0]
    return id(eq.params["body"]), operands, eq.params["active"], eq.params["seeds"], id(eq.params["cut"].forward)
