"""A program prepared for the checks: its plain run, and its derivative as functions of the arguments that have one."""

from functools import cached_property

import numpy as np

import fad
from fad import tree

from . import differences
from .arguments import with_dtype
from .compare import Skipped, observe, plain, same_error, snapshot
from .program import evaluate


def weights(leaf, k):
    """Return what the k-th output is multiplied by in the loss: different numbers everywhere."""
    n = np.size(leaf)
    return np.cos(np.arange(1.0, n + 1) * (k + 1)).reshape(np.shape(leaf))


def other_weights(w):
    """Return what the imaginary part is multiplied by."""
    return w[..., ::-1] if w.ndim else 0.7


def floating(x):
    """Return whether a leaf has a derivative."""
    return isinstance(x, (float, complex)) or getattr(getattr(x, "dtype", None), "kind", "?") in "fc"


def weighted_sum(outputs):
    """Return one real number that depends on all outputs."""
    total = 0.0
    for k, leaf in enumerate(tree.leaves(outputs)):
        if not floating(leaf):
            continue
        w = weights(leaf, k)
        if np.iscomplexobj(leaf):
            total = total + np.sum(np.real(leaf) * w) + np.sum(np.imag(leaf) * other_weights(w))
        else:
            total = total + np.sum(leaf * w)
    return total


class Case:
    """What the checks of one program share."""

    def __init__(self, program, seed=0):
        self.program, self.r = program, np.random.default_rng(seed)
        self.values = evaluate(program.arguments)
        self.diff = [k for k, x in enumerate(self.values) if floating(x)]

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

    def loss(self, f):
        """Return the loss and the outputs of f as a function of its arguments."""

        def run(*arguments):
            outputs = f(*arguments)
            return weighted_sum(outputs), outputs

        return run

    def gradient_of(self, f):
        """Return the function that gives ((loss, outputs), gradients)."""
        return fad.value_and_grad(self.loss(f), argnums=tuple(self.diff), has_aux=True)

    @cached_property
    def reverse(self):
        """The run of the gradient; its outputs are ((loss, outputs), gradients)."""
        with self.program.world() as world:
            return observe(self.gradient_of(world.f), world, self.arguments())

    @cached_property
    def tangents(self):
        """A direction for each argument that has a derivative."""
        return tuple(self._like(self.values[k]) for k in self.diff)

    def _like(self, x):
        t = np.round(self.r.normal(size=np.shape(x)), 2)
        if np.iscomplexobj(x):
            t = t + 1j * np.round(self.r.normal(size=np.shape(x)), 2)
        kind = np.asarray(x).dtype.newbyteorder("=")
        return np.asarray(t, kind) if isinstance(x, np.ndarray) else kind.type(t)

    @cached_property
    def forward(self):
        """The run of the push-forward; its outputs are (outputs, their tangents)."""
        with self.program.world() as world:

            def push(*arguments):
                def f(*some):
                    full = list(arguments)
                    for k, x in zip(self.diff, some, strict=True):
                        full[k] = x
                    return world.f(*full)

                return fad.jvp(f, tuple(arguments[k] for k in self.diff), self.tangents)

            return observe(push, world, self.arguments())

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
        with self.program.world() as world:
            value, _ = self.loss(world.f)(*self.along(h))
            return value

    @cached_property
    def slope_plain(self):
        """The derivative of the loss along the tangents by differences, and the bound of its error."""
        try:
            found = differences.derivative(self.plain_loss)
        except Exception as error:
            raise Skipped(f"moved arguments raise {error!r}") from None
        if found is None:
            raise Skipped("differences say nothing here")
        return found

    @cached_property
    def slope_complex(self):
        """The derivative of the loss by a complex step."""
        kinds = [np.iscomplexobj(y) for y in tree.leaves(self.plain.outputs)]
        if any(kinds) or any(np.iscomplexobj(self.values[k]) for k in self.diff):
            raise Skipped("complex numbers")

        def phi(h):
            with self.program.world() as world:
                outputs = world.f(*self.along(h))
                pairs = zip(tree.leaves(self.plain.outputs), tree.leaves(outputs), strict=True)
                return sum(np.sum(y * weights(x, k)) for k, (x, y) in enumerate(pairs) if floating(x))

        try:
            return differences.complex_step(phi)
        except Exception as error:
            raise Skipped(f"complex arguments raise {error!r}") from None
