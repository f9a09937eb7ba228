"""
Michelson's speed of light
==========================

In 1879 Albert Michelson measured the speed of light in five series of twenty runs. The series do not quite agree. A
hierarchical model gives each series an offset of its own, and asks how large such offsets usually are. All parameters
are found by the gradient, their errors by the Hessian: Laplace's approximation of the posterior.

The numbers are kilometres per second above 299 000 (Michelson, Astronomical Papers 1, 1880).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad

plt.style.use("fad.style")

SPEEDS = np.array("""
850 740 900 1070 930 850 950 980 980 880 1000 980 930 650 760 810 1000 1000 960 960 960 940 960 940 880 800 850 880
900 840 830 790 810 880 880 830 800 790 760 800 880 880 880 860 720 720 620 860 970 950 880 910 850 870 840 840 850
840 840 840 890 810 810 820 800 770 760 740 750 760 910 920 890 860 880 720 840 850 850 780 890 840 780 810 760 810
790 810 820 850 870 870 810 740 810 940 950 800 810 870
""".split(), dtype=float).reshape(5, 20)  # fmt: skip
TRUE = 734.5  # of light in air, in the same unit


# %%
# The parameters are a dictionary; a gradient has the same keys.
def minus_log_posterior(p):
    within, between = np.exp(p["log within"]), np.exp(p["log between"])
    speeds = p["speed"] + between * p["offsets"][:, None]
    likelihood = 0.5 * np.sum(((SPEEDS - speeds) / within) ** 2) + SPEEDS.size * p["log within"]
    prior = (
        0.5 * np.sum(p["offsets"] ** 2) + 0.5 * ((p["speed"] - 850) / 200) ** 2 + 0.5 * (p["log between"] - 3.5) ** 2
    )
    return likelihood + prior


start = {"speed": 800.0, "offsets": np.zeros(5), "log within": 4.0, "log between": 3.0}
flat, unravel = fad.tree.ravel(start)
function = lambda v: minus_log_posterior(unravel(v))
found = minimize(fad.value_and_grad(function), flat, jac=True, method="BFGS")
covariance = np.linalg.inv(fad.hessian(function)(found.x))
p = unravel(found.x)
print(f"{found.nit} steps; speed {299000 + p['speed']:.0f} km/s, within a series +- {np.exp(p['log within']):.0f}")


# %%
# What is drawn for each series is a function of the parameters, and its error follows from its Jacobian.
def series(v):
    p = unravel(v)
    return np.concatenate([p["speed"] + np.exp(p["log between"]) * p["offsets"], [p["speed"]]])


middle, jacobian = series(found.x), fad.jacobian(series)(found.x)
error = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T))
figure, ax = plt.subplots()
jitter = 0.28 * (np.arange(20) / 19 - 0.5)
for i, runs in enumerate(SPEEDS):
    ax.plot(i + 1 + jitter, runs, "o", color=f"C{i}", alpha=0.45)
    ax.plot([i + 0.75, i + 1.25], [runs.mean()] * 2, color=f"C{i}", linewidth=1.2, linestyle=":")
ax.errorbar(np.arange(1, 6), middle[:5], 2 * error[:5], fmt="D", color="black", capsize=4, label="series, two errors")
ax.errorbar([6], middle[5:], 2 * error[5:], fmt="s", color="C1", markersize=9, capsize=5, label="the speed of light")
ax.axhline(TRUE, color="C2", linestyle="--", label="as we know it")
ax.set(xlabel="series", ylabel="km/s above 299 000", title="A hundred measurements, drawn towards each other")
ax.set_xticks(range(1, 7), ["1", "2", "3", "4", "5", "all"])
ax.legend(ncols=3, loc="upper right")
plt.show()
