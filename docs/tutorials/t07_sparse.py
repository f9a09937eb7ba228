"""
Sparse derivatives
==================

On a grid each number depends on its neighbours alone, and of a Jacobian with millions of entries nearly all are zero.
``fad.sparse`` finds out which, and computes the rest with a handful of passes.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import spsolve

import fad

plt.style.use("fad.style")


# %%
# A soap film in a frame of wire: of all surfaces over a grid, that of the least area. The frame is given; what is
# inside is unknown.
n = 41
edge = np.linspace(-1, 1, n)
frame = np.zeros((n, n))
frame[0], frame[-1] = 0.6 * np.cos(np.pi * edge), -0.6 * np.cos(np.pi * edge)
frame[:, 0] = frame[:, -1] = 0.6 * np.cos(np.pi * edge[0]) * np.cos(np.pi * (edge + 1) / 2)


def area(inside):
    z = np.array(frame)
    z[1:-1, 1:-1] = inside
    down, right = np.diff(z, axis=0)[:, :-1], np.diff(z, axis=1)[:-1]
    return np.sum(np.sqrt(1 + (down**2 + right**2) * (n / 2) ** 2))


hessian = fad.sparse.hessian(area)
inside = np.zeros((n - 2, n - 2))
hessian.explain(inside)

# %%
# Newton's method with a sparse solver. Each step computes the Hessian of 1521 unknowns from nine products.
norms, surfaces = [], [inside]
for _ in range(12):
    gradient = fad.grad(area)(inside)
    norms.append(np.linalg.norm(gradient))
    step = spsolve(hessian(inside).tocsc(), gradient.ravel()).reshape(inside.shape)
    while area(inside - step) > area(inside) + 1e-12:
        step = step / 2
    inside = inside - step
    surfaces.append(inside)
    if norms[-1] < 1e-9:
        break
print(" ".join(f"{norm:.0e}" for norm in norms))

# %%
figure = plt.figure(figsize=(11, 4.4))
ax = figure.add_subplot(131, projection="3d")
film = frame.copy()
film[1:-1, 1:-1] = inside
ax.plot_surface(*np.meshgrid(edge, edge), film, cmap="viridis", linewidth=0, alpha=0.95)
ax.set_axis_off()
ax.set_title("The film")
ax = figure.add_subplot(132)
ax.spy(hessian(inside)[:200, :200], markersize=1.2, color="C0")
ax.set_title("A corner of the Hessian", y=1.08)
ax = figure.add_subplot(133)
ax.semilogy(norms, "o-")
ax.set(xlabel="step", title="Norm of the gradient")
plt.show()

# %%
# How the places are grouped: columns that share no row are computed in one pass. The Jacobian of a small problem, its
# columns coloured by pass.
residual = lambda u: np.pad(u, 1)[2:] - 2 * u + np.pad(u, 1)[:-2] + 0.1 * u**2
small = fad.sparse.jacobian(residual)
matrix = small(np.ones(24)).tocoo()
figure, ax = plt.subplots(figsize=(5, 4.6))
ax.scatter(matrix.col, matrix.row, c=matrix.col % 3, cmap="Set1", marker="s", s=42, vmin=0, vmax=8)
ax.set(title=small.explain(np.ones(24)), xlabel="column", ylabel="row", aspect="equal")
ax.title.set_fontsize(9)
ax.invert_yaxis()
plt.show()
