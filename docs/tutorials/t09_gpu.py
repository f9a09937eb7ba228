"""
On a GPU
========

The same functions run on arrays of an NVIDIA GPU, which CuPy holds: ``pip install -e '.[cupy]'``. This page is built
on a machine without one, so it shows how a program is written for both, and what happens where there is none.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

# %%
# ``fad.backends.use`` says where new arrays of ``fad.random`` and ``fad.nn`` are made. Without a GPU it is an error
# that says what to install, so a program can choose.
try:
    fad.backends.use("cupy")
    backend = "cupy"
except fad.errors.BackendNotFoundError as error:
    backend = "numpy"
    print(str(error).splitlines()[0])
print("this page was built on", backend)


# %%
# ``fad.device_put`` moves a tree of arrays, ``fad.device_get`` brings it back. NumPy's functions take arrays of
# either kind, so the model below is written once.
def network(p, x):
    for w, b in p[:-1]:
        x = np.tanh(x @ w + b)
    w, b = p[-1]
    return x @ w + b


rng = np.random.default_rng(0)
sizes = (2, 48, 48, 1)
p = [(rng.normal(size=(a, b)) / np.sqrt(a), np.zeros(b)) for a, b in pairwise(sizes)]
x = rng.uniform(-1, 1, (256, 2))
y = np.sin(4 * x[:, :1]) * np.cos(3 * x[:, 1:])
p, x, y = fad.device_put((p, x, y), backend)

# %%
# The training loop is the same on both.
loss = lambda p, x, y: np.mean((network(p, x) - y) ** 2)
adam = fad.optim.Adam(lr=1e-2)
state, losses = adam.init(p), []
step = fad.value_and_grad(loss)
for _ in range(150):
    value, gradient = step(p, x, y)
    p, state = adam.update(gradient, state, p)
    losses.append(float(value))
print(f"loss {losses[0]:.3f} -> {losses[-1]:.5f}")

# %%
# Only what is drawn comes back to the host.
axis = np.linspace(-1, 1, 80)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
found = fad.device_get(network(p, fad.device_put(grid, backend))).reshape(80, 80)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.6))
left.imshow(found, extent=(-1, 1, -1, 1), origin="lower", cmap="RdBu", vmin=-1, vmax=1)
left.set_title("The network")
middle.imshow(np.sin(4 * grid[:, 0]).reshape(80, 80) * np.cos(3 * grid[:, 1]).reshape(80, 80), origin="lower",
              extent=(-1, 1, -1, 1), cmap="RdBu", vmin=-1, vmax=1)  # fmt: skip
middle.set_title("What it learnt from")
right.semilogy(losses)
right.set(xlabel="step", title="Loss")
for ax in (left, middle):
    ax.grid(False)
plt.show()

# %%
# What differs on a GPU: functions that CuPy lacks raise :class:`fad.errors.BackendFunctionError`; arrays of host and
# device do not mix (:class:`fad.errors.BackendMismatchError`). :doc:`/design/gpu` says how it works. Figures beside
# PyTorch and JAX on the same GPU come from ``make bench-gpu``.
