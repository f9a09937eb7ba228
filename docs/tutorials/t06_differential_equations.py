"""
Differential equations
======================

Three ways to differentiate the solution of a differential equation: through the steps of a solver of one's own,
through ``fad.scipy.integrate.solve_ivp``, and as a Taylor series by ``fad.jet``.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad
from fad.scipy.integrate import solve_ivp

plt.style.use("fad.style")


# %%
# Lorenz' equations. The field is plain NumPy; ``solve_ivp`` has SciPy's signature and methods.
def lorenz(t, y, sigma=10.0, rho=28.0, beta=8 / 3):
    return np.stack([sigma * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - beta * y[2]])


start = np.array([1.0, 1.0, 20.0])
end = lambda y: solve_ivp(lorenz, (0.0, 1.0), y, rtol=1e-8, atol=1e-8).y[:, -1]
print("how the end follows the start:")
print(fad.jacobian(end)(start).round(3))

# %%
# The derivative grows with time: a little error at the start becomes a large one. The curve shows the size of the
# Jacobian along the way, and the path on which it was computed.
times = np.linspace(0, 8, 400)
path = solve_ivp(lorenz, (0.0, 8.0), start, t_eval=times, rtol=1e-7, atol=1e-7).y
flow = lambda y: solve_ivp(lorenz, (0.0, 8.0), y, t_eval=times, rtol=1e-6, atol=1e-6).y
_, moved = fad.jvp(flow, (start,), (np.array([1.0, 0.0, 0.0]),))
growth = np.log10(np.linalg.norm(moved, axis=0))
figure = plt.figure(figsize=(10.5, 4.6))
left = figure.add_subplot(121, projection="3d")
left.scatter(*path, c=growth, cmap="inferno", s=6)
left.set_axis_off()
left.set_title("Lorenz' butterfly, coloured by its sensitivity")
right = figure.add_subplot(122)
right.plot(times, growth)
right.set(xlabel="time", ylabel="log₁₀ of the derivative", title="A millimetre becomes kilometres")
plt.show()


# %%
# A boundary value: how fast must a ball be thrown to land after two seconds 12 metres away? Newton's method through
# the solver (shooting).
def ball(t, y):
    speed = np.sqrt(y[2] ** 2 + y[3] ** 2)
    return np.stack([y[2], y[3], -0.05 * speed * y[2], -9.81 - 0.05 * speed * y[3]])


def lands(velocity):
    y = np.concatenate([np.zeros(2), velocity])
    return solve_ivp(ball, (0.0, 2.0), y, rtol=1e-9, atol=1e-9).y[:2, -1] - np.array([12.0, 0.0])


velocity = np.array([5.0, 5.0])
for step in range(5):
    miss = lands(velocity)
    velocity = velocity - np.linalg.solve(fad.jacobian(lands)(velocity), miss)
    print(f"step {step}: missed by {np.linalg.norm(miss):.2e} m")


# %%
# Stiff equations: ``Radau`` and ``BDF`` are differentiable, too. Van der Pol's oscillator, and how its jumps move
# with the parameter.
def van_der_pol(mu, ts):
    field = lambda t, y: np.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])
    return solve_ivp(field, (0.0, ts[-1]), np.array([2.0, 0.0]), "Radau", t_eval=ts, rtol=1e-6, atol=1e-8).y[0]


ts = np.linspace(0, 40, 300)
y, by_mu = fad.jvp(lambda mu: van_der_pol(mu, ts), (10.0,), (1.0,))
figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 4.8), sharex=True)
top.plot(ts, y)
top.set(title="Van der Pol's oscillator, stiffness 10")
bottom.plot(ts, by_mu, color="C1")
bottom.set(xlabel="time", title="Its derivative by the stiffness: the jumps come later", yscale="symlog")
plt.show()


# %%
# ``fad.jet`` carries a whole Taylor series. From the equation y' = f(y) come as many derivatives of the solution as
# one likes, and a step of order twelve is long and exact.
def taylor(f, y, order):
    series = [f(y)]
    while len(series) < order:
        first, rest = fad.jet(f, (y,), (series,))
        series = [first, *rest]
    return series


f = lambda y: y * (1 - y)
coefficients, factorial, value = taylor(f, 0.1, 12), 1.0, 0.1
for k, c in enumerate(coefficients, start=1):
    factorial *= k
    value += c * 1.0**k / factorial
print(f"one step of length 1: {value:.10f}; exact: {1 / (1 + 9 * np.exp(-1.0)):.10f}")
