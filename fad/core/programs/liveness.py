"""How much memory a recorded program holds at each of its operations, if it lets go of what is not read any more."""

from __future__ import annotations

from typing import Any


def live_bytes(graph: Any) -> list[int]:
    """Return the bytes held while each operation runs: inputs, constants, its results, and what is read later."""
    base: dict[int, int] = {}
    last: dict[int, int] = {}
    for k, eq in enumerate(graph.equations):
        if eq.is_view:
            base[eq.outs[0]] = base.get(eq.ins[0], eq.ins[0])
        last.update({base.get(i, i): k for i in (*eq.ins, *eq.outs)})
    last.update({base.get(i, i): len(graph.equations) for i in graph.outputs})
    given = {*graph.inputs, *graph.constants}
    held = sum(graph.types[i].nbytes for i in given)
    ending: dict[int, list[int]] = {}
    for i, k in last.items():
        ending.setdefault(k, []).append(i)
    found = []
    for k, eq in enumerate(graph.equations):
        held += sum(graph.types[o].nbytes for o in eq.outs if o not in base)
        found.append(held)
        held -= sum(graph.types[i].nbytes for i in ending.get(k, ()) if i not in given)
    return found
