"""The determinant by expansion by minors, all minors of one size at once, and its gradient."""

import numpy as np

import fad


def determinant(a):
    """Return the determinants of the matrices a[:, :, k], by those of their minors along the first row."""
    n = len(a)
    if n == 1:
        return a[0, 0]
    if n == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    minors = np.stack([np.stack([a[1:, i] for i in range(n) if i != j], axis=1) for j in range(n)], axis=2)
    signed = (-1.0) ** np.arange(n)[:, None] * a[0]
    return np.sum(signed * determinant(minors.reshape(n - 1, n - 1, -1)).reshape(n, -1), axis=0)


def of_entries(entries):
    ell = round(entries.size**0.5)
    return determinant(entries.reshape(ell, ell, 1))[0]


def prepare(given):
    return (np.array(given["A"], dtype=float),)


primal = fad.jit(of_entries)
gradient = fad.jit(fad.grad(of_entries))


def answer(output):
    return output.tolist()
