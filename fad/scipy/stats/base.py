"""What a distribution is: its standard form, loc and scale, SciPy's methods, and its place in the registry."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.stats

from fad.core.primitives.docstring_sections import PageOfInstance
from fad.core.primitives.primitive import has_tracer, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, outcome
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.quadrature import quad
from fad.scipy.special.build import may_hold, number
from fad.scipy.stats.estimates import ENTROPIES, Estimates
from fad.scipy.stats.moments import HEAVY, MOMENTS, Summaries
from fad.scipy.stats.pages import page
from fad.transforms.custom import custom_jvp


def operands(xs: tuple) -> list:
    """Return operands in double precision, as SciPy's distributions compute whatever they are given."""
    wider = [x.dtype for x in xs if hasattr(x, "dtype") and x.dtype.kind == "f"]
    dtype = np.result_type(float, *wider)
    return [x if hasattr(x, "dtype") and x.dtype == dtype else as_array(x).astype(dtype)[()] for x in xs]


class Draws:
    """Random numbers of a distribution, as SciPy draws them."""

    name: str

    def rvs(self, *args, **named):
        """Return random numbers, as SciPy draws them.

        Those of a continuous distribution follow its ``loc`` and ``scale``. Raises DerivativeError if another parameter
        is traced, for SciPy's draws do not follow it.

        >>> import fad
        >>> from fad.scipy.stats import norm
        >>> fad.grad(lambda m: norm.rvs(m, 0.5, size=3, random_state=0).sum())(2.0)
        np.float64(3.0)
        """
        if not has_tracer((*args, *named.values())):
            return getattr(scipy.stats, self.name).rvs(*args, **named)
        shapes, last = getattr(self, "shapes", ()), getattr(self, "last", ())
        given = dict(zip((*shapes, *last, "size", "random_state"), args, strict=False)) | named
        others = {name: x for name, x in given.items() if name not in last}
        if last != ("loc", "scale") or has_tracer(others.values()):
            raise DerivativeError(
                f"{self.name}.rvs has no derivative in its parameters, for SciPy's draws do not follow them; "
                "draw standard numbers outside the function and transform them inside (mean + scale * z, or "
                f"{self.name}.ppf(u, ...) of uniform u), or use fad.random"
            )
        loc, scale = (as_array(given.get(name, default)) for name, default in (("loc", 0.0), ("scale", 1.0)))
        if np.any(scale < 0):
            raise ValueError(f"{self.name}.rvs needs a scale of at least 0, but was given {stop_gradient(scale)}")
        shape = np.broadcast_shapes(*[np.shape(x) for x in (loc, scale, *map(others.get, shapes))])
        others = {"size": shape or None, **{name: x for name, x in others.items() if x is not None}}
        z = getattr(scipy.stats, self.name).rvs(**others)
        if np.broadcast_shapes(np.shape(z), shape) != np.shape(z):
            raise ValueError(f"size does not match the broadcast shape of the parameters. {others['size']}, {shape}")
        return loc + scale * z

    def keep(self, *args, **named):
        """Return the attributes of the distribution with such parameters, by name."""
        return {"args": args, "kwds": named, "dist": self}


class Distribution(Draws, Summaries, Estimates):
    """What continuous and discrete distributions share: the names of their parameters, and a place in the registry."""

    def __init__(self, name: str, shapes: tuple, domains: tuple, points: tuple):
        self.name = name
        self.shapes = shapes
        self.domains = domains  # of the shapes, for samples
        self.points = points  # where to sample the argument

    def __init_subclass__(cls) -> None:
        cls.__doc__ = PageOfInstance(cls.__doc__, page)  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<fad.scipy.stats.{self.name}>"

    def _parameters(self, args: tuple, named: dict, last: tuple) -> list:
        """Match positional and named parameters with the shapes, then loc and scale."""
        names = (*self.shapes, *last)
        if len(args) > len(names):
            raise TypeError(f"{self.name} takes the parameters {', '.join(names)}, but {len(args)} were given")
        found = dict(zip(names, args, strict=False))
        for key, value in named.items():
            if key not in names or key in found:
                raise TypeError(
                    f"{self.name} takes the parameters {', '.join(names)}; {key!r} is unknown or given twice"
                )
            found[key] = value
        missing = [n for n in self.shapes if n not in found]
        if missing:
            raise TypeError(f"{self.name} needs the shape parameters {', '.join(missing)}")
        return [found.get(n, {"loc": 0.0, "scale": 1.0}.get(n)) for n in names]

    def _register(self, method: str, domain: tuple) -> None:
        def samples(s):
            # A column, and rows and numbers beside it: every way to broadcast in one call, as there are many methods.
            ends = (domain, *self.domains, (-0.1, 0.1), (0.9, 1.5))
            shapes = ((3, 1), *[(), (4,)] * len(self.domains))[: len(ends) - 2]
            shapes = (*shapes, (), (4,))
            return [call(*[s.real(*shape, low=a, high=b) for shape, (a, b) in zip(shapes, ends, strict=True)])]

        name = f"scipy.stats.{self.name}.{method}"
        setattr(self, method, public(name=name, samples=samples)(getattr(self, method)))


    def _enter_moments(self, ends: tuple) -> None:
        """Enter the mean, the variance and the standard deviation into the registry, where formulas are known."""
        if self.name in HEAVY:
            ends = (*[(a + 4.5, b + 4.5) for a, b in ends[: len(self.shapes)]], *ends[len(self.shapes) :])
        methods = ("mean", "var", "std") if self.name in MOMENTS else ()
        for method in (*methods, *(("entropy",) if self.name in ENTROPIES else ())):
            samples = lambda s: [call(*[s.real(3, low=a, high=b) if type(a) is float else a for a, b in ends])]
            name = f"scipy.stats.{self.name}.{method}"
            setattr(self, method, public(name=name, samples=samples)(getattr(self, method)))


class Continuous(Distribution):
    """A continuous distribution, from the functions of its standard form.

    Every method takes the argument, the shapes, then ``loc`` and ``scale``, positional or by name, and broadcasts.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.stats import norm
    >>> fad.grad(lambda m: np.sum(norm.logpdf(np.array([0.0, 1.0, 5.0]), m, 2.0)))(1.0)
    np.float64(0.75)
    """

    last = ("loc", "scale")  # its parameters behind the shapes

    def __init__(
        self, name: str, shapes: tuple, *, logpdf: Callable, cdf: Callable, sf: Callable, ppf: Callable, isf: Callable,
        support: Any = (-math.inf, math.inf), logcdf: Callable | None = None, logsf: Callable | None = None,
        domains: tuple = (), points: tuple = (-1.5, 1.5), valid: Callable | None = None,
    ):  # fmt: skip
        super().__init__(name, shapes, domains, points)
        self._logpdf, self._cdf, self._sf, self._ppf, self._isf = logpdf, cdf, sf, ppf, isf
        self._logcdf = logcdf or (lambda y, *s: _log_of(cdf(y, *s), sf(y, *s)))
        self._logsf = logsf or (lambda y, *s: _log_of(sf(y, *s), cdf(y, *s)))
        self._support = support
        self._valid = valid or (lambda *shapes: all_positive(shapes))
        for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
            self._register(method, points)
        for method in ("ppf", "isf"):
            self._register(method, (0.1, 0.9))
        self._enter_moments((*domains, (-0.1, 0.1), (0.9, 1.5)))

    def _standard(self, x: Any, args: tuple, named: dict) -> tuple:
        x, *shapes, loc, scale = operands((x, *self._parameters(args, named, self.last)))
        return (x - loc) / _usable(scale), shapes, loc, scale

    def _evaluate(self, x, args, named, function, below, above, density=False):
        """Evaluate inside the support, with constants on either side, and NaN for impossible parameters."""
        y, shapes, _, scale = self._standard(x, args, named)
        low, high = stop_gradient(self._ends(shapes))
        ends = callable(self._support) or np.isfinite([low, high]).any()
        # NaN lies nowhere, and goes through the formula.
        outside = (y < low) | (y > high) if density else (y <= low) | (y >= high)
        outside = outside | np.isinf(y) if density and ends else outside
        value = function(np.where(outside, np.zeros_like(y) + _inner(low, high), y), *shapes)
        if density:
            value = value - np.log(_usable(scale))
        if ends or (not density and may_hold(outside)):
            value = np.where(outside, np.where(y <= low, below, above), value)
        return self._mask(value, y, shapes, scale)

    def _ends(self, shapes: list) -> tuple:
        """Return the ends of the support, which may depend on the shapes."""
        return self._support(*shapes) if callable(self._support) else self._support

    def _mask(self, value, y, shapes, scale):
        # Each by itself: the numbers of a batch under traced values of several ranks do not broadcast.
        bad = may_hold(scale <= 0) or (shapes and may_hold(np.logical_not(self._valid(*shapes))))
        # NaN times what it depends on, and not NaN alone, whose derivative would be 0
        value = np.where((scale > 0) & self._valid(*shapes), value, np.nan * (value + scale)) if bad else value
        return value[()]  # of a number a scalar, and no array without axes

    def logpdf(self, x, *args, **named):
        """Return the logarithm of the density: -inf outside the support."""
        return self._evaluate(x, args, named, self._logpdf, -np.inf, -np.inf, density=True)

    def pdf(self, x, *args, **named):
        """Return the density."""
        return _exp(self.logpdf(x, *args, **named))

    def cdf(self, x, *args, **named):
        """Return the probability of a value up to `x`."""
        return self._evaluate(x, args, named, self._cdf, 0.0, 1.0)

    def sf(self, x, *args, **named):
        """Return the probability of a value above `x`, accurate where it is small."""
        return self._evaluate(x, args, named, self._sf, 1.0, 0.0)

    def logcdf(self, x, *args, **named):
        """Return the logarithm of `cdf`."""
        return self._evaluate(x, args, named, self._logcdf, -np.inf, 0.0)

    def logsf(self, x, *args, **named):
        """Return the logarithm of `sf`."""
        return self._evaluate(x, args, named, self._logsf, 0.0, -np.inf)

    def ppf(self, q, *args, **named):
        """Return the quantile: the value up to which the probability is `q`."""
        return self._quantile(q, args, named, self._ppf)

    def isf(self, q, *args, **named):
        """Return the value above which the probability is `q`."""
        return self._quantile(q, args, named, self._isf)

    def median(self, *args, **named):
        """Return the median."""
        return self.ppf(0.5, *args, **named)

    def interval(self, confidence, *args, **named):
        """Return the ends between which a value lies with a probability, as likely below them as above."""
        below = (1.0 - confidence) / 2.0
        return self.ppf(below, *args, **named), self.ppf(1.0 - below, *args, **named)

    def expect(self, func=None, args=(), loc=0.0, scale=1.0, lb=None, ub=None, conditional=False, **options):
        """Return the expected value of a function of a number by ``scipy.integrate.quad``, between two ends.

        The derivative follows the parameters, the ends and what `func` finds outside its argument.

        >>> from fad.scipy.stats import norm
        >>> fad.grad(lambda m: norm.expect(lambda x: x**2, loc=m))(1.5).round(6)
        np.float64(3.0)
        """
        f = (lambda x: x) if func is None else func
        shapes, *_ = self._parts((*args, loc, scale), {})
        ends = [
            given if given is not None else loc + scale * end if np.isfinite(number(end)) else end
            for given, end in zip((lb, ub), self._ends(shapes), strict=True)
        ]
        below = [self.cdf(end, *args, loc, scale) for end in ends]
        shares = [below[0] + (below[1] - below[0]) * p for p in (0.05, 0.95)]  # the body and the tails
        inside = stop_gradient([self.ppf(p, *args, loc, scale) for p in shares])
        places = [ends[0], *inside, ends[1]]
        mass = lambda x: f(x) * self.pdf(x, *args, loc, scale)
        y = sum(quad(mass, a, b, **options)[0] for a, b in itertools.pairwise(places))
        return y / (below[1] - below[0]) if conditional else y

    def nnlf(self, theta, x):
        """Return minus the logarithm of the likelihood of a sample: `theta` has the shapes, the loc and the scale."""
        return -np.sum(self.logpdf(x, *theta))

    def _parts(self, args, named):
        *shapes, loc, scale = operands(tuple(self._parameters(args, named, self.last)))
        return shapes, loc, scale

    def _mask_moment(self, value, shapes, scale):
        return self._mask(as_array(value) + 0.0 * scale, as_array(value), shapes, scale)

    def _quantile(self, q, args, named, function):
        q, *shapes, loc, scale = operands((q, *self._parameters(args, named, self.last)))
        inside = (q > 0) & (q < 1)
        value = function(np.where(inside, q, 0.5 + 0.0 * q), *shapes)
        if may_hold(np.logical_not(inside)):
            low, high = self._ends(shapes)[:: 1 if function is self._ppf else -1]
            value = np.where(inside, value, np.where(q == 0, low, np.where(q == 1, high, np.nan)))
        return self._mask(value * scale + loc, q, shapes, scale)


def all_positive(shapes):
    ok = np.bool_(True)
    for s in shapes:
        ok = ok & (s > 0)
    return ok


def _inner(low, high):
    """Return a point inside a support, at which a formula may be evaluated for nothing."""
    if hasattr(low, "dtype") or hasattr(high, "dtype"):
        bounded_below, bounded_above = np.isfinite(low), np.isfinite(high)
        low, high = np.where(bounded_below, low, 0.0), np.where(bounded_above, high, 0.0)
        one_sided = np.where(bounded_below, low + 1.0, np.where(bounded_above, high - 1.0, 0.0))
        return np.where(bounded_below & bounded_above, 0.5 * (low + high), one_sided)
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low + 1.0 if np.isfinite(low) else high - 1.0 if np.isfinite(high) else 0.0


def _usable(scale):
    """Return a scale that can be divided by; where it is none, the result becomes NaN later."""
    return np.where(scale > 0, scale, np.ones_like(scale)) if may_hold(scale <= 0) else scale


def _log_of(p, rest):
    """Return log(p) of a probability, given 1 - p too: accurate where p is near 1, and -inf where it is 0."""
    high = p > 0.5
    gone = p == 0
    low = np.log(np.where(high | gone, 0.5, p))
    return np.where(gone, -np.inf, np.where(high, np.log1p(-np.where(high, rest, 0.5)), low))


def _exp(x):
    # exp(-inf) is a constant 0: its derivative is not 0 * inf.
    gone = x == -np.inf
    if not may_hold(gone):
        return np.exp(x)
    return np.where(gone, 0.0, np.exp(np.where(gone, np.zeros_like(x), x)))[()]


@custom_jvp
def _whole(k):
    return np.floor(k)


@_whole.defjvp
def _no_derivative_in_a_count(primals, tangents):
    raise DerivativeError(
        "a distribution of counts has no derivative in the count: it is a function of integers. Keep it constant "
        "(fad.stop_gradient), or use a continuous distribution"
    )


class Discrete(Distribution):
    """A discrete distribution: ``logpmf``, ``pmf``, ``cdf``, ``sf`` of a count, differentiable in its real parameters.

    Examples
    --------
    >>> import fad
    >>> from fad.scipy.stats import poisson
    >>> fad.grad(lambda rate: poisson.logpmf(3, rate))(2.0)
    np.float64(0.5)
    """

    last = ("loc",)

    def __init__(self, name, shapes, *, logpmf, cdf, sf, least=0, most=None, domains=(), counts=()):
        super().__init__(name, shapes, domains, ())
        self._logpmf, self._cdf, self._sf, self._least, self._most = logpmf, cdf, sf, least, most
        self.counts = counts  # where to sample the argument
        for method in ("logpmf", "pmf", "cdf", "sf"):
            self._enter(method, counts)
        self._enter_moments((*domains, (-0.1, 0.1)))

    def _parts(self, args, named):
        *shapes, loc = self._parameters(args, named, self.last)
        *shapes, loc = operands((*shapes, loc))
        return shapes, loc, 1.0

    def _enter(self, method, counts):
        def samples(s):
            drawn = [s.real(4, low=a, high=b) if type(a) is float else a for a, b in self.domains]
            return [call(np.array(counts), *drawn), call(counts[1], *drawn)]

        name = f"scipy.stats.{self.name}.{method}"
        setattr(self, method, public(name=name, samples=samples)(getattr(self, method)))

    def _evaluate(self, k, args, named, function, below, above, only_integers):
        *shapes, loc = self._parameters(args, named, self.last)
        k, *shapes = operands((k, *shapes))
        k = k - loc
        count = _whole(k) if type(k) is Tracer and k.dtype.kind == "f" else np.floor(k)
        top = np.inf if self._most is None else self._most(*shapes)
        outside = (count < self._least) | (count > top) | (count == np.inf)  # and NaN lies nowhere
        safe = np.where(outside, np.zeros_like(count) + float(self._least), count)
        value = np.where(outside, np.where(count < self._least, below, above), function(safe, *shapes))
        return (np.where((k < count) | (k > count), below, value) if only_integers else value)[()]

    def logpmf(self, k, *args, **named):
        """Return the logarithm of the probability of the count `k`: -inf where it is impossible."""
        return self._evaluate(k, args, named, self._logpmf, -np.inf, -np.inf, True)

    def pmf(self, k, *args, **named):
        """Return the probability of the count `k`."""
        return _exp(self.logpmf(k, *args, **named))

    def expect(self, func=None, args=(), loc=0, lb=None, ub=None, conditional=False):
        """Return the expected value of a function of a count between two ends; counts of no weight are left out.

        >>> from fad.scipy.stats import poisson
        >>> fad.grad(lambda rate: poisson.expect(lambda k: k**2, (rate,)))(1.5).round(6)
        np.float64(4.0)
        """
        f = (lambda k: k) if func is None else func
        shapes, loc, _ = self._parts((*args, loc), {})
        first, last = [int(np.max(outcome(number(k)))) for k in (loc + self._least, loc + self._find_last(shapes))]
        first, last = first if lb is None else int(lb), last if ub is None else int(ub)
        counts = np.arange(first, last + 1)
        weights = self.pmf(counts, *args, loc)
        y = sum(f(k) * w for k, w in zip(counts, weights, strict=True))
        return y / np.sum(weights) if conditional else y

    def _find_last(self, shapes):
        """Return the largest count, or one above which no weight is left."""
        if self._most is not None:
            return self._most(*shapes)
        plain, shapes = getattr(scipy.stats, self.name), [outcome(number(s)) for s in shapes]
        last = np.max(plain.isf(1e-12, *shapes))
        while np.max(plain.sf(last, *shapes)) > 1e-30:
            last = np.ceil(1.2 * last + 1)
        return last

    def cdf(self, k, *args, **named):
        """Return the probability of a count up to `k`."""
        return self._evaluate(k, args, named, self._cdf, 0.0, 1.0, False)

    def sf(self, k, *args, **named):
        """Return the probability of a count above `k`."""
        return self._evaluate(k, args, named, self._sf, 1.0, 0.0, False)
