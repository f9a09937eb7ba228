"""What a notebook shows of a jitted function: each program, its guards, its steps and a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fad.core.programs.graph import Graph
from fad.jitting.programs import Path, Signature
from fad.viz import drawing, tables

_HEAD = ("step", "kind", "operations", "results")


def programs_as_html(title: str, info: Any, signatures: list[Signature]) -> str:
    """Return the programs that a jitted function has recorded, of which each opens on a click."""
    parts = [tables.paragraph(f"{title}  {info}")]
    paths = [path for signature in signatures for path in signature.paths]
    if not paths:
        parts.append(tables.paragraph("Nothing is recorded yet: call it."))
    for path in paths:
        parts += _program(path)
    return "".join(parts)


def _program(path: Path) -> Iterator[str]:
    first, *others = path.describe()
    yield tables.paragraph(f"Program for {first}")
    yield from (tables.paragraph(line.strip()) for line in others)
    if getattr(path.program, "lowering", "") == "llvm":
        graph, steps = path.program.steps()
        yield tables.table(_HEAD, [_row(graph, k, step) for k, step in enumerate(steps)], _HEAD[1:])
    yield tables.fold_part("The recording as a drawing", drawing.frame(path.graph.to_html()))


def _row(graph: Graph, k: int, step: Any) -> tuple[str, ...]:
    """Return the row of a step: operations fused into one loop stand on one line."""
    made = [o for eq in step.equations for o in eq.outs]
    read = {i for eq in step.equations for i in eq.ins}
    results = [str(graph.types[o]) for o in made if o not in read] or [str(graph.types[o]) for o in made]
    return str(k), step.kind, " ".join(eq.prim.name for eq in step.equations), ", ".join(results)
