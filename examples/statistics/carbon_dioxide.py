"""
Carbon dioxide in the air, and its acceleration
===============================================

The curve that Charles Keeling began in 1958 rises, and rises ever faster. A Gaussian process puts a smooth curve
through the yearly means; its length scale and its size come from the gradient of the likelihood, through a Cholesky
factor. The slope and the acceleration of the curve are derivatives of the prediction by time.

Yearly means at Mauna Loa in parts per million (NOAA Global Monitoring Laboratory, public domain).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad

plt.style.use("fad.style")

PPM = np.array("""
315.98 316.91 317.64 318.45 318.99 319.62 320.04 321.37 322.18 323.05 324.62 325.68 326.32 327.46 329.68 330.19 331.13
332.03 333.84 335.41 336.84 338.76 340.12 341.48 343.15 344.87 346.35 347.61 349.31 351.69 353.20 354.45 355.70 356.54
357.21 358.96 360.97 362.74 363.88 366.84 368.54 369.71 371.32 373.45 375.98 377.70 379.98 382.09 384.02 385.83 387.64
390.10 391.85 394.06 396.74 398.81 401.01 404.41 406.76 408.72 411.65 414.21 416.41 418.53 421.08
""".split(), dtype=float)  # fmt: skip
YEARS = np.arange(1959.0, 2024.0)
T, Y = (YEARS - 1990) / 10, (PPM - 350) / 10


def kernel(p, a, b):
    """Covariance: a smooth curve of a size and a length (logarithms), on a wide parabola."""
    gap = a[:, None] - b
    product = a[:, None] * b
    return np.exp(2 * p[0] - 0.5 * gap**2 / np.exp(2 * p[1])) + 25 * (1 + product + product**2)


def factor(p):
    return np.linalg.cholesky(kernel(p, T, T) + np.exp(2 * p[2]) * np.eye(len(T)))


def loss(p):
    c = factor(p)
    z = np.linalg.solve(c, Y)
    return 0.5 * np.sum(z**2) + np.sum(np.log(np.diag(c))) + 0.01 * np.sum((p - START) ** 2)


START = np.array([-1.0, 0.0, -3.0])
found = minimize(fad.value_and_grad(loss), START, jac=True, method="BFGS")
size, length, noise = np.exp(found.x)
print(f"length {10 * length:.1f} years, size {10 * size:.2f} ppm, noise {10 * noise:.2f} ppm")

# %%
# The prediction is a function of time, so its slope and acceleration are its derivatives.
c = factor(found.x)
weights = np.linalg.solve(c.T, np.linalg.solve(c, Y))
predict = lambda t: kernel(found.x, np.stack([t]), T)[0] @ weights
t = np.linspace(-3.1, 4.4, 160)
curve = fad.vmap(predict)(t)
slope = fad.vmap(fad.grad(predict))(t)
acceleration = fad.vmap(fad.grad(fad.grad(predict)))(t)
spread = np.linalg.solve(c, kernel(found.x, T, t))
error = 20 * np.sqrt(np.maximum(np.diag(kernel(found.x, t, t)) - np.sum(spread**2, axis=0), 0.0) + noise**2)
years = 1990 + 10 * t
print(
    f"in 2023: {slope[np.searchsorted(years, 2023)]:.2f} ppm a year; in 1960: {slope[np.searchsorted(years, 1960)]:.2f}"
)

figure, axes = plt.subplots(3, 1, figsize=(8.5, 6.6), sharex=True, height_ratios=(2.2, 1, 1))
axes[0].fill_between(years, 350 + 10 * curve - error, 350 + 10 * curve + error, alpha=0.2)
axes[0].plot(years, 350 + 10 * curve, label="smooth curve, and ten years on")
axes[0].plot(YEARS, PPM, ".", color="C1", label="measured")
axes[0].set(ylabel="ppm", title="Carbon dioxide at Mauna Loa")
axes[0].legend()
axes[1].plot(years, slope, color="C2")
axes[1].set(ylabel="ppm a year", title="First derivative")
axes[2].plot(years, acceleration / 10, color="C3")
axes[2].axhline(0, color="#888888", linewidth=0.8)
axes[2].set(xlabel="year", ylabel="ppm a year²", title="Second derivative")
for ax in axes:
    ax.axvspan(2023, years[-1], color="#000000", alpha=0.04)
plt.show()
