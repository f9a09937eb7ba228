"""One real number of all outputs of a program, as functions that reach nothing but the program and its arguments.

fad looks at what a function reaches: for arrays outside of it, and for what jit has to guard.
"""

from functools import lru_cache

import numpy as np

from fad import tree


def weights(leaf, k):
    """Return what the k-th output is multiplied by in the loss: different numbers everywhere."""
    return _weights(np.shape(leaf), k)


@lru_cache(4096)
def _weights(shape, k):
    found = np.cos(np.arange(1.0, int(np.prod(shape)) + 1) * (k + 1)).reshape(shape)
    if type(found) is np.ndarray:
        found.flags.writeable = False
    return found


def other_weights(w):
    """Return what the imaginary part is multiplied by."""
    return w[..., ::-1] if w.ndim else 0.7


def floating(x):
    """Return whether a leaf has a derivative."""
    return isinstance(x, (float, complex)) or getattr(getattr(x, "dtype", None), "kind", "?") in "fc"


def weighted_sum(outputs):
    """Return one real number that depends on all outputs."""
    total = 0.0
    for k, leaf in enumerate(tree.leaves(outputs)):
        if not floating(leaf):
            continue
        w = weights(leaf, k)
        if np.iscomplexobj(leaf):
            total = total + np.sum(np.real(leaf) * w) + np.sum(np.imag(leaf) * other_weights(w))
        else:
            total = total + np.sum(leaf * w)
    return total


def with_outputs(f):
    """Return the loss and the outputs of f as a function of its arguments."""

    def run(*arguments):
        outputs = f(*arguments)
        return weighted_sum(outputs), outputs

    return run


def of_some(f, fixed, positions):
    """Return f as a function of its arguments at some positions; the others are fixed."""

    def run(*some):
        full = list(fixed)
        for k, x in zip(positions, some, strict=True):
            full[k] = x
        return f(*full)

    return run


def loss_of_some(f, fixed, positions):
    """Return the loss of f as a function of its arguments at some positions."""
    inner = of_some(f, fixed, positions)
    return lambda *some: weighted_sum(inner(*some))


def float_leaves(f, fixed, position):
    """Return the outputs of f that have a derivative, as a function of one argument."""
    inner = of_some(f, fixed, (position,))
    return lambda x: [y for y in tree.leaves(inner(x)) if floating(y)]


def along(f, u):
    """Return the sum of what f gives times `u`, as a function of f's arguments."""
    return lambda *x: sum(np.sum(g * v) for g, v in zip(f(*x), u, strict=True))
