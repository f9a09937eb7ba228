"""
A forecast that was right for thirty years
==========================================

In 1920 Pearl and Reed fitted a logistic curve to the population of the United States and forecast its limit. The fit
by a gradient takes a moment today; the error bars by the delta method are narrow, and wrong, for they know nothing of
a model that stops being true.

Millions of people, from the decennial census of the United States (public domain).
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

YEARS = np.arange(1790, 2021, 10)
PEOPLE = np.array([
    3.929, 5.308, 7.240, 9.638, 12.866, 17.069, 23.192, 31.443, 38.558, 50.189, 62.980, 76.212, 92.228, 106.022,
    123.203, 132.165, 151.326, 179.323, 203.302, 226.546, 248.710, 281.422, 308.746, 331.449,
])  # fmt: skip


def logistic(p, years):
    limit, middle, rate = np.exp(p[0]), 1900 + 10 * p[1], np.exp(p[2])
    return limit / (1 + np.exp(-rate * (years - middle) / 10))


# %%
# Levenberg's method on the numbers up to a year, with relative errors of two per cent.
def fit(until):
    known = until >= YEARS
    residuals = lambda p: (np.log(logistic(p, YEARS[known])) - np.log(PEOPLE[known])) / 0.02
    p, damping = np.array([5.0, 1.0, -1.0]), 1.0
    for _ in range(60):
        r, j = residuals(p), fad.jacobian(residuals)(p)
        step = np.linalg.solve(j.T @ j + damping * np.eye(3), j.T @ r)
        better = np.sum(residuals(p - step) ** 2) < np.sum(r**2)
        p, damping = (p - step, damping / 4) if better else (p, damping * 4)
    j = fad.jacobian(residuals)(p)
    return p, np.linalg.inv(j.T @ j)


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1.5, 1))
fine = np.linspace(1780, 2060, 300)
for until, colour in ((1920, "C1"), (1970, "C2"), (2020, "C0")):
    p, covariance = fit(until)
    curve = lambda p: logistic(p, fine)
    jacobian = fad.jacobian(curve)(p)
    band = 2 * np.sqrt(np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian))
    left.fill_between(fine, curve(p) - band, curve(p) + band, color=colour, alpha=0.2)
    left.plot(fine, curve(p), color=colour, label=f"fitted up to {until}: limit {np.exp(p[0]):.0f}")
    print(f"up to {until}: limit {np.exp(p[0]):.0f} millions, +- {np.exp(p[0]) * covariance[0, 0] ** 0.5:.0f}")
    # the growth of the curve is its derivative by time, in every year at once
    growth = fad.elementwise_grad(lambda t, p=p: logistic(p, t))(fine)
    right.plot(fine, growth, color=colour)
left.plot(YEARS, PEOPLE, "o", color="#222222", markersize=4, label="census")
left.set(xlabel="year", ylabel="millions of people", ylim=(0, 480), title="A logistic curve, fitted three times")
left.legend()
right.plot(YEARS[1:] - 5, np.diff(PEOPLE) / 10, "o", color="#222222", markersize=4)
right.set(xlabel="year", ylabel="millions a year", title="Growth: the derivative by time")
plt.show()
