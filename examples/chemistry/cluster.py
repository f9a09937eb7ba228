"""
Thirteen argon atoms, and how they tremble
==========================================

The best shape of a cluster of atoms is the minimum of its energy. Forces are minus its gradient; the vibrations about
the minimum are the eigenvalues of its Hessian. From random starts, the best of 13 atoms is an icosahedron of energy
-44.3268 (Hoare and Pal, Advances in Physics 20, 1971).

The depth of the energy, 119.8 K, and the size of the atoms, 3.405 angstroms, are argon's.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad

plt.style.use("fad.style")

ATOMS, STARTS = 13, 40
PAIRS = np.triu_indices(ATOMS, 1)


def energy(places):
    """Lennard-Jones' energy of all pairs, in units of its depth."""
    gaps = places[PAIRS[0]] - places[PAIRS[1]]
    inverse = 1 / np.sum(gaps**2, axis=1)
    return 4 * np.sum(inverse**6 - inverse**3)


# %%
# From many starts to the ground, each at its own pace: SciPy's minimiser with fad's gradient, compiled.
value_and_forces = fad.jit(fad.value_and_grad(lambda flat: energy(flat.reshape(ATOMS, 3))))
rng = np.random.default_rng(8)
found = []
for _ in range(STARTS):
    start = rng.normal(size=ATOMS * 3)
    start *= 1.2 * ATOMS ** (1 / 3) / np.sqrt(np.sum(start**2) / ATOMS)
    found.append(minimize(value_and_forces, start, jac=True, method="BFGS", options={"maxiter": 300}))
best = min(found, key=lambda f: f.fun)
print(f"best of {STARTS} starts: {best.fun:.4f}")

# %%
# The Hessian of 39 coordinates. Six eigenvalues are zero, for the cluster may move and turn as a whole; the others
# are squares of frequencies. In argon one unit is 1 / (2 pi) of the square root of depth / (mass size²): 0.46
# terahertz.
stiffness, modes = np.linalg.eigh(fad.hessian(energy)(best.x.reshape(ATOMS, 3)).reshape(39, 39))
frequency = (
    np.sqrt(np.clip(stiffness, 0, None)) * np.sqrt(1.380649e-23 * 119.8 / 6.6335e-26) / 3.405e-10 / (2 * np.pi * 1e12)
)
print(f"zero: {np.sum(stiffness < 1e-3)}; vibrations from {frequency[6]:.2f} to {frequency[-1]:.2f} terahertz")

places, shake = best.x.reshape(ATOMS, 3), modes[:, 6].reshape(ATOMS, 3)
figure = plt.figure(figsize=(10.5, 4.4))
ax = figure.add_subplot(131, projection="3d")
distances = np.linalg.norm(places[PAIRS[0]] - places[PAIRS[1]], axis=1)
for i, j, d in zip(*PAIRS, distances, strict=True):
    if d < 1.3:
        ax.plot(*places[[i, j]].T, color="#999999", linewidth=1)
depth = np.linalg.norm(places - places.mean(axis=0), axis=1)
ax.scatter(*places.T, s=260, c=depth, cmap="plasma_r", edgecolor="white", depthshade=False)
ax.quiver(*places.T, *(1.3 * shake).T, color="C1", linewidth=1.6)
ax.set_axis_off()
ax.set_title("The best, and its slowest vibration")
levels = figure.add_subplot(132)
levels.plot(np.sort([f.fun for f in found]), "o-", color="C0")
levels.set(xlabel="start, sorted", ylabel="energy / depth", title="Where the starts arrive")
bars = figure.add_subplot(133)
bars.vlines(frequency[6:], 0, 1, color="C2")
bars.set(xlabel="terahertz", yticks=[], title="The spectrum, by the Hessian")
plt.show()
