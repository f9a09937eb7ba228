"""
A photograph without its noise
==============================

The image minimises half the squared distance to the noisy one plus its total variation, smoothed where it is flat
(Rudin, Osher and Fatemi, Physica D 60, 1992). Each pixel meets its neighbours alone, so that of the Hessian's
N * N entries 7 * N are not zero, which nine products tell. The photograph comes with scikit-learn.

Run it as ``python examples/denoising.py``.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import spsolve
from sklearn.datasets import load_sample_image

import fad


def load(height=96, width=128, noise=0.1, seed=0):
    """Return a part of the photograph in shades of grey between 0 and 1, and the same with noise."""
    clean = load_sample_image("china.jpg")[100 : 100 + height, 200 : 200 + width].mean(axis=2) / 255
    return clean, clean + noise * fad.random.normal(fad.random.key(seed), clean.shape)


def energy(image, noisy, weight=0.05, smooth=1e-3):
    down, right = np.diff(image, axis=0)[:, :-1], np.diff(image, axis=1)[:-1]
    variation = np.sqrt(down**2 + right**2 + smooth)
    return 0.5 * np.sum((image - noisy) ** 2) + weight * np.sum(variation)


def denoise(noisy, steps=20, tolerance=1e-6):
    """Return the minimum and the norm of the gradient at each step; each step is halved until the energy falls."""
    value_and_grad, hessian = fad.jit(fad.value_and_grad(energy)), fad.sparse.hessian(energy)
    print(hessian.explain(noisy, noisy))
    image, norms = noisy, []
    for _ in range(steps):
        value, g = value_and_grad(image, noisy)
        norms.append(float(np.linalg.norm(g)))
        if norms[-1] < tolerance:
            break
        step = spsolve(hessian(image, noisy), g.ravel()).reshape(g.shape)
        while energy(image - step, noisy) > value + 1e-12 * abs(value):
            step = step / 2
        image = image - step
    return image, norms


def error(image, clean):
    """Return the root mean square of what is wrong, in shades of 256."""
    return 255 * float(np.sqrt(np.mean((image - clean) ** 2)))


def main():
    clean, noisy = load()
    image, norms = denoise(noisy)
    for i, norm in enumerate(norms):
        print(f"step {i:2d}  norm of the gradient {norm:.3e}")
    print(f"wrong by {error(noisy, clean):.1f} shades before, {error(image, clean):.1f} after")
    plt.style.use("fad.style")
    _, axes = plt.subplots(1, 3, figsize=(11, 3.1))
    for ax, shown, title in zip(
        axes, (noisy, image, clean), ("with noise", "after Newton's method", "as it was"), strict=True
    ):
        ax.imshow(shown, cmap="gray", vmin=0, vmax=1)
        ax.set_title(title)
        ax.axis("off")
    plt.show()


if __name__ == "__main__":
    main()
