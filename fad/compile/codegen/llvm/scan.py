"""Native functions along one axis of arrays without gaps: accumulations, recurrences, folds, positions, searches.

An array is (P, N, Q): N along the axis, P and Q before and behind it. With Q = 1 what is carried along stays in a
register; otherwise the inner loop runs over Q, which LLVM turns into vectors.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import Emitter
from fad.compile.codegen.llvm.math.catalogue import TYPED
from fad.compile.codegen.llvm.module import SCALAR, Module
from fad.compile.codegen.llvm.number_checks import OF_ONE_NUMBER
from fad.compile.ir.types import BYTES, EXACT, INTEGERS

_LANES = 16
_ABREAST = 16  # searches that go on side by side


def _head(name: str, words: tuple[str, ...]) -> list[str]:
    lines = [f"define i32 @{name}(ptr noalias %W) {{", "entry:"]
    for k, w in enumerate(words):
        lines.append(f"  %w{w} = getelementptr i64, ptr %W, i64 {k}")
        lines.append(f"  %{w} = load {'i64' if w in 'PNQ' else 'ptr'}, ptr %w{w}")
    return [*lines, "  %whole = mul i64 %N, %Q"]


def _at(name: str, array: str, t: str, index: str) -> str:
    return f"  %{name} = getelementptr {t}, ptr %{array}, i64 {index}"


def _combine(op: str, t: str, a: str, b: str, name: str, flags: str = "") -> tuple[list[str], set[str]]:
    """Return the instructions that name the combination of two numbers, and what they declare."""
    if op in ("add", "multiply"):
        how = {"add": "add", "multiply": "mul"}[op]
        return [f"  %{name} = {how if t in INTEGERS else f'f{how} {flags}'} {t} {a}, {b}".replace("  ", " ")], set()
    e = Emitter(f"{name}_")
    value = TYPED[op](e, a, b, t)
    return [*e.lines, f"  %{name} = select i1 true, {t} {value}, {t} {value}"], e.needs


def accumulation_module(name: str, op: str, t: str, single: bool) -> Module:
    """Return y[0] = x[0], y[n] = op(y[n-1], x[n]). Words: P, N, Q, X, Y."""
    lines = _head(name, ("P", "N", "Q", "X", "Y"))
    new, needs = _combine(op, t, "%old", "%v", "new")
    if single:
        lines += [
            "  br label %p", "p:", "  %ip = phi i64 [0, %entry], [%ip1, %pe]", "  %base = mul i64 %ip, %N",
            _at("x0", "X", t, "%base"), f"  %first = load {t}, ptr %x0", _at("y0", "Y", t, "%base"),
            f"  store {t} %first, ptr %y0", "  %some = icmp ugt i64 %N, 1", "  br i1 %some, label %n, label %pe",
            "n:", "  %i = phi i64 [1, %p], [%i1, %n]", f"  %old = phi {t} [%first, %p], [%new, %n]",
            "  %k = add i64 %base, %i", _at("xa", "X", t, "%k"), f"  %v = load {t}, ptr %xa", *new,
            _at("ya", "Y", t, "%k"), f"  store {t} %new, ptr %ya", "  %i1 = add i64 %i, 1",
            "  %more = icmp ult i64 %i1, %N", "  br i1 %more, label %n, label %pe",
        ]  # fmt: skip
    else:
        body = ["  %kb = sub i64 %k, %Q", _at("ob", "Y", t, "%kb"), f"  %old = load {t}, ptr %ob", *new]
        lines += _rows(t, f"  store {t} %v, ptr %yf", [*body, f"  store {t} %new, ptr %ya"], "", False)
    return _end(lines, needs)


def recurrence_module(name: str, t: str, reverse: bool) -> Module:
    """Return y[n] = a[n] y[n-1] + x[n], from zero; from the end if `reverse`. Words: P, N, Q, X, Y, A."""
    lines = _head(name, ("P", "N", "Q", "X", "Y", "A"))
    step = "add" if reverse else "sub"
    body = [
        f"  %kb = {step} i64 %k, %Q", _at("ob", "Y", t, "%kb"), f"  %old = load {t}, ptr %ob",
        _at("aa", "A", t, "%k"), f"  %a = load {t}, ptr %aa", f"  %moved = fmul {t} %a, %old",
        f"  %new = fadd {t} %moved, %v", f"  store {t} %new, ptr %ya",
    ]  # fmt: skip
    return _end([*lines, *_rows(t, f"  store {t} %v, ptr %yf", body, "", reverse)], set())


def _rows(t: str, first: str, body: list[str], result: str, reverse: bool) -> list[str]:
    """Run over P, then N, then Q; `first` stores the first row of each, `body` computes an element of the others."""
    place = ["  %last = sub i64 %N, 1", "  %row = sub i64 %last, %i"] if reverse else ["  %row = add i64 %i, 0"]
    return [
        "  br label %p", "p:", "  %ip = phi i64 [0, %entry], [%ip1, %pe]", "  %base = mul i64 %ip, %whole",
        "  br label %n", "n:", "  %i = phi i64 [0, %p], [%i1, %ne]", *place, "  %shift = mul i64 %row, %Q",
        "  %start = add i64 %base, %shift", "  %begin = icmp eq i64 %i, 0", "  br i1 %begin, label %f, label %q",
        "f:", "  %jf = phi i64 [0, %n], [%jf1, %f]", "  %kf = add i64 %start, %jf", _at("xf", "X", t, "%kf"),
        f"  %vf = load {t}, ptr %xf", _at("yf", "Y", t, "%kf"), first.replace("%v,", "%vf,"),
        "  %jf1 = add i64 %jf, 1", "  %fq = icmp ult i64 %jf1, %Q", "  br i1 %fq, label %f, label %ne",
        "q:", "  %j = phi i64 [0, %n], [%j1, %q]", "  %k = add i64 %start, %j", _at("xa", "X", t, "%k"),
        f"  %v = load {t}, ptr %xa", _at("ya", "Y", t, "%k"), *body, "  %j1 = add i64 %j, 1",
        "  %jq = icmp ult i64 %j1, %Q", "  br i1 %jq, label %q, label %ne",
        "ne:", "  %i1 = add i64 %i, 1", "  %iq = icmp ult i64 %i1, %N", "  br i1 %iq, label %n, label %pe",
    ]  # fmt: skip


def fold_module(name: str, op: str, t: str) -> Module:
    """Return y = op(... op(x[0], x[1]) ..., x[N-1]). Words: P, N, Q, X, Y."""
    new, needs = _combine(op, t, "%old", "%v", "new", "reassoc ")
    lines = [
        *_head(name, ("P", "N", "Q", "X", "Y")), "  br label %p", "p:", "  %ip = phi i64 [0, %entry], [%ip1, %pe]",
        "  %base = mul i64 %ip, %whole", "  %to = mul i64 %ip, %Q", "  br label %q",
        "q:", "  %j = phi i64 [0, %p], [%j1, %qe]", "  %from = add i64 %base, %j", _at("x0", "X", t, "%from"),
        f"  %first = load {t}, ptr %x0", "  %some = icmp ugt i64 %N, 1", "  br i1 %some, label %n, label %qe",
        "n:", "  %i = phi i64 [1, %q], [%i1, %n]", f"  %old = phi {t} [%first, %q], [%new, %n]",
        "  %shift = mul i64 %i, %Q", "  %k = add i64 %from, %shift", _at("xa", "X", t, "%k"),
        f"  %v = load {t}, ptr %xa", *new, "  %i1 = add i64 %i, 1", "  %iq = icmp ult i64 %i1, %N",
        "  br i1 %iq, label %n, label %qe", "qe:", f"  %all = phi {t} [%first, %q], [%new, %n]",
        "  %o = add i64 %to, %j", _at("ya", "Y", t, "%o"), f"  store {t} %all, ptr %ya", "  %j1 = add i64 %j, 1",
        "  %jq = icmp ult i64 %j1, %Q", "  br i1 %jq, label %q, label %pe",
    ]  # fmt: skip
    return _end(lines, needs)


def position_module(name: str, how: str, t: str) -> Module:
    """Return where the first extreme is; the first NaN counts as one. Words: P, N, Q, X, Y."""
    better = {"maximum": ("ugt", "sgt"), "minimum": ("ult", "slt")}[how][t in INTEGERS]
    compare = f"{'icmp' if t in INTEGERS else 'fcmp'} {better}"
    known = "icmp eq" if t in INTEGERS else "fcmp ord"
    lines = [
        *_head(name, ("P", "N", "Q", "X", "Y")), "  br label %p", "p:", "  %ip = phi i64 [0, %entry], [%ip1, %pe]",
        "  %base = mul i64 %ip, %whole", "  %to = mul i64 %ip, %Q", "  br label %q",
        "q:", "  %j = phi i64 [0, %p], [%j1, %qe]", "  %from = add i64 %base, %j", _at("x0", "X", t, "%from"),
        f"  %first = load {t}, ptr %x0", "  br label %n", "n:", "  %i = phi i64 [0, %q], [%i1, %one]",
        f"  %best = phi {t} [%first, %q], [%best1, %one]", "  %pos = phi i64 [0, %q], [%pos1, %one]",
        "  %left = icmp ult i64 %i, %N", f"  %open = {known} {t} %best, %best", "  %go = and i1 %left, %open",
        "  br i1 %go, label %one, label %qe", "one:", "  %shift = mul i64 %i, %Q", "  %k = add i64 %from, %shift",
        _at("xa", "X", t, "%k"), f"  %v = load {t}, ptr %xa", f"  %c = {compare} {t} %v, %best",
        f"  %best1 = select i1 %c, {t} %v, {t} %best", "  %pos1 = select i1 %c, i64 %i, i64 %pos",
        "  %i1 = add i64 %i, 1", "  br label %n",
        "qe:", "  %o = add i64 %to, %j", _at("ya", "Y", "i64", "%o"), "  store i64 %pos, ptr %ya",
        "  %j1 = add i64 %j, 1", "  %jq = icmp ult i64 %j1, %Q", "  br i1 %jq, label %q, label %pe",
    ]  # fmt: skip
    return _end(lines, set())


def place_module(name: str, t: str) -> Module:
    """Return where in each row of X its extreme M is first. Words: P, N, Q, X, Y, M; Q is 1.

    Sixteen elements are compared at a time. An extreme that is NaN is found where the row has its first NaN; if it is a
    number, the row has none.
    """
    same, nan = ("icmp eq", "icmp ne") if t in INTEGERS else ("fcmp oeq", "fcmp uno")
    v, truths = f"<{_LANES} x {t}>", f"<{_LANES} x i1>"
    called = f"llvm.vector.reduce.or.v{_LANES}i1"
    lines = [
        *_head(name, ("P", "N", "Q", "X", "Y", "M")), "  br label %p", "p:",
        "  %ip = phi i64 [0, %entry], [%ip1, %pe]", "  %base = mul i64 %ip, %N", _at("ma", "M", t, "%ip"),
        f"  %m = load {t}, ptr %ma", f"  %me = insertelement {v} poison, {t} %m, i64 0",
        f"  %ms = shufflevector {v} %me, {v} poison, <{_LANES} x i32> zeroinitializer", "  br label %b",
        "b:", "  %i = phi i64 [0, %p], [%far, %wide]", f"  %far = add i64 %i, {_LANES}",
        "  %many = icmp ule i64 %far, %N", "  br i1 %many, label %wide, label %n",
        "wide:", "  %kw = add i64 %base, %i", _at("xw", "X", t, "%kw"),
        f"  %vs = load {v}, ptr %xw, align {BYTES[t]}", f"  %es = {same} {v} %vs, %ms",
        f"  %us = {nan} {v} %vs, %vs", f"  %cs = or {truths} %es, %us",
        f"  %hit = call i1 @{called}({truths} %cs)", "  br i1 %hit, label %n, label %b",
        "n:", "  %j = phi i64 [%i, %b], [%i, %wide], [%j1, %on]", "  %k = add i64 %base, %j", _at("xa", "X", t, "%k"),
        f"  %x = load {t}, ptr %xa", f"  %e = {same} {t} %x, %m", f"  %u = {nan} {t} %x, %x",
        "  %c = or i1 %e, %u", "  br i1 %c, label %found, label %on",
        "on:", "  %j1 = add i64 %j, 1", "  %left = icmp ult i64 %j1, %N", "  br i1 %left, label %n, label %found",
        "found:", "  %pos = phi i64 [%j, %n], [0, %on]", _at("ya", "Y", "i64", "%ip"), "  store i64 %pos, ptr %ya",
        "  br label %pe",
    ]  # fmt: skip
    return _end(lines, {f"declare i1 @{called}({truths})"})


def search_module(name: str, t: str, right: bool) -> Module:
    """Return for each of P numbers X its place among N sorted ones, A. Words: P, N, Q, X, Y, A. NaN comes last.

    Each search takes the same steps, and what it finds decides no branch. So several go on side by side, and none waits
    for the memory of another; but for NaN, which is compared in another way.
    """
    below = "icmp slt" if t in INTEGERS else "fcmp olt"
    a, b = ("%v", "%s") if right else ("%s", "%v")
    less = [f"  %less0 = {below} {t} {a}, {b}"]
    if t not in INTEGERS:
        less += [f"  %nan = fcmp uno {t} {b}, {b}", f"  %number = fcmp ord {t} {a}, {a}"]
        less += ["  %beyond = and i1 %nan, %number", "  %less1 = or i1 %less0, %beyond"]
    else:
        less += ["  %less1 = or i1 %less0, false"]
    lines = [
        *_head(name, ("P", "N", "Q", "X", "Y", "A")), "  br label %p", "p:",
        "  %ip = phi i64 [0, %entry], [%ip1, %pe]", f"  %far = add i64 %ip, {_ABREAST}",
        "  %many = icmp ule i64 %far, %P", "  br i1 %many, label %abreast, label %alone",
        *_search_abreast(t, right),
        "alone:", _at("xa", "X", t, "%ip"), f"  %v = load {t}, ptr %xa",
        "  br label %n", "n:", "  %low = phi i64 [0, %alone], [%low1, %n]",
        "  %len = phi i64 [%N, %alone], [%rest, %n]", "  %more = add i64 %len, 1", "  %half = lshr i64 %more, 1",
        "  %mid0 = add i64 %low, %half", "  %mid = sub i64 %mid0, 1", _at("sa", "A", t, "%mid"),
        f"  %s = load {t}, ptr %sa", *less, f"  %up = xor i1 %less1, {'true' if right else 'false'}",
        "  %low1 = select i1 %up, i64 %mid0, i64 %low", "  %rest = sub i64 %len, %half",
        "  %left = icmp ne i64 %rest, 0", "  br i1 %left, label %n, label %found",
        "found:", _at("ya", "Y", "i64", "%ip"), "  store i64 %low1, ptr %ya", "  %next = add i64 %ip, 1",
        "  br label %pe", "pe:", "  %ip1 = phi i64 [%next, %found], [%far, %all]",
        "  %pq = icmp ult i64 %ip1, %P", "  br i1 %pq, label %p, label %done", "done:", "  ret i32 0", "}", "",
    ]  # fmt: skip
    return Module("\n".join(lines), SCALAR)


def _search_abreast(t: str, right: bool) -> list[str]:
    """Return blocks that search for several numbers from %ip on, and go on to %alone if one of them is NaN.

    Their places are a vector: of single numbers LLVM makes branches, which the CPU cannot foresee.
    """
    n = _ABREAST
    compare = ("icmp sle" if right else "icmp slt") if t in INTEGERS else ("fcmp ole" if right else "fcmp olt")
    v, words, truths = f"<{n} x {t}>", f"<{n} x i64>", f"<{n} x i1>"
    lines = ["abreast:", _at("xs", "X", t, "%ip"), f"  %vs = load {v}, ptr %xs, align {BYTES[t]}"]
    if t in INTEGERS:
        lines.append("  br label %step")
    else:
        lines += [
            f"  %knowns = fcmp ord {v} %vs, %vs", f"  %bits = bitcast {truths} %knowns to i{n}",
            f"  %numbers = icmp eq i{n} %bits, -1", "  br i1 %numbers, label %step, label %alone",
        ]  # fmt: skip
    lines += [
        "step:", "  %length = phi i64 [%N, %abreast], [%remains, %step]",
        f"  %lows = phi {words} [zeroinitializer, %abreast], [%founds, %step]",
        "  %longer = add i64 %length, 1", "  %middle = lshr i64 %longer, 1", "  %remains = sub i64 %length, %middle",
        f"  %first = insertelement {words} poison, i64 %middle, i64 0",
        f"  %middles = shufflevector {words} %first, {words} poison, <{n} x i32> zeroinitializer",
        f"  %tos = add {words} %lows, %middles",
    ]  # fmt: skip
    before = "poison"
    for k in range(n):
        lines += [
            f"  %to_{k} = extractelement {words} %tos, i64 {k}", f"  %at_{k} = sub i64 %to_{k}, 1",
            _at(f"sa_{k}", "A", t, f"%at_{k}"), f"  %s_{k} = load {t}, ptr %sa_{k}",
            f"  %some_{k} = insertelement {v} {before}, {t} %s_{k}, i64 {k}",
        ]  # fmt: skip
        before = f"%some_{k}"
    return [
        *lines, f"  %ups = {compare} {v} {before}, %vs",
        f"  %founds = select {truths} %ups, {words} %tos, {words} %lows",
        "  %on = icmp ne i64 %remains, 0", "  br i1 %on, label %step, label %all", "all:",
        _at("ys", "Y", "i64", "%ip"), f"  store {words} %founds, ptr %ys, align 8", "  br label %pe",
    ]  # fmt: skip


def negative_module(name: str, t: str) -> Module:
    """Return 1 if any of N numbers X is negative, or write 0 to Y. Words: P, N, Q, X, Y; P and Q are 1."""
    lines = [
        *_head(name, ("P", "N", "Q", "X", "Y")), "  br label %n", "n:", "  %i = phi i64 [0, %entry], [%i1, %n]",
        f"  %bits = phi {t} [0, %entry], [%every, %n]", _at("xa", "X", t, "%i"), f"  %v = load {t}, ptr %xa",
        f"  %every = or {t} %bits, %v", "  %i1 = add i64 %i, 1", "  %more = icmp ult i64 %i1, %N",
        "  br i1 %more, label %n, label %done", "done:", f"  store {t} 0, ptr %Y", f"  %bad = icmp slt {t} %every, 0",
        "  %code = zext i1 %bad to i32", "  ret i32 %code", "}", "",
    ]  # fmt: skip
    return Module("\n".join(lines), SCALAR)


_OVERFLOWING = {"add": "sadd", "subtract": "ssub", "multiply": "smul"}


def check_module(name: str, t: str, how: str) -> Module:
    """Return 1 if an operation on X and Z overflows, or X has no place in it. Words: P, N, Q, X, Y, Z if read."""
    words = ("P", "N", "Q", "X", "Y", *("Z" if how in _OVERFLOWING else ""))
    lines = [*_head(name, words), f"  %x = load {t}, ptr %X"]
    needs = set()
    if how in _OVERFLOWING:
        checked = f"@llvm.{_OVERFLOWING[how]}.with.overflow.{t}"
        needs.add(f"declare {{{t}, i1}} {checked}({t}, {t})")
        lines += [
            f"  %z = load {t}, ptr %Z", f"  %r = call {{{t}, i1}} {checked}({t} %x, {t} %z)",
            f"  %bad = extractvalue {{{t}, i1}} %r, 1",
        ]  # fmt: skip
    elif how in OF_ONE_NUMBER:
        e = Emitter("c")
        holds = OF_ONE_NUMBER[how](e, "%x", t)
        needs = e.needs
        lines += [*e.lines, f"  %bad = xor i1 {holds}, true"]
    elif how == "narrow":
        lines += [f"  %low = trunc {t} %x to i32", f"  %z = sext i32 %low to {t}", f"  %bad = icmp ne {t} %x, %z"]
    elif how == "exact":
        lines += [f"  %z = add {t} %x, {EXACT}", f"  %bad = icmp ugt {t} %z, {2 * EXACT}"]
    else:  # the negative of the least integer
        lines.append(f"  %bad = icmp eq {t} %x, {-(2**63)}")
    lines += ["  %code = zext i1 %bad to i32", "  ret i32 %code", "}", ""]
    return Module("\n".join([*sorted(needs), *lines]), SCALAR)


def _end(lines: list[str], needs: set[str]) -> Module:
    tail = ["pe:", "  %ip1 = add i64 %ip, 1", "  %pq = icmp ult i64 %ip1, %P", "  br i1 %pq, label %p, label %done"]
    return Module("\n".join([*sorted(needs), *lines, *tail, "done:", "  ret i32 0", "}", ""]), SCALAR)
