"""Layers, losses and models. Thin: no differentiation happens here."""

from fad.nn import functional, init
from fad.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Flatten,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    Identity,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
)
from fad.nn.attention import MultiheadAttention
from fad.nn.containers import Sequential
from fad.nn.conv import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from fad.nn.init import seed
from fad.nn.labels import LabelError
from fad.nn.linear import Linear
from fad.nn.lookup import Dropout, Embedding
from fad.nn.module import Buffer, Module, Parameter, StateDictError
from fad.nn.normalisation import BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, LayerNorm, RMSNorm
from fad.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from fad.nn.resizing import PixelShuffle, Upsample
from fad.nn.transformer import TransformerEncoder, TransformerEncoderLayer

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm1d", "BatchNorm2d",
    "BatchNorm3d", "Buffer", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "Dropout", "Embedding", "Flatten", "GRUCell", "GroupNorm", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity",
    "LSTMCell", "LabelError", "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MaxPool1d", "MaxPool2d",
    "MaxPool3d", "Mish", "Module", "MultiheadAttention", "PReLU", "Parameter", "PixelShuffle", "RMSNorm", "RNNCell",
    "ReLU", "ReLU6", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softplus", "Softsign", "StateDictError", "Tanh",
    "TransformerEncoder", "TransformerEncoderLayer", "Upsample", "functional", "init", "seed",
]  # fmt: skip
