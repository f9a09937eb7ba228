"""The NumPy lowering: a graph becomes a straight-line NumPy program.

Two ways to write it: `readable` is for people, and runs with NumPy alone; `NumPyProgram` is for jit, with operations
called directly and intermediate arrays in buffers that are kept from call to call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.plan import Plan, plan_memory
from fad.compile.spelling import Cannot, Helpers, numpy_name, spell
from fad.core.graph import GUARD, Equation, Graph, GuardFailed, ask, is_large, names, same_outcome
from fad.errors import MissingRuleError

# --- for people ------------------------------------------------------------------------------------------------


def readable(graph: Graph, name: str = "program") -> str:
    """Return the text of a module with one function, which computes the graph with NumPy alone.

    Raises MissingRuleError for an operation that cannot be written so.
    """
    named = _readable_names(graph)
    helpers = Helpers()
    constants = {f"_C{k}": c for k, c in enumerate(c for c in graph.constants.values() if is_large(c))}
    by_id = {id(c): n for n, c in constants.items()}
    for i, c in graph.constants.items():
        if is_large(c):
            named[i] = by_id[id(c)]

    def literal(value: Any) -> str:
        if isinstance(value, np.ndarray) and id(value) not in by_id:
            by_id[id(value)] = f"_C{len(constants)}"
            constants[by_id[id(value)]] = value
        return by_id[id(value)] if isinstance(value, np.ndarray) else _literal(value)

    body = []
    for eq in graph.equations:
        ins = [named[i] for i in eq.ins]
        if eq.prim is GUARD:
            body.append(
                f"    # holds where the answer to {eq.params['line'] or 'a question'} was {eq.params['outcome']!r}"
            )
            continue
        try:
            text = spell(eq, ins, helpers, literal)
        except Cannot as error:
            raise MissingRuleError(f"{eq.prim.name} cannot be written with NumPy alone: {error}") from None
        body.append(f"    {', '.join(named[o] for o in eq.outs)} = {text}")
    outs = ", ".join(named[i] for i in graph.outputs)
    heads = ", ".join(named[i] for i in graph.inputs)
    parts = ["import numpy as np", *sorted(helpers.modules), ""]
    parts += [f"{n} = {_array_text(c)}" for n, c in constants.items()]
    parts += ["", *helpers.sources.values(), "", f"def {name}({heads}):", *body, f"    return {outs}", ""]
    return "\n".join(parts)


_TAKEN = {"as", "if", "in", "is", "or", "np", "by", "do", "and", "for", "not", "def", "del", "try"}


def _readable_names(graph: Graph) -> dict[int, str]:
    named = {i: f"{n}_" if n in _TAKEN else n for i, n in names(graph).items()}
    for i, c in graph.constants.items():
        if not is_large(c):
            named[i] = _literal(c)
    return named


def _literal(value: Any) -> str:
    """Write a parameter or constant so that it is read back the same, dtype and all."""
    if isinstance(value, np.dtype):
        return f"np.dtype({value.str!r})"
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({_number(value.item())})" if value.dtype.kind != "b" else f"np.{value!r}"[3:]
    if type(value) in (float, complex):
        return _number(value)
    if callable(value) and numpy_name(value):
        return numpy_name(value)
    if type(value) is tuple:
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _number(x: Any) -> str:
    if type(x) is complex:
        return f"complex({_number(x.real)}, {_number(x.imag)})"
    if type(x) is float and (x != x or x in (float("inf"), float("-inf"))):
        return f"float('{x}')"
    return f"({x!r})" if type(x) in (float, int) and x < 0 else repr(x)


def _array_text(c: np.ndarray) -> str:
    c = np.asarray(c)
    if c.size and (c == c.flat[0]).all():
        return f"np.full({c.shape}, {_number(c.flat[0].item())}, np.dtype({c.dtype.str!r}))"
    values = ", ".join(_number(v) for v in c.reshape(-1).tolist())
    return f"np.array([{values}], np.dtype({c.dtype.str!r})).reshape({c.shape})"


# --- for jit ---------------------------------------------------------------------------------------------------


class NumPyProgram:
    """A graph as one Python function of straight-line NumPy calls; ``program(xs)`` returns the list of outputs."""

    lowering = "numpy"

    def __init__(self, graph: Graph):
        self.graph = graph
        self.plan = plan_memory(graph)
        self.waiting: list[list] = []  # sets of buffers that no call is using
        self.text, namespace = _program_text(graph, self.plan)
        exec(compile(self.text, "<fad.jit>", "exec"), namespace)
        self.function = namespace["program"]

    def __call__(self, xs: list) -> list:
        try:
            buffers = self.waiting.pop()
        except IndexError:
            buffers = [np.empty(shape, dtype) for shape, dtype in self.plan.specs]
        outs = self.function(xs, buffers)
        self.waiting.append(buffers)
        return outs

    def notes(self) -> list[str]:
        size = sum(int(np.prod(s)) * d.itemsize for s, d in self.plan.specs)
        return [f"{len(self.graph)} NumPy calls, {len(self.plan.specs)} buffers of {size} bytes together"]


def _program_text(graph: Graph, plan: Plan) -> tuple[str, dict]:
    namespace: dict[str, Any] = {"check": _check}
    functions: dict[int, str] = {}
    names = {i: f"v{i}" for i in range(len(graph.types))}
    names.update({i: f"b{k}" for i, k in plan.buffer.items()})
    for i, c in graph.constants.items():
        names[i] = f"c{i}"
        namespace[names[i]] = c

    def function(f: Any) -> str:
        if id(f) not in functions:
            functions[id(f)] = f"f{len(functions)}_{getattr(f, '__name__', 'op').strip('<>')}"
            namespace[functions[id(f)]] = f
        return functions[id(f)]

    lines = ["def program(xs, buffers):"]
    if graph.inputs:
        lines.append(f"    {', '.join(names[i] for i in graph.inputs)}, = xs")
    if plan.specs:
        lines.append(f"    {', '.join(f'b{k}' for k in range(len(plan.specs)))}, = buffers")
    for k, eq in enumerate(graph.equations):
        lines.append("    " + _line(k, eq, names, plan, namespace, function))
    lines.append(f"    return [{', '.join(names[i] for i in graph.outputs)}]")
    return "\n".join(lines), namespace


def _line(k: int, eq: Equation, names: dict, plan: Plan, namespace: dict, function: Any) -> str:
    ins = [names[i] for i in eq.ins]
    if eq.prim is GUARD:
        namespace[f"g{k}"] = (eq, k)
        return f"check(g{k}, {ins[0]})"
    if eq.params:
        namespace[f"p{k}"] = eq.params
        ins.append(f"**p{k}")
    if eq.outs[0] in plan.buffer:
        return f"{function(eq.prim.forward)}({', '.join(ins)}, out={names[eq.outs[0]]})"
    outs = ", ".join(names[o] for o in eq.outs) + ("," if eq.prim.multi and len(eq.outs) == 1 else "")
    return f"{outs} = {function(eq.prim.forward)}({', '.join(ins)})"


def _check(guard: tuple, x: Any) -> None:
    eq, k = guard
    found = ask(x, eq.params["convert"])
    if not same_outcome(eq.params["outcome"], found):
        raise GuardFailed(eq, k, found)
