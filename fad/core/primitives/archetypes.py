"""Archetypes: constructors that fill a `Primitive`'s slots for the common kinds of operation.

``elementwise`` from partial derivatives, ``linear`` from a transpose, ``flat`` from nothing at all.
Rules are written with plain NumPy calls and operators: on arrays they run at NumPy's speed, on tracers they dispatch,
and so every rule can itself be differentiated and batched.
"""

from __future__ import annotations

import functools
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.cotangent import Masked
from fad.core.primitives.primitive import Binary, Nary, Primitive, Unary, answer, register
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import is_array
from fad.core.tracing.weak import QUICK, note_operators


def one(*_: Any) -> float:
    """The partial derivative 1, recognised by identity so that nothing is multiplied."""
    return 1.0


def minus_one(*_: Any) -> float:
    """The partial derivative -1."""
    return -1.0


def fit(ct: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Bring a cotangent to the shape and dtype of its operand: sum over broadcast axes, drop the imaginary part.

    Both are transposes: of broadcasting, and of the embedding of the reals in the complex numbers.
    """
    if type(ct) is Masked:
        same = ct.value.shape == shape and ct.value.dtype == dtype
        return ct if same else ct.move(lambda c: fit(c, shape, dtype))
    given = ct.shape
    if given != shape:
        axes = _find_summed_axes(given, shape)
        if axes:
            ct = np.add.reduce(ct, axis=axes) if type(ct) is np.ndarray else ct.sum(axis=axes)
        if ct.shape != shape:
            ct = ct.reshape(shape)
    return cast(ct, dtype)


@functools.lru_cache(1024)
def _find_summed_axes(given: tuple, shape: tuple) -> tuple:
    lead = len(given) - len(shape)
    return tuple(range(lead)) + tuple(lead + i for i, d in enumerate(shape) if d == 1 and given[lead + i] != 1)


def cast(x: Any, dtype: np.dtype) -> Any:
    """Convert to a dtype; from complex to real by taking the real part, silently and on purpose."""
    if x.dtype == dtype:
        return x
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    return x if x.dtype == dtype else x.astype(dtype)


def spread(t: Any, y: Any) -> Any:
    """Bring a tangent to the shape and dtype of the result it belongs to: the transpose of `fit`."""
    if type(t) is Masked:
        same = t.value.shape == y.shape and t.value.dtype == y.dtype
        return t if same else t.move(lambda c: spread(c, y))
    if t.shape != y.shape:
        t = np.broadcast_to(t, y.shape)
    return t if t.dtype is y.dtype else cast(t, y.dtype)


# --- elementwise -----------------------------------------------------------------------------------------------


def elementwise(
    name: str,
    *partials: Callable | None,
    numpy: Any = None,
    forward: Callable | None = None,
    operator: str | None = None,
    domain: Any = (-2.0, 2.0),
    complex: bool = False,
    samples: Callable | None = None,
    answers: tuple = (),
    doc: str = "",
    **facts: Any,
) -> Primitive:
    """Make an elementwise operation from its partial derivatives, one ``(z, *xs) -> dz/dx`` per operand.

    An operand or result that a partial does not read is named with a leading underscore, and is then not kept
    for the backward pass. ``None`` is a partial that is zero everywhere; all None makes a flat operation.
    `domain` is an interval, or one per operand, for the samples; `complex` says that complex operands are defined.
    `doc` says in a sentence what is computed, where no ufunc of that name does; `facts` are more of `Primitive`,
    and `steep`, of an operation with slopes that may be infinite or NaN: a test of ``(z, *xs)`` that says whether one
    is, and reads no more than each partial does.
    """
    numpy = numpy or getattr(np, name, None)
    prim = make_elementwise(
        name,
        forward or numpy,
        partials,
        samples=samples,
        numpy=tuple(f for f in (numpy, *answers) if f is not None),
        domain=domain,
        complex=complex,
        doc=doc,
        **facts,
    )
    register(prim)
    answer(prim.numpy, prim)
    if operator:
        install_operator(prim, operator)
    return prim


STEEP: dict[Callable, Callable] = {}
"""Of each partial derivative that may be infinite: the test that says whether it is, see `elementwise`."""


def make_elementwise(name: str, run: Any, partials: tuple, *, steep: Callable | None = None, **facts: Any) -> Primitive:
    """Make the same of what computes it and its partial derivatives, without a place in the registry."""
    arity = len(partials)
    if steep is not None:
        STEEP.update(dict.fromkeys([p for p in partials if p not in (None, one, minus_one)], steep))
    make = {1: Unary, 2: Binary}.get(arity, Nary)
    facts.setdefault("flat", all(p is None for p in partials))
    prim = make(name, run, partials=partials, archetype="elementwise", **facts)
    reads = tuple(_reads(p, arity) for p in partials)
    prim.keep = (*reads, tuple(map(any, zip(*reads, strict=True))))
    prim.on_scalars = QUICK.get(run, run)
    prim.jvp = lambda tangents, y, xs, params: elementwise_jvp(partials, tangents, y, xs)
    prim.vjp = tuple(_elementwise_vjp(i, p) for i, p in enumerate(partials))
    prim.batch = lambda size, batched, xs, params: prim(*align(batched, xs), **params)
    return prim


def _reads(partial: Any, arity: int) -> tuple[bool, ...]:
    """Return which of ``(z, *xs)`` a partial derivative reads, from the names of its parameters."""
    if partial is None or partial is one or partial is minus_one:
        return (False,) * (arity + 1)
    return tuple([not n.startswith("_") for n in parameters(partial)])


def parameters(function: Any) -> tuple[str, ...]:
    """Return the names of a Python function's parameters; one that was made by another function has them noted."""
    noted = function.__dict__.get("parameters")
    code = function.__code__  # a hundred times quicker than inspect.signature, at every import of fad
    return noted if noted is not None else code.co_varnames[: code.co_argcount]


def elementwise_jvp(partials: tuple, tangents: Any, y: Any, xs: Any) -> Any:
    if len(partials) == 1 and type(tangents[0]) is not Masked:
        return spread(scale(tangents[0], partials[0], (y, xs[0])), y)
    if Masked in map(type, tangents):
        with np.errstate(all="ignore"):  # once for all terms: it takes as long as two small operations
            return _join(partials, tangents, y, xs)
    return _join(partials, tangents, y, xs)


def _join(partials: tuple, tangents: Any, y: Any, xs: Any) -> Any:
    total = None
    for t, partial in zip(tangents, partials, strict=True):
        if t is None or partial is None:
            continue
        if partial is one:
            term = t
        elif type(t) is Masked:
            term = t.quietly(partial, (y, *xs))
        else:
            term = t * partial(y, *xs)
        total = term if total is None else total + term
    return None if total is None else spread(total, y)


def scale(t: Any, partial: Callable, saved: tuple) -> Any:
    """Return a tangent or cotangent times a partial derivative."""
    if partial is one:
        return t
    return t.times(partial, saved) if type(t) is Masked else t * partial(*saved)


def _elementwise_vjp(i: int, partial: Callable | None) -> Callable | None:
    if partial is None:
        return None

    def vjp(ct, y, *xs):
        return fit(scale(ct, partial, (y, *xs)), xs[i].shape, xs[i].dtype)

    return vjp


def align(batched: tuple, xs: tuple) -> list:
    """Give operands with a leading batch axis the rank at which NumPy's broadcasting does the right thing."""
    ranks = [np.ndim(x) - b for x, b in zip(xs, batched, strict=True)]
    rank = max(ranks)
    out = []
    for x, b, own in zip(xs, batched, ranks, strict=True):
        missing = rank - own
        out.append(x.reshape(x.shape[:1] + (1,) * missing + x.shape[1:]) if b and missing else x)
    return out


# --- linear ----------------------------------------------------------------------------------------------------


def linear(
    name: str,
    forward: Callable,
    transpose: Callable,
    batch: Callable,
    *,
    samples: Callable | None = None,
    archetype: str = "linear",
    doc: str = "",
    **facts: Any,
) -> Primitive:
    """Make an operation that is linear in its one operand: ``transpose(ct, x, **params)``, x a ShapeDtypeStruct."""
    prim = Primitive(name, forward, archetype=archetype, saves="none", batch=batch, samples=samples, doc=doc, **facts)
    prim.jvp = lambda tangents, y, xs, params: prim(tangents[0], **params)
    prim.vjp = (lambda ct, y, x, **params: transpose(ct, x, **params),)
    return register(prim)


def flat(name: str, forward: Callable | None = None, *, numpy: Any = None, batch: Callable, **slots: Any) -> Primitive:
    """Make an operation whose derivative is zero wherever it exists: integers, booleans, rounding, sorting orders."""
    numpy = numpy or getattr(np, name, None)
    run: Any = forward or numpy
    return register(Primitive(name, run, flat=True, batch=batch, archetype="flat", **slots))


# --- operators -------------------------------------------------------------------------------------------------

BINARY_METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
COMPARISON_METHODS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
UNARY_METHODS = {"neg": "neg", "pos": "pos", "abs": "abs", "~": "invert"}


# How classes compare, beside text, of which no instance equals a number: None, functions, sets.
_EQUAL_TO_NO_NUMBER = (object.__eq__, type(None).__eq__, set.__eq__, frozenset.__eq__, dict.__eq__)


def _compare_with_object(x: Tracer, y: Any, differs: bool) -> Any:
    """Return what NumPy answers where an array meets what is no number: it compares the elements one by one.

    It is NotImplemented where `y` may have an answer of its own.
    """
    if isinstance(y, numbers.Number):
        raise TypeError(
            f"a {type(y).__name__} was compared with a traced value, which is no exact number: write float(y)"
        )
    no_number = isinstance(y, (str, bytes)) or type(y).__eq__ in _EQUAL_TO_NO_NUMBER
    return np.full(x.shape, differs) if no_number and is_array(x) else NotImplemented


_SEQUENCES = frozenset({list, tuple, str, bytes})


def _repeats(x: Tracer) -> bool:
    """Return whether a sequence times a traced value is the sequence so many times: it is for a whole number."""
    return not x.shape and x.dtype.kind in "iu" and not is_array(x)


def install_operator(prim: Primitive, symbol: str) -> None:
    """Make a Python operator on tracers run `prim`; written out so that the hot path is one call deep."""
    prim.symbol = symbol
    times = symbol == "*"

    def forwards(x, y):
        trace = x.owner
        if type(y) is Tracer:
            other = y.owner
            if other is trace:
                return trace.both(prim, x, y)
            if other.birth > trace.birth:
                return other.right(prim, x, y)
        elif times and type(y) in _SEQUENCES and _repeats(x):
            return y * operator.index(x)
        return trace.left(prim, x, y)

    def compared(x, y):
        out = NotImplemented if isinstance(y, (str, bytes)) else forwards(x, y)
        return _compare_with_object(x, y, symbol == "!=") if out is NotImplemented else out

    def backwards(y, x):
        if times and type(x) in _SEQUENCES and _repeats(y):
            return x * operator.index(y)
        return y.owner.right(prim, x, y)

    def alone(x):
        return x.owner.unary(prim, x)

    note_operators(forwards, backwards, alone)
    if symbol in UNARY_METHODS:
        setattr(Tracer, f"__{UNARY_METHODS[symbol]}__", alone)
    elif symbol in ("==", "!="):
        setattr(Tracer, f"__{COMPARISON_METHODS[symbol]}__", compared)
    elif symbol in COMPARISON_METHODS:
        setattr(Tracer, f"__{COMPARISON_METHODS[symbol]}__", forwards)
    else:
        setattr(Tracer, f"__{BINARY_METHODS[symbol]}__", forwards)
        setattr(Tracer, f"__r{BINARY_METHODS[symbol]}__", backwards)
