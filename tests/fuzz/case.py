"""A program prepared for the checks: its plain run, and its derivative as functions of the arguments that have one."""

from functools import cached_property

import numpy as np

import fad
from fad import tree

from . import differences
from .arguments import with_dtype, with_noise
from .compare import Skipped, observe, plain, same_error, snapshot
from .losses import floating, loss_of_some, of_some, other_weights, weighted_sum, weights, with_outputs
from .program import evaluate

_NOT_ANALYTIC = ("abs", "conj", "real", "imag", "angle", "norm", "vdot", "vecdot", "vecmat")


class Case:
    """What the checks of one program share: runs that several of them look at are made once.

    ``search`` is whether it is one of very many, and may be compiled in a hurry.
    """

    def __init__(self, program, seed=0, search=False):
        self.seed, self.search = seed, search
        self.values = evaluate(program.arguments)
        self.begin(program, "")
        self.diff = [k for k, x in enumerate(self.values) if floating(x)]

    def begin(self, program, check):
        """Let a check begin, with code that fad has not seen, and with draws that depend on no other check."""
        self.program, self.r = program.renewed(), np.random.default_rng([self.seed, *check.encode()])

    @cached_property
    def plain(self):
        """The plain run."""
        return plain(self.program)

    @cached_property
    def before(self):
        return snapshot(tuple(self.values))

    @cached_property
    def wants_derivative(self):
        return bool(self.diff) and self.plain.error is None and any(map(floating, tree.leaves(self.plain.outputs)))

    def needs_derivative(self):
        if not self.diff:
            raise Skipped("no argument has a derivative")
        if self.plain.error is None and not any(map(floating, tree.leaves(self.plain.outputs))):
            raise Skipped("no output has a derivative")

    def arguments(self):
        """Return new arguments."""
        return evaluate(self.program.arguments)

    def gradient_of(self, f):
        """Return the function that gives ((loss, outputs), gradients)."""
        return fad.value_and_grad(with_outputs(f), argnums=tuple(self.diff), has_aux=True)

    @cached_property
    def reverse(self):
        """The run of the gradient; its outputs are ((loss, outputs), gradients)."""
        world = self.program.world()
        return observe(self.gradient_of(world.f), world, self.arguments())

    @cached_property
    def tangents(self):
        """A direction for each argument that has a derivative."""
        r = np.random.default_rng(self.seed)
        return tuple(self._like(r, self.values[k]) for k in self.diff)

    def _like(self, r, x):
        t = np.round(r.normal(size=np.shape(x)), 2)
        if np.iscomplexobj(x):
            t = t + 1j * np.round(r.normal(size=np.shape(x)), 2)
        kind = np.asarray(x).dtype.newbyteorder("=")
        return np.asarray(t, kind) if isinstance(x, np.ndarray) else kind.type(t)

    @cached_property
    def forward(self):
        """The run of the push-forward; its outputs are (outputs, their tangents)."""
        world = self.program.world()

        def push(*arguments):
            f = of_some(world.f, arguments, self.diff)
            return fad.jvp(f, tuple(arguments[k] for k in self.diff), self.tangents)

        return observe(push, world, self.arguments())

    def loss_of_some(self, f):
        """Return the loss of f as a function of the arguments that have a derivative, and these."""
        fixed = self.arguments()
        return loss_of_some(f, fixed, tuple(self.diff)), tuple(fixed[k] for k in self.diff)

    @cached_property
    def second(self):
        """The run of forward over reverse mode; its outputs are the derivatives of the gradients along the tangents."""
        world = self.program.world()
        loss, point = self.loss_of_some(world.f)
        gradient = fad.grad(loss, argnums=tuple(range(len(point))))
        return observe(lambda: fad.jvp(gradient, point, self.tangents)[1], world, ())

    @cached_property
    def stacked(self):
        """Two or three sets of arguments of the same shapes and dtypes, stacked."""
        texts, r = self.program.arguments, np.random.default_rng(self.seed)
        rows = [evaluate(texts), *(evaluate(with_noise(r, texts, 0.6)) for _ in range(r.integers(1, 3)))]
        return [np.stack([np.asarray(row[k]) for row in rows]) for k in range(len(rows[0]))]

    def batch(self):
        """Return new stacked arguments."""
        return [x.copy() for x in self.stacked]

    @cached_property
    def mapped_gradient(self):
        """A function that makes another run of a batch of gradients in the same world."""
        world = self.program.world()
        call = fad.vmap(self.gradient_of(world.f))
        return lambda: observe(call, world, self.batch())

    @cached_property
    def gradients(self):
        """The first run of a batch of gradients."""
        return self.mapped_gradient()

    @cached_property
    def slope_forward(self):
        """The derivative of the loss along the tangents, by forward mode."""
        self.succeeded(self.forward)
        outputs, tangents = self.forward.outputs
        slope = 0.0
        for k, (y, t) in enumerate(zip(tree.leaves(outputs), tree.leaves(tangents), strict=True)):
            if floating(y):
                w = weights(y, k)
                slope += float(np.sum(np.real(t) * w))
                slope += float(np.sum(np.imag(t) * other_weights(w))) if np.iscomplexobj(y) else 0.0
        return slope

    @cached_property
    def slope_reverse(self):
        """The derivative of the loss along the tangents, by reverse mode."""
        self.succeeded(self.reverse)
        _, gradients = self.reverse.outputs
        return sum(float(np.sum(np.real(g * t))) for g, t in zip(gradients, self.tangents, strict=True))

    def succeeded(self, run):
        """Raise what a run raised, or Skipped where a plain run raises too."""
        if same_error(self.plain, run):
            raise Skipped("a plain run raises")

    @cached_property
    def wide(self):
        """The arguments in double precision."""
        return evaluate(with_dtype(self.program.arguments, "wide"))

    def along(self, h, tangents=None):
        """Return double precision arguments moved along the tangents."""
        found = [np.copy(x) if isinstance(x, np.ndarray) else x for x in self.wide]
        for k, t in zip(self.diff, tangents or self.tangents, strict=True):
            t = np.asarray(t, complex if np.iscomplexobj(t) else float)
            found[k] = found[k] + h * (t if isinstance(found[k], np.ndarray) else t.item())
            if isinstance(self.values[k], np.ndarray):
                found[k] = np.asarray(found[k])
        return found

    def plain_loss(self, h):
        """Return the loss of a plain run with moved arguments."""
        return with_outputs(self.program.world().f)(*self.along(h))[0]

    @cached_property
    def slope_plain(self):
        """The derivative of the loss along the tangents by differences, and the bound of its error."""
        own = weighted_sum(self.plain.outputs)
        try:
            if not abs(self.plain_loss(0.0) - own) <= 1e-2 * max(1.0, abs(own)):
                raise Skipped("the program is another one in double precision: which arrays are copies depends on it")
            found = differences.derivative(self.plain_loss)
        except Skipped:
            raise
        except Exception as error:
            raise Skipped(f"moved arguments raise {error!r}") from None
        if found is None or not differences.holds_nearby(self.plain_loss, *found):
            raise Skipped("differences say nothing here")
        return found

    @cached_property
    def slope_complex(self):
        """The derivative of the loss by a complex step."""
        kinds = [np.iscomplexobj(y) for y in tree.leaves(self.plain.outputs)]
        if any(kinds) or any(np.iscomplexobj(self.values[k]) for k in self.diff):
            raise Skipped("complex numbers")
        if any(name in self.program.source for name in _NOT_ANALYTIC):
            raise Skipped("a part of the slope may be lost")

        def phi(h):
            outputs = self.program.world().f(*self.along(h))
            pairs = zip(tree.leaves(self.plain.outputs), tree.leaves(outputs), strict=True)
            return sum(np.sum(y * weights(x, k)) for k, (x, y) in enumerate(pairs) if floating(x))

        try:
            return differences.complex_step(phi)
        except Exception as error:
            raise Skipped(f"complex arguments raise {error!r}") from None
