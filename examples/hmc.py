"""
Hamiltonian Monte Carlo, many chains at once
============================================

The posterior of a logistic regression on five measurements of scikit-learn's breast-cancer data, sampled by many chains
at once: the logarithmic density is written for one chain, and vmap runs it for all.

Run it as ``python examples/hmc.py --samples 400``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import fad
from fad import data
from fad.nn import functional as F


def load(features=5):
    found = load_breast_cancer()
    x = found.data[:, :features]
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.column_stack([x, np.ones(len(x))]), found.target.astype(float)


def make_density(x, y, prior=1.0):
    def log_density(w):
        return -F.binary_cross_entropy_with_logits(x @ w, y, reduction="sum") - 0.5 * np.sum((w / prior) ** 2)

    return log_density


def sample(log_density, start, samples, key, step=0.1, leaps=12):
    """Return samples of shape (samples, chains, n) and the share of accepted proposals."""
    density_and_slope = fad.vmap(fad.value_and_grad(log_density))
    w, accepted, kept = start, 0.0, []
    p, slope = density_and_slope(w)
    for i in data.progress(range(samples), "sampling"):
        k1, k2 = fad.random.split(fad.random.fold_in(key, i))
        momentum = fad.random.normal(k1, w.shape)
        new_w, new_p, new_slope, v = w, p, slope, momentum
        for _ in range(leaps):
            v = v + step / 2 * new_slope
            new_w = new_w + step * v
            new_p, new_slope = density_and_slope(new_w)
            v = v + step / 2 * new_slope
        gain = new_p - p - 0.5 * np.sum(v**2 - momentum**2, axis=1)
        take = np.log(1 - fad.random.uniform(k2, gain.shape)) < gain
        w = np.where(take[:, None], new_w, w)
        p, slope = np.where(take, new_p, p), np.where(take[:, None], new_slope, slope)
        accepted += take.mean()
        kept.append(w)
    return np.stack(kept), accepted / samples


def r_hat(chains):
    """Gelman and Rubin's ratio per coordinate, from (samples, chains, n): 1 when the chains agree."""
    n = len(chains)
    within = chains.var(axis=0, ddof=1).mean(axis=0)
    between = chains.mean(axis=0).var(axis=0, ddof=1)
    return np.sqrt((n - 1) / n + between / within)


def run(samples=400, chains=32, seed=0):
    x, y = load()
    k1, k2 = fad.random.split(fad.random.key(seed))
    start = fad.random.normal(k1, (chains, x.shape[1]))
    found, rate = sample(make_density(x, y), start, samples, k2)
    return found[samples // 4 :], rate


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    found, rate = run(parser.parse_args().samples)
    print(f"{found.shape[0]} samples of each of {found.shape[1]} chains, {100 * rate:.0f} % accepted")
    names = [*load_breast_cancer().feature_names[:5], "constant"]
    flat = found.reshape(-1, found.shape[-1])
    for name, mean, std, r in zip(names, flat.mean(axis=0), flat.std(axis=0), r_hat(found), strict=True):
        print(f"  {name:<16} {mean:7.3f} +- {std:.3f}   R-hat {r:.3f}")
    plt.style.use("fad.style")
    _, axes = plt.subplots(2, 3, figsize=(10, 4.8))
    for k, (ax, name) in enumerate(zip(axes.flat, names, strict=True)):
        ax.hist(flat[:, k], bins=50, density=True, color=f"C{k}", alpha=0.6)
        ax.axvline(0, color="#888888", linewidth=0.8)
        ax.set_title(name)
        ax.set_yticks([])
    plt.show()


if __name__ == "__main__":
    main()
