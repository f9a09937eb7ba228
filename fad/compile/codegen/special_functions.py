"""SciPy's special functions in native programs: called by pointer, number by number, on as many cores as there are.

SciPy exports its functions of double precision for Cython. A program calls them without Python, so a loop that uses
them is native, too, and large arrays are shared out among the threads. Single precision is computed in double.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.module import SCALAR, Module
from fad.compile.codegen.program import Program
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import F32, F64, LLVM_TYPE
from fad.core.programs.graph import Equation, Graph

MOST_OPERANDS = 3
_PART = 1 << 13  # elements that one thread computes at a time


@functools.cache
def address(ufunc: np.ufunc) -> int | None:
    """Return the address of a function ``double (double, ..., int)`` for a ufunc of scipy.special, or None."""
    if ufunc.nout != 1 or not 1 <= ufunc.nin <= MOST_OPERANDS:
        return None
    from scipy import special

    if getattr(special, ufunc.__name__, None) is not ufunc:
        return None
    from scipy.special import cython_special

    signature = f"double ({'double, ' * ufunc.nin}int __pyx_skip_dispatch)".encode()
    for name, capsule in cython_special.__pyx_capi__.items():
        if re.fullmatch(rf"(__pyx_fuse_\d+)?{ufunc.__name__}", name) and _name(capsule) == signature:
            return _pointer(capsule, signature)
    return None


def _name(capsule: Any) -> bytes:
    get = ctypes.PyDLL(None).PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule)


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.PyDLL(None).PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def is_special(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation is a function that SciPy exports, on numbers of one dtype."""
    prim = eq.prim
    if not isinstance(_ufunc(eq), np.ufunc) or not prim.name.startswith("special.") or eq.params:
        return False
    out = graph.types[eq.outs[0]]
    if LLVM_TYPE.get(out.dtype) not in (F64, F32) or not out.size:
        return False
    fits = all(
        graph.types[i].dtype == out.dtype or (i in graph.constants and graph.types[i].dtype.kind == "f") for i in eq.ins
    )
    return fits and address(_ufunc(eq)) is not None


def _ufunc(eq: Equation) -> Any:
    """Return SciPy's function of an operation, of one that has another function for devices as well."""
    return getattr(eq.prim.forward, "host", eq.prim.forward)


def add_special(program: Program, eq: Equation) -> bool:
    """Add a function's loop to a program's table, cut into parts if it is large."""
    if not is_special(program.graph, eq):
        return False
    out = program.memory.at[eq.outs[0]]
    t = LLVM_TYPE[out.dtype]
    operands = [_operand(program, i, out) for i in eq.ins]
    name = f"special_{t}_{''.join('01'[moves] for *_, moves in operands)}"
    parts = [(k, min(k + _PART, out.size)) for k in range(0, out.size, _PART)]
    text = lambda: _module(name, t, [moves for *_, moves in operands])
    if len(parts) > 1 and not program.memory.within:
        program.table.in_parts(name, text, len(parts), 3 + len(operands))
    else:
        parts = [(0, out.size)]
        program.table.begin_row(name, text)
    for start, stop in parts:
        program.table.words += [stop - start, address(_ufunc(eq)) or 0]
        program.table.point_to(eq.outs[0], start * out.itemsize)
        for array, value, moves in operands:
            offset = start * out.itemsize if moves else 0
            if value is None:
                program.table.words.append(data_address(array) + offset)
            else:
                program.table.point_to(value, offset)
    return True


def _operand(program: Program, value: int, out: np.ndarray) -> tuple[np.ndarray, int | None, bool]:
    """Return an operand's array, the value that it is if any, and whether it has an element for each of the result."""
    array = program.memory.at[value]
    if value in program.graph.constants:
        array = np.ascontiguousarray(array if array.size == 1 else np.broadcast_to(array, out.shape), out.dtype)
        program.table.kept.append(array)
        return array, None, array.size > 1
    if array.size == out.size:
        value = program.table.contiguous(value)
    elif array.size > 1:
        return *program.table.expand(array, value, out.shape), True
    return program.memory.at[value], value, array.size > 1


def _module(name: str, t: str, moving: list[bool]) -> Module:
    """Return the loop. Words: the number of elements, the function, the result, the operands."""
    names = ["N", "F", "Y", *[f"X{k}" for k in range(len(moving))]]
    lines = [f"define i32 @{name}(ptr noalias %W) {{", "entry:"]
    for k, w in enumerate(names):
        lines.append(f"  %w{w} = getelementptr i64, ptr %W, i64 {k}")
        lines.append(f"  %{w} = load {'i64' if w == 'N' else 'ptr'}, ptr %w{w}")
    lines += ["  br label %n", "n:", "  %i = phi i64 [0, %entry], [%i1, %n]"]
    for k, moves in enumerate(moving):
        lines.append(f"  %a{k} = getelementptr {t}, ptr %X{k}, i64 {'%i' if moves else 0}")
        lines.append(f"  %v{k} = load {t}, ptr %a{k}")
        lines.append(f"  %d{k} = {f'fpext float %v{k} to double' if t == F32 else f'fadd double %v{k}, -0.0'}")
    given = ", ".join(f"double %d{k}" for k in range(len(moving)))
    lines += [
        f"  %d = call double %F({given}, i32 0)",
        f"  %y = {'fptrunc double %d to float' if t == F32 else 'fadd double %d, -0.0'}",
        f"  %b = getelementptr {t}, ptr %Y, i64 %i", f"  store {t} %y, ptr %b", "  %i1 = add i64 %i, 1",
        "  %more = icmp ult i64 %i1, %N", "  br i1 %more, label %n, label %out", "out:", "  ret i32 0", "}", "",
    ]  # fmt: skip
    return Module("\n".join(lines), SCALAR)
