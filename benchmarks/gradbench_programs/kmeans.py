"""k-means: the cost of centroids, and the direction of Newton's method, gradient by diagonal of the Hessian."""

import numpy as np

import fad


def cost_of(points, centroids):
    """Return the sum of the squared distances of points from the nearest of the centroids."""
    squares = np.sum(points**2, axis=1) + np.sum(centroids**2, axis=1)[:, None] - 2 * centroids @ points.T
    return np.sum(np.min(squares, axis=0))


def direction(points, centroids):
    """Return the gradient divided by the Hessian, whose blocks are multiples of the identity."""
    gradient = fad.grad(lambda c: cost_of(points, c))
    slope, curvature = fad.jvp(gradient, (centroids,), (np.ones_like(centroids),))
    return slope / curvature


def prepare(given):
    return np.array(given["points"], dtype=float), np.array(given["centroids"], dtype=float)


cost = fad.jit(cost_of)
dir = fad.jit(direction)


def answer(output):
    return output.tolist()
