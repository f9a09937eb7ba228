"""Layers, losses and models. Thin: no differentiation happens here."""

from fad.nn import functional as functional
from fad.nn import init as init
from fad.nn.activations import ReLU
from fad.nn.containers import Sequential
from fad.nn.init import seed
from fad.nn.linear import Linear
from fad.nn.losses import LabelError, cross_entropy
from fad.nn.module import Buffer, Module, Parameter, StateDictError
