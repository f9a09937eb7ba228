"""autograd.core's public names, for programs that reach past autograd.extend."""

from __future__ import annotations

from fad.compat.autograd.extend import VSpace, defjvp, defjvp_argnums, defvjp, defvjp_argnums, primitive, vspace
from fad.compat.autograd.operators import _make_vjp as make_vjp
from fad.compat.autograd.tracer import getval, isbox

__all__ = [
    "VSpace", "defjvp", "defjvp_argnums", "defvjp", "defvjp_argnums", "getval", "isbox", "make_vjp", "primitive",
    "vspace",
]  # fmt: skip
