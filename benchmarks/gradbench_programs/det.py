"""The determinant by expansion by minors, all minors of one size at once, and its gradient."""

import numpy as np

import fad


def determinant(a):
    """Return the determinants of the matrices in the last two axes, by those of their minors."""
    n = a.shape[-1]
    if n == 1:
        return a[..., 0, 0]
    minors = np.stack([np.delete(a[..., 1:, :], j, axis=-1) for j in range(n)], axis=-3)
    return np.sum((-1.0) ** np.arange(n) * a[..., 0, :] * determinant(minors), axis=-1)


def of_entries(entries):
    ell = round(entries.size**0.5)
    return determinant(entries.reshape(ell, ell))


def prepare(given):
    return (np.array(given["A"], dtype=float),)


primal = fad.jit(of_entries)
gradient = fad.jit(fad.grad(of_entries))


def answer(output):
    return output.tolist()
