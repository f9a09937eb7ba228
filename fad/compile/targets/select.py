"""The choice of a lowering: native code where llvmlite is installed, NumPy otherwise."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.compile.ir.uses import home_of
from fad.compile.passes.loop_bodies import alone
from fad.compile.pipeline import optimise
from fad.compile.targets.limited_numpy import cost_of, run_within
from fad.compile.targets.numpy_program import NumPyProgram
from fad.control_flow.bodies.interpreter import runner
from fad.core.programs.graph import Graph, type_of
from fad.core.tracing.values import is_zero
from fad.errors import NativeFallbackWarning
from fad.staging.record import is_recording

_lowering: ContextVar[str] = ContextVar("lowering", default="auto")
_warned: list[str] = []


@functools.cache
def has_llvm() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


@functools.cache
def load_compiler() -> None:
    """Import what native programs are made with, which takes longer than to compile a small one, and what all need."""
    if has_llvm():
        with contextlib.suppress(Exception):  # what is wrong is said where a program is compiled
            import fad.compile.targets.native  # noqa: F401
            from fad.compile.runtime.linker import prepare

            prepare()


@contextlib.contextmanager
def using(lowering: str) -> Iterator[None]:
    """Compile with one lowering, "auto", "llvm" or "numpy", for the length of a ``with`` block."""
    if lowering not in ("auto", "llvm", "numpy"):
        raise ValueError(f"a lowering is 'auto', 'llvm' or 'numpy', not {lowering!r}")
    token = _lowering.set(lowering)
    try:
        yield
    finally:
        _lowering.reset(token)


_FEW = 20_000  # operations of a loop that NumPy has done sooner than native code is there
_FEW_EACH = 3_000  # the same for each operation in the text of its steps, which is to be compiled
_KEPT = 32
_loops: OrderedDict[Any, tuple] = OrderedDict()


def _length_of_text(graph: Graph) -> int:
    """Return how many operations there are to compile."""
    return sum([sum(map(_length_of_text, eq.bodies)) or 1 for eq in graph.equations])


def _operations(graph: Graph) -> float:
    """Return how many operations a program runs, those of all steps of its loops; infinity if it is not known.

    One of a large array counts as many: an update in a loop copies the array in every step unless it is native.
    """
    total = 0.0
    for eq in graph.equations:
        if eq.prim.archetype == "loop":
            most = eq.params["length"]  # of a loop that stops earlier, too, if it is known
            steps = math.inf if most is None else most
            total += steps * max(1.0, _operations(eq.params["body"])) if steps else 0.0
        elif eq.prim.archetype == "branch":
            total += max(map(_operations, eq.params["branches"]))
        else:
            total += cost_of(graph, eq)
    return total


def _fix_known(graph: Graph, operands: Any) -> tuple[Graph, list]:
    """Let integers, and arrays of zeros, be constants of a program that runs once: what is known of them helps."""
    constants: dict[int, Any] = {}
    rest: list[tuple[int, Any]] = []
    for i, x in zip(graph.inputs, operands, strict=True):
        if type(x) is np.ndarray and x.ndim and x.dtype.kind in "iu":
            constants[i] = x
        elif type(x) is np.ndarray and x.ndim and x.dtype.kind == "f" and is_zero(x) and not np.signbit(x).any():
            constants[i] = np.broadcast_to(x.dtype.type(0), x.shape)
        else:
            rest.append((i, x))
    graph = graph.replace(inputs=[i for i, _ in rest], constants={**graph.constants, **constants})
    return graph, [x for _, x in rest]


def _run_loop(operands: Any, params: dict) -> tuple:
    """Run a loop on plain values, as the recording of a program does, and as a graph that is called."""
    body = params["body"]
    rest = tuple((k, v) for k, v in params.items() if k not in ("body", "save", "cut"))
    key = (id(body), rest, tuple([(t.key(), t.home) for t in map(type_of, operands)]), _lowering.get())
    found = _loops.get(key)
    if found is None:
        graph, once = alone(operands, params), is_recording()
        if once:  # it is not run again
            graph, operands = _fix_known(graph, operands)
        graph = optimise(graph)
        if once:
            with np.errstate(all="ignore"):  # native code gives no warnings, and the user's program has none of these
                return tuple(_run_once(graph, list(operands)))
        few = home_of(graph) is None and _operations(graph) < _FEW
        found = (body, (NumPyProgram if few else lower)(graph))
        _loops[key] = found
        while len(_loops) > _KEPT:
            _loops.popitem(last=False)
    return tuple(found[1](list(operands)))


def _run_once(graph: Graph, operands: list) -> list:
    """Run a loop that is not run again: by NumPy if it has done that sooner than native code is there."""
    if home_of(graph) is not None:
        return lower(graph)(operands)
    limit, most = _FEW + _FEW_EACH * _length_of_text(graph), _operations(graph)
    if most < limit:
        return NumPyProgram(graph)(operands)
    # A loop that is longer than that takes half as long again.
    found = run_within(graph, operands, limit / 2) if most == math.inf else None
    return lower(graph)(operands) if found is None else found


runner.append(_run_loop)


def _is_unreadable(graph: Graph) -> bool:
    """Whether native code cannot read a value: an integer of more than 64 bits, or numbers in the other byte order."""
    bodies = [g for eq in graph.equations for g in eq.bodies]
    return any(t.dtype.kind == "O" or not t.dtype.isnative for t in graph.types) or any(map(_is_unreadable, bodies))


def lower(graph: Graph, donated: tuple = ()) -> Any:
    """Return a program for an optimised graph: a callable from the list of inputs to the list of outputs.

    The memory of the inputs numbered in `donated` may hold outputs after a call.
    """
    wanted = _lowering.get()
    home = home_of(graph)
    if home is not None:
        from fad.compile.targets.device import DeviceProgram

        return DeviceProgram(graph, home, kernels=wanted != "numpy")
    if wanted == "numpy" or (wanted == "auto" and not has_llvm()) or _is_unreadable(graph):
        return NumPyProgram(graph)
    from fad.compile.targets.native import NativeProgram

    try:
        return NativeProgram(graph, donated)
    except Exception as error:
        if wanted == "llvm":
            raise
        if not _warned:
            _warned.append(str(error))
            warnings.warn(
                f"a program could not be compiled to native code ({type(error).__name__}: {error}); it runs in NumPy",
                NativeFallbackWarning,
                stacklevel=2,
            )
        return NumPyProgram(graph)
