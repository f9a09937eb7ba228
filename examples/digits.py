"""
A classifier of handwritten digits
==================================

``python examples/digits.py --epochs 80``, on 1 797 images that come with scikit-learn; nothing is downloaded.
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
    images, labels = (digits.data / 16).astype("float32")[order], digits.target[order]
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def shifted(images, key):
    """Move each image by a random fraction of a pixel, so that there is more to learn from."""
    out = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    for axis, move in zip((1, 2), fad.random.uniform(key, (2, len(images), 1, 1), "float32", -1.0, 1.0), strict=True):
        back, forth = np.roll(out, -1, axis), np.roll(out, 1, axis)
        out = (1 - np.abs(move)) * out + np.maximum(move, 0) * forth + np.maximum(-move, 0) * back
    return out[:, 1:-1, 1:-1].reshape(-1, 64)


def loss(model, images, labels):
    return F.cross_entropy(model(images), labels)


def accuracy(model, images, labels):
    return np.mean(model(images).argmax(axis=1) == labels)


def train(epochs=80, seed=0):
    training, held_out = load()
    with nn.seed(seed):
        model = nn.Sequential(nn.Linear(64, 256, dtype="float32"), nn.ReLU(), nn.Linear(256, 10, dtype="float32"))
    batches = data.batches(training, 64, key=seed)
    opt = optim.Adam(model, lr=lambda step: 5e-3 * (1 - step / (epochs * len(batches))))
    key = fad.random.key(seed)
    bar = data.progress(range(epochs), "training")
    for _ in bar:
        for images, labels in batches:
            images = shifted(images, fad.random.fold_in(key, opt.steps))
            value, grads = fad.value_and_grad(loss)(model, images, labels)
            opt.step(grads)
        bar.show(loss=value, accuracy=accuracy(model, *held_out))
    return model, accuracy(model, *held_out)


def draw(model):
    weights = model[0].weight[:96].reshape(6, 16, 8, 8)
    weights = np.pad(weights / np.abs(weights).max(), ((0, 0), (0, 0), (0, 1), (0, 1)))
    plt.style.use("fad.style")
    ax = plt.figure(figsize=(9, 3.6)).add_subplot()
    ax.imshow(weights.transpose(0, 2, 1, 3).reshape(54, 144), cmap="RdBu", vmin=-1, vmax=1)
    ax.set(title="What 96 units of the first layer look for", xticks=[], yticks=[])
    plt.show()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=80)
    model, found = train(parser.parse_args().epochs)
    print(f"held-out accuracy {found:.4f}")
    draw(model)


if __name__ == "__main__":
    main()
