"""
The temperature of the universe
===============================

The satellite COBE measured the spectrum of the cosmic microwave background in 1990, the most perfect black body that
is known. Its temperature comes from a fit of Planck's law, and how sharply each frequency determines it from the
derivative of Planck's law by the temperature.

The 43 intensities are those of the instrument FIRAS (Fixsen and others, Astrophysical Journal 473, 1996; NASA, public
domain): frequency in waves per centimetre, intensity in MJy/sr, error in kJy/sr.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

TABLE = """
2.27 200.723 14  2.72 249.508 19  3.18 293.024 25  3.63 327.770 23  4.08 354.081 22  4.54 372.079 21  4.99 381.493 18
5.45 383.478 18  5.90 378.901 16  6.35 368.833 14  6.81 354.063 13  7.26 336.278 12  7.71 316.076 11  8.17 293.924 10
8.62 271.432 11  9.08 248.239 12  9.53 225.940 14  9.98 204.327 16  10.44 183.262 18  10.89 163.830 22  11.34 145.750 22
11.80 128.835 23  12.25 113.568 23  12.71 99.451 23  13.16 87.036 22  13.61 75.876 21  14.07 65.766 20  14.52 57.008 19
14.97 49.223 19  15.43 42.267 19  15.88 36.352 21  16.34 31.062 23  16.79 26.580 26  17.24 22.644 28  17.70 19.255 30
18.15 16.391 32  18.61 13.811 33  19.06 11.716 35  19.51 9.921 41  19.97 8.364 55  20.42 7.087 88  20.87 5.801 155
21.33 4.523 282
"""
WAVES, INTENSITY, ERROR = np.array(TABLE.split(), dtype=float).reshape(-1, 3).T
PLANCK, LIGHT, BOLTZMANN = 6.62607015e-34, 2.99792458e8, 1.380649e-23


def planck(temperature, waves=WAVES):
    """Return the intensity of a black body in MJy/sr."""
    frequency = 100 * LIGHT * waves
    x = PLANCK * frequency / (BOLTZMANN * temperature)
    return 1e20 * 2 * PLANCK * frequency**3 / LIGHT**2 / np.expm1(x)


# %%
# One parameter, so the method of Gauss and Newton is one division.
temperature = 3.5
for step in range(6):
    value, slope = fad.jvp(planck, (temperature,), (1.0,))
    weighted = slope / (ERROR / 1000) ** 2
    temperature = temperature + np.sum(weighted * (INTENSITY - value)) / np.sum(weighted * slope)
    print(f"step {step}: {temperature:.6f} K")

# %%
# The picture has error bars a hundred times too long, or nobody would see them.
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, height_ratios=(2, 1))
fine = np.linspace(0.5, 22, 300)
for other in (2.4, 2.6, 2.9, 3.1):
    top.plot(fine, planck(other, fine), color="C6", linewidth=0.8, alpha=0.5)
    top.annotate(f"{other} K", (6, planck(other, 6.0)), color="C6", fontsize=8, ha="center", va="bottom")
top.plot(fine, planck(temperature, fine), label=f"Planck's law at {temperature:.4f} K")
top.errorbar(WAVES, INTENSITY, 100 * ERROR / 1000, fmt="o", color="C1", markersize=4, label="measured, errors × 100")
top.set(ylabel="intensity, MJy/sr", title="The cosmic microwave background")
top.legend()
_, slope = fad.jvp(lambda t: planck(t, fine), (temperature,), (1.0,))
bottom.fill_between(fine, slope, color="C2", alpha=0.4)
bottom.set(
    xlabel="waves per centimetre", ylabel="MJy/sr per K", title="Where the temperature shows: the derivative by it"
)
plt.show()
