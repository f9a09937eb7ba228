"""
A convolutional network
=======================

The data are the 1 797 images of 8x8 pixels that come with scikit-learn; each batch is moved by fractions of a pixel.

Run it as ``python examples/cnn.py --epochs 40``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fad
from fad import data, nn, optim
from fad.nn import functional as F


def load(held_out=360, seed=0):
    digits = load_digits()
    order = fad.random.permutation(fad.random.key(seed), len(digits.target))
    images, labels = (digits.images / 16).astype("float32")[order, None], digits.target[order]
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def network(width=24, seed=0):
    with nn.seed(seed), fad.config.use(default_dtype="float32"):
        return nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(8 * width, 10),
        )


def shifted(images, key):
    """Move each image by a random fraction of a pixel."""
    out = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = fad.random.uniform(key, (2, len(images), 1, 1, 1), "float32", -1.0, 1.0)
    for axis, move in zip((2, 3), moves, strict=True):
        back, forth = np.roll(out, -1, axis), np.roll(out, 1, axis)
        out = (1 - np.abs(move)) * out + np.maximum(move, 0) * forth + np.maximum(-move, 0) * back
    return out[:, :, 1:-1, 1:-1]


def loss(model, images, labels):
    return F.cross_entropy(model(images), labels)


def accuracy(model, images, labels):
    found = np.mean(model.eval()(images).argmax(axis=1) == labels)
    model.train()
    return float(found)


def train(epochs=40, width=24, seed=0):
    training, held_out = load()
    model = network(width, seed)
    batches = data.batches(training, 64, key=seed, drop_last=True)
    opt = optim.AdamW(model, lr=optim.schedules.one_cycle(5e-3, epochs * len(batches)))
    key, history = fad.random.key(seed), optim.History()
    bar = data.progress(range(epochs), "training", lines=10)
    for _ in bar:
        for images, labels in batches:
            images = shifted(images, fad.random.fold_in(key, opt.steps))
            value, grads = fad.value_and_grad(loss)(model, images, labels)
            optim.check_finite(value, opt.steps)
            opt.step(grads)
            history.add(loss=value)
        bar.show(loss=value)
    return model, history, accuracy(model, *held_out)


def draw(model, history):
    """Show the loss, and the held-out digits that the network takes for others."""
    plt.style.use("fad.style")
    _, (images, labels) = load()
    guessed = model.eval()(images).argmax(axis=1)
    wrong = np.flatnonzero(guessed != labels)[:12]
    figure, axes = plt.subplots(3, 6, figsize=(10, 4.4))
    curve = figure.add_subplot(1, 2, 1)
    curve.semilogy(history["loss"], linewidth=0.8)
    curve.set(xlabel="step", title="Loss of each batch")
    for ax in axes.flat:
        ax.axis("off")
    for ax, i in zip(axes[:, 3:].flat, wrong, strict=False):
        ax.imshow(images[i].reshape(8, 8), cmap="gray_r")
        ax.set_title(f"{labels[i]}, taken for {guessed[i]}", fontsize=8)
    plt.show()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--save", help="where to write the weights (safetensors)")
    parser.add_argument("--plot", help="where to write a picture of the loss")
    args = parser.parse_args()
    model, history, found = train(args.epochs)
    model.summary(np.zeros((1, 1, 8, 8), "float32"))
    print(f"held-out accuracy {found:.4f}")
    if args.save:
        fad.save(args.save, model)
    if args.plot:
        history.plot(args.plot)
    draw(model, history)


if __name__ == "__main__":
    main()
