"""Make random programs: statements are drawn from templates, tried on the arguments, and kept if they work.

A template is a line of Python with holes such as ``{x}`` (an array) and ``{axis}`` (one of its axes); holes.py fills
them by looking at the values that the program so far has computed. A statement is kept if a plain run of the program
with it raises nothing and gives small finite numbers, so that a template need not say where it applies.
"""

import re
import textwrap

import numpy as np

from .arguments import draw_arguments
from .holes import HOLES, Unfit
from .kinds import KINDS, PRELUDES
from .program import Program, evaluate

MOST, LARGEST = 60, 1e4  # elements of a value, and its size
HOLE = re.compile(r"\{(\w+)\}")


class Generator:
    """A program that grows: its lines, the names that it has, and their values after a plain run."""

    def __init__(self, r, kind, exact):
        self.r, self.kind, self.exact = r, kind, exact
        self.arguments = draw_arguments(r, exact)
        self.prelude, self.lines, self.counter = [], [], [0]
        self.names = ["x", "y", "z"][: len(self.arguments)]
        self.depth, self.context = 0, None
        self.values = self.run([])

    # --- trying

    def run(self, lines):
        """Return the values of all names after a plain run of the prelude and these lines."""
        values = {"np": np}
        exec("\n".join(self.prelude), values)
        values |= zip(("x", "y", "z"), evaluate(self.arguments), strict=False)
        with np.errstate(all="ignore"):
            exec("\n".join(lines), values)
        return values

    def accept(self, text, names=()):
        """Keep a statement if the program runs with it; return whether it does."""
        lines = [*self.lines, *text.splitlines()]
        try:
            values = self.run(lines)
        except Exception:  # whatever NumPy has against it
            return False
        known = [*self.names, *(n for n in names if n not in self.names)]
        if any(n not in values or not modest(values[n]) for n in known):
            return False
        self.lines, self.values, self.names = lines, values, known
        return True

    # --- drawing

    def chance(self, p):
        return self.r.random() < p

    def pick(self, among):
        if not len(among):
            raise Unfit
        return among[int(self.r.integers(len(among)))]

    def pick_name(self, fits, among=lambda name: True):
        """Return a name whose value fits, recent ones more often."""
        found = [n for n in self.names if among(n) and fits(self.values[n])]
        if not found:
            raise Unfit
        return found[max(int(self.r.integers(len(found))), int(self.r.integers(len(found))))]

    def new_name(self, hole):
        """Return a new name: ``a`` for what the program keeps, ``t`` inside of a body, ``p`` for a plain buffer."""
        self.counter[0] += 1
        return f"{'p' if hole == 'buf' else 't' if self.depth else 'a'}{self.counter[0]}"

    def value(self, text):
        """Return what an expression gives at the end of the program so far."""
        with np.errstate(all="ignore"):
            return eval(text, dict(self.values))

    def fill(self, template):
        """Return a template with its holes filled, and the names that it makes."""
        made = []

        def filled(found):
            hole = found[1]
            if hole in ("new", "buf"):
                made.append(self.new_name(hole))
            if hole in ("new", "buf", "it"):
                return made[-1]
            return HOLES[hole](self)

        self.context = None
        return HOLE.sub(filled, template), made

    # --- statements

    def grow(self, count):
        """Add so many statements."""
        wanted = len(self.lines) + count
        for _ in range(12 * count):
            if len(self.lines) >= wanted:
                return
            try:
                self.add_statement()
            except Unfit:
                continue

    def add_statement(self):
        tables = KINDS[self.kind]
        table = tables[int(self.r.choice(len(tables), p=[t.share for t in tables]))]
        template = self.pick(table.exact if self.exact else table.all)
        if "==>" in template:
            self.add_compound(template)
            return
        text, made = self.fill(template)
        self.accept(text, made)

    def add_compound(self, template):
        """Add a statement with a body, which is grown as a program of its own and then indented."""
        if self.depth == 2:
            raise Unfit
        binding, _, form = template.partition(" ==> ")
        filled, made = self.fill(binding + " ==> " + form.replace("{body}", "<body>"))
        binding, _, form = filled.partition(" ==> ")
        body = self.grown_body(binding, int(self.r.integers(1, 4))) if "<body>" in form else []
        text = form.strip().replace("|", "\n")
        text = re.sub(r"^( *)<body>", lambda m: textwrap.indent("\n".join(body), m[1]), text, flags=re.M)
        self.accept(text, [n for n in made if n.startswith("a") and not self.depth])

    def grown_body(self, binding, count):
        inner = object.__new__(Generator)
        inner.__dict__ |= self.__dict__
        inner.depth, inner.names = self.depth + 1, list(self.names)
        bound = [n for n in binding.split(";")[0].split("=")[0].replace(",", " ").split() if n.isidentifier()]
        if not inner.accept(binding, bound):
            raise Unfit
        start = len(inner.lines)
        inner.grow(count)
        if len(inner.lines) == start:
            raise Unfit
        return inner.lines[start:]


def modest(value):
    """Return whether a value is small enough to be kept in a program: few elements, finite numbers of modest size."""
    if isinstance(value, (list, tuple)):
        return all(modest(v) for v in value)
    if isinstance(value, dict):
        return all(modest(v) for v in value.values())
    if not isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
        return callable(value)
    value = np.asarray(value)
    if value.dtype.kind not in "biufc" or value.size > MOST:
        return False
    return bool(np.all(np.isfinite(value))) and np.max(np.abs(value), initial=0) <= LARGEST


def generate(seed, kind="pure"):
    """Return the program of a seed."""
    r = np.random.default_rng([seed, *kind.encode()])
    generator = Generator(r, kind, exact=r.random() < 0.35)
    preludes = PRELUDES[kind]
    for _ in range(r.integers(0, 3)):
        template = generator.pick(preludes)
        text, _ = generator.fill(template)
        if text.partition("(")[0] in "\n".join(generator.prelude):
            continue
        generator.prelude += text.replace("|", "\n").splitlines()
        generator.values = generator.run([])
        if kind == "imperative":
            generator.names += re.findall(r"^[A-Z]\b", text, re.M)
    generator.grow(int(r.integers(2, 9)))
    raising = spoiled(generator) if r.random() < 0.05 else None
    body = [*generator.lines, *([raising] if raising else []), f"return {results(generator)}"]
    head = f"def f({', '.join(generator.names[: len(generator.arguments)])}):"
    source = "\n".join([*generator.prelude, "", head, textwrap.indent("\n".join(body), "    ")]).strip() + "\n"
    return Program(source, generator.arguments, kind, seed)


def spoiled(generator):
    """Return a statement that raises in a plain run, for what a program raises must be raised under every transform."""
    tables = KINDS[generator.kind]
    for _ in range(40):
        try:
            table = generator.pick(tables)
            template = generator.pick(table.all)
            if "==>" in template:
                continue
            text, _ = generator.fill(template)
        except Unfit:
            continue
        text = text.replace("axis=0", "axis=5").replace("[1:]", "[[7, 9]]")
        try:
            generator.run([*generator.lines, *text.splitlines()])
        except NameError:  # of what this program lacks: which error comes first is not what is to be found
            continue
        except Exception:
            return text
    return None


def results(generator):
    """Return what a program returns: its last value and some others, alone, in a tuple or a dictionary."""
    r = generator.r
    names = [n for n in generator.names if not callable(generator.values[n])]
    kept = {names[-1], *(names[int(k)] for k in r.integers(0, len(names), r.integers(0, 3)))}
    if r.random() < 0.7:  # what nothing else reads
        text = "\n".join(generator.lines)
        kept |= {n for n in names if len(re.findall(rf"\b{n}\b", text)) == 1}
    if generator.kind == "imperative":  # everything that may have been written
        kept |= set(names[: len(generator.arguments)]) | set(names[-4:])
    kept = [n for n in names if n in kept]
    if len(kept) == 1:
        return kept[0]
    if r.random() < 0.2:
        return "{" + ", ".join(f"{n!r}: {n}" for n in kept) + "}"
    return ", ".join(kept)
