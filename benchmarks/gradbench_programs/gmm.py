"""The log-likelihood of a mixture of Gaussians with a Wishart prior, and its gradient."""

import numpy as np
from scipy.special import multigammaln

import fad


def logsumexp(x):
    largest = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), axis=-1)) + largest[..., 0]


def log_wishart_prior(diagonals, q, l, m, gamma):
    k, d = q.shape
    n = d + m + 1
    constant = n * d * (np.log(gamma) - 0.5 * np.log(2.0)) - multigammaln(0.5 * n, d)
    squares = np.sum(diagonals**2) + np.sum(l**2)
    return k * constant - 0.5 * gamma**2 * squares + m * np.sum(q)


def likelihood(alpha, mu, q, l, x, m, gamma):
    """Return the log-likelihood; q and l are the diagonals' logarithms and the lower triangles of k factors."""
    k, d = mu.shape
    n = x.shape[0]
    columns, rows = np.triu_indices(d, 1)
    diagonals = np.exp(q)
    factors = np.zeros((k, d, d))
    factors[:, rows, columns] = l
    factors[:, np.arange(d), np.arange(d)] = diagonals
    centred = x - mu[:, None, :]
    scaled = centred @ np.swapaxes(factors, 1, 2)
    terms = alpha + np.sum(q, axis=1) - 0.5 * np.sum(scaled**2, axis=2).T
    total = np.sum(logsumexp(terms)) - n * logsumexp(alpha)
    return total - 0.5 * n * d * np.log(2 * np.pi) + log_wishart_prior(diagonals, q, l, m, gamma)


def prepare(given):
    parameters = [np.array(given[name], dtype=float) for name in ("alpha", "mu", "q", "l")]
    return *parameters, np.array(given["x"], dtype=float), given["m"], given["gamma"]


FIXED = (5, 6)
objective = fad.jit(likelihood, static_argnums=FIXED)
jacobian = fad.jit(fad.grad(likelihood, argnums=(0, 1, 2, 3)), static_argnums=FIXED)


def answer(output):
    if isinstance(output, tuple):
        return {name: part.tolist() for name, part in zip(("alpha", "mu", "q", "l"), output, strict=True)}
    return float(output)
