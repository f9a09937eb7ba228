"""Custom derivative rules: one function may carry a JVP, a VJP and a batching rule; missing ones are derived.

A call is handed to the youngest trace, as an operation would be. The JVP gives the VJP by transposition and the VJP
gives the JVP, because both are linear in the tangent or cotangent; without a batching rule the function and its rules
are batched by ``vmap``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.core.runs.overlay_needs import needs_of
from fad.core.runs.transformed import Wrapping, as_run, name_of
from fad.core.tracing.tracer import Tracer, youngest
from fad.core.tracing.values import has_derivative
from fad.core.tracing.views import contents_of, copy_layout, snapshot
from fad.errors import CustomRuleError
from fad.transforms.arguments.check import as_value, is_inexact, separate, zeros_like
from fad.transforms.arguments.mutation import equal
from fad.transforms.custom_rules import Call
from fad.transforms.outside.closures import Kept, finds_nothing


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
        self._fwd: Any = None  # these three are callables once they are given
        self._bwd: Any = None
        self._vmap: Any = None

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
        if any(type(x) is Tracer and is_inexact(x) and has_derivative(x) for x in tree.leaves(nondiff)):
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
        if youngest(xs) is not None and not (finds_nothing(self._jvp) and finds_nothing(self._bwd)):
            adapter.kept = Kept(self._jvp, self._bwd)
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
        return tree.unflatten(adapter.out_tree, separate(ys, xs))


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
        self.kept: Kept | None = None  # what the rules find by name: they run later
        self.guarded = False  # whether a transform runs, and the rule would not know what the function writes

    def _run(self, function: Callable, xs: Any, given: Callable) -> Any:
        """Call a function of the user's on ``given(xs)``, as values that it does not write into."""
        if not self.guarded or not needs_of(function).spaces:
            return as_run(function)(*given(xs))
        own = [copy_layout(x) if type(x) is np.ndarray else snapshot(x) if type(x) is Tracer else x for x in xs]
        out = as_run(function)(*given(own))
        for x, y in zip(xs, own, strict=True):
            if contents_of(y) != (0, 0) if type(y) is Tracer else type(y) is np.ndarray and not equal(x, y):
                raise CustomRuleError(
                    f"{self.custom.__name__} has a custom derivative rule, which does not know that the function wrote "
                    f"into its argument of shape {y.shape}: write into a copy, x = x.copy(), and return it"
                )
        return out

    def _find_as_then(self, rule: Callable, *args: Any) -> Any:
        """Run a rule that finds by name what was there at the call."""
        kept = self.kept
        return rule(*args) if kept is None else kept.run(rule, args, {}, kept.earlier.find_changed())

    def _merge_args(self, xs: Any) -> list:
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
        return self._outputs(self._run(self.custom.fun, xs, self._merge_args))

    def jvp(self, xs, ts):
        given = lambda xs: (*self._nondiff(xs), self._primals(xs), self._primals(ts))
        got = self._find_as_then(self._run, self.custom._jvp, xs, given)
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
        got = self._run(self.custom._fwd, xs, self._merge_args)
        if type(got) not in (tuple, list) or len(got) != 2:
            raise CustomRuleError(f"the forward rule of {self.custom.__name__} must return (out, residuals)")
        return self._outputs(got[0]), (got[1], list(xs))

    def bwd(self, res, cts):
        res, xs = res
        got = self._find_as_then(self.custom._bwd, *self._nondiff(xs), res, tree.unflatten(self.out_tree, cts))
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


def custom_jvp(
    fun: Callable, nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomFunction:
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


def custom_vjp(
    fun: Callable, nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomFunction:
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
