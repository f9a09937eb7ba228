"""
Hessians and optimisation
=========================

A gradient says where down is; a Hessian, how the ground bends. With it Newton's method doubles the correct digits in
each step. The Hessian itself is needed only for few variables: its product with a vector costs about two gradients,
whatever their number.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

import fad

plt.style.use("fad.style")


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


# %%
# Three names for second derivatives: the matrix, its product with a vector, and the matrix where most of it is zero.
x = np.array([-1.2, 1.0, -0.5, 0.8])
print(fad.hessian(rosenbrock)(x).round(1))
_, product = fad.hvp(rosenbrock, (x,), (np.ones(4),))
print("times ones:", product.round(1))
print(fad.sparse.hessian(rosenbrock).explain(np.zeros(1000)))


# %%
# Newton's method beside gradient descent, on the valley of two variables.
def newton(x, steps=12):
    path = [x]
    for _ in range(steps):
        step = np.linalg.solve(fad.hessian(rosenbrock)(x), fad.grad(rosenbrock)(x))
        while rosenbrock(x - step) > rosenbrock(x):
            step = step / 2
        x = x - step
        path.append(x)
        if np.max(np.abs(step)) < 1e-12:
            break
    return np.array(path)


def descent(x, steps=2000):
    path = [x]
    for _ in range(steps):
        path.append(path[-1] - 0.0012 * fad.grad(rosenbrock)(path[-1]))
    return np.array(path)


start = np.array([-1.3, 1.5])
paths = {"gradient descent": descent(start), "Newton": newton(start)}
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4))
a, b = np.meshgrid(np.linspace(-1.7, 1.4, 150), np.linspace(-0.6, 2.2, 150))
height = 100 * (b - a**2) ** 2 + (1 - a) ** 2
left.contourf(a, b, np.log10(height + 1e-3), levels=25, cmap="cividis")
for (name, path), colour in zip(paths.items(), ("white", "C1"), strict=True):
    left.plot(*path.T, "o-", color=colour, markersize=3, linewidth=1.3, label=name)
    right.loglog(
        1 + np.arange(len(path)),
        [rosenbrock(p) + 1e-30 for p in path],
        color="C0" if colour == "white" else "C1",
        label=name,
    )
left.set_title("Two ways through Rosenbrock's valley")
right.set(xlabel="step", title="Height above the minimum")
right.legend()
plt.show()

# %%
# In many dimensions: Newton's method that never forms a matrix. Conjugate gradients solve the linear system with
# products alone. ``fad.linearize`` runs the gradient once and its derivative as often as wanted.
n = 2000
x = np.full(n, 1.2)
for step in range(8):
    gradient, push = fad.linearize(fad.grad(rosenbrock), x)
    operator = LinearOperator((n, n), matvec=push, dtype=float)
    direction, _ = cg(operator, gradient, rtol=1e-6, maxiter=200)
    x = x - direction
    print(f"step {step}: norm of the gradient {np.linalg.norm(gradient):.1e}")

# %%
# SciPy's minimisers take both: ``jac`` is the gradient, ``hessp`` the product.
found = minimize(
    fad.value_and_grad(rosenbrock), np.zeros(50), jac=True, method="trust-ncg",
    hessp=lambda x, v: fad.hvp(rosenbrock, (x,), (v,))[1],
)  # fmt: skip
print(found.message, found.nit, "steps")

# %%
# What the three forms cost. The sparse Hessian needs three products, whatever the number of variables.
sizes, times = [30, 100, 300, 1000], {"gradient": [], "product": [], "sparse": [], "dense": []}
for n in sizes:
    x, v, sparse = np.full(n, 0.5), np.ones(n), fad.sparse.hessian(rosenbrock)
    runs = {
        "gradient": lambda x=x: fad.grad(rosenbrock)(x),
        "product": lambda x=x, v=v: fad.hvp(rosenbrock, (x,), (v,)),
        "sparse": lambda x=x, sparse=sparse: sparse(x),
        "dense": lambda x=x: fad.hessian(rosenbrock)(x),
    }
    for name, run in runs.items():
        run()
        begin = time.perf_counter()
        run()
        times[name].append(1000 * (time.perf_counter() - begin))
figure, ax = plt.subplots()
for name, values in times.items():
    ax.loglog(sizes, values, "o-", label=name)
ax.set(xlabel="variables", ylabel="milliseconds", title="What second derivatives cost")
ax.legend()
plt.show()
