"""Least squares: a polynomial that is to be the sign of its argument, and the gradient by its coefficients."""

import numpy as np

import fad


def squares(x, n):
    t = -1.0 + 2.0 * np.arange(n) / (n - 1)
    return np.sum((np.sign(t) - np.polyval(x[::-1], t)) ** 2) / 2


def prepare(given):
    return np.array(given["x"], dtype=float), given["n"]


primal = fad.jit(squares, static_argnums=1)
gradient = fad.jit(fad.grad(squares), static_argnums=1)


def answer(output):
    return output.tolist()
