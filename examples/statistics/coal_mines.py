"""
Accidents in coal mines: a rate that changes
============================================

How many great accidents a year had Britain's coal mines to fear? The counts are Poisson's; the logarithm of their
rate is a smooth curve. The most probable curve has one unknown per year, and Newton's method needs a Hessian of 112 x
112, of which only three diagonals are not zero: ``fad.sparse`` computes it in three products.

Accidents with ten or more dead, 1851 to 1962 (Jarrett, Biometrika 66, 1979).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import spsolve

import fad

plt.style.use("fad.style")

ACCIDENTS = np.array("""
4 5 4 1 0 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2 1 3 2 2 1 1 1 1 3 0 0 1 0 1 1 0 0 3 1 0 3 2
2 0 1 1 1 0 1 0 1 0 0 0 2 1 0 0 0 1 1 0 2 3 3 1 1 2 1 1 1 1 2 3 3 0 0 0 1 4 0 0 0 1 0 0 0 0 0 1 0 0 1 0 1
""".split(), dtype=float)  # fmt: skip
YEARS = 1851 + np.arange(len(ACCIDENTS))


def energy(logs, smooth=25.0):
    """Minus the log likelihood of the counts, and a price for change from year to year."""
    return np.sum(np.exp(logs) - ACCIDENTS * logs) + 0.5 * smooth * np.sum(np.diff(logs) ** 2)


# %%
# Newton's method with a sparse Hessian.
hessian = fad.sparse.hessian(energy)
print(hessian.explain(np.zeros(len(YEARS))))
logs = np.zeros(len(YEARS))
for step in range(7):
    gradient = fad.grad(energy)(logs)
    print(f"step {step}: norm of the gradient {np.linalg.norm(gradient):.1e}")
    logs = logs - spsolve(hessian(logs).tocsc(), gradient)

# %%
# The inverse of the Hessian is the covariance of the curve (Laplace's approximation). How the curve follows a single
# count is a derivative through the minimum, and the same matrix tells it.
covariance = np.linalg.inv(hessian(logs).toarray())
error = np.sqrt(np.diag(covariance))
draws = np.random.default_rng(1).multivariate_normal(logs, covariance, 40)

figure, (top, bottom) = plt.subplots(2, 1, figsize=(8.5, 5.8), height_ratios=(2, 1), sharex=True)
top.bar(YEARS, ACCIDENTS, color="#c9ced4", width=0.9, label="counted")
for draw in draws:
    top.plot(YEARS, np.exp(draw), color="C0", alpha=0.08, linewidth=1)
top.plot(YEARS, np.exp(logs), color="C0", linewidth=2.5, label="rate, and 40 others as probable")
top.set(ylabel="accidents a year", title="Great accidents in British coal mines")
top.legend()
for year, colour in ((1870, "C2"), (1895, "C1"), (1940, "C3")):
    bottom.fill_between(YEARS, np.exp(logs) * covariance[year - 1851], color=colour, alpha=0.45, label=f"{year}")
bottom.set(xlabel="year", ylabel="rate per accident", title="How the curve follows one more accident in a year")
bottom.legend()
plt.show()
