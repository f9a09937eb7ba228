"""Python's `math` of traced numbers: what stands for its functions while a transform runs (`fad.core.stand_ins`).

``math.sin(x)`` makes a float of a traced x, which loses the derivative. So the names of such functions stand for what
is made here: of plain numbers they are `math`'s own, of traced ones operations that compute what `math` computes, raise
what it raises, and give a Python number, whose dtype does not count. Their derivatives are those of NumPy's functions.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import operator
import pkgutil
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.core.archetypes import make_elementwise, one, parameters
from fad.core.conversions import OFFERED
from fad.core.primitive import Primitive
from fad.core.stand_ins import FINDERS, HARMFUL
from fad.core.tracer import Trace, Tracer
from fad.core.weak import WeakFloat, is_weak, number
from fad.ops import elementwise

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def _take_real(x: Any) -> Any:
    """Return an argument as a real number of double precision, or raise as `math` does."""
    if type(x) is not Tracer:
        return float(x)
    if x.owner is Trace.of_plain:
        return float(x)
    if x.dtype.kind == "c":
        raise TypeError("must be real number, not complex")
    if x.ndim:
        float(np.broadcast_to(1.0, x.shape))  # raises as this version of NumPy does, or not
        x = x.reshape(())
    if x.dtype.kind != "f":
        return x * 1.0
    return x if x.dtype == np.float64 else x.astype(np.float64)


def _is_traced(args: tuple) -> bool:
    return Tracer in map(type, args)


# --- functions that are operations ------------------------------------------------------------------------------------


def _make(name: str, rules: Primitive) -> Primitive:
    """Return the operation that is a function of `math`, with the derivatives of one of NumPy's."""
    assert rules.partials is not None
    partials = tuple([p if p is None or p is one else _of_scalars(p) for p in rules.partials])
    function = getattr(math, name)
    return make_elementwise(
        f"math_{name}", _forward(function, rules.forward), partials, symbol=f"math.{name}", lower=rules.lower,
        computes_in=rules.computes_in, flat=rules.flat,
    )  # fmt: skip


def _of_scalars(partial: Callable) -> Callable:
    """Return a partial derivative that computes as NumPy does, which gives infinity where Python raises."""

    def scalars(*zs: Any) -> Any:
        return partial(*map(_as_scalar, zs))

    scalars.__dict__["parameters"] = parameters(partial)
    return scalars


def _as_scalar(x: Any) -> Any:
    if type(x) is Tracer:
        return x.owner.convert_to_array(x)
    return np.float64(x) if is_weak(x) else x


def _forward(function: Callable, of_arrays: Callable) -> Callable:
    """Return a function of `math` that takes arrays, too: those of a batch. It raises where an element does."""

    def forward(*xs: Any) -> Any:
        if not any(map(np.ndim, xs)):
            return WeakFloat(function(*map(number, xs)))
        with np.errstate(all="ignore"):
            y = of_arrays(*xs)
        if not np.all(np.isfinite(y)):
            for row in np.broadcast(*xs):
                function(*row)
        return y

    return forward


def _elements(function: Callable) -> Callable:
    return np.vectorize(function, otypes=[float])


def _digamma(x: Any) -> Any:
    return importlib.import_module("scipy.special").digamma(x)


_erf = make_elementwise(
    "erf", _elements(math.erf), (lambda _z, x: _TWO_OVER_ROOT_PI * np.exp(-x * x),), lower="erf({0})"
)
_erfc = make_elementwise(
    "erfc", _elements(math.erfc), (lambda _z, x: -_TWO_OVER_ROOT_PI * np.exp(-x * x),), lower="erfc({0})"
)
_remainder = make_elementwise("remainder", _elements(math.remainder), (one, lambda _z, x, y: -np.rint(x / y)))
_gamma = make_elementwise("gamma", _elements(math.gamma), (lambda z, x: z * _digamma(x),))
_lgamma = make_elementwise("lgamma", _elements(math.lgamma), (lambda _z, x: _digamma(x),))
_SAME = (
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
    "cbrt", "fabs", "degrees", "radians", "fmod", "copysign", "hypot",
)  # fmt: skip
_RENAMED = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")}
_RULES: dict[str, Primitive] = {
    **{name: getattr(elementwise, name) for name in _SAME},
    **{name: getattr(elementwise, rules) for name, rules in _RENAMED.items()},
    "pow": elementwise.power, "erf": _erf, "erfc": _erfc, "gamma": _gamma, "lgamma": _lgamma,
    "remainder": _remainder,
}  # fmt: skip
OPERATIONS = {name: _make(name, rules) for name, rules in _RULES.items() if hasattr(math, name)}


# --- functions that are made of others --------------------------------------------------------------------------------


def _log(x: Any, *base: Any) -> Any:
    y = OPERATIONS["log"](_take_real(x)) if type(x) is Tracer else math.log(x)
    return y / _log(*base) if base else y


@functools.cache
def _hypot_of(n: int) -> Primitive:
    """Return the operation on so many operands: `math` rounds once, a chain of two by two each time."""
    of_arrays = lambda *xs: functools.reduce(np.hypot, xs)
    lower = functools.reduce("hypot({0}, {1})".format, [f"{{{k}}}" for k in range(n)])
    partials = tuple([_of_operand(n, k) for k in range(n)])
    forward = _forward(math.hypot, of_arrays)
    return make_elementwise(f"math_hypot_{n}", forward, partials, symbol="math.hypot", lower=lower)


def _of_operand(n: int, k: int) -> Callable:
    """Return the partial derivative of a length by one of its coordinates; zero is the subgradient at the origin."""

    def partial(z: Any, *xs: Any) -> Any:
        return elementwise.over(xs[k], z)

    partial.__dict__["parameters"] = ("z", *["x" if i == k else "_x" for i in range(n)])
    return _of_scalars(partial)


@functools.cache
def _sum_of(n: int) -> Primitive:
    """Return the operation on so many operands, whose sum is exact: additions lose what is small beside the rest."""
    forward = _forward(lambda *xs: math.fsum(xs), _elements(lambda *xs: math.fsum(xs)))
    return make_elementwise(f"math_fsum_{n}", forward, (one,) * n, symbol="math.fsum")


def _hypot(*xs: Any) -> Any:
    if len(xs) < 2:
        return OPERATIONS["fabs"](_take_real(*xs))
    hypot = OPERATIONS["hypot"] if len(xs) == 2 else _hypot_of(len(xs))
    return hypot(*map(_take_real, xs))


def _dist(p: Iterable, q: Iterable) -> Any:
    return _hypot(*[a - b for a, b in zip(p, q, strict=True)])


def _prod(xs: Iterable, *, start: Any = 1) -> Any:
    return functools.reduce(operator.mul, xs, start)


def _fsum(xs: Iterable) -> Any:
    parts = [_take_real(x) for x in xs]
    return _sum_of(len(parts))(*parts)


def _sumprod(p: Iterable, q: Iterable) -> Any:
    return functools.reduce(operator.add, [a * b for a, b in zip(p, q, strict=True)], 0)


def _fma(x: Any, y: Any, z: Any) -> Any:
    return _take_real(x) * _take_real(y) + _take_real(z)


def _ldexp(x: Any, i: int) -> Any:
    return _take_real(x) * 2.0 ** operator.index(i)


def _modf(x: Any) -> tuple:
    fraction = OPERATIONS["fmod"](_take_real(x), 1.0)
    return fraction, x - fraction


def _ask(question: Callable) -> Callable:
    def asked(x: Any) -> Any:
        y = question(_take_real(x))
        return y if type(y) is Tracer else bool(y)

    return asked


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
    a, b = _take_real(a), _take_real(b)
    apart = np.abs(a - b)
    near = apart <= np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol)
    y = np.equal(a, b) | (near & np.isfinite(apart))
    return y if type(y) is Tracer else bool(y)


_MADE: dict[str, Callable] = {
    "log": _log, "hypot": _hypot, "dist": _dist, "prod": _prod, "fsum": _fsum, "sumprod": _sumprod, "fma": _fma,
    "ldexp": _ldexp, "modf": _modf, "isclose": _isclose, "isnan": _ask(np.isnan), "isinf": _ask(np.isinf),
    "isfinite": _ask(np.isfinite),
}  # fmt: skip
_OF_ITERABLES = frozenset({"dist", "prod", "fsum", "sumprod"})


# --- what stands for them ---------------------------------------------------------------------------------------------


class StandIn:
    """What stands for a function of `math`: equal to it, so that a table with functions for keys has the same keys.

    Copies and pickles are those of the function, a class makes no method of it, and its name and text are the same.
    """

    def __init__(self, original: Callable, call: Callable):
        self._original, self._call = original, call
        for name in ("__module__", "__name__", "__qualname__", "__doc__", "__self__", "__text_signature__"):
            setattr(self, name, getattr(original, name, None))
        if getattr(original, "__text_signature__", None):
            self.__signature__ = inspect.signature(original)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._call(*args, **options)

    def __eq__(self, other: object) -> bool:
        return self is other or self._original is other

    def __hash__(self) -> int:
        return hash(self._original)

    def __repr__(self) -> str:
        return repr(self._original)

    def __copy__(self) -> StandIn:
        return self

    def __deepcopy__(self, _: Any) -> StandIn:
        return self

    def __reduce__(self) -> tuple:
        return pkgutil.resolve_name, (f"math.{self._original.__name__}",)


def _stand_for_operation(original: Callable, operation: Primitive) -> Callable:
    arity = len(operation.partials or ())

    def call(*args: Any, **options: Any) -> Any:
        if _is_traced(args) and len(args) == arity and not options:
            return _leave(operation(*map(_take_real, args)))
        return original(*args, **options)

    return call


def _stand_for(original: Callable, own: Callable) -> Callable:
    taken = inspect.signature(own)

    def call(*args: Any, **options: Any) -> Any:
        traced = _is_traced((*args, *options.values()))
        return _leave(own(*args, **options)) if traced and _fits(taken, args, options) else original(*args, **options)

    return call


def _fits(taken: inspect.Signature, args: tuple, options: dict) -> bool:
    """Return whether a function takes such arguments; if not, that of `math` is to say so."""
    try:
        taken.bind(*args, **options)
    except TypeError:
        return False
    return True


def _stand_for_sum(original: Callable, own: Callable) -> Callable:
    taken = inspect.signature(own)

    def call(*args: Any, **options: Any) -> Any:
        args = tuple([list(x) if np.iterable(x) else x for x in args])
        traced = any(_is_traced(tuple(x)) for x in args if type(x) is list)
        return _leave(own(*args, **options)) if traced and _fits(taken, args, options) else original(*args, **options)

    return call


def _leave(y: Any) -> Any:
    """Return a result as Python's where no traced value was left in it: those behind handles are plain."""
    return number(y)


def _make_all() -> dict[str, Callable]:
    made: dict[str, Callable] = {}
    for name in OPERATIONS.keys() | _MADE.keys():
        original = getattr(math, name, None)
        if original is None:
            continue
        if name in _MADE:
            call = (_stand_for_sum if name in _OF_ITERABLES else _stand_for)(original, _MADE[name])
        else:
            call = _stand_for_operation(original, OPERATIONS[name])
        made[name] = StandIn(original, call)
    return made


STAND_INS = _make_all()


def pair_names(stand_ins: dict[int, Any], objects: dict[type, Any]) -> None:
    """Enter what stands for `math` and its functions."""
    if id(math) not in stand_ins:
        module = types.ModuleType("math", math.__doc__)
        vars(module).update(vars(math), **STAND_INS)
        stand_ins.update({id(getattr(math, name)): f for name, f in STAND_INS.items()})
        stand_ins[id(math)] = module


FINDERS.append(pair_names)
HARMFUL["math"] = frozenset(STAND_INS)
OFFERED.append(lambda name: name.startswith("math.") and name[len("math.") :] in ("", *STAND_INS))
