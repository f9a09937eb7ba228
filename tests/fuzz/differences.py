"""Derivatives of a plain function of one number: extrapolated differences that know how far they can be trusted."""

import numpy as np

STEPS = 2.0 ** -np.arange(5, 13)


def derivative(phi, steps=STEPS):
    """Return the derivative of ``phi`` at 0 and a bound of its error, or None where differences say nothing.

    Central differences with steps that halve are extrapolated twice; where neighbours in the table agree best, their
    distance bounds the error. At a corner the differences to both sides do not approach each other: None.
    """
    with np.errstate(all="ignore"):
        right, left = (np.array([phi(s * h) for h in steps]) for s in (1, -1))
        middle = phi(0.0)
    if not np.all(np.isfinite(right)) or not np.all(np.isfinite(left)):
        return None
    gap = np.abs((right - 2 * middle + left) / steps)  # between the slopes to both sides: about h f''
    size = max(1.0, abs(middle), np.max(np.abs(right)))
    table = (right - left) / (2 * steps)
    scale = max(1.0, np.max(np.abs(table)))
    if gap[-1] > 1e-2 * scale and gap[-1] > 0.3 * gap[0]:
        return None
    for power in (4, 16):
        table = (power * table[1:] - table[:-1]) / (power - 1)
    apart = np.abs(np.diff(table))
    best = int(np.argmin(apart))
    return float(table[best + 1]), float(apart[best] + 1e-13 * size / steps[best + 3])


def holds_nearby(phi, slope, bound):
    """Return whether a slope holds on a scale far below the steps: there a staircase of fine steps is flat."""
    h = 2.0**-24
    with np.errstate(all="ignore"):
        ahead, behind = phi(h), phi(-h)
    noise = 1e-12 * max(1.0, abs(ahead)) + 2 * h * bound
    return not abs(ahead - behind - 2 * h * slope) > 0.1 * abs(2 * h * slope) + noise


def is_of_small_steps(phi, wanted, slope, tolerance):
    """Return whether ``wanted`` holds from afar alone: a sum with a staircase of small steps rises faster than it does.

    Differences that are a thousand times smaller then give another derivative, which is ``slope``.
    """
    near = derivative(phi, STEPS / 1024)
    if near is None:
        return False
    allowed = tolerance * max(1.0, abs(slope)) + 10 * near[1]
    return abs(near[0] - slope) <= allowed < abs(near[0] - wanted)


def is_likely(phi, slope, tolerance):
    """Return whether a few differences already give this slope; they say nothing where they do not."""
    steps = STEPS[2:5]
    try:
        with np.errstate(all="ignore"):
            table = np.array([(phi(h) - phi(-h)) / (2 * h) for h in steps])
    except Exception:  # the program does not take all numbers
        return False
    for power in (4, 16):
        table = (power * table[1:] - table[:-1]) / (power - 1)
    return bool(abs(table[0] - slope) <= tolerance * max(1.0, abs(slope)))


def complex_step(phi):
    """Return the derivative at 0 of an analytic function, right to the last digits."""
    h = 1e-30
    with np.errstate(all="ignore"):
        return float(np.imag(phi(1j * h)) / h)
