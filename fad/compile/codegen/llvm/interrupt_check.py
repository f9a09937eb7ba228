"""The code with which native loops look at the clock, and ask Python whether a signal came; see `machine.signals`."""

from __future__ import annotations

from fad.compile.codegen.llvm.module import Module
from fad.compile.machine.signals import CLOCK, WORDS, python

_BETWEEN = 100_000_000  # ns between two questions
_SLOW = 10_000_000  # ns between two looks above which a loop looks more often
_MOST = 64  # steps between two looks
STOPPED = 2  # what a native function returns that was interrupted; 1 is a question answered differently

NEVER = f"""define i32 @glance(ptr %S, ptr %R) {{
entry:
  %paced = icmp ne ptr %R, null
  br i1 %paced, label %pace, label %out
pace:
  store i64 {_MOST}, ptr %R
  br label %out
out:
  ret i32 0
}}
"""


def glance_module() -> Module:
    """Return the function that looks at the clock, and asks Python if it is time: of a watch, and a pace or null."""
    if not python().works:
        return Module(NEVER)
    fields = [f"  %{w}_at = getelementptr i64, ptr %S, i64 {k}" for k, w in enumerate(WORDS)]
    fields += [f"  %{w} = load ptr, ptr %{w}_at" for w in WORDS[1:6]]
    head = "\n".join(fields)
    return Module(f"""define i32 @glance(ptr %S, ptr %R) {{
entry:
  %time = alloca [2 x i64]
{head}
  %c = call i32 %clock(i32 {CLOCK}, ptr %time)
  %nano_at = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %nano = load i64, ptr %nano_at
  %billions = mul i64 %seconds, 1000000000
  %now = add i64 %billions, %nano
  %paced = icmp ne ptr %R, null
  br i1 %paced, label %pace, label %look
pace:
  %between_at = getelementptr i64, ptr %R, i64 1
  %last_at = getelementptr i64, ptr %R, i64 2
  %between = load i64, ptr %between_at
  %last = load i64, ptr %last_at
  %gone = sub i64 %now, %last
  %slow = icmp sgt i64 %gone, {_SLOW}
  %half = lshr i64 %between, 1
  %twice = shl i64 %between, 1
  %next = select i1 %slow, i64 %half, i64 %twice
  %few = call i64 @llvm.smin.i64(i64 %next, i64 {_MOST})
  %some = call i64 @llvm.smax.i64(i64 %few, i64 1)
  store i64 %some, ptr %R
  store i64 %some, ptr %between_at
  store i64 %now, ptr %last_at
  br label %look
look:
  %due = load atomic i64, ptr %due_at monotonic, align 8
  %early = icmp slt i64 %now, %due
  br i1 %early, label %out, label %ask
ask:
  %later = add i64 %now, {_BETWEEN}
  store atomic i64 %later, ptr %due_at monotonic, align 8
  %lock = call i32 %ensure()
  %code = call i32 %check()
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %on, label %stop
on:
  call void %release(i32 %lock)
  br label %out
stop:
  call void %fetch(ptr %type_at, ptr %value_at, ptr %traceback_at)
  call void %release(i32 %lock)
  ret i32 {STOPPED}
out:
  ret i32 0
}}
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
""")


def look(on: str, count: str, stop: str) -> str:
    """Return the end of a step of native code that looks at the clock each 32 steps, ``%watch`` being the watch."""
    return f"""  %lately = and i64 {count}, 31
  %busy = icmp ne i64 %lately, 0
  br i1 %busy, label %{on}, label %glance
glance:
  %glancep = load ptr, ptr %watch
  %signal = call i32 %glancep(ptr %watch, ptr null)
  %stopped = icmp ne i32 %signal, 0
  br i1 %stopped, label %{stop}, label %{on}"""
