"""
Anscombe's quartet, and what each point does
============================================

Four sets of eleven points have the same means, variances and regression line, and look quite different. What tells
them apart is how the line follows each point: the derivative of the slope by the point. It is one ``grad`` through
the regression.

F. J. Anscombe, The American Statistician 27, 1973.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

X = np.array([10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5], dtype=float)
SETS = {
    "a line": (X, np.array([8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68])),
    "a curve": (X, np.array([9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74])),
    "an outlier": (X, np.array([7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73])),
    "one point alone": (
        np.array([8, 8, 8, 8, 8, 8, 8, 19, 8, 8, 8], dtype=float),
        np.array([6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89]),
    ),
}


def line(x, y):
    """Return slope and start of the regression line."""
    slope = np.sum((x - x.mean()) * (y - y.mean())) / np.sum((x - x.mean()) ** 2)
    return slope, y.mean() - slope * x.mean()


# %%
# Arrows show where the slope would go if a point moved: the gradient by both of its coordinates. Size shows how much
# the line's own value at a point follows that point, its leverage: the diagonal of a Jacobian.
figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.6), sharex=True, sharey=True)
for ax, (name, (x, y)) in zip(axes.flat, SETS.items(), strict=True):
    slope, start = line(x, y)
    by_x, by_y = fad.grad(lambda x, y: line(x, y)[0], (0, 1))(x, y)
    fitted = lambda y, x=x: line(x, y)[0] * x + line(x, y)[1]
    leverage = np.diag(fad.jacobian(fitted)(y))
    print(f"{name:<16} y = {start:.2f} + {slope:.3f} x; leverage from {leverage.min():.2f} to {leverage.max():.2f}")
    ends = np.array([3.0, 20.0])
    ax.plot(ends, start + slope * ends, color="C6", linewidth=1.2)
    colours = ax.scatter(
        x, y, s=40 + 350 * leverage, c=leverage, cmap="plasma", vmin=0, vmax=1, edgecolor="white", zorder=2
    )
    ax.quiver(x, y, by_x, by_y, color="#222222", angles="xy", scale=0.55, width=0.004, zorder=3)
    ax.set_title(f"{name}: y = {start:.1f} + {slope:.2f} x")
figure.colorbar(colours, ax=axes, label="leverage", shrink=0.7)
figure.suptitle("Size and colour: leverage; arrow: gradient of the slope by the point", fontsize=10)
plt.show()
