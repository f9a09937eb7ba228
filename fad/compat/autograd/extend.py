"""autograd's way to give a function its own rules: ``primitive``, ``defvjp``, ``defjvp`` and related functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fad import tree
from fad.compat.autograd.vspaces import VSpace, vspace
from fad.core.tracing.tracer import Tracer, youngest
from fad.core.tracing.values import stop_gradient
from fad.errors import CustomRuleError
from fad.transforms.arguments.check import as_value, zeros_like
from fad.transforms.custom_rules import Call, rule_of

__all__ = [
    "Box", "VSpace", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum", "defvjp_argnums",
    "notrace_primitive", "primitive", "vspace",
]  # fmt: skip

Box = Tracer


class UndefinedRuleError(CustomRuleError, NotImplementedError):
    """A primitive was differentiated that has no rule; autograd raises NotImplementedError."""


class primitive:
    """Make a function opaque: its derivative comes from ``defvjp`` or ``defjvp``, never from looking inside.

    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> import fad
    >>> fad.grad(cube)(2.0)
    np.float64(12.0)
    """

    __name__: str

    def __init__(self, fun: Callable):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vjps: Any = None  # (argnums, ans, args, kwargs) -> (g -> cotangents)
        self.makers: dict[int, Any] = {}  # argnum -> rule, where they are given one by one
        self.jvps: Callable | None = None  # (argnums, gs, ans, args, kwargs) -> tangent

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        nums = [i for i, a in enumerate(args) if any(type(x) is Tracer for x in tree.leaves(a))]
        if not nums:
            return self.fun(*args, **kwargs)
        return _PrimitiveCall(self, args, kwargs, nums).run()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    # The names of before 2017, which autograd still takes: each call gives the rule of one argument.

    def defgrad(self, gradmaker: Callable | None, argnum: int = 0) -> None:
        """Give the reverse rule of one argument: ``gradmaker(ans, *args) -> (g -> cotangent)``."""
        self.makers = {**self.makers, argnum: gradmaker}
        defvjp(self, *self.makers.values(), argnums=tuple(self.makers))

    def defvjp(self, vjp: Callable, argnum: int = 0) -> None:
        """Give the reverse rule of one argument: ``vjp(g, ans, vs, gvs, *args) -> cotangent``."""
        rule = lambda ans, *args, **kw: lambda g: vjp(g, ans, vspace(args[argnum]), vspace(g), *args, **kw)
        self.defgrad(rule, argnum)

    def defvjp_is_zero(self, argnums: Any = (0,)) -> None:
        """Say that the derivative in some arguments is zero."""
        for argnum in argnums:
            self.defgrad(None, argnum)


class _PrimitiveCall:
    """One call of a primitive with traced arguments: `nums` are their positions."""

    def __init__(self, prim: primitive, args: tuple, kwargs: dict, nums: list):
        self.prim = prim
        self.args = args
        self.kwargs = kwargs
        self.nums = nums
        self.chosen_tree: Any = None
        self.out_tree: Any = None

    def run(self) -> Any:
        xs, self.chosen_tree = tree.flatten([self.args[i] for i in self.nums])
        prim = self.prim
        call = Call(
            prim.__name__,
            self.plain,
            None if prim.vjps and not prim.jvps else self.jvp,
            self.fwd if prim.vjps else None,
            self.bwd if prim.vjps else None,
            functions=(prim.fun,),
        )
        ys = call(*[as_value(x, f"an argument of {prim.__name__}") for x in xs])
        return tree.unflatten(self.out_tree, ys)

    def merge(self, xs: Any) -> tuple:
        full = list(self.args)
        for i, a in zip(self.nums, tree.unflatten(self.chosen_tree, xs), strict=True):
            full[i] = a
        return tuple(full)

    def forward(self, *xs):
        # What has no place for rules (a recording, a limit) runs the function itself, as for plain values.
        return self.plain(*xs, function=self.prim if rule_of(youngest(xs)) else None)

    def plain(self, *xs, function=None):
        ys, self.out_tree = tree.flatten((function or self.prim.fun)(*self.merge(xs), **self.kwargs))
        return [as_value(y, f"the value of {self.prim.__name__}") for y in ys]

    def fwd(self, *xs):
        ys = self.forward(*xs)
        return ys, (ys, list(xs))

    def bwd(self, res, cts):
        ys, xs = res
        args = self.merge(xs)
        vjp = self.prim.vjps(tuple(self.nums), tree.unflatten(self.out_tree, ys), args, self.kwargs)
        found = vjp(tree.unflatten(self.out_tree, cts))
        leaves = tree.leaves([_zero(args[i]) if c is None else c for i, c in zip(self.nums, found, strict=True)])
        return [_fit(c, x) for c, x in zip(leaves, xs, strict=True)]

    def jvp(self, xs, ts):
        if self.prim.jvps is None:
            raise UndefinedRuleError(
                f"the primitive {self.prim.__name__} has no rule: give it one with defvjp or defjvp"
            )
        ys = self.forward(*xs)
        tangents = tree.unflatten(self.chosen_tree, ts)
        ans = tree.unflatten(self.out_tree, ys)
        t = self.prim.jvps(tuple(self.nums), tangents, ans, self.merge(xs), self.kwargs)
        return ys, [_fit(c, y) for c, y in zip(tree.leaves(t), ys, strict=True)]


def _zero(x: Any) -> Any:
    return tree.map(lambda v: zeros_like(as_value(v)), x)


def _fit(c: Any, x: Any) -> Any:
    c = as_value(c, "a derivative")
    if c.shape != x.shape:
        raise CustomRuleError(f"a rule gave a derivative of shape {c.shape} for a value of shape {x.shape}")
    return c if c.dtype == x.dtype else c.astype(x.dtype)


def notrace_primitive(fun: Callable) -> Callable:
    """Make a function that is evaluated on plain values: its derivative is zero.

    >>> import fad
    >>> import numpy as np
    >>> fad.grad(lambda x: x * notrace_primitive(np.floor)(x))(2.5)
    np.float64(2.0)
    """

    @functools.wraps(fun)
    def plain(*args, **kwargs):
        return fun(*stop_gradient(args), **stop_gradient(kwargs))

    return plain


def defvjp(fun: primitive, *vjpmakers: Callable | None, argnums: Any = None) -> None:
    """Give reverse rules, one per argument: ``vjpmaker(ans, *args, **kwargs) -> (g -> cotangent)``; None is zero."""
    makers = dict(zip(argnums if argnums is not None else range(len(vjpmakers)), vjpmakers, strict=True))

    def vjps(nums, ans, args, kwargs):
        for n in nums:
            if n not in makers:
                raise UndefinedRuleError(f"the primitive {fun.__name__} has no VJP for its argument number {n}")
        chosen = [makers[n] for n in nums]
        pulls = [maker(ans, *args, **kwargs) if maker else None for maker in chosen]
        return lambda g: tuple(None if pull is None else pull(g) for pull in pulls)

    fun.vjps = vjps


def defvjp_argnums(fun: primitive, vjpmaker: Callable) -> None:
    """Give one reverse rule for all: ``vjpmaker(argnums, ans, args, kwargs) -> (g -> tuple of cotangents)``."""
    fun.vjps = vjpmaker


def defvjp_argnum(fun: primitive, vjpmaker: Callable) -> None:
    """Give one reverse rule by number: ``vjpmaker(argnum, ans, args, kwargs) -> (g -> cotangent)``."""

    def vjps(nums, ans, args, kwargs):
        pulls = [vjpmaker(n, ans, args, kwargs) for n in nums]
        return lambda g: tuple(pull(g) for pull in pulls)

    fun.vjps = vjps


def defjvp(fun: primitive, *jvps: Any, argnums: Any = None) -> None:
    """Give forward rules, one per argument: ``jvp(g, ans, *args, **kwargs) -> tangent``.

    None is zero, and ``"same"`` says that the function is linear in that argument.
    """
    rules = dict(zip(argnums if argnums is not None else range(len(jvps)), jvps, strict=True))

    def one(n, g, ans, args, kwargs):
        if n not in rules:
            raise UndefinedRuleError(f"the primitive {fun.__name__} has no JVP for its argument number {n}")
        if rules[n] is None:
            return None
        if rules[n] == "same":
            return fun(*args[:n], g, *args[n + 1 :], **kwargs)
        return rules[n](g, ans, *args, **kwargs)

    fun.jvps = _sum_along(one)


def _sum_along(one: Callable) -> Callable:
    def jvps(nums, gs, ans, args, kwargs):
        terms = [one(n, g, ans, args, kwargs) for n, g in zip(nums, gs, strict=True)]
        terms = [t for t in terms if t is not None]
        return functools.reduce(tree.add, terms) if terms else _zero(ans)

    return jvps


def defjvp_argnums(fun: primitive, jvpmaker: Callable) -> None:
    """Give one forward rule for all: ``jvpmaker(argnums, gs, ans, args, kwargs) -> tangent``."""
    fun.jvps = jvpmaker


def defjvp_argnum(fun: primitive, jvpmaker: Callable) -> None:
    """Give one forward rule by number: ``jvpmaker(argnum, g, ans, args, kwargs) -> tangent``."""
    fun.jvps = _sum_along(jvpmaker)
