"""The text of one LLVM function with loops and branches in it: blocks, counters, bounds checks, looks at the clock.

What a loop carries lies in stack slots, which LLVM turns into registers. An instruction that was written before is not
written again where the first one has run for certain: in the same block, or in one around it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from fad.compile.codegen.llvm.builder import Emitter
from fad.compile.codegen.llvm.interrupt_check import STOPPED
from fad.compile.ir.types import BOOL, F64, I64
from fad.compile.machine.cpu import register_bytes

MOST_LINES = 12_000  # of a function: LLVM takes some 20 microseconds for each
_FEW = 64  # steps between two looks at the clock below which it is measured how long they take
_METADATA = 100  # the first number of metadata
Index = int | str  # a position along an axis: known, or a value of the function


class TooMuch(Exception):
    """A loop is not fit to be one function; the message says why."""


class Number(NamedTuple):
    """One number in a register; of an integer, also what bounds are known."""

    name: str
    t: str
    low: int | None = None
    high: int | None = None

    @property
    def index(self) -> Index:  # type: ignore[override]  # no element of it is looked for
        """The number as a position, known if only one is possible."""
        return self.low if self.low is not None and self.low == self.high else self.name


# What LLVM may put into no vectors: vectors, calls of others than its own functions, blocks, what is left in a slot.
_APART = re.compile(
    r"<\d+ x |call (?!(fast )?(double|float|i\d+) @llvm\.)|^L\d+:|store \S+ \S+ ptr %s\d+$", re.MULTILINE
)


def _width_of(body: list[str], limit: Index) -> int:
    """Return how wide the vectors of a loop that runs backward shall be: 1 where its steps may have to stay apart.

    LLVM complains to the user, on standard error, of each loop that cannot be as wide as it was told.
    """
    width = max(register_bytes(), 16) // 8
    short = type(limit) is int and limit < width
    return 1 if short or _APART.search("\n".join(body)) else width


class Writer(Emitter):
    """Collects the blocks of one function."""

    def __init__(self, large: bool = False) -> None:
        super().__init__("v")
        self.large = large  # whether one operation may have more elements than a kernel of its own should do
        self.slow = True  # the C library's functions are right for every argument
        self.slots: list[str] = []  # instructions of the entry block
        self.labels = 0
        self.fresh_names = 0
        self.loaded: dict = {}  # elements that are at hand in this run of a loop over elements
        self.assumed: dict = {}  # what masks are known to be at an index: in a stretch of a loop that they split
        self.forms: dict[str, tuple] = {}  # positions that are sums, see `_form`
        self.ranges: dict[str, tuple[float, float]] = {}  # the bounds of positions
        self.backward = False  # whether what is being written reads or writes from the end of an axis on
        self.fails = False  # whether an index or a number may have no answer

    # --- names and blocks ---------------------------------------------------------------------------------------------

    def fresh(self, text: str) -> str:
        """Write an instruction whose result may differ from that of an equal one: it reads memory, say."""
        if len(self.lines) > MOST_LINES:
            raise TooMuch("its body has too many operations")
        self.fresh_names += 1
        name = f"%f{self.fresh_names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def slot(self, t: str, count: int = 1) -> str:
        """Return the address of memory on the stack for so many values."""
        name = f"%s{len(self.slots)}"
        what = t if count == 1 else f"[{count} x {t}]"
        self.slots.append(f"  {name} = alloca {what}, align {64 if count > 1 else 8}")
        return name

    @contextmanager
    def block(self) -> Iterator[None]:
        """Forget, behind a block, what was computed in it: it may not have run."""
        known, self.loaded = dict(self.known), {}
        yield
        self.known, self.loaded = known, {}

    def magnitude(self, x: str, t: str = F64) -> str:
        """Return the absolute value of a number."""
        return self.call("fabs", x, t=t)

    # --- memory -------------------------------------------------------------------------------------------------------

    def read(self, t: str, pointer: str) -> str:
        if t != BOOL:
            return self.fresh(f"load {t}, ptr {pointer}")
        byte = self.fresh(f"load i8, ptr {pointer}")
        return self.fresh(f"icmp ne i8 {byte}, 0")

    def write(self, t: str, value: str, pointer: str) -> None:
        if t == BOOL:
            value, t = self.fresh(f"zext i1 {value} to i8"), "i8"
        self.do(f"store {t} {value}, ptr {pointer}")
        self.loaded = {}

    def advance(self, pointer: str, offset: Index) -> str:
        return pointer if offset == 0 else self.new(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    # --- positions ----------------------------------------------------------------------------------------------------

    def times(self, i: Index, factor: int) -> Index:
        if type(i) is int:
            return i * factor
        if factor in (0, 1):
            return i if factor else 0
        self.backward = self.backward or factor < 0
        found = self.new(f"mul i64 {i}, {factor}")
        terms, more = self._form(i)
        self.forms[found] = {name: count * factor for name, count in terms.items()}, more * factor
        return found

    def plus(self, i: Index, j: Index) -> Index:
        return self._combine(i, 1, j, f"add i64 {i}, {j}" if type(i) is str else f"add i64 {j}, {i}")

    def minus(self, i: Index, j: Index) -> Index:
        return self._combine(i, -1, j, f"sub i64 {i}, {j}")

    def _combine(self, i: Index, sign: int, j: Index, text: str) -> Index:
        """Return a sum or difference of positions; one that is known, or there already, is not computed again."""
        (some, a), (others, b) = self._form(i), self._form(j)
        terms, more = dict(some), a + sign * b
        for name, count in others.items():
            terms[name] = terms.get(name, 0) + sign * count
        terms = {name: count for name, count in terms.items() if count}
        if not terms:
            return more
        ((name, count), *rest) = terms.items()
        if not rest and count == 1:
            if not more:
                return name
            text = f"add i64 {name}, {more}"
        found = self.new(text)
        self.forms[found] = terms, more
        if not rest and count == 1 and name in self.ranges:
            low, high = self.ranges[name]
            self.ranges[found] = low + more, high + more
        return found

    def _form(self, i: Index) -> tuple[dict[str, int], int]:
        """Return a position as a sum of some that are not sums themselves, each so many times, and a number."""
        return ({}, i) if isinstance(i, int) else self.forms.get(i, ({i: 1}, 0))

    def note(self, i: Number) -> Number:
        """Remember between which bounds an integer lies, if they are known."""
        if i.t == I64 and i.low is not None and i.high is not None:
            self.ranges[i.name] = i.low, i.high
        return i

    def _range(self, i: Index) -> tuple[float, float]:
        return (i, i) if isinstance(i, int) else self.ranges.get(i, (-math.inf, math.inf))

    def greatest(self, i: Index, j: Index) -> Index:
        (a, b), (c, d) = self._range(i), self._range(j)
        return i if a >= d else j if c >= b else self._call("smax", i, j)

    def least(self, i: Index, j: Index) -> Index:
        (a, b), (c, d) = self._range(i), self._range(j)
        return i if b <= c else j if d <= a else self._call("smin", i, j)

    def _call(self, name: str, i: Index, j: Index) -> Index:
        self.needs.add(f"declare i64 @llvm.{name}.i64(i64, i64)")
        return self.new(f"call i64 @llvm.{name}.i64(i64 {i}, i64 {j})")

    def position(self, i: Number, n: int) -> Index:
        """Return where a user's index points along an axis of n places; leave the function if that is nowhere."""
        if i.t != I64:
            i = Number(self.cast(i.name, i.t, I64), I64, i.low, i.high)
        low, high = i.low, i.high
        inside = low is not None and high is not None and -n <= low and high < n
        at = i.index
        if inside and low >= 0:  # type: ignore[operator]
            return at
        if type(at) is int and inside:
            return at + n
        if low is None or low < 0:
            below = self.new(f"icmp slt i64 {at}, 0")
            moved = self.new(f"add i64 {at}, {n}")
            at = self.new(f"select i1 {below}, i64 {moved}, i64 {at}")
        if not inside:
            self.require(self.new(f"icmp ult i64 {at}, {n}"))
        return at

    def require(self, condition: str) -> None:
        """Leave the function where a condition does not hold: NumPy has the error."""
        self.fails = True
        on = self.label()
        self.do(f"br i1 {condition}, label %{on}, label %fail")
        self.begin(on)

    # --- loops --------------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, limit: Index, stretch: int = 0, going: str | None = None, chains: int = 1) -> Iterator[str]:
        """Write a loop around what is written meanwhile; gives the number of the step.

        `chains` is how many partial results a loop that adds up may have: one waits for each addition.

        With `stretch` it looks at the clock after so many steps; if these are few, it finds out how many take little
        time, for steps may do less than their arrays' sizes say. `going` is a slot that says whether to go on. What
        the loop has counted at the end is `self.counted`.
        """
        counter = self.slot(I64)
        far, test, body, done, out = (self.label() for _ in range(5))
        self.do(f"store i64 0, ptr {counter}")
        stop: Index = limit
        if stretch:
            self.do(f"br label %{far}")
            self.begin(far)
            start = self.fresh(f"load i64, ptr {counter}")
            pace = self._pace(stretch) if stretch < _FEW else None
            steps = self.fresh(f"load i64, ptr {pace}") if pace else stretch
            end = self.fresh(f"add i64 {start}, {steps}")
            near = self.fresh(f"icmp slt i64 {end}, {limit}")
            stop = self.fresh(f"select i1 {near}, i64 {end}, i64 {limit}")
        self.do(f"br label %{test}")
        self.begin(test)
        t = self.fresh(f"load i64, ptr {counter}")
        on = self.fresh(f"icmp slt i64 {t}, {stop}")
        if going:
            flag = self.fresh(f"load i1, ptr {going}")
            on = self.fresh(f"and i1 {on}, {flag}")
        self.do(f"br i1 {on}, label %{body}, label %{done}")
        self.begin(body)
        outside, self.backward = self.backward, False
        first = len(self.lines)
        with self.block():
            yield t
        width = _width_of(self.lines[first:], limit) if self.backward else 0
        self.do(f"store i64 {self.fresh(f'add nuw nsw i64 {t}, 1')}, ptr {counter}")
        self.do(f"br label %{test}{self._hint(chains, width)}")
        self.backward = self.backward or outside
        self.begin(done)
        self.counted = t
        if stretch:
            more = self.fresh(f"icmp slt i64 {t}, {limit}")
            if going:
                more = self.fresh(f"and i1 {more}, {flag}")
            ask = self.label()
            self.do(f"br i1 {more}, label %{ask}, label %{out}")
            self.begin(ask)
            glance = self.fresh("load ptr, ptr %watch")
            signal = self.fresh(f"call i32 {glance}(ptr %watch, ptr {pace or 'null'})")
            quiet = self.fresh(f"icmp eq i32 {signal}, 0")
            self.do(f"br i1 {quiet}, label %{far}, label %halt")
            self.begin(out)

    def _hint(self, chains: int, width: int) -> str:
        """Return what tells LLVM to let several steps of a loop run beside each other, and how wide its vectors are.

        Left to find the width of a loop that runs backward along an array, LLVM 22 may end the process.
        """
        hints = {"interleave.count": chains if chains > 1 else 0, "vectorize.width": width}
        hints = {name: value for name, value in hints.items() if value}
        if not hints:
            return ""
        # Loops with the same hints share them, and so do modules that are compiled together.
        loop, parts = _METADATA + 100 * chains + width, []
        for name, value in hints.items():
            parts.append(f'!{{!"llvm.loop.{name}", i32 {value}}}')
        self.needs.add(f"!{loop} = distinct !{{!{loop}, {', '.join(parts)}}}")
        return f", !llvm.loop !{loop}"

    def _pace(self, steps: int) -> str:
        """Return memory for what a look at the clock leaves for the next one: the steps until then come first."""
        name = f"%s{len(self.slots)}"
        self.slots.append(f"  {name} = alloca [3 x i64], align 8")
        for k, x in enumerate((steps, steps, 0)):
            at = f"%s{len(self.slots)}"
            self.slots += [f"  {at} = getelementptr i64, ptr {name}, i64 {k}", f"  store i64 {x}, ptr {at}"]
        return name

    def function(self, pointers: list[str]) -> str:
        """Return the module: the function that is called with a row of words, and the one that it calls in turn.

        The inner one knows that its arrays lie apart.
        """
        take, given = [], []
        for k, _ in enumerate(["watch", *pointers]):
            take += [f"  %a{k} = getelementptr i64, ptr %W, i64 {k}", f"  %p{k} = load ptr, ptr %a{k}"]
            given.append(f"ptr %p{k}")
        params = ", ".join(["ptr %watch", *[f"ptr noalias {p}" for p in pointers]])
        return "\n".join([
            *sorted(self.needs),
            "define i32 @NAME(ptr noalias %W) {", "entry:", *take,
            f"  %code = call i32 @NAME_inner({', '.join(given)})", "  ret i32 %code", "}",
            f"define internal i32 @NAME_inner({params}) noinline {{", "entry:", *self.slots, "  br label %start",
            "start:", *self.lines, "  ret i32 0", "fail:", "  ret i32 1", "halt:", f"  ret i32 {STOPPED}", "}", "",
        ])  # fmt: skip
