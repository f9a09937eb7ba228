"""
Two photographs of one place, aligned
=====================================

Two pictures of one place, one turned, shifted and a little larger. By how much? The picture is resampled by
``fad.scipy.ndimage.map_coordinates``, which has derivatives by the coordinates, and the method of Gauss and Newton
turns it back, from coarse to fine.

The photograph comes with scikit-learn (china.jpg).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image

import fad
from fad.scipy.ndimage import map_coordinates

plt.style.use("fad.style")

PHOTO = load_sample_image("china.jpg")[40:360:2, 100:560:2].mean(axis=2) / 255
ROWS, COLUMNS = PHOTO.shape
GRID = np.mgrid[30 : ROWS - 30, 40 : COLUMNS - 40].astype(float)
MIDDLE = np.array([ROWS, COLUMNS])[:, None, None] / 2


def view(image, p):
    """Return the middle of an image, seen with an angle, a size and a shift."""
    angle, size, down, right = p
    c, s = np.cos(angle), np.sin(angle)
    y, x = GRID - MIDDLE
    places = np.exp(size) * np.stack([c * y - s * x, s * y + c * x]) + MIDDLE + np.stack([down, right])[:, None, None]
    return map_coordinates(image, places, order=1, mode="nearest")


TRUTH = np.array([0.16, -0.08, 7.0, -9.0])
target = lambda width: view(gaussian_filter(PHOTO, width), TRUTH)

# %%
# Blurred pictures first, for their valleys are wide. Four parameters: forward mode has the Jacobian in four passes.
p = np.zeros(4)
errors, shots = [], [view(PHOTO, p)]
for width in (8.0, 4.0, 2.0, 1.0, 0.5):
    blurred, wanted = gaussian_filter(PHOTO, width), target(width)
    for _ in range(4):
        residual = lambda p, blurred=blurred, wanted=wanted: (view(blurred, p) - wanted).ravel()
        p = p - np.linalg.lstsq(fad.jacfwd(residual)(p), residual(p))[0]
        errors.append(np.abs(p - TRUTH) / np.array([1, 1, 100, 100]))
    shots.append(view(PHOTO, p))
print("found", p.round(4), "truth", TRUTH)

wanted = view(PHOTO, TRUTH)
both = lambda image: np.clip(np.stack([image, 0.5 * (image + wanted), wanted], axis=-1), 0, 1)
figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.3), width_ratios=(1, 1, 0.9))
for ax, image, title in zip(
    axes, (shots[0], shots[-1]), ("before: red and blue disagree", "after: they are one"), strict=False
):
    ax.imshow(both(image))
    ax.set_title(title)
    ax.axis("off")
axes[2].semilogy(errors, "o-", markersize=4, label=["angle", "size", "down / 100", "right / 100"])
for k, width in enumerate((8, 4, 2, 1, 0.5)):
    axes[2].axvline(4 * k - 0.5, color="#dddddd")
    axes[2].annotate(f"blur {width}", (4 * k, axes[2].get_ylim()[1]), fontsize=7, va="top")
axes[2].set(xlabel="step", title="Error of each parameter")
axes[2].legend()
plt.show()
