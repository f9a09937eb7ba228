"""autograd.misc: flattening of containers, recorded programs, fixed points, and simple optimisers."""

from fad.compat.autograd.misc.flatten import flatten
from fad.compat.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
