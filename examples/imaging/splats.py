"""
A photograph painted with 160 blobs
===================================

Each blob has a place, a size, a slant, a colour and an opacity: nine numbers. A gradient through the painter, which
is plain NumPy, moves all 1440 of them at once until the painting looks like the photograph. So scenes are captured in
three dimensions, too (Gaussian splatting).

The photograph comes with scikit-learn (flower.jpg).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import fad
from fad import optim

plt.style.use("fad.style")

PHOTO = load_sample_image("flower.jpg")[20:420:8, 120:600:8].astype("float32") / 255
ROWS, COLUMNS, _ = PHOTO.shape
BLOBS, STEPS = 160, 220
Y, X = (g.astype("float32").ravel() for g in np.mgrid[0:ROWS, 0:COLUMNS])


def paint(blobs):
    """Return the image: a mixture of the blobs' colours, weighted by how much of each covers a pixel."""
    dx, dy = X - blobs["place"][:, :1], Y - blobs["place"][:, 1:]
    c, s = np.cos(blobs["slant"])[:, None], np.sin(blobs["slant"])[:, None]
    along, across = (c * dx + s * dy) * np.exp(-blobs["size"][:, :1]), (c * dy - s * dx) * np.exp(-blobs["size"][:, 1:])
    cover = np.exp(blobs["weight"][:, None] - 0.5 * (along**2 + across**2))
    return (cover.T @ blobs["colour"]) / (cover.sum(axis=0)[:, None] + 1e-3)


def loss(blobs):
    return np.mean((paint(blobs) - PHOTO.reshape(-1, 3)) ** 2)


# %%
# Blobs start at random places, in the colour of the photograph there.
rng = np.random.default_rng(0)
place = rng.uniform((0, 0), (COLUMNS, ROWS), (BLOBS, 2)).astype("float32")
blobs = {
    "place": place,
    "size": np.full((BLOBS, 2), 0.9, "float32"),
    "slant": rng.uniform(0, np.pi, BLOBS).astype("float32"),
    "colour": PHOTO[place[:, 1].astype(int), place[:, 0].astype(int)],
    "weight": np.zeros(BLOBS, "float32"),
}
start = fad.tree.map(np.copy, blobs)
rates = {"place": 0.35, "size": 0.03, "slant": 0.05, "colour": 0.01, "weight": 0.03}
adam = optim.Adam(lr=1.0)
state = adam.init(blobs)
step = fad.jit(fad.value_and_grad(loss))
losses = []
for i in range(STEPS):
    value, gradient = step(blobs)
    moved, state = adam.update(gradient, state, blobs)
    slower = 0.5 * (1 + np.cos(np.pi * i / STEPS)) + 0.02
    blobs = {k: blobs[k] + np.float32(slower * rates[k]) * (moved[k] - blobs[k]) for k in blobs}
    losses.append(float(value))
print(f"squared error {losses[0]:.4f} -> {losses[-1]:.5f}")

figure, axes = plt.subplots(1, 4, figsize=(13, 3))
for ax, image, title in zip(
    axes,
    (paint(start), paint(blobs), PHOTO),
    ("160 blobs at random", f"after {STEPS} steps", "photograph"),
    strict=False,
):
    ax.imshow(np.clip(image.reshape(ROWS, COLUMNS, 3), 0, 1), interpolation="bilinear")
    ax.set_title(title)
    ax.axis("off")
angle = np.linspace(0, 2 * np.pi, 40)
for (x, y), (a, b), slant, colour in zip(
    blobs["place"], np.exp(blobs["size"]), blobs["slant"], blobs["colour"], strict=True
):
    ex, ey = a * np.cos(angle), b * np.sin(angle)
    axes[3].plot(
        x + np.cos(slant) * ex - np.sin(slant) * ey,
        y + np.sin(slant) * ex + np.cos(slant) * ey,
        color=np.clip(colour, 0, 1),
        linewidth=1,
    )
axes[3].set(title="the blobs", xlim=(0, COLUMNS), ylim=(ROWS, 0), aspect="equal")
axes[3].axis("off")
plt.show()
