"""
Arrays that change
==================

Simulations write into arrays: ``u[1:-1] += ...``. fad differentiates such programs as they are; nothing has to be
written in another style.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")


# %%
# Heat spreads along a rod. The step writes into the array in place, as one does in NumPy.
def heat(u, steps=400, rate=0.4):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


x = np.linspace(0, 1, 60)
truth = np.where((x > 0.2) & (x < 0.35), 1.0, 0.0) + np.where((x > 0.6) & (x < 0.85), 0.6, 0.0)
seen = heat(truth, 40)

# %%
# How was the rod before? The gradient goes backwards through the steps. ``fad.jit`` makes it quick.
loss = lambda u: np.sum((heat(u, 40) - seen) ** 2) + 1e-5 * np.sum(np.abs(np.diff(u)))
step = fad.jit(fad.value_and_grad(loss))
u, velocity, frames = np.zeros(60), np.zeros(60), []
for i in range(1500):
    value, gradient = step(u)
    velocity = 0.95 * velocity - 0.05 * gradient
    u = u + velocity
    if i in (10, 100, 1499):
        frames.append(u)
print(f"misfit {value:.2e}")

figure, ax = plt.subplots()
ax.plot(x, truth, color="C6", linestyle="--", label="before (unknown)")
ax.plot(x, seen, color="C3", label="seen")
for frame, name in zip(frames, ("10", "100", "1500"), strict=True):
    ax.plot(x, frame, color="C0", alpha=0.3 + 0.35 * (len(name) - 2), label=f"guess after {name} steps")
ax.set(title="Heat run backwards, by the gradient through the writes")
ax.legend()
plt.show()


# %%
# The rules are those of NumPy. A view writes into what it was made from; masks and index arrays work; the arrays that
# were given stay as they were.
def shaped(x):
    out = np.zeros((3, 3))
    diagonal = out.reshape(-1)[::4]
    diagonal[:] = x**2
    out[out > 3] *= 10
    np.add.at(out, (np.array([0, 0]), np.array([1, 1])), x[:2])
    return out


given = np.array([1.0, 2.0, 3.0])
print(shaped(given))
print("gradient of the sum:", fad.grad(lambda x: np.sum(shaped(x)))(given), "; given:", given)


# %%
# What cannot be followed is an error with the line, and what to write instead.
def rounded(x):
    y = np.zeros(3, int)
    y[:] = x
    return np.sum(y)


try:
    fad.grad(rounded)(given)
except fad.errors.ItemAssignmentError as error:
    print(error)


# %%
# A picture of two dimensions: a drop on water, and where it must have fallen so that waves meet at one place.
def water(drop, steps=70, n=64):
    yy, xx = np.mgrid[0:n, 0:n]
    old = np.exp(-((xx - drop[0]) ** 2 + (yy - drop[1]) ** 2) / 8)
    now = old.copy()
    for _ in range(steps):
        new = 2 * now - old
        new[1:-1, 1:-1] += 0.3 * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1])
        new[0] = new[-1] = new[:, 0] = new[:, -1] = 0.0
        old, now = now, new
    return now


place = np.array([22.0, 40.0])
surface, push = fad.jvp(water, (place,), (np.array([1.0, 0.0]),))
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4))
for ax, image, title in ((left, surface, "The surface"), (right, push, "Its derivative by the place of the drop")):
    ax.imshow(image, cmap="RdBu", vmin=-0.2, vmax=0.2, interpolation="bilinear")
    ax.set_title(title)
    ax.axis("off")
plt.show()
