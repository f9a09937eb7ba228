"""What an operation is: the `Primitive`, the registry, and the table of NumPy callables that each answers for.

Everything about an operation stands in its module (`fad/ops`); here is only the form that is filled in there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fad.backends import AVOIDED, backend_of
from fad.backends.counterparts import explain
from fad.core.primitives.docstring_sections import PageOfInstance, document
from fad.core.primitives.docstrings import SignatureOfInstance, page
from fad.core.primitives.options import traced_ufunc_options, with_out
from fad.core.tracing.numpy_dispatch import FUNCTIONS, UFUNC_METHODS, UFUNCS, add_context
from fad.core.tracing.tracer import Tracer, bind, stack_list
from fad.core.tracing.views import ViewRule
from fad.core.tracing.weak import NUMPY_SCALARS, WEAK, on_number, on_numbers

# name -> Primitive or Composite: what the contract tests, and what the coverage table shows.
REGISTRY: dict[str, Any] = {}


@dataclass(eq=False, slots=True, kw_only=True, weakref_slot=True)
class Operation:
    """What the registry knows of every operation: its samples, and what the contract has to know of them.

    ``samples``
        ``(draw) -> calls``, of which the contract tries each.
    ``numpy``
        the NumPy and SciPy callables that it answers for.
    ``flat``
        whether its derivative is zero wherever it exists; "real" if only of real operands.
    ``complex``
        whether it is defined for complex operands.
    ``constants``
        which arguments the contract does not differentiate, by number or name.
    ``kinks``
        ``(*arguments) -> arrays`` whose zeros are the points where it has no derivative, where samples must not lie.
    ``numerical``
        False where differences say nothing about its derivative: of vectors that have a phase, of draws.
    ``order``
        the highest order, of three that are tested, to which derivatives are defined on the samples.
    ``rounding``
        "single" where the reference rounds a double result to single precision on the way.
    ``gauge``
        what of its result is a convention, in words.
    ``raises``
        the errors that `help` cannot infer, one in a line: ``"ValueError: The array has fewer than two axes."``.
    ``source``
        where the formula of its derivative, or its definition, stands in the literature: ``"DLMF 5.2, 5.15"``.
    """

    samples: Callable | None = None
    numpy: tuple = ()
    flat: bool | str = False
    complex: bool = True
    constants: tuple = ()
    kinks: Callable | None = None
    numerical: bool = True
    order: int = 3
    rounding: str = ""
    gauge: str = ""
    raises: str = ""
    source: str = ""


@dataclass(eq=False, slots=True)
class Primitive(Operation):
    """An operation with its derivative rules; calling it is running it.

    Arrays are positional and parameters keyword-only, so only a positional argument can be a tracer.
    Exactly one differential statement is needed: `partials`, or `jvp`, or `vjp`, or `flat`; the rest is derived.

    ``forward(*arrays, **params)``
        computes the value; written with NumPy's own functions, which arrays of a device answer too.
    ``partials``
        for elementwise operations, one function ``(z, *xs) -> dz/dx`` per operand; None where it is zero.
    ``jvp(tangents, y, xs, params) -> tangent``
        ``tangents`` holds one entry per operand, None where it is zero; at least one is not None.
    ``vjp``
        one function ``(ct, y, *xs, **params) -> ct of that operand`` per operand, or a single function for
        operations of any number of like operands, called with the operand's number: ``vjp(k, ct, y, *xs, **params)``.
    ``vjp_of_all``
        ``(ct, y, *xs, **params) -> [ct of each operand]``, in place of `vjp`: of many operands, in one go.
    ``batch(size, batched, xs, params) -> y``
        the same operation over a leading batch axis of the operands for which ``batched`` is true; the result
        carries the batch axis in front.
    ``saves``
        ``"all"``: the rules get operands and results; ``"operands"``: VJPs get None for the result, which is then not
        kept for them; ``"none"``: of the operands, too, only their ShapeDtypeStructs (linear operations);
        ``"indices"``: the same but for the arrays of an index, from number ``indexed`` on.
    ``choice``
        of an operation that chooses between its operands: ``(x, number) -> where the number is chosen``, which
        reverse mode keeps instead of the operand and the result.

    What else transforms and the compiler know of an operation stands here, too, so that none of them has a list of
    names. Of the derivatives:

    ``moves``
        whether it only moves, drops, repeats and adds up elements, so that its rules take masks as well as numbers.
    ``selects``
        whether its rules take and give `Masked` tangents and cotangents.
    ``differentiated``
        ``(*arrays, **params) -> y``, in other operations: what a differentiating transform runs in place of this one.
    ``swept``
        ``(ct, y, seeds) -> ct`` of an operation with effects, whose VJP runs in every sweep, with a cotangent or
        without; the seeds are the traced cotangents that the sweep began with.
    ``cotangent``
        ``(shape, dtype, index, ct)``, of an operation that reads elements: its operand's cotangent, not yet an array.
    ``declared``
        the partials as they were written; where a string stands, it says why there is none.

    Of batching, recording and sparsity:

    ``needs_trace``
        whether its batching rule is handed the trace instead of the number of batch elements.
    ``over_batch``
        of a loop, its batching rule that keeps the loop one.
    ``at_limit``
        whether it takes the limits of perturbed operands: see `fad.core.primitives.limits`.
    ``example``
        ``(*arrays, **params) -> y``, a cheap run of a loop whose results have the right types.
    ``mixes``
        where each element of the result depends on all elements along some axes of the operands, and is elementwise
        along the others: the parameter that names the axes, or the number of last axes. Without it, on all.
    ``dependence``
        how elements of the result depend on those of the operands, where the archetype does not say: see
        `fad.sparse.dependence`.
    ``refuses``
        which matrices it raises for, in a word: a program of `jit` runs it then, even if nothing reads the result.
    ``draws``
        whether the forward function draws from NumPy's global generator for ends of its own: SciPy estimates norms so.
    ``text``
        ``(*names, **params) -> str``: how `fad.source` writes a call, where the forward function is no reading.

    Of compilation:

    ``lower``
        of an elementwise operation, the expression of which kernels are made: ``"(1 / (1 + exp(-{0})))"``.
    ``bounds``
        of an elementwise operation, what is known of its result from the least and the greatest number of each operand:
        see `fad.ops.ufuncs.bounds`.
    ``lower_for``
        the expressions where they depend on the operands: of booleans alone ("b"), of integers ("i"), of floating-point
        numbers ("f").
    ``computes_in``
        of which dtype kernels compute it: the "result"'s, the common one of the "operands", or "booleans".
    ``cheap``
        whether it costs less to compute again than to keep its result; "far" if only where that leaves the cache.
    ``fresh``
        whether its result never shares memory with an operand.
    ``identity``
        whether its value is its operand's: only derivatives distinguish them.
    ``shape_only``
        whether it reads no more of its operand than the shape.
    ``indexed``
        of an operation that takes index arrays, the number of operands before them.
    ``updates``
        whether its result is its first operand with the second one put in at an index.
    ``adds``
        of such an operation, whether it adds to what is there.
    ``kind_varies``
        whether its results are real or complex as the values of its operands are.
    ``combines``
        of a reduction, the operation on two elements by which it combines them all, if there is one: `add`.
    ``positions``
        whether its results are positions along an axis, and so valid indices.
    ``symbol``
        what Python calls it: ``+``, ``**``, ``<``, ``abs``, ``.real``.
    ``array_form``
        of an operation on Python's own numbers, the one on arrays with the same rules.
    """

    name: str
    forward: Callable
    partials: tuple | None = None
    jvp: Callable | None = None
    vjp: Any = None
    vjp_of_all: Callable | None = None
    batch: Callable | None = None
    multi: bool = False  # returns a tuple of arrays
    skips_unread: bool = False  # of several results: its VJP takes None as the cotangent of one that nobody read
    saves: str = "all"
    archetype: str = "bare"
    domain: tuple = (-2.0, 2.0)
    doc: str = ""
    # Derived once, for the hot path: which of (z, x, y) each partial reads, and behind them all together.
    keep: tuple = ()
    on_scalars: Callable[..., Any] | None = None  # computes it of np.float64 and Python numbers; quicker than `forward`
    choice: Callable | None = None
    view: ViewRule | None = None  # of an operation whose result NumPy makes a view of its operand
    moves: bool = False
    selects: bool = False
    differentiated: Callable | None = None
    swept: Callable | None = None
    cotangent: Callable | None = None
    declared: tuple | None = None
    needs_trace: bool = False
    over_batch: Callable | None = None
    at_limit: bool = False
    example: Callable | None = None
    mixes: str | int | None = None
    dependence: str | None = None
    refuses: str | None = None
    draws: bool = False
    text: Callable | None = None
    lower: str | None = None
    bounds: Callable | None = None
    lower_for: dict[str, str] = field(default_factory=dict)
    computes_in: str = "result"
    cheap: bool | str = False
    fresh: bool = False
    identity: bool = False
    shape_only: bool = False
    indexed: int | None = None
    updates: bool = False
    adds: bool = False
    kind_varies: bool = False
    combines: Primitive | None = None
    positions: bool = False
    symbol: str | None = None
    array_form: Primitive | None = None

    def __call__(self, *args: Any, **params: Any) -> Any:
        return bind(self, *args, **params)

    def __repr__(self) -> str:
        return f"<fad operation {self.name}>"

    @property
    def __name__(self) -> str:
        return self.name.rpartition(".")[2]

    def __init_subclass__(cls) -> None:
        cls.__doc__ = PageOfInstance(cls.__doc__, page)  # type: ignore[assignment]


# What help() shows of an operation: its page and its signature, made when they are looked at.
Primitive.__doc__ = PageOfInstance(Primitive.__doc__, page)  # type: ignore[assignment]
Primitive.__signature__ = SignatureOfInstance()  # type: ignore[attr-defined]


class Unary(Primitive):
    """An elementwise operation of one operand, with a call of its own because it is on the hot path."""

    __slots__ = ()

    def __call__(self, x: Any, /, **options: Any) -> Any:
        if options:
            return with_ufunc_options(self, (x,), options)
        if type(x) is Tracer:
            return x.owner.unary(self, x)
        if type(x) in _CONTAINERS and has_tracer(x):
            return self(stack_list(x))
        try:
            if type(x) in WEAK and type(self.forward) is np.ufunc:
                return on_number(self.forward, x)
            return self.forward(x)
        except TypeError as error:
            explain(error)
            raise


class Binary(Primitive):
    """An operation of two operands and no parameters: elementwise, or matmul."""

    __slots__ = ()

    def __call__(self, x: Any, y: Any, /, **options: Any) -> Any:
        if options:
            return with_ufunc_options(self, (x, y), options)
        if type(x) is Tracer:
            trace = x.owner
            if type(y) is Tracer:
                other = y.owner
                if other is trace:
                    return trace.both(self, x, y)
                if other.birth > trace.birth:
                    return other.right(self, x, y)
            return trace.left(self, x, y)
        if type(y) is Tracer:
            return y.owner.right(self, x, y)
        if (type(x) in _CONTAINERS or type(y) in _CONTAINERS) and has_tracer((x, y)):
            return self(*[stack_list(z) if type(z) in _CONTAINERS else z for z in (x, y)])
        try:
            if (type(x) in NUMPY_SCALARS or type(y) in NUMPY_SCALARS) and type(self.forward) is np.ufunc:
                return on_numbers(self.forward, x, y)
            return self.forward(x, y)
        except TypeError as error:
            explain(error)
            raise


class Nary(Primitive):
    """A ufunc of three operands and more, or with several results."""

    __slots__ = ()

    def __call__(self, *args: Any, **options: Any) -> Any:
        return with_ufunc_options(self, args, options) if options else bind(self, *args)


def with_ufunc_options(prim: Primitive, args: tuple, options: dict) -> Any:
    """Run an elementwise operation with a ufunc's keyword arguments ``out``, ``where``, ``dtype``, ``casting`` ...

    On plain arrays NumPy does it all; with a tracer, what has a meaning for values is done, the rest refused.
    """
    out = options.get("out")
    outs = out if type(out) is tuple else (out,)
    if not any(type(x) is Tracer for x in (*args, *outs, options.get("where"))):
        return prim.forward(*args, **options)
    return traced_ufunc_options(prim, args, options)


@dataclass(eq=False, slots=True)
class Composite(Operation):
    """A public function written in other operations: it needs no rule, but passes the same contract."""

    name: str
    function: Callable
    archetype: str = "composite"


def register(operation: Any) -> Any:
    if operation.name in REGISTRY:
        raise ValueError(f"two operations are called {operation.name!r}")
    REGISTRY[operation.name] = operation
    return operation


def answer(numpy_callables: Any, function: Callable) -> None:
    """Let `function` answer for NumPy callables: ufuncs, ``(ufunc, "reduce")`` pairs, or functions."""
    for f in numpy_callables if type(numpy_callables) is tuple else (numpy_callables,):
        behind = getattr(f, "__wrapped__", None)  # with SCIPY_ARRAY_API=1 SciPy's ufuncs stand behind functions
        f = behind if isinstance(behind, np.ufunc) else f
        if isinstance(f, np.ufunc):
            UFUNCS[f] = function
        elif type(f) is list:
            UFUNC_METHODS[tuple(f)] = function
        else:
            FUNCTIONS[f] = function


def public(
    *numpy_callables: Any,
    name: str | None = None,
    samples: Callable | None = None,
    flat: bool | str = False,
    methods: tuple[str, ...] = (),
    own: bool = False,
    doc: str = "",
    **facts: Any,
) -> Callable:
    """Register a Python function as the public function of an operation, in NumPy's signature.

    It answers for the NumPy callables given, becomes a method of traced arrays for each name in `methods`,
    and enters the registry with its samples. `own` says that it runs on plain arrays, too, instead of NumPy's: it is
    given a function, whose closure may hold traced values. `doc` is the docstring of a function made by another one;
    parameters and results are added to it from NumPy's page. `facts` are fields of
    `Operation`.
    """

    def decorate(function: Callable) -> Callable:
        plain = numpy_callables[0] if numpy_callables else None
        document(function, name, doc, plain, facts.get("raises", ""), facts.get("source", ""))
        function = with_out(function)
        wrapper = function if own or not numpy_callables else _plain_first(function, numpy_callables[0])
        operation = Composite(
            name or function.__name__.rstrip("_"), wrapper, samples=samples, numpy=numpy_callables, flat=flat, **facts
        )
        register(operation)
        answer(numpy_callables, function)
        for method in methods:
            setattr(Tracer, method, function)
        return wrapper

    return decorate


def _plain_first(function: Callable, plain: Any) -> Callable:
    """Return a function that leaves plain arguments to NumPy itself and hands traced ones to `function`."""
    plain = getattr(plain[0], plain[1]) if type(plain) is list else plain
    known = plain.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            for x in args:
                if type(x) is Tracer or (type(x) in _CONTAINERS and has_tracer(x)):
                    return function(*args, **kwargs)
            if kwargs and has_tracer(tuple(kwargs.values())):
                return function(*args, **kwargs)
        except (ValueError, IndexError, TypeError) as error:
            add_context(error, plain, args)
            raise
        if known in AVOIDED and (on_device(args) or on_device(kwargs.values())):
            return function(*args, **kwargs)
        try:
            return plain(*args, **kwargs)
        except (TypeError, ValueError, AttributeError, NotImplementedError):
            if not on_device(args) and not on_device(kwargs.values()):
                raise
        return function(*args, **kwargs)  # what the library of the device does not offer, in operations it has

    return call


_CONTAINERS = (list, tuple)


def on_device(xs: Any) -> bool:
    """Return whether a (nested) list or tuple holds an array that does not live on the host."""
    return any(on_device(x) if type(x) in _CONTAINERS else backend_of(x).name != "numpy" for x in xs)


def has_tracer(xs: Any) -> bool:
    """Return whether a (nested) list or tuple holds a tracer."""
    return any(type(x) is Tracer or (type(x) in _CONTAINERS and has_tracer(x)) for x in xs)


def operations() -> Iterator[Any]:
    """Walk over every registered operation, in the order in which their modules are imported."""
    return iter(REGISTRY.values())
