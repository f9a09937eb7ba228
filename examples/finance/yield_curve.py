"""
A yield curve and the risk of a bond
====================================

Governments borrow for a month or for thirty years, at rates between which a smooth curve is wanted: Nelson, Siegel
and Svensson's. The fit is a least-squares problem; the price of any bond is then a function of thirteen market rates,
and its gradient by these rates, through the fit, is what a trader hedges.

Par yields of the United States Treasury of 30 December 2022, in per cent (treasury.gov, public domain).
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

YEARS = np.array([1 / 12, 2 / 12, 3 / 12, 4 / 12, 0.5, 1, 2, 3, 5, 7, 10, 20, 30])
RATES = np.array([4.12, 4.41, 4.42, 4.69, 4.76, 4.73, 4.41, 4.22, 3.99, 3.96, 3.88, 4.14, 3.97])


def curve(p, years):
    """Svensson's curve: a level, a slope and two humps, which lie at the times exp(p[4]) and exp(p[5])."""
    a, b = years / np.exp(p[4]), years / np.exp(p[5])
    slope = -np.expm1(-a) / a
    return p[0] + p[1] * slope + p[2] * (slope - np.exp(-a)) + p[3] * (-np.expm1(-b) / b - np.exp(-b))


def fit(rates, steps=40):
    """Return the parameters that minimise the squares: the method of Levenberg and Marquardt, in plain NumPy."""
    residuals = lambda p: np.concatenate([curve(p, YEARS) - rates, 0.01 * (p - START)])
    p, damping = START, 1e-2
    for _ in range(steps):
        r, j = residuals(p), fad.jacfwd(residuals)(p)
        step = np.linalg.solve(j.T @ j + damping * np.eye(6), j.T @ r)
        better = np.sum(residuals(p - step) ** 2) < np.sum(r**2)
        p, damping = (p - step, damping / 3) if better else (p, damping * 3)
    return p


def price(p, years, coupon=4.0):
    """Price of a bond with yearly coupons, discounted by the curve."""
    times = np.arange(1, years + 1.0)
    discounts = np.exp(-curve(p, times) / 100 * times)
    return coupon * np.sum(discounts) + 100 * discounts[-1]


START = np.array([4.0, 0.0, 1.0, 1.0, -0.5, 2.0])
p = fit(RATES)
print(f"the curve is off by {np.sqrt(np.mean((curve(p, YEARS) - RATES) ** 2)):.3f} per cent")

# %%
# How does a price follow each market rate? The gradient goes through all forty steps of the fit. Per hundredth of a
# per cent, as traders count.
risks = {}
for years in (2, 5, 10, 20):
    value, slope = fad.value_and_grad(lambda rates, years=years: price(fit(rates), years))(RATES)
    risks[years] = slope / 100
    print(f"{years:2d} years: price {value:7.3f}, all rates up by 0.01 %: {np.sum(slope) / 100:+.4f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=(1.15, 1))
fine = np.geomspace(1 / 14, 30, 300)
forward = fad.elementwise_grad(lambda t: t * curve(p, t))(fine)  # the rate for a moment at that time
left.semilogx(fine, curve(p, fine), label="yield")
left.semilogx(fine, forward, color="C2", linestyle="--", label="forward: slope of t · yield")
left.semilogx(YEARS, RATES, "o", color="C1", label="market")
left.set(xlabel="years", ylabel="per cent", title="United States Treasury, 30 December 2022")
left.set_xticks([1 / 12, 0.5, 2, 5, 10, 30], ["1 month", "6 m", "2 years", "5", "10", "30"])
left.legend(loc="upper right", fontsize=8)
image = right.imshow(np.array(list(risks.values())), cmap="RdBu", vmin=-0.1, vmax=0.1, aspect="auto")
right.set_xticks(range(13), ["1m", "2m", "3m", "4m", "6m", "1", "2", "3", "5", "7", "10", "20", "30"])
right.set_yticks(range(4), [f"{years} years" for years in risks])
right.grid(False)
right.set(xlabel="market rate that rises by 0.01 %", title="Change of a bond's price")
figure.colorbar(image)
plt.show()
