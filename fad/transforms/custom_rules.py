"""A call with custom derivative rules, as every transform sees it: forward, reverse, linear and batched."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import _of as backend_or_none
from fad.core.primitives.cotangent import densify
from fad.core.primitives.limits import keep_perturbed
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, tracer, youngest
from fad.errors import CustomRuleError
from fad.transforms.arguments.check import is_inexact, zeros_like
from fad.transforms.batching.batch_trace import BatchTrace, replaced
from fad.transforms.jvp import JVPTrace
from fad.transforms.linearize import LinearTrace
from fad.transforms.outside.closures import Kept
from fad.transforms.vjp import VJPTrace, vjp
from fad.transforms.vmap import vmap


class Call:
    """One call of a function with custom rules, on flat lists of leaves.

    ``fun(*xs) -> ys``; ``jvp(xs, ts) -> (ys, tys)``; ``fwd(*xs) -> (ys, res)`` with ``bwd(res, cts) -> cts of xs``.
    `functions` are those that the user wrote, for messages.
    """

    __slots__ = ("name", "fun", "jvp", "fwd", "bwd", "batch", "functions")
    opaque = False  # whether `fun` takes plain arrays alone

    def __init__(self, name, fun, jvp=None, fwd=None, bwd=None, batch=None, functions=()):
        self.name = name
        self.fun = fun
        self.jvp = jvp
        self.fwd = fwd
        self.bwd = bwd
        self.batch = batch
        self.functions = functions

    def __call__(self, *xs: Any) -> list:
        trace = youngest(xs)
        if trace is None:
            return self.fun(*xs)
        rule = rule_of(trace)
        return rule(trace, self, xs) if rule else self.fun(*xs)


def rule_of(trace: Trace) -> Callable | None:
    """Return how a trace runs a call: its class may be a special one of those that have a rule."""
    rule = RULES.get(type(trace))
    return rule or next((RULES[kind] for kind in type(trace).__mro__ if kind in RULES), None)


def check_closed(trace: Trace, ys: list, call: Call) -> list:
    """Refuse results that depend on a tracer the rule never saw: its derivative would be lost.

    Such a tracer is of the trace that runs the rule, or of a younger one, to which no argument belongs.
    """
    if any(type(y) is Tracer and y.owner.birth >= trace.birth for y in ys):
        names = " and ".join(_find_traced_names(call.functions))
        raise CustomRuleError(
            f"{call.name} has a custom derivative rule and uses a traced value from outside its arguments"
            f"{names and f' ({names})'}, whose derivative the rule cannot give. Pass that value as an argument"
        )
    return ys


def _find_traced_names(functions: tuple) -> list[str]:
    """Return the names of the variables outside of functions that hold traced values."""
    found = {}
    for function in functions:
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
            with contextlib.suppress(ValueError):  # a variable that has no value yet
                if any(type(x) is Tracer for x in tree.leaves(cell.cell_contents)):
                    found[name] = None
    return list(found)


def _forward_rule(trace: JVPTrace, call: Call, xs: tuple) -> list:
    trace.check_alive()
    values = [trace.lower(x) for x in xs]
    tangents = [x.info if x is not v else zeros_like(v) for x, v in zip(xs, values, strict=True)]
    ys, ts = push_call(call, values, tangents)
    check_closed(trace, ys + ts, call)
    return [tracer(y, trace, t) if is_inexact(y) else y for y, t in zip(ys, ts, strict=True)]


@keep_perturbed()
def push_call(call: Call, values: list, tangents: list) -> tuple[list, list]:
    tangents = [densify(t) for t in tangents]
    if call.jvp is not None:
        return call.jvp(values, tangents)
    ys, res = call.fwd(*values)
    inexact = [i for i, x in enumerate(values) if is_inexact(x)]

    def pull(cts):
        found = call.bwd(res, cts)
        return [zeros_like(values[i]) if found[i] is None else found[i] for i in inexact]

    _, transpose = vjp(pull, [zeros_like(y) for y in ys])
    return ys, transpose([tangents[i] for i in inexact])[0]


def _reverse_rule(trace: VJPTrace, call: Call, xs: tuple) -> list:
    values = [trace.lower(x) for x in xs]
    parents = [x.info if x is not v else -1 for x, v in zip(xs, values, strict=True)]
    if call.fwd is not None:
        trace.rules = True
        ys, res = call.fwd(*values)
        res = tree.map(lambda x: trace.take(x) if type(x) is np.ndarray else x, res)
        pull = functools.partial(_pull_by_bwd, call, res, ys)
    else:
        ys = call(*values)
        pull = functools.partial(_pull_by_transpose, call, trace.keep(values, parents), parents, ys)
    return trace.call(parents, check_closed(trace, ys, call), pull)


def _fill(cts: list, ys: list) -> list:
    return [zeros_like(y) if ct is None else ct for ct, y in zip(cts, ys, strict=True)]


@keep_perturbed()
def _pull_by_bwd(call: Call, res: Any, ys: list, cts: list) -> list:
    return call.bwd(res, _fill(cts, ys))


@keep_perturbed()
def _pull_by_transpose(call: Call, values: list, parents: list, ys: list, cts: list) -> list:
    wanted = [i for i, p in enumerate(parents) if p >= 0]

    def push(*ts):
        tangents = [zeros_like(v) for v in values]
        for i, t in zip(wanted, ts, strict=True):
            tangents[i] = t
        return call.jvp(values, tangents)[1]

    _, pullback = vjp(push, *[zeros_like(values[i]) for i in wanted])
    found: list = [None] * len(values)
    for i, c in zip(wanted, pullback(_fill(cts, ys)), strict=True):
        found[i] = c
    return found


def _linear_rule(trace: LinearTrace, call: Call, xs: tuple) -> list:
    values = [trace.lower(x) for x in xs]
    parents = [x.info if x is not v else None for x, v in zip(xs, values, strict=True)]
    ys = check_closed(trace, call(*values), call)
    values = [trace.keep(v) if p is None else v for v, p in zip(values, parents, strict=True)]

    def push(ts):
        return push_call(call, values, [zeros_like(v) if t is None else t for t, v in zip(ts, values, strict=True)])[1]

    return list(trace.attach(True, ys, parents, push))


def _batch_rule(trace: BatchTrace, call: Call, xs: tuple) -> list:
    trace.check_alive()
    values = [trace.lower(x) for x in xs]
    batched = [x is not v for x, v in zip(xs, values, strict=True)]
    try:
        ys = run_batch(trace, call, batched, values)
    except Exception as error:
        trace.separate_errors(error, call, values, batched)
        raise
    return [tracer(y, trace, None) for y in check_closed(trace, ys, call)]


def run_batch(trace: BatchTrace, call: Call, batched: list, values: list) -> list:
    """Return the results of a call on values that have the batch axis in front where they are batched, as all do."""
    if call.batch is None:
        with replaced(trace):
            return batch_call(call, batched, trace.size)(*values)
    ys, flags = call.batch(trace.size, batched, values)
    return [y if b else np.broadcast_to(y, (trace.size, *y.shape)) for y, b in zip(ys, flags, strict=True)]


def batch_call(call: Call, batched: list, size: int) -> Call:
    """Return the same call over a leading batch axis, with all its rules.

    What a forward rule leaves to the backward rule may be any object: a pullback, a string. One that cannot be batched
    is computed again by the backward pass, in whose batch it is used.
    """
    axes = tuple(0 if b else None for b in batched)
    size_of: Any = {"axis_size": size}

    def jvp(xs, ts):
        ts = [t if b else zeros_like(x) if not is_inexact(x) else t for t, x, b in zip(ts, xs, batched, strict=True)]
        tangent_axes = tuple(0 if b or _wider(t, x) else None for t, x, b in zip(ts, xs, batched, strict=True))
        return vmap(lambda xs, ts: call.jvp(list(xs), list(ts)), (axes, tangent_axes), **size_of)(tuple(xs), tuple(ts))

    def fwd(*xs):
        batchable: list = []

        def run(*xs):
            ys, res = call.fwd(*xs)
            batchable.append(all(map(_is_number_or_array, tree.leaves(res))))
            return ys, res if batchable[-1] else None

        ys, res = vmap(run, axes, **size_of)(*xs)
        if all(batchable):
            return ys, (None, res)
        return ys, (Kept(*call.functions), list(xs))

    def bwd(res, cts):
        kept, res = res  # with `kept` the arguments, on which the forward rule runs again
        missing: list = []

        def pull(r, c):
            if kept is not None:
                r = kept.run(call.fwd, r, {}, kept.earlier.find_changed())[1]
            found = call.bwd(r, c)
            missing[:] = [x is None for x in found]
            return [x for x in found if x is not None]

        it = iter(vmap(pull, (0 if kept is None else list(axes), 0), **size_of)(res, cts))
        found = [None if none else next(it) for none in missing]
        return [c if b or c is None else np.sum(c, axis=0) for c, b in zip(found, batched, strict=True)]

    return Call(
        call.name,
        vmap(call.fun, axes, **size_of),
        jvp if call.jvp else None,
        fwd if call.fwd else None,
        bwd if call.bwd else None,
        functions=call.functions,
    )


def _is_number_or_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic, Tracer, bool, int, float, complex)) or backend_or_none(x) is not None


def _wider(t: Any, x: Any) -> bool:
    return np.ndim(t) > np.ndim(x)


RULES: dict[type, Callable] = {
    JVPTrace: _forward_rule,
    VJPTrace: _reverse_rule,
    LinearTrace: _linear_rule,
    BatchTrace: _batch_rule,
}
