"""``python -m fad.ops``: the matrix of operations and rules, read off the registry.

Each operation is a line: what kind it is, where its JVP, VJP and batching rule come from (written by hand, filled in by
the archetype, derived from another rule, or not needed), and the NumPy callables that it answers for.
"""

from __future__ import annotations

import sys
from typing import Any

import fad.ops  # noqa: F401  (fills the registry)
from fad.core.primitives.primitive import REGISTRY

_FILLED = {"elementwise", "linear", "flat"}


def _source(op: Any, slot: str) -> str:
    if op.archetype == "composite":
        return "composed"
    if op.flat:
        return "flat" if slot != "batch" else "archetype"
    if getattr(op, slot) is None:
        return "loop" if slot == "batch" else "derived"
    return "archetype" if op.archetype in _FILLED else "written"


def _names(op: Any) -> str:
    names = []
    for f in op.numpy:
        names.append(f"{f[0].__name__}.{f[1]}" if type(f) is list else getattr(f, "__name__", str(f)))
    return ", ".join(names)


def rows() -> list[tuple[str, ...]]:
    """Return one tuple per operation: name, kind, jvp, vjp, batch, lowering, NumPy names."""
    out = []
    for op in REGISTRY.values():
        lower = getattr(op, "lower", None) or ""
        slots = [_source(op, slot) for slot in ("jvp", "vjp", "batch")]
        out.append((op.name, op.archetype, *slots, lower, _names(op)))
    return out


def table(markdown: bool = False) -> str:
    """Return the matrix as text, or as a Markdown table for the documentation."""
    head = ("operation", "kind", "jvp", "vjp", "batch", "lowering", "answers for")
    lines = [head, *sorted(rows())]
    if markdown:
        cells = ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines]
        return "\n".join([cells[0], "|" + "---|" * len(head), *cells[1:]])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)


if __name__ == "__main__":
    print(table("--markdown" in sys.argv))
