"""The way into native code: running a flat program, as a function of Python's own kind, and one call at a time.

A call through `ctypes` takes longer than to compute ten numbers, and so does a lock. What is called instead is a
built-in function like those of NumPy, made of a native one by Python's C interface.
"""

from __future__ import annotations

import ctypes
import functools
import os
import queue
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from fad.compile.codegen.llvm.control_drivers import rows_driver
from fad.compile.codegen.llvm.differing import differing_module
from fad.compile.codegen.llvm.module import Module
from fad.compile.runtime import jit_engine

_METH_O = 8  # a function of one argument, see https://docs.python.org/3/c-api/structures.html
# `drive` is what Python calls with the address of a row: functions, their arguments, how many, and the watch.
DRIVE = f"""{rows_driver("drive")}declare ptr @fad_PyLong_AsVoidPtr(ptr)
declare ptr @fad_PyLong_FromLongLong(i64)
declare ptr @fad_PyEval_SaveThread()
declare void @fad_PyEval_RestoreThread(ptr)
define ptr @drive(ptr %self, ptr %number) {{
  %row = call ptr @fad_PyLong_AsVoidPtr(ptr %number)
  %q1 = getelementptr i64, ptr %row, i64 1
  %q2 = getelementptr i64, ptr %row, i64 2
  %q3 = getelementptr i64, ptr %row, i64 3
  %F = load ptr, ptr %row
  %P = load ptr, ptr %q1
  %n = load i64, ptr %q2
  %watch = load ptr, ptr %q3
  %thread = call ptr @fad_PyEval_SaveThread()
  %code = call i64 @drive_rows(ptr %F, ptr %P, i64 %n, ptr %watch)
  call void @fad_PyEval_RestoreThread(ptr %thread)
  %result = call ptr @fad_PyLong_FromLongLong(i64 %code)
  ret ptr %result
}}
"""
# `address` gives the address of an array whose elements lie in order, by Python's buffer protocol; attributes of the
# array give it in ten times the time.
ADDRESS = """declare i32 @fad_PyObject_GetBuffer(ptr, ptr, i32)
declare void @fad_PyBuffer_Release(ptr)
declare ptr @fad_PyLong_FromLongLong(i64)
define ptr @address(ptr %self, ptr %array) {
  %view = alloca [32 x i64]
  %refused = call i32 @fad_PyObject_GetBuffer(ptr %array, ptr %view, i32 0)
  %bad = icmp ne i32 %refused, 0
  br i1 %bad, label %error, label %fine
error:
  ret ptr null
fine:
  %at = load i64, ptr %view
  call void @fad_PyBuffer_Release(ptr %view)
  %result = call ptr @fad_PyLong_FromLongLong(i64 %at)
  ret ptr %result
}
"""
RUNTIME: dict[str, Callable[[], Module]] = {
    "drive": lambda: Module(DRIVE), "address": lambda: Module(ADDRESS), "differing": differing_module,
}  # fmt: skip


class _Method(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


Shut = queue.Empty
_kept: list = []  # what Python reads for as long as a function lives


@functools.cache
def builtin(name: str) -> Callable[[Any], int]:
    """Return a native function of one argument as one of Python's.

    `drive` runs a flat program, given the address of its row, `address` tells where an array lies, and `differing`
    looks for a row that differs, see `codegen.llvm.differing`.
    """
    method = _Method(name.encode(), jit_engine.addresses({name: RUNTIME[name]})[name], _METH_O, None)
    _kept.append(method)
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Method), ctypes.c_void_p, ctypes.c_void_p)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))(method, None, None)


_gates: weakref.WeakSet = weakref.WeakSet()


def _reopen() -> None:
    """Open the gates in which a thread was that a forked process has not: all but those that the caller is in."""
    mine, frame = set(), sys._getframe()
    while frame is not None:
        mine.add(id(getattr(frame.f_globals.get("gate"), "one", None)))
        frame = frame.f_back  # type: ignore[assignment]
    for one in _gates:
        if one.empty() and id(one) not in mine:
            one.put(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen)


def gate() -> Any:
    """Return a context that one thread at a time is in, and whose entry raises `Shut` while another is.

    It is a lock for a third of a lock's price: a queue with one thing in it. What a ``with`` statement calls is the
    queue's own functions, so an interrupt finds it either taken and to be given back, or not taken.
    """
    one: Any = queue.SimpleQueue()
    one.put(None)
    _gates.add(one)

    def gate_methods(enter: Callable) -> dict[str, Any]:
        return {"__slots__": (), "__enter__": staticmethod(enter), "__exit__": staticmethod(one.put), "one": one}

    patient = type("Gate", (), gate_methods(one.get))()
    return type("Gate", (), {**gate_methods(one.get_nowait), "patient": patient})()


def in_turn(run: Any, xs: Any) -> Any:
    """Run a program when the call that is in its gate has left it: with a gate that waits.

    If that is a caller of this call, as where a handler of signals calls what it interrupted, it would wait for itself.
    So then the call runs in NumPy.
    """
    frame: Any = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code is run.__code__:
            return run.__globals__["in_numpy"](xs)
        frame = frame.f_back
    return types.FunctionType(run.__code__, {**run.__globals__, "gate": run.__globals__["gate"].patient})(xs)
