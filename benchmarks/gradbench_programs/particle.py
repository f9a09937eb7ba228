"""A charged particle that is to fly through the origin: descent on a flight that has gradients of its own in it."""

import numpy as np
from descent import argmin

import fad


def miss(w, differentiate):
    """Return the square of where the particle crosses the axis, if the second charge is moved by w."""
    charges = np.array([[10.0, 10.0 - w[0]], [10.0, 0.0]])
    force = differentiate(lambda x: np.sum(1 / np.sqrt(np.sum((x - charges) ** 2, axis=1))))
    position, velocity = np.array([0.0, 8.0]), np.array([0.75, 0.0])
    while True:
        acceleration = -force(position)
        position = position + 0.1 * velocity
        if position[1] <= 0:
            break
        velocity = velocity + 0.1 * acceleration
    return (position[0] - position[1] / velocity[1] * velocity[0]) ** 2


def descent(outer, inner):
    """Return the search with one way of differentiating around it and one in the flight."""
    return fad.jit(lambda w: argmin(lambda w: miss(w, inner), w, outer))


def prepare(given):
    return (np.array([given["w"]], dtype=float),)


ff = descent(fad.jacfwd, fad.jacfwd)
fr = descent(fad.jacfwd, fad.grad)
rf = descent(fad.grad, fad.jacfwd)
rr = descent(fad.grad, fad.grad)


def answer(output):
    return float(output[0])
