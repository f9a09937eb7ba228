"""
Your first gradient
===================

A derivative says how a result changes when an input does. fad computes it from the program itself: exactly, not by
differences, and for programs with loops and branches.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")


# %%
# A function in plain NumPy. Nothing in it knows of fad.
def wave(x):
    return np.exp(-x / 4) * np.sin(2 * x)


slope = fad.grad(wave)
slope(1.0)

# %%
# ``fad.grad`` makes a function of a function. The new one may be differentiated again, as often as one likes.
curvature = fad.grad(fad.grad(wave))
print(f"wave(1) = {wave(1.0):.4f}, first derivative {slope(1.0):.4f}, second {curvature(1.0):.4f}")

# %%
# Is it right? A difference quotient comes close, and closer as its step shrinks, until rounding spoils it. The
# derivative by fad has no step.
for h in (1e-1, 1e-3, 1e-5, 1e-13):
    print(f"step {h:.0e}: off by {abs((wave(1 + h) - wave(1 - h)) / (2 * h) - slope(1.0)):.1e}")

# %%
# ``fad.vmap`` runs a function for one number on many. Here are the first four derivatives along the curve.
x = np.linspace(0, 8, 300)
figure, ax = plt.subplots()
f = wave
for order in range(5):
    ax.plot(x, fad.vmap(f)(x) / 2**order, label=f"order {order}", alpha=1 - 0.17 * order)
    f = fad.grad(f)
ax.set(xlabel="x", title="A wave and its derivatives, each divided by 2 once more")
ax.legend()
plt.show()

# %%
# With several inputs there are several partial derivatives. ``argnums`` says which; a list, a dictionary or a model
# is an input as well, and its gradient has the same structure.
volume = lambda box: box["width"] * box["depth"] * box["height"]
fad.grad(volume)({"width": 2.0, "depth": 3.0, "height": 4.0})


# %%
# Python's ``if`` and ``while`` work, for the values are there while the function runs. This is Heron's method for a
# root; its derivative is 1/(2 root).
def root(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = (x + a / x) / 2
    return x


fad.value_and_grad(root)(9.0)


# %%
# The gradient of a function of two numbers is an arrow that points uphill. Descending against it finds a valley; the
# path is drawn on the map of the function (Himmelblau's, with four valleys).
def himmelblau(p):
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


figure, ax = plt.subplots(figsize=(6.5, 5.5))
grid = np.stack(np.meshgrid(np.linspace(-5, 5, 120), np.linspace(-5, 5, 120)), axis=-1)
height = fad.vmap(himmelblau)(grid.reshape(-1, 2)).reshape(120, 120)
ax.contourf(grid[..., 0], grid[..., 1], np.log1p(height), levels=30, cmap="cividis")
for start in ((-4.5, -1.0), (0.2, 0.3), (4.5, -4.5), (-0.3, 4.6), (1.0, -2.5)):
    p, path = np.array(start), [start]
    for _ in range(80):
        p = p - 0.008 * fad.grad(himmelblau)(p)
        path.append(p)
    ax.plot(*np.array(path).T, color="white", linewidth=1.4)
    ax.plot(*p, "o", color="C1")
ax.set_title("Five ways downhill")
plt.show()

# %%
# Next: fit a model to data, in the next tutorial. What may surprise is listed in :doc:`/gotchas`.
