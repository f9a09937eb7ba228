"""Native programs (being built)."""

from __future__ import annotations

from fad.core.graph import Graph


class NativeProgram:
    def __init__(self, graph: Graph):
        raise NotImplementedError("no native lowering yet")
