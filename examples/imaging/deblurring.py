"""
A photograph out of focus, mended
=================================

A lens out of focus is a convolution. What image, blurred in this way, gives the blurred photograph, and has few
edges? The misfit goes through a Fourier transform, its gradient too, and L-BFGS finds the minimum over 24 576 pixels.

The photograph comes with scikit-learn (china.jpg).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_sample_image

import fad

plt.style.use("fad.style")

SHARP = load_sample_image("china.jpg")[60:188, 230:422].mean(axis=2) / 255
ROWS, COLUMNS = SHARP.shape

# %%
# A disc of light instead of a point: its transform is computed once.
y, x = np.minimum(np.arange(ROWS), ROWS - np.arange(ROWS)), np.minimum(np.arange(COLUMNS), COLUMNS - np.arange(COLUMNS))
disc = 1.0 * (y[:, None] ** 2 + x**2 <= 4.5**2)
LENS = np.fft.rfft2(disc / disc.sum())


def blur(image):
    return np.fft.irfft2(np.fft.rfft2(image) * LENS, s=(ROWS, COLUMNS))


blurred = blur(SHARP) + 0.005 * np.random.default_rng(0).normal(size=SHARP.shape)


def energy(flat, edges=2e-4):
    """Squared misfit, and the total variation, rounded off where it is flat."""
    image = flat.reshape(ROWS, COLUMNS)
    down, right = np.diff(image, axis=0)[:, :-1], np.diff(image, axis=1)[:-1]
    return 0.5 * np.mean((blur(image) - blurred) ** 2) + edges * np.mean(np.sqrt(down**2 + right**2 + 1e-5))


scale = 1e4  # SciPy's minimiser stops early where a function is small
f = fad.value_and_grad(lambda flat: scale * energy(flat))
found = minimize(f, blurred.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 90})
mended = found.x.reshape(ROWS, COLUMNS)
wrong = lambda image: 255 * np.sqrt(np.mean((image - SHARP) ** 2))
print(f"{found.nit} steps; wrong by {wrong(blurred):.1f} shades before, {wrong(mended):.1f} after")

figure, axes = plt.subplots(1, 3, figsize=(12, 3.2))
titles = ("out of focus", f"mended in {found.nit} steps", "as it was")
for ax, image, title in zip(axes, (blurred, mended, SHARP), titles, strict=True):
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
    ax.axis("off")
plt.show()
