"""Large matrix products in vectors: blocks of rows times panels of columns that lie packed in the nearest cache.

C[i, j] = sum over k of A[i, k] B[k, j]. A panel of B, two vectors wide and `DEPTH` of k deep, is copied to the stack,
transposed if its columns lie contiguous. Then each block of rows of A is multiplied with it in registers: an element of
A is spread over a vector and meets both vectors of a row of the panel. A is read as it lies, so its rows should be
contiguous. C holds what is added up between one depth and the next. (After Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", 2008, without their packing of A.)
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import vector
from fad.compile.codegen.llvm.matmul_kernels import (
    BATCH,
    OWN,
    SUFFIX,
    column_masks,
    declare_masked_load,
    head,
    over_batch,
    words,
)
from fad.compile.codegen.llvm.module import Module
from fad.compile.ir.types import BYTES
from fad.compile.machine.cpu import register_bytes

ROWS, FEW_ROWS = 12, 4  # of a block; 24 vectors of sums and what they need fill 32 registers
DEPTH = 192  # so that a panel takes three quarters of 32 kB
_SQUARE = 8  # elements along the side of what is transposed in registers


def panels_name(t: str, transposed: bool) -> str:
    return f"mm_panels{'_transposed' * transposed}_{t}"


def panels_module(t: str, transposed: bool) -> Module:
    """Return the product; with `transposed`, the columns of B are contiguous and not its rows."""
    name, n = panels_name(t, transposed), register_bytes() // BYTES[t]
    lines = [*head(name), *words(OWN, len(BATCH)), f"  %pack = alloca [{DEPTH * 2 * n} x {t}], align 64"]
    lines += [
        f"  %odd = urem i64 %M, {ROWS}", "  %full = sub i64 %M, %odd", "  %last = sub i64 %M, 1",
        "  %lastc = sub i64 %N, 1", "  %ar2 = mul i64 %ar, 2",
        "  br label %deep", "deep:", "  %from = phi i64 [0, %entry], [%upto, %deepend]",
        f"  %far = add i64 %from, {DEPTH}", "  %upto = call i64 @llvm.umin.i64(i64 %far, i64 %K)",
        "  %begins = icmp eq i64 %from, 0", "  %ao = mul i64 %from, %ac", "  %Af = getelementptr i8, ptr %A, i64 %ao",
        "  br label %j", "j:", "  %c = phi i64 [0, %deep], [%cn, %jend]", f"  %c1 = add i64 %c, {n}",
        *column_masks(n, "%c", "%N", "0"), *column_masks(n, "%c1", "%N", "1"),
    ]  # fmt: skip
    lines += (_packed_transposed if transposed else _pack_panel)(t, n)
    lines += ["  br label %first", "first:", "  %some = icmp ugt i64 %full, 0"]
    lines.append("  br i1 %some, label %ibig, label %rest")
    lines += _blocks("big", t, n, ROWS, ("%first", "0", "%full", "rest"), clamped=False)
    lines += ["rest:", "  %left = icmp ugt i64 %odd, 0", "  br i1 %left, label %ismall, label %jend"]
    lines += _blocks("small", t, n, FEW_ROWS, ("%rest", "%full", "%M", "jend"), clamped=True)
    v, m = vector(t, n), vector("i1", n)
    lines += [
        "jend:", f"  %cn = add i64 %c, {2 * n}", "  %cq = icmp ult i64 %cn, %N",
        "  br i1 %cq, label %j, label %deepend",
        "deepend:", "  %dq = icmp ult i64 %upto, %K", "  br i1 %dq, label %deep, label %end", "end:", "  ret void", "}",
        *over_batch(name), declare_masked_load("", t, n)[0],
        *([declare_masked_load("", t, _SQUARE)[0]] if transposed else []),
        "declare i64 @llvm.umin.i64(i64, i64)",
        f"declare {v} @llvm.fma.v{n}{SUFFIX[t]}({v}, {v}, {v})",
        f"declare void @llvm.masked.store.v{n}{SUFFIX[t]}.p0({v}, ptr, i32, {m})", "",
    ]  # fmt: skip
    return Module("\n".join(lines))


def _pack_panel(t: str, n: int) -> list[str]:
    """Copy a panel of B whose rows are contiguous."""
    v, size = vector(t, n), BYTES[t]
    lines = [
        "  %bo = mul i64 %from, %br", "  %Bf = getelementptr i8, ptr %B, i64 %bo",
        f"  %Bc = getelementptr {t}, ptr %Bf, i64 %c", "  br label %p", "p:", "  %px = phi i64 [%from, %j], [%pxn, %p]",
        "  %pb = phi ptr [%Bc, %j], [%pbn, %p]", "  %pp = phi ptr [%pack, %j], [%ppn, %p]",
    ]  # fmt: skip
    for k in range(2):
        lines += [
            f"  %pb{k} = getelementptr i8, ptr %pb, i64 {k * n * size}",
            f"  %pv{k} = {declare_masked_load(f'%pb{k}', t, n, mask=f'%mask{k}')[1]}",
            f"  %pp{k} = getelementptr i8, ptr %pp, i64 {k * n * size}", f"  store {v} %pv{k}, ptr %pp{k}, align 64",
        ]  # fmt: skip
    return [
        *lines, "  %pxn = add i64 %px, 1", "  %pbn = getelementptr i8, ptr %pb, i64 %br",
        f"  %ppn = getelementptr i8, ptr %pp, i64 {2 * n * size}", "  %pq = icmp ult i64 %pxn, %upto",
        "  br i1 %pq, label %p, label %packed", "packed:",
    ]  # fmt: skip


def _packed_transposed(t: str, n: int) -> list[str]:
    """Turn a panel of B whose columns are contiguous, a square in registers at a time.

    Columns beyond the last one are the last one again, and what is beyond the depth is not read later.
    """
    v, size = vector(t, _SQUARE), BYTES[t]
    lines = [
        "  br label %p", "p:", "  %px = phi i64 [%from, %j], [%pxn, %pend]",
        "  %pp = phi ptr [%pack, %j], [%ppn, %pend]", f"  %pxo = mul i64 %px, {size}",
        "  %Bx = getelementptr i8, ptr %B, i64 %pxo", *column_masks(_SQUARE, "%px", "%upto", "k"),
        "  br label %h", "h:",
        "  %hc = phi i64 [0, %p], [%hcn, %h]", "  %hp = phi ptr [%pp, %p], [%hpn, %h]", "  %hfirst = add i64 %c, %hc",
    ]  # fmt: skip
    for r in range(_SQUARE):
        lines += [
            f"  %hu{r} = add i64 %hfirst, {r}", f"  %hq{r} = call i64 @llvm.umin.i64(i64 %hu{r}, i64 %lastc)",
            f"  %ho{r} = mul i64 %hq{r}, %bc", f"  %hb{r} = getelementptr i8, ptr %Bx, i64 %ho{r}",
            f"  %hv{r} = {declare_masked_load(f'%hb{r}', t, _SQUARE, mask='%maskk')[1]}",
        ]  # fmt: skip
    transposed, rows = _transpose_square([f"%hv{r}" for r in range(_SQUARE)], v, _SQUARE)
    lines += transposed
    for r in range(_SQUARE):
        lines += [
            f"  %hs{r} = getelementptr i8, ptr %hp, i64 {2 * r * n * size}",
            f"  store {v} {rows[r]}, ptr %hs{r}, align {_SQUARE * size}",
        ]
    return [
        *lines, f"  %hcn = add i64 %hc, {_SQUARE}", f"  %hpn = getelementptr i8, ptr %hp, i64 {_SQUARE * size}",
        f"  %hq = icmp ult i64 %hcn, {2 * n}", "  br i1 %hq, label %h, label %pend", "pend:",
        f"  %pxn = add i64 %px, {_SQUARE}", f"  %ppn = getelementptr i8, ptr %pp, i64 {2 * n * _SQUARE * size}",
        "  %pq = icmp ult i64 %pxn, %upto", "  br i1 %pq, label %p, label %packed", "packed:",
    ]  # fmt: skip


def _transpose_square(rows: list[str], v: str, n: int) -> tuple[list[str], list[str]]:
    """Transpose a square of vectors: exchange the off-diagonal halves of squares of 2, 4, 8 ... in turn."""
    lines, step = [], 1
    while step < n:
        new = list(rows)
        for i in range(n):
            if i & step:
                continue
            a, b = rows[i], rows[i + step]
            low = [lane if not lane & step else n + lane - step for lane in range(n)]
            high = [lane + step if not lane & step else n + lane for lane in range(n)]
            for row, lanes in ((i, low), (i + step, high)):
                name = f"%t{step}_{row}"
                mask = ", ".join(f"i32 {lane}" for lane in lanes)
                lines.append(f"  {name} = shufflevector {v} {a}, {v} {b}, {vector('i32', n)} <{mask}>")
                new[row] = name
        rows, step = new, 2 * step
    return lines, rows


def _blocks(g: str, t: str, n: int, rows: int, loop: tuple, clamped: bool) -> list[str]:
    """Multiply blocks of rows with the panel; `loop` says the label before, the first row, the end and the label after.

    With `clamped`, rows beyond the last one are the last one again.
    """
    before, start, stop, after = loop
    v, m, size = vector(t, n), vector("i1", n), BYTES[t]
    block = [(k, c) for k in range(rows) for c in range(2)]
    lines = [f"i{g}:", f"  %r{g} = phi i64 [{start}, {before}], [%rn{g}, %e{g}]"]
    for k in range(rows):
        lines += _row_pointers(g, k, clamped)
        lines += [f"  %cp{g}{k}_{c} = getelementptr {t}, ptr %C{g}{k}, i64 %c{c or ''}" for c in range(2)]
    lines += [f"  br i1 %begins, label %s{g}, label %o{g}", f"o{g}:"]
    lines += [f"  %o{g}{k}_{c} = {declare_masked_load(f'%cp{g}{k}_{c}', t, n, mask=f'%mask{c}')[1]}" for k, c in block]
    lines += [f"  br label %s{g}", f"s{g}:"]
    lines += [f"  %z{g}{k}_{c} = phi {v} [zeroinitializer, %i{g}], [%o{g}{k}_{c}, %o{g}]" for k, c in block]
    lines += [f"  br label %k{g}", f"k{g}:", f"  %x{g} = phi i64 [%from, %s{g}], [%xn{g}, %k{g}]"]
    lines.append(f"  %b{g} = phi ptr [%pack, %s{g}], [%bn{g}, %k{g}]")
    bases = [k for k in range(rows) if _base(k, clamped) == k]
    lines += [f"  %a{g}{k} = phi ptr [%A{g}{k}, %s{g}], [%an{g}{k}, %k{g}]" for k in bases]
    lines += [f"  %s{g}{k}_{c} = phi {v} [%z{g}{k}_{c}, %s{g}], [%n{g}{k}_{c}, %k{g}]" for k, c in block]
    lines += _one_of_k(g, t, n, rows, clamped)
    lines += [f"  %an{g}{k} = getelementptr i8, ptr %a{g}{k}, i64 %ac" for k in bases]
    lines += [
        f"  %bn{g} = getelementptr i8, ptr %b{g}, i64 {2 * n * size}", f"  %xn{g} = add i64 %x{g}, 1",
        f"  %xq{g} = icmp ult i64 %xn{g}, %upto", f"  br i1 %xq{g}, label %k{g}, label %e{g}", f"e{g}:",
    ]  # fmt: skip
    store = f"@llvm.masked.store.v{n}{SUFFIX[t]}.p0"
    for k, c in block:
        lines.append(f"  call void {store}({v} %n{g}{k}_{c}, ptr %cp{g}{k}_{c}, i32 {size}, {m} %mask{c})")
    return [
        *lines, f"  %rn{g} = add i64 %r{g}, {rows}", f"  %rq{g} = icmp ult i64 %rn{g}, {stop}",
        f"  br i1 %rq{g}, label %i{g}, label %{after}",
    ]  # fmt: skip


def _base(k: int, clamped: bool) -> int:
    """Return the row from whose address that of row k is found: there are not registers for all of them."""
    return k if clamped else k - k % 3


def _row_pointers(g: str, k: int, clamped: bool) -> list[str]:
    at = f"%u{g}{k}"
    lines = [f"  {at} = add i64 %r{g}, {k}"]
    if clamped:
        lines.append(f"  %q{g}{k} = call i64 @llvm.umin.i64(i64 {at}, i64 %last)")
        at = f"%q{g}{k}"
    # frozen values are no functions of the loops' counters, for which LLVM would look for cheaper forms for long
    lines += [f"  %cm{g}{k} = mul i64 {at}, %cr", f"  %co{g}{k} = freeze i64 %cm{g}{k}"]
    lines.append(f"  %C{g}{k} = getelementptr i8, ptr %C, i64 %co{g}{k}")
    if _base(k, clamped) == k:
        lines += [f"  %ro{g}{k} = mul i64 {at}, %ar", f"  %A{g}{k} = getelementptr i8, ptr %Af, i64 %ro{g}{k}"]
    return lines


def _one_of_k(g: str, t: str, n: int, rows: int, clamped: bool) -> list[str]:
    """Multiply one element of each row with a row of the panel."""
    v, size, lines = vector(t, n), BYTES[t], []
    for c in range(2):
        lines += [
            f"  %bp{g}{c} = getelementptr i8, ptr %b{g}, i64 {c * n * size}",
            f"  %bv{g}{c} = load {v}, ptr %bp{g}{c}, align 64",
        ]
    for k in range(rows):
        pointer, base = f"%a{g}{k}", _base(k, clamped)
        if base != k:
            pointer = f"%ap{g}{k}"
            lines.append(f"  {pointer} = getelementptr i8, ptr %a{g}{base}, i64 %ar{'2' * (k - base == 2)}")
        lines += [
            f"  %l{g}{k} = load {t}, ptr {pointer}", f"  %e{g}{k} = insertelement {v} poison, {t} %l{g}{k}, i64 0",
            f"  %w{g}{k} = shufflevector {v} %e{g}{k}, {v} poison, {vector('i32', n)} zeroinitializer",
        ]  # fmt: skip
        for c in range(2):
            fma = f"call {v} @llvm.fma.v{n}{SUFFIX[t]}({v} %w{g}{k}, {v} %bv{g}{c}, {v} %s{g}{k}_{c})"
            lines.append(f"  %n{g}{k}_{c} = {fma}")
    return lines
