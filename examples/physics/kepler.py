"""
Kepler's third law from the planets
===================================

The period of a planet grows as a power of its distance from the Sun. A fit by Newton's method finds the power, and
the Hessian at the minimum says how well it is known: its inverse is the covariance of the parameters.

Semi-major axes (astronomical units) and periods (years) are those of NASA's planetary fact sheet, in the public
domain.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

NAMES = ["Mercury", "Venus", "Earth", "Mars", "Ceres", "Jupiter", "Saturn", "Uranus", "Neptune", "Pluto"]
AXIS = np.array([0.387, 0.723, 1.000, 1.524, 2.766, 5.203, 9.537, 19.19, 30.07, 39.48])
PERIOD = np.array([0.2408, 0.6152, 1.0000, 1.8809, 4.600, 11.862, 29.447, 84.02, 164.79, 247.9])


# %%
# The model has two parameters: the period at distance 1, and the power. The misfit is measured in logarithms, with an
# error of one part in a thousand: that is how the table is rounded.
def misfit(parameters):
    start, power = parameters
    wrong = np.log(PERIOD) - (start + power * np.log(AXIS))
    return 0.5 * np.sum((wrong / 1e-3) ** 2)


parameters = np.array([0.5, 1.0])
for step in range(3):
    gradient, hessian = fad.grad(misfit)(parameters), fad.hessian(misfit)(parameters)
    parameters = parameters - np.linalg.solve(hessian, gradient)
    print(f"step {step}: power {parameters[1]:.6f}, norm of the gradient before it {np.linalg.norm(gradient):.2e}")

# %%
# The misfit is a quadratic function, so the first step arrives. The power is 3/2 within its error.
error = np.sqrt(np.diag(np.linalg.inv(fad.hessian(misfit)(parameters))))
print(f"T = a^({parameters[1]:.5f} +- {error[1]:.5f})")

# %%
# Newton's law of gravity explains the power. Here an orbit of each planet is drawn, on a scale on which all can be
# seen.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), width_ratios=(1.2, 1))
a = np.geomspace(0.3, 50, 100)
left.loglog(
    a, np.exp(parameters[0]) * a ** parameters[1], color="C6", linewidth=1.2, label=f"$T = a^{{{parameters[1]:.4f}}}$"
)
colours = plt.colormaps["plasma"](np.linspace(0.1, 0.85, len(NAMES)))
left.scatter(AXIS, PERIOD, color=colours, s=45, zorder=3)
for name, x, y in zip(NAMES, AXIS, PERIOD, strict=True):
    left.annotate(name, (x, y), xytext=(7, -9), textcoords="offset points", fontsize=8)
left.set(xlabel="semi-major axis, astronomical units", ylabel="period, years", title="Periods of ten planets")
left.legend()

angle = np.linspace(0, 2 * np.pi, 200)
for name, x, y, colour in zip(NAMES, AXIS, PERIOD, colours, strict=True):
    radius = np.log10(x) + 0.7
    right.plot(radius * np.cos(angle), radius * np.sin(angle), color=colour, linewidth=1)
    right.plot(radius * np.cos(40 / y), radius * np.sin(40 / y), "o", color=colour, markersize=7, label=name)
right.plot(0, 0, "*", color="C3", markersize=16)
right.set(aspect="equal", title="After forty years, radius $\\propto \\log a$")
right.axis("off")
plt.show()
