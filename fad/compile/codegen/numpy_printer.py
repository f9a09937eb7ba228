"""A graph as NumPy source for people: a program that can be read, pasted and run with NumPy alone."""

from __future__ import annotations

import keyword
import symtable
from typing import Any

from fad.compile.codegen.numpy_expr import Cannot, Helpers, array_text, literal, spell, statements
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.programs.graph import Equation, Graph, is_large, letters
from fad.errors import MissingRuleError


def checked_name(name: Any) -> str:
    """Return what may be the name of a function; it becomes part of a text that people run."""
    if isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__":
        return name
    kind = "a keyword of Python's" if isinstance(name, str) and keyword.iskeyword(name) else "no identifier"
    raise ValueError(f"the name of a function in fad.source must be an identifier, as 'program'; {name!r} is {kind}")


def readable(graph: Graph, name: str = "program") -> str:
    """Return the text of a module with one function, which computes the graph with NumPy alone.

    Loops are Python's ``for`` and ``while``, branches its ``if``.
    Raises MissingRuleError for an operation that cannot be written so, ValueError for a name that is taken.
    """
    writer = _Writer()
    named = writer.names(graph)
    body = writer.lines(graph, named)
    outs = ", ".join(named[i] for i in graph.outputs)
    heads = ", ".join(named[i] for i in graph.inputs)
    blocks = ["\n".join(["import numpy as np", *sorted(writer.helpers.modules)])]
    if writer.constants:
        blocks[0] += "\n\n" + "\n".join(f"{n} = {array_text(c)}" for n, c in writer.constants.items())
    blocks += [source.strip() for source in writer.helpers.sources.values()]
    blocks.append("\n".join([f"def {name}({heads}):", *(f"    {line}" for line in body), f"    return {outs}", ""]))
    text = "\n\n\n".join(blocks)
    if "scipy." in text:
        text = text.replace("import numpy as np\n", "import numpy as np\nimport scipy\n", 1)
    again = text.count(name) > 1  # besides where it is defined
    if name in writer.helpers.sources or (again and _reads(symtable.symtable(text, name, "exec"), name)):
        raise ValueError(f"the text has the name {name!r} for something else: call fad.source with another name=")
    return text


def _reads(table: symtable.SymbolTable, name: str) -> bool:
    """Whether a text, or a function in it, reads what its module or Python has by a name."""
    for found in table.get_symbols():
        outer = found.is_global() or table.get_type() == "module"
        if found.get_name() == name and outer and (found.is_referenced() or found.is_imported()):
            return True
    return any(_reads(inner, name) for inner in table.get_children())


_TAKEN = {"as", "if", "in", "is", "or", "np", "by", "do", "and", "for", "not", "def", "del", "try"}


class _Writer:
    """What the texts of a program and of the loops in it share: names, constants, helper functions."""

    def __init__(self) -> None:
        self.helpers = Helpers()
        self.constants: dict[str, Any] = {}
        self.by_id: dict[int, str] = {}
        self.kept: list = []
        self.used = 0

    def fresh(self) -> str:
        text = letters(self.used)
        self.used += 1
        return f"{text}_" if text in _TAKEN else text

    def names(self, graph: Graph) -> dict[int, str]:
        """Name the values a, b, ..., z, aa, ... in the order in which they appear; constants by what they are."""
        named = {i: self.literal(c) for i, c in graph.constants.items()}
        for i in graph.inputs:
            named[i] = self.fresh()
        return named

    def literal(self, value: Any) -> str:
        if not is_large(value):
            return literal(value)
        if id(value) not in self.by_id:
            self.by_id[id(value)] = f"_C{len(self.constants)}"
            self.constants[self.by_id[id(value)]] = value
            self.kept.append(value)
        return self.by_id[id(value)]

    def lines(self, graph: Graph, named: dict[int, str]) -> list[str]:
        """Return the statements that compute a graph, and name what they compute in `named`."""
        found: list[str] = []
        live = _live(graph)
        for eq in graph.equations:
            if not eq.is_guard and live.isdisjoint(eq.outs):
                continue  # a guard alone reads it
            if eq.prim.archetype == "loop":
                found += self.loop(eq, named)
            elif eq.prim.archetype == "branch":
                found += self.branch(eq, named, graph.types[eq.ins[0]].dtype == bool)
            elif eq.is_guard:
                question = eq.params["line"] or "a question"
                answer = " ".join(repr(eq.params["outcome"]).split())  # an array's takes several lines
                comment = f"# holds where the answer to {question} was {answer}"
                found.append(" ".join(comment.splitlines()).encode(errors="backslashreplace").decode())
            else:
                found += self.statements(eq, named)
        return found

    def statements(self, eq: Equation, named: dict[int, str]) -> list[str]:
        ins = [named[i] for i in eq.ins]
        for o in eq.outs:
            named[o] = self.fresh()
        outs = ", ".join(named[o] for o in eq.outs) + "," * (eq.prim.multi and len(eq.outs) == 1)
        try:
            return statements(eq, ins, outs, self.literal) or [f"{outs} = {spell(eq, ins, self.helpers, self.literal)}"]
        except Cannot as error:
            raise MissingRuleError(f"{eq.prim.name} cannot be written with NumPy alone: {error}") from None

    def loop(self, eq: Equation, named: dict[int, str]) -> list[str]:
        loop = Loop(eq)
        body = loop.body
        inner = {i: self.literal(c) for i, c in body.constants.items()}
        inner.update((i, named[o]) for i, o in zip(loop.const_inputs, loop.consts, strict=True))
        before = []
        for i, o in zip(loop.carry_inputs, loop.carry, strict=True):
            inner[i] = self.fresh()
            before.append(f"{inner[i]} = {named[o]}")
        stacks = []
        for v in loop.ys:
            stacks.append(self.fresh())
            t = body.types[v]
            shape = f"({', '.join(map(str, (loop.length, *t.shape)))}{',' if not t.shape else ''})"
            before.append(f"{stacks[-1]} = np.{'empty' if loop.stop == 'length' else 'zeros'}({shape}, '{t.dtype}')")
        count = named[loop.count] if loop.stop == "count" else str(loop.length)
        at = inner[loop.index_input] = self.fresh() if loop.needs_number else "_"
        if loop.has_condition:
            head = f"while {inner[loop.carry_inputs[0]]}:"
            before.append(f"{at} = 0")
        else:
            head = f"for {at} in {f'reversed(range({count}))' if loop.reverse else f'range({count})'}:"
        for i, o in zip(loop.x_inputs, loop.xs, strict=True):
            inner[i] = f"{named[o]}[{at}]"
        steps = self.lines(body, inner)
        stored = f"{at}" if not loop.has_condition else f"min({at}, {(loop.length or 1) - 1})"
        steps += [f"{s}[{stored}] = {inner[v]}" for s, v in zip(stacks, loop.ys, strict=True)]
        new = [(inner[i], inner[v]) for i, v in zip(loop.carry_inputs, loop.carry_outputs, strict=True)]
        new = [(a, b) for a, b in new if a != b]
        if new:
            steps.append(f"{', '.join(a for a, _ in new)} = {', '.join(b for _, b in new)}")
        if loop.has_condition:
            steps.append(f"{at} += 1")
        results = [*[inner[i] for i in loop.carry_inputs], *stacks, at]
        named.update(zip(eq.outs, results, strict=False))
        return [*before, head, *[f"    {line}" for line in steps or ["pass"]]]

    def branch(self, eq: Equation, named: dict[int, str], truth: bool) -> list[str]:
        branches = eq.params["branches"]
        outs = [self.fresh() for _ in eq.outs]
        found: list[str] = []
        last = len(branches) - 1
        for k in range(last, -1, -1) if last == 1 else range(last + 1):
            graph = branches[k]
            inner = {i: self.literal(c) for i, c in graph.constants.items()}
            inner.update((i, named[o]) for i, o in zip(graph.inputs, eq.ins[1:], strict=True))
            steps = self.lines(graph, inner)
            steps += [f"{o} = {inner[v]}" for o, v in zip(outs, graph.outputs, strict=True)]
            index = named[eq.ins[0]]
            if last == 1:
                head = "else:" if not k else f"if {index}:" if truth else f"if {index} > 0:"
            else:
                head = "if" if not k else "elif"
                head = "else:" if k == last else f"{head} {index} <= {k}:"
            found += [head, *[f"    {line}" for line in steps or ["pass"]]]
        named.update(zip(eq.outs, outs, strict=True))
        return found


def _live(graph: Graph) -> set[int]:
    """Return the values that the outputs need."""
    live = set(graph.outputs)
    for eq in reversed(graph.equations):
        if not eq.is_guard and not live.isdisjoint(eq.outs):
            live.update(eq.ins)
    return live
