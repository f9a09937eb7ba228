"""Programs drawn at random, of operations, views and changes in place: the same numbers and gradients as PyTorch."""

import random

import numpy as np
import pytest

import fad.eager as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class Program:
    """A list of statements over the leaves x and w, of shape (3,), and what they define."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.shapes = {"x": (3,), "w": (3,)}
        for _ in range(self.rng.randrange(3, 14)):
            getattr(self, self.rng.choice(KINDS))(*self.rng.choices(list(self.shapes), k=2))

    def define(self, text, shape):
        name = f"v{len(self.shapes)}"
        self.lines.append(f"{name} = {text}")
        self.shapes[name] = shape

    def pair(self, a, b):
        if self.shapes[a] == self.shapes[b]:
            self.define(f"{a} {self.rng.choice('+*-')} {b}", self.shapes[a])

    def alone(self, a, _):
        text = self.rng.choice(["torch.sin({} * 0.3)", "torch.exp({} * 0.3)", "{} ** 2 * 0.1", "{} * 0.5 + 1"])
        self.define(text.format(a), self.shapes[a])

    def copy(self, a, _):
        self.define(f"{a}.{self.rng.choice(['clone', 'detach'])}()", self.shapes[a])

    def total(self, a, _):
        self.define(f"{a}.sum()", ())

    def view(self, a, _):
        shape = self.shapes[a]
        if len(shape) == 2:
            self.define(f"{a}.t()", shape[::-1])
        elif shape == (3,):
            i = self.rng.randrange(2)
            text, shape = self.rng.choice([(f"[{i}]", ()), (f"[{i}:{i + 2}]", (2,)), (".view(3, 1)", (3, 1))])
            self.define(a + text, shape)

    def change(self, a, b):
        text = self.rng.choice(["{}.mul_(0.7)", "{}.add_(0.3)", "{}.sin_()", "{}.add_({b})", "{}.mul_({b})"])
        if "{b}" not in text or self.shapes[b] in ((), self.shapes[a]):
            self.lines.append(text.format(a, b=b))

    def assign(self, a, b):
        if len(self.shapes[a]) == 1:
            places = {(): f"{a}[1] = {b}", (2,): f"{a}[0:2] = {b}"}
            self.lines.append(places.get(self.shapes[b], f"{a}[0:2] *= 0.9"))

    def run(self, t):
        """Return the values and gradients, or the number of the line that was refused, or None if backward was."""
        x, w = ([0.5, -1.0, 0.8], [1.1, 0.2, -0.4])
        names = {"torch": t}
        names |= {n: t.tensor(v, dtype=t.float64, requires_grad=True) for n, v in (("x", x), ("w", w))}
        for i, line in enumerate(self.lines):
            try:
                exec(line, names)
            except RuntimeError:
                return i
        values = [names[n] for n in self.shapes if n in names]
        try:
            sum(v.sum() for v in values).backward()
        except RuntimeError:
            return None
        grads = [names[n].grad.numpy() for n in "xw"]
        return [np.asarray(v.detach()) for v in values] + grads


KINDS = ["pair", "pair", "alone", "copy", "total", "view", "view", "change", "change", "assign"]


@pytest.mark.parametrize("block", range(10))
def test_random_programs_give_the_numbers_of_pytorch(block):
    ran = 0
    for seed in range(30 * block, 30 * block + 30):
        program = Program(seed)
        theirs = program.run(pytorch)
        while isinstance(theirs, int):  # a leaf was to be changed: PyTorch refuses that line, and so do we
            if not any("detach" in line for line in program.lines):  # PyTorch also minds overlapping operands
                assert program.run(torch) == theirs, program.lines
            del program.lines[theirs]
            try:
                theirs = program.run(pytorch)
            except NameError:  # the line had defined something
                theirs = None
        if theirs is None:
            continue
        ours = program.run(torch)
        if isinstance(ours, int):  # memory shared by detach() is not changed under recording
            assert any("detach" in line for line in program.lines)
            continue
        assert ours is not None, program.lines
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg="\n".join(program.lines))
        ran += 1
    assert ran > 15
