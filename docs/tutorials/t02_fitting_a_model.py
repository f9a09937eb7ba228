"""
Fitting a model to data
=======================

A model with parameters, measurements, and a number that says how badly they agree. The gradient of that number
improves the parameters. Four ways to use it, from the simplest to the quickest, on one problem.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad
from fad import optim

plt.style.use("fad.style")

# %%
# Old radiocarbon: activity of a sample that decays on top of a constant background. The numbers are drawn, so that we
# know the truth.
rng = np.random.default_rng(0)
TIME = np.linspace(0, 10, 40)
TRUTH = {"size": 5.0, "rate": 0.6, "floor": 1.0}


def model(p, t):
    return p["size"] * np.exp(-p["rate"] * t) + p["floor"]


measured = model(TRUTH, TIME) + 0.2 * rng.normal(size=TIME.size)


def loss(p):
    return np.mean((model(p, TIME) - measured) ** 2)


start = {"size": np.array(3.0), "rate": np.array(0.3), "floor": np.array(0.5)}
fad.grad(loss)(start)

# %%
# **Gradient descent** follows the slope by a fixed part. ``fad.tree.map`` does something to each parameter.
losses = {}
p, history = start, []
for _ in range(300):
    value, gradient = fad.value_and_grad(loss)(p)
    p = fad.tree.map(lambda a, g: a - 0.05 * g, p, gradient)
    history.append(value)
losses["gradient descent"] = history

# %%
# **Adam** adapts the step of each parameter. The pure form of an optimiser is a pair of functions.
adam = optim.Adam(lr=0.1)
p, state, history = start, adam.init(start), []
for _ in range(300):
    value, gradient = fad.value_and_grad(loss)(p)
    p, state = adam.update(gradient, state, p)
    history.append(value)
losses["Adam"] = history

# %%
# **SciPy's BFGS** works on vectors. ``fad.tree.ravel`` lays the parameters out as one and puts them back.
vector, unravel = fad.tree.ravel(start)
history = []
function = fad.value_and_grad(lambda v: loss(unravel(v)))
found = minimize(function, vector, jac=True, method="BFGS", callback=lambda v: history.append(loss(unravel(v))))
losses["BFGS"] = history

# %%
# **Gauss and Newton**: a misfit is a sum of squares, and the Jacobian of what is squared knows more than a gradient.
residuals = lambda v: model(unravel(v), TIME) - measured
v, history = vector, []
for _ in range(10):
    history.append(loss(unravel(v)))
    v = v - np.linalg.lstsq(fad.jacobian(residuals)(v), residuals(v))[0]
losses["Gauss-Newton"] = history
unravel(v)

# %%
# How well are the parameters known? The inverse of JᵀJ, times the variance of the noise, is their covariance.
jacobian = fad.jacobian(residuals)(v)
covariance = np.linalg.inv(jacobian.T @ jacobian) * np.sum(residuals(v) ** 2) / (TIME.size - 3)
for name, value, error in zip(unravel(v), v, np.sqrt(np.diag(covariance)), strict=True):
    print(f"{name:<6} {value:.3f} +- {error:.3f}   truth {TRUTH[name]}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
fine = np.linspace(0, 12, 200)
curve = lambda v: model(unravel(v), fine)
band = 2 * np.sqrt(np.einsum("ij,jk,ik->i", fad.jacobian(curve)(v), covariance, fad.jacobian(curve)(v)))
left.fill_between(fine, curve(v) - band, curve(v) + band, alpha=0.2)
left.plot(fine, curve(v), label="fitted, two standard errors")
left.plot(TIME, measured, "o", color="C1", label="measured")
left.plot(fine, model(start, fine), "--", color="C6", label="start")
left.legend()
left.set(title="The fit", xlabel="time")
for name, history in losses.items():
    right.loglog(np.arange(1, len(history) + 1), history, label=name)
right.set(xlabel="step", title="Loss by step")
right.legend()
plt.show()
