"""Forward mode: push a tangent through the program beside each value.

A tracer's `info` is its tangent. A tangent that is zero does not exist: a value without one is simply no tracer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import is_numpy_scalar
from fad.core.cotangent import densify
from fad.core.germ import germs_kept, settled
from fad.core.tracer import Trace, Tracer, bind, same_structure, tracer
from fad.transforms.check import as_operand, as_primal, check_like, run, zeros_like
from fad.transforms.vjp import operand_cotangents, vjp


class JVPTrace(Trace):
    """The trace of forward mode."""

    __slots__ = ()
    kind = "a forward-mode transform (jvp)"

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        if prim.extra and "differentiated" in prim.extra:
            return prim.extra["differentiated"](*args, **params)
        values, tangents = [], []
        for x in args:
            if type(x) is Tracer and x.trace is self:
                values.append(x.value)
                tangents.append(x.info)
            else:
                x = as_operand(x, args)
                if x is NotImplemented:
                    return x
                values.append(x)
                tangents.append(None)
        y = bind(prim, *values, **params)
        if prim.flat:
            return y
        if prim.multi:
            ts = prim.jvp(tangents, y, values, params)
            return tuple(self._attach(v, t) for v, t in zip(y, ts, strict=True))
        if prim.jvp is None:
            return self._attach(y, transposed_vjp(prim, tangents, y, values, params))
        return self._attach(y, prim.jvp(tangents, y, values, params))

    def _attach(self, y: Any, t: Any) -> Any:
        if t is None or y.dtype.kind not in "fc":
            return y
        return tracer(y, self, t)


def transposed_vjp(prim: Any, tangents: list, y: Any, xs: list, params: dict) -> Any:
    """Derive a JVP from a VJP: the pullback is linear in its cotangent; transpose it."""
    wanted = [k for k, t in enumerate(tangents) if t is not None]
    parents = [0 if k in wanted else -1 for k in range(len(xs))]

    def pull(ct):
        found = operand_cotangents(prim, parents, ct, y, tuple(xs), params)
        return tuple(np.zeros_like(xs[k]) if found[k] is None else densify(found[k]) for k in wanted)

    with germs_kept():
        _, push = vjp(pull, np.zeros_like(y))
        return push(tuple(tangents[k] for k in wanted))[0]


def jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> tuple:
    """Evaluate a function together with its derivative along a direction.

    Parameters
    ----------
    fun : callable
        Function of the primals.
    primals, tangents : tuple or list
        The point, and the direction at it: one entry per argument, of equal structure, shapes and dtypes.
    has_aux : bool
        If true, `fun` returns ``(output, aux)``.

    Returns
    -------
    (out, tangent_out) or (out, tangent_out, aux)

    Raises
    ------
    TreeMismatchError, ShapeMismatchError, DtypeMismatchError
        if tangents do not fit the primals.

    Examples
    --------
    >>> jvp(lambda x: x * x, (3.0,), (1.0,))
    (np.float64(9.0), np.float64(6.0))
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp takes primals and tangents as tuples: jvp(f, (x,), (dx,))")
    xs, in_tree = tree.flatten(tuple(primals))
    ts, t_tree = tree.flatten(tuple(tangents))
    same_structure(in_tree, t_tree, "the tangents of jvp")
    xs = [as_primal(x, "a primal of jvp") for x in xs]
    ts = check_like(ts, xs, "a tangent of jvp")
    trace = JVPTrace()
    tracers = [tracer(x, trace, t) for x, t in zip(xs, ts, strict=True)]
    ys, out_tree, aux = run(fun, trace, tree.unflatten(in_tree, tracers), has_aux)
    values, found = [], []
    for y in ys:
        if type(y) is Tracer and y.trace is trace:
            values.append(settled(y.value, derivative=False))
            found.append(_like(values[-1], settled(y.info)))
        else:
            values.append(y)
            found.append(zeros_like(y))
    out, tangent_out = tree.unflatten(out_tree, values), tree.unflatten(out_tree, found)
    return (out, tangent_out, aux) if has_aux else (out, tangent_out)


def _like(y: Any, t: Any) -> Any:
    """Return a tangent of the kind of its value: an array for an array, writable and its own."""
    if type(t) is np.ndarray:
        if is_numpy_scalar(y):
            return t[()]
        return t if t.flags.writeable else t.copy()
    return np.asarray(t) if type(y) is np.ndarray and is_numpy_scalar(t) else t
