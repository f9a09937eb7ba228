"""
How Lord Rayleigh found argon
=============================

In 1893 Lord Rayleigh weighed a globe of nitrogen again and again. Nitrogen from air was always heavier than nitrogen
from chemical compounds, by half a per cent: the difference was argon. Are the weights one cloud of points or two?
Both models are fitted by the gradient of their likelihood, and compared.

The 15 weights in grams are Rayleigh's (Proceedings of the Royal Society 55, 1894).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad

plt.style.use("fad.style")

AIR = np.array([2.31017, 2.30986, 2.31010, 2.31001, 2.31024, 2.31010, 2.31028])
COMPOUNDS = np.array([2.30143, 2.29890, 2.29816, 2.30182, 2.29869, 2.29940, 2.29849, 2.29889])
WEIGHTS = 1000 * (np.concatenate([AIR, COMPOUNDS]) - 2.3)  # milligrams above 2.3 g
FLOOR = 0.05  # no width below 0.05 mg, which a balance could tell


def normal(x, mean, log_width):
    width = np.sqrt(FLOOR**2 + np.exp(2 * log_width))
    return -0.5 * ((x - mean) / width) ** 2 - np.log(width) - 0.5 * np.log(2 * np.pi)


def one(p, x=WEIGHTS):
    return normal(x, p[0], p[1])


def two(p, x=WEIGHTS):
    """Logarithmic density of a mixture; p has two means, two widths and the odds of the first."""
    first = -np.logaddexp(0.0, -p[4]) + normal(x, p[0], p[2])
    second = -np.logaddexp(0.0, p[4]) + normal(x, p[1], p[3])
    return np.logaddexp(first, second)


# %%
# SciPy minimises; ``fad.value_and_grad`` is all that it needs.
fits = {}
for name, density, start in (("one cloud", one, [5.0, 1.0]), ("two clouds", two, [10.0, -1.0, -1.0, 0.0, 0.0])):
    loss = lambda p, density=density: -np.sum(density(p))
    fits[name] = minimize(fad.value_and_grad(loss), np.array(start), jac=True, method="BFGS")
    criterion = 2 * fits[name].fun + len(start) * np.log(len(WEIGHTS))
    print(f"{name}: {len(start)} parameters, Bayesian information criterion {criterion:.1f} (smaller is better)")

# %%
# To which cloud does a weight belong? The derivative of the logarithm of the density by the odds answers: it is the
# probability of the first cloud, less its share.
p = fits["two clouds"].x
by_odds = fad.jacobian(lambda odds: two(np.concatenate([p[:4], odds[None]])))(p[4])
belongs = by_odds + 1 / (1 + np.exp(-p[4]))
print("probability of the heavy cloud:", belongs.round(3))

x = np.linspace(-4, 13, 600)
figure, ax = plt.subplots()
ax.fill_between(x, np.exp(two(p, x)), color="C0", alpha=0.25)
ax.plot(x, np.exp(two(p, x)), label="two clouds")
ax.plot(x, np.exp(one(fits["one cloud"].x, x)), color="C6", linestyle="--", label="one cloud")
for weights, colour, name in ((WEIGHTS[:7], "C1", "from air"), (WEIGHTS[7:], "C2", "from compounds")):
    ax.plot(weights, np.full(len(weights), 0.004), "|", color=colour, markersize=22, markeredgewidth=2, label=name)
ax.annotate("the difference is argon", (5, 0.09), ha="center")
ax.annotate("", (p[1], 0.075), (p[0], 0.075), arrowprops={"arrowstyle": "<->", "color": "#555555"})
ax.set(
    xlabel="milligrams above 2.3 g",
    ylabel="density",
    ylim=(0.003, None),
    title="Fifteen weights of a globe of nitrogen",
)
ax.set_yscale("log")
ax.legend(markerscale=0.5)
plt.show()
