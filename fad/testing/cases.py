"""From an operation's sample calls to functions that a clause can differentiate and batch."""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import Call, Sampler, call
from fad.core.tracing.tracer import Tracer
from fad.errors import GradientCheckError
from fad.testing.gradcheck import random_like
from fad.transforms.jvp import jvp
from fad.transforms.vjp import vjp

_NUMBERS = (bool, int, float, complex)


class Case:
    """One sample call of one operation, as a function of its operands.

    ``operands`` are the arrays that a tracer may stand for; ``diff`` numbers those of them that are differentiated:
    floating-point and complex ones. Everything else in the call is constant.

    One direction, one cotangent, and the first derivatives along them are computed once, for all clauses.
    """

    def __init__(self, operation: Any, number: int, sample: Call, batch: Sequence[Call] = ()):
        self.operation = operation
        self.number = number
        self.sample = sample
        self.function = operation if isinstance(operation, Primitive) else operation.function
        leaves, self.tree = tree.flatten((sample.args, sample.kwargs))
        self.leaves = leaves
        self.slots = _operand_slots(operation, sample)
        self.operands = [leaves[i] for i in self.slots]
        self.diff = [k for k, x in enumerate(self.operands) if x.dtype.kind in "fc"]
        self.batch = [operands for other in batch if (operands := _match_operands(other, self)) is not None][:2]
        self.rng = np.random.default_rng(number)

    def __str__(self) -> str:
        return f"sample {self.number} {self.sample!r}"

    def call(self, function: Callable, *operands: Any) -> Any:
        """Call a function as the sample says, with other operands."""
        leaves = list(self.leaves)
        for i, x in zip(self.slots, operands, strict=True):
            leaves[i] = x
        args, kwargs = tree.unflatten(self.tree, leaves)
        return function(*args, **kwargs)

    def whole(self, *operands: Any) -> tuple:
        """Return every array and number that the operation gives, flat."""
        return numbers(self.call(self.function, *operands))

    def smooth(self, *operands: Any) -> tuple:
        """Return the floating-point and complex results, flat."""
        return inexact(self.whole(*operands))

    def of(self, chosen: list[int], f: Callable | None = None) -> Callable:
        """Return the operation as a function of some of its operands, the others constant."""
        f = f or self.smooth

        def partial(*xs):
            operands = list(self.operands)
            for k, x in zip(chosen, xs, strict=True):
                operands[k] = x
            return f(*operands)

        return partial

    @property
    def points(self) -> tuple:
        return tuple(self.operands[k] for k in self.diff)

    @functools.cached_property
    def tangents(self) -> tuple:
        return tuple(random_like(x, self.rng) for x in self.points)

    @functools.cached_property
    def cotangents(self) -> tuple:
        return tuple(random_like(y, self.rng) for y in self.pushed[0])

    @functools.cached_property
    def pushed(self) -> tuple:
        """The values and what the tangents become."""
        return jvp(self.of(self.diff), self.points, self.tangents)

    @functools.cached_property
    def pulled(self) -> tuple:
        """The values and what the cotangents become."""
        ys, pullback = vjp(self.of(self.diff), *self.points)
        return ys, pullback(self.cotangents)

    def differentiable(self) -> bool:
        """Return whether there is anything to differentiate: inexact operands, and a result that depends on them."""
        return bool(self.diff) and not self.is_flat() and bool(self.smooth(*self.operands))

    def is_flat(self) -> bool:
        flat = self.operation.flat
        return flat is True or (flat == "real" and not any(self.operands[k].dtype.kind == "c" for k in self.diff))


def numbers(out: Any) -> tuple:
    """Return the leaves of a result that are arrays, tracers or numbers."""
    kinds = (np.ndarray, np.generic, Tracer, *_NUMBERS)
    return tuple(x for x in tree.leaves(out) if isinstance(x, kinds))


def inexact(leaves: tuple) -> tuple:
    return tuple(x for x in leaves if hasattr(x, "dtype") and x.dtype.kind in "fc")


def _operand_slots(operation: Any, sample: Call) -> list[int]:
    """Number the leaves of a call that a tracer may stand for.

    Parameters of a primitive are static; so is what its module lists in `constants`, by position or name.
    """
    constants = operation.constants
    slots, at = [], 0
    for key, value in [*enumerate(sample.args), *((k, sample.kwargs[k]) for k in sorted(sample.kwargs))]:
        leaves = tree.leaves(value)
        static = key in constants or (isinstance(operation, Primitive) and isinstance(key, str))
        for i, x in enumerate(leaves):
            array = type(x) is np.ndarray or isinstance(x, np.generic)
            if array and not static and x.dtype.kind in ("fc" if isinstance(key, str) else "fcbiu"):
                slots.append(at + i)
        at += len(leaves)
    return slots


def _match_operands(other: Call, case: Case) -> list | None:
    """Return the operands of the same call drawn from another seed, or None where the shapes came out different."""
    leaves = tree.leaves((other.args, other.kwargs))
    if len(leaves) != len(case.leaves):
        return None
    operands = [leaves[i] for i in case.slots]
    pairs = zip(operands, case.operands, strict=True)
    return operands if all(np.shape(x) == y.shape and np.result_type(x) == y.dtype for x, y in pairs) else None


def cases(operation: Any, dtype: Any = np.float64, batch: int = 3, seed: int = 0) -> list[Case]:
    """Return the sample calls of an operation, drawn in a dtype; each seed draws other numbers.

    Raises GradientCheckError if the operation has none.
    """
    first = zlib.crc32(operation.name.encode()) + 1_000_003 * seed
    drawn = [_clear_samples(operation, first + i, dtype) for i in range(batch)]
    if not drawn[0]:
        raise GradientCheckError(f"the operation {operation.name} has an empty list of samples")
    made = []
    for number, versions in enumerate(zip(*drawn, strict=True)):
        made.append(Case(operation, number, versions[0], list(versions)))
    return made


def _clear_samples(operation: Any, seed: int, dtype: Any) -> list[Call]:
    """Draw an operation's sample calls, and those that lie close to a kink again."""
    samples = samples_of(operation)
    drawn = samples(Sampler(seed, dtype))
    for more in range(1, 100):
        close = [k for k, sample in enumerate(drawn) if _close_to_a_kink(operation, sample)]
        if not close:
            return drawn
        others = samples(Sampler(seed + 104_729 * more, dtype))
        drawn = [others[k] if k in close else sample for k, sample in enumerate(drawn)]
    raise GradientCheckError(f"the samples {close} of the operation {operation.name} lie close to a kink on every draw")


def _close_to_a_kink(operation: Any, sample: Call) -> bool:
    kinks = operation.kinks
    return kinks is not None and any(np.any(np.abs(gap) < _GAP) for gap in kinks(*sample.args, **sample.kwargs))


_GAP = 0.02  # differences step 1e-3 to either side


def samples_of(operation: Any) -> Callable:
    """Return the function that draws an operation's samples; an elementwise one has them from its domain."""
    if operation.samples is not None:
        return operation.samples
    if operation.archetype == "elementwise":
        return lambda s: _elementwise_samples(operation, s)
    raise GradientCheckError(
        f"the operation {operation.name} has no samples: "
        "write samples=lambda s: [call(s.real(3, 4)), ...] beside its rule"
    )


def _elementwise_samples(operation: Any, s: Sampler) -> list[Call]:
    arity = len(operation.partials)
    domain = operation.domain
    domains = domain if isinstance(domain[0], tuple) else (domain,) * arity

    def draw(*shapes):
        if len(set(domains)) > 1:
            return call(*[s.real(*shape, low=a, high=b) for shape, (a, b) in zip(shapes, domains, strict=True)])
        # One draw for all operands keeps them apart from each other: maximum and its like have a kink at a tie.
        sizes = [int(np.prod(shape)) for shape in shapes]
        parts = np.split(s.real(sum(sizes), low=domains[0][0], high=domains[0][1]), np.cumsum(sizes)[:-1])
        return call(*[part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])

    drawn = [draw(*[(2, 3)] * arity), draw(*[()] * arity), draw(*[(0, 3)] * arity)]
    if arity > 1:
        drawn.append(draw(*[(2, 1), (3,), (2, 1, 1)][:arity]))
        drawn.append(draw((), *[(3,)] * (arity - 1)))
    for k in range(arity if arity > 1 else 0):
        args = list(draw(*[(3,)] * arity).args)
        low, high = domains[k]
        number = low + 0.37 * (high - low)
        drawn.append(call(*[number if i == k else _off(x, number) for i, x in enumerate(args)]))
        if low <= 1 and high >= 2:  # an array of integers beside one of floats: NumPy's promotion, and no derivative
            whole = s.ints(1, 3, (3,))
            drawn.append(call(*[whole if i == k else _off(x, whole) for i, x in enumerate(args)]))
    return drawn


def _off(x: Any, number: Any) -> Any:
    """Return numbers that are moved a little away from others where they are close: there may be a kink at a tie."""
    gap = x.real - number
    moved = np.where(np.abs(gap) < 0.05, np.copysign(0.05, gap) - gap, 0.0)
    return (x + moved).astype(x.dtype)


def is_defined(case: Case) -> bool:
    """Return whether NumPy computes this call at all; operations on complex operands are tried, not declared."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            case.call(reference(case), *case.operands)
        except Exception:  # NumPy's way of saying no differs from function to function
            return False
    return True


def reference(case: Case) -> Callable:
    """Return the plain NumPy callable that the operation answers for, or the operation's own forward function."""
    operation = case.operation
    if operation.numpy and not isinstance(operation, Primitive):
        first = operation.numpy[0]
        return getattr(first[0], first[1]) if isinstance(first, list) else first
    if operation.numpy:
        return operation.numpy[0]
    return operation.forward if isinstance(operation, Primitive) else operation.function
