"""
Arrhenius' law: how temperature speeds a reaction
=================================================

Dinitrogen pentoxide decays six thousand times faster at 338 K than at 273 K. Arrhenius' law explains it by one
energy. The method of Gauss and Newton finds that energy, and the same Jacobian gives the error of a forecast far
outside the measurements.

Rates per second from Daniels and Johnston (Journal of the American Chemical Society 43, 1921).
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

KELVIN = np.array([273.0, 298.0, 308.0, 318.0, 328.0, 338.0])
RATE = np.array([7.87e-7, 3.46e-5, 1.35e-4, 4.98e-4, 1.50e-3, 4.87e-3])
GAS = 8.314462618e-3  # kJ per mol and kelvin


def rate(p, kelvin):
    """Return the rate per second; p has the logarithm of the rate at 300 K and the energy in kJ/mol."""
    return np.exp(p[0] - p[1] / GAS * (1 / kelvin - 1 / 300))


# %%
# Relative errors of five per cent. The method of Gauss and Newton from a bad start.
residuals = lambda p: np.log(rate(p, KELVIN) / RATE) / 0.05
p = np.array([-5.0, 50.0])
for _ in range(4):
    jacobian = fad.jacobian(residuals)(p)
    p = p - np.linalg.lstsq(jacobian, residuals(p))[0]
jacobian = fad.jacobian(residuals)(p)
covariance = np.linalg.inv(jacobian.T @ jacobian)
print(f"activation energy {p[1]:.1f} +- {covariance[1, 1] ** 0.5:.1f} kJ/mol")

# %%
# How much faster per kelvin, in per cent? The logarithmic derivative of the rate by the temperature, at each
# temperature.
faster = fad.elementwise_grad(lambda t: np.log(rate(p, t)))
print("per kelvin:", [f"{t:.0f} K {100 * faster(t):.1f} %" for t in (273.0, 338.0)])

fine = np.linspace(240, 380, 200)
logs = lambda p: np.log10(rate(p, fine))
slopes = fad.jacobian(logs)(p)
band = 2 * np.sqrt(np.einsum("ij,jk,ik->i", slopes, covariance, slopes))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=(1.4, 1))
left.fill_between(1000 / fine, 10 ** (logs(p) - band), 10 ** (logs(p) + band), color="C0", alpha=0.2)
left.semilogy(1000 / fine, rate(p, fine), label=f"{p[1]:.1f} kJ/mol")
for energy in (p[1] - 20, p[1] + 20):
    left.semilogy(1000 / fine, rate([p[0], energy], fine), color="C6", linewidth=0.8, linestyle="--")
left.semilogy(1000 / KELVIN, RATE, "o", color="C1", label="measured")
left.set(xlabel="1000 / temperature", ylabel="rate per second", title="A straight line on Arrhenius' scale")
left.legend()
right.fill_between(fine, 100 * faster(fine), color="C2", alpha=0.3)
right.plot(fine, 100 * faster(fine), color="C2")
right.set(xlabel="temperature, K", ylabel="per cent per kelvin", title="How much faster per kelvin", ylim=(0, None))
plt.show()
