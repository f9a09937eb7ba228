"""Taylor mode: push a truncated power series through the program, and so all derivatives along a curve at once.

A tracer's `info` is the `Series` of its derivatives in t; one that is zero is None. There is no second set of rules.
Each operation's series follows from the one differential statement that it has:

- of a linear operation each derivative is the operation's own derivative along the operands' derivative of that order;
- of a product (multiplication, matmul, einsum, convolution) it is Leibniz's sum, and a quotient is solved from it;
- of all else the statement says ``y' = rule(x, y) x'``. The rule is run once on series that are not computed yet: an
  order of ``y'`` requests lower orders of x and y alone, and becomes the next order of y. What a rule requests twice is
  one series, so that sin and cos, each the derivative of the other, are computed side by side.

The series of a rule live until the operation that they belong to is done; a program's own are computed at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import is_numpy_scalar
from fad.core.primitives.archetypes import STEEP
from fad.core.primitives.cotangent import densify
from fad.core.primitives.limits import take_derivative, take_limit
from fad.core.runs.transformed import as_run
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer
from fad.core.tracing.views import is_writeable
from fad.errors import TreeMismatchError
from fad.ops.ufuncs.elementwise import divide, multiply
from fad.transforms.arguments.check import (
    as_flat,
    check_like,
    flatten_primals,
    is_inexact,
    root,
    run,
    separate,
    separate_aux,
    split_operands,
    zeros_like,
)
from fad.transforms.custom_rules import RULES, Call, check_closed, push_call
from fad.transforms.jvp import _like
from fad.transforms.push_tangents import BEGINS_STEEP, push_with_care, transposed_vjp
from fad.transforms.reverse.slopes import select_by_constant
from fad.typing import PyTree

_NUMBERS = (bool, int, float, complex)
_SMALL = 1024  # bytes up to which constants of a rule are distinguished by their numbers


class Series:
    """A value and its derivatives in t of order 1, 2, ... as far as they are known; None is zero."""

    __slots__ = ("known", "step")

    def __init__(self, known: list, step: Step | None):
        self.known = known
        self.step = step

    def get(self, k: int) -> Any:
        """Return the derivative of order k."""
        if k >= len(self.known):
            assert self.step is not None, "a derivative was requested that nothing computes"
            self.step.reach(k)
        return self.known[k]


class JetTrace(Trace):
    """The trace of Taylor mode."""

    __slots__ = ("order", "limit", "tape", "memo", "steep")
    kind = "a Taylor-mode transform (jet)"

    def __init__(self, order: int):
        super().__init__()
        self.order = order
        self.limit = order  # up to which order an operation is computed; in a rule, one less than its result is
        self.tape: list | None = None  # the steps of the rule that is being run, if one is
        self.memo: dict = {}  # what the rules of one operation of the program have requested
        self.steep = BEGINS_STEEP.get()  # whether a slope may have been infinite, as in `fad.transforms.jvp.JVPTrace`

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        if prim.differentiated is not None:
            return prim.differentiated(*args, **params)
        operands = split_operands(self, args)
        if operands is None:
            return NotImplemented
        values, tracers = operands
        xs = [v if t is None else t for v, t in zip(values, tracers, strict=True)]
        series = [t if t is None else t.info for t in tracers]
        make = _step(prim)
        key = None
        if self.tape is not None or make is Differential:
            key = _key(prim, xs, params)
            if key in self.memo and self.memo[key][1] >= self.limit:
                return self.memo[key][0]
        y = bind(prim, *values, **params)
        if prim.flat:
            return y
        self.steep = self.steep or (prim.partials is not None and prim.partials[0] in STEEP)
        step = make(self, series)
        outs = self.attach(step, y if prim.multi else (y,))
        out = tuple(outs) if prim.multi else outs[0]
        step.tell(prim, xs, values, y, out, params)
        if key is not None:
            self.memo[key] = out, self.limit, xs, params  # the operands live as long as their ids are requested
        outs = self.settle(step, outs)
        return tuple(outs) if prim.multi else outs[0]

    def attach(self, step: Step, ys: Iterable) -> list:
        """Make a step's results, of which no derivative is known yet."""
        step.results = [Series([y], step) for y in ys]
        return [tracer(s.known[0], self, s) if is_inexact(s.known[0]) else as_flat(s.known[0]) for s in step.results]

    def settle(self, step: Step, outs: list) -> list:
        """Leave a step of a rule for later, and compute one of the program's own; return the results."""
        if self.tape is not None:
            self.tape.append(step)
            return outs
        self.tape = []
        try:
            step.reach(self.order)
        finally:
            self.tape = None
            self.memo = {}
            step.close()
        return [self.attach_derivatives(y.wrapped, y.info.known[1:]) if type(y) is Tracer else y for y in outs]

    def attach_derivatives(self, y: Any, cs: list) -> Any:
        """Return a value with its derivatives: plain, if all are zero."""
        return y if all(c is None for c in cs) else tracer(y, self, Series([y, *cs], None))

    def rate(self, x: Tracer) -> Tracer:
        """Return the derivative of a value in t, as a value of a rule."""
        key = ("rate", id(x))
        if key not in self.memo:
            first = x.info.get(1)
            step = Rate(self, [x.info])
            (t,) = self.attach(step, [zeros_like(x.wrapped) if first is None else first])
            t.info.known[0] = first
            self.memo[key] = t, x
            self.settle(step, [t])
        return self.memo[key][0]


def _key(prim: Any, xs: list, params: dict) -> Any:
    """Return the key that says whether two operations of a rule are one and the same, or None if that is not known."""
    try:
        key = (prim, *map(_name, xs), *[(k, type(v), v) for k, v in params.items()])
        hash(key)
    except TypeError:
        return None
    return key


def _name(x: Any) -> Any:
    if type(x) in _NUMBERS:
        return type(x), repr(x)
    if (type(x) is np.ndarray or is_numpy_scalar(x)) and x.nbytes <= _SMALL:
        return type(x), x.dtype, x.shape, x.tobytes()
    return id(x)


# --- steps: how the next derivative of an operation's results is computed -------------------------------------------


class Step:
    """One operation: its operands' series (None for a constant), and those of its results."""

    __slots__ = ("trace", "series", "results", "prim", "params", "values")

    def __init__(self, trace: JetTrace, series: list):
        self.trace = trace
        self.series = series
        self.results: list[Series] = []

    def tell(self, prim: Any, xs: list, values: list, y: Any, out: Any, params: dict) -> None:
        """Say what is computed: operands and result, each as series and as values."""
        self.prim = prim
        self.params = params
        self.values = values

    def reach(self, k: int) -> None:
        """Compute the results up to order k."""
        results = self.results
        while results and len(results[0].known) <= k:
            for s, c in zip(results, self.next(len(results[0].known)), strict=True):
                s.known.append(c)

    def next(self, k: int) -> list:
        """Return the derivative of order k of each result."""
        raise TypeError(f"{type(self).__name__} does not say how it goes on")

    def close(self) -> None:
        """Let go of what computes the results: they are known."""
        for s in self.results:
            s.step = None


class Linear(Step):
    """An operation whose derivative does not depend on where it is taken."""

    __slots__ = ()

    def next(self, k: int) -> list:
        ts = [None if s is None else s.get(k) for s in self.series]
        if all(t is None for t in ts):
            return [None]
        return [densify(self.prim.jvp(ts, self.results[0].known[0], self.values, self.params))]


class Product(Step):
    """An operation linear in each of two operands: the sum of Leibniz."""

    __slots__ = ()

    def next(self, k: int) -> list:
        (a, b), (x, y) = self.series, self.values
        if a is None or b is None:
            ts = [None if s is None else s.get(k) for s in (a, b)]
            if self.trace.steep and any(t is not None for t in ts):
                return [push_with_care(self.prim, ts, self.results[0].known[0], [x, y], self.params)]
            return [self.times(ts[0], y) if b is None else self.times(x, ts[1])]
        total = None
        for i in range(k + 1):
            total = _plus(total, _scale(self.times(a.get(i), b.get(k - i)), math.comb(k, i)))
        return [total]

    def times(self, a: Any, b: Any) -> Any:
        return None if a is None or b is None else bind(self.prim, a, b, **self.params)


class Quotient(Step):
    """The quotient z = x / y, from Leibniz's sum for x = y z."""

    __slots__ = ()

    def next(self, k: int) -> list:
        (a, b), (z,) = self.series, self.results
        below = self.values[1]
        top = None if a is None else a.get(k)
        rest = None
        for i in range(1, k + 1):
            d, e = None if b is None else b.get(i), z.known[k - i]
            rest = _plus(rest, None if d is None or e is None else _scale(d * e, math.comb(k, i)))
        if rest is not None:
            top = -rest if top is None else top - rest
        if top is None:
            return [None]
        found = np.divide(top, below)
        return [select_by_constant(found, self.values[0]) if a is None and self.trace.steep else found]


class Rate(Step):
    """The derivative in t of a series: the same numbers, one order lower."""

    __slots__ = ()

    def next(self, k: int) -> list:
        return [self.series[0].get(k + 1)]


class Differential(Step):
    """An operation known by its derivative: ``y' = rule(x')``, whose orders below k give order k of y."""

    __slots__ = ("limit", "first", "rule", "xs", "found", "steps", "needed")

    def tell(self, prim: Any, xs: list, values: list, y: Any, out: Any, params: dict) -> None:
        rule = _rule(prim)
        self.by(xs, lambda ts: rule(ts, y, values, params), lambda ts: rule(ts, out, xs, params))

    def by(self, xs: list, first: Callable, rule: Callable) -> None:
        """Say how tangents of the operands give those of the results: of the values, and of series."""
        self.limit = self.trace.limit
        self.xs = xs
        self.first = first
        self.rule = rule
        self.found: list | None = None
        self.steps: list = []

    def next(self, k: int) -> list:
        if self.limit == 1:
            ts = [None if s is None else s.get(1) for s in self.series]
            return [None] * len(self.results) if all(t is None for t in ts) else list(self.first(ts))
        if self.found is None:
            self.found = self.run()
            self.needed = _find_needed(self.steps, [t.info.step for t in self.found if self.mine(t)])
        for step in self.needed:  # in their order, so that no long chain of them is walked by recursion
            step.reach(k - 1)
        return [t.info.get(k - 1) if self.mine(t) else t if k == 1 else None for t in self.found]

    def mine(self, t: Any) -> bool:
        return type(t) is Tracer and t.owner is self.trace

    def run(self) -> list:
        """Run the rule on series; what it computes beyond their values is left for later."""
        trace = self.trace
        outer = trace.tape, trace.limit
        trace.tape, trace.limit = self.steps, self.limit - 1
        try:
            return list(self.rule([trace.rate(x) if self.mine(x) else None for x in self.xs]))
        finally:
            trace.tape, trace.limit = outer

    def close(self) -> None:
        super().close()
        for step in self.steps:
            step.close()
        self.steps = []


def _rule(prim: Any) -> Callable:
    """Return ``rule(ts, y, xs, params)`` that gives a list of tangents."""
    if prim.jvp is None:
        return lambda ts, y, xs, params: [transposed_vjp(prim, ts, y, xs, params)]
    return prim.jvp if prim.multi else lambda ts, y, xs, params: [densify(prim.jvp(ts, y, xs, params))]


def _find_needed(steps: list, wanted: Iterable) -> list:
    """Return those steps, in their order, on which the wanted ones depend."""
    ids = {id(step) for step in wanted}
    found = []
    for step in reversed(steps):
        if id(step) in ids:
            found.append(step)
            ids.update(id(s.step) for s in step.series if s is not None)
    return found[::-1]


@functools.lru_cache(4096)
def _step(prim: Any) -> type[Step]:
    if prim is multiply or prim.archetype == "bilinear":
        return Product
    if prim is divide:
        return Quotient
    # `keep` says what the partial derivatives of an elementwise operation read: nothing, and they are constant
    constant = prim.partials is not None and not any(prim.keep[-1])
    linear = constant or prim.saves == "none" or prim.archetype in ("linear", "selection")
    return Linear if linear and not prim.multi else Differential


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _scale(x: Any, factor: int) -> Any:
    return x if x is None or factor == 1 else x * float(factor)


# --- custom rules -----------------------------------------------------------------------------------------------------


def _custom_rule(trace: JetTrace, call: Call, xs: tuple) -> list:
    trace.check_alive()
    values = [trace.lower(x) for x in xs]
    series = [x.info if x is not v else None for x, v in zip(xs, values, strict=True)]
    zeros = [zeros_like(v) for v in values]
    step = Differential(trace, series)
    outs = trace.attach(step, check_closed(trace, call(*values), call))

    def push(at: list, ts: list) -> list:
        return push_call(call, at, [z if t is None else t for t, z in zip(ts, zeros, strict=True)])[1]

    def first(ts: list) -> list:
        return check_closed(trace, push(values, ts), call)

    def rule(ts: list) -> list:
        # On series a value from outside looks like one of the operands, so the rule is tried on the values first.
        first([None if s is None else s.get(1) for s in series])
        return push(list(xs), ts)

    step.by(list(xs), first, rule)
    return trace.settle(step, outs)


RULES[JetTrace] = _custom_rule


# --- the transform ----------------------------------------------------------------------------------------------------


def jet(
    fun: Callable, primals: PyTree, series: PyTree, factorial_scaled: bool = True, *, has_aux: bool = False
) -> tuple:
    """Push a curve through a function: all its derivatives up to some order in one pass.

    With ``x(t) = primals + series[0] t + series[1] t**2 / 2! + ...``, these are the derivatives of ``fun(x(t))`` at
    t = 0.

    Parameters
    ----------
    fun : callable
        Function of the primals.
    primals : tuple or list
        The point: one array, number or pytree for each argument.
    series : tuple or list
        For each argument, the derivatives of the curve of order 1, 2, ..., as a list, equally many for all;
        each has the shape and dtype of its primal. For a pytree, a list stands in the place of each leaf.
    factorial_scaled : bool
        If false, `series` and the result hold the coefficients of the powers of t: derivatives divided by k!.
    has_aux : bool, keyword only
        If true, `fun` returns ``(output, aux)``.

    Returns
    -------
    (primals_out, series_out) or (primals_out, series_out, aux)
        The value, and in the place of each of its leaves the list of its derivatives: what `jet` takes as `series`.

    Raises
    ------
    TreeMismatchError
        if `series` does not fit the primals, or its lists are of different lengths;
    ShapeMismatchError, DtypeMismatchError, IntegerInputError
        if a derivative does not fit its primal, or the primal has none.

    Notes
    -----
    For a program of products, quotients, powers, elementary functions and factorisations the cost grows with the square
    or cube of the order, that of nested `jvp` like 2**order; that of a function of matrices (``expm``, ``logm``) is
    about three times higher with each order. Inside `jit` all is compiled.
    The recurrences are those of A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM 2008, chapter 13,
    got here from each operation's derivative; the signature is that of ``jax.experimental.jet``.

    Examples
    --------
    The first four derivatives of the sine of t**2 at t = 1:

    >>> import numpy as np
    >>> y, (d1, d2, d3, d4) = jet(lambda t: np.sin(t * t), (1.0,), ([1.0, 0.0, 0.0, 0.0],))
    >>> round(d1, 6), round(d4, 6)  # 2 cos 1, and 4 sin 1 - 48 cos 1
    (np.float64(1.080605), np.float64(-22.568627))
    """
    xs, terms, in_tree = _curve(primals, series)
    if not factorial_scaled:
        terms = [[_scale(c, math.factorial(k)) for k, c in enumerate(cs, 1)] for cs in terms]
    terms = [[*map(_or_none, cs)] for cs in terms]
    taken = {id(root(c)) for cs in terms for c in cs}
    values, known, out_tree, aux = expand(fun, xs, terms, in_tree, has_aux)
    found = []
    for y, cs in zip(values, known, strict=True):
        cs = [zeros_like(y) if c is None else _like(y, c) for c in cs]
        if not factorial_scaled:
            cs = [c if k < 2 else c / float(math.factorial(k)) for k, c in enumerate(cs, 1)]
        found.append([_own(c, taken) for c in cs])
    out, series_out = tree.unflatten(out_tree, separate(values, xs)), tree.unflatten(out_tree, found)
    return (out, series_out, separate_aux(aux, (xs, terms))) if has_aux else (out, series_out)


def expand(fun: Callable, xs: Any, terms: Any, in_tree: Any, has_aux: bool = False) -> tuple[list, list, Any, Any]:
    """Run a function on series of its leaves; return values and derivatives flat, their structure, and what is beside.

    A derivative that is zero is None.
    """
    order = len(terms[0])
    trace = JetTrace(order)

    def call() -> Any:
        tracers = [tracer(x, trace, Series([x, *cs], None)) for x, cs in zip(xs, terms, strict=True)]
        return as_run(fun)(*tree.unflatten(in_tree, tracers))

    ys, out_tree, aux = run(fun, trace, call, has_aux)
    values = [trace.hand_out(take_limit(trace.lower(y), derivative=False)) for y in ys]
    known = [y.info.known[1:] if type(y) is Tracer and y.owner is trace else [None] * order for y in ys]
    return values, [[None if c is None else take_derivative(c) for c in cs] for cs in known], out_tree, aux


def _curve(primals: Any, series: Any) -> tuple[list, list, Any]:
    """Check what the user gave; return the leaves, the derivatives of each, and the structure."""
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        raise TypeError("jet takes primals and series as tuples: jet(f, (x,), ([x1, x2],))")
    xs, in_tree = flatten_primals(tuple(primals), "a primal of jet")
    try:
        terms = in_tree.flatten_up_to(tuple(series))
    except (ValueError, TypeError) as error:
        raise TreeMismatchError(
            "the series of jet must have a list of derivatives for each array of the primals, whose structure is "
            f"{in_tree}: {error}"
        ) from None
    if not xs:
        raise TreeMismatchError("jet needs at least one array among the primals")
    for cs in terms:
        if not isinstance(cs, (tuple, list)):
            raise TreeMismatchError(
                "the series of jet must have a list of derivatives for each array of the primals, "
                f"jet(f, (x,), ([x1, x2],)), but one of them is a {type(cs).__name__}"
            )
    lengths = sorted({len(cs) for cs in terms})
    if len(lengths) > 1:
        raise TreeMismatchError(
            f"the series of jet must have as many derivatives for each primal, but they have {lengths}; "
            "append zeros to the shorter ones"
        )
    what = "a derivative in the series of jet"
    terms = [check_like(cs, [x] * len(cs), what) for x, cs in zip(xs, terms, strict=True)]
    return xs, terms, in_tree


def _or_none(c: Any) -> Any:
    """Return a derivative given by the user, None if it is zero; only the host's plain arrays are asked."""
    return None if (type(c) is np.ndarray or is_numpy_scalar(c)) and not np.any(c) else c


def _own(c: Any, taken: set) -> Any:
    """Return a derivative that shares no memory with the arguments or with another one."""
    if type(c) is not np.ndarray:
        return c
    if id(root(c)) in taken or not is_writeable(c):
        c = c.copy()
    taken.add(id(root(c)))
    return c
