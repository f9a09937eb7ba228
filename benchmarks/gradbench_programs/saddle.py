"""A saddle point by descent on the result of an ascent: gradients of a search that has gradients in it."""

import numpy as np
from descent import argmax, argmin

import fad


def height(x, y):
    return np.sum(x**2) - np.sum(y**2)


def search(outer, inner):
    """Return the search with one way of differentiating the outer descent and one the ascent in it."""

    def saddle(start):
        highest = lambda x: height(x, argmax(lambda y: height(x, y), start, inner))
        x = argmin(highest, start, outer)
        return np.concatenate([x, argmax(lambda y: height(x, y), start, outer)])

    return fad.jit(saddle)


def prepare(given):
    return (np.array(given["start"], dtype=float),)


ff = search(fad.jacfwd, fad.jacfwd)
fr = search(fad.jacfwd, fad.grad)
rf = search(fad.grad, fad.jacfwd)
rr = search(fad.grad, fad.grad)


def answer(output):
    return output.tolist()
