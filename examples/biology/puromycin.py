"""
How fast an enzyme works
========================

The speed of a reaction with an enzyme rises with the concentration of its substrate and levels off (Michaelis and
Menten). Two fits, with and without the drug puromycin, and for each the region of parameters that the data allow: the
ellipse of the Gauss-Newton matrix beside the true level line of the misfit.

The counts per minute are those of Treloar (University of Toronto, 1974), printed in Bates and Watts, Nonlinear
Regression Analysis, 1988.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

CONCENTRATION = np.array([0.02, 0.02, 0.06, 0.06, 0.11, 0.11, 0.22, 0.22, 0.56, 0.56, 1.10, 1.10])
TREATED = np.array([76, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200.0])
UNTREATED = np.array([67, 51, 84, 86, 98, 115, 131, 124, 144, 158, 160.0])


def speed(p, concentration):
    largest, half = p
    return largest * concentration / (half + concentration)


def gauss_newton(f, p, steps=12):
    """Minimise the sum of the squares of f by the method of Gauss and Newton."""
    for _ in range(steps):
        jacobian = fad.jacobian(f)(p)
        p = p - np.linalg.lstsq(jacobian, f(p))[0]
    return p


# %%
# The same lines for both series.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4))
fine = np.linspace(0, 1.2, 200)
for name, counts, colour in (("treated", TREATED, "C1"), ("untreated", UNTREATED, "C0")):
    x = CONCENTRATION[: len(counts)]
    residuals = lambda p, x=x, counts=counts: speed(p, x) - counts
    p = gauss_newton(residuals, np.array([150.0, 0.1]))
    spread = np.sum(residuals(p) ** 2) / (len(counts) - 2)
    covariance = spread * np.linalg.inv(fad.jacobian(residuals)(p).T @ fad.jacobian(residuals)(p))
    error = np.sqrt(np.diag(covariance))
    print(f"{name:<10} largest speed {p[0]:.1f} +- {error[0]:.1f}, half of it at {p[1]:.4f} +- {error[1]:.4f} ppm")

    jacobian = fad.jacobian(lambda p: speed(p, fine))(p)
    band = 2 * np.sqrt(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian))
    left.fill_between(fine, speed(p, fine) - band, speed(p, fine) + band, color=colour, alpha=0.15)
    left.plot(fine, speed(p, fine), color=colour, label=name)
    left.plot(x, counts, "o", color=colour)

    # the ellipse, and the true region: where the misfit is no more than six times the variance above the least
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.sqrt(6.0) * np.stack([np.cos(angle), np.sin(angle)])
    right.plot(*(p[:, None] + np.linalg.cholesky(covariance) @ circle), "--", color=colour)
    a, b = np.meshgrid(
        np.linspace(p[0] - 4 * error[0], p[0] + 4 * error[0], 60), np.linspace(0.6 * p[1], 1.7 * p[1], 60)
    )
    misfit = fad.vmap(lambda p: np.sum(residuals(p) ** 2))(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    right.contourf(a, b, misfit, levels=[0, np.sum(residuals(p) ** 2) + 6 * spread], colors=[colour], alpha=0.25)
    right.plot(*p, "o", color=colour)
left.set(xlabel="concentration, ppm", ylabel="counts per minute²", title="Speed of the reaction")
left.legend()
right.set(xlabel="largest speed", ylabel="concentration at half of it", title="95 % regions: ellipse (dashed) and true")
plt.show()
