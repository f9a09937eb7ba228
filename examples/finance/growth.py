"""
How much of it in shares?
=========================

Who puts more into shares wins more in good years and loses more in bad ones. The growth of a fortune over many years
is the mean of the logarithm of its yearly factor, and the share that makes it largest is found by Newton's method.
How sure is it? The same function goes through ``vmap`` for a thousand histories that might have been.

Yearly returns of the S&P 500 with dividends, in per cent, 1928 to 2023, as published by A. Damodaran (New York
University). Cash earns 3.3 per cent here, the mean of Treasury bills over these years.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

RETURNS = np.array("""
43.81 -8.30 -25.12 -43.84 -8.64 49.98 -1.19 46.74 31.94 -35.34 29.28 -1.10 -10.67 -12.77 19.17 25.06 19.03 35.82 -8.43
5.20 5.70 18.30 30.81 23.68 18.15 -1.21 52.56 32.60 7.44 -10.46 43.72 12.06 0.34 26.64 -8.81 22.61 16.42 12.40 -9.97
23.80 10.81 -8.24 3.56 14.22 18.76 -14.31 -25.90 37.00 23.83 -6.98 6.51 18.52 31.74 -4.70 20.42 22.34 6.15 31.24 18.49
5.81 16.54 31.48 -3.06 30.23 7.49 9.97 1.33 37.20 22.68 33.10 28.34 20.89 -9.03 -11.85 -21.97 28.36 10.74 4.83 15.61
5.48 -36.55 25.94 14.82 2.10 15.89 32.15 13.52 1.38 11.77 21.61 -4.23 31.21 18.02 28.47 -18.04 26.06
""".split(), dtype=float) / 100  # fmt: skip
CASH = 0.033
print(f"{len(RETURNS)} years, mean {100 * RETURNS.mean():.1f} %, deviation {100 * RETURNS.std():.1f} %")


def growth(share, returns):
    """Mean logarithmic growth of a fortune of which a share is in shares, and the rest in cash (or borrowed)."""
    return np.mean(np.log1p(CASH + share * (returns - CASH)))


def best(returns):
    """Return the share of largest growth: Newton's method on the slope, never beyond ruin."""
    slope, bend = fad.grad(growth), fad.grad(fad.grad(growth))
    limit = 0.98 * (1 + CASH) / (CASH - returns.min())
    share = 0.5
    for _ in range(12):
        share = np.clip(share - slope(share, returns) / bend(share, returns), 0.0, limit)
    return share


# %%
# The best in hindsight, and how its growth depends on each year: a gradient by the data.
share = best(RETURNS)
influence = fad.grad(best)(RETURNS)
print(f"best share {share:.2f}: {100 * np.expm1(growth(share, RETURNS)):.2f} % a year, "
      f"all in shares {100 * np.expm1(growth(1.0, RETURNS)):.2f} %")  # fmt: skip

# %%
# A thousand histories: years drawn with replacement.
draws = np.random.default_rng(0).integers(len(RETURNS), size=(1000, len(RETURNS)))
histories = fad.vmap(best)(RETURNS[draws])
print(f"nine tenths of the histories: {np.quantile(histories, 0.05):.2f} to {np.quantile(histories, 0.95):.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3), width_ratios=(1.3, 1))
shares = np.linspace(0, 2.1, 120)
for draw in draws[:60]:
    left.plot(
        shares, 100 * np.expm1(fad.vmap(growth, (0, None))(shares, RETURNS[draw])), color="C6", alpha=0.12, linewidth=1
    )
left.plot(shares, 100 * np.expm1(fad.vmap(growth, (0, None))(shares, RETURNS)), linewidth=2.5)
left.plot([share], [100 * np.expm1(growth(share, RETURNS))], "o", color="C1", markersize=9, label=f"best: {share:.2f}")
left.set(
    xlabel="share of the fortune in shares",
    ylabel="growth, per cent a year",
    ylim=(-2, 17),
    title="Growth, and 60 other histories",
)
left.legend(loc="upper left")
right.hist(histories, bins=30, color="C0", alpha=0.6)
right.axvline(share, color="C1")
right.set(xlabel="best share", ylabel="histories", title="The best share of 1000 histories")
inset = right.inset_axes((0.58, 0.58, 0.4, 0.38))
inset.plot(100 * RETURNS, influence, ".", color="C2")
inset.set_title("d best / d return, by return", fontsize=8, fontweight="normal")
inset.tick_params(labelsize=7)
plt.show()
