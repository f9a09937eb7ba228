"""The logistic function, which pays to be one operation instead of four: it keeps less and runs faster."""

from __future__ import annotations

import numpy as np

from fad.core.primitives.archetypes import elementwise


def _sigmoid(x):
    with np.errstate(over="ignore"):  # exp(-x) = inf is right here: its reciprocal is 0
        y = np.negative(x)
        y = np.exp(y, out=y) if type(y) is np.ndarray else np.exp(y)
    y += 1.0
    return np.reciprocal(y, y) if type(y) is np.ndarray else 1.0 / y


sigmoid = elementwise(
    "sigmoid", lambda z, _x: z * (1.0 - z), forward=_sigmoid, lower="(1 / (1 + exp(-{0})))", domain=(-4.0, 4.0),
    complex=True, doc="The logistic function 1 / (1 + exp(-x)), elementwise.",
)
