"""
PyTorch's tutorials, 4: training
================================

Data set and loader, a model, a loss, an optimiser, the loop: the parts of every training, on handwritten digits.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import fad.eager as torch
from fad.eager import nn
from fad.eager.utils.data import DataLoader, TensorDataset, random_split

plt.style.use("fad.style")
torch.manual_seed(0)

# %%
# The data: 1797 images of 8 x 8 pixels. A loader shuffles and makes batches.
digits = load_digits()
images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
labels = torch.tensor(digits.target)
training, validation = random_split(TensorDataset(images, labels), [1437, 360])
loader = DataLoader(training, batch_size=64, shuffle=True)
inputs, answers = next(iter(loader))
print(inputs.shape, answers[:8])

# %%
# The model, the loss, the optimiser.
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12 * 16, 64), nn.ReLU(),
    nn.Dropout(0.2), nn.Linear(64, 10),
)  # fmt: skip
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)


# %%
# One epoch: gradients to zero, forward, loss, backward, step.
def train_one_epoch():
    model.train()
    losses = []
    for inputs, answers in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), answers)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


held_out, held_out_labels = images[validation.indices], labels[validation.indices]
history, checks = [], []
for epoch in range(8):
    history += train_one_epoch()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(held_out)
        checks.append(
            (loss_fn(out, held_out_labels).item(), (out.argmax(dim=1) == held_out_labels).float().mean().item())
        )
    print(f"epoch {epoch + 1}: validation loss {checks[-1][0]:.3f}, accuracy {checks[-1][1]:.3f}")

# %%
# Saving and loading: ``state_dict``, in a safetensors file (never pickle).
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.safetensors"
    torch.save(model.state_dict(), path)
    print(list(torch.load(path))[:2], path.stat().st_size, "bytes")

# %%
figure = plt.figure(figsize=(10.5, 4.3))
ax = figure.add_subplot(121)
ax.plot(history, linewidth=0.8, label="each batch")
ax.plot([len(loader) * (i + 1) for i in range(8)], [c[0] for c in checks], "o-", color="C1", label="validation")
ax.set(yscale="log", xlabel="step", title=f"Loss; accuracy {100 * checks[-1][1]:.1f} %")
ax.legend()
with torch.no_grad():
    guessed = model(held_out).argmax(dim=1)
for k in range(15):
    ax = figure.add_subplot(3, 10, 10 * (k // 5) + 6 + k % 5)
    ax.imshow(held_out[k, 0].numpy(), cmap="Greens" if guessed[k] == held_out_labels[k] else "Reds")
    ax.set_title(f"{int(guessed[k])}", fontsize=9)
    ax.axis("off")
plt.show()
