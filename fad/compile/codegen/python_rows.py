"""NumPy calls in the bodies of loops and branches: rows of native code that call Python, and wait for it.

The words of such a row are the address of the function that Python has for it, and those of what the call reads and
writes of the memory around the body, which the driver moves from step to step as it does for every kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.interrupt_check import STOPPED
from fad.compile.codegen.llvm.module import Module
from fad.compile.codegen.program import Program
from fad.compile.machine.signals import Watch
from fad.compile.schedule.fusion import Step
from fad.core.programs.refusals import OF_VALUES

_DONE = 0x600D  # what the function gives that came to its end; where ctypes has to ignore an error it gives anything
_CALL = f"""define i32 @call_python(ptr %W) {{
  %function = load ptr, ptr %W
  %code = call i32 %function(ptr %W)
  %done = icmp eq i32 %code, {_DONE}
  %stopped = icmp eq i32 %code, {STOPPED}
  %other = select i1 %stopped, i32 {STOPPED}, i32 1
  %found = select i1 %done, i32 0, i32 %other
  ret i32 %found
}}
"""
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_SHOWN = 64  # sets of arrays that are kept: where each step has rows of its own, each set is seen once


def add_python_call(program: Program, step: Step, call: Callable[[], Any]) -> None:
    """Add a call on arrays of the program's memory to the last row, if that is one of calls, or as a row of its own."""
    table, memory = program.table, program.memory
    program.failing(step.equations[0])
    row = program.python_row
    if row is None or row.end != (len(table.rows), len(table.words)):
        row = program.python_row = Calls(memory.at, program.watch)
        table.begin_row("call_python", lambda: Module(_CALL))
        answers = row.answer()
        next(answers)
        function = _FUNCTION(answers.send)
        table.kept.append(function)
        table.words.append(ctypes.cast(function, ctypes.c_void_p).value or 0)
    row.calls.append(call)
    for i in dict.fromkeys(_find_operands(program, step)):
        if i not in row.moved and _is_outside(program, i):
            row.moved[i] = _Shown(memory.at[i])
            table.point_to(i)
    row.end = (len(table.rows), len(table.words))


def _find_operands(program: Program, step: Step) -> Iterator[int]:
    """Give the values that a step reads, and those that it writes."""
    for eq in step.equations:
        yield from eq.ins
    yield from program.memory.stored_by(step)


def _is_outside(program: Program, i: int) -> bool:
    """Return whether a value lies in memory around the body, somewhere else in another step."""
    place = program.memory.places.get(program.memory.base.get(i, -1))
    return place is not None and place.outside


class Calls:
    """The calls of a row: they are shown the arrays of this step, and native code is told whether they came to an end.

    An error of theirs is not kept: the program is run by NumPy then, which has it again, with the user's line.
    """

    __slots__ = ("at", "watch", "calls", "moved", "end", "words", "shown", "seen")

    def __init__(self, at: dict[int, Any], watch: Watch):
        self.at = at
        self.watch = watch
        self.calls: list[Callable[[], Any]] = []
        self.moved: dict[int, _Shown] = {}  # values whose addresses follow in the row
        self.end = (-1, -1)  # of the row: that of the table, as long as it is the last one
        self.words: Any = None  # the addresses, where they are once the program is linked
        self.shown = b""
        self.seen: dict[bytes, list[tuple[int, np.ndarray]]] = {}

    def answer(self) -> Generator[int, int, None]:
        """Run the calls for each address of a row that is sent, and say how they ended.

        It is a generator because Python runs handlers of signals as it enters a function, where no ``try`` of that
        function catches what they raise; but it resumes a generator within its ``try``.
        """
        code = _DONE
        while True:
            try:
                while True:
                    row = yield code
                    self._run(row)
                    code = _DONE
            except GeneratorExit:
                return
            except OF_VALUES:
                code = 1
            except BaseException as why:  # Ctrl-C, say: what a handler of signals raised
                self.watch.raised = why
                code = STOPPED

    def _run(self, row: int) -> None:
        if self.words is None:
            self.words = memoryview((ctypes.c_char * (8 * len(self.moved))).from_address(row + 8))
        addresses = self.words.tobytes()
        if addresses != self.shown:
            self._show(addresses)
        for call in self.calls:
            call()

    def _show(self, addresses: bytes) -> None:
        """Let the values that lie around the body be the arrays at these addresses."""
        found = self.seen.get(addresses)
        if found is None:
            if len(self.seen) == _SHOWN:
                self.seen.clear()
            numbers = np.frombuffer(addresses, np.int64).tolist()
            pairs = zip(self.moved.items(), numbers, strict=True)
            found = self.seen[addresses] = [(i, shown.array(address)) for (i, shown), address in pairs]
        self.shown = b""  # a handler of signals may raise after the update
        self.at.update(found)
        self.shown = addresses


class _Shown:
    """How a value is shown as an array, given its address."""

    __slots__ = ("shape", "dtype", "strides", "offset", "size")

    def __init__(self, model: np.ndarray):
        self.shape, self.dtype, self.strides = model.shape, model.dtype, model.strides
        ends = [stride * (n - 1) for stride, n in zip(model.strides, model.shape, strict=True)] if model.size else []
        self.offset = -sum(min(0, end) for end in ends)
        self.size = self.offset + sum(max(0, end) for end in ends) + (model.itemsize if model.size else 0)

    def array(self, address: int) -> np.ndarray:
        memory = (ctypes.c_char * self.size).from_address(address - self.offset)
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
