"""
Challenger's rubber rings
=========================

The night before 28 January 1986 was cold. Of 23 flights before it, those on cold days had more damaged sealing rings.
Would it have been seen? A logistic regression with its whole posterior: Hamiltonian Monte Carlo, whose trajectories
follow the gradient of the logarithmic density, for 64 chains at once by ``vmap``.

Temperature at launch in °F and whether a ring was damaged (Dalal, Fowlkes and Hoadley, Journal of the American
Statistical Association 84, 1989).
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

FAHRENHEIT = np.array([66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58.0])
DAMAGED = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1.0])
CENTRED = (FAHRENHEIT - 70) / 10


def log_density(w):
    """Logarithm of the posterior: Bernoulli's likelihood and wide normal priors."""
    z = w[0] + w[1] * CENTRED
    return np.sum(DAMAGED * z - np.logaddexp(0.0, z)) - 0.5 * np.sum((w / 5) ** 2)


# %%
# Many chains at once; written for one, and ``vmap`` makes it a batch.
value_and_slope = fad.vmap(fad.value_and_grad(log_density))
rng = np.random.default_rng(0)
chains, step, leaps = 64, 0.35, 8
w = rng.normal(size=(chains, 2))
value, slope = value_and_slope(w)
samples, accepted, trail = [], 0.0, [w[0]]
for i in range(260):
    v = rng.normal(size=w.shape)
    new, new_value, new_slope, energy = w, value, slope, 0.5 * np.sum(v**2, axis=1)
    for _ in range(leaps):
        v = v + step / 2 * new_slope
        new = new + step * v
        new_value, new_slope = value_and_slope(new)
        v = v + step / 2 * new_slope
        if i < 12:
            trail.append(new[0])
    take = np.log(rng.uniform(size=chains)) < new_value - value + energy - 0.5 * np.sum(v**2, axis=1)
    w = np.where(take[:, None], new, w)
    value, slope = np.where(take, new_value, value), np.where(take[:, None], new_slope, slope)
    accepted += take.mean() / 260
    if i >= 60:
        samples.append(w)
samples = np.concatenate(samples)
print(f"{len(samples)} samples, {100 * accepted:.0f} % accepted")
chance = 1 / (1 + np.exp(-(samples[:, 0] + samples[:, 1] * (31 - 70) / 10)))
print(
    f"at 31 °F damage has probability {chance.mean():.3f} (nine tenths: {np.quantile(chance, 0.1):.2f} and more)"
)

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), width_ratios=(1.4, 1))
fine = np.linspace(28, 84, 120)
curves = 1 / (1 + np.exp(-(samples[:, :1] + samples[:, 1:] * (fine - 70) / 10)))
for low, alpha in ((0.05, 0.15), (0.25, 0.25)):
    left.fill_between(fine, *np.quantile(curves, [low, 1 - low], axis=0), color="C0", alpha=alpha)
left.plot(fine, curves.mean(axis=0))
left.plot(FAHRENHEIT, DAMAGED + 0.03 * rng.normal(size=23), "o", color="#333333")
left.axvline(31, color="C1", linestyle="--")
left.annotate("28 January 1986", (31.5, 0.08), color="C1")
left.set(xlabel="temperature, °F", ylabel="probability of damage", title="23 flights, and the cold morning")
right.hexbin(*samples.T, gridsize=38, cmap="Blues", mincnt=1)
right.plot(*np.array(trail).T, color="C1", linewidth=0.8, marker=".", markersize=3)
right.set(xlabel="at 70 °F", ylabel="per 10 °F", title="Posterior, and the way of one chain")
plt.show()
