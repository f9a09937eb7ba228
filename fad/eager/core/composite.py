"""`composite`: one node of the graph for a function of several operations; its derivative is `fad.vjp` of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import cast
from fad.core.primitives.cotangent import densify
from fad.core.tracing.spec import spec_of
from fad.core.tracing.tracer import Tracer, tracer
from fad.eager.core.engine import EagerTrace, Pullback, _outside, call_record, lift, output
from fad.eager.core.mode import is_recording
from fad.eager.tensor import Tensor, wrap
from fad.transforms.custom_rules import RULES
from fad.transforms.vjp import vjp


def composite(name: str, fun: Callable, *operands: Any, linear: bool = False) -> Any:
    """Run a function of arrays on tensors as one node, named as PyTorch names it.

    The derivative of a `linear` function reads no values, so the operands may be changed in place afterwards.
    """
    values = [x.value if isinstance(x, Tensor) else x for x in operands]
    nodes = [x.node if isinstance(x, Tensor) else None for x in operands]
    tracked = [i for i, n in enumerate(nodes) if n is not None]
    if not tracked or not is_recording():
        return wrap(_own(fun(*values), values))
    if any(type(v) is Tracer for v in values) and not _outside(values, nodes):
        return wrap(fun(*map(lift, values, nodes)))

    def of_tracked(*some):
        full = list(values)
        for i, x in zip(tracked, some, strict=True):
            full[i] = x
        return fun(*full)

    y, pull = vjp(of_tracked, *[values[i] for i in tracked])
    y = _own(y, values)
    several = type(y) is tuple

    def plain(g, rec):
        return _spread(pull(_fill(g, y)), tracked, len(values))

    def pull_traced(g, rec, lifted):
        _, again = vjp(of_tracked, *[lifted(values[i], nodes[i]) for i in tracked])
        return _spread(again(_fill(g, y)), tracked, len(values))

    saved = () if linear else tuple(values)
    rec = call_record(name, nodes, Pullback(plain, pull_traced, saved, len(y) if several else 1), several)
    if not several:
        return Tensor(y, rec)
    return tuple(Tensor(v, output(rec, i)) for i, v in enumerate(y))


def of_tensors(name: str, fun: Callable, args: Any, kwargs: Any, linear: bool = False) -> Any:
    """Run a function of arrays as one node, of which the operands are the tensors anywhere among its arguments."""
    given = [*args, *kwargs.values()]
    places = [i for i, x in enumerate(given) if isinstance(x, Tensor)]

    def of_values(*values):
        full = list(given)
        for i, v in zip(places, values, strict=True):
            full[i] = v
        y = fun(*full[: len(args)], **dict(zip(kwargs, full[len(args) :], strict=True)))
        return tuple(y) if isinstance(y, (tuple, list)) else y

    return composite(name, of_values, *[given[i] for i in places], linear=linear)


def step(name: str, y: Tensor, *operands: Any) -> Tensor:
    """Return a result, computed before, as a node whose derivative is zero everywhere: that of a step function."""
    nodes = [x.node if isinstance(x, Tensor) else None for x in operands]
    if y.dtype.kind not in "fc" or not is_recording() or not any(n is not None for n in nodes):
        return y
    likes = [None if n is None else spec_of(x.value) for x, n in zip(operands, nodes, strict=True)]

    def zeros(*_):
        return [None if s is None else np.zeros(s.shape, s.dtype) for s in likes]

    return Tensor(y.value, call_record(name, nodes, Pullback(zeros, zeros), False))


def _own(y: Any, operands: list) -> Any:
    """Return results that are views, or operands themselves, as copies.

    A change in place of the one would be missing from the history of the other.
    """
    if type(y) is tuple:
        return tuple(_own(v, operands) for v in y)
    return y.copy() if type(y) is np.ndarray and (y.base is not None or any(y is x for x in operands)) else y


def _fill(g: Any, y: Any) -> Any:
    if type(y) is not tuple:
        return cast(densify(g), y.dtype)
    return tuple(np.zeros_like(v) if c is None else c for c, v in zip(g, y, strict=True))


def _spread(found: tuple, tracked: list, n: int) -> list:
    out: list = [None] * n
    for i, c in zip(tracked, found, strict=True):
        out[i] = c
    return out


def _with_custom_rule(trace: EagerTrace, call: Any, xs: tuple) -> list:
    """Run a function that has a rule of its own (`fad.custom_vjp`) as one node."""
    operands = [Tensor(x.wrapped, x.info) if type(x) is Tracer and x.owner is trace else x for x in xs]
    ys = composite(f"{call.name}Backward", lambda *values: tuple(call(*values)), *operands)
    return [tracer(y.value, trace, y.node) if y.node is not None else y.value for y in ys]


RULES[EagerTrace] = _with_custom_rule
