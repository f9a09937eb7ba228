"""
Lynx and hare: parameters of differential equations
===================================================

Lotka and Volterra's equations for hunters and their prey, with parameters from the pelts that the Hudson's Bay
Company bought. SciPy's solver has derivatives in ``fad.scipy.integrate``: the fit is a call of SciPy's minimiser.

Thousands of pelts, 1900 to 1920 (public domain).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad
from fad.scipy.integrate import solve_ivp

plt.style.use("fad.style")

YEARS = np.arange(1900.0, 1921.0)
HARES = [
    30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2,
    24.7,
]  # fmt: skip
LYNXES = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
PELTS = np.array([HARES, LYNXES])


def field(t, y, birth, hunting, gain, death):
    hares, lynxes = y
    return np.stack([(birth - hunting * lynxes) * hares, (gain * hares - death) * lynxes])


def populations(p, years=YEARS):
    """Return hares and lynxes; p has the logarithms of four rates and of the two numbers in 1900."""
    *rates, hares, lynxes = np.exp(p)
    start = np.stack([hares, lynxes])
    return solve_ivp(field, (years[0], years[-1]), start, t_eval=years, args=tuple(rates), rtol=1e-5, atol=1e-5).y


def loss(p):
    return np.sum((np.log(populations(p)) - np.log(PELTS)) ** 2)


# %%
# The gradient of the misfit through the solver, and the minimum.
start = np.log([0.5, 0.025, 0.025, 0.8, 30.0, 4.0])
found = minimize(fad.value_and_grad(loss), start, jac=True, method="BFGS", options={"maxiter": 40})
print(f"misfit {loss(start):.2f} -> {found.fun:.2f} in {found.nfev} evaluations")
for name, value in zip(("birth", "hunting", "gain", "death"), np.exp(found.x), strict=False):
    print(f"  {name:<8}{value:.4f}")

# %%
# Along a cycle the equations keep a quantity; its level lines are the cycles, its gradient is drawn by ``vmap``.
birth, hunting, gain, death = np.exp(found.x[:4])
kept = lambda y: gain * y[0] - death * np.log(y[0]) + hunting * y[1] - birth * np.log(y[1])
fine = np.linspace(1900, 1920, 400)
path = populations(found.x, fine)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1.5, 1))
for k, (name, colour) in enumerate((("hares", "C0"), ("lynxes", "C1"))):
    left.plot(fine, path[k], color=colour, label=name)
    left.plot(YEARS, PELTS[k], "o", color=colour)
left.set(xlabel="year", ylabel="thousands of pelts", title="Points: counted; curves: fitted")
left.set_xticks(range(1900, 1921, 5))
left.legend()
x, y = np.meshgrid(np.linspace(4, 85, 60), np.linspace(3, 68, 60))
levels = fad.vmap(kept)(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
right.contourf(x, y, levels, levels=25, cmap="Blues_r", alpha=0.7)
right.plot(*path, color="C3", linewidth=2.5)
right.plot(*PELTS, "o", color="white", markeredgecolor="black")
right.set(xlabel="hares", ylabel="lynxes", title="The cycle, and a quantity it keeps")
plt.show()
