"""``python -m fad.demo [picture.png]``: a short tour of derivatives, then a classifier of real handwriting."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

import numpy as np

import fad
from fad import data, nn, optim
from fad.nn import functional as F

NEEDED = "the demo needs scikit-learn and matplotlib: pip install 'fad[demo]'"


# --- the tour: plain NumPy functions, no fad inside ------------------------------------------------------------------


def wave(x: Any) -> Any:
    return np.exp(-x / 4) * np.sin(x)


def polar(p: Any) -> Any:
    r, angle = p
    return np.stack([r * np.cos(angle), r * np.sin(angle)])


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def tour() -> None:
    """Print derivatives of plain NumPy code, of several orders and kinds."""
    print("A function in plain NumPy: wave(x) = exp(-x/4) sin(x)")
    first = fad.grad(wave)
    second = fad.grad(first)
    third = fad.grad(second)
    for name, f in {"wave(1)": wave, "wave'(1)": first, "wave''(1)": second, "wave'''(1)": third}.items():
        print(f"  {name:<12} {f(1.0): .12f}")

    p = np.array([2.0, np.pi / 6])
    print("\nThe Jacobian of polar coordinates at r = 2, angle = 30 degrees")
    print(_indent(fad.jacobian(polar)(p)))

    x = np.linspace(-1, 1, 5)
    direction = np.ones(5)
    _, product = fad.hvp(rosenbrock, (x,), (direction,))
    print("\nA Hessian-vector product of the Rosenbrock function (the Hessian itself is never formed)")
    print(_indent(product))

    with nn.seed(0):
        model = nn.Linear(3, 1)
    xs, ys = np.eye(3), np.array([1.0, 2.0, 3.0])
    error = lambda model, x, y: (model(x)[0] - y) ** 2
    each = fad.vmap(fad.grad(error), in_axes=(None, 0, 0))(model, xs, ys)
    print("\nPer-example gradients by vmap(grad): one weight gradient for each of three examples")
    print(_indent(each.weight[:, 0, :]))


def _indent(x: np.ndarray) -> str:
    return "  " + np.array2string(x + 0.0, precision=4, suppress_small=True, prefix="  ")


# --- the classifier --------------------------------------------------------------------------------------------------


def load(held_out: int = 360, seed: int = 0) -> tuple:
    """Return (training images, labels), (held-out images, labels) of scikit-learn's 1 797 handwritten digits."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise SystemExit(f"{NEEDED} ({error})") from None
    found = load_digits()
    images = (found.data / 16).astype(np.float32)
    order = fad.random.permutation(fad.random.key(seed), len(images))
    images, labels = images[order], found.target[order]
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def loss(model: Any, images: Any, labels: Any) -> Any:
    return F.cross_entropy(model(images), labels)


def accuracy(model: Any, images: Any, labels: Any) -> float:
    return float(np.mean(model(images).argmax(axis=1) == labels))


def shift(images: np.ndarray, key: Any) -> np.ndarray:
    """Return 8x8 images moved by a random fraction of a pixel, so that there is more to learn from."""
    out = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    moves = fad.random.uniform(key, (2, len(images), 1, 1), np.float32, -1.0, 1.0)
    for axis, move in zip((1, 2), moves, strict=True):
        back, forth = np.roll(out, -1, axis), np.roll(out, 1, axis)
        out = (1 - np.abs(move)) * out + np.maximum(move, 0) * forth + np.maximum(-move, 0) * back
    return out[:, 1:-1, 1:-1].reshape(-1, 64)


def network(hidden: int = 256, seed: int = 0) -> Any:
    with nn.seed(seed):
        return nn.Sequential(nn.Linear(64, hidden, dtype="float32"), nn.ReLU(), nn.Linear(hidden, 10, dtype="float32"))


def train(training: tuple, held_out: tuple, epochs: int = 80, seed: int = 0) -> tuple:
    """Train a small network and return it with the loss on both sets after each epoch."""
    model = network(seed=seed)
    shuffled = data.batches(training, 64, key=seed)
    opt = optim.Adam(model, lr=lambda step: 5e-3 * (1 - step / (epochs * len(shuffled))))
    history: dict[str, list] = {"training": [], "held out": []}
    bar = data.progress(range(epochs), "training")
    for epoch in bar:
        keys = fad.random.split(fad.random.key(epoch), len(shuffled))
        for key, (images, labels) in zip(keys, shuffled, strict=True):
            _, grads = fad.value_and_grad(loss)(model, shift(images, key), labels)
            opt.step(grads)
        history["training"].append(float(loss(model, *training)))
        history["held out"].append(float(loss(model, *held_out)))
        bar.show(loss=history["training"][-1], accuracy=accuracy(model, *held_out))
    return model, history


# --- the picture -----------------------------------------------------------------------------------------------------


def draw(path: str, model: Any, history: dict, held_out: tuple) -> None:
    """Write a PNG with the loss curves and a grid of held-out digits with their predictions."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SystemExit(f"{NEEDED} ({error})") from None
    figure = Figure(figsize=(12, 5.6), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    left, right = panels
    _draw_losses(left, history)
    _draw_digits(right, model, held_out)
    figure.savefig(path)


def _draw_losses(figure: Any, history: dict) -> None:
    axes = figure.subplots()
    epochs = np.arange(1, len(history["training"]) + 1)
    for (name, values), colour in zip(history.items(), ("#4477aa", "#ee7733"), strict=True):
        axes.plot(epochs, values, color=colour, linewidth=2, label=f"{name} ({values[-1]:.3f} at the end)")
    axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_ylabel("cross entropy")
    axes.set_title("Loss while training")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _draw_digits(figure: Any, model: Any, held_out: tuple, rows: int = 5, columns: int = 8) -> None:
    images, labels = held_out
    predicted = model(images).argmax(axis=1)
    wrong = np.flatnonzero(predicted != labels)
    right = np.flatnonzero(predicted == labels)
    n = min(rows * columns, len(labels))
    chosen = np.concatenate([wrong[:columns], right])[:n]
    figure.suptitle(
        f"Held-out digits: {len(right)} of {len(labels)} right\n(mistakes first, in red, with the truth in brackets)"
    )
    for axes in figure.subplots(rows, columns).flat:
        axes.axis("off")
    for axes, i in zip(figure.axes, chosen, strict=False):
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r", interpolation="nearest", vmin=0, vmax=1)
        good = predicted[i] == labels[i]
        text = f"{predicted[i]}" if good else f"{predicted[i]} ({labels[i]})"
        axes.set_title(text, color="#228833" if good else "#cc3311", fontsize=11, pad=3, fontweight="bold")


def one_thread() -> Any:
    """Return a context in which matrix products use one thread: these are small, and more would only wait."""
    try:
        from threadpoolctl import threadpool_limits  # comes with scikit-learn
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; the only argument is where to write the picture."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print("usage: python -m fad.demo [picture.png]", file=sys.stderr)
        return 2
    path = arguments[0] if arguments else "fad-demo.png"
    tour()
    print("\nA classifier of handwritten digits: 64-256-10, 1 437 images to learn from, 360 held out")
    training, held_out = load()
    start = time.perf_counter()
    with one_thread():
        model, history = train(training, held_out)
    seconds = time.perf_counter() - start
    print(f"  trained for {len(history['training'])} epochs in {seconds:.1f} s")
    print(f"  training accuracy {accuracy(model, *training):.4f}")
    print(f"  held-out accuracy {accuracy(model, *held_out):.4f}")
    draw(path, model, history, held_out)
    print(f"  loss curve and predictions: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
