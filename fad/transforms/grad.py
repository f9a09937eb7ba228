"""``grad`` and ``value_and_grad``: the gradient of a scalar function, by one reverse sweep."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import float64

from fad import tree
from fad.backends import is_numpy
from fad.core.runs.transformed import Transformed, as_run
from fad.core.tracing.views import RUNS
from fad.errors import ArgnumsError, ComplexGradientError, IntegerOutputError, NonScalarOutputError
from fad.transforms.arguments.check import (
    as_primal,
    as_value,
    check_function,
    flatten_primals,
    lend,
    separate_aux,
    zeros_like,
)
from fad.transforms.vjp import Tape
from fad.tree.nodes import LEAF, SINGLE


def split_arguments(
    fun: Callable, args: tuple, kwargs: dict, argnums: Any, argnames: Any, what: str
) -> tuple[Callable, tuple, bool]:
    """Separate the arguments to differentiate from the others.

    Returns ``(f, chosen, single)``: a function of the chosen arguments alone, these arguments, and whether
    one argument was asked for by an int (or one name) rather than by a tuple.
    """
    if argnames is not None:
        args, argnums, argnames = _resolve_names(fun, args, kwargs, argnums, argnames, what)
    else:
        argnames = ()
    single = not isinstance(argnums, (tuple, list)) and argnums is not None
    nums = _positions(argnums, len(args), what)
    names = tuple(argnames)
    single = len(nums) + len(names) == 1 and (single or (argnums is None and len(names) == 1))
    chosen = tuple([args[i] for i in nums])
    if names:
        chosen += tuple(kwargs[n] for n in names)

    def f(*values):
        full = pass_constants(list(args))
        for i, v in zip(nums, values, strict=False):  # the values behind these have names
            full[i] = v
        if not names and not kwargs:
            return as_run(fun)(*full)
        named = dict(zip(names, values[len(nums) :], strict=True)) if names else {}
        return as_run(fun)(*full, **{**pass_constants(kwargs), **named})

    return f, chosen, single


def pass_constants(arguments: Any) -> Any:
    """Return arguments that are not differentiated as the function gets them: as values that it may write into."""
    if not RUNS.buffers:
        return arguments
    if type(arguments) in (list, tuple):
        return type(arguments)(map(pass_constants, arguments))
    if type(arguments) is dict:
        return {name: pass_constants(x) for name, x in arguments.items()}
    return lend(arguments)


def _positions(argnums: Any, n: int, what: str) -> tuple[int, ...]:
    if argnums is None:
        return ()
    if type(argnums) is int and 0 <= argnums < n:
        return (argnums,)
    try:
        nums = tuple(operator.index(i) for i in (argnums if isinstance(argnums, (tuple, list)) else (argnums,)))
    except TypeError:
        raise ArgnumsError(f"argnums of {what} must be an int or a tuple of ints, not {argnums!r}") from None
    for i in nums:
        if not -n <= i < n:
            raise ArgnumsError(
                f"argnums={argnums!r} of {what}, but the function was called with {n} positional argument(s). "
                "Arguments given by name are differentiated with argnames"
            )
    nums = tuple(i % n for i in nums)
    if len(set(nums)) != len(nums):
        raise ArgnumsError(f"argnums={argnums!r} of {what} names an argument twice")
    return nums


def _resolve_names(fun: Callable, args: tuple, kwargs: dict, argnums: Any, argnames: Any, what: str) -> tuple:
    """Turn names of arguments that were given by position into positions."""
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    try:
        parameters = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        parameters = []
    by_name, by_position = [], []
    for name in names:
        if name in kwargs:
            by_name.append(name)
        elif name in parameters and parameters.index(name) < len(args):
            by_position.append(parameters.index(name))
        else:
            raise ArgnumsError(f"argnames of {what} names {name!r}, which the call does not give")
    if not by_position:
        return args, (None if argnums in (0, None) else argnums), by_name
    given = () if argnums in (0, None) else argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    nums = tuple(given) + tuple(by_position)
    return args, (nums[0] if isinstance(argnames, str) and len(nums) == 1 else nums), by_name


def grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable:
    """Return a function that computes the gradient of a scalar function.

    Parameters
    ----------
    fun : callable
        Function that returns one real number (shape ``()``), or with `has_aux` a pair ``(number, aux)``.
    argnums : int or tuple of int
        The positional arguments to differentiate; negative numbers count from the end.
    has_aux : bool
        Whether `fun` returns auxiliary data as well.
    holomorphic : bool
        Whether `fun` is complex-differentiable; then input and output must be complex, and the result is the
        complex derivative. Otherwise the gradient of a real function of complex ``x + iy`` is
        ``df/dx - i df/dy``, as in JAX; its conjugate is the direction of steepest ascent.
    allow_int : bool
        Give integer arguments a zero gradient instead of an error.
    argnames : str or tuple of str, keyword only
        Arguments to differentiate by name.

    Returns
    -------
    callable
        With the arguments of `fun`; returns the gradient in the structure, shapes and dtypes of the argument (a tuple
        of them if `argnums` is a tuple), or ``(gradient, aux)``.

    Raises
    ------
    NonScalarOutputError, ComplexGradientError, IntegerInputError, IntegerOutputError, ArgnumsError
        when the returned function is called.

    Examples
    --------
    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    check_function(fun, "grad", argnums)
    run = _evaluator(fun, argnums, has_aux, holomorphic, allow_int, argnames, with_value=False)
    return Transformed("grad", fun, run)


def value_and_grad(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable:
    """Return a function that computes a scalar function and its gradient together.

    Parameters, errors and conventions are those of :func:`grad`.

    Parameters
    ----------
    fun : callable
        Function that returns one real number, or with `has_aux` a pair ``(number, aux)``.
    argnums, argnames
        The arguments to differentiate, by place or by name.
    has_aux, holomorphic, allow_int : bool
        As of :func:`grad`.

    Returns
    -------
    callable
        Returns ``(value, gradient)``, or with `has_aux` ``((value, aux), gradient)``.

    Raises
    ------
    IntegerInputError
        if the argument is an integer or a boolean.
    NonScalarOutputError
        if the function returns anything but one number.

    Examples
    --------
    >>> value_and_grad(lambda x: x * x)(3.0)
    (np.float64(9.0), np.float64(6.0))
    """
    check_function(fun, "value_and_grad", argnums)
    run = _evaluator(fun, argnums, has_aux, holomorphic, allow_int, argnames)
    return Transformed("value_and_grad", fun, run)


def _evaluator(fun, argnums, has_aux, holomorphic, allow_int, argnames, with_value=True):
    first = argnums == 0 and argnames is None

    def evaluate(*args, **kwargs):
        if first and args:
            chosen, single = args[:1], True
            f = (
                fun
                if len(args) == 1 and not kwargs
                else lambda x: as_run(fun)(x, *pass_constants(args[1:]), **pass_constants(kwargs))
            )
        else:
            f, chosen, single = split_arguments(fun, args, kwargs, argnums, argnames, "grad")
        if allow_int:
            leaves, in_tree = tree.flatten(chosen)
            tape, values, grads = _with_integers(f, in_tree, leaves, has_aux, holomorphic)
        else:
            leaves, in_tree = flatten_primals(chosen)
            tape, values, grads = _evaluate(f, in_tree, leaves, has_aux, holomorphic, fun)
        if in_tree is SINGLE:
            g = grads[0] if single else (grads[0],)
        else:
            g = tree.unflatten(in_tree, grads)
            g = g[0] if single else g
        aux = separate_aux(tape.aux, (args, kwargs)) if has_aux else None
        if not with_value:
            return (g, aux) if has_aux else g
        value = tree.unflatten(tape.out_tree, values)
        return ((value, aux) if has_aux else value), g

    return evaluate


def _evaluate(f, in_tree, leaves, has_aux, holomorphic, user=None):
    """Return the tape of a function of one number, that number in a list, and the leaves of its gradient."""
    if holomorphic:
        _check_complex(leaves, "input")
    tape = Tape(f, in_tree, leaves, has_aux, False, user)
    values = tape.values()
    if tape.out_tree is LEAF and type(values[0]) is float64 and not holomorphic:  # as it mostly is
        seed = _ONE
    else:
        _check_scalar(values, tape.out_tree, holomorphic)
        seed = _ones_like(values[0])
    return tape, values, tape.pull([seed], keep=False)


_ONE = float64(1.0)


def _ones_like(x: Any) -> Any:
    return x.dtype.type(1.0) if is_numpy(x) else np.ones_like(x)


def _check_scalar(values: list, out_tree: Any, holomorphic: bool) -> None:
    one = len(values) == 1 and not issubclass(out_tree.type or object, (list, tuple, dict))
    if not one or values[0].shape != ():
        got = f"shape {values[0].shape} and dtype {values[0].dtype}" if one else f"the tree {out_tree}"
        raise NonScalarOutputError(
            f"grad needs a function whose output is one number, but it returned {got}. "
            "Return np.sum(...) or another scalar, or use fad.jacobian, fad.elementwise_grad or fad.vjp"
        )
    kind = values[0].dtype.kind
    if kind == "f" and not holomorphic:
        return
    refuse_integers(values, "grad")
    if holomorphic:
        _check_complex(values, "output")
    elif kind == "c":
        raise ComplexGradientError(
            "grad needs a real output, but it is complex. Take abs(z)**2 or z.real of it, "
            "or pass holomorphic=True if the function is complex-differentiable"
        )


def refuse_integers(values: list, what: str) -> None:
    """Refuse an output that is an integer or a boolean: its derivative does not exist, and is not zero."""
    for y in values:
        if y.dtype.kind not in "fc":
            raise IntegerOutputError(
                f"{what} needs an output of floating-point numbers, but its dtype is {y.dtype}: counts, comparisons "
                "and places (np.argmax, np.argsort) have no derivative. Differentiate what they choose "
                "(x[np.argmax(x)], np.sort(x)) or a smooth count; pass an integer beside the loss with has_aux=True; "
                "write a constant as a float"
            )


def _check_complex(values: list, what: str) -> None:
    for x in values:
        if x.dtype.kind != "c":
            raise ComplexGradientError(f"holomorphic=True needs a complex {what}, but its dtype is {x.dtype}")


def _with_integers(f, in_tree, leaves, has_aux, holomorphic):
    """Differentiate the inexact leaves; integers and booleans get zeros of their own dtype."""
    inexact = [as_value(x).dtype.kind in "fc" for x in leaves]
    leaves = [as_primal(x) if ok else x for x, ok in zip(leaves, inexact, strict=True)]
    chosen = [x for x, ok in zip(leaves, inexact, strict=True) if ok]

    def g(*values):
        it = iter(values)
        return f(*tree.unflatten(in_tree, [next(it) if ok else x for x, ok in zip(leaves, inexact, strict=True)]))

    xs, xs_tree = tree.flatten(tuple(chosen))
    tape, values, found = _evaluate(g, xs_tree, xs, has_aux, holomorphic)
    it = iter(found)
    return tape, values, [next(it) if ok else zeros_like(as_value(x)) for x, ok in zip(leaves, inexact, strict=True)]
