"""Native drivers of loops and branches: each runs a flat program of its own, as often as it is asked to.

The words of a body's kernels that hold addresses of what differs from step to step are written before each step. A
*patch* says how: six words ``(word, even, odd, offset, stride, last)``, where the address is that of operand `even` or
`odd` (by the parity of the step), plus ``offset + stride * min(position, last)``.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.interrupt_check import STOPPED, look
from fad.compile.codegen.llvm.module import Module

# The words of a loop's row; addresses of operands and results follow.
LOOP = (
    "functions", "arguments", "rows", "limit", "count", "until", "index", "reverse", "once", "onces", "patches",
    "patched", "carries", "carried", "turning", "done", "watch", "left", "between", "looked",
)  # fmt: skip
BRANCH = ("index", "width", "branches", "bodies", "watch")


def rows_driver(owner: str) -> str:
    """Return ``owner_rows``, which runs n rows of a table: functions, and the one argument of each.

    It stops at the first that returns non-zero, and returns its number from one on; -1 if it was interrupted, and 0
    when all have run. Modules are joined, so each driver has one by a name of its own.
    """
    return f"""define internal i64 @{owner}_rows(ptr %F, ptr %P, i64 %n, ptr %watch) alwaysinline {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %one, label %out
one:
  %i = phi i64 [0, %entry], [%next, %on]
  %fp = getelementptr ptr, ptr %F, i64 %i
  %f = load ptr, ptr %fp
  %pp = getelementptr ptr, ptr %P, i64 %i
  %p = load ptr, ptr %pp
  %code = call i32 %f(ptr %p)
  %next = add i64 %i, 1
  %bad = icmp ne i32 %code, 0
  br i1 %bad, label %stop, label %fine
fine:
{look("on", "%next", "halt")}
on:
  %more = icmp slt i64 %next, %n
  br i1 %more, label %one, label %out
stop:
  %halted = icmp eq i32 %code, {STOPPED}
  br i1 %halted, label %halt, label %other
other:
  ret i64 %next
halt:
  ret i64 -1
out:
  ret i64 0
}}
"""


def _patch_text(owner: str) -> str:
    """Return ``owner_patch``, which writes the words of a list of patches, for step t at position p."""
    return f"""define internal void @{owner}_patch(ptr %list, i64 %n, ptr %A, i64 %t, i64 %p) alwaysinline {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %one, label %out
one:
  %i = phi i64 [0, %entry], [%next, %one]
  %at = mul i64 %i, 6
{_load_fields("list", ("word", "even", "odd", "offset", "stride", "last"), {"word"})}
  %bit = and i64 %t, 1
  %isodd = icmp ne i64 %bit, 0
  %k = select i1 %isodd, i64 %odd, i64 %even
  %ap = getelementptr i64, ptr %A, i64 %k
  %a = load i64, ptr %ap
  %beyond = icmp sgt i64 %p, %last
  %q = select i1 %beyond, i64 %last, i64 %p
  %moved = mul i64 %q, %stride
  %s1 = add i64 %a, %offset
  %s2 = add i64 %s1, %moved
  store i64 %s2, ptr %word
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %one, label %out
out:
  ret void
}}
"""


_COPIES = """declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal void @copies(ptr %list, i64 %n, ptr %A, i64 %to, i64 %from) alwaysinline {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %one, label %out
one:
  %i = phi i64 [0, %entry], [%next, %one]
  %at = mul i64 %i, 4
  %e = getelementptr i64, ptr %list, i64 %at
  %tp = getelementptr i64, ptr %e, i64 %to
  %fp = getelementptr i64, ptr %e, i64 %from
  %sp = getelementptr i64, ptr %e, i64 3
  %tk = load i64, ptr %tp
  %fk = load i64, ptr %fp
  %size = load i64, ptr %sp
  %ta = getelementptr ptr, ptr %A, i64 %tk
  %fa = getelementptr ptr, ptr %A, i64 %fk
  %dst = load ptr, ptr %ta
  %src = load ptr, ptr %fa
  call void @llvm.memcpy.p0.p0.i64(ptr %dst, ptr %src, i64 %size, i1 false)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %one, label %out
out:
  ret void
}
"""


_POINTERS = {"functions", "arguments", "patches"}


def _load_fields(base: str, names: tuple, pointers: set) -> str:
    """Return the lines that load the fields of the record at word ``%at`` of an array."""
    lines = [f"  %e0 = getelementptr i64, ptr %{base}, i64 %at"]
    lines += [f"  %e{i} = getelementptr i64, ptr %e0, i64 {i}" for i in range(1, len(names))]
    lines += [f"  %{name} = load {'ptr' if name in pointers else 'i64'}, ptr %e{i}" for i, name in enumerate(names)]
    return "\n".join(lines)


def _words(names: tuple, pointers: set) -> str:
    lines = []
    for i, name in enumerate(names):
        lines.append(f"  %p_{name} = getelementptr i64, ptr %W, i64 {i}")
        lines.append(f"  %{name} = load {'ptr' if name in pointers else 'i64'}, ptr %p_{name}")
    lines.append(f"  %A = getelementptr i64, ptr %W, i64 {len(names)}")
    return "\n".join(lines)


def loop_module() -> Module:
    """Return the driver of loops: ``carries`` has four words each, the numbers of (first, a, b) and the bytes.

    The first `turning` of them are in a and b by turns, the others in a only.
    """
    pointers = {"functions", "arguments", "count", "index", "once", "patches", "carries", "done", "watch"}
    head = _words(LOOP, pointers)
    return Module(f"""{_patch_text("loop")}{rows_driver("loop")}{_COPIES}
define i32 @loop(ptr %W) {{
entry:
{head}
  call void @copies(ptr %carries, i64 %carried, ptr %A, i64 1, i64 0)
  call void @loop_patch(ptr %once, i64 %onces, ptr %A, i64 0, i64 0)
  %counted = icmp ne ptr %count, null
  br i1 %counted, label %read, label %begin
read:
  %given = load i64, ptr %count
  br label %begin
begin:
  %most = phi i64 [%limit, %entry], [%given, %read]
  %endless = icmp slt i64 %until, 0
  %numbered = icmp ne ptr %index, null
  %backwards = icmp ne i64 %reverse, 0
  %lastp = sub i64 %most, 1
  br label %test
test:
  %t = phi i64 [0, %begin], [%t1, %stepped], [%t1, %glance]
  %l = phi i64 [%left, %begin], [%less, %stepped], [%pace, %glance]
  %within = icmp slt i64 %t, %most
  br i1 %within, label %asked, label %finish
asked:
  br i1 %endless, label %go, label %look
look:
  %gbit = and i64 %t, 1
  %gk = add i64 %until, %gbit
  %gp = getelementptr ptr, ptr %A, i64 %gk
  %ga = load ptr, ptr %gp
  %gv = load i8, ptr %ga
  %on = icmp ne i8 %gv, 0
  br i1 %on, label %go, label %finish
go:
  %back = sub i64 %lastp, %t
  %p = select i1 %backwards, i64 %back, i64 %t
  br i1 %numbered, label %number, label %step
number:
  store i64 %p, ptr %index
  br label %step
step:
  call void @loop_patch(ptr %patches, i64 %patched, ptr %A, i64 %t, i64 %p)
  %row = call i64 @loop_rows(ptr %functions, ptr %arguments, i64 %rows, ptr %watch)
  %bad = icmp ne i64 %row, 0
  br i1 %bad, label %stop, label %stepped
stepped:
  %t1 = add i64 %t, 1
  %less = sub i64 %l, 1
  %due = icmp slt i64 %less, 1
  br i1 %due, label %glance, label %test
glance:
  %glancep = load ptr, ptr %watch
  %signal = call i32 %glancep(ptr %watch, ptr %p_left)
  %pace = load i64, ptr %p_left
  %stopped = icmp ne i32 %signal, 0
  br i1 %stopped, label %stop, label %test
finish:
  store i64 %l, ptr %p_left
  %bit = and i64 %t, 1
  %odd = icmp ne i64 %bit, 0
  br i1 %odd, label %bring, label %tell
bring:
  call void @copies(ptr %carries, i64 %turning, ptr %A, i64 1, i64 2)
  br label %tell
tell:
  %counts = icmp ne ptr %done, null
  br i1 %counts, label %say, label %out
say:
  store i64 %t, ptr %done
  br label %out
stop:
  %which = phi i64 [%row, %step], [-1, %glance]
  %halted = icmp slt i64 %which, 0
  %why = select i1 %halted, i32 {STOPPED}, i32 1
  ret i32 %why
out:
  ret i32 0
}}
""")


def branch_module() -> Module:
    """Return the driver of branches: ``bodies`` has five words each (functions, arguments, rows, patches, patched)."""
    head = _words(BRANCH, {"index", "bodies", "watch"})
    return Module(f"""{_patch_text("branch")}{rows_driver("branch")}
define i32 @branch(ptr %W) {{
entry:
{head}
  %narrow = icmp eq i64 %width, 8
  br i1 %narrow, label %byte, label %long
byte:
  %b = load i8, ptr %index
  %bw = zext i8 %b to i64
  br label %chosen
long:
  %l = load i64, ptr %index
  br label %chosen
chosen:
  %raw = phi i64 [%bw, %byte], [%l, %long]
  %below = icmp slt i64 %raw, 0
  %low = select i1 %below, i64 0, i64 %raw
  %top = sub i64 %branches, 1
  %above = icmp sgt i64 %low, %top
  %k = select i1 %above, i64 %top, i64 %low
  %at = mul i64 %k, 5
{_load_fields("bodies", ("functions", "arguments", "rows", "patches", "patched"), _POINTERS)}
  call void @branch_patch(ptr %patches, i64 %patched, ptr %A, i64 0, i64 0)
  %row = call i64 @branch_rows(ptr %functions, ptr %arguments, i64 %rows, ptr %watch)
  %bad = icmp ne i64 %row, 0
  %halted = icmp slt i64 %row, 0
  %answered = zext i1 %bad to i32
  %why = select i1 %halted, i32 {STOPPED}, i32 %answered
  ret i32 %why
}}
""")
