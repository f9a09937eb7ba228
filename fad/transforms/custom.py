"""Custom derivative rules: one function may carry a JVP, a VJP and a batching rule; missing ones are derived.

A call is handed to the youngest trace, as an operation would be. The JVP gives the VJP by transposition and the VJP
gives the JVP, because both are linear in the tangent or cotangent; without a batching rule the function and its rules
are batched by ``vmap``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.cotangent import densify
from fad.core.limits import keep_perturbed
from fad.core.memory import copy_layout, snapshot
from fad.core.overlay import spaces_of
from fad.core.tracer import Trace, Tracer, tracer, youngest
from fad.core.transformed import Wrapping, as_run, name_of
from fad.core.values import depth
from fad.errors import CustomRuleError
from fad.transforms.check import as_value, zeros_like
from fad.transforms.jvp import JVPTrace
from fad.transforms.linearize import LinearTrace
from fad.transforms.mutation import equal
from fad.transforms.tape import is_inexact
from fad.transforms.vjp import VJPTrace, vjp
from fad.transforms.vmap import BatchTrace, vmap


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
        rule = _RULES.get(type(trace))
        return rule(trace, self, xs) if rule else self.fun(*xs)


def _check_closed(trace: Trace, ys: list, call: Call) -> list:
    """Refuse results that depend on a tracer the rule never saw: its derivative would be lost.

    Such a tracer is of the trace that runs the rule, or of a younger one, to which no argument belongs.
    """
    if any(type(y) is Tracer and y.trace.birth >= trace.birth for y in ys):
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
    ys, ts = _push(call, values, tangents)
    _check_closed(trace, ys + ts, call)
    return [tracer(y, trace, t) if is_inexact(y) else y for y, t in zip(ys, ts, strict=True)]


@keep_perturbed()
def _push(call: Call, values: list, tangents: list) -> tuple[list, list]:
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
        ys, res = call.fwd(*values)
        res = tree.map(lambda x: trace.watch.take(x) if type(x) is np.ndarray else x, res)
        pull = functools.partial(_pull_by_bwd, call, res, ys)
    else:
        ys = call(*values)
        pull = functools.partial(_pull_by_transpose, call, trace.keep(values, parents), parents, ys)
    return trace.call(parents, _check_closed(trace, ys, call), pull)


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
    ys = _check_closed(trace, call(*values), call)
    values = [trace.keep(v) if p is None else v for v, p in zip(values, parents, strict=True)]

    def push(ts):
        return _push(call, values, [zeros_like(v) if t is None else t for t, v in zip(ts, values, strict=True)])[1]

    return list(trace.attach(True, ys, parents, push))


def _batch_rule(trace: BatchTrace, call: Call, xs: tuple) -> list:
    trace.check_alive()
    values = [trace.lower(x) for x in xs]
    batched = [x is not v for x, v in zip(xs, values, strict=True)]
    if call.batch is not None:
        ys, flags = call.batch(trace.size, batched, values)
        ys = [y if b else np.broadcast_to(y, (trace.size, *y.shape)) for y, b in zip(ys, flags, strict=True)]
    else:
        ys = _batched(call, batched, trace.size)(*values)
    return [tracer(y, trace, None) for y in _check_closed(trace, ys, call)]


def _batched(call: Call, batched: list, size: int) -> Call:
    """Return the same call over a leading batch axis, with all its rules."""
    axes = tuple(0 if b else None for b in batched)
    size_of: Any = {"axis_size": size}

    def jvp(xs, ts):
        ts = [t if b else zeros_like(x) if not is_inexact(x) else t for t, x, b in zip(ts, xs, batched, strict=True)]
        tangent_axes = tuple(0 if b or _wider(t, x) else None for t, x, b in zip(ts, xs, batched, strict=True))
        return vmap(lambda xs, ts: call.jvp(list(xs), list(ts)), (axes, tangent_axes), **size_of)(tuple(xs), tuple(ts))

    def bwd(res, cts):
        missing: list = []

        def pull(r, c):
            found = call.bwd(r, c)
            missing[:] = [x is None for x in found]
            return [x for x in found if x is not None]

        it = iter(vmap(pull, **size_of)(res, cts))
        found = [None if none else next(it) for none in missing]
        return [c if b or c is None else np.sum(c, axis=0) for c, b in zip(found, batched, strict=True)]

    return Call(
        call.name,
        vmap(call.fun, axes, **size_of),
        jvp if call.jvp else None,
        vmap(call.fwd, axes, **size_of) if call.fwd else None,
        bwd if call.bwd else None,
        functions=call.functions,
    )


def _wider(t: Any, x: Any) -> bool:
    return np.ndim(t) > np.ndim(x)


_RULES: dict[type, Callable] = {
    JVPTrace: _forward_rule,
    VJPTrace: _reverse_rule,
    LinearTrace: _linear_rule,
    BatchTrace: _batch_rule,
}


class CustomFunction(Wrapping):
    """A function whose derivative is given by hand; made by :func:`custom_jvp` or :func:`custom_vjp`.

    Either may carry every rule: ``defjvp``, ``defjvps``, ``defvjp``, ``defvmap``.
    """

    def __init__(
        self, fun: Callable, nondiff_argnums: Any = (), nondiff_argnames: Any = (), made_by: str = "custom_jvp"
    ):
        self.adopt(fun)
        self._made_by = made_by
        self.__name__ = getattr(fun, "__name__", type(fun).__name__)  # a partial, or an object that is callable
        self.fun = fun
        self.nondiff_argnums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.nondiff_argnames = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        self._jvp: Callable | None = None
        self._fwd: Callable | None = None
        self._bwd: Callable | None = None
        self._vmap: Callable | None = None

    def __repr__(self) -> str:
        return f"<fad.{self._made_by} of {name_of(self.fun)}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def defjvp(self, rule: Callable) -> Callable:
        """Give the forward rule: ``rule(*nondiff, primals, tangents) -> (out, tangent_out)``; usable as a decorator."""
        self._jvp = rule
        return rule

    def defjvps(self, *jvps: Callable | None) -> None:
        """Give one forward rule per argument, ``jvp(tangent, out, *primals)``, None for zero; the results are added."""

        def rule(*args):
            *nondiff, primals, tangents = args
            if len(jvps) != len(primals):
                raise CustomRuleError(
                    f"{self.__name__} has {len(primals)} differentiable arguments, but {len(jvps)} rules in its defjvps"
                )
            out = self.fun(*self._merge(nondiff, primals))
            terms = [j(t, out, *primals) for j, t in zip(jvps, tangents, strict=True) if j is not None]
            if not terms:
                return out, tree.map(zeros_like, out)
            return out, functools.reduce(tree.add, terms)

        self._jvp = rule

    def defvjp(self, fwd: Callable, bwd: Callable) -> None:
        """Give the reverse rule: ``fwd(*args) -> (out, res)``, ``bwd(*nondiff, res, ct) -> tuple``, None for zero."""
        self._fwd, self._bwd = fwd, bwd

    def defvmap(self, rule: Callable) -> Callable:
        """Give the batching rule: ``rule(axis_size, in_batched, *args) -> (out, out_batched)``; the batch is axis 0."""
        self._vmap = rule
        return rule

    def _merge(self, nondiff: Any, primals: Any) -> list:
        it, rest = iter(nondiff), iter(primals)
        n = len(nondiff) + len(primals)
        places = self._places(n)
        return [next(it) if i in places else next(rest) for i in range(n)]

    def _places(self, n: int) -> set[int]:
        """Return which of n arguments are not differentiated."""
        names = list(inspect.signature(self.fun).parameters) if self.nondiff_argnames else []
        return {i % n for i in self.nondiff_argnums} | {names.index(k) for k in self.nondiff_argnames}

    def _by_position(self, args: tuple, kwargs: dict) -> tuple:
        if not kwargs and not self.nondiff_argnames:
            return args, {}
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._jvp is None and self._fwd is None:
            raise CustomRuleError(
                f"{self.__name__} was declared with custom_jvp or custom_vjp but has no rule: call its defjvp or defvjp"
            )
        args, named = self._by_position(args, kwargs)
        if named:
            raise CustomRuleError(f"{self.__name__} has a custom rule and takes keyword-only arguments {sorted(named)}")
        places = self._places(len(args))
        nondiff = [args[i] for i in sorted(places)]
        if any(type(x) is Tracer and depth(x) for x in tree.leaves(nondiff)):
            raise CustomRuleError(
                f"a traced value was passed for a nondiff argument of {self.__name__}; "
                "its derivative would be lost, so pass it as an ordinary argument"
            )
        primals = tuple(x for i, x in enumerate(args) if i not in places)
        return self._bind(nondiff, primals)

    def _bind(self, nondiff: list, primals: tuple) -> Any:
        xs, in_tree = tree.flatten(primals)
        xs = [as_value(x, f"an argument of {self.__name__}") for x in xs]
        adapter = _Adapter(self, nondiff, in_tree, len(xs))
        call = Call(
            self.__name__,
            adapter.fun,
            adapter.jvp if self._jvp else None,
            adapter.fwd if self._fwd else None,
            adapter.bwd if self._fwd else None,
            adapter.batch if self._vmap and not adapter.traced else None,
            (self.fun, self._jvp, self._fwd, self._bwd),
        )
        xs += adapter.traced
        adapter.guarded = youngest(xs) is not None
        ys = call(*xs)
        return tree.unflatten(adapter.out_tree, ys)


class _Adapter:
    """Between a user's rules on trees and a `Call` on flat lists; checks what the rules return.

    What vmap or jit trace in the nondiff arguments are operands too, behind the `n` others, without a derivative.
    """

    def __init__(self, custom: CustomFunction, nondiff: list, in_tree: Any, n: int):
        self.custom = custom
        self.in_tree = in_tree
        self.n = n
        self.fixed, self.nondiff_tree = tree.flatten(nondiff)
        self.traced = [x for x in self.fixed if type(x) is Tracer]
        self.out_tree: Any = None
        self.guarded = False  # whether a transform runs, and the rule would not know what the function writes

    def _run(self, function: Callable, xs: Any, given: Callable) -> Any:
        """Call a function of the user's on ``given(xs)``, as values that it does not write into."""
        if not self.guarded or not spaces_of(function)[0]:
            return as_run(function)(*given(xs))
        own = [copy_layout(x) if type(x) is np.ndarray else snapshot(x) if type(x) is Tracer else x for x in xs]
        out = as_run(function)(*given(own))
        for x, y in zip(xs, own, strict=True):
            if y.memory is not None if type(y) is Tracer else type(y) is np.ndarray and not equal(x, y):
                raise CustomRuleError(
                    f"{self.custom.__name__} has a custom derivative rule, which does not know that the function wrote "
                    f"into its argument of shape {y.shape}: write into a copy, x = x.copy(), and return it"
                )
        return out

    def _merged(self, xs: Any) -> list:
        return self.custom._merge(self._nondiff(xs), self._primals(xs))

    def _nondiff(self, xs: Any) -> list:
        it = iter(xs[self.n :])
        return tree.unflatten(self.nondiff_tree, [next(it) if type(x) is Tracer else x for x in self.fixed])

    def _primals(self, xs: Any) -> tuple:
        return tree.unflatten(self.in_tree, xs[: self.n])

    def _outputs(self, out: Any) -> list:
        ys, self.out_tree = tree.flatten(out)
        return [as_value(y, f"an output of {self.custom.__name__}") for y in ys]

    def fun(self, *xs):
        return self._outputs(self._run(self.custom.fun, xs, self._merged))

    def jvp(self, xs, ts):
        got = self._run(self.custom._jvp, xs, lambda xs: (*self._nondiff(xs), self._primals(xs), self._primals(ts)))
        if type(got) not in (tuple, list) or len(got) != 2:
            raise CustomRuleError(f"the JVP rule of {self.custom.__name__} must return (out, tangent_out)")
        ys = self._outputs(got[0])
        found, t_tree = tree.flatten(got[1])
        if t_tree != self.out_tree:
            raise CustomRuleError(
                f"the JVP rule of {self.custom.__name__} returned a tangent of structure {t_tree} for an output of "
                f"structure {self.out_tree}"
            )
        return ys, [self._like(t, y, "JVP", "tangent") for t, y in zip(found, ys, strict=True)]

    def fwd(self, *xs):
        got = self._run(self.custom._fwd, xs, self._merged)
        if type(got) not in (tuple, list) or len(got) != 2:
            raise CustomRuleError(f"the forward rule of {self.custom.__name__} must return (out, residuals)")
        return self._outputs(got[0]), (got[1], list(xs))

    def bwd(self, res, cts):
        res, xs = res
        got = self.custom._bwd(*self._nondiff(xs), res, tree.unflatten(self.out_tree, cts))
        primals = self._primals(xs)
        if type(got) not in (tuple, list) or len(got) != len(primals):
            raise CustomRuleError(
                f"the backward rule of {self.custom.__name__} must return a tuple of {len(primals)} cotangents, "
                f"one per argument, but returned {type(got).__name__}"
                + (f" of {len(got)}" if type(got) in (tuple, list) else "")
            )
        out = []
        for ct, x in zip(got, primals, strict=True):
            leaves, x_tree = tree.flatten(x)
            if ct is None:
                out += [None] * len(leaves)
                continue
            found, ct_tree = tree.flatten(ct)
            if ct_tree != x_tree:
                raise CustomRuleError(
                    f"the backward rule of {self.custom.__name__} returned a cotangent of structure {ct_tree} "
                    f"for an argument of structure {x_tree}"
                )
            out += [self._like(c, v, "backward", "cotangent") for c, v in zip(found, leaves, strict=True)]
        return out + [None] * len(self.traced)

    def batch(self, size, batched, values):
        rule = f"the batching rule of {self.custom.__name__}"
        got = self.custom._vmap(size, tree.unflatten(self.in_tree, batched), *tree.unflatten(self.in_tree, values))
        if type(got) not in (tuple, list) or len(got) != 2:
            raise CustomRuleError(f"{rule} must return (out, out_batched)")
        ys = self._outputs(got[0])
        flags = [got[1]] * len(ys) if isinstance(got[1], bool) else tree.leaves(got[1])
        if len(flags) != len(ys):
            raise CustomRuleError(f"{rule} gave {len(ys)} outputs, but says of {len(flags)} whether they are batched")
        for shape in (y.shape for y, b in zip(ys, flags, strict=True) if b):
            if shape[:1] != (size,):
                raise CustomRuleError(f"{rule} returned as batched the shape {shape}, but the batch has size {size}")
        return ys, flags

    def _like(self, t, x, rule, what):
        if not is_inexact(x):
            return None if what == "cotangent" else zeros_like(x)
        t = as_value(t, f"a {what}")
        if t.shape != x.shape or (t.dtype != x.dtype and t.dtype.kind not in "fciub"):
            raise CustomRuleError(
                f"the {rule} rule of {self.custom.__name__} returned a {what} of shape {t.shape} "
                f"for a value of shape {x.shape}"
            )
        return t if t.dtype == x.dtype else t.astype(x.dtype)


def custom_jvp(fun: Callable, nondiff_argnums: Any = (), nondiff_argnames: Any = ()) -> CustomFunction:
    """Give a function a forward derivative rule of your own; reverse mode and batching are derived from it.

    The rule speaks of the arguments alone: where they are traced, a traced value that the function takes from
    outside them is an error (`CustomRuleError`).

    Parameters
    ----------
    fun : callable
        Function of arrays or pytrees.
    nondiff_argnums, nondiff_argnames : int or str, or tuples of them
        Arguments that are not differentiated; the rule gets them first.

    Returns
    -------
    CustomFunction
        Call its ``defjvp(rule)`` with ``rule(*nondiff, primals, tangents) -> (out, tangent_out)``, or ``defjvps``;
        ``defvjp`` and ``defvmap`` may be given as well.

    Raises
    ------
    CustomRuleError
        if the function is called before its rule is given with `defjvp`.

    Examples
    --------
    >>> import fad
    >>> @fad.custom_jvp
    ... def f(x):
    ...     return x**2
    >>> @f.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10.0 * t
    >>> fad.grad(f)(3.0)
    np.float64(10.0)
    """
    return CustomFunction(fun, nondiff_argnums, nondiff_argnames, made_by="custom_jvp")


def custom_vjp(fun: Callable, nondiff_argnums: Any = (), nondiff_argnames: Any = ()) -> CustomFunction:
    """Give a function a reverse derivative rule of your own; forward mode and batching are derived from it.

    Parameters as in :func:`custom_jvp`.

    Parameters
    ----------
    fun : callable
        What is computed; it is run as it stands where nothing is differentiated.
    nondiff_argnums : int or tuple of int
        Positional arguments that are not differentiated, which the rule gets first.
    nondiff_argnames : str or tuple of str
        The same by name.

    Returns
    -------
    CustomFunction
        Call its ``defvjp(fwd, bwd)`` with ``fwd(*args) -> (out, res)`` and ``bwd(*nondiff, res, ct) -> tuple``,
        one cotangent per differentiable argument, None for zero; ``defjvp`` and ``defvmap`` may be given as well.

    Raises
    ------
    CustomRuleError
        if the function is called before its rules are given with `defvjp`.

    Examples
    --------
    >>> import fad, numpy as np
    >>> @fad.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda res, ct: (np.clip(ct, -1.0, 1.0),))
    >>> fad.grad(lambda x: 5.0 * clip_gradient(x))(2.0)
    np.float64(1.0)
    """
    return CustomFunction(fun, nondiff_argnums, nondiff_argnames, made_by="custom_vjp")
