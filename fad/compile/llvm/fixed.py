"""Native functions that are not loops around expressions: the driver, guards, and small matrix products."""

from __future__ import annotations

from fad.compile.llvm.emit import F64

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


# --- matrix products: C[i, j] = sum over k of A[i, k] B[k, j] --------------------------------------------------
# Words: A, B, C, M, N, K, and in bytes the strides A rows, A columns, B rows, B columns, C rows.

_WORDS = ("A", "B", "C", "M", "N", "K", "ar", "ac", "br", "bc", "cr")


def _entry() -> list[str]:
    lines = []
    for i, w in enumerate(_WORDS):
        kind = "ptr" if w in "ABC" else "i64"
        lines += [f"  %p{w} = getelementptr i64, ptr %W, i64 {i}", f"  %{w} = load {kind}, ptr %p{w}"]
    return lines


def _block(t: str, rows: int, width: int) -> str:
    """Return a function that computes `rows` x `width` elements of C, in registers."""
    v = f"<{width} x {t}>"
    head = f"define internal void @b{rows}x{width}(ptr %A, ptr %B, ptr %C, i64 %K, i64 %ar, i64 %ac, i64 %br, i64 %cr)"
    lines = [f"{head} alwaysinline {{", "entry:", "  br label %k", "k:", "  %i = phi i64 [0, %entry], [%i1, %k]"]
    lines += [f"  %s{r} = phi {v} [zeroinitializer, %entry], [%n{r}, %k]" for r in range(rows)]
    lines += ["  %bo = mul i64 %i, %br", "  %bp = getelementptr i8, ptr %B, i64 %bo"]
    lines += [f"  %b = load {v}, ptr %bp, align 4", "  %ao = mul i64 %i, %ac"]
    for r in range(rows):
        lines += [
            f"  %ro{r} = mul i64 %ar, {r}", f"  %o{r} = add i64 %ao, %ro{r}",
            f"  %ap{r} = getelementptr i8, ptr %A, i64 %o{r}", f"  %a{r} = load {t}, ptr %ap{r}",
            f"  %e{r} = insertelement {v} poison, {t} %a{r}, i64 0",
            f"  %x{r} = shufflevector {v} %e{r}, {v} poison, <{width} x i32> zeroinitializer",
            f"  %m{r} = fmul contract {v} %x{r}, %b", f"  %n{r} = fadd contract {v} %s{r}, %m{r}",
        ]  # fmt: skip
    lines += ["  %i1 = add i64 %i, 1", "  %q = icmp ult i64 %i1, %K", "  br i1 %q, label %k, label %out", "out:"]
    for r in range(rows):
        lines += [
            f"  %co{r} = mul i64 %cr, {r}", f"  %cp{r} = getelementptr i8, ptr %C, i64 %co{r}",
            f"  store {v} %n{r}, ptr %cp{r}, align 4",
        ]  # fmt: skip
    return "\n".join([*lines, "  ret void", "}", ""])


def rows_text(t: str) -> str:
    """Return the product for a B with contiguous rows."""
    size = 8 if t == F64 else 4
    widths = (16, 4, 1)
    parts = [_block(t, rows, width) for rows in (4, 1) for width in widths]
    lines = [f"define i32 @mm_rows_{t}(ptr %W) {{", "entry:", *_entry(), "  br label %i4", "i4:"]
    lines += ["  %i = phi i64 [0, %entry], [%ie, %e4]", "  %four = add i64 %i, 4", "  %has4 = icmp ule i64 %four, %M"]
    lines += ["  br i1 %has4, label %r4, label %i1"]
    for rows, begin, var, end in ((4, "r4", "i", "e4"), (1, "r1", "u", "e1")):
        lines += [
            f"{begin}:",
            f"  %ao{rows} = mul i64 %{var}, %ar",
            f"  %Ai{rows} = getelementptr i8, ptr %A, i64 %ao{rows}",
        ]
        lines += [f"  %co{rows} = mul i64 %{var}, %cr", f"  %Ci{rows} = getelementptr i8, ptr %C, i64 %co{rows}"]
        before, start = begin, "0"
        for w in widths:
            tag = f"{rows}_{w}"
            done = f"d{tag}"
            lines += [
                f"  br label %h{tag}", f"h{tag}:", f"  %j{tag} = phi i64 [{start}, %{before}], [%jn{tag}, %w{tag}]",
                f"  %jn{tag} = add i64 %j{tag}, {w}", f"  %jq{tag} = icmp ule i64 %jn{tag}, %N",
                f"  br i1 %jq{tag}, label %w{tag}, label %{done}", f"w{tag}:",
                f"  %jo{tag} = mul i64 %j{tag}, {size}", f"  %Bj{tag} = getelementptr i8, ptr %B, i64 %jo{tag}",
                f"  %Cj{tag} = getelementptr i8, ptr %Ci{rows}, i64 %jo{tag}",
                f"  call void @b{rows}x{w}(ptr %Ai{rows}, ptr %Bj{tag}, ptr %Cj{tag}, i64 %K, i64 %ar, i64 %ac, "
                "i64 %br, i64 %cr)",
                f"  br label %h{tag}", f"{done}:",
            ]  # fmt: skip
            before, start = done, f"%j{tag}"
        lines += [f"  br label %{end}", f"{end}:"]
        if rows == 4:
            lines += ["  %ie = add i64 %i, 4", "  br label %i4", "i1:", "  br label %i1h", "i1h:"]
            lines += ["  %u = phi i64 [%i, %i1], [%ue, %e1]", "  %hasu = icmp ult i64 %u, %M"]
            lines += ["  br i1 %hasu, label %r1, label %done"]
        else:
            lines += ["  %ue = add i64 %u, 1", "  br label %i1h", "done:", "  ret i32 0", "}", ""]
    return "\n".join(parts) + "\n".join(lines)


def dots_text(t: str, contiguous: bool) -> str:
    """Return the product as dot products; with `contiguous`, rows of A and columns of B lie contiguous."""
    size = 8 if t == F64 else 4
    name = f"mm_dots_{t}" if contiguous else f"mm_any_{t}"
    a_step, b_step = (str(size), str(size)) if contiguous else ("%ac", "%bc0")
    lines = [f"define i32 @{name}(ptr %W) {{", "entry:", *_entry(), "  %bc0 = add i64 %br, 0", "  br label %i", "i:"]
    lines += [
        "  %r = phi i64 [0, %entry], [%r1, %ie]", "  %ao = mul i64 %r, %ar",
        "  %Ai = getelementptr i8, ptr %A, i64 %ao",
        "  %co = mul i64 %r, %cr", "  %Ci = getelementptr i8, ptr %C, i64 %co", "  br label %j", "j:",
        "  %c = phi i64 [0, %i], [%c1, %je]", "  %bo = mul i64 %c, %bc", "  %Bj = getelementptr i8, ptr %B, i64 %bo",
        "  br label %k", "k:", "  %x = phi i64 [0, %j], [%x1, %k]", f"  %s = phi {t} [0.0, %j], [%s1, %k]",
        f"  %xa = mul i64 %x, {a_step}", "  %ap = getelementptr i8, ptr %Ai, i64 %xa", f"  %a = load {t}, ptr %ap",
        f"  %xb = mul i64 %x, {b_step}", "  %bp = getelementptr i8, ptr %Bj, i64 %xb", f"  %b = load {t}, ptr %bp",
        f"  %m = fmul contract {t} %a, %b", f"  %s1 = fadd reassoc contract {t} %s, %m", "  %x1 = add i64 %x, 1",
        "  %xq = icmp ult i64 %x1, %K", "  br i1 %xq, label %k, label %je", "je:", f"  %jo = mul i64 %c, {size}",
        "  %cp = getelementptr i8, ptr %Ci, i64 %jo", f"  store {t} %s1, ptr %cp", "  %c1 = add i64 %c, 1",
        "  %cq = icmp ult i64 %c1, %N", "  br i1 %cq, label %j, label %ie", "ie:", "  %r1 = add i64 %r, 1",
        "  %rq = icmp ult i64 %r1, %M", "  br i1 %rq, label %i, label %done", "done:", "  ret i32 0", "}", "",
    ]  # fmt: skip
    return "\n".join(lines)
