"""
The forces between argon atoms, from the pressure of the gas
============================================================

How far argon is from a perfect gas shows how its atoms attract and repel each other: the second virial coefficient is
an integral over the energy of two atoms. The two constants of Lennard-Jones' energy follow by a gradient through the
integral. The force between the atoms is a derivative, too.

Second virial coefficients in cm³/mol are those of the CRC Handbook of Chemistry and Physics.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

KELVIN = np.array([100, 120, 140, 160, 180, 200, 300, 400, 500, 600, 700, 800, 900, 1000.0])
VIRIAL = np.array([-184, -131, -98, -76, -60, -48, -16, -1, 7, 12, 15, 18, 20, 22.0])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(160)
AVOGADRO = 0.602214076  # 1e24 per mol, for cubic angstroms to cm³


def energy(r, depth, size):
    """Lennard-Jones' energy of two atoms at a distance in angstroms, as a temperature in kelvins."""
    return 4 * depth * ((size / r) ** 12 - (size / r) ** 6)


def virial(p, kelvin=KELVIN):
    """Return -2 pi N times the integral of (exp(-energy/T) - 1) r², by Gauss' quadrature up to eight diameters."""
    depth, size = p
    r = 4 * size * (NODES + 1) + 1e-3
    factor = np.expm1(-energy(r, depth, size) / kelvin[:, None])
    return -2 * np.pi * AVOGADRO * 4 * size * np.sum(WEIGHTS * factor * r**2, axis=1)


# %%
# The method of Gauss and Newton.
p = np.array([90.0, 3.0])
for _ in range(12):
    jacobian = fad.jacobian(virial)(p)
    step = np.linalg.lstsq(jacobian, virial(p) - VIRIAL)[0]
    p = p - step * min(1.0, 0.2 / np.max(np.abs(step / p)))
spread = np.mean((virial(p) - VIRIAL) ** 2) ** 0.5
print(f"depth {p[0]:.1f} K, size {p[1]:.3f} angstrom; the fit is off by {spread:.1f} cm³/mol")

# %%
# At Boyle's temperature attraction and repulsion cancel. It is the root of the virial coefficient in the temperature.
boyle = 400.0
for _ in range(6):
    value, slope = fad.value_and_grad(lambda t: virial(p, np.stack([t]))[0])(boyle)
    boyle = boyle - value / slope
print(f"Boyle's temperature {boyle:.0f} K")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3))
fine = np.geomspace(85, 1100, 200)
left.axhline(0, color="#888888", linewidth=0.8)
left.semilogx(fine, virial(p, fine), label="Lennard-Jones")
left.semilogx(KELVIN, VIRIAL, "o", color="C1", label="measured")
left.plot([boyle], [0], "*", color="C3", markersize=15, zorder=3, label=f"Boyle: {boyle:.0f} K")
left.set(
    xlabel="temperature, K", ylabel="second virial coefficient, cm³/mol", title="How far argon is from a perfect gas"
)
left.legend()
r = np.linspace(3.2, 8, 300)
force = -fad.elementwise_grad(energy)(r, p[0], p[1])
right.plot(r, energy(r, *p), label="energy, K")
right.plot(r, force, color="C2", label="force, K per angstrom")
right.axhline(0, color="#888888", linewidth=0.8)
right.set(ylim=(-160, 200), xlabel="distance, angstrom", title="What two atoms do to each other")
right.legend()
plt.show()
