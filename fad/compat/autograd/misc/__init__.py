"""autograd.misc: flattening of containers, and simple optimisers."""

from fad.compat.autograd.misc.flatten import flatten

__all__ = ["flatten"]
