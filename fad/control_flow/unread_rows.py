"""The operation ``absorb_zeros``: a stack of which nobody need read all rows, as it is.

A list that a loop has filled is taken of such a stack. To a program that runs step by step, an element that it never
reads has no derivative at all; here its cotangent is a row of zeros, which is to meet no infinite partial.
"""

from __future__ import annotations

from typing import Any

from fad.core.cotangent import Masked, zero_absorbing
from fad.core.primitive import Primitive
from fad.core.tracer import Tracer, bind
from fad.transforms.tape import Recorder

absorb_zeros_p = Primitive(
    "absorb_zeros", lambda x: x, jvp=lambda tangents, y, xs, params: tangents[0],
    vjp=(lambda ct, y, x: ct if type(ct) is Masked else zero_absorbing(ct),),
    batch=lambda size, batched, xs, params: xs[0], saves="none", selects=True, identity=True, archetype="linear",
    dependence="elementwise",
)  # fmt: skip


def absorb_zeros(stack: Any) -> Any:
    """Return a stack of which some rows may never be read."""
    return bind(absorb_zeros_p, stack) if type(stack) is Tracer and stack.dtype.kind in "fc" else stack


def absorb_zeros_of(y: Any) -> Any:
    """Return a row of a stack under a reverse trace as such a stack's, without a trace of it in a recording."""
    if type(y) is not Tracer or not isinstance(y.owner, Recorder):
        return y
    return y.owner.call([y.info], [y.wrapped], lambda cts: [zero_absorbing(cts[0])])[0]
