"""Native functions that are not loops: the driver of a program, and guards."""

from __future__ import annotations

# Runs a flat program: a table of functions and one of their arguments. Stops at the first that returns non-zero.
DRIVER = """define i64 @driver(ptr %S) {
entry:
  %F = load ptr, ptr %S
  %q1 = getelementptr i64, ptr %S, i64 1
  %P = load ptr, ptr %q1
  %q2 = getelementptr i64, ptr %S, i64 2
  %n = load i64, ptr %q2
  br label %step
step:
  %i = phi i64 [0, %entry], [%next, %on]
  %fp = getelementptr ptr, ptr %F, i64 %i
  %f = load ptr, ptr %fp
  %pp = getelementptr ptr, ptr %P, i64 %i
  %p = load ptr, ptr %pp
  %code = call i32 %f(ptr %p)
  %next = add i64 %i, 1
  %bad = icmp ne i32 %code, 0
  br i1 %bad, label %stop, label %on
on:
  %more = icmp ult i64 %next, %n
  br i1 %more, label %step, label %done
stop:
  ret i64 %next
done:
  ret i64 0
}
"""


def guard_text(width: int) -> str:
    """Return a guard: compares one integer of `width` bits in memory with the recorded one."""
    return f"""define i32 @guard{width}(ptr %A) {{
  %p = load ptr, ptr %A
  %q = getelementptr i64, ptr %A, i64 1
  %want = load i64, ptr %q
  %x = load i{width}, ptr %p
  %wide = zext i{width} %x to i64
  %same = icmp eq i64 %wide, %want
  %code = select i1 %same, i32 0, i32 1
  ret i32 %code
}}
""".replace("%wide = zext i64 %x to i64", "%wide = add i64 %x, 0")
