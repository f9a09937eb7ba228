"""A program that uses the public surface as a user does; the type checker must find nothing to say."""

# mypy: warn-unused-ignores

from collections.abc import Callable
from typing import Any

import numpy as np

import fad
import fad.numpy as fnp
from fad import nn, optim


def loss(w: np.ndarray, x: np.ndarray) -> Any:
    return np.sum(np.tanh(x @ w) ** 2)


gradient: Callable = fad.grad(loss)
g = gradient(np.ones(2), np.eye(2))
value, grads = fad.value_and_grad(loss, argnums=(0, 1))(np.ones(2), np.eye(2))
y, pullback = fad.vjp(loss, np.ones(2), np.eye(2))
out, tangent = fad.jvp(np.sin, (1.0,), (1.0,))
per_example = fad.vmap(fad.grad(loss), in_axes=(None, 0))(np.ones(2), np.eye(2))
H = fad.hessian(loss)(np.ones(2), np.eye(2))
spec: fad.ShapeDtypeStruct = fad.eval_shape(np.sin, fad.ShapeDtypeStruct((3,), "float32"))


@fad.custom_jvp
def cube(x: Any) -> Any:
    return x**3


@cube.defjvp
def cube_rule(primals: tuple, tangents: tuple) -> tuple:
    (x,), (t,) = primals, tangents
    return cube(x), 3 * x**2 * t


model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
opt = optim.Adam(model, lr=1e-3)
leaves: list = fad.tree.leaves(model)

# fad.numpy's names have NumPy's types: were they unknown, the ignored faults would be none, and reported as unused.
half: np.ndarray = fnp.linspace(0.0, 1.0, 3) / 2
no_text: str = fnp.zeros(3)  # type: ignore[assignment]
best: tuple = fnp.top_k(half, 2)


def name_what_norm_has_not() -> Any:
    return fnp.linalg.norm(half, order=1)  # type: ignore[call-overload]
