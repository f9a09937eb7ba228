"""
PyTorch's tutorials, 1: tensors
===============================

``fad.eager`` has PyTorch's tensors on top of NumPy: the same names and results, no other package to install. This and
the next four pages follow the subjects of PyTorch's own introduction. Code for PyTorch changes in one line, the
import.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad.eager as torch

plt.style.use("fad.style")

# %%
# A tensor is an array with a history. It is made from numbers, from an array, or with random numbers.
torch.manual_seed(0)
data = torch.tensor([[1, 2], [3, 4]], dtype=torch.float32)
print(data)
print(torch.rand(2, 3), torch.zeros(2), torch.arange(4), sep="\n")

# %%
# Shape, dtype and indexing are as in PyTorch; a trailing underscore changes a tensor in place.
print(data.shape, data.dtype, data[:, 1], data[..., -1])
data.add_(10)
print(data)

# %%
# Arithmetic, matrix products, joining, reductions.
print(data @ data.T)
print(torch.cat([data, data], dim=1).sum(dim=0), data.mean().item())

# %%
# A tensor and a NumPy array may share their memory: what one writes, the other sees.
array = np.ones(3)
shared = torch.from_numpy(array)
array += 1
print(shared, shared.numpy() is not None)

# %%
# Broadcasting draws a picture: the escape times of Mandelbrot's set, in tensors alone.
x, y = torch.linspace(-2.1, 0.6, 420), torch.linspace(-1.15, 1.15, 360)
re, im = torch.zeros(360, 420), torch.zeros(360, 420)
count = torch.zeros(360, 420)
for _ in range(40):
    re, im = re * re - im * im + x, 2 * re * im + y[:, None]
    inside = re * re + im * im < 4
    count += inside
    re, im = torch.where(inside, re, torch.tensor(2.0)), torch.where(inside, im, torch.tensor(2.0))
figure, ax = plt.subplots(figsize=(7, 5.4))
ax.imshow(np.log1p(count.numpy()), cmap="magma", extent=(-2.1, 0.6, -1.15, 1.15))
ax.set_title("Mandelbrot's set, drawn with tensors")
ax.grid(False)
plt.show()
