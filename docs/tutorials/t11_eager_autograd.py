"""
PyTorch's tutorials, 2: autograd
================================

A tensor with ``requires_grad=True`` remembers what is done with it; ``backward()`` goes back through that history and
leaves the derivative in ``.grad``.
"""

import matplotlib.pyplot as plt

import fad.eager as torch

plt.style.use("fad.style")

# %%
# Each result knows the operation that made it.
a = torch.linspace(0.0, 2 * torch.pi, 25, requires_grad=True)
b = torch.sin(a)
c = 2 * b
out = (c + 1).sum()
print(b.grad_fn, c.grad_fn, out.grad_fn, sep="\n")

# %%
# Backwards: the derivative of the sum of 2 sin(a) + 1 is 2 cos(a).
out.backward()
figure, ax = plt.subplots()
ax.plot(a.detach().numpy(), b.detach().numpy(), "o-", label="b = sin(a)")
ax.plot(a.detach().numpy(), a.grad.numpy(), "o-", label="a.grad, the derivative of the sum of 2 sin(a) + 1")
ax.set(xlabel="a", title="backward() leaves the derivative in .grad")
ax.legend()
plt.show()

# %%
# Why is my gradient ``None``? Only leaves keep theirs: tensors that were made, not computed. ``retain_grad()`` keeps
# that of a result.
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 3
y.retain_grad()
(y**2).sum().backward()
print(x.is_leaf, x.grad, y.is_leaf, y.grad)

# %%
# Gradients add up, which is why training loops call ``zero_grad()``.
x = torch.tensor(3.0, requires_grad=True)
for _ in range(2):
    (x**2).backward()
print(x.grad)
x.grad.zero_()
print(x.grad)

# %%
# Turning it off: ``no_grad`` for a while, ``detach`` for one tensor.
with torch.no_grad():
    print((x * 2).requires_grad, x.detach().requires_grad, (x * 2).requires_grad)

# %%
# Changing a tensor that the backward pass still needs is an error, as in PyTorch.
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.exp()
y.add_(1)
try:
    y.sum().backward()
except RuntimeError as error:
    print(str(error)[:150])

# %%
# The derivative of a derivative: ``create_graph=True``. And the transforms of functions in ``torch.func``.
x = torch.linspace(-3, 3, 200, requires_grad=True)
curve = torch.tanh(x)
figure, ax = plt.subplots()
ax.plot(x.detach().numpy(), curve.detach().numpy(), label="tanh")
for order in range(1, 4):
    (curve,) = torch.autograd.grad(curve.sum(), x, create_graph=True)
    ax.plot(x.detach().numpy(), curve.detach().numpy(), label=f"derivative {order}")
ax.legend()
ax.set(title="tanh and three derivatives, by create_graph=True")
plt.show()
print(torch.func.hessian(lambda v: (v**3).sum())(torch.tensor([1.0, 2.0])))
