"""
All Greeks of an option
=======================

Traders call the derivatives of an option's price by Greek letters. Each is one line: ``grad`` of ``grad`` of the
formula of Black and Scholes, for a whole grid of prices and times by ``elementwise_grad``. The implied volatility is
the root of the formula, and ``fad.custom_root`` differentiates it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

import fad

plt.style.use("fad.style")


def call(spot, years, volatility, strike=100.0, rate=0.03):
    """Price of the right to buy at the strike price in some years."""
    spread = volatility * np.sqrt(years)
    d = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    return spot * ndtr(d) - strike * np.exp(-rate * years) * ndtr(d - spread)


# %%
# Each Greek letter is a composition of derivatives.
def by(name, f):
    return fad.elementwise_grad(f, argnums=("spot", "years", "volatility").index(name))


greeks = {
    "price": call,
    "delta: by spot": by("spot", call),
    "gamma: by spot twice": by("spot", by("spot", call)),
    "vega: by volatility": by("volatility", call),
    "theta: by time": by("years", call),
    "vanna: spot, volatility": by("volatility", by("spot", call)),
    "volga: volatility twice": by("volatility", by("volatility", call)),
    "speed: spot three times": by("spot", by("spot", by("spot", call))),
    "colour: spot twice, time": by("years", by("spot", by("spot", call))),
}
spot, years = np.meshgrid(np.linspace(60, 150, 90), np.linspace(0.05, 1.0, 60))
volatility = np.full_like(spot, 0.25)
figure, axes = plt.subplots(3, 3, figsize=(10, 7.5), sharex=True, sharey=True)
for ax, (name, greek) in zip(axes.flat, greeks.items(), strict=True):
    values = greek(spot, years, volatility)
    largest = np.quantile(np.abs(values), 0.995)
    signed = values.min() < -1e-3 * largest
    ax.contourf(spot, years, np.clip(values, -largest, largest), levels=24, cmap="RdBu_r" if signed else "viridis",
                vmin=-largest if signed else 0, vmax=largest)  # fmt: skip
    ax.axvline(100, color="white", linewidth=0.7, linestyle=":")
    ax.set_title(name, fontsize=9)
    ax.grid(False)
figure.supxlabel("price of the share")
figure.supylabel("years until the option ends")


# %%
# The implied volatility: what volatility explains a price that is paid? Its derivative by the price comes from the
# implicit function theorem, and agrees with one over vega.
def implied(price, spot, years):
    def newton(f, v):
        for _ in range(20):
            value, slope = fad.value_and_grad(f)(v)
            v = v - value / slope
        return v

    return fad.custom_root(lambda v: call(spot, years, v) - price, np.array(0.3), newton, lambda g, y: y / g(1.0))


found, slope = fad.value_and_grad(implied)(8.0, 100.0, 0.5)
vega = by("volatility", call)(100.0, 0.5, found)
print(f"implied volatility {found:.6f}; per unit of price {slope:.6f}, one over vega {1 / vega:.6f}")
plt.show()
