"""
Learning to learn
=================

A task is to tell two digits apart from five examples of each. Weights are learnt from which one gradient step on those
examples leads to a good classifier; the digits 7, 8 and 9 are never seen while learning, and test it.

Run it as ``python examples/maml.py --steps 300``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fad
from fad import data, nn, optim
from fad.nn import functional as F

IMAGES, LABELS = load_digits(return_X_y=True)
IMAGES = IMAGES / 16
BY_DIGIT = [np.flatnonzero(d == LABELS) for d in range(10)]
SHOTS = 5


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def adapted(model, x, y, rate=0.1, steps=1):
    """Return the model after a gradient step (or several) on a task; differentiable in the model."""
    for _ in range(steps):
        model = fad.tree.map(lambda p, g: p - rate * g, model, fad.grad(loss)(model, x, y))
    return model


def task_loss(model, x, y, new_x, new_y):
    return loss(adapted(model, x, y), new_x, new_y)


def meta_loss(model, tasks):
    return np.mean(fad.vmap(task_loss, in_axes=(None, 0, 0, 0, 0))(model, *tasks))


def draw_tasks(rng, digits, count, queries=10):
    """Return (x, y, new_x, new_y), each with a leading axis of tasks."""
    parts = []
    for _ in range(count):
        pair = rng.choice(digits, 2, replace=False)
        rows = np.stack([rng.choice(BY_DIGIT[d], SHOTS + queries, replace=False) for d in pair])
        few, many = rows[:, :SHOTS].ravel(), rows[:, SHOTS:].ravel()
        parts.append((IMAGES[few], np.repeat([0, 1], SHOTS), IMAGES[many], np.repeat([0, 1], queries)))
    return tuple(np.stack(column) for column in zip(*parts, strict=True))


def accuracy(model, tasks):
    def one(x, y, new_x, new_y):
        return np.mean(adapted(model, x, y)(new_x).argmax(axis=1) == new_y)

    return float(np.mean([one(*task) for task in zip(*tasks, strict=True)]))


def network(seed=0):
    with nn.seed(seed):
        return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 2))


def train(steps=300, tasks=8, seed=0):
    """Return the model, and the accuracy on new digits after one step from its weights and from random ones."""
    rng = np.random.default_rng(seed)
    model = network(seed)
    opt = optim.Adam(model, lr=optim.schedules.cosine(3e-3, steps))
    bar = data.progress(range(steps), "learning to learn")
    for step in bar:
        value, grads = fad.value_and_grad(meta_loss)(model, draw_tasks(rng, np.arange(7), tasks))
        optim.check_finite(value, step)
        opt.step(grads)
        bar.show(loss=value)
    test = draw_tasks(np.random.default_rng(seed + 1), np.array([7, 8, 9]), 100)
    return model, accuracy(model, test), accuracy(network(seed + 1), test)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    model, learnt, fresh = train(parser.parse_args().steps)
    print(f"accuracy on unseen digits after one step: {learnt:.3f} from learnt weights, {fresh:.3f} from random ones")
    plt.style.use("fad.style")
    x, y, new_x, new_y = (column[0] for column in draw_tasks(np.random.default_rng(5), np.array([7, 8, 9]), 1))
    adapted_model = adapted(model, x, y)
    figure, axes = plt.subplots(2, 10, figsize=(10, 2.9))
    for ax in axes.flat:
        ax.axis("off")
    for ax, image in zip(axes[0], x, strict=False):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
    pick = np.linspace(0, len(new_x) - 1, 10).astype(int)
    for ax, i in zip(axes[1], pick, strict=True):
        right = adapted_model(new_x[i : i + 1]).argmax() == new_y[i]
        ax.imshow(new_x[i].reshape(8, 8), cmap="Greens" if right else "Reds")
    figure.suptitle(f"Above: all it saw of two new digits; below: its guesses, green if right ({100 * learnt:.0f} %)")
    plt.show()


if __name__ == "__main__":
    main()
