"""Distributions of the eager API beside PyTorch's: densities, moments, quantiles, divergences, and their gradients."""

import numpy as np
import pytest
from each import each

import fad.eager

torch = pytest.importorskip("torch")
APIS = (fad.eager, torch)

PLACES = [[0.3, -1.0], [0.0, 2.0]]
SCALES = [0.5, 2.0]  # broadcast against the places
SHAPES = [[0.7, 2.5], [4.0, 1.2]]
ODDS = [0.1, 0.7]
LOGITS = [0.3, -1.2]
CLASSES = [[0.2, 1.0, 0.5], [3.0, 1.0, 1.0]]
REALS, POSITIVES, UNITS, COUNTS = (
    [[0.4, -0.2], [1.5, 0.1]], [[0.4, 2.2], [1.5, 0.1]], [0.3, 0.9], [[3.0, 0.0], [1.0, 4.0]]
)  # fmt: skip
SHARES = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
ONES = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]

MOMENTS = "mean mode variance stddev"
# class: parameters, values, and what it has besides log_prob
CASES = {
    "Normal": ([PLACES, SCALES], REALS, f"{MOMENTS} entropy cdf icdf"),
    "Laplace": ([PLACES, SCALES], REALS, f"{MOMENTS} entropy cdf icdf"),
    "Cauchy": ([PLACES, SCALES], REALS, f"{MOMENTS} entropy cdf icdf"),
    "Gumbel": ([PLACES, SCALES], REALS, f"{MOMENTS} entropy cdf icdf"),
    "LogNormal": ([PLACES, SCALES], POSITIVES, f"{MOMENTS} entropy cdf icdf"),
    "HalfNormal": ([SHAPES], POSITIVES, f"{MOMENTS} entropy cdf icdf"),
    "HalfCauchy": ([SHAPES], POSITIVES, f"{MOMENTS} entropy cdf icdf"),
    "Uniform": ([[[-1.0, -0.5], [-3.0, -2.0]], [2.0, 2.5]], REALS, "mean variance stddev entropy cdf icdf"),
    "VonMises": ([PLACES, SCALES], REALS, "mean mode variance"),
    "Weibull": ([SCALES, [[1.5, 2.5], [4.0, 1.2]]], POSITIVES, f"{MOMENTS} entropy cdf icdf"),
    "Pareto": ([[0.1, 0.05], [[2.7, 2.5], [4.0, 3.2]]], POSITIVES, f"{MOMENTS} entropy cdf icdf"),
    "Exponential": ([SHAPES], POSITIVES, f"{MOMENTS} entropy cdf icdf"),
    "Gamma": ([SHAPES, SCALES], POSITIVES, f"{MOMENTS} entropy"),
    "Chi2": ([SHAPES], POSITIVES, f"{MOMENTS} entropy"),
    "InverseGamma": ([[[2.7, 2.5], [4.0, 3.2]], SCALES], POSITIVES, f"{MOMENTS} entropy"),
    "Beta": ([[[1.7, 2.5], [4.0, 1.2]], SCALES], UNITS, "mean variance stddev entropy"),
    "Kumaraswamy": ([[[1.7, 2.5], [4.0, 1.2]], [1.5, 2.0]], UNITS, "mean variance stddev entropy cdf icdf"),
    "Dirichlet": ([[[2.2, 1.5, 3.0], [3.0, 1.2, 1.4]]], SHARES, f"{MOMENTS} entropy"),
    "StudentT": ([[[2.7, 2.5], [4.0, 3.2]], PLACES, SCALES], REALS, f"{MOMENTS} entropy"),
    "FisherSnedecor": ([[[2.7, 2.5], [4.0, 3.2]], [5.0, 7.5]], POSITIVES, MOMENTS),
    "Bernoulli": ([ODDS], [[1.0, 0.0], [0.0, 0.0]], f"{MOMENTS} entropy"),
    "Geometric": ([ODDS], COUNTS, f"{MOMENTS} entropy"),
    "Binomial": ([5, ODDS], COUNTS, f"{MOMENTS} entropy"),
    "NegativeBinomial": ([[2.5, 4.0], ODDS], COUNTS, MOMENTS),
    "Poisson": ([SHAPES], COUNTS, MOMENTS),
    "Categorical": ([CLASSES], [[2, 0], [1, 1]], "mode entropy"),
    "OneHotCategorical": ([CLASSES], ONES, f"{MOMENTS} entropy"),
    "Multinomial": ([4, CLASSES], [[1.0, 2.0, 1.0], [0.0, 4.0, 0.0]], "mean variance entropy"),
    "RelaxedBernoulli": ([0.7, ODDS], UNITS, ""),
    "RelaxedOneHotCategorical": ([0.7, CLASSES], SHARES, ""),
}
BY_LOGITS = {
    "Bernoulli": ([LOGITS], COUNTS), "Geometric": ([LOGITS], COUNTS), "Binomial": ([5, LOGITS], COUNTS),
    "NegativeBinomial": ([[2.5, 4.0], LOGITS], COUNTS), "Categorical": ([CLASSES], [[2, 0], [1, 1]]),
    "OneHotCategorical": ([CLASSES], ONES), "Multinomial": ([4, CLASSES], [[1.0, 2.0, 1.0], [0.0, 4.0, 0.0]]),
    "RelaxedBernoulli": ([0.7, LOGITS], UNITS), "RelaxedOneHotCategorical": ([0.7, CLASSES], SHARES),
}  # fmt: skip


def leaf(api, x):
    """Return a number of trials as it is, anything else as a leaf of the graph."""
    return x if isinstance(x, int) else api.tensor(x, dtype=api.float64, requires_grad=True)


def collect(api, leaves, parts):
    """Return what was computed and the gradients of a sum of it."""
    leaves = [x for x in leaves if not isinstance(x, int)]
    finite = [p.where(p.isfinite(), api.zeros_like(p)) for p in parts if p.requires_grad]
    sum((p * p).sum() for p in finite).backward()
    grads = [api.zeros_like(x) if x.grad is None else x.grad for x in leaves]
    return [np.asarray(p.detach().numpy()) for p in (*parts, *grads)]


def assert_same(computed, rtol=2e-6):
    for mine, theirs in zip(*computed, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-9)


def evaluate(api, name):
    parameters, values, has = CASES[name]
    leaves = [leaf(api, x) for x in parameters]
    d = getattr(api.distributions, name)(*leaves)
    values = api.tensor(values, dtype=None if name == "Categorical" else api.float64)
    parts = [d.log_prob(values)]
    for what in has.split():
        given = {"cdf": values, "icdf": api.tensor(UNITS, dtype=api.float64)}.get(what)
        found = getattr(d, what)
        parts.append(found if not callable(found) else found() if given is None else found(given))
    return collect(api, leaves, parts)


@each("name", CASES)
def test_densities_moments_and_quantiles_and_their_gradients_are_torchs(name):
    assert_same([evaluate(api, name) for api in APIS])


def evaluate_logits(api, name):
    parameters, values = BY_LOGITS[name]
    *others, logits = [leaf(api, x) for x in parameters]
    d = getattr(api.distributions, name)(*others, logits=logits)
    if name == "Bernoulli":
        values = [[1.0, 0.0], [0.0, 1.0]]
    values = api.tensor(values, dtype=None if name == "Categorical" else api.float64)
    return collect(api, [*others, logits], [d.log_prob(values), d.probs])


@each("name", BY_LOGITS)
def test_logarithms_of_odds_give_the_densities_and_gradients_of_torch(name):
    assert_same([evaluate_logits(api, name) for api in APIS])


@each("name", CASES)
def test_shapes_and_names_are_torchs_and_expanding_keeps_densities(name):
    found = []
    for api in APIS:
        parameters, values, _ = CASES[name]
        d = getattr(api.distributions, name)(*(leaf(api, x) for x in parameters))
        wide = d.expand((3, 2, *d.batch_shape))
        value = api.tensor(values, dtype=None if name == "Categorical" else api.float64)
        drawn = wide.sample((2,))
        shapes = [d.batch_shape, d.event_shape, wide.batch_shape, wide.event_shape, drawn.shape]
        assert not drawn.requires_grad
        found.append((*map(tuple, shapes), str(drawn.dtype)[-5:], d.has_rsample))
        each_one = wide.log_prob(value).detach().numpy()
        np.testing.assert_allclose(each_one, np.broadcast_to(d.log_prob(value).detach().numpy(), each_one.shape))
        wide.log_prob(drawn)  # what is drawn lies in the support
    assert found[0] == found[1]


def family(api, name):
    """Return leaves and a distribution for divergences, beside others of which values lie in it."""
    d = api.distributions
    given = {
        "Normal": [PLACES, SCALES], "Laplace": [PLACES, SCALES], "Gumbel": [PLACES, SCALES], "Cauchy": [PLACES, SCALES],
        "Uniform": [[0.2, 0.3], [[0.8, 0.9], [0.5, 0.95]]], "Exponential": [SHAPES], "Gamma": [SHAPES, SCALES],
        "Beta": [SHAPES, SCALES], "Pareto": [[0.1, 0.05], [[2.7, 2.5], [4.0, 3.2]]], "HalfNormal": [SHAPES],
        "Chi2": [SHAPES], "LogNormal": [PLACES, SCALES], "Bernoulli": [ODDS], "Geometric": [ODDS],
        "Binomial": [5, ODDS], "Poisson": [SHAPES], "Categorical": [CLASSES], "OneHotCategorical": [CLASSES],
        "Dirichlet": [CLASSES],
    }[name]  # fmt: skip
    leaves = [leaf(api, x) for x in given]
    return leaves, getattr(d, name)(*leaves)


def shifted(api, name):
    """Return another distribution of the kind."""
    leaves, p = family(api, name)
    if name == "Uniform":
        moved = [leaves[0] - 0.2, leaves[1] + 0.1]
    elif name in ("Bernoulli", "Geometric"):
        moved = [0.5 * leaves[0] + 0.2]
    elif name == "Binomial":
        moved = [5, 0.5 * leaves[1] + 0.2]
    else:
        moved = [0.5 * x + (0.02 if name == "Pareto" else 0.3) for x in leaves]
    return leaves, type(p)(*moved)


CONTINUOUS = ["Normal", "Laplace", "Gumbel", "Uniform", "Exponential", "Gamma", "Beta", "Pareto"]
PAIRS = [(p, q) for p in CONTINUOUS for q in CONTINUOUS if q != "Laplace" or p in ("Normal", "Laplace")]
PAIRS = [(p, q) for p, q in PAIRS if q != "Gumbel" or p not in ("Pareto", "Laplace", "Beta")]
PAIRS += [
    (n, n) for n in ("Cauchy", "HalfNormal", "Chi2", "LogNormal", "Bernoulli", "Geometric", "Binomial", "Poisson")
]
PAIRS += [(n, n) for n in ("Categorical", "OneHotCategorical", "Dirichlet")]
PAIRS += [("Bernoulli", "Poisson"), ("Poisson", "Bernoulli"), ("Poisson", "Binomial")]


def diverge(api, p, q):
    (leaves, first), (others, second) = family(api, p), shifted(api, q)
    return collect(api, [*leaves, *others], [api.distributions.kl_divergence(first, second) + 0.0 * leaves[-1].sum()])


@each("pair", PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_divergences_and_their_gradients_are_torchs(pair):
    assert_same([diverge(api, *pair) for api in APIS], 1e-5)
