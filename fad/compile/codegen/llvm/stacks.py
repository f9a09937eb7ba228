"""Native functions that push values onto a stack, whose memory grows, and pop them."""

from __future__ import annotations

from fad.compile.codegen.llvm.module import Module

# Words: the memory's address and how many records it has place for, realloc, bytes of a record, the number of records
# below and above, how many values; for each its address, its place in the record, and its bytes.
_WORDS = """  %mem = load ptr, ptr %W
  %w1 = getelementptr i64, ptr %W, i64 1
  %realloc = load ptr, ptr %w1
  %w2 = getelementptr i64, ptr %W, i64 2
  %size = load i64, ptr %w2
  %w3 = getelementptr i64, ptr %W, i64 3
  %belowp = load ptr, ptr %w3
  %w4 = getelementptr i64, ptr %W, i64 4
  %abovep = load ptr, ptr %w4
  %w5 = getelementptr i64, ptr %W, i64 5
  %n = load i64, ptr %w5
  %parts = getelementptr i64, ptr %W, i64 6
  %mem1 = getelementptr i64, ptr %mem, i64 1
"""


def _copies(to: str, source: str) -> str:
    """Return the loop that copies each value, from ``%value`` to ``%place`` or back."""
    return f"""  %start = mul i64 %depth, %size
  %record = getelementptr i8, ptr %base, i64 %start
  br label %test
test:
  %i = phi i64 [0, %copy], [%next, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %done
one:
  %at = mul i64 %i, 3
  %e0 = getelementptr i64, ptr %parts, i64 %at
  %e1 = getelementptr i64, ptr %e0, i64 1
  %e2 = getelementptr i64, ptr %e0, i64 2
  %value = load ptr, ptr %e0
  %offset = load i64, ptr %e1
  %bytes = load i64, ptr %e2
  %place = getelementptr i8, ptr %record, i64 %offset
  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 %bytes, i1 false)
  %next = add i64 %i, 1
  br label %test
done:
"""


def push_module() -> Module:
    """Return the push: it doubles the memory where that is full, and returns 1 if there is no more."""
    return Module(f"""declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @stack_push(ptr %W) {{
entry:
{_WORDS}  %depth = load i64, ptr %belowp
  %old = load ptr, ptr %mem
  %capacity = load i64, ptr %mem1
  %above = add i64 %depth, 1
  %full = icmp sge i64 %depth, %capacity
  br i1 %full, label %grow, label %copy
grow:
  %records = shl i64 %above, 1
  %wanted = mul i64 %records, %size
  %new = call ptr %realloc(ptr %old, i64 %wanted)
  %none = icmp eq ptr %new, null
  br i1 %none, label %fail, label %grown
grown:
  store ptr %new, ptr %mem
  store i64 %records, ptr %mem1
  br label %copy
fail:
  ret i32 1
copy:
  %base = phi ptr [%old, %entry], [%new, %grown]
{_copies("%place", "%value")}  store i64 %above, ptr %abovep
  ret i32 0
}}
""")


def pop_module() -> Module:
    """Return the pop."""
    return Module(f"""declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @stack_pop(ptr %W) {{
entry:
{_WORDS}  %above = load i64, ptr %abovep
  %depth = sub i64 %above, 1
  %base = load ptr, ptr %mem
  br label %copy
copy:
{_copies("%value", "%place")}  store i64 %depth, ptr %belowp
  ret i32 0
}}
""")
