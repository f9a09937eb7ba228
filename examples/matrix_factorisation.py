"""
Hidden pixels, guessed from the others
======================================

The matrix is that of scikit-learn's digits, one row per image and one column per pixel, of which three pixels in ten
are hidden. Factors learnt from the others tell what the hidden ones were.

Run it as ``python examples/matrix_factorisation.py``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fad
from fad import data, optim


def load(rows=1797, hidden=0.3, seed=0):
    matrix = load_digits().data[:rows] / 16
    seen = fad.random.uniform(fad.random.key(seed), matrix.shape) >= hidden
    return matrix, seen


def start(shape, rank, seed=0):
    k1, k2 = fad.random.split(fad.random.key(seed))
    return {
        "rows": 0.1 * fad.random.normal(k1, (shape[0], rank)),
        "columns": 0.1 * fad.random.normal(k2, (rank, shape[1])),
        "mean": np.zeros(shape[1]),
    }


def filled(p):
    return p["rows"] @ p["columns"] + p["mean"]


def loss(p, matrix, seen, penalty=0.2):
    error = np.where(seen, filled(p) - matrix, 0.0)
    return np.sum(error**2) / np.sum(seen) + penalty * (np.mean(p["rows"] ** 2) + np.mean(p["columns"] ** 2))


def train(steps=300, rank=24, rows=1797):
    matrix, seen = load(rows)
    p = start(matrix.shape, rank)
    opt = optim.Adam(p, lr=optim.schedules.cosine(0.1, steps, 1e-3))
    bar = data.progress(range(steps), "training")
    for step in bar:
        value, grads = fad.value_and_grad(loss)(p, matrix, seen)
        optim.check_finite(value, step)
        opt.step(grads)
        bar.show(loss=value)
    means = np.sum(matrix * seen, axis=0) / np.maximum(np.sum(seen, axis=0), 1)
    error = np.sqrt(np.mean((filled(p) - matrix)[~seen] ** 2))
    baseline = np.sqrt(np.mean((means - matrix)[~seen] ** 2))
    return p, float(error), float(baseline)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    p, error, baseline = train(parser.parse_args().steps)
    print(f"error of the hidden pixels: {error:.4f} by factors, {baseline:.4f} by the mean of each pixel")
    plt.style.use("fad.style")
    matrix, seen = load(1797)
    _, axes = plt.subplots(3, 10, figsize=(10, 3.4))
    for row, (images, name) in zip(
        axes, ((np.where(seen, matrix, np.nan), "seen"), (filled(p), "guessed"), (matrix, "all")), strict=True
    ):
        for ax, image in zip(row, images, strict=False):
            ax.imshow(image.reshape(8, 8), cmap="gray_r")
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(name)
    plt.show()


if __name__ == "__main__":
    main()
