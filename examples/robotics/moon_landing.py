"""
Landing on the Moon with the least fuel
=======================================

Apollo's lunar module, a minute and a quarter before it lands: 2.3 kilometres up, falling and drifting. When to burn
the engine, and in what direction? The thrust in forty moments is found by a gradient through the flight. Fuel burnt
makes the vehicle lighter, so the equations are not linear.

Numbers of Apollo 11: mass 10 300 kg at this point, thrust up to 45 kN, exhaust speed 3050 m/s, gravity 1.62 m/s².
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad

plt.style.use("fad.style")

MASS, THRUST, EXHAUST, GRAVITY = 10300.0, 45000.0, 3050.0, np.array([0.0, -1.62])
START = np.array([-8000.0, 2300.0, 150.0, -45.0])  # metres and metres per second
MOMENTS, SECONDS = 40, 76.0


def flight(controls):
    """Return the path (place, speed, mass at each moment) for controls of shape (moments, 2): thrusts in kN."""
    h = SECONDS / MOMENTS
    path = np.empty((MOMENTS + 1, 5))
    path[0] = [*START, MASS]
    for k in range(MOMENTS):
        place, speed, mass = path[k, :2], path[k, 2:4], path[k, 4]
        force = 1000 * controls[k]
        burnt = h * np.sqrt(np.sum(force**2) + 1e2) / EXHAUST
        push = force / (mass - burnt / 2) + GRAVITY
        path[k + 1, :2] = place + h * speed + h**2 / 2 * push
        path[k + 1, 2:4] = speed + h * push
        path[k + 1, 4] = mass - burnt
    return path


def limited(raw):
    """Return controls whose length is below the engine's thrust, for any raw numbers."""
    size = np.sqrt(np.sum(raw**2, axis=1, keepdims=True) + 1e-6)
    return THRUST / 1000 * raw / size * np.tanh(size)


def cost(raw, weight):
    """Fuel in kilograms, and a penalty for not being at rest at the place of landing, or below the ground."""
    path = flight(limited(raw.reshape(MOMENTS, 2)))
    end = path[-1]
    missed = np.sum((end[:2] / 10) ** 2) + np.sum(end[2:4] ** 2)
    below = np.sum(np.maximum(-path[:, 1], 0.0) ** 2)
    return (MASS - end[4]) / 10 + weight * (missed + 0.01 * below)


# %%
# The penalty grows in four stages; each starts from the flight of the one before.
value_and_grad = fad.jit(fad.value_and_grad(cost))
raw, stages = np.tile([-0.3, 0.4], (MOMENTS, 1)).ravel(), []
for weight in (0.03, 0.3, 3.0, 30.0):
    found = minimize(
        value_and_grad,
        raw,
        args=(weight,),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 600, "maxfun": 900, "maxcor": 30},
    )
    raw = found.x
    path = flight(limited(raw.reshape(MOMENTS, 2)))
    stages.append(path)
    print(f"penalty {weight:<5} fuel {MASS - path[-1, 4]:6.1f} kg, missed by {np.hypot(*path[-1, :2]):7.2f} m, "
          f"speed {np.hypot(*path[-1, 2:4]):5.2f} m/s")  # fmt: skip

controls = limited(raw.reshape(MOMENTS, 2))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), width_ratios=(1.6, 1))
left.set_facecolor("#10131a")
left.grid(False)
for k, path in enumerate(stages):
    left.plot(*path[:, :2].T, color="white", alpha=0.15 + 0.2 * k, linewidth=1 + 0.3 * k)
size = np.linalg.norm(controls, axis=1)
left.quiver(*path[:-1, :2].T, *-(controls).T, size, cmap="autumn_r", scale=500, width=0.004)
left.fill_between([-8500, 600], 0, -250, color="#8a8a86")
left.plot(0, 0, "v", color="C3", markersize=11)
left.set(
    xlim=(-8500, 600), ylim=(-250, 3000), xlabel="metres", ylabel="metres", title="The flight; flames are the thrust"
)
time = np.linspace(0, SECONDS, MOMENTS + 1)
right.step(time[:-1], size, where="post", color="C1", label="thrust, kN")
right.axhline(THRUST / 1000, color="#888888", linestyle=":")
right.plot(time, np.hypot(*path[:, 2:4].T), color="C0", label="speed, m/s")
right.set(xlabel="seconds", title="Coast, then brake as late as possible")
right.legend(loc="upper right")
plt.show()
