"""
How much poison kills half of the beetles
=========================================

Bliss gave eight doses of carbon disulphide to groups of beetles. Which curve describes the share that dies? Three are
fitted by Newton's method, and the dose that kills half gets its error by the implicit function theorem: it is defined
by an equation, and ``fad.custom_root`` differentiates the solution of an equation.

The counts are those of C. I. Bliss (Annals of Applied Biology 22, 1935).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

import fad

plt.style.use("fad.style")

DOSE = np.array([1.6907, 1.7242, 1.7552, 1.7842, 1.8113, 1.8369, 1.8610, 1.8839])  # logarithm of mg per litre
BEETLES = np.array([59, 60, 62, 56, 63, 59, 62, 60])
KILLED = np.array([6, 13, 18, 28, 52, 53, 61, 60])

CURVES = {
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "normal": ndtr,
    "asymmetric": lambda z: -np.expm1(-np.exp(z)),
}


def share(curve, p, dose):
    return curve(p[0] + p[1] * (dose - 1.8) * 10)


def minus_log_likelihood(curve, p):
    killed = np.clip(share(curve, p, DOSE), 1e-12, 1 - 1e-12)
    return -np.sum(KILLED * np.log(killed) + (BEETLES - KILLED) * np.log1p(-killed))


def newton(f, p, steps=25):
    for _ in range(steps):
        step = np.linalg.solve(fad.hessian(f)(p), fad.grad(f)(p))
        while f(p - step) > f(p) + 1e-12:
            step = step / 2
        p = p - step
    return p


def half(curve, p):
    """Return the dose at which half of the beetles die: the root of an equation, with derivatives."""

    def bisect(f, _):
        low, high = 1.5, 2.1
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) < 0 else (low, middle)
        return np.array(middle)

    return fad.custom_root(lambda dose: share(curve, p, dose) - 0.5, np.array(1.8), bisect, lambda g, y: y / g(1.0))


figure, ax = plt.subplots()
fine = np.linspace(1.67, 1.91, 200)
for (name, curve), colour in zip(CURVES.items(), ("C0", "C2", "C1"), strict=True):
    f = lambda p, curve=curve: minus_log_likelihood(curve, p)
    p = newton(f, np.array([0.3, 1.5]))
    covariance = np.linalg.inv(fad.hessian(f)(p))
    dose, slope = fad.value_and_grad(lambda p, curve=curve: half(curve, p))(p)
    error = np.sqrt(slope @ covariance @ slope)
    print(f"{name:<11} misfit {f(p):.2f}, half die at {dose:.4f} +- {error:.4f}")
    ax.plot(fine, share(curve, p, fine), color=colour, label=f"{name}: {f(p):.1f}")
    ax.errorbar([dose], [0.5], xerr=[2 * error], fmt="D", color=colour, capsize=4)
ax.scatter(DOSE, KILLED / BEETLES, s=3 * BEETLES**0.9, color="#222222", zorder=3, label="counted")
ax.set(xlabel="logarithm of the dose", ylabel="share that dies", title="481 beetles, three curves and their misfit")
ax.legend()
plt.show()
