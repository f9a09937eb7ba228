"""The code that goes through a table of Python's objects, and stops at the first row that is no longer what it was.

A row is four words: what is compared, of which object, at which key, with which value; the last two may be addresses
of further words. Dictionaries, cells and lists are read by Python's own functions, and objects compared by identity.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.module import CONTROL, Module

WIDTH = 4
# In turn: the end of the table; what Python must look at; an entry of a dictionary; a key that it lacks; how many
# entries it has; all of them in their order, and how many; a variable of a closure; the elements of a list, and how
# many; the bytes of an array: which of them, and what they were.
END, ASK, ENTRY, LACKS, SIZE, ALL, CELL, LIST, BYTES = range(9)
PIECES = ("order", "bytes", "first", "step", "width", "count")  # of an array, where the pieces that are compared lie
# How elements lie, as Python's buffer protocol numbers what one may ask for: in C's order without gaps, in Fortran's,
# or with one step from each row to the next.
C_ORDER, FORTRAN_ORDER, STRIDED = 0, 0x58, 0x18
_COMPARISONS = {ENTRY: "entry", LACKS: "lacks", SIZE: "size", ALL: "all", CELL: "cell", LIST: "list", BYTES: "bytes"}

_SINGLE = """declare ptr @fad_PyDict_GetItemWithError(ptr, ptr)
declare i32 @fad_PyDict_Contains(ptr, ptr)
declare i64 @fad_PyDict_Size(ptr)
declare ptr @fad_PyCell_Get(ptr)
declare void @fad_Py_DecRef(ptr)
define internal i1 @same_entry(ptr %held, ptr %key, ptr %value) alwaysinline {
  %now = call ptr @fad_PyDict_GetItemWithError(ptr %held, ptr %key)
  %same = icmp eq ptr %now, %value
  ret i1 %same
}
define internal i1 @same_lacks(ptr %held, ptr %key, ptr %value) alwaysinline {
  %found = call i32 @fad_PyDict_Contains(ptr %held, ptr %key)
  %same = icmp eq i32 %found, 0
  ret i1 %same
}
define internal i1 @same_size(ptr %held, ptr %key, ptr %value) alwaysinline {
  %n = call i64 @fad_PyDict_Size(ptr %held)
  %count = ptrtoint ptr %value to i64
  %same = icmp eq i64 %n, %count
  ret i1 %same
}
define internal i1 @same_cell(ptr %held, ptr %key, ptr %value) alwaysinline {
  %now = call ptr @fad_PyCell_Get(ptr %held)
  %same = icmp eq ptr %now, %value
  %empty = icmp eq ptr %now, null
  br i1 %empty, label %out, label %full
full:
  call void @fad_Py_DecRef(ptr %now)
  br label %out
out:
  ret i1 %same
}
"""
# Values that are null may be anything.
_MANY = """declare i32 @fad_PyDict_Next(ptr, ptr, ptr, ptr)
declare i64 @fad_PyList_Size(ptr)
declare ptr @fad_PyList_GetItem(ptr, i64)
define internal i1 @same_all(ptr %held, ptr %pairs, ptr %value) alwaysinline {
entry:
  %position = alloca i64
  %key = alloca ptr
  %now = alloca ptr
  store i64 0, ptr %position
  %n = call i64 @fad_PyDict_Size(ptr %held)
  %count = ptrtoint ptr %value to i64
  %alike = icmp eq i64 %n, %count
  br i1 %alike, label %next, label %other
next:
  %i = phi i64 [0, %entry], [%i1, %fine]
  %more = call i32 @fad_PyDict_Next(ptr %held, ptr %position, ptr %key, ptr %now)
  %end = icmp eq i32 %more, 0
  br i1 %end, label %same, label %one
one:
  %j = shl i64 %i, 1
  %key_at = getelementptr ptr, ptr %pairs, i64 %j
  %value_at = getelementptr ptr, ptr %key_at, i64 1
  %key_then = load ptr, ptr %key_at
  %then = load ptr, ptr %value_at
  %k = load ptr, ptr %key
  %v = load ptr, ptr %now
  %same_key = icmp eq ptr %k, %key_then
  %any = icmp eq ptr %then, null
  %equal = icmp eq ptr %v, %then
  %same_value = or i1 %any, %equal
  %both = and i1 %same_key, %same_value
  br i1 %both, label %fine, label %other
fine:
  %i1 = add i64 %i, 1
  br label %next
same:
  ret i1 1
other:
  ret i1 0
}
define internal i1 @same_list(ptr %held, ptr %items, ptr %value) alwaysinline {
entry:
  %n = call i64 @fad_PyList_Size(ptr %held)
  %count = ptrtoint ptr %value to i64
  %alike = icmp eq i64 %n, %count
  br i1 %alike, label %next, label %other
next:
  %i = phi i64 [0, %entry], [%i1, %one]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %same, label %one
one:
  %item_at = getelementptr ptr, ptr %items, i64 %i
  %then = load ptr, ptr %item_at
  %now = call ptr @fad_PyList_GetItem(ptr %held, i64 %i)
  %i1 = add i64 %i, 1
  %any = icmp eq ptr %then, null
  %equal = icmp eq ptr %now, %then
  %fine = or i1 %any, %equal
  br i1 %fine, label %next, label %other
same:
  ret i1 1
other:
  ret i1 0
}
"""
_BYTES = f"""declare i32 @fad_PyObject_GetBuffer(ptr, ptr, i32)
declare void @fad_PyBuffer_Release(ptr)
declare i32 @fad_memcmp(ptr, ptr, i64)
define internal i1 @same_bytes(ptr %held, ptr %how, ptr %then) alwaysinline {{
entry:
  %view = alloca [32 x i64]
{"".join(f'''  %{word}_at = getelementptr i64, ptr %how, i64 {k}
  %{word} = load i64, ptr %{word}_at
''' for k, word in enumerate(PIECES))}  %flags = trunc i64 %order to i32
  %refused = call i32 @fad_PyObject_GetBuffer(ptr %held, ptr %view, i32 %flags)
  %bad = icmp ne i32 %refused, 0
  br i1 %bad, label %out, label %given
given:
  %start = load ptr, ptr %view
  %size_at = getelementptr i64, ptr %view, i64 2
  %size = load i64, ptr %size_at
  %alike = icmp eq i64 %size, %bytes
  br i1 %alike, label %arranged, label %release
arranged:
  %strided = icmp eq i64 %order, {STRIDED}
  br i1 %strided, label %rows, label %next
rows:
  %strides_at = getelementptr i64, ptr %view, i64 7
  %strides = load ptr, ptr %strides_at
  %stride = load i64, ptr %strides
  %as_then = icmp eq i64 %stride, %step
  br i1 %as_then, label %next, label %release
next:
  %i = phi i64 [0, %arranged], [0, %rows], [%i1, %one]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %release, label %one
one:
  %moved = mul i64 %i, %step
  %offset = add i64 %first, %moved
  %x = getelementptr i8, ptr %start, i64 %offset
  %written = mul i64 %i, %width
  %y = getelementptr i8, ptr %then, i64 %written
  %differs = call i32 @fad_memcmp(ptr %x, ptr %y, i64 %width)
  %i1 = add i64 %i, 1
  %equal = icmp eq i32 %differs, 0
  br i1 %equal, label %next, label %release
release:
  %same = phi i1 [0, %given], [0, %rows], [1, %next], [0, %one]
  call void @fad_PyBuffer_Release(ptr %view)
  br label %out
out:
  %result = phi i1 [0, %entry], [%same, %release]
  ret i1 %result
}}
"""
# `differing` is what Python calls with the address of a row; it returns that of the first one that differs, or 0.
_TABLE = f"""declare ptr @fad_PyLong_AsVoidPtr(ptr)
declare ptr @fad_PyLong_FromLongLong(i64)
declare void @fad_PyErr_Clear()
define ptr @differing(ptr %self, ptr %number) {{
entry:
  %first = call ptr @fad_PyLong_AsVoidPtr(ptr %number)
  br label %row
row:
  %at = phi ptr [%first, %entry], [%behind, %next]
  %held_at = getelementptr ptr, ptr %at, i64 1
  %key_at = getelementptr ptr, ptr %at, i64 2
  %value_at = getelementptr ptr, ptr %at, i64 3
  %kind = load i64, ptr %at
  %held = load ptr, ptr %held_at
  %key = load ptr, ptr %key_at
  %value = load ptr, ptr %value_at
  switch i64 %kind, label %found [i64 {END}, label %end {
    " ".join(f"i64 {k}, label %look_at_{name}" for k, name in _COMPARISONS.items())
}]
{"".join(f'''look_at_{name}:
  %same_{name} = call i1 @same_{name}(ptr %held, ptr %key, ptr %value)
  br i1 %same_{name}, label %next, label %found
''' for name in _COMPARISONS.values())}next:
  %behind = getelementptr ptr, ptr %at, i64 {WIDTH}
  br label %row
found:
  call void @fad_PyErr_Clear()
  %place = ptrtoint ptr %at to i64
  %result = call ptr @fad_PyLong_FromLongLong(i64 %place)
  ret ptr %result
end:
  %none = call ptr @fad_PyLong_FromLongLong(i64 0)
  ret ptr %none
}}
"""


def differing_module() -> Module:
    """Return the module of ``differing``, which Python calls as `entry_point.builtin` makes it."""
    return Module(_SINGLE + _MANY + _BYTES + _TABLE, CONTROL)
