"""Random programs of nested loops that write arrays, branch, break and call helpers, as text of Python."""

import linecache
import random

HEAD = """
import numpy as np

def mix(u, k, w):
    u[k] = 0.5 * u[k] + 0.3 * w

def bend(w):
    if w > 0.4:
        return 0.5 * w
    if w < -0.3:
        return -0.2 * w + 0.1
    return w * w

def shift(u):
    u[1:] = 0.5 * u[1:] + 0.4 * u[:-1]
    return u

PLACES, ENDS = np.array([3, 0, 4, 1, 1, 2]), np.array([0, 2, 2, 5, 6, 6], np.uint8)
WEIGHTS = np.linspace(-0.4, 0.6, 6)

def f(x):
    s, t, n = 0.1, x[0], 0
    u, v = x * 1.0, 0.5 * x[::-1].copy()
    m = np.outer(x, x) + 0.1
    c, first, q, acc = 0, True, np.zeros(2), 0
"""
TAIL = """    return 0.3 * np.sum(np.sin(u) * v) + 0.1 * acc + s + 0.5 * t + 0.1 * np.sum(m) + 0.01 * n + 0.003 * c
"""


CLASSES = """
import dataclasses

class Vector:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __add__(self, other):
        return Vector(self.a + other.a, self.b + other.b)

    def __mul__(self, k):
        return Vector(self.a * k, self.b * k)

    def norm(self):
        return np.sqrt(1.0 + self.a**2 + self.b**2)

@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float
    b: float

    def turned(self, w):
        return Frozen(self.b * 0.5, 0.4 * self.a + 0.1 * w)

class Box:
    kind = 0.3

    def __init__(self, w, u):
        self.w, self.u, self.last, self.k, self.z = w, u, 0.2, 0, Vector(w, 0.1)
        self.seen = [w]

    def push(self, w):
        self.last, self.w = self.w, 0.5 * self.w + 0.3 * w
        self.k += 1

    def write(self, k, w):
        self.u[k] = 0.5 * self.u[k] + 0.2 * w

    def move(self, w):
        self.u = 0.8 * self.u + 0.1 * w
        if w > 0.3:
            self.z = self.z * 0.9

    @property
    def size(self):
        return 0.5 * self.w + self.kind
"""
OBJECTS = """
    p, o, d = Box(x[0], u), Box(0.4, x * 0.5), {"a": x[1], "b": 0.2, "u": v}
    z, fr, ys, us, w = Vector(x[2], 0.3), Frozen(x[3], 0.1), [x[4], 0.1], [x * 1.0], [0.3, x[0]]
    both, more = [p, o], p
    tb, gr, nu = [x[0], 0.2, x[1], -0.3, 0.1], [[0.1] * 5, [x[3], 0.0, 0.1, x[4], 0.3]], [0.25] * 5
"""
SUMS = """    e = p.w + p.last + 0.1 * p.k + o.w * o.size + 0.1 * np.sum(o.u) + d["a"] * d["b"] + z.a * z.b
    s = s + e + fr.a * fr.b + sum(w) + 0.1 * sum(tb) + 0.1 * sum(sum(row) for row in gr) + 0.1 * sum(nu) + nu[1]
    s = s + 0.1 * sum(ys) + ys[-1] + 0.01 * len(us) + 0.1 * np.sum(us[-1]) + p.z.a + o.z.norm() + 0.2 * sum(o.seen)
    s = s + 0.1 * d.get("c", 0.0) + more.w + 0.1 * np.sum(d["u"])
"""


HELPERS = """
from collections import defaultdict, deque

class TooFar(ValueError):
    pass

def checked(w):
    if w > 1.3:
        raise TooFar
    return 0.5 * w

def half(w):
    if w > 0.5:
        return 0.5 * w

def root(w):
    y = 1.0 + abs(w)
    for _ in range(9):
        d = (y * y - abs(w) - 0.5) / (2 * y)
        y = y - d
        if abs(d) < 1e-9:
            return y
    raise TooFar

def stream(w, n):
    for k in range(n):
        w = 0.7 * w + 0.05 * k
        yield k, w
        w = 0.9 * w

def some(u):
    k = 0
    while k < 5:
        if u[k] > 0.1:
            yield k, u[k]
        k += 1

def tried(w):
    try:
        return checked(w)
    except TooFar:
        return 0.1 * w
"""
SHARED = """
    win, line, hits, most = deque([x[0], 0.2], maxlen=2), deque([0.0, 0.1, x[1]]), 0, 0.1
    kept, od, held = deque([0.1, 0.2]), defaultdict(float, a=x[2]), {"a": 0.3}

    def hit(w):
        nonlocal hits
        hits += 1
        return 0.1 * w

    def shared(n):
        nonlocal hits
        for k in range(n):
            yield k, 0.1 * k
            hits += 1

    def top(w):
        nonlocal most
        if w > most:
            most = 0.5 * w + 0.1 * hit(w)
"""
KEPT = """    s = s + 0.1 * sum(win) + 0.1 * sum(line) + 0.2 * line[0] + 0.01 * hits + 0.3 * most
    s = s + 0.1 * kept[0] + 0.2 * kept[-1] + 0.1 * od["a"] + 0.2 * held["a"]
"""


class Program:
    """A random program; `text` is its source."""

    head = HEAD

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counters = []
        self.left = 9
        self.lines = []
        if self.random.random() < 0.3:
            self.lines.append("    alias = " + self.pick("u", "v", "u[1:4]", "m[2]"))
            tail = TAIL.replace("s +", "s + np.sum(alias) +")
        else:
            tail = TAIL
        for _ in range(self.random.randint(1, 2)):
            self.loop(1)
        self.text = self.head + "\n".join(self.lines) + "\n" + tail

    def pick(self, *options):
        return self.random.choice(options)

    # --- expressions ------------------------------------------------------------------------------------------------

    def place(self):
        """Return an index from 0 to 4, or a negative one."""
        i = self.pick(*self.counters) if self.counters else "0"
        return self.pick(i, i, f"({i} + 1) % 5", f"{i} - 1", f"4 - {i}", "2", "-1", f"{i} // 2")

    def value(self, depth=2):
        r = self.random.random()
        if depth == 0 or r < 0.35:
            return self.pick(
                "s", "t", f"x[{self.place()}]", f"u[{self.place()}]", f"v[{self.place()}]", "0.7", "0.05 * n",
                f"m[{self.place()}, {self.place()}]", *[f"0.1 * {i}" for i in self.counters],
            )  # fmt: skip
        a, b = self.value(depth - 1), self.value(depth - 1)
        if r < 0.45:
            return self.gathered(a)
        return self.pick(
            f"np.sin({a})", f"np.tanh({a} + {b})", f"0.6 * {a} - 0.4 * {b}", f"0.5 * {a} * np.cos({b})", f"bend({a})",
            f"max({a}, {b})", f"min({a}, 0.8)", f"({a} if {self.test(0)} else {b})", f"abs({a})",
        )  # fmt: skip

    def gathered(self, a):
        """Return what a comprehension, or one of Python's functions, makes of many numbers."""
        u = self.pick("u", "v", "x", f"m[{self.place()}]", f"m[:, {self.place()}]")
        return self.pick(
            f"0.1 * sum(e_ * {a} for e_ in {u})", f"0.1 * sum([np.sin({u}[j_]) for j_ in range(4)])",
            f"0.1 * sum(e_ * g_ for e_, g_ in zip({u}, v) if e_ > 0.1)", f"0.2 * max(np.cos(e_) + {a} for e_ in {u})",
            f"0.3 * min({u})", f"0.1 * sum({u})", f"0.1 * max([e_ * {a} for e_ in {u}])",
            f"0.1 * np.sum(np.array([np.tanh(e_ * {a}) for e_ in {u}]))",
            f"(0.1 if any(e_ > 0.37 for e_ in {u}) else {a})", f"({a} if all(e_ > -0.21 for e_ in {u}) else 0.3)",
            f"0.1 * sum(sum(e_ * g_ for g_ in v[:j_]) for j_, e_ in enumerate({u}))",
            f"0.01 * sum(e_ > 0.2 for e_ in {u})", f"0.1 * [e_ * {a} for e_ in {u}][{self.place()}]",
        )  # fmt: skip

    def vector(self):
        return self.pick("u", "v", "x", f"m[{self.place()}]", f"m[:, {self.place()}]", "0.5 * u + 0.3 * v", "np.sin(v)")

    def test(self, depth=1):
        i = self.pick(*self.counters) if self.counters else "n"
        tests = [
            f"{self.value(0)} > {self.pick(0.1, 0.33, -0.2)}", f"{i} % 2 == 0", f"{i} > 1", "s < t",
            f"-0.1 < {self.value(0)} <= 0.47",
        ]  # fmt: skip
        if self.random.random() < 0.3:  # what a first step does not show
            return self.pick("c % 2 == 0", "c == 1", "c > 1", "first", "not first", "q[0] > 0", "q[1] < q[0]")
        if depth:
            tests += [
                f"{self.test(0)} and {self.test(0)}", f"{self.test(0)} or {self.test(0)}", f"not {self.test(0)}",
                f"{i} > 0 and u[{i} - 1] > {self.value(0)}",
            ]  # fmt: skip
        return self.pick(*tests)

    # --- statements -------------------------------------------------------------------------------------------------

    def add(self, level, text):
        self.lines.append("    " * level + text)

    def statement(self, level, in_loop=True):
        self.left -= 1
        i = self.pick(*self.counters)
        r = self.random.random()
        if r < 0.14 and len(self.counters) < 3 and self.left > 0:
            return self.loop(level)
        if r < 0.34 and self.left > 0:
            return self.branch(level)
        if r < 0.40:
            self.add(level, f"if {self.value(0)} > {self.pick(0.9, 1.2, 0.6)}:")
            return self.add(level + 1, self.pick("break", "continue", "continue", "return s + np.sum(u)"))
        return self.add(level, self.pick(
            f"s = 0.5 * s + 0.3 * {self.value()}", f"s += 0.2 * {self.value()}", f"t = {self.value()}", "n += 1",
            f"n = n + {i}", f"u[{self.place()}] = {self.value()}", f"u[{self.place()}] += 0.2 * {self.value()}",
            f"v[{self.place()}] *= 0.9", f"m[{self.place()}, {self.place()}] = {self.value()}",
            f"m[{self.place()}] = 0.5 * {self.vector()}",
            f"row = m[{self.place()}]; row[{self.place()}] = {self.value(1)}",
            f"u = 0.5 * u + 0.2 * {self.vector()}", "u, v = v, u", f"v = 0.4 * {self.vector()}",
            f"mix(u, {i}, {self.value(1)})",
            "u = shift(u)", "shift(v)", f"s, t = t, 0.5 * {self.value(1)}", "u[1:-1] = 0.5 * (u[2:] + u[:-2])",
            f"a = {self.value(1)}; s = s + 0.1 * a", "v = u", f"m[{self.place()}, 1:] += 0.1 * u[:-1]", "m *= 0.9",
            f"w = {self.pick('u', 'v', 'x')}; t = t + 0.1 * w[{self.place()}]", self.masked(), self.looked_up(i),
            "c += 1", "c = c + 1", "first = False", "first = not first", f"first = {self.test(0)}", "q[0] += 1.0",
            "q[1] = q[0]", f"acc += 0.3 * {self.value(1)}", f"acc = acc + {self.value(0)}",
            f"u = np.array([0.5 * e_ + 0.1 * {self.value(1)} for e_ in u])",
        ))  # fmt: skip

    def looked_up(self, i):
        row = f"ENDS[{i}]:ENDS[{i} + 1]"
        x = f"{self.pick('u', 'v', 'x')}[PLACES[{row}]]"
        return self.pick(
            f"s = 0.5 * s + 0.2 * (WEIGHTS[{row}] @ {x})", f"t = 0.5 * t + 0.1 * np.sum({x})",
            f"e = {x}; s = s + 0.1 * np.sum(np.sin(e) * e)",
        )  # fmt: skip

    def masked(self):
        a = self.pick("u", "v", "m", f"m[{self.place()}]")
        mask = self.pick(f"{a} > {self.value(0)}", f"{a} < {self.value(0)}", f"~({a} > 0.2)")
        return self.pick(
            f"{a}[{mask}] = {self.value(1)}", f"{a}[{mask}] *= 0.9",
            f"{a}[{mask}] = 0.3 * np.log(2.5 + abs({a}[{mask}]))",
            f"s = 0.5 * s + 0.1 * np.sum({a}[{mask}])",
            f"some = {mask}; {a}[some] = np.sin({a}[some]) - 0.1 * {a}[some]",
        )  # fmt: skip

    def block(self, level):
        for _ in range(self.random.randint(1, 3)):
            self.statement(level)

    def generator(self):
        """Return a generator that a loop runs over; None if it runs over anything else."""
        return None

    def branch(self, level):
        self.add(level, f"if {self.test()}:")
        self.block(level + 1)
        if self.random.random() < 0.3:
            self.add(level, f"elif {self.test()}:")
            self.block(level + 1)
        if self.random.random() < 0.6:
            self.add(level, "else:")
            self.block(level + 1)

    def loop(self, level):
        i = "ijk"[len(self.counters)]
        outer = self.counters[-1] if self.counters else None
        bounds = ["range(5)", "range(4)", "range(1, 5)", "range(4, -1, -1)", "range(0, 5, 2)", "reversed(range(5))"]
        if outer is not None:
            bounds += [f"range({outer})", f"range({outer}, 5)", f"range({outer} + 1, 5)", f"range({outer}, -1, -1)"] * 2
        if self.random.random() < 0.5:
            self.add(level, self.pick("c = 0", "first = True", "c, first = 0, True", "q[:] = 0", "q = np.zeros(2)"))
        r = self.random.random()
        generator = self.generator()
        if generator is not None:
            self.add(level, f"for {i}, e in {generator}:")
        elif r < 0.70:
            self.add(level, f"for {i} in {self.pick(*bounds)}:")
        elif r < 0.78:
            self.add(level, f"for {i}, e in enumerate({self.pick('x', 'u', 'v')}):")
        elif r < 0.84:
            self.add(level, f"for {i}, (e, g) in enumerate(zip(x, {self.pick('u', 'v')})):")
        else:
            self.add(level, f"{i} = -1")
            self.add(level, f"while {i} < 4 and {self.value(0)} < 2.5:")
            self.add(level + 1, f"{i} += 1")
        self.counters.append(i)
        self.add(level + 1, f"t = 0.8 * t + 0.1 * {self.value(1)}")
        self.block(level + 1)
        if self.random.random() < 0.5:
            self.statement(level + 1)
        self.counters.pop()
        if self.random.random() < 0.12:
            self.add(level, "else:")
            self.add(level + 1, f"s = s + 0.1 * {self.value(1)}")


class ObjectProgram(Program):
    """A random program whose loops bind attributes, items of containers, and names to objects, too."""

    head = CLASSES + HEAD + OBJECTS

    def __init__(self, seed):
        super().__init__(seed)
        self.text = self.text.replace("    return 0.3 *", SUMS + "    return 0.3 *")

    def value(self, depth=2):
        if self.random.random() < 0.5:
            return super().value(depth)
        return self.pick(
            "p.w", "p.last", "o.w", "0.1 * p.k", "p.size", f"p.u[{self.place()}]", f"o.u[{self.place()}]", 'd["a"]',
            'd["b"]', "z.a", "z.norm()", "p.z.b", "fr.a", "fr.turned(0.3).b", "ys[-1]", "0.1 * ys[-2]",
            "0.05 * len(ys)", "us[-1][2]", "w[0]", "w[-1]", "more.w", "0.1 * sum(q_.w for q_ in both)",
            f"d['u'][{self.place()}]", "o.seen[-1]", f"tb[{self.place()}]", f"gr[1][{self.place()}]",
            f"nu[{self.place()}]", f"gr[{self.place()} % 2][1]", f"gr[{self.place()} % 2][{self.place()}]",
        )  # fmt: skip

    def statement(self, level, in_loop=True):
        if self.random.random() < 0.4 or self.left <= 0:
            return super().statement(level, in_loop)
        self.left -= 1
        a, b = self.value(1), self.value(0)
        return self.add(level, self.pick(
            f"p.w = 0.6 * p.w + 0.2 * {a}", f"o.w += 0.1 * {a}", "p.k += 1", f"p.push({a})", f"o.push({b})",
            f"o.write({self.place()}, {a})", f"p.write({self.place()}, {b})", f"o.move({a})", f"p.move({b})",
            f'd["a"] = 0.5 * d["a"] + 0.2 * {a}', f'd["b"] -= 0.1 * {b}', f'd["c"] = {b}',
            f'd["a"], d["b"] = d["b"], 0.5 * {a}', f"z = z * 0.7 + Vector({b}, 0.1)", f"z = Vector(0.5 * z.b, {a})",
            "p.z = p.z * 0.5 + z", f"z.a = 0.4 * {a}", f"o.z.b += 0.1 * {b}", f"fr = fr.turned({a})",
            f"ys.append(0.5 * ys[-1] + 0.1 * {a})", f"ys.append({b})", f"us.append(0.7 * us[-1] + 0.1 * {b})",
            f"o.seen.append(0.3 * {a})", f"w[0] = 0.5 * w[1] + 0.1 * {a}", "w[-1] *= 0.8",
            "w[0], w[1] = w[1], w[0] * 0.9", f"for q_ in both: q_.w = 0.9 * q_.w + 0.05 * {b}",
            "o.u, d['u'] = d['u'], o.u", f"o.u[{self.place()}] = {a}", f"d['u'][{self.place()}] = {b}", "more = o",
            f"tb[{self.place()}] = 0.5 * {a}", f"nu[{self.place()}] = 0.5 * {b}", f"nu[{self.place()}] *= 0.9",
            f"gr[0][1] = {a}", f"tb[2] = 0.4 * {b}",
            f"gr[{self.place()} % 2][{self.place()}] += 0.1 * {b}", f"gr[0][{self.place()}] = {b}", "gr[1][2] = 0.3",
            "p.u = u", f"z = z * 1.1 if {self.test(0)} else Vector({b}, z.a)",
            f"tmp = [{a}, {b}]; tmp[0] += 0.1; s = s + 0.1 * tmp[0]",
            f"one = Box({a}, x * 0.3); one.push({b}); one.write(1, s); t = 0.5 * t + 0.1 * one.w + 0.1 * one.u[1]",
            f"p.last = o.last; o.last = {b}", "p, o = o, p", "z2 = z; s = s + 0.1 * z2.a", "d['v'] = 0.5 * d['u']",
        ))  # fmt: skip


class HandlingProgram(ObjectProgram):
    """A random program with errors and handlers, matches, deques and functions that bind its variables, too."""

    head = CLASSES + HELPERS + HEAD + OBJECTS + SHARED

    def __init__(self, seed):
        super().__init__(seed)
        self.text = self.text.replace("    return 0.3 *", KEPT + "    return 0.3 *")

    def value(self, depth=2):
        if self.random.random() < 0.7:
            return super().value(depth)
        return self.pick(
            "win[0]", "win[-1]", "line[1]", "0.1 * hits", "most", "max(win)", "0.3 * np.mean(line)",
            "kept[0]", 'held["a"]', 'od["a"]',
            f"tried({super().value(0)})", f"root({super().value(0)})", f"0.3 * checked(0.5 * {super().value(0)})",
        )  # fmt: skip

    def statement(self, level, in_loop=True):
        r = self.random.random()
        if r < 0.5 or self.left <= 0:
            return super().statement(level, in_loop)
        self.left -= 1
        if r < 0.62:
            return self.attempt(level)
        if r < 0.72:
            return self.match(level)
        a, b = self.value(1), self.value(0)
        return self.add(level, self.pick(
            f"win.append(0.5 * {a})", "win.rotate(1)", f"line.append(0.5 * line.popleft() + 0.1 * {a})",
            "line.appendleft(line.pop())", f"line.append(0.4 * {b}); line.popleft()", f"s = 0.5 * s + hit({a})",
            f"top({a})", f"s = 0.5 * s + 0.2 * checked({b})",
            f"r_ = half({a}); s = 0.5 * s + (0.1 if r_ is None else r_)",
            f"t = 0.3 * root({a})", f"u[{self.place()}] = tried({a})", f"win = deque([{b}, win[0]], maxlen=2)",
            "kept = win", "kept = line", "kept = deque(win)", f'od["a"] = 0.5 * od["a"] + 0.1 * {b}', "held = od",
            f'od = defaultdict(float, a={b})', f"kept.append(0.3 * {b}); kept.popleft()", "win, kept = kept, win",
        ))  # fmt: skip

    def generator(self):
        if self.random.random() < 0.7:
            return None
        return self.pick(f"stream({self.value(1)}, 5)", f"some({self.pick('u', 'v', 'x')})", "shared(4)")

    def attempt(self, level):
        self.add(level, "try:")
        self.block(level + 1)
        self.add(level + 1, f"s = 0.5 * s + checked({self.value(0)})")
        self.add(level, self.pick("except TooFar:", "except (KeyError, TooFar):", "except ValueError as error:"))
        self.add(level + 1, self.pick("break", "continue", f"t = 0.2 * {self.value(0)}", "s = 0.1", "n += 1"))
        if self.random.random() < 0.3:
            self.add(level, "else:")
            self.add(level + 1, self.pick("break", f"t = 0.5 * t + {self.value(0)}", f"u[1] = 0.5 * {self.value(0)}"))
        if self.random.random() < 0.3:
            self.add(level, "finally:")
            self.add(level + 1, self.pick("n += 1", "s = 0.9 * s", "win.rotate(1)"))

    def match(self, level):
        i = self.pick(*self.counters)
        self.add(level, f"match {self.pick(f'{i} % 3', i, f'({i} + c) % 3', f'int(4 * {self.value(0)})')}:")
        for case in self.random.sample(["case 0:", "case 1 | 3:", f"case 2 if {self.test(0)}:"], 2):
            self.add(level + 1, case)
            self.block(level + 2)
        if self.random.random() < 0.5:
            self.add(level + 1, self.pick("case _:", "case other:"))
            self.block(level + 2)


GROWING = """
    past, few, path, rows, same = [x[0], 0.1, x[2]], [], x[:2], x[None] * 1.0, None
    memo, log, step = {0: x[0], 1: x[1]}, {}, 2
"""
GROWN = """    s = s + 0.1 * sum(past) + 0.2 * past[0] + 0.1 * sum(few) + 0.01 * len(few)
    s = s + 0.01 * len(path) + 0.1 * path[-1]
    s = s + 0.1 * np.sum(path * np.cos(np.arange(len(path))))
    s = s + 0.1 * np.sum(rows * np.cos(np.arange(len(rows)))[:, None])
    s = s + 0.1 * sum(memo.values()) + 0.1 * sum((k_ + 1) * v_ for k_, v_ in log.items()) + 0.01 * sum(memo) + memo[1]
    s = s + (0.0 if same is None else 0.1 * np.sum(same[-1]))
"""


class GrowingProgram(HandlingProgram):
    """A random program that makes arrays longer and uses lists as windows, too."""

    head = CLASSES + HELPERS + HEAD + OBJECTS + SHARED + GROWING

    def __init__(self, seed):
        super().__init__(seed)
        self.text = self.text.replace("    return 0.3 *", GROWN + "    return 0.3 *")

    def value(self, depth=2):
        if self.random.random() < 0.7:
            return super().value(depth)
        return self.pick(
            "past[0]", "past[-1]", "past[1]", "path[-1]", "path[0]", "0.1 * path[-2]", "0.01 * len(path)",
            "rows[-1, 2]", "rows[-1][0]", "0.01 * rows.shape[0]", "0.1 * np.sum(rows[-1])", "0.2 * sum(past)",
            "0.1 * sum(few)", "0.1 * sum(path[-2:])", "memo[0]", "0.5 * memo[step - 1]", "0.1 * memo[step - 2]",
        )  # fmt: skip

    def statement(self, level, in_loop=True):
        if self.random.random() < 0.5 or self.left <= 0:
            return super().statement(level, in_loop)
        self.left -= 1
        i, a, b = self.pick(*self.counters), self.value(1), self.value(0)
        often = [
            f"past.append({a}); del past[0]", f"past.insert(0, {b}); past.pop()", f"past[0] = {b}",
            f"past.append(0.5 * past.pop(0) + {a})", "past.reverse()", "past[-1] *= 0.5",
            f"past.append({b}); past = past[-3:]", f"few.append({a}); few = few[-2:]",
            f"path = np.append(path, {a})", f"path = np.append(path, [{a}, {b}])",
            "path = np.concatenate((path, 0.5 * path[-2:]))", f"path = np.append(path, 0.5 * path[-1] + {b})",
            "rows = np.vstack((rows, u))", f"rows = np.append(rows, [0.5 * rows[-1] + {b}], axis=0)",
            f"few.append({a}); s = s + 0.1 * few.pop()", f"memo[step] = 0.5 * memo[step - 1] + {b}; step += 1",
            f"memo[step] = {a}; step = step + 1", f"log[{i}] = {a}", f"log[{i} * 3 + 1] = {b}", f"log[{i} % 2] = {b}",
        ]  # fmt: skip
        rarely = [
            "same = path", "same = past", "same = rows", "path = path[-4:]", f"path[0] = {b}", "same = rows[-1]",
            "s = s + 0.1 * np.mean(path)", f"few = [{b}]", f"few.append({b})", "past, few = few + [0.1, 0.2], past",
            "u = rows[-1]", "rows[-1][1] = 0.3", "few.clear()", f"memo[1] = {b}", "same = [memo[0]]",
            f"log[{i}] = log.get({i}, 0.0) + {b}", f"s = s + (0.1 if {i} in log else 0.2)", "log = {}", "step = 0",
            f"few.extend([{a}, {b}]); del few[:-1]",
        ]  # fmt: skip
        return self.add(level, self.pick(*(often if self.random.random() < 0.85 else rarely)))


def compiled(text, name):
    """Return the function of a program's text, whose source can be found as that of a file is."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"__name__": "random_loops"}
    exec(compile(text, name, "exec"), space)
    return space["f"]
