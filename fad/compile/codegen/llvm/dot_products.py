"""Matrix products as dot products, for rows of A and columns of B that lie contiguous: C[i, j] = A[i, :] . B[:, j].

A block of rows meets a few columns at a time, so that what is loaded serves several sums, and B is read once.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import constant, vector
from fad.compile.codegen.llvm.matmul_kernels import (
    BATCH,
    PREFETCH,
    column_masks,
    declare_masked_load,
    head,
    over_batch,
    prefetch,
    words,
)
from fad.compile.codegen.llvm.module import Module
from fad.compile.codegen.llvm.partial_vectors import SUFFIX
from fad.compile.ir.types import BYTES
from fad.compile.machine.cpu import register_bytes

ROW = ("M", "N", "K", "ar", "bc", "cr", "cc")  # the arguments, behind those of the batch
# By the rows of a block: its columns, and the registers of a vector. The sums fill the registers, and are enough to
# hide how long an addition takes.
_BLOCKS = {
    64: {1: (4, 2), 2: (4, 1), 4: (4, 1), 6: (3, 1), 8: (2, 1)},
    32: {1: (4, 1), 2: (4, 1), 4: (2, 1)},
}


def choose_rows(m: int) -> int:
    """Return how many rows a block of a product with m rows has."""
    blocks = _BLOCKS[register_bytes()]
    return min((r for r in blocks if r >= m), default=max(blocks))


def dots_name(t: str, rows: int, far: bool) -> str:
    return f"mm_{'far_' if far else ''}dots{rows}_{t}"


def dots_module(t: str, rows: int, far: bool) -> Module:
    """Return the product that computes blocks of some rows and columns.

    The last block repeats the last row or column instead of having fewer. What is left of K is a masked vector. With
    `far`, B does not lie in a cache.
    """
    columns, registers = _BLOCKS[register_bytes()][rows]
    n = registers * register_bytes() // BYTES[t]
    block = [(i, j) for i in range(rows) for j in range(columns)]
    v, name = vector(t, n), dots_name(t, rows, far)
    add = f"@llvm.vector.reduce.fadd.v{n}{SUFFIX[t]}"
    lines = [
        *head(name), *words(ROW, len(BATCH)), "  %i_last = sub i64 %M, 1", "  %j_last = sub i64 %N, 1",
        f"  %full = and i64 %K, -{n}", "  %some = icmp ne i64 %full, 0", "  %all = icmp eq i64 %full, %K",
        f"  %ahead = mul i64 %bc, {columns}", "  br label %j",
        "j:", "  %jx = phi i64 [0, %entry], [%jn, %jend]", *_find_lines("j", columns, "B", "bc"), "  br label %i",
        "i:", "  %ix = phi i64 [0, %j], [%in, %iend]", *_find_lines("i", rows, "A", "ar"),
        "  br i1 %some, label %k, label %left",
        "k:", "  %x = phi i64 [0, %i], [%xn, %k]",
        *[f"  %s{i}_{j} = phi {v} [zeroinitializer, %i], [%n{i}_{j}, %k]" for i, j in block],
        *_add_products(t, n, rows, columns, "%x", "s", "n", far=far),
        f"  %xn = add i64 %x, {n}", "  %xq = icmp ult i64 %xn, %full", "  br i1 %xq, label %k, label %left",
        "left:", *[f"  %l{i}_{j} = phi {v} [zeroinitializer, %i], [%n{i}_{j}, %k]" for i, j in block],
        "  br i1 %all, label %sum, label %rest",
        "rest:", *column_masks(n, "%full", "%K"), *_add_products(t, n, rows, columns, "%full", "l", "m", "%mask"),
        "  br label %sum",
        "sum:", *[f"  %t{i}_{j} = phi {v} [%l{i}_{j}, %left], [%m{i}_{j}, %rest]" for i, j in block],
    ]  # fmt: skip
    for i, j in block:
        lines += [
            f"  %z{i}_{j} = call reassoc {t} {add}({t} {constant(-0.0, t)}, {v} %t{i}_{j})",
            f"  %ci{i}_{j} = mul i64 %i{i}, %cr", f"  %cj{i}_{j} = mul i64 %j{j}, %cc",
            f"  %co{i}_{j} = add i64 %ci{i}_{j}, %cj{i}_{j}",
            f"  %cp{i}_{j} = getelementptr i8, ptr %C, i64 %co{i}_{j}",
            f"  store {t} %z{i}_{j}, ptr %cp{i}_{j}",
        ]  # fmt: skip
    lines += [
        "  br label %iend", "iend:", f"  %in = add i64 %ix, {rows}", "  %iq = icmp ult i64 %in, %M",
        "  br i1 %iq, label %i, label %jend", "jend:", f"  %jn = add i64 %jx, {columns}",
        "  %jq = icmp ult i64 %jn, %N", "  br i1 %jq, label %j, label %end", "end:", "  ret void", "}",
        *over_batch(name), declare_masked_load("", t, n)[0], "declare i64 @llvm.umin.i64(i64, i64)",
        f"declare {v} @llvm.fma.v{n}{SUFFIX[t]}({v}, {v}, {v})", f"declare {t} {add}({t}, {v})", PREFETCH, "",
    ]  # fmt: skip
    return Module("\n".join(lines))


def _find_lines(index: str, count: int, array: str, stride: str) -> list[str]:
    """Find where the rows of A, or columns of B, of a block begin; those beyond the last are the last one again."""
    lines = []
    for k in range(count):
        lines += [
            f"  %{index}u{k} = add i64 %{index}x, {k}",
            f"  %{index}{k} = call i64 @llvm.umin.i64(i64 %{index}u{k}, i64 %{index}_last)",
            f"  %{index}o{k} = mul i64 %{index}{k}, %{stride}",
            f"  %{array}{k} = getelementptr i8, ptr %{array}, i64 %{index}o{k}",
        ]  # fmt: skip
    return lines


def _add_products(
    t: str, n: int, rows: int, columns: int, at: str, before: str, after: str, mask: str = "", far: bool = False
) -> list[str]:
    """Add the products of one vector of each row and column to their sums; call up the next columns meanwhile."""
    v, lines = vector(t, n), []

    def load(name: str, base: str) -> list[str]:
        place, whole = f"%p{name}", f"load {v}, ptr %p{name}, align {BYTES[t]}"
        how = declare_masked_load(place, t, n, mask=mask)[1] if mask else whole
        return [f"  {place} = getelementptr {t}, ptr %{base}, i64 {at}", f"  %{name} = {how}"]

    for j in range(columns):
        lines += load(f"{after}b{j}", f"B{j}")
        if far:
            lines += prefetch(f"far{j}", f"%p{after}b{j}")
    for i in range(rows):
        lines += load(f"{after}a{i}", f"A{i}")
        for j in range(columns):
            factors = f"{v} %{after}a{i}, {v} %{after}b{j}"
            lines.append(f"  %{after}{i}_{j} = call {v} @llvm.fma.v{n}{SUFFIX[t]}({factors}, {v} %{before}{i}_{j})")
    return lines
