"""
Bayesian inference
==================

A posterior is a function of the parameters; with its gradient one finds its top, with the Hessian its width, and with
Hamiltonian Monte Carlo one walks through all of it. Three ways on one model: a noisy wave of unknown frequency.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad

plt.style.use("fad.style")
rng = np.random.default_rng(3)
T = np.sort(rng.uniform(0, 6, 30))
TRUTH = np.array([1.0, 2.2, 0.5])  # size, frequency, phase
SEEN = TRUTH[0] * np.sin(TRUTH[1] * T + TRUTH[2]) + 0.3 * rng.normal(size=30)


def wave(p, t):
    return p[0] * np.sin(p[1] * t + p[2])


def log_density(p):
    likelihood = -0.5 * np.sum((wave(p, T) - SEEN) ** 2) / 0.3**2
    prior = -0.5 * (p[0] ** 2 + ((p[1] - 2) / 0.5) ** 2 + p[2] ** 2)
    return likelihood + prior


# %%
# **The top** of the posterior, and **the width** there: the inverse of the Hessian (Laplace's approximation).
top = minimize(fad.value_and_grad(lambda p: -log_density(p)), np.array([0.8, 2.0, 0.3]), jac=True).x
laplace = np.linalg.inv(fad.hessian(lambda p: -log_density(p))(top))
print("top", top.round(3), "+-", np.sqrt(np.diag(laplace)).round(3))

# %%
# **Hamiltonian Monte Carlo**, for 200 walkers at once. A leap follows the gradient of one walker; ``vmap`` makes it
# 200, and ``jit`` makes it quick.
scale = np.linalg.cholesky(laplace)
slope = fad.jit(fad.vmap(fad.value_and_grad(lambda z: log_density(top + scale @ z))))


def sample(z, count, step=0.3, leaps=8):
    kept, (value, g) = [], slope(z)
    for _ in range(count):
        v = rng.normal(size=z.shape)
        new, new_value, new_g, energy = z, value, g, 0.5 * np.sum(v**2, axis=1)
        for _ in range(leaps):
            v = v + step / 2 * new_g
            new = new + step * v
            new_value, new_g = slope(new)
            v = v + step / 2 * new_g
        take = np.log(rng.uniform(size=len(z))) < new_value - value + energy - 0.5 * np.sum(v**2, axis=1)
        z, g = np.where(take[:, None], new, z), np.where(take[:, None], new_g, g)
        value = np.where(take, new_value, value)
        kept.append(z)
    return np.concatenate(kept[len(kept) // 4 :])


samples = top + sample(rng.normal(size=(200, 3)), 60) @ scale.T
print("mean", samples.mean(axis=0).round(3), "+-", samples.std(axis=0).round(3), "truth", TRUTH)

# %%
# **Variational inference**: the normal distribution that comes nearest, by the gradient of an expectation. The noise
# is fixed and the parameters move it (the reparametrisation trick).
noise = rng.normal(size=(64, 3))


def bound(q):
    mean, low = q["mean"], np.tril(q["low"], -1) + np.diag(np.exp(np.diag(q["low"])))
    draws = mean + noise @ low.T
    return -np.mean(fad.vmap(log_density)(draws)) - np.sum(np.diag(q["low"]))


start = {"mean": top, "low": np.diag(np.full(3, -2.0))}
vector, unravel = fad.tree.ravel(start)
q = unravel(minimize(fad.value_and_grad(lambda v: bound(unravel(v))), vector, jac=True).x)
low = np.tril(q["low"], -1) + np.diag(np.exp(np.diag(q["low"])))
print("variational", q["mean"].round(3), "+-", np.sqrt(np.diag(low @ low.T)).round(3))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.3))
fine = np.linspace(-0.5, 7.5, 300)
for p in samples[:: len(samples) // 80]:
    left.plot(fine, wave(p, fine), color="C0", alpha=0.06)
left.plot(fine, wave(TRUTH, fine), color="C2", linestyle="--", label="truth")
left.plot(T, SEEN, "o", color="C1", label="seen")
left.set(title="Waves from the posterior")
left.legend()
right.hexbin(samples[:, 1], samples[:, 2], gridsize=40, cmap="Blues", mincnt=1)
angle = np.linspace(0, 2 * np.pi, 100)
circle = 2 * np.stack([np.cos(angle), np.sin(angle)])
for matrix, centre, colour, name in ((laplace, top, "C1", "Laplace"), (low @ low.T, q["mean"], "C3", "variational")):
    ellipse = centre[1:, None] + np.linalg.cholesky(matrix[1:, 1:]) @ circle
    right.plot(*ellipse, color=colour, label=name)
right.set(xlabel="frequency", ylabel="phase", title="Posterior of frequency and phase")
right.legend()
plt.show()
