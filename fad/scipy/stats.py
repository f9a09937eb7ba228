"""``scipy.stats``, differentiable: densities, distribution functions and quantiles of the common distributions.

``norm.logpdf(x, loc, scale)`` and its kin have SciPy's names and signatures, and derivatives in the argument, the shapes,
``loc`` and ``scale``, to any order. Quantiles (``ppf``) are differentiated by the implicit function theorem.
A count (the argument of a discrete distribution, the n of a binomial) is an integer and has no derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

from fad.core.primitive import public
from fad.core.samples import call
from fad.scipy.special.build import number

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "geom", "gumbel_l", "gumbel_r",
    "halfnorm", "invgamma", "laplace", "logistic", "lognorm", "multivariate_normal", "nbinom", "norm", "pareto", "poisson",
    "rayleigh", "t", "uniform", "vonmises", "weibull_min",
]  # fmt: skip

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _array(x: Any) -> Any:
    return x if hasattr(x, "dtype") and x.dtype.kind in "fc" else np.asarray(x, dtype=float)[()]


def _operands(xs: tuple) -> list:
    """Return operands as floating-point values; Python numbers in the precision of the arrays beside them."""
    dtypes = [x.dtype for x in xs if hasattr(x, "dtype") and x.dtype.kind == "f"]
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(float)
    return [x if hasattr(x, "dtype") and x.dtype.kind == "f" else np.asarray(x, dtype=dtype)[()] for x in xs]


class _Distribution:
    """What continuous and discrete distributions share: the names of their parameters, and their place in the registry."""

    def __init__(self, name: str, shapes: tuple, domains: tuple, points: tuple):
        self.name = name
        self.shapes = shapes
        self.domains = domains  # of the shapes, for samples
        self.points = points  # where to sample the argument

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
            ends = (domain, *self.domains, (-0.1, 0.1), (0.9, 1.5))
            return [
                call(*[s.real(3, 4, low=a, high=b) for a, b in ends]),
                call(s.real(4, low=domain[0], high=domain[1]), *[s.real(low=a, high=b) for a, b in ends[1:]]),
            ]

        name = f"scipy.stats.{self.name}.{method}"
        setattr(self, method, public(name=name, samples=samples)(getattr(self, method)))


class Continuous(_Distribution):
    """A continuous distribution, from the functions of its standard form.

    Every method takes the argument, the shapes, then ``loc`` and ``scale``, positional or by name, and broadcasts.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.stats import norm
    >>> fad.grad(lambda m: np.sum(norm.logpdf(np.array([0.0, 1.0, 5.0]), m, 2.0)))(1.0)
    np.float64(0.75)
    """

    def __init__(
        self, name: str, shapes: tuple, *, logpdf: Callable, cdf: Callable, sf: Callable, ppf: Callable, isf: Callable,
        support: tuple = (-math.inf, math.inf), logcdf: Callable | None = None, logsf: Callable | None = None,
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

    def _standard(self, x: Any, args: tuple, named: dict) -> tuple:
        x, *shapes, loc, scale = _operands((x, *self._parameters(args, named, ("loc", "scale"))))
        return (x - loc) / _usable(scale), shapes, loc, scale

    def _evaluate(self, x, args, named, function, below, above, density=False):
        """Evaluate inside the support, with constants on either side and NaN for parameters that make no distribution."""
        y, shapes, _, scale = self._standard(x, args, named)
        low, high = self._support
        if density:
            inside = (y >= low) & (y <= high)
        else:
            inside = (y > low) & (y < high)
        middle = _inner(low, high)
        value = function(np.where(inside, y, np.zeros_like(y) + middle), *shapes)
        if density:
            value = value - np.log(_usable(scale))
        value = np.where(inside, value, np.where(y <= low, below, above)) if np.isfinite([low, high]).any() else value
        return self._masked(value, y, shapes, scale)

    def _masked(self, value, y, shapes, scale):
        bad = number(scale <= 0) | ~number(self._valid(*shapes)) if shapes else number(scale <= 0)
        return np.where((scale > 0) & self._valid(*shapes), value, np.nan) if np.any(bad) else value

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

    def _quantile(self, q, args, named, function):
        q, *shapes, loc, scale = _operands((q, *self._parameters(args, named, ("loc", "scale"))))
        inside = (q > 0) & (q < 1)
        value = function(np.where(inside, q, 0.5 + 0.0 * q), *shapes)
        if not np.all(number(inside)):
            low, high = self._support if function is self._ppf else self._support[::-1]
            value = np.where(inside, value, np.where(q == 0, low, np.where(q == 1, high, np.nan)))
        return self._masked(value * scale + loc, q, shapes, scale)


def all_positive(shapes):
    ok = np.bool_(True)
    for s in shapes:
        ok = ok & (s > 0)
    return ok


def _inner(low, high):
    """Return a point inside a support, at which a formula may be evaluated for nothing."""
    if np.isfinite(low) and np.isfinite(high):
        return 0.5 * (low + high)
    return low + 1.0 if np.isfinite(low) else high - 1.0 if np.isfinite(high) else 0.0


def _usable(scale):
    """Return a scale that can be divided by; where it is none, the result becomes NaN later."""
    return np.where(scale > 0, scale, np.ones_like(scale)) if np.any(number(scale <= 0)) else scale


def _log_of(p, rest):
    """Return log(p) of a probability, given 1 - p too: accurate where p is near 1, and -inf where it is 0."""
    high = p > 0.5
    gone = p == 0
    low = np.log(np.where(high | gone, 0.5, p))
    return np.where(gone, -np.inf, np.where(high, np.log1p(-np.where(high, rest, 0.5)), low))


def _exp(x):
    # exp(-inf) is a constant 0: its derivative is not 0 * inf.
    gone = x == -np.inf
    if not np.any(number(gone)):
        return np.exp(x)
    return np.where(gone, 0.0, np.exp(np.where(gone, np.zeros_like(x), x)))


# --- on the whole line ---------------------------------------------------------------------------------------------------

norm = Continuous(
    "norm", (), logpdf=lambda y: -0.5 * y * y - _HALF_LOG_TAU, cdf=sc.ndtr, sf=lambda y: sc.ndtr(-y), ppf=sc.ndtri,
    isf=lambda q: -sc.ndtri(q), logcdf=sc.log_ndtr, logsf=lambda y: sc.log_ndtr(-y),
)  # fmt: skip
t = Continuous(
    "t", ("df",), cdf=lambda y, df: sc.stdtr(df, y), sf=lambda y, df: sc.stdtr(df, -y), domains=((2.0, 6.0),),
    ppf=lambda q, df: sc.stdtrit(df, q), isf=lambda q, df: -sc.stdtrit(df, q),
    logpdf=lambda y, df: (
        sc.gammaln(0.5 * df + 0.5) - sc.gammaln(0.5 * df) - 0.5 * np.log(math.pi * df)
        - 0.5 * (df + 1.0) * np.log1p(y * y / df)
    ),
)  # fmt: skip
laplace = Continuous(
    "laplace", (), logpdf=lambda y: -np.abs(y) - math.log(2.0), points=(0.3, 2.0),
    cdf=lambda y: np.where(y > 0, 1.0 - 0.5 * np.exp(-np.abs(y)), 0.5 * np.exp(-np.abs(y))),
    sf=lambda y: np.where(y < 0, 1.0 - 0.5 * np.exp(-np.abs(y)), 0.5 * np.exp(-np.abs(y))),
    ppf=lambda q: np.where(q > 0.5, -np.log(2.0 * (1.0 - q)), np.log(2.0 * q)),
    isf=lambda q: np.where(q > 0.5, np.log(2.0 * (1.0 - q)), -np.log(2.0 * q)),
)  # fmt: skip
logistic = Continuous(
    "logistic", (), logpdf=lambda y: sc.log_expit(y) + sc.log_expit(-y), cdf=sc.expit, sf=lambda y: sc.expit(-y),
    ppf=sc.logit, isf=lambda q: -sc.logit(q), logcdf=sc.log_expit, logsf=lambda y: sc.log_expit(-y),
)  # fmt: skip
cauchy = Continuous(
    "cauchy", (), logpdf=lambda y: -math.log(math.pi) - np.log1p(y * y), cdf=lambda y: np.arctan2(np.ones_like(y), -y) / math.pi,
    sf=lambda y: np.arctan2(np.ones_like(y), y) / math.pi, ppf=lambda q: -1.0 / np.tan(math.pi * q),
    isf=lambda q: 1.0 / np.tan(math.pi * q),
)  # fmt: skip
gumbel_r = Continuous(
    "gumbel_r", (), logpdf=lambda y: -y - np.exp(-y), cdf=lambda y: np.exp(-np.exp(-y)), sf=lambda y: -np.expm1(-np.exp(-y)),
    ppf=lambda q: -np.log(-np.log(q)), isf=lambda q: -np.log(-np.log1p(-q)), logcdf=lambda y: -np.exp(-y),
)  # fmt: skip
gumbel_l = Continuous(
    "gumbel_l", (), logpdf=lambda y: y - np.exp(y), cdf=lambda y: -np.expm1(-np.exp(y)), sf=lambda y: np.exp(-np.exp(y)),
    ppf=lambda q: np.log(-np.log1p(-q)), isf=lambda q: np.log(-np.log(q)), logsf=lambda y: -np.exp(y),
)  # fmt: skip

# --- on the half line ----------------------------------------------------------------------------------------------------

_HALF_LINE = {"support": (0.0, math.inf), "points": (0.6, 3.0)}
expon = Continuous(
    "expon", (), logpdf=lambda y: -y, cdf=lambda y: -np.expm1(-y), sf=lambda y: np.exp(-y), ppf=lambda q: -np.log1p(-q),
    isf=lambda q: -np.log(q), logsf=lambda y: -y, **_HALF_LINE,
)  # fmt: skip
gamma = Continuous(
    "gamma", ("a",), logpdf=lambda y, a: sc.xlogy(a - 1.0, y) - y - sc.gammaln(a), cdf=lambda y, a: sc.gammainc(a, y),
    sf=lambda y, a: sc.gammaincc(a, y), ppf=lambda q, a: sc.gammaincinv(a, q), isf=lambda q, a: sc.gammainccinv(a, q),
    domains=((0.7, 3.0),), **_HALF_LINE,
)  # fmt: skip
invgamma = Continuous(
    "invgamma", ("a",), logpdf=lambda y, a: -(a + 1.0) * np.log(y) - sc.gammaln(a) - 1.0 / y,
    cdf=lambda y, a: sc.gammaincc(a, 1.0 / y), sf=lambda y, a: sc.gammainc(a, 1.0 / y),
    ppf=lambda q, a: 1.0 / sc.gammainccinv(a, q), isf=lambda q, a: 1.0 / sc.gammaincinv(a, q),
    domains=((0.7, 3.0),), **_HALF_LINE,
)  # fmt: skip
chi2 = Continuous(
    "chi2", ("df",), cdf=lambda y, df: sc.gammainc(0.5 * df, 0.5 * y), sf=lambda y, df: sc.gammaincc(0.5 * df, 0.5 * y),
    ppf=lambda q, df: 2.0 * sc.gammaincinv(0.5 * df, q), isf=lambda q, df: 2.0 * sc.gammainccinv(0.5 * df, q),
    logpdf=lambda y, df: sc.xlogy(0.5 * df - 1.0, y) - 0.5 * y - sc.gammaln(0.5 * df) - 0.5 * math.log(2.0) * df,
    domains=((1.5, 5.0),), **_HALF_LINE,
)  # fmt: skip


def _f_logpdf(y, n, d):
    log_beta = sc.betaln(0.5 * n, 0.5 * d)
    return (
        0.5 * n * np.log(n)
        + 0.5 * d * np.log(d)
        + sc.xlogy(0.5 * n - 1.0, y)
        - 0.5 * (n + d) * np.log(d + n * y)
        - log_beta
    )


f = Continuous(
    "f", ("dfn", "dfd"), logpdf=_f_logpdf, cdf=lambda y, n, d: sc.fdtr(n, d, y), sf=lambda y, n, d: sc.fdtrc(n, d, y),
    ppf=lambda q, n, d: sc.fdtri(n, d, q), isf=lambda q, n, d: 1.0 / sc.fdtri(d, n, q), domains=((2.2, 5.0), (2.2, 5.0)),
    **_HALF_LINE,
)  # fmt: skip
lognorm = Continuous(
    "lognorm", ("s",), logpdf=lambda y, s: -0.5 * (np.log(y) / s) ** 2 - np.log(s * y) - _HALF_LOG_TAU,
    cdf=lambda y, s: sc.ndtr(np.log(y) / s), sf=lambda y, s: sc.ndtr(-np.log(y) / s), ppf=lambda q, s: np.exp(s * sc.ndtri(q)),
    isf=lambda q, s: np.exp(-s * sc.ndtri(q)), domains=((0.5, 1.5),), **_HALF_LINE,
)  # fmt: skip
weibull_min = Continuous(
    "weibull_min", ("c",), logpdf=lambda y, c: np.log(c) + sc.xlogy(c - 1.0, y) - y**c, cdf=lambda y, c: -np.expm1(-(y**c)),
    sf=lambda y, c: np.exp(-(y**c)), logsf=lambda y, c: -(y**c), ppf=lambda q, c: (-np.log1p(-q)) ** (1.0 / c),
    isf=lambda q, c: (-np.log(q)) ** (1.0 / c), domains=((0.7, 3.0),), **_HALF_LINE,
)  # fmt: skip
rayleigh = Continuous(
    "rayleigh", (), logpdf=lambda y: np.log(y) - 0.5 * y * y, cdf=lambda y: -np.expm1(-0.5 * y * y),
    sf=lambda y: np.exp(-0.5 * y * y), logsf=lambda y: -0.5 * y * y, ppf=lambda q: np.sqrt(-2.0 * np.log1p(-q)),
    isf=lambda q: np.sqrt(-2.0 * np.log(q)), **_HALF_LINE,
)  # fmt: skip
halfnorm = Continuous(
    "halfnorm", (), logpdf=lambda y: 0.5 * math.log(2.0 / math.pi) - 0.5 * y * y, cdf=lambda y: sc.erf(y / math.sqrt(2.0)),
    sf=lambda y: sc.erfc(y / math.sqrt(2.0)), ppf=lambda q: sc.ndtri(0.5 * (1.0 + q)), isf=lambda q: -sc.ndtri(0.5 * q),
    **_HALF_LINE,
)  # fmt: skip
pareto = Continuous(
    "pareto", ("b",), logpdf=lambda y, b: np.log(b) - (b + 1.0) * np.log(y), cdf=lambda y, b: -np.expm1(-b * np.log(y)),
    sf=lambda y, b: y**-b, logsf=lambda y, b: -b * np.log(y), ppf=lambda q, b: (1.0 - q) ** (-1.0 / b),
    isf=lambda q, b: q ** (-1.0 / b), domains=((0.8, 3.0),), support=(1.0, math.inf), points=(2.5, 5.0),
)  # fmt: skip

# --- on an interval --------------------------------------------------------------------------------------------------------

_INTERVAL = {"support": (0.0, 1.0), "points": (0.2, 0.75)}
uniform = Continuous(
    "uniform", (), logpdf=lambda y: 0.0 * y, cdf=lambda y: y, sf=lambda y: 1.0 - y, ppf=lambda q: q, isf=lambda q: 1.0 - q,
    **_INTERVAL,
)  # fmt: skip
beta = Continuous(
    "beta", ("a", "b"), cdf=lambda y, a, b: sc.betainc(a, b, y), sf=lambda y, a, b: sc.betaincc(a, b, y),
    ppf=lambda q, a, b: sc.betaincinv(a, b, q), isf=lambda q, a, b: sc.betainccinv(a, b, q),
    logpdf=lambda y, a, b: sc.xlogy(a - 1.0, y) + sc.xlog1py(b - 1.0, -y) - sc.betaln(a, b), domains=((0.7, 3.0), (0.7, 3.0)),
    **_INTERVAL,
)  # fmt: skip


class _VonMises(_Distribution):
    """The von Mises distribution on the circle: density only."""

    def __init__(self):
        super().__init__("vonmises", ("kappa",), ((0.5, 4.0),), (-1.0, 1.0))
        for method in ("logpdf", "pdf"):
            self._register(method, self.points)

    def logpdf(self, x, *args, **named):
        """Return the logarithm of the density, periodic in `x`."""
        x, kappa, loc, scale = _operands((x, *self._parameters(args, named, ("loc", "scale"))))
        y = (x - loc) / scale
        return kappa * (np.cos(y) - 1.0) - math.log(2 * math.pi) - np.log(sc.i0e(kappa)) - np.log(scale)

    def pdf(self, x, *args, **named):
        """Return the density."""
        return np.exp(self.logpdf(x, *args, **named))


vonmises = _VonMises()


# --- discrete ---------------------------------------------------------------------------------------------------------------


class Discrete(_Distribution):
    """A discrete distribution: ``logpmf``, ``pmf``, ``cdf``, ``sf`` of a count, differentiable in its real parameters.

    Examples
    --------
    >>> import fad
    >>> from fad.scipy.stats import poisson
    >>> fad.grad(lambda rate: poisson.logpmf(3, rate))(2.0)
    np.float64(0.5)
    """

    def __init__(self, name, shapes, *, logpmf, cdf, sf, least=0, most=None, domains=(), counts=()):
        super().__init__(name, shapes, domains, ())
        self._logpmf, self._cdf, self._sf, self._least, self._most = logpmf, cdf, sf, least, most
        for method in ("logpmf", "pmf", "cdf", "sf"):
            self._enter(method, counts)

    def _enter(self, method, counts):
        def samples(s):
            drawn = [s.real(4, low=a, high=b) if type(a) is float else a for a, b in self.domains]
            return [call(np.array(counts), *drawn), call(counts[1], *drawn)]

        name = f"scipy.stats.{self.name}.{method}"
        setattr(self, method, public(name=name, samples=samples)(getattr(self, method)))

    def _evaluate(self, k, args, named, function, below, above, only_integers):
        *shapes, loc = self._parameters(args, named, ("loc",))
        k, *shapes = _operands((k, *shapes))
        k = k - loc
        count = np.floor(k)
        top = np.inf if self._most is None else self._most(*shapes)
        inside = (count >= self._least) & (count <= top)
        safe = np.where(inside, count, np.zeros_like(count) + float(self._least))
        value = np.where(inside, function(safe, *shapes), np.where(count < self._least, below, above))
        return np.where(k == count, value, below) if only_integers else value

    def logpmf(self, k, *args, **named):
        """Return the logarithm of the probability of the count `k`: -inf where it is impossible."""
        return self._evaluate(k, args, named, self._logpmf, -np.inf, -np.inf, True)

    def pmf(self, k, *args, **named):
        """Return the probability of the count `k`."""
        return _exp(self.logpmf(k, *args, **named))

    def cdf(self, k, *args, **named):
        """Return the probability of a count up to `k`."""
        return self._evaluate(k, args, named, self._cdf, 0.0, 1.0, False)

    def sf(self, k, *args, **named):
        """Return the probability of a count above `k`."""
        return self._evaluate(k, args, named, self._sf, 1.0, 0.0, False)


def _binom_logpmf(k, n, p):
    ways = sc.gammaln(n + 1.0) - sc.gammaln(k + 1.0) - sc.gammaln(n - k + 1.0)
    return ways + sc.xlogy(k, p) + sc.xlog1py(n - k, -p)


def _binom_tail(function, at_most, k, n, p):
    last = k >= n
    return np.where(last, at_most, function(k + 1.0, np.where(last, 1.0, n - k), p))


_PROBABILITY = (0.2, 0.8)
poisson = Discrete(
    "poisson", ("mu",), logpmf=lambda k, mu: sc.xlogy(k, mu) - sc.gammaln(k + 1.0) - mu, cdf=lambda k, mu: sc.pdtr(k, mu),
    sf=lambda k, mu: sc.pdtrc(k, mu), domains=((0.7, 4.0),), counts=(0, 1, 3, 6),
)  # fmt: skip
binom = Discrete(
    "binom", ("n", "p"), logpmf=_binom_logpmf, cdf=lambda k, n, p: _binom_tail(sc.betaincc, 1.0, k, n, p),
    sf=lambda k, n, p: _binom_tail(sc.betainc, 0.0, k, n, p),
    most=lambda n, p: n, domains=((7, 7), _PROBABILITY), counts=(0, 2, 5, 7),
)  # fmt: skip
bernoulli = Discrete(
    "bernoulli", ("p",), logpmf=lambda k, p: sc.xlogy(k, p) + sc.xlog1py(1.0 - k, -p),
    cdf=lambda k, p: np.where(k >= 1, 1.0, 1.0 - p), sf=lambda k, p: np.where(k >= 1, 0.0, p), most=lambda p: 1.0,
    domains=(_PROBABILITY,), counts=(0, 1, 1, 0),
)  # fmt: skip
nbinom = Discrete(
    "nbinom", ("n", "p"), cdf=lambda k, n, p: sc.betainc(n, k + 1.0, p), sf=lambda k, n, p: sc.betaincc(n, k + 1.0, p),
    logpmf=lambda k, n, p: (
        sc.gammaln(n + k) - sc.gammaln(k + 1.0) - sc.gammaln(n) + n * np.log(p) + sc.xlog1py(k, -p)
    ), domains=((1.5, 5.0), _PROBABILITY), counts=(0, 1, 3, 6),
)  # fmt: skip
geom = Discrete(
    "geom", ("p",), logpmf=lambda k, p: sc.xlog1py(k - 1.0, -p) + np.log(p), cdf=lambda k, p: -np.expm1(np.log1p(-p) * k),
    sf=lambda k, p: np.exp(np.log1p(-p) * k), least=1, domains=(_PROBABILITY,), counts=(1, 2, 3, 6),
)  # fmt: skip

# --- of several variables ---------------------------------------------------------------------------------------------------


class _MultivariateNormal:
    """The normal distribution of vectors, along the last axis: ``logpdf`` and ``pdf``."""

    def logpdf(self, x, mean=None, cov=1):
        """Return the log density at `x` of shape (..., n); `cov` is a matrix, a diagonal, or a number.

        Raises LinAlgError if the covariance is not positive definite.

        >>> import numpy as np, fad
        >>> from fad.scipy.stats import multivariate_normal
        >>> fad.grad(lambda m: multivariate_normal.logpdf(np.array([1.0, 2.0]), m, np.eye(2)))(np.zeros(2))
        array([1., 2.])
        """
        x = _array(x)
        x = x.reshape((*x.shape, 1)) if x.ndim == 0 else x
        cov = _array(cov)
        n = x.shape[-1]
        if cov.ndim < 2:
            cov = cov * np.eye(n)
        d = x if mean is None else x - mean
        root = np.linalg.cholesky(cov)
        z = np.linalg.solve(root, d[..., None])[..., 0]
        half_log_det = np.sum(np.log(np.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
        return -0.5 * np.sum(z * z, axis=-1) - half_log_det - n * _HALF_LOG_TAU

    def pdf(self, x, mean=None, cov=1):
        """Return the density; see `logpdf`."""
        return np.exp(self.logpdf(x, mean, cov))


class _Dirichlet:
    """The Dirichlet distribution on the simplex: ``logpdf`` and ``pdf``."""

    def logpdf(self, x, alpha):
        """Return the log density at `x` of shape (n, ...), components in front, as in SciPy; `alpha` has shape (n,).

        `x` may leave out the last component, which is then one minus the sum of the others.

        >>> import numpy as np, fad
        >>> from fad.scipy.stats import dirichlet
        >>> fad.grad(lambda a: dirichlet.logpdf(np.array([0.2, 0.8]), a))(np.array([1.0, 1.0])).round(6)
        array([-0.609438,  0.776856])
        """
        x, alpha = _operands((x, alpha))
        if x.shape[0] == alpha.shape[0] - 1:
            x = np.concatenate([x, 1.0 - np.sum(x, axis=0, keepdims=True)])
        if x.shape[0] != alpha.shape[0]:
            raise ValueError(f"x has {x.shape[0]} components in front, but alpha has {alpha.shape[0]}")
        weights = (alpha - 1.0).reshape(alpha.shape + (1,) * (x.ndim - 1))
        return np.sum(sc.xlogy(weights, x), axis=0) + sc.gammaln(np.sum(alpha)) - np.sum(sc.gammaln(alpha))

    def pdf(self, x, alpha):
        """Return the density; see `logpdf`."""
        return np.exp(self.logpdf(x, alpha))


multivariate_normal = _MultivariateNormal()
dirichlet = _Dirichlet()
