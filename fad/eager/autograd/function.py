"""``Function``: an operation whose forward and backward are written by the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.eager.core.engine import Pullback, call_record, conjugate_gradient, lift, output
from fad.eager.core.mode import enable_grad, is_recording, unrecorded
from fad.eager.errors import BackwardError
from fad.eager.tensor import Tensor, lower, wrap
from fad.errors import CustomRuleError, ShapeMismatchError
from fad.transforms.custom import custom_vjp


class Context:
    """What ``forward`` hands to ``backward``: saved tensors, and any attribute set on it."""

    def __init__(self, needs: tuple):
        self.needs_input_grad = needs
        self._saved: tuple = ()
        self._constant: tuple = ()
        self._fill = True
        self._unpacked: tuple | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for the backward pass."""
        self._saved = tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say that some outputs have no derivative."""
        self._constant = tuple(map(id, outputs))

    def mark_dirty(self, *_: Tensor) -> None:
        raise CustomRuleError("a Function must not change its inputs in place: compute a new tensor and return it")

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether an output that received no gradient gives zeros to backward (the default), or None."""
        self._fill = value

    @property
    def saved_tensors(self) -> tuple:
        if self._unpacked is None:
            raise BackwardError("ctx.saved_tensors is there only while backward runs, and gone once the graph is freed")
        return self._unpacked


class Function:
    """An operation with a rule of its own: subclass it, write two static methods, call ``apply``.

    ``forward(ctx, *args)`` computes tensors (one, or a tuple), unrecorded; ``backward(ctx, *grads)`` gets a gradient
    per output and returns one per argument, None for those that have none. What backward does with tensors
    is recorded under ``create_graph``, so second derivatives need no more. ``setup_context(ctx, inputs, output)``
    may be written apart from ``forward(*args)``.

    >>> import fad.eager as torch
    >>> class Cube(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * g
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    setup_context: Any = None

    @staticmethod
    def forward(*args: Any) -> Any:
        raise NotImplementedError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Context, *grads: Tensor) -> Any:
        raise NotImplementedError("this Function has no static method backward(ctx, *grads)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run the operation, and record it if an argument requires grad."""
        nodes = [x.node if isinstance(x, Tensor) and is_recording() else None for x in args]
        needed = tuple(n is not None for n in nodes)
        if not any(needed) and any(isinstance(x, Tensor) and type(x.value) is Tracer for x in args):
            return cls._in_transform(args)
        ctx, out = cls._run(args, needed)
        if not any(needed):
            return out
        outs = out if type(out) is tuple else (out,)
        seen = outs
        if any(isinstance(x, Tensor) and type(x.value) is Tracer for x in args):  # a transform follows the rule too
            found = cls._in_transform(tuple(Tensor(x.value) if isinstance(x, Tensor) else x for x in args))
            seen = found if type(found) is tuple else (found,)
        ys = tuple(Tensor(y.value) if isinstance(y, Tensor) else y for y in seen)
        rec = cls._record(ctx, args, nodes, outs)
        for i, (y, before) in enumerate(zip(ys, outs, strict=True)):
            if isinstance(y, Tensor) and y.dtype.kind in "fc" and id(before) not in ctx._constant:
                y.node = output(rec, i)
        return ys if type(out) is tuple else ys[0]

    @classmethod
    def _run(cls, args: tuple, needed: tuple) -> tuple:
        ctx = Context(needed)
        with unrecorded():
            if cls.setup_context is None:
                return ctx, cls.forward(ctx, *args)
            out = cls.forward(*args)
            cls.setup_context(ctx, args, out)
        return ctx, out

    @classmethod
    def _in_transform(cls, args: tuple) -> Any:
        """Run inside `fad.grad` and related functions, on traced values: the rule becomes one of `fad.custom_vjp`."""
        places = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.dtype.kind in "fc"]
        needed = tuple(i in places for i in range(len(args)))
        last: list = []

        def forward(*values):
            full = list(args)
            for i, v in zip(places, values, strict=True):
                full[i] = Tensor(v)
            ctx, out = cls._run(tuple(full), needed)
            last[:] = [ctx, type(out) is tuple]
            saved = [None if t is None else t.value for t in ctx._saved]
            return tuple(y.value for y in (out if type(out) is tuple else (out,))), saved

        def backward(saved, cts):
            ctx = last[0]
            ctx._unpacked = tuple(None if v is None else Tensor(v) for v in saved)
            found = cls.backward(ctx, *(Tensor(conjugate_gradient(ct)) for ct in cts))
            likes = [(x.value.shape, x.value.dtype) if isinstance(x, Tensor) else None for x in args]
            checked = cls._check(found, likes, [True] * len(args), lambda t: t.value)
            return tuple(checked[i] for i in places)

        function = custom_vjp(lambda *values: forward(*values)[0])
        function.defvjp(forward, backward)
        ys = tuple(map(Tensor, function(*(args[i].value for i in places))))
        return ys if last[1] else ys[0]

    @classmethod
    def _record(cls, ctx: Context, args: tuple, nodes: list, outs: tuple) -> list:
        places = {id(y): i for i, y in enumerate(outs)}
        inputs = {id(x) for x in args}
        # An output that is saved is kept by its number: keeping the tensor would make a cycle with its own record.
        saved = [
            (None if t is None else t.value, None if t is None or id(t) not in inputs else t.node, places.get(id(t)))
            for t in ctx._saved
        ]
        ctx._saved = ()

        def pull(gs, rec, as_value, mode):
            ctx._unpacked = tuple(
                None if v is None else Tensor(v, (output(rec, place) if place is not None else node) if mode else None)
                for v, node, place in saved
            )
            grads = [_gradient(g, y, ctx._fill) for g, y in zip(gs, outs_like, strict=True)]
            try:
                with enable_grad() if mode else unrecorded():
                    found = cls.backward(ctx, *grads)
            finally:
                ctx._unpacked = None
            return cls._check(found, args_like, nodes, as_value)

        args_like = [(x.value.shape, x.value.dtype) if isinstance(x, Tensor) else None for x in args]
        outs_like = [
            np.broadcast_to(np.zeros((), y.dtype), y.shape) if isinstance(y, Tensor) and type(y.value) is not Tracer
            else y.value if isinstance(y, Tensor) else None
            for y in outs
        ]  # fmt: skip
        plain = lambda gs, rec: pull(gs, rec, lambda t: t.value, False)
        traced = lambda gs, rec, lifted: pull(gs, rec, lambda t: lifted(t.value, t.node), True)
        values = tuple(v for v, _, _ in saved if v is not None)
        return call_record(f"{cls.__name__}Backward", nodes, Pullback(plain, traced, values, len(outs)), True)

    @classmethod
    def _check(cls, found: Any, args: list, nodes: list, as_value: Any) -> list:
        found = found if type(found) is tuple else (found,)
        if len(found) != len(args):
            if len(found) > len(args) and all(g is None for g in found[len(args) :]):
                found = found[: len(args)]
            else:
                raise CustomRuleError(
                    f"{cls.__name__}.backward returned {len(found)} gradients for {len(args)} arguments of forward: "
                    "return one for each, None where there is none"
                )
        out = []
        for g, like, node in zip(found, args, nodes, strict=True):
            if g is None or node is None or like is None:
                out.append(None)
                continue
            if tuple(g.shape) != like[0]:
                raise ShapeMismatchError(
                    f"{cls.__name__}.backward returned a gradient of shape {tuple(g.shape)} "
                    f"for an argument of shape {like[0]}"
                )
            value = conjugate_gradient(as_value(g))
            out.append(value if value.dtype == like[1] else value.astype(like[1]))
        return out


def _gradient(g: Any, like: Any, fill: bool) -> Any:
    if g is None:
        return Tensor(np.zeros_like(like)) if fill and like is not None else None
    return wrap(conjugate_gradient(g)) if type(g) is Tracer else Tensor(conjugate_gradient(g))


def once_differentiable(backward: Any) -> Any:
    """Mark a backward that is not recorded under ``create_graph``."""

    def wrapper(ctx, *grads):
        with unrecorded():
            return backward(ctx, *(Tensor(lower(g)) if g is not None else None for g in grads))

    return wrapper


__all__ = ["Context", "Function", "lift", "once_differentiable"]
