"""What the parameters of random numbers are, and which errors they lead to, said once: `help` reads it from here."""

from __future__ import annotations

from fad.core.primitives.docstring_sections import complete

_PARAMETERS = """
key : random key
    What is drawn with: the same key gives the same numbers. See `key` and `split`.
shape : int or tuple of int
    Of the result, in which parameters are broadcast; None takes their own.
dirichlet.shape, multivariate_normal.shape : int or tuple of int
    Of the draws, in front of the axis of their components.
dtype : dtype
    Of the result; by default `fad.config.default_dtype`.
a, b, df, lam, alpha, mean, cov : array_like
    The distribution's parameters: positive, but for `mean`.
choice.a : array_like or int
    What is chosen from, along `axis`; an int stands for ``np.arange(a)``.
p : float or array
    Probability of True; of `choice` the probability of each element.
logits : array
    Logarithms of probabilities along `axis`, up to a constant.
axis : int
    Along which is drawn or permuted.
replace : bool
    Whether an element may be drawn twice.
data : int or array of int
    What makes a new key of an old one.
seed : int
    An integer of at most 64 bits, else a ValueError is raised; different ones give independent streams.
x : array or int
    What is permuted; an int stands for ``np.arange(x)``.
counter : tuple of four arrays of uint64
    What the bits are a function of, beside the key.
rounds : int
    How often the bits are mixed.
minval, maxval : number or array
    Ends of the interval; the upper one is not drawn.
lower, upper : number
    Ends of the interval, in standard deviations.
num : int
    How many keys.
"""
_ERRORS = """
key : TypeError
    It is no random key.
philox.key : None
shape : ValueError
    A length is negative.
key.seed : TypeError
    It is no integer.
data : TypeError
    It is no whole number of at most 64 bits.
bernoulli.p : TypeError
    It is complex.
lower : ValueError
    It is above `upper`.
dtype : TypeError
    It is no real floating-point one.
a, df, alpha : TypeError
    It is complex.
choice.a : ValueError
    More different elements are requested than there are.
minval : ValueError
    It is not below `maxval`, or they are further apart than 2**32.
axis : IndexError
    The array has no such axis.
choice.axis : None
lam : ValueError
    It is negative, infinite or NaN.
cov : LinAlgError
    It is not positive definite.
mean : ValueError
    Its length is not that of `cov`.
"""
_ALGORITHMS = {
    "beta": "a ratio of draws of `gamma`",
    "dirichlet": "ratios of draws of `gamma`",
    "gamma": "G. Marsaglia and W. Tsang, ACM TOMS 26 (2000); derivatives: M. Figurnov et al., NeurIPS 2018",
    "categorical": "the largest of logits and draws of `gumbel`: C. Maddison, D. Tarlow and T. Minka, NeurIPS 2014",
    **dict.fromkeys(("key", "split", "fold_in", "bits", "philox"), "J. K. Salmon et al., SC 2011"),
}
_RESULTS = {
    "key": "random key\n    An array of two uint32.", "fold_in": "random key", "split": "array of keys, (num, 2)",
    "bits": "array of uint32", "philox": "tuple of four arrays of uint64", "bernoulli": "array of bool",
}  # fmt: skip


def document_draws(names: dict) -> None:
    """Add sections on parameters, results, errors and sources to the docstrings of random numbers."""
    complete(
        names, _PARAMETERS, lambda name, thing: _RESULTS.get(name, "array\n    Of that shape."), _ERRORS,
        lambda name: _ALGORITHMS.get(name, ""),
    )  # fmt: skip
