"""
The colours of a flower on a palace
===================================

Optimal transport moves one cloud of colours onto another at the least cost. Sinkhorn's iteration computes a smooth
version of it with products of matrices, and the gradient of that cost, through the iteration, says where each colour
has to go.

Both photographs come with scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import fad

plt.style.use("fad.style")

CHINA = load_sample_image("china.jpg")[::4, ::4] / 255.0
FLOWER = load_sample_image("flower.jpg")[::4, ::4] / 255.0
rng = np.random.default_rng(0)
source = CHINA.reshape(-1, 3)[rng.choice(CHINA.size // 3, 220, replace=False)]
target = FLOWER.reshape(-1, 3)[rng.choice(FLOWER.size // 3, 220, replace=False)]


def transport(x, y, smooth=0.015, steps=60):
    """Return the cost of moving x onto y, smoothed by entropy: Sinkhorn's iteration on logarithms."""
    cost = np.sum((x[:, None] - y) ** 2, axis=-1)
    log_kernel = -cost / smooth
    a, b = np.zeros(len(x)), np.zeros(len(y))
    soft = lambda z, axis: np.logaddexp.reduce(z, axis=axis)
    for _ in range(steps):
        a = -soft(log_kernel + b, 1) - np.log(len(x))
        b = -soft(log_kernel + a[:, None], 0) - np.log(len(y))
    return np.sum(np.exp(log_kernel + a[:, None] + b) * cost)


# %%
# Gradient descent: each colour is one of 220 equal parts, so its gradient counts 220 times. The paths are kept.
value_and_grad = fad.jit(fad.value_and_grad(transport))
x, paths = source, [source]
for step in range(13):
    value, gradient = value_and_grad(x, target)
    x = x - 0.15 * len(x) * gradient
    paths.append(x)
    if step % 4 == 0:
        print(f"step {step:2d}  cost {value:.4f}")
paths = np.stack(paths)

# %%
# The colours between the samples follow their neighbours, weighted by nearness.
pixels = CHINA.reshape(-1, 3)
squares = np.sum((pixels[:, None] - source) ** 2, axis=-1)
weights = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / 0.004)
moved = pixels + (weights / weights.sum(axis=1, keepdims=True)) @ (paths[-1] - source)

figure = plt.figure(figsize=(11, 6.4))
for k, (image, title) in enumerate(
    ((CHINA, "palace"), (FLOWER, "flower"), (moved.reshape(CHINA.shape), "palace in the flower's colours"))
):
    ax = figure.add_subplot(2, 2, k + 1)
    ax.imshow(np.clip(image, 0, 1))
    ax.set_title(title)
    ax.axis("off")
ax = figure.add_subplot(2, 2, 4, projection="3d")
for i in range(0, len(source), 2):
    ax.plot(*paths[:, i].T, color=np.clip(paths[-1, i], 0, 1), linewidth=1)
ax.scatter(*paths[-1].T, c=np.clip(paths[-1], 0, 1), s=14)
ax.set(
    title="where each colour goes", xlabel="red", ylabel="green", zlabel="blue", xlim=(0, 1), ylim=(0, 1), zlim=(0, 1)
)
ax.tick_params(labelsize=7)
plt.show()
