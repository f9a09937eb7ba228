"""autograd.wrap_util's public name, for programs that define differential operators of their own."""

from __future__ import annotations

from fad.compat.autograd.operators import _nary as unary_to_nary

__all__ = ["unary_to_nary"]
