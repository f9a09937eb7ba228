"""Storing and loading a vector, or as many of its elements as are left of a row.

There are masked stores and gathers for that, which are quick on every CPU with AVX-512. Others, AMD's without it above
all, take a dozen cycles for one: there a whole vector is stored at once, and the rest of a row a power of two at a
time. Elements that lie apart are loaded and stored one by one, without asking for each whether it is there; what is
left of such a row is up to a function, which all kernels of a module share: LLVM takes long to write it out in each.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import vector
from fad.compile.ir.types import BYTES, F32, F64, I32, I64
from fad.compile.machine.cpu import register_bytes

SUFFIX = {F64: "f64", F32: "f32", I64: "i64", I32: "i32", "i8": "i8"}


def masks_stores() -> bool:
    return register_bytes() >= 64


def declare_masked_store(t: str, n: int) -> str:
    return f"declare void {_masked_store(t, n)}({vector(t, n)}, ptr, i32, {vector('i1', n)})"


def _masked_store(t: str, n: int) -> str:
    return f"@llvm.masked.store.v{n}{SUFFIX[t]}.p0"


def store_masked(value: str, t: str, n: int, place: str, mask: str, note: str = "") -> str:
    """Return a masked store of a vector of `n` elements; `note` is LLVM's metadata of it."""
    given = f"{vector(t, n)} {value}, ptr {place}, i32 {BYTES[t]}, {vector('i1', n)} {mask}"
    return f"  call void {_masked_store(t, n)}({given}){note}"


def count_left(tag: str, bound: str, at: str, n: int) -> list[str]:
    """Return the lines that say how many elements are left, ``%rest``, and whether a vector is full, ``%full``."""
    return [
        f"  %to_end{tag} = sub i64 {bound}, {at}", f"  %rest{tag} = call i64 @llvm.smax.i64(i64 %to_end{tag}, i64 0)",
        f"  %full{tag} = icmp uge i64 %rest{tag}, {n}",
    ]  # fmt: skip


COUNTS_LEFT = "declare i64 @llvm.smax.i64(i64, i64)"


def store_some(name: str, value: str, t: str, n: int, place: str, tag: str, note: str = "") -> list[str]:
    """Return the lines that store a vector, or the elements that `count_left` has counted for a tag.

    They begin new blocks, the last of which is ``{name}_end``; values are named after `name`, too.
    """
    size = BYTES[t]
    lines = [
        f"  br i1 %full{tag}, label %{name}_all, label %{name}_{n}", f"{name}_all:",
        f"  store {vector(t, n)} {value}, ptr {place}, align {size}{note}", f"  br label %{name}_end", f"{name}_{n}:",
    ]  # fmt: skip
    while n > 1:
        half = n // 2
        lines += _store_half(name, value, t, n, place, tag, f"align {size}{note}")
        value, place, n = f"%{name}_left{half}", f"%{name}_at{half}", half
    return [*lines, f"  br label %{name}_end", f"{name}_end:"]


def _store_half(name: str, value: str, t: str, n: int, place: str, tag: str, how: str) -> list[str]:
    """Store the first half of a vector if so many are left; go on with the second half then, or with the first."""
    half = n // 2
    whole, v = vector(t, n), vector(t, half)
    low, high, bit, has, after = (f"%{name}_{what}{half}" for what in ("low", "high", "bit", "has", "after"))
    return [
        f"  {low} = shufflevector {whole} {value}, {whole} poison, {_choose(0, half)}",
        f"  {high} = shufflevector {whole} {value}, {whole} poison, {_choose(half, n)}",
        f"  {bit} = and i64 %rest{tag}, {half}", f"  {has} = icmp ne i64 {bit}, 0",
        f"  br i1 {has}, label %{name}_take{half}, label %{name}_{half}", f"{name}_take{half}:",
        f"  store {v} {low}, ptr {place}, {how}", f"  {after} = getelementptr {t}, ptr {place}, i64 {half}",
        f"  br label %{name}_{half}", f"{name}_{half}:",
        f"  %{name}_left{half} = phi {v} [{high}, %{name}_take{half}], [{low}, %{name}_{n}]",
        f"  %{name}_at{half} = phi ptr [{after}, %{name}_take{half}], [{place}, %{name}_{n}]",
    ]  # fmt: skip


def load_apart(name: str, t: str, n: int, place: str, stride: str, note: str = "") -> list[str]:
    """Return the lines that load elements which lie `stride` bytes apart as a vector."""
    v, before, lines = vector(t, n), "poison", []
    for k in range(n):
        after = name if k == n - 1 else f"{name}_v{k}"
        lines += [
            f"  {name}_x{k} = load {t}, ptr {place}, align {BYTES[t]}{note}",
            f"  {after} = insertelement {v} {before}, {t} {name}_x{k}, i64 {k}",
            f"  {name}_p{k} = getelementptr i8, ptr {place}, i64 {stride}",
        ]
        before, place = after, f"{name}_p{k}"
    return lines


def store_apart(name: str, value: str, t: str, n: int, place: str, stride: str, note: str = "") -> list[str]:
    """Return the lines that store a vector's elements `stride` bytes apart."""
    lines = []
    for k in range(n):
        lines += [
            f"  {name}_x{k} = extractelement {vector(t, n)} {value}, i64 {k}",
            f"  store {t} {name}_x{k}, ptr {place}, align {BYTES[t]}{note}",
            f"  {name}_p{k} = getelementptr i8, ptr {place}, i64 {stride}",
        ]
        place = f"{name}_p{k}"
    return lines


def load_left(name: str, t: str, n: int, place: str, stride: str, left: str, note: str = "") -> tuple[str, str]:
    """Return a function that loads a vector's first elements, `stride` bytes apart, and the line that calls it."""
    v, called = vector(t, n), f"@load_left_{t}_{n}"
    step = f"%x = load {t}, ptr %there, align {BYTES[t]} store {t} %x, ptr %here, align {BYTES[t]}"
    function = (
        f"define internal {v} {called}(ptr %place, i64 %stride, i64 %left) noinline cold {{ entry: "
        f"%whole = alloca {v} store {v} zeroinitializer, ptr %whole {_loop_over_left(t, step)} "
        f"done: %found = load {v}, ptr %whole ret {v} %found }}"
    )
    return function, f"  {name} = call {v} {called}(ptr {place}, i64 {stride}, i64 {left}){note}"


def store_left(value: str, t: str, n: int, place: str, stride: str, left: str, note: str = "") -> tuple[str, str]:
    """Return a function that stores a vector's first elements, `stride` bytes apart, and the line that calls it."""
    v, called = vector(t, n), f"@store_left_{t}_{n}"
    step = f"%x = load {t}, ptr %here, align {BYTES[t]} store {t} %x, ptr %there, align {BYTES[t]}"
    function = (
        f"define internal void {called}({v} %value, ptr %place, i64 %stride, i64 %left) noinline cold {{ entry: "
        f"%whole = alloca {v} store {v} %value, ptr %whole {_loop_over_left(t, step)} done: ret void }}"
    )
    return function, f"  call void {called}({v} {value}, ptr {place}, i64 {stride}, i64 {left}){note}"


def _loop_over_left(t: str, step: str) -> str:
    """Return a loop over the elements left (none is possible) that knows where one is in the vector and in the row."""
    return (
        "%none = icmp eq i64 %left, 0 br i1 %none, label %done, label %one one: %k = phi i64 [0, %entry], [%kn, %one] "
        "%there = phi ptr [%place, %entry], [%beyond, %one] "
        f"%here = getelementptr {t}, ptr %whole, i64 %k {step} %kn = add i64 %k, 1 "
        "%beyond = getelementptr i8, ptr %there, i64 %stride %on = icmp ult i64 %kn, %left "
        "br i1 %on, label %one, label %done "
    )


def _choose(start: int, stop: int) -> str:
    """Return a shuffle's mask that takes the elements from one to another."""
    return f"<{stop - start} x i32> <{', '.join(f'i32 {k}' for k in range(start, stop))}>"
