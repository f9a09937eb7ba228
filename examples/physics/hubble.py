"""
Hubble's law, with outliers
===========================

In 1929 Edwin Hubble compared distances and speeds of 24 nebulae: the farther away, the faster they leave. Least
squares believes every point. Errors from Student's t distribution with few degrees of freedom forgive a point that
lies far off, and the width and the slope are found together by Newton's method.

The table is Hubble's (Proceedings of the National Academy of Sciences 15, 1929, table 1).
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

DISTANCE = np.array([  # in millions of parsecs
    0.032, 0.034, 0.214, 0.263, 0.275, 0.275, 0.45, 0.5, 0.5, 0.63, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.1, 1.1, 1.4, 1.7,
    2.0, 2.0, 2.0, 2.0,
])  # fmt: skip
SPEED = np.array([  # in kilometres per second
    170, 290, -130, -70, -185, -220, 200, 290, 270, 200, 300, -30, 650, 150, 500, 920, 450, 500, 500, 960, 500, 850,
    800, 1090,
])  # fmt: skip


def minus_log_likelihood(p, freedom=4.0):
    """Student's t errors around a line; p holds slope, start, and the logarithm of the width, in 100 km/s."""
    slope, start, log_width = p
    z = (SPEED / 100 - start - slope * DISTANCE) / np.exp(log_width)
    return np.sum(0.5 * (freedom + 1) * np.log1p(z**2 / freedom) + log_width)


# %%
# Newton's method, with a step that is halved until the function falls.
p = np.array([4.0, 0.0, 0.5])
for _ in range(20):
    value, gradient = fad.value_and_grad(minus_log_likelihood)(p)
    step = np.linalg.solve(fad.hessian(minus_log_likelihood)(p) + 1e-9 * np.eye(3), gradient)
    while minus_log_likelihood(p - step) > value + 1e-12:
        step = step / 2
    p = p - step
covariance = np.linalg.inv(fad.hessian(minus_log_likelihood)(p))
print(f"slope {100 * p[0]:.0f} +- {100 * covariance[0, 0] ** 0.5:.0f} km/s per megaparsec, as in 1929; today's is 70")

# %%
# The error of the line itself at any distance comes from the derivative of the line by its parameters.
x = np.linspace(-0.1, 2.2, 100)
line = lambda p: 100 * (p[1] + p[0] * x)
jacobian = fad.jacobian(line)(p)
error = np.sqrt(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian))
least_squares = np.polynomial.Polynomial.fit(DISTANCE, SPEED, 1)

# %%
# How much does each nebula weigh? The weight of a point in the fit is what its residual's slope is to its residual.
z = (SPEED - 100 * (p[1] + p[0] * DISTANCE)) / (100 * np.exp(p[2]))
weight = fad.elementwise_grad(lambda z: 2.5 * np.log1p(z**2 / 4))(z) / (1.25 * z)
figure, ax = plt.subplots()
ax.fill_between(x, line(p) - 2 * error, line(p) + 2 * error, color="C0", alpha=0.15, label="two standard errors")
ax.plot(x, line(p), label=f"Student's t: {100 * p[0]:.0f} km/s per Mpc")
ax.plot(x, least_squares(x), "--", color="C6", linewidth=1.2, label="least squares")
points = ax.scatter(
    DISTANCE, SPEED, c=weight, s=30 + 60 * weight, cmap="inferno", vmin=0, vmax=1, edgecolor="white", zorder=3
)
figure.colorbar(points, label="weight in the fit")
ax.set(xlabel="distance, millions of parsecs", ylabel="speed away from us, km/s", title="24 nebulae of 1929")
ax.legend()
plt.show()
