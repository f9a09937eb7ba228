"""Layers, losses and models. Thin: no differentiation happens here."""

from fad.nn import functional, init
from fad.nn.activations import (
    ELU,
    GELU,
    SELU,
    Flatten,
    Identity,
    LeakyReLU,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from fad.nn.attention import MultiheadAttention
from fad.nn.containers import Sequential
from fad.nn.conv import (
    AvgPool1d,
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    MaxPool1d,
    MaxPool2d,
)
from fad.nn.init import seed
from fad.nn.labels import LabelError
from fad.nn.linear import Linear
from fad.nn.lookup import Dropout, Embedding
from fad.nn.module import Buffer, Module, Parameter, StateDictError
from fad.nn.normalisation import BatchNorm1d, BatchNorm2d, LayerNorm, RMSNorm
from fad.nn.recurrent import GRU, LSTM

__all__ = [
    "ELU", "GELU", "GRU", "LSTM", "SELU", "AvgPool1d", "AvgPool2d", "BatchNorm1d", "BatchNorm2d", "Buffer", "Conv1d",
    "Conv2d", "ConvTranspose1d", "ConvTranspose2d", "Dropout", "Embedding", "Flatten", "Identity", "LabelError",
    "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "MaxPool1d", "MaxPool2d", "Mish", "Module",
    "MultiheadAttention", "Parameter", "RMSNorm", "ReLU", "ReLU6", "Sequential", "SiLU", "Sigmoid", "Softmax",
    "Softplus", "StateDictError", "Tanh", "functional", "init", "seed",
]  # fmt: skip
