"""
Logistic regression by Newton's method
======================================

The data are the 569 tumours of 30 measurements (Wisconsin breast-cancer data) that come with scikit-learn.

Run it as ``python examples/newton.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import fad
from fad.nn import functional as F


def load(held_out=114, seed=0):
    found = load_breast_cancer()
    order = fad.random.permutation(fad.random.key(seed), len(found.target))
    x, y = found.data[order], found.target[order].astype(float)
    mean, std = x[held_out:].mean(axis=0), x[held_out:].std(axis=0)
    x = np.column_stack([(x - mean) / std, np.ones(len(x))])
    return (x[held_out:], y[held_out:]), (x[:held_out], y[:held_out])


def loss(w, x, y, penalty=1e-2):
    return F.binary_cross_entropy_with_logits(x @ w, y) + penalty * np.sum(w[:-1] ** 2)


def newton(w, x, y, steps=20, tolerance=1e-9):
    """Return the minimum and the norm of the gradient at each step; each step is halved until the loss falls."""
    value_and_grad, hessian = fad.value_and_grad(loss), fad.hessian(loss)
    norms = []
    for _ in range(steps):
        value, g = value_and_grad(w, x, y)
        norms.append(float(np.linalg.norm(g)))
        if norms[-1] < tolerance:
            break
        step = np.linalg.solve(hessian(w, x, y), g)
        while loss(w - step, x, y) > value + 1e-12:
            step = step / 2
        w = w - step
    return w, norms


def accuracy(w, x, y):
    return float(np.mean((x @ w > 0) == (y > 0.5)))


def main():
    training, held_out = load()
    w, norms = newton(np.zeros(training[0].shape[1]), *training)
    for i, norm in enumerate(norms):
        print(f"step {i:2d}  norm of the gradient {norm:.3e}")
    print(f"held-out accuracy {accuracy(w, *held_out):.4f}")
    plt.style.use("fad.style")
    _, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
    left.semilogy(norms, "o-")
    left.set(xlabel="step", title="Norm of the gradient: digits double")
    x, y = held_out
    for value, name, colour in ((0, "malignant", "C1"), (1, "benign", "C0")):
        right.hist(x[y == value] @ w, bins=30, alpha=0.6, color=colour, label=name)
    right.axvline(0, color="#555555")
    right.set(xlabel="log odds", title="Tumours that were held out")
    right.legend()
    plt.show()


if __name__ == "__main__":
    main()
