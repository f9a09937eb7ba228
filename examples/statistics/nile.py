"""
When did the Nile change?
=========================

The yearly flow of the Nile at Aswan is a level that wanders, seen through noise. Kalman's filter computes how
probable the hundred numbers are under given variances; the gradient through the filter finds the variances. The
derivative of the probability by a jump in any year says when the level changed: about 1898, when the first dam was
begun.

Flow in 10⁸ m³, 1871 to 1970 (Cobb, Biometrika 65, 1978; the series ``Nile`` of R).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import fad

plt.style.use("fad.style")

FLOW = np.array("""
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260
1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864
862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749
838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740
""".split(), dtype=float)  # fmt: skip
YEARS = np.arange(1871, 1971)


def kalman(p, jumps, flow=FLOW):
    """Return minus the log likelihood, and the level and its variance in each year; p has two log deviations."""
    seen, wander = np.exp(2 * p[0]), np.exp(2 * p[1])
    level, variance, total, levels = flow[0], 1e6, 0.0, []
    for y, jump in zip(flow, jumps, strict=True):
        level, variance = level + jump, variance + wander
        surprise, spread = y - level, variance + seen
        total = total + 0.5 * (surprise**2 / spread + np.log(spread))
        gain = variance / spread
        level, variance = level + gain * surprise, (1 - gain) * variance
        levels.append(np.stack([level, variance]))
    return total, np.stack(levels)


# %%
# The variances, by the gradient through a hundred steps of the filter.
none = np.zeros(len(FLOW))
f = fad.jit(fad.value_and_grad(lambda p: kalman(p, none)[0]))
found = minimize(f, np.log([100.0, 50.0]), jac=True, method="BFGS")
print(f"deviations: seen {np.exp(found.x[0]):.0f}, level per year {np.exp(found.x[1]):.0f}")

# %%
# A jump of unknown size in each year: score (gradient) and information (second derivative) at no jump say how much
# the likelihood would gain (half of score² / information).
score = fad.grad(lambda jumps: -kalman(found.x, jumps)[0])(none)
information = np.diag(fad.hessian(lambda jumps: kalman(found.x, jumps)[0])(none))
gained = 0.5 * score**2 / information
year = YEARS[np.argmax(gained[1:]) + 1]
print(f"a jump in {year} of {score[year - 1871] / information[year - 1871]:.0f} gains {gained.max():.1f}")

levels = kalman(found.x, none)[1]
band = 2 * np.sqrt(levels[:, 1])
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8.5, 5.6), sharex=True, height_ratios=(2, 1))
top.plot(YEARS, FLOW, "o", color="#555555", markersize=3.5, label="measured")
top.fill_between(YEARS[1:], (levels[:, 0] - band)[1:], (levels[:, 0] + band)[1:], alpha=0.2)
top.plot(YEARS, levels[:, 0], label="level, from the years before")
top.set(ylabel="flow, 10⁸ m³", title="The Nile at Aswan")
top.legend()
bottom.bar(YEARS[1:], gained[1:], color=["C1" if y == year else "C0" for y in YEARS[1:]])
bottom.annotate(f"{year}", (year, gained[year - 1871]), xytext=(6, -4), textcoords="offset points", color="C1")
bottom.set(xlabel="year", ylabel="gain", title="What a jump in a year would explain")
plt.show()
