"""
PyTorch's tutorials, 5: understanding a model
=============================================

Why did it say three? A gradient by the input tells which pixels mattered; integrated gradients share a decision among
them; hooks show what layers see; and a gradient upwards draws what a class looks like to the model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import fad.eager as torch
from fad.eager import nn

plt.style.use("fad.style")
torch.manual_seed(0)

# %%
# A model to understand, trained quickly.
digits = load_digits()
images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
labels = torch.tensor(digits.target)
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(200):
    pick = torch.randint(0, 1500, (96,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images[pick]), labels[pick]).backward()
    optimizer.step()
with torch.no_grad():
    print(f"accuracy {(model(images[1500:]).argmax(dim=1) == labels[1500:]).float().mean().item():.3f}")


# %%
# **Saliency**: the gradient of the winning score by the pixels. **Integrated gradients**: their mean on the way from
# an empty image, times the image; their sum is the score itself, less that of the empty image.
def saliency(image, label):
    image = image.clone().requires_grad_(True)
    model(image[None])[0, label].backward()
    return image.grad[0]


def integrated(image, label, steps=32):
    total = torch.zeros(8, 8)
    for k in range(steps):
        total += saliency(image * (k + 0.5) / steps, label)
    return total / steps * image[0]


# %%
# **Hooks**: a function that is called with what a layer gives.
seen = {}
handle = model[1].register_forward_hook(lambda layer, inputs, output: seen.update(features=output.detach()))
shown = [1501, 1506, 1512, 1541]
figure, axes = plt.subplots(4, 5, figsize=(9.5, 7.6))
for row, i in zip(axes, shown, strict=True):
    label = int(model(images[i][None]).argmax())
    parts = integrated(images[i], label)
    strongest = np.argsort(-seen["features"][0].sum(dim=(1, 2)).numpy())[:2]
    score = (model(images[i][None]) - model(torch.zeros(1, 1, 8, 8)))[0, label].item()
    print(f"image {i}: said {label}; integrated gradients sum to {parts.sum().item():.3f}, the score is {score:.3f}")
    model(images[i][None])
    for ax, image, title, colours in (
        (row[0], images[i, 0], f"digit {int(labels[i])}", "gray_r"),
        (row[1], saliency(images[i], label), "saliency", "RdBu_r"),
        (row[2], parts, "integrated", "RdBu_r"),
        (row[3], seen["features"][0, int(strongest[0])], "a feature", "viridis"),
        (row[4], seen["features"][0, int(strongest[1])], "another", "viridis"),
    ):
        largest = float(np.abs(image.numpy()).max())
        ax.imshow(image.numpy(), cmap=colours, vmin=-largest if colours == "RdBu_r" else 0, vmax=largest)
        ax.set_title(title, fontsize=9)
        ax.axis("off")
handle.remove()
plt.show()

# %%
# **What is a five, to the model?** Uphill from a grey image, with a price for pixels that differ from their
# neighbours.
dreams = torch.full((10, 1, 8, 8), 0.3).requires_grad_(True)
climb = torch.optim.Adam([dreams], lr=0.03)
for _ in range(150):
    climb.zero_grad()
    scores = model(dreams)[torch.arange(10), torch.arange(10)].sum()
    rough = ((dreams[:, :, 1:] - dreams[:, :, :-1]) ** 2).sum() + ((dreams[..., 1:] - dreams[..., :-1]) ** 2).sum()
    (-scores + 4 * rough).backward()
    climb.step()
    with torch.no_grad():
        dreams.clamp_(0, 1)
figure, axes = plt.subplots(2, 5, figsize=(8.5, 3.8))
for k, ax in enumerate(axes.flat):
    ax.imshow(dreams[k, 0].detach().numpy(), cmap="magma")
    ax.set_title(f"most of all {k}", fontsize=9)
    ax.axis("off")
plt.show()
