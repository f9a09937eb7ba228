"""
A Gaussian process of ten measurements
======================================

Regression on the diabetes data of scikit-learn: a length scale for each of ten measurements, an amplitude and a
noise, all found by the gradient of the logarithmic marginal likelihood, through a Cholesky factor.

Run it as ``python examples/gaussian_process.py``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import fad
from fad import optim


def load(n=150, held_out=100, seed=0):
    found = load_diabetes()
    order = fad.random.permutation(fad.random.key(seed), len(found.target))[: n + held_out]
    x, y = found.data[order] / found.data.std(axis=0), found.target[order]
    y = (y - y[:n].mean()) / y[:n].std()
    return (x[:n], y[:n]), (x[n:], y[n:])


def kernel(p, a, b):
    """Squared-exponential covariance; all hyperparameters are logarithms, so that any number is allowed."""
    scaled_a, scaled_b = a / np.exp(p["scales"]), b / np.exp(p["scales"])
    squares = np.sum(scaled_a**2, axis=1)[:, None] + np.sum(scaled_b**2, axis=1) - 2 * scaled_a @ scaled_b.T
    return np.exp(2 * p["amplitude"] - 0.5 * squares)


def factor(p, x):
    return np.linalg.cholesky(kernel(p, x, x) + (np.exp(2 * p["noise"]) + 1e-8) * np.eye(len(x)))


def loss(p, x, y):
    """Minus the logarithmic marginal likelihood, per example."""
    c = factor(p, x)
    z = np.linalg.solve(c, y)
    return (0.5 * np.sum(z**2) + np.sum(np.log(np.diag(c)))) / len(y) + 0.5 * np.log(2 * np.pi)


def start(x):
    return {"scales": np.full(x.shape[1], 1.0), "amplitude": np.array(0.0), "noise": np.array(-0.5)}


def predict(p, x, y, new):
    c = factor(p, x)
    return kernel(p, new, x) @ np.linalg.solve(c.T, np.linalg.solve(c, y))


def train(steps=60, n=150):
    (x, y), (new_x, new_y) = load(n)
    p = start(x)
    before = float(loss(p, x, y))
    after = optim.LBFGS(p).minimize(loss, x, y, steps=steps, tol=1e-5)
    error = float(np.mean((predict(p, x, y, new_x) - new_y) ** 2) / np.mean((y.mean() - new_y) ** 2))
    return p, before, after, error


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    p, before, after, error = train(parser.parse_args().steps)
    print(f"minus log marginal likelihood per example: {before:.4f} before, {after:.4f} after")
    for name, scale in zip(load_diabetes().feature_names, np.exp(p["scales"]), strict=True):
        print(f"  length scale of {name:<4} {scale:10.3g}")
    print(f"noise {np.exp(p['noise']):.3f}, amplitude {np.exp(p['amplitude']):.3f}")
    print(f"held-out squared error, as a share of that of the mean: {error:.3f}")
    plt.style.use("fad.style")
    (x, y), (new_x, new_y) = load()
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
    left.barh(load_diabetes().feature_names, np.exp(-p["scales"]))
    left.set(xlabel="1 / length scale", title="What the process looks at")
    right.plot(new_y, predict(p, x, y, new_x), "o", alpha=0.6)
    right.plot([-2, 2], [-2, 2], color="C6", linewidth=1)
    right.set(xlabel="measured", ylabel="predicted", title="100 patients that were held out")
    plt.show()


if __name__ == "__main__":
    main()
