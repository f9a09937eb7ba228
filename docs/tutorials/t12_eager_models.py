"""
PyTorch's tutorials, 3: building models
=======================================

A model is a ``Module``: layers made in ``__init__``, used in ``forward``. Here the usual layers, and what each does
to a picture.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_sample_image

import fad.eager as torch
from fad.eager import nn
from fad.eager.nn import functional as F

plt.style.use("fad.style")
torch.manual_seed(0)


# %%
# A small model, and its parameters.
class TinyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = nn.Linear(100, 200)
        self.activation = nn.ReLU()
        self.linear2 = nn.Linear(200, 10)

    def forward(self, x):
        return F.softmax(self.linear2(self.activation(self.linear1(x))), dim=-1)


model = TinyModel()
print(model)
for name, parameter in model.named_parameters():
    print(name, tuple(parameter.shape))


# %%
# LeNet: convolutions see shapes, poolings make them small, linear layers decide.
class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc1 = nn.Linear(16 * 6 * 6, 120)
        self.fc2 = nn.Linear(120, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


lenet = LeNet()
print(lenet(torch.rand(1, 1, 32, 32)).shape, sum(p.numel() for p in lenet.parameters()), "parameters")

# %%
# A recurrent layer reads a sequence; attention lets each place look at all others.
lstm, attention = nn.LSTM(8, 16, batch_first=True), nn.MultiheadAttention(16, 4, batch_first=True)
states, _ = lstm(torch.rand(2, 5, 8))
mixed, weights = attention(states, states, states)
print(states.shape, mixed.shape, weights.shape)

# %%
# What layers do, on a photograph: an edge filter in a convolution, a pooling, a normalisation, dropout.
photo = torch.tensor(load_sample_image("china.jpg")[40:360:2, 160:480:2].mean(axis=2) / 255, dtype=torch.float32)[
    None, None
]
edges = nn.Conv2d(1, 1, 3, bias=False)
with torch.no_grad():
    edges.weight[0, 0] = torch.tensor([[-1.0, -1, -1], [-1, 8, -1], [-1, -1, -1]])
layers = {
    "photograph": nn.Identity(), "Conv2d (edges)": edges, "MaxPool2d(8)": nn.MaxPool2d(8),
    "Dropout(0.5)": nn.Dropout(0.5), "InstanceNorm2d": nn.InstanceNorm2d(1), "Upsample of a pooling": nn.Sequential(
        nn.AvgPool2d(10), nn.Upsample(scale_factor=10, mode="bilinear")),
}  # fmt: skip
figure, axes = plt.subplots(2, 3, figsize=(10, 6.6))
for ax, (name, layer) in zip(axes.flat, layers.items(), strict=True):
    with torch.no_grad():
        ax.imshow(layer(photo)[0, 0].numpy(), cmap="gray")
    ax.set_title(name)
    ax.axis("off")
plt.show()
