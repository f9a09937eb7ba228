"""Kernels of a device: a group of elementwise operations as one launch, with several results.

The text of a kernel depends on its operations and dtypes alone, so the steps of an unrolled loop share kernels. A
kernel that does not compile is said once, and its operations run one by one.
"""

from __future__ import annotations

import functools
import hashlib
import re
import warnings
from typing import Any

import numpy as np

from fad.compile.codegen.cuda import C_TYPE, cast, literal, spelling
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.passes.constants import as_uniform
from fad.core.programs.graph import ARRAY, Equation, Graph, place_constant
from fad.errors import NativeFallbackWarning


@functools.lru_cache(maxsize=4096)
def _compile_kernel(backend: Any, ins: tuple, outs: tuple, body: str, name: str) -> Any:
    return backend.elementwise_kernel(ins, outs, body, name)


class Kernel:
    """A group of operations of one shape: what it reads, what it stores, and the kernel that does it."""

    def __init__(self, backend: Any, graph: Graph, equations: list[Equation], stored: list[int]):
        self.backend = backend
        self.graph = graph
        self.equations = equations
        self.outs = stored
        text = _Text(graph, {o for eq in equations for o in eq.outs})
        self.body = text.write(equations, stored)
        self.ins = text.ins
        self.texts = (tuple(text.heads), tuple(text.results))
        self.name = _name_kernel(equations, self.body)
        self.run: Any = self._first

    def describe(self) -> str:
        how = "" if self.run != self._one_by_one else ", one by one: it did not compile"
        return f"{self.name}: {len(self.equations)} operations{how}"

    def _first(self, *xs: Any) -> tuple:
        """Compile, which the first call does, and run; what does not compile runs operation by operation."""
        try:
            kernel = _compile_kernel(self.backend, *self.texts, self.body, self.name)
            found = kernel(*xs)
        except MemoryError:
            raise
        except Exception as error:
            _warn(self.name, error)
            self.run = self._one_by_one
            return self.run(*xs)
        self.run = kernel
        return found

    def _one_by_one(self, *xs: Any) -> tuple:
        graph = self.graph
        read = {i for eq in self.equations for i in eq.ins}
        env = {i: place_constant(c, graph.types[i]) for i, c in graph.constants.items() if i in read}
        env.update(zip(self.ins, xs, strict=True))
        for eq in self.equations:
            env[eq.outs[0]] = eq.prim.forward(*[env[i] for i in eq.ins], **eq.params)
        return tuple(env[o] for o in self.outs)


class _Text:
    """The text of a kernel's body, as it grows."""

    def __init__(self, graph: Graph, made: set[int]):
        self.graph = graph
        self.made = made
        self.ins: list[int] = []
        self.heads: list[tuple[str, str]] = []  # (dtype, name) of what is read
        self.results: list[tuple[str, str]] = []
        self.names: dict[int, str] = {}

    def write(self, equations: list[Equation], stored: list[int]) -> str:
        lines = []
        for k, eq in enumerate(equations):
            how: Any = spelling(self.graph, eq)
            kinds = [how.operand_type(n) for n in range(len(eq.ins))]
            operands = [self.operand(i, kinds[n]) if n in how.reads else "" for n, i in enumerate(eq.ins)]
            lines.append(f"{C_TYPE[how.out]} t{k} = {how.write(operands)};")
            self.names[eq.outs[0]] = f"t{k}"
        for k, o in enumerate(stored):
            self.results.append((self.graph.types[o].dtype.name, f"y{k}"))
            lines.append(f"y{k} = {self.names[o]};")
        return "\n".join(lines)

    def operand(self, i: int, kind: str) -> str:
        """Return a value in the type that an operation computes in; a number that is known is written down."""
        c = known_number(self.graph, i)
        text = None if c is None else literal(c, kind)
        if text is not None:
            return text
        if i not in self.names:
            self.names[i] = f"x{len(self.ins)}"
            self.ins.append(i)
            self.heads.append((self.graph.types[i].dtype.name, self.names[i]))
        return cast(self.names[i], LLVM_TYPE[self.graph.types[i].dtype], kind)


def known_number(graph: Graph, i: int) -> Any:
    """Return the number that a constant is everywhere, or None."""
    return as_uniform(graph.constants[i]) if i in graph.constants else None


def fits(graph: Graph, equations: list[Equation], outs: Any) -> bool:
    """Return whether the arrays that a group reads have its shape when they are broadcast together.

    Numbers that are written down do not count: an array of ones may have been what gave the shape.
    """
    made = {o for eq in equations for o in eq.outs}
    read = {i for eq in equations for i in eq.ins} - made
    shapes = [graph.types[i].shape for i in read if graph.types[i].kind == ARRAY and known_number(graph, i) is None]
    return bool(shapes) and np.broadcast_shapes(*shapes) == graph.types[next(iter(outs))].shape


def _name_kernel(equations: list[Equation], body: str) -> str:
    """Return a name that says what a kernel does, for the profilers of the device."""
    said = "_".join(dict.fromkeys(re.sub(r"\W", "_", eq.prim.name) for eq in equations))[:60]
    return f"fad_{said}_{hashlib.sha256(body.encode()).hexdigest()[:8]}"


_warned: list[str] = []


def _warn(name: str, error: Exception) -> None:
    if not _warned:
        _warned.append(name)
        why = " ".join(str(error).split())[:500]
        warnings.warn(
            f"a kernel for the device could not be compiled ({type(error).__name__}: {why}); "
            f"the operations of {name}, and of others that fail, run one by one",
            NativeFallbackWarning,
            stacklevel=4,
        )
