"""
Recipes for training
====================

Gradient accumulation, clipping, averaged weights, mixed precision, per-example gradients, and fine-tuning with frozen
layers, all on scikit-learn's digits.

Run it as ``python examples/recipes.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fad
from fad import data, nn, optim
from fad.nn import functional as F

digits = load_digits()
ORDER = fad.random.permutation(fad.random.key(0), len(digits.target))
IMAGES, LABELS = (digits.data / 16).astype("float32")[ORDER], digits.target[ORDER]
TRAINING, HELD_OUT = (IMAGES[360:], LABELS[360:]), (IMAGES[:360], LABELS[:360])


def network(outputs=10, dtype="float32"):
    with nn.seed(0):
        return nn.Sequential(nn.Linear(64, 64, dtype=dtype), nn.ReLU(), nn.Linear(64, outputs, dtype=dtype))


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def accuracy(model, x, y):
    return float(np.mean(model(x).argmax(axis=1) == y))


def gradient_accumulation(model, x, y, parts=4):
    """The gradient of a large batch from small ones: their mean, since all parts have one size."""
    total = fad.tree.zeros_like(model)
    for small_x, small_y in data.batches((x, y), len(x) // parts):
        total = fad.tree.add(total, fad.grad(loss)(model, small_x, small_y))
    return fad.tree.scale(1 / parts, total)


def clipping(epochs=3):
    """A rate at which plain gradient descent would fail is fine when no gradient is longer than 1."""
    model = network()
    history = optim.fit(
        loss, model, optim.SGD(model, lr=0.5), data.batches(TRAINING, 64, key=0), epochs=epochs, clip=1.0
    )
    return accuracy(model, *HELD_OUT), history


def averaged_weights(epochs=5):
    """An exponential moving average of the weights, updated after each step."""
    model = network()
    ema = optim.EMA(model, decay=0.98)
    opt = optim.Adam(model, lr=1e-2)
    optim.fit(loss, model, opt, data.batches(TRAINING, 64, key=0), epochs=epochs, after_step=lambda h: ema.update())
    return accuracy(model, *HELD_OUT), accuracy(ema.model, *HELD_OUT)


def mixed_precision(epochs=5):
    """Weights are kept and updated in float64; the network runs in float32, and so does its gradient."""
    model = network(dtype="float64")

    def low_loss(model, x, y):
        return loss(fad.tree.map(lambda p: p.astype(np.float32), model), x, y)

    optim.fit(low_loss, model, optim.Adam(model, lr=1e-2), data.batches(TRAINING, 64, key=0), epochs=epochs)
    return accuracy(model, *HELD_OUT), {p.dtype for p in model.parameters()}


def per_example_gradients(model, x, y):
    """The norm of each example's own gradient, all in one pass: what private training clips."""
    each = fad.vmap(fad.grad(loss), in_axes=(None, 0, 0))(model, x, y)
    return fad.vmap(optim.global_norm)(each)


def fine_tuning(epochs=10):
    """Learn digits 0 to 4, then freeze the first layer and learn all ten with a new last one."""
    x, y = TRAINING
    model = network(outputs=5)
    optim.fit(loss, model, optim.Adam(model, lr=1e-2), data.batches((x[y < 5], y[y < 5]), 64, key=0), epochs=epochs)
    body, head = model[0].freeze(), nn.Linear(64, 10, key=1, dtype="float32")
    before = body.state_dict()
    tuned = nn.Sequential(body, nn.ReLU(), head)
    optim.fit(loss, tuned, optim.Adam(tuned, lr=1e-2), data.batches(TRAINING, 64, key=0), epochs=epochs)
    unchanged = all(np.array_equal(before[k], v) for k, v in body.state_dict().items())
    return accuracy(tuned, *HELD_OUT), unchanged


def main():
    model, (x, y) = network(), (IMAGES[:64], LABELS[:64])
    whole, summed = fad.grad(loss)(model, x, y), gradient_accumulation(model, x, y)
    print(f"accumulation: differs from the whole gradient by {fad.tree.norm(fad.tree.sub(whole, summed)):.1e}")
    print(f"clipping: accuracy {clipping()[0]:.3f}")
    print("averaged weights: accuracy {:.3f} of the last weights, {:.3f} of their average".format(*averaged_weights()))
    print("mixed precision: accuracy {:.3f}, weights kept as {}".format(*mixed_precision()))
    print(f"per-example gradients: norms {np.round(per_example_gradients(model, x[:5], y[:5]), 2)}")
    print("fine-tuning: accuracy {:.3f}, frozen layer unchanged: {}".format(*fine_tuning()))
    plt.style.use("fad.style")
    norms = per_example_gradients(model, *TRAINING)
    figure, axes = plt.subplots(2, 12, figsize=(10, 2.6))
    for ax, i in zip(axes.flat, [*np.argsort(norms)[:12], *np.argsort(norms)[-12:]], strict=True):
        ax.imshow(TRAINING[0][i].reshape(8, 8), cmap="gray_r")
        ax.axis("off")
    figure.suptitle("Digits whose own gradient is smallest (above) and largest (below), before training")
    plt.show()


if __name__ == "__main__":
    main()
