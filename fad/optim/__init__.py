"""Optimisers and schedules."""

from fad.optim.rules import SGD, Adam

__all__ = ["SGD", "Adam"]
