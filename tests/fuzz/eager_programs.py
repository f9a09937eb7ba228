"""Random programs in PyTorch's language, as lists of statements, for the eager API and PyTorch to run side by side.

A program is text, so that a finding can be read, shrunk and kept as a test. The generator runs each statement with the
eager API as it goes, to know the shapes that it can work with; whatever raises ends the program.
"""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import numpy as np

SHAPES = [(), (), (1,), (3,), (3,), (2, 3), (2, 3), (3, 2), (2, 2), (1, 3), (2, 1), (2, 3, 2)]
SMOOTH = ["sin", "cos", "tanh", "sigmoid", "exp", "square", "neg", "atan"]
ROUGH = ["abs", "relu", "floor", "round", "sign", "ceil", "trunc"]
IN_PLACE = ["sin_", "tanh_", "neg_", "square_", "sigmoid_", "abs_", "cos_", "relu_", "floor_"]
ARITHMETIC = ["+", "-", "*"]
REDUCTIONS = ["sum", "mean", "amax", "logsumexp", "prod", "var"]


class Generator:
    """Makes one program; `names` are the tensors that its statements have made so far."""

    def __init__(self, seed: int, torch: Any):
        self.rng = random.Random(seed)
        self.torch = torch
        self.names: list[str] = []
        self.env: dict[str, Any] = {"torch": torch}
        self.program: list[str] = []
        self.count = 0
        self.failed = False
        self.views: set[str] = set()
        self.given: set[str] = set()  # gradients, whose elements may share memory in PyTorch

    def run(self, length: int) -> list[str]:
        """Return a program of about so many statements."""
        for _ in range(self.rng.randint(1, 3)):
            self.create()
        kinds = [
            (self.create, 2), (self.view, 7), (self.elementwise, 7), (self.binary, 6), (self.reduce, 3), (self.join, 1),
            (self.in_place, 6), (self.assign, 3), (self.reshape_in_place, 1), (self.detach, 2), (self.switch, 1),
            (self.without_grad, 2), (self.watch, 3), (self.backward, 4), (self.gradient, 2), (self.transform, 3),
            (self.forget, 1),
        ]  # fmt: skip
        makers = [maker for maker, weight in kinds for _ in range(weight)]
        while len(self.program) < length and not self.failed:
            self.rng.choice(makers)()
        if not self.failed:
            self.backward()
        return self.program

    # --- helpers ----------------------------------------------------------------------------------------------------

    def add(self, statement: str, new: str | None = None) -> None:
        """Append a statement and run it; an error ends the program."""
        self.program.append(statement)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(statement, self.env)
        except Exception:
            self.failed = True
            return
        if new is not None and new not in self.names:
            self.names.append(new)

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def pick(self, *, tracked: bool | None = None, floating: bool = True, least: int = 0) -> str | None:
        """Return the name of a tensor, of those made lately more often."""
        found = [
            n for n in self.names
            if (tracked is None or self.env[n].requires_grad is tracked)
            and (not floating or self.env[n].is_floating_point()) and self.env[n].ndim >= least and self.env[n].numel()
        ]  # fmt: skip
        return None if not found else self.rng.choice(found[-5:] if self.rng.random() < 0.7 else found)

    def shape(self, name: str) -> tuple:
        return tuple(self.env[name].shape)

    def numbers(self, shape: tuple) -> str:
        if not shape:
            return repr(round(self.rng.uniform(-2, 2), 4))  # sums seldom lie where a step function jumps
        return "[" + ", ".join(self.numbers(shape[1:]) for _ in range(shape[0])) + "]"

    def axis(self, n: int) -> int:
        return self.rng.randrange(-n, n) if n else self.rng.choice([0, -1])

    def constant(self, shape: tuple) -> str:
        return f"torch.tensor({self.numbers(shape)}, dtype=torch.float64)"

    # --- statements ---------------------------------------------------------------------------------------------------

    def create(self) -> None:
        new, shape = self.fresh(), self.rng.choice(SHAPES)
        if self.rng.random() < 0.1:
            return self.add(f"{new} = torch.arange({self.rng.randint(1, 4)})", new)
        dtype = "float32" if self.rng.random() < 0.2 else "float64"
        tracked = ", requires_grad=True" if self.rng.random() < 0.6 else ""
        self.add(f"{new} = torch.tensor({self.numbers(shape)}, dtype=torch.{dtype}{tracked})", new)

    def view_of(self, x: str, shape: tuple) -> str:
        """Return an expression that is a view, or looks like one."""
        n, rng = len(shape), self.rng
        wide = [i for i, d in enumerate(shape) if d > 1]
        options = [
            f"{x}.reshape(-1)", f"{x}.flatten()", f"{x}.unsqueeze({rng.randint(-n - 1, n)})", f"{x}.squeeze()",
            f"{x}[...]", f"{x}[None]", f"{x}.view_as({x})", f"{x}.expand_as({x})", f"torch.atleast_1d({x})",
            f"torch.atleast_2d({x})", f"torch.atleast_3d({x})", f"{x}.expand({(2, *shape)})", f"{x}.contiguous()",
            f"{x}.expand({(1, *shape)})", f"torch.broadcast_to({x}, {(2, *shape)})", f"{x}.reshape({shape})",
            f"{x}.permute({tuple(rng.sample(range(n), n))})",
        ]  # fmt: skip
        if n <= 2:
            options.append(f"{x}.t()")
        if n:
            a, b, i = self.axis(n), self.axis(n), rng.randrange(n)
            d = shape[i]
            start = rng.randrange(d)
            rows = ", ".join(":" for _ in range(i))
            lead = f"{rows}, " if i else ""
            options += [
                f"{x}.transpose({a}, {b})", f"{x}.movedim({a}, {b})", f"{x}.swapaxes({a}, {b})",
                f"{x}.narrow({i}, {start}, {rng.randint(1, d - start)})", f"{x}.select({i}, {start})",
                f"{x}[{rng.randrange(shape[0])}]", f"{x}[{lead}{start}:]", f"{x}[{lead}::2]",
                f"{x}.unfold({i}, {rng.randint(1, d)}, {rng.randint(1, 2)})", f"{x}.unflatten({i}, ({d}, 1))",
                f"{x}.squeeze({a})", f"{x}.view(-1)", f"{x}[{start}:{start + 1}]" if i == 0 else f"{x}[..., {0}]",
            ]  # fmt: skip
        if n >= 2:
            options += [f"{x}.diagonal()", f"{x}.diagonal({rng.randint(-1, 1)}, -2, -1)", f"{x}.mT"]
            options += [f"{x}.flatten(0, 1)", rng.choice([f"{x}.T", f"{x}.H"]) if n == 2 else f"{x}.mT"]
        if wide and math.prod(shape) == 6:
            options += [f"{x}.reshape(3, 2)", f"{x}.view(2, 3)"]
        if n == 1:
            options.append(f"torch.meshgrid({x}, {x}, indexing='{rng.choice(['ij', 'xy'])}')[{rng.randint(0, 1)}]")
        return rng.choice(options)

    def view(self) -> None:
        if (x := self.pick(floating=self.rng.random() < 0.9)) is not None and math.prod(self.shape(x)) <= 64:
            new = self.fresh()
            self.views.add(new)
            if x in self.given:
                self.given.add(new)
            self.add(f"{new} = {self.view_of(x, self.shape(x))}", new)

    def unary_of(self, x: str) -> str:
        rng = self.rng
        return rng.choice([
            f"{x}.{rng.choice(SMOOTH)}()", f"{x}.{rng.choice(SMOOTH)}()", f"torch.{rng.choice(SMOOTH)}({x})",
            f"{x}.{rng.choice(ROUGH)}()", f"{rng.choice([2, 0.5, -1.5])} * {x}", f"{x} + 1", f"{x} * 1", f"{x}.clone()",
            f"1 - {x}", f"{x} / 2", f"{x} ** {rng.choice([2, 3])}",
            f"{x}.clamp({rng.choice(['-1', '-1, 1', 'max=1'])})",
            f"torch.where({x} > 0, {x}, {rng.choice(['0.5', '2 * ' + x])})", f"{x}.masked_fill({x} > 0, 0.5)",
            f"{x}.flip(0)" if x in self.env and self.env[x].ndim else f"+{x}", f"{x}.softmax(-1)", f"{x}.cumsum(0)",
            f"{x}.double()", f"{x}.float()", f"{x}.clone()",
        ])  # fmt: skip

    def elementwise(self) -> None:
        if (x := self.pick()) is not None:
            new = self.fresh()
            self.add(f"{new} = {self.unary_of(x)}", new)

    def partner(self, x: str) -> str | None:
        """Return another tensor that broadcasts with one."""
        shape = self.shape(x)
        found = []
        for n in self.names:
            other = self.shape(n)
            if all(a == b or 1 in (a, b) for a, b in zip(shape[::-1], other[::-1], strict=False)):
                found.append(n)
        return self.rng.choice(found) if found else None

    def binary_of(self, x: str, y: str) -> str:
        rng = self.rng
        if rng.random() < 0.7 or not all(self.env[n].is_floating_point() for n in (x, y)):
            return f"{x} {rng.choice([*ARITHMETIC, '/'])} {y}"
        return rng.choice([
            f"torch.maximum({x}, {y})", f"torch.minimum({x}, {y})", f"{x} / (2 + {y} * {y})",
            f"torch.lerp({x}, {y}, 0.3)",
            f"torch.where({x} > {y}, {x}, {y})", f"torch.hypot(1 + {x} ** 2, {y})", f"torch.add({x}, {y}, alpha=2)",
            f"torch.addcmul({x}, {y}, {y}, value=0.5)", f"torch.atan2({x}, 3 + {y} ** 2)",
        ])  # fmt: skip

    def binary(self) -> None:
        x = self.pick(floating=self.rng.random() < 0.95)
        if x is not None and (y := self.partner(x)) is not None:
            new = self.fresh()
            mixed = self.env[x].dtype != self.env[y].dtype
            expression = f"{x} {self.rng.choice(ARITHMETIC)} {y}" if mixed else self.binary_of(x, y)
            self.add(f"{new} = {expression}", new)

    def reduction_of(self, x: str, n: int) -> str:
        rng = self.rng
        name = rng.choice(REDUCTIONS)
        if name in ("sum", "mean", "prod") and rng.random() < 0.4:
            return f"{x}.{name}()"
        if name == "var" and (not n or (n and 1 in self.shape(x)) if x in self.env else True):
            name = "sum"
        keep = ", keepdim=True" if rng.random() < 0.3 else ""
        return f"{x}.{name}({self.axis(n)}{keep})"

    def reduce(self) -> None:
        if (x := self.pick()) is not None:
            new = self.fresh()
            self.add(f"{new} = {self.reduction_of(x, len(self.shape(x)))}", new)

    def join(self) -> None:
        if (x := self.pick(least=1)) is not None:
            new = self.fresh()
            how = self.rng.choice(["cat", "stack"])
            self.add(f"{new} = torch.{how}([{x}, {x} * 2], {self.rng.randrange(len(self.shape(x)))})", new)

    def overlap(self, x: str, y: str) -> bool:
        """Return whether two tensors may show the same memory: PyTorch does not say what a change does then."""
        return np.may_share_memory(*(self.env[n].detach().numpy() for n in (x, y)))

    def change_of(self, x: str) -> str:
        rng, shape = self.rng, self.shape(x)
        options = [
            f"{x}.{rng.choice(IN_PLACE)}()", f"{x}.mul_(2)", f"{x}.add_(1)", f"{x} *= 0.5", f"{x}.zero_()",
            f"{x}.fill_(0.5)",
            f"{x}.clamp_(-1, 1)", f"{x}.masked_fill_({x} > 0, 0.25)", f"{x}.copy_({self.constant(shape)})",
        ]  # fmt: skip
        y = self.pick()
        if y is not None:
            other = self.shape(y)
            fits = not self.overlap(x, y) and len(other) <= len(shape) and all(
                a == b or b == 1 for a, b in zip(shape[::-1], other[::-1], strict=False)
            )
            if fits:
                options += [f"{x}.mul_({y})", f"{x}.add_({y})", f"{x} -= {y}", f"{x}.copy_({y})"] * 2
        return rng.choice(options)

    def in_place(self) -> None:
        x = self.pick(tracked=True if self.rng.random() < 0.5 else None)
        if x is not None and x not in self.given:
            if self.env[x].is_leaf and self.env[x].requires_grad and self.rng.random() < 0.8:
                return
            self.add(self.change_of(x))

    def assign(self) -> None:
        x = self.pick(least=1)
        if x is None or (self.env[x].is_leaf and self.env[x].requires_grad) or x in self.given:
            return
        shape, rng = self.shape(x), self.rng
        index = rng.choice([str(rng.randrange(shape[0])), f"{rng.randrange(shape[0])}:", "::2", "..., 0", f"{x} > 0"])
        value = rng.choice(["0.5", "torch.tensor(2.0, dtype=torch.float64)", self.pick() or "1.0"])
        if value in self.env and self.shape(value):
            value = f"{value}.sum()"
        self.add(f"{x}[{index}] {rng.choice(['=', '=', '*=', '+='])} {value}")

    def reshape_in_place(self) -> None:
        x = self.pick()
        if x is None or (self.env[x].is_leaf and self.env[x].requires_grad) or self.env[x].retains_grad:
            return
        n = len(self.shape(x))
        options = [f"{x}.unsqueeze_(0)", f"{x}.squeeze_()"]
        self.views.add(x)
        options += ([f"{x}.t_()"] if n <= 2 else []) + ([f"{x}.transpose_(0, -1)"] if n else [])
        self.add(self.rng.choice(options))

    def detach(self) -> None:
        if (x := self.pick()) is not None:
            new = self.fresh()
            how = self.rng.choice(["detach()", "detach()", "detach().clone()", "clone()", "detach().requires_grad_()"])
            self.add(f"{new} = {x}.{how}", new)

    def switch(self) -> None:
        # Not on a tensor that has views, of which PyTorch then says that they require grad too, nor on a view.
        used = " ".join(self.program[:-1])
        if (x := self.pick()) is not None and self.env[x].is_leaf and x not in used and x not in self.views:
            self.add(f"{x}.requires_grad_({self.rng.choice(['True', 'True', 'False'])})")

    def without_grad(self) -> None:
        if (x := self.pick()) is None or x in self.given:
            return
        mode = self.rng.choice(["torch.no_grad()", "torch.no_grad()", "torch.set_grad_enabled(False)"])
        if self.rng.random() < 0.5:
            return self.add(f"with {mode}: {self.change_of(x)}")
        new = self.fresh()
        inner = self.rng.choice([self.unary_of(x), f"{x} * 2"])
        again = "with torch.enable_grad(): " if self.rng.random() < 0.2 else ""
        self.add(f"with {mode}:\n    {again}{new} = {inner}", new)

    def watch(self) -> None:
        # Not on views: once the memory was changed, PyTorch 2.13 crashes there.
        if (x := self.pick(tracked=True)) is not None and x not in self.views:
            hook = self.rng.choice(["2 * g", "g * g", "None", "g + 1", "g.clone()"])
            self.add(self.rng.choice([f"{x}.retain_grad()", f"{x}.register_hook(lambda g: {hook})"]))

    def options(self) -> str:
        return self.rng.choice(["retain_graph=True", "retain_graph=True", "", "create_graph=True"])

    def backward(self) -> None:
        if (x := self.pick(tracked=True)) is not None:
            loss = x if not self.shape(x) else f"({x} * {x}).sum()" if self.rng.random() < 0.5 else f"{x}.sum()"
            self.add(f"{loss}.backward({self.options()})")

    def gradient(self) -> None:
        # Not of a view by a view: for PyTorch all views are taken from the tensor at the top.
        x, y = self.pick(tracked=True), self.pick(tracked=True)
        if x is not None and y is not None and y not in self.views:
            new = self.fresh()
            self.given.add(new)
            options = ", ".join(o for o in ("allow_unused=True, materialize_grads=True", "retain_graph=True") if o)
            self.add(f"({new},) = torch.autograd.grad({x}.sum(), {y}, {options})", new)

    def forget(self) -> None:
        if (x := self.pick(tracked=True)) is not None and self.env[x].is_leaf:
            self.add(f"{x}.grad = None")

    # --- transforms ---------------------------------------------------------------------------------------------------

    def body(self, depth: int = 0) -> str:
        """Return an expression of x, of the same shape; it may cut derivatives, or take inner ones."""
        rng, x = self.rng, "x"
        steps = []
        for _ in range(rng.randint(1, 3)):
            steps.append(rng.choice([
                f"({x}).{rng.choice(SMOOTH)}()", f"({x}) * ({x})", f"({x}) * x.detach()", f"({x}) * quiet(x)",
                f"({x}) + quiet({x}).sin()", f"({x}) * loud(x)", f"({x}) * x.sum()", f"({x}) * torch.tensor(x)",
                f"torch.where(x > 0, {x}, 2 * x)", f"({x}) * float(x.sum().detach())", f"({x}).flip(0)",
                f"torch.cumsum({x}, 0)", f"({x}) * 2",
                f"({x}) * torch.func.vmap(lambda y: y * y.detach())(x)" if not depth else f"({x}).cos()",
                f"({x}) * torch.func.grad(lambda x: ({self.body(1)}).sum())(x)" if not depth else f"({x}).tanh()",
                f"({x}) * torch.func.jvp(lambda x: {self.body(1)}, (x,), (x * x,))[1]" if not depth else f"({x}) - 1",
                f"({x}) * torch.autograd.grad((x ** 3).sum(), x, create_graph=True)[0]" if not depth else f"({x}) * 3",
            ]))  # fmt: skip
            x = steps[-1]
        return x

    def transform(self) -> None:
        vectors = [n for n in self.names if len(self.shape(n)) == 1 and str(self.env[n].dtype).endswith("float64")]
        if not vectors:
            return
        v, new, rng = self.rng.choice(vectors), self.fresh(), self.rng
        body = self.body()
        closed = [n for n in vectors if self.shape(n) == self.shape(v)]
        if rng.random() < 0.3 and "autograd" not in body:
            body = f"({body}) * {rng.choice(closed)}"
        if "quiet" in body and "quiet" not in self.env:
            self.add("def quiet(x):\n    with torch.no_grad(): return 2 * x")
        if "loud" in body and "loud" not in self.env:
            self.add("def loud(x):\n    with torch.no_grad(), torch.enable_grad(): return 2 * x")
        f, s = f"lambda x: {body}", f"lambda x: ({body}).sum()"
        ones = f"torch.ones_like({v}.detach())"
        options = [
            f"torch.func.grad({s})({v})", f"torch.func.vjp({f}, {v})[1]({ones})[0]", f"torch.func.jacrev({f})({v})",
            f"torch.autograd.functional.vjp({f}, {v}, {ones})[1]",
            f"torch.autograd.functional.jvp({f}, {v}, {ones})[1]",
            # Detached: of a second derivative that is constant PyTorch says that it requires grad.
            f"torch.func.grad(lambda x: torch.func.grad({s})(x).sum())({v}.detach())",
        ]  # fmt: skip
        if "autograd" not in body:
            options += [
                f"torch.func.jvp({f}, ({v}.detach(),), ({ones},))[1]", f"torch.func.jacfwd({f})({v}.detach())",
                f"torch.func.hessian({s})({v}.detach())",
            ]  # fmt: skip
            if "float(" not in body and "torch.tensor" not in body and "vmap" not in body:
                options += [f"torch.func.vmap(lambda x: {body})(torch.stack([{v}.detach(), 2 * {v}.detach()]))"]
        self.given.add(new)
        self.add(f"{new} = {rng.choice(options)}", new)


def program(seed: int, torch: Any, length: int = 14) -> list[str]:
    """Return the program of a seed, for the eager API given as `torch`."""
    return Generator(seed, torch).run(length)
