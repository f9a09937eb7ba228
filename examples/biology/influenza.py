"""
An influenza in a boarding school
=================================

In January 1978 an influenza went through a boarding school of 763 boys. Three differential equations describe it: the
healthy are infected by the sick, the sick recover. The gradient goes through all steps of the solver, and tells the
rates at which boys fell ill and recovered.

The number of boys in bed on each day is from the British Medical Journal of 4 March 1978.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4], dtype=float)
BOYS = 763.0


def epidemic(p, days=14, steps=20):
    """Return healthy, sick and recovered boys on each day, by the method of Runge and Kutta."""
    infection, recovery, first = np.exp(p)

    def rates(y):
        healthy, sick, _ = y
        new = infection * healthy * sick / BOYS
        return np.stack([-new, new - recovery * sick, recovery * sick])

    y, h = np.stack([BOYS - first, first, 0.0]), 1 / steps
    found = np.empty((days, 3))
    for day in range(days):
        found[day] = y  # arrays may be written into
        for _ in range(steps):
            a = rates(y)
            b = rates(y + h / 2 * a)
            c = rates(y + h / 2 * b)
            d = rates(y + h * c)
            y = y + h / 6 * (a + 2 * b + 2 * c + d)
    return found


# %%
# Counts have errors of about their square root, so square roots are compared. Three parameters and fourteen numbers:
# forward mode has the Jacobian in three passes, and Levenberg's method damps the steps.
residuals = lambda p: 2 * (np.sqrt(epidemic(p)[:, 1]) - np.sqrt(IN_BED))
run, jacobian = fad.jit(residuals), fad.jit(fad.jacfwd(residuals))
p, damping = np.log([1.5, 0.4, 2.0]), 1.0
for _ in range(15):
    r, j = run(p), jacobian(p)
    step = np.linalg.solve(j.T @ j + damping * np.eye(3), j.T @ r)
    if np.sum(run(p - step) ** 2) < np.sum(r**2):
        p, damping = p - step, damping / 5
    else:
        damping *= 5
infection, recovery, first = np.exp(p)
print(f"a sick boy infects {infection:.2f} a day and stays in bed {1 / recovery:.1f} days")

# %%
# The number that decides about an epidemic is how many one sick boy infects in all. Its error, and the band around
# the curve, come from the inverse of the Gauss-Newton matrix.
j = jacobian(p)
covariance = np.linalg.inv(j.T @ j) * np.mean(run(p) ** 2)
number = lambda p: np.exp(p[0] - p[1])
slope = fad.grad(number)(p)
print(f"reproduction number {number(p):.2f} +- {np.sqrt(slope @ covariance @ slope):.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=(1.5, 1))
found, days = epidemic(p), np.arange(14)
draws = np.random.default_rng(0).multivariate_normal(p, covariance, 60)
for y in fad.vmap(epidemic)(draws):
    left.plot(days, y[:, 1], color="C1", alpha=0.05)
for k, (name, colour) in enumerate((("healthy", "C2"), ("in bed", "C1"), ("recovered", "C0"))):
    left.plot(days, found[:, k], color=colour, label=name)
left.plot(days, IN_BED, "o", color="black", label="counted")
left.set(xlabel="day", ylabel="boys", title="763 boys in January 1978")
left.legend()
sensitivity = fad.jacfwd(lambda p: epidemic(p)[:, 1])(p)
for k, name in enumerate(("rate of infection", "rate of recovery", "first cases")):
    right.plot(days, sensitivity[:, k] / 100, label=name, color=f"C{k + 3}")
right.set(xlabel="day", ylabel="boys in bed per 1 % more", title="What a parameter changes")
right.legend()
plt.show()
