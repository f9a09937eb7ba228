"""Matrix products, one or a batch of them: C[i, j] = sum over k of A[i, k] B[k, j], by own code or by BLAS.

A row of arguments begins with `BATCH`: the three addresses, and two axes of the batch with their strides in bytes.
What follows is `OWN` for own code, which is written in vectors, and `BLAS` for a call of BLAS by pointer.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import vector
from fad.compile.codegen.llvm.module import CONTROL, Module
from fad.compile.codegen.llvm.partial_vectors import (
    COUNTS_LEFT,
    SUFFIX,
    count_left,
    declare_masked_store,
    masks_stores,
    store_masked,
    store_some,
)
from fad.compile.codegen.llvm.worker_pool import quiet_call
from fad.compile.ir.types import BYTES
from fad.compile.machine.cpu import register_bytes

BATCH = ("A", "B", "C", "n1", "n2", "a1", "a2", "b1", "b2", "c1", "c2")
OWN = ("M", "N", "K", "ar", "ac", "br", "bc", "cr", "most")  # `most`: of K at a time
GEMM = ("f", "ta", "tb", "m", "n", "k", "alpha", "lda", "ldb", "beta", "ldc", "pool")
PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
GEMV = ("f", "t", "m", "n", "alpha", "lda", "incx", "beta", "incy", "pool")


def words(names: tuple, start: int, values: bool = True) -> list[str]:
    lines = []
    for k, name in enumerate(names, start):
        lines.append(f"  %p_{name} = getelementptr i64, ptr %W, i64 {k}")
        if values:
            lines.append(f"  %{name} = load {'ptr' if name in ('A', 'B', 'C', 'f') else 'i64'}, ptr %p_{name}")
    return lines


def over_batch(name: str) -> list[str]:
    """Call ``name_one`` for each product of a batch."""
    lines = [f"define i32 @{name}(ptr %W) {{", "entry:", *words(BATCH, 0), "  br label %one", "one:"]
    lines += ["  %i = phi i64 [0, %entry], [%in, %oneout]", "  br label %two", "two:"]
    lines += ["  %j = phi i64 [0, %one], [%jn, %two]"]
    for x in "ABC":
        y = x.lower()
        lines += [
            f"  %{y}i = mul i64 %i, %{y}1", f"  %{y}j = mul i64 %j, %{y}2", f"  %{y}o = add i64 %{y}i, %{y}j",
            f"  %{y}p = getelementptr i8, ptr %{x}, i64 %{y}o",
        ]  # fmt: skip
    return [
        *lines, f"  call void @{name}_one(ptr %ap, ptr %bp, ptr %cp, ptr %W)", "  %jn = add i64 %j, 1",
        "  %jq = icmp ult i64 %jn, %n2", "  br i1 %jq, label %two, label %oneout", "oneout:", "  %in = add i64 %i, 1",
        "  %iq = icmp ult i64 %in, %n1", "  br i1 %iq, label %one, label %done", "done:", "  ret i32 0", "}", "",
    ]  # fmt: skip


def head(name: str) -> list[str]:
    return [f"define internal void @{name}_one(ptr %A, ptr %B, ptr %C, ptr %W) noinline {{", "entry:"]


# --- BLAS ------------------------------------------------------------------------------------------------------------


def gemm_module() -> Module:
    """Return the call of gemm. What it takes by reference lies in the row, which serves integers of any size."""
    return _blas_module("blas_gemm", GEMM, (
        "ptr %p_ta, ptr %p_tb, ptr %p_m, ptr %p_n, ptr %p_k, ptr %p_alpha, ptr %A, ptr %p_lda, ptr %B, ptr %p_ldb, "
        "ptr %p_beta, ptr %C, ptr %p_ldc, i64 1, i64 1"
    ))  # fmt: skip


def gemv_module() -> Module:
    """Return the call of gemv: A is the matrix, B the vector."""
    return _blas_module("blas_gemv", GEMV, (
        "ptr %p_t, ptr %p_m, ptr %p_n, ptr %p_alpha, ptr %A, ptr %p_lda, ptr %B, ptr %p_incx, ptr %p_beta, ptr %C, "
        "ptr %p_incy, i64 1"
    ))  # fmt: skip


def _blas_module(name: str, row: tuple, given: str) -> Module:
    found = ["  %f = load ptr, ptr %p_f", "  %S = load ptr, ptr %p_pool"]
    call = [*words(row, len(BATCH), values=False), *found, *quiet_call([f"  call void %f({given})"])]
    return Module("\n".join([*head(name), *call, "}", *over_batch(name)]), CONTROL)


# --- own code --------------------------------------------------------------------------------------------------------


def declare_masked_load(what: str, t: str, n: int, gathered: bool = False, mask: str = "%mask") -> tuple[str, str]:
    """Return the declaration of a masked load and how it is called on a pointer."""
    v, m = vector(t, n), vector("i1", n)
    how, pointer, p = ("gather", vector("ptr", n), f"v{n}p0") if gathered else ("load", "ptr", "p0")
    name = f"@llvm.masked.{how}.v{n}{SUFFIX[t]}.{p}"
    return (
        f"declare {v} {name}({pointer}, i32, {m}, {v})",
        f"call {v} {name}({pointer} {what}, i32 {BYTES[t]}, {m} {mask}, {v} zeroinitializer)",
    )


def prefetch(name: str, place: str) -> list[str]:
    """Call up into the second cache what lies `%ahead` bytes behind a place; nothing happens where no memory is.

    A processor foresees what is read along one line, but not the next rows of a block of columns.
    """
    return [
        f"  %{name} = getelementptr i8, ptr {place}, i64 %ahead",
        f"  call void @llvm.prefetch.p0(ptr %{name}, i32 0, i32 2, i32 1)",
    ]


def column_masks(n: int, at: str, bound: str, tag: str = "") -> list[str]:
    v, zero = vector("i64", n), f"{vector('i32', n)} zeroinitializer"
    return [
        f"  %at{tag}_e = insertelement {v} poison, i64 {at}, i64 0",
        f"  %at{tag}_v = shufflevector {v} %at{tag}_e, {v} poison, {zero}",
        f"  %lane{tag} = add {v} %at{tag}_v, <{', '.join(f'i64 {k}' for k in range(n))}>",
        f"  %end{tag}_e = insertelement {v} poison, i64 {bound}, i64 0",
        f"  %end{tag}_v = shufflevector {v} %end{tag}_e, {v} poison, {zero}",
        f"  %mask{tag} = icmp ult {v} %lane{tag}, %end{tag}_v",
    ]  # fmt: skip


def rows_name(t: str, rows: int, gathered: bool, columns: int = 1, far: bool = False) -> str:
    how = "gather" if gathered else "far" if far else "rows"
    return f"mm_{how}{rows}{f'x{columns}' if columns > 1 else ''}_{t}"


def rows_module(t: str, rows: int, gathered: bool, columns: int = 1, far: bool = False) -> Module:
    """Return the product that computes blocks of some rows and some vectors of columns.

    The last block repeats the last row instead of having fewer. With `gathered`, rows of B are strided; with `far`, B
    does not lie in a cache. Long sums are computed in pieces, each for all blocks, so that what they read stays in the
    nearest cache; C holds them meanwhile.
    """
    size, name = BYTES[t], rows_name(t, rows, gathered, columns, far)
    n = register_bytes() // size
    v = vector(t, n)
    block = [(k, c) for k in range(rows) for c in range(columns)]
    lines = [*head(name), *words(OWN, len(BATCH)), "  %last = sub i64 %M, 1"]
    lines += ["  %ahead = mul i64 %most, %br", "  br label %piece", "piece:"]
    lines += [
        "  %from = phi i64 [0, %entry], [%upto, %pieceend]", "  %far = add i64 %from, %most",
        "  %upto = call i64 @llvm.umin.i64(i64 %far, i64 %K)", "  %begins = icmp eq i64 %from, 0",
        "  %a_from = mul i64 %from, %ac", "  %b_from = mul i64 %from, %br",
        "  %Bf = getelementptr i8, ptr %B, i64 %b_from", "  br label %i", "i:",
        "  %r = phi i64 [0, %piece], [%rn, %iend]",
    ]  # fmt: skip
    lines += _row_addresses(rows)
    lines += ["  br label %j", "j:", "  %c = phi i64 [0, %i], [%cn, %jdone]"]
    for c in range(columns):
        lines += [f"  %c{c} = add i64 %c, {c * n}", *column_masks(n, f"%c{c}", "%N", str(c))]
        lines += count_left(str(c), "%N", f"%c{c}", n)
    if gathered:
        w = vector("i64", n)
        lines += [
            f"  %bc_e = insertelement {w} poison, i64 %bc, i64 0",
            f"  %bc_v = shufflevector {w} %bc_e, {w} poison, {vector('i32', n)} zeroinitializer",
            f"  %bl = mul {w} %lane0, %bc_v", "  %Bj = getelementptr i8, ptr %Bf, i64 0",
        ]  # fmt: skip
    else:
        lines.append(f"  %Bj = getelementptr {t}, ptr %Bf, i64 %c")
    for k, c in block:
        lines.append(f"  %cp{k}_{c} = getelementptr {t}, ptr %C{k}, i64 %c{c}")
    lines += ["  br i1 %begins, label %start, label %goon", "goon:"]
    lines += [f"  %o{k}_{c} = {declare_masked_load(f'%cp{k}_{c}', t, n, mask=f'%mask{c}')[1]}" for k, c in block]
    lines += ["  br label %start", "start:"]
    lines += [f"  %z{k}_{c} = phi {v} [zeroinitializer, %j], [%o{k}_{c}, %goon]" for k, c in block]
    lines += ["  br label %k", "k:", "  %x = phi i64 [%from, %start], [%xn, %k]"]
    lines += ["  %ak = phi i64 [%a_from, %start], [%akn, %k]", "  %bp = phi ptr [%Bj, %start], [%bpn, %k]"]
    lines += [f"  %s{k}_{c} = phi {v} [%z{k}_{c}, %start], [%n{k}_{c}, %k]" for k, c in block]
    lines += _one_of_k(t, n, rows, gathered, columns, far)
    lines += [
        "  %xn = add i64 %x, 1", "  %akn = add i64 %ak, %ac", "  %bpn = getelementptr i8, ptr %bp, i64 %br",
        "  %xq = icmp ult i64 %xn, %upto", "  br i1 %xq, label %k, label %jend", "jend:",
    ]  # fmt: skip
    for k, c in block:
        lines += _store_block(f"w{k}_{c}", f"%n{k}_{c}", t, n, f"%cp{k}_{c}", str(c))
    lines += [
        "  br label %jdone", "jdone:", f"  %cn = add i64 %c, {n * columns}", "  %cq = icmp ult i64 %cn, %N",
        "  br i1 %cq, label %j, label %iend", "iend:",
        f"  %rn = add i64 %r, {rows}", "  %rq = icmp ult i64 %rn, %M", "  br i1 %rq, label %i, label %pieceend",
        "pieceend:", "  %pq = icmp ult i64 %upto, %K", "  br i1 %pq, label %piece, label %end", "end:",
        "  ret void", "}", *over_batch(name), declare_masked_load("", t, n, gathered)[0],
        declare_masked_load("", t, n)[0],
        "declare i64 @llvm.umin.i64(i64, i64)", f"declare {v} @llvm.fma.v{n}{SUFFIX[t]}({v}, {v}, {v})",
        declare_masked_store(t, n), COUNTS_LEFT, PREFETCH, "",
    ]  # fmt: skip
    return Module("\n".join(lines))


def _store_block(name: str, value: str, t: str, n: int, place: str, column: str) -> list[str]:
    """Store what is left of a vector of columns."""
    if masks_stores():
        return [store_masked(value, t, n, place, f"%mask{column}")]
    return store_some(name, value, t, n, place, column)


def _row_addresses(rows: int) -> list[str]:
    """Find where the rows of A and C begin that a block has; those beyond the last one are the last one again."""
    lines = []
    for k in range(rows):
        lines += [
            f"  %u{k} = add i64 %r, {k}", f"  %q{k} = call i64 @llvm.umin.i64(i64 %u{k}, i64 %last)",
            f"  %ao{k} = mul i64 %q{k}, %ar", f"  %A{k} = getelementptr i8, ptr %A, i64 %ao{k}",
            f"  %co{k} = mul i64 %q{k}, %cr", f"  %C{k} = getelementptr i8, ptr %C, i64 %co{k}",
        ]  # fmt: skip
    return lines


def _one_of_k(t: str, n: int, rows: int, gathered: bool, columns: int, far: bool) -> list[str]:
    """Multiply one element of each row of A with the vectors of a row of B."""
    v, size, lines = vector(t, n), BYTES[t], []
    for c in range(columns):
        place = f"{vector('i64', n)} %bl" if gathered else f"i64 {c * n * size}"
        lines.append(f"  %bp{c} = getelementptr i8, ptr %bp, {place}")
        lines.append(f"  %b{c} = {declare_masked_load(f'%bp{c}', t, n, gathered, f'%mask{c}')[1]}")
        lines += prefetch(f"far{c}", f"%bp{c}") if far else []
    for k in range(rows):
        lines += [
            f"  %ap{k} = getelementptr i8, ptr %A{k}, i64 %ak", f"  %a{k} = load {t}, ptr %ap{k}",
            f"  %e{k} = insertelement {v} poison, {t} %a{k}, i64 0",
            f"  %x{k} = shufflevector {v} %e{k}, {v} poison, {vector('i32', n)} zeroinitializer",
        ]  # fmt: skip
        for c in range(columns):
            lines.append(f"  %n{k}_{c} = call {v} @llvm.fma.v{n}{SUFFIX[t]}({v} %x{k}, {v} %b{c}, {v} %s{k}_{c})")
    return lines
