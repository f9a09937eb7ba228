"""
Which way will a double pendulum fall?
======================================

Two rods, one below the other, are a simple machine that nobody can forecast. How fast two neighbouring motions part
is the derivative of the end by the start: forward mode carries it along with the motion, and ``vmap`` does so for ten
thousand starts at once. The picture is a map of chaos.

Rods of one metre and one kilogram; gravity 9.81 m/s².
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")


def acceleration(state):
    """Angles and their speeds of two rods -> their derivatives by time (Lagrange's equations)."""
    a, b, u, v = state
    s, c = np.sin(a - b), np.cos(a - b)
    below = 2 - c**2
    du = (-(u**2) * s * c + 9.81 * (np.sin(b) * c - 2 * np.sin(a)) - v**2 * s) / below
    dv = (v**2 * s * c + 2 * (9.81 * (np.sin(a) * c - np.sin(b)) + u**2 * s)) / below
    return np.stack([u, v, du, dv])


def swing(start, steps=160, h=0.02):
    """Return the state after some steps by the method of Runge and Kutta; start has the two angles."""
    y = np.stack([start[0], start[1], 0.0 * start[0], 0.0 * start[1]])
    for _ in range(steps):
        k1 = acceleration(y)
        k2 = acceleration(y + h / 2 * k1)
        k3 = acceleration(y + h / 2 * k2)
        k4 = acceleration(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


# %%
# One direction of forward mode per start. The logarithm of the growth per second is Lyapunov's exponent.
angles = np.linspace(-np.pi, np.pi, 101)
grid = np.stack(np.meshgrid(angles, angles), axis=-1).reshape(-1, 2)


def growth(start):
    _, moved = fad.jvp(swing, (start,), (np.array([1.0, 1.0]) / np.sqrt(2),))
    return np.log(np.sqrt(np.sum(moved[:2] ** 2)) + 1e-12) / (160 * 0.02)


exponents = fad.vmap(growth)(grid).reshape(101, 101)
print(f"calm (below 0.3 per second): {100 * np.mean(exponents < 0.3):.0f} % of the starts")

# %%
# Beside the map: three hundredths of a degree apart, at a calm and at a wild start.
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 4), width_ratios=(1.25, 1, 1))
image = left.imshow(
    exponents, extent=(-180, 180, -180, 180), origin="lower", cmap="magma", vmin=0, interpolation="bilinear"
)
figure.colorbar(image, label="parting of neighbours, per second", shrink=0.85)
left.grid(False)
left.set(xlabel="first rod, degrees", ylabel="second rod, degrees", title="A map of chaos")
for ax, start, name in ((middle, (50.0, 20.0), "calm"), (right, (150.0, -160.0), "wild")):
    left.plot(*start, "o", color="white", markeredgecolor="black")
    for k in range(3):
        first = np.radians(np.array(start) + 0.03 * k)
        y, path = swing(first, 0), []
        for _ in range(300):
            path.append(y)
            k1 = acceleration(y)
            y = y + 0.02 * acceleration(y + 0.01 * k1)
        a, b = np.stack(path)[:, :2].T
        x, z = np.sin(a) + np.sin(b), -np.cos(a) - np.cos(b)
        ax.plot(x, z, color=f"C{k}", linewidth=0.9)
        ax.plot([0, np.sin(a[-1]), x[-1]], [0, -np.cos(a[-1]), z[-1]], "o-", color=f"C{k}", linewidth=3)
    ax.set(aspect="equal", title=f"{name}: three neighbours, six seconds", xlim=(-2.1, 2.1), ylim=(-2.1, 2.1))
    ax.axis("off")
plt.show()
