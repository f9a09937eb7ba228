"""`composite`: one node of the graph for a function of several operations; its derivative is `fad.vjp` of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.archetypes import cast
from fad.core.cotangent import densify
from fad.core.tracer import Tracer, tracer
from fad.eager.engine import EagerTrace, Pullback, _outside, call_record, lift, output
from fad.eager.mode import is_grad_enabled
from fad.eager.tensor import Tensor, wrap
from fad.transforms import custom
from fad.transforms.vjp import vjp


def composite(name: str, fun: Callable, *operands: Any) -> Any:
    """Run a function of arrays on tensors as one node, named as PyTorch names it."""
    values = [x.value if isinstance(x, Tensor) else x for x in operands]
    nodes = [x.node if isinstance(x, Tensor) else None for x in operands]
    tracked = [i for i, n in enumerate(nodes) if n is not None]
    if not tracked or not is_grad_enabled():
        return wrap(_own(fun(*values)))
    if any(type(v) is Tracer for v in values) and not _outside(values, nodes):
        return wrap(fun(*map(lift, values, nodes)))

    def of_tracked(*some):
        full = list(values)
        for i, x in zip(tracked, some, strict=True):
            full[i] = x
        return fun(*full)

    y, pull = vjp(of_tracked, *[values[i] for i in tracked])
    y = _own(y)
    several = type(y) is tuple

    def plain(g, rec):
        return _spread(pull(_filled(g, y)), tracked, len(values))

    def traced(g, rec, lifted):
        _, again = vjp(of_tracked, *[lifted(values[i], nodes[i]) for i in tracked])
        return _spread(again(_filled(g, y)), tracked, len(values))

    rec = call_record(name, nodes, Pullback(plain, traced, tuple(values), len(y) if several else 1), several)
    if not several:
        return Tensor(y, rec)
    return tuple(Tensor(v, output(rec, i)) for i, v in enumerate(y))


def _own(y: Any) -> Any:
    """Return results that are views as copies: a view that nobody knows of could not be told of changes in place."""
    if type(y) is tuple:
        return tuple(map(_own, y))
    return y.copy() if type(y) is np.ndarray and y.base is not None else y


def _filled(g: Any, y: Any) -> Any:
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
    operands = [Tensor(x.value, x.info) if type(x) is Tracer and x.trace is trace else x for x in xs]
    ys = composite(f"{call.name}Backward", lambda *values: tuple(call(*values)), *operands)
    return [tracer(y.value, trace, y.node) if y.node is not None else y.value for y in ys]


custom._RULES[EagerTrace] = _with_custom_rule
