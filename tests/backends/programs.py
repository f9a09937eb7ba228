"""Programs as users write them, and small training runs, to be tried on the host and on devices."""

import numpy as np

import fad
from fad import nn, optim


def mlp_loss(params, x, labels):
    (w, b), (v, c) = params
    hidden = nn.functional.relu(x @ w + b)
    return nn.functional.cross_entropy(hidden @ v + c, labels)


def mlp(rng):
    params = [(rng.normal(size=(4, 8)), np.zeros(8)), (rng.normal(size=(8, 3)), np.zeros(3))]
    return mlp_loss, params, (rng.normal(size=(5, 4)), rng.integers(0, 3, 5))


def cnn_loss(params, x):
    y = fad.numpy.tanh(fad.ops.products.conv.conv(x, params["kernel"], padding=1) + params["bias"])
    y = fad.ops.products.pooling.max_pool(y, 2)
    return np.mean((y.reshape(y.shape[0], -1) @ params["out"]) ** 2)


def cnn(rng):
    params = {"kernel": rng.normal(size=(2, 1, 3, 3)), "bias": np.zeros((2, 1, 1)), "out": rng.normal(size=(8, 3))}
    return cnn_loss, params, (rng.normal(size=(3, 1, 4, 4)),)


def loop_loss(params, x):
    total = 0.0
    for t in range(x.shape[0]):
        total = total + np.tanh(x[t] * params[t % 3]) @ x[-1 - t]
    return total


def loop(rng):
    return loop_loss, rng.normal(size=(3, 4)), (rng.normal(size=(6, 4)),)


def recurrent(rng):
    def loss(params, x):
        def step(h, xt):
            h = np.tanh(xt @ params["w"] + h @ params["u"])
            return h, h

        return np.sum(fad.scan(step, np.zeros_like(x[0] @ params["w"]), x)[1] ** 2)

    return loss, {"w": rng.normal(size=(3, 2)), "u": rng.normal(size=(2, 2))}, (rng.normal(size=(4, 3)),)


def model():
    return nn.Sequential(nn.Linear(4, 6, key=0), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 3, key=1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(4, 2, key=0)
        self.norm = nn.LayerNorm(4)
        self.out = nn.Linear(4, 3, key=1)

    def __call__(self, x):
        return self.out(self.norm(x + self.attend(x, x, x))).mean(1)


class Last(nn.Module):
    """The last output of a recurrent layer, through a linear one."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.out = nn.Linear(5, 3, key=9)

    def __call__(self, x):
        return self.out(self.layer(x)[0][:, -1])


def _image_model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, key=0), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16, 3, key=1),
    )  # fmt: skip


def _labels(rng):
    return rng.integers(0, 3, 8)


def _sequence(rng):
    return rng.normal(size=(8, 6, 4)), _labels(rng)


def _table(rng):
    return rng.integers(0, 7, (8, 3)), _labels(rng)


def _rows(rng):
    return rng.normal(size=(8, 4)), _labels(rng)


# name -> (what makes the model, what draws its data)
MODELS = {
    "mlp": (model, _rows),
    "gelu": (lambda: nn.Sequential(nn.Linear(4, 6, key=0), nn.GELU(), nn.Linear(6, 3, key=1)), _rows),
    "cnn": (_image_model, lambda rng: (rng.normal(size=(8, 1, 4, 4)), _labels(rng))),
    "attention": (Attention, _sequence),
    "lstm": (lambda: Last(nn.LSTM(4, 5, batch_first=True, key=0)), _sequence),
    "gru": (lambda: Last(nn.GRU(4, 5, batch_first=True, key=0)), _sequence),
    "embedding": (lambda: nn.Sequential(nn.Embedding(7, 4, key=0), nn.Flatten(), nn.Linear(12, 3, key=1)), _table),
}


def train(net, x, labels, make, steps=3):
    opt = make(net)
    for _ in range(steps):
        loss, grads = fad.value_and_grad(lambda m: nn.functional.cross_entropy(m(x), labels))(net)
        opt.step(grads)
    return loss


OPTIMISERS = {
    "sgd": lambda m: optim.SGD(m, lr=0.1, momentum=0.9),
    "adam": lambda m: optim.Adam(m, lr=0.01),
    "adamw": lambda m: optim.AdamW(m, lr=0.01),
}


# --- functions in kernels ------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.7, 1e-3, np.inf, -np.inf, np.nan, 1e30, 700.0, -0.3, 1e-40]
UNARY = [
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.sin, np.cos, np.tan, np.sinh,
    np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.floor, np.ceil,
    np.trunc, np.rint, np.fabs, np.abs, np.sign, np.isnan, np.isinf, np.isfinite, np.signbit, np.negative, np.square,
    np.reciprocal, np.deg2rad, np.logical_not,
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.fmax, np.fmin, np.arctan2,
    np.hypot, np.copysign, np.heaviside, np.logaddexp2, np.less, np.less_equal, np.greater, np.greater_equal, np.equal,
    np.not_equal, np.logical_and, np.logical_or, np.logical_xor,
]  # fmt: skip


def fused(f):
    """Return a function that computes `f` in a group of two operations, which jit makes a kernel of."""

    def both(*xs):
        y = f(*xs)
        return y, y == y

    return both
