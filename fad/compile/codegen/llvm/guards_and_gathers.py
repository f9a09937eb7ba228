"""Native functions that are not fused loops: guards and lookups."""

from __future__ import annotations

from fad.compile.codegen.llvm.module import SCALAR, Module
from fad.compile.ir.types import BOOL, BYTES, INTEGERS


def guard_module(width: int) -> Module:
    """Return a guard: compares one integer of `width` bits in memory with the recorded one."""
    return Module(f"""define i32 @guard_{width}(ptr %A) {{
  %p = load ptr, ptr %A
  %q = getelementptr i64, ptr %A, i64 1
  %want = load i64, ptr %q
  %x = load i{width}, ptr %p
  %wide = zext i{width} %x to i64
  %same = icmp eq i64 %wide, %want
  %code = select i1 %same, i32 0, i32 1
  ret i32 %code
}}
""".replace("%wide = zext i64 %x to i64", "%wide = add i64 %x, 0"))


# --- lookups by integer arrays: A[p, i(n), q] and B[p, n, q] ----------------------------------------------------------
# Words: P, N, Q, A and its strides along p and q, B and its strides along p, n and q; for each index array its address,
# its stride, the length of the axis of A that it indexes and the stride along that.

KNOWN = "known"  # instead of the type of an index array: places in 32 bits, all of them inside
_LOOKED = ("P", "N", "Q", "A", "ap", "aq", "B", "bp", "bn", "bq")


def lookup_module(name: str, how: str, t: str, kinds: tuple, even: bool, single: bool) -> Module:
    """Return a lookup: `how` is "take" (B from A), "add" (B to A) or "set"; `even`: both contiguous along q.

    `kinds` are LLVM's types of the index arrays.
    """
    count = len(kinds)
    memory = "i8" if t == BOOL else t
    size = BYTES[t]
    names = [*_LOOKED, *[f"{w}{k}" for k in range(count) for w in ("I", "in", "lim", "is")]]
    lines = [f"define i32 @{name}(ptr %W) {{", "entry:"]
    for i, w in enumerate(names):
        lines.append(f"  %w{w} = getelementptr i64, ptr %W, i64 {i}")
        lines.append(f"  %{w} = load {'ptr' if w in 'AB' or w.startswith('I') else 'i64'}, ptr %w{w}")
    lines += [
        "  br label %p", "p:", "  %ip = phi i64 [0, %entry], [%ip1, %pe]", "  %apo = mul i64 %ip, %ap",
        "  %Ap = getelementptr i8, ptr %A, i64 %apo", "  %bpo = mul i64 %ip, %bp",
        "  %Bp = getelementptr i8, ptr %B, i64 %bpo", "  br label %n", "n:", "  %i = phi i64 [0, %p], [%i1, %ne]",
    ]  # fmt: skip
    here, inside = "%Ap", ""
    for k, kind in enumerate(kinds):
        lines += [f"  %io{k} = mul i64 %i, %in{k}", f"  %ia{k} = getelementptr i8, ptr %I{k}, i64 %io{k}"]
        if kind == KNOWN:
            lines += [f"  %n{k} = load i32, ptr %ia{k}", f"  %x{k} = zext i32 %n{k} to i64"]
        else:
            lines += _check(k, kind)
            if inside:
                lines.append(f"  %in_{k} = and i1 {inside}, %ok{k}")
            inside = f"%in_{k}" if inside else f"%ok{k}"
        lines += [f"  %xo{k} = mul i64 %x{k}, %is{k}", f"  %Ax{k} = getelementptr i8, ptr {here}, i64 %xo{k}"]
        here = f"%Ax{k}"
    lines += ["  %bno = mul i64 %i, %bn", "  %Bn = getelementptr i8, ptr %Bp, i64 %bno"]
    lines += [f"  br i1 {inside}, label %q0, label %out", "out:", "  ret i32 1"] if inside else ["  br label %q0"]
    lines += ["q0:", "  br label %q", "q:"]
    lines.append("  %j = add i64 0, 0" if single else "  %j = phi i64 [0, %q0], [%j1, %q]")
    for a, base, step in (("a", here, "aq"), ("b", "%Bn", "bq")):
        if even:
            lines.append(f"  %{a}e = getelementptr {memory}, ptr {base}, i64 %j")
        else:
            lines += [f"  %{a}eo = mul i64 %j, %{step}", f"  %{a}e = getelementptr i8, ptr {base}, i64 %{a}eo"]
    source, target = ("a", "b") if how == "take" else ("b", "a")
    lines.append(f"  %v = load {memory}, ptr %{source}e, align {size}")
    value = "%v"
    if how == "add":
        add = "add" if t in INTEGERS else "fadd"
        lines += [f"  %old = load {t}, ptr %ae, align {size}", f"  %new = {add} {t} %old, %v"]
        value = "%new"
    lines.append(f"  store {memory} {value}, ptr %{target}e, align {size}")
    if single:
        lines.append("  br label %ne")
    else:
        lines += ["  %j1 = add i64 %j, 1", "  %jq = icmp ult i64 %j1, %Q", "  br i1 %jq, label %q, label %ne"]
    lines += [
        "ne:", "  %i1 = add i64 %i, 1", "  %iq = icmp ult i64 %i1, %N", "  br i1 %iq, label %n, label %pe",
        "pe:", "  %ip1 = add i64 %ip, 1", "  %pq = icmp ult i64 %ip1, %P", "  br i1 %pq, label %p, label %done",
        "done:", "  ret i32 0", "}", "",
    ]  # fmt: skip
    return Module("\n".join(lines), SCALAR)


def _check(k: int, kind: str) -> list[str]:
    """Load an index, count it from the axis's end if it is negative, and see whether it is inside."""
    load = [f"  %n{k} = load {kind}, ptr %ia{k}", f"  %r{k} = sext {kind} %n{k} to i64"]
    return [
        *([f"  %r{k} = load i64, ptr %ia{k}"] if kind == "i64" else load),
        f"  %m{k} = icmp slt i64 %r{k}, 0", f"  %f{k} = add i64 %r{k}, %lim{k}",
        f"  %x{k} = select i1 %m{k}, i64 %f{k}, i64 %r{k}", f"  %ok{k} = icmp ult i64 %x{k}, %lim{k}",
    ]  # fmt: skip
