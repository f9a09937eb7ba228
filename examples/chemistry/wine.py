"""
Three vineyards, told apart by chemistry
========================================

Thirteen measurements of 178 wines. Which plane shows best from which of three vineyards a wine is? Neighbourhood
components: choose the plane so that the nearest neighbour of a wine is most probably from the same vineyard. The
probability is a smooth function of the plane, so its gradient finds the plane.

The data come with scikit-learn (Forina and others, PARVUS, 1991; UCI Machine Learning Repository).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_wine

import fad

plt.style.use("fad.style")

wine = load_wine()
X = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0)
SAME = wine.target[:, None] == wine.target


def lost(plane):
    """Return how probably a random neighbour is from another vineyard, and a little for large planes."""
    places = X @ plane.reshape(13, 2)
    squares = np.sum((places[:, None] - places) ** 2, axis=-1)
    squares = squares + 1e9 * np.eye(len(X))  # nobody is his own neighbour
    odds = np.exp(-(squares - squares.min(axis=1, keepdims=True)))
    chance = odds / odds.sum(axis=1, keepdims=True)
    return 1 - np.sum(chance * SAME) / len(X) + 1e-3 * np.sum(plane**2)


# %%
# The start is the plane of the largest variance (principal components), which knows nothing of vineyards.
_, _, directions = np.linalg.svd(X, full_matrices=False)
start = directions[:2].T.ravel()
found = minimize(fad.jit(fad.value_and_grad(lost)), start, jac=True, method="L-BFGS-B", options={"maxiter": 60})
print(
    f"from another vineyard: {100 * lost(start):.1f} % before, {100 * found.fun:.2f} % after {found.nit} steps"
)

# %%
# Left the plane of the largest variance, right the one that was learnt, with the measurements that span it.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.8))
for ax, plane, title in zip(axes, (start, found.x), ("Principal components", "Learnt by its gradient"), strict=True):
    plane = plane.reshape(13, 2)
    places = X @ plane
    for k, (name, colour) in enumerate((("Barolo", "C1"), ("Grignolino", "C0"), ("Barbera", "C2"))):
        ax.scatter(*places[wine.target == k].T, color=colour, s=24, alpha=0.8, edgecolor="white", label=name)
    longest = np.argsort(-np.sum(plane**2, axis=1))[:5]
    scale = 0.9 * np.abs(places).max() / np.abs(plane[longest]).max() * 0.6
    for i in longest:
        ax.annotate("", scale * plane[i], (0, 0), arrowprops={"arrowstyle": "->", "color": "#444444"})
        ax.annotate(wine.feature_names[i].replace("_", " "), 1.06 * scale * plane[i], fontsize=8, ha="center")
    ax.set(title=title, xticks=[], yticks=[])
axes[0].legend()
plt.show()
