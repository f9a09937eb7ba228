"""A chain of differential equations by the method of Runge and Kutta, and the gradient of its last component."""

import numpy as np

import fad


def solution(x, steps):
    """Return y(2), where y' is x times y shifted by one, and y(0) = 0."""

    def slope(y):
        return x * np.concatenate([np.ones(1), y[:-1]])

    h = 2.0 / steps
    y = np.zeros_like(x)
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def prepare(given):
    return np.array(given["x"], dtype=float), given["s"]


primal = fad.jit(solution, static_argnums=1)
gradient = fad.jit(fad.grad(lambda x, steps: solution(x, steps)[-1]), static_argnums=1)


def answer(output):
    return output.tolist()
