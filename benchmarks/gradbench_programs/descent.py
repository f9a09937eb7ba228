"""Gradient descent as GradBench's solver has it, for the workloads whose functions descend themselves."""

import numpy as np


def argmin(function, x, differentiate):
    """Return where a function is least, from x on; `differentiate` makes its gradient."""
    slope = differentiate(function)
    value, gradient = function(x), slope(x)
    rate, lasting = 1e-5, 0
    while np.sqrt(np.sum(gradient**2)) > 1e-5:
        if lasting == 10:
            rate, lasting = 2 * rate, 0
            continue
        moved = x - rate * gradient
        if np.sqrt(np.sum((x - moved) ** 2)) <= 1e-5:
            break
        there = function(moved)
        if there < value:
            x, value, gradient, lasting = moved, there, slope(moved), lasting + 1
        else:
            rate, lasting = rate / 2, 0
    return x


def argmax(function, x, differentiate):
    return argmin(lambda x: -function(x), x, differentiate)
