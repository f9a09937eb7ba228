"""
Old Faithful: two kinds of eruption
===================================

How long the geyser erupts, and how long one waits for the next eruption. Two clouds, each with a slant: eleven
parameters, of which the covariances are given by Cholesky factors, so that any number is allowed. Newton's method on
the likelihood needs the Hessian of a mixture, which nobody would write by hand.

272 eruptions of August 1985 (Azzalini and Bowman, Applied Statistics 39, 1990; the data set ``faithful`` of R).
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")

# minutes of eruption times a thousand, and minutes until the next
TABLE = """
3600 79 1800 54 3333 74 2283 62 4533 85 2883 55 4700 88 3600 85 1950 51 4350 85 1833 54 3917 84 4200 78 1750 47 4700
83 2167 52 1750 62 4800 84 1600 52 4250 79 1800 51 1750 47 3450 78 3067 69 4533 74 3600 83 1967 55 4083 76 3850 78
4433 79 4300 73 4467 77 3367 66 4033 80 3833 74 2017 52 1867 48 4833 80 1833 59 4783 90 4350 80 1883 58 4567 84 1750
58 4533 73 3317 83 3833 64 2100 53 4633 82 2000 59 4800 75 4716 90 1833 54 4833 80 1733 54 4883 83 3717 71 1667 64
4567 77 4317 81 2233 59 4500 84 1750 48 4800 82 1817 60 4400 92 4167 78 4700 78 2067 65 4700 73 4033 82 1967 56 4500
79 4000 71 1983 62 5067 76 2017 60 4567 78 3883 76 3600 83 4133 75 4333 82 4100 70 2633 65 4067 73 4933 88 3950 76
4517 80 2167 48 4000 86 2200 60 4333 90 1867 50 4817 78 1833 63 4300 72 4667 84 3750 75 1867 51 4900 82 2483 62 4367
88 2100 49 4500 83 4050 81 1867 47 4700 84 1783 52 4850 86 3683 81 4733 75 2300 59 4900 89 4417 79 1700 59 4633 81
2317 50 4600 85 1817 59 4417 87 2617 53 4067 69 4250 77 1967 56 4600 88 3767 81 1917 45 4500 82 2267 55 4650 90 1867
45 4167 83 2800 56 4333 89 1833 46 4383 82 1883 51 4933 86 2033 53 3733 79 4233 81 2233 60 4533 82 4817 77 4333 76
1983 59 4633 80 2017 49 5100 96 1800 53 5033 77 4000 77 2400 65 4600 81 3567 71 4000 70 4500 81 4083 93 1800 53 3967
89 2200 45 4150 86 2000 58 3833 78 3500 66 4583 76 2367 63 5000 88 1933 52 4617 93 1917 49 2083 57 4583 77 3333 68
4167 81 4333 81 4500 73 2417 50 4000 85 4167 74 1883 55 4583 77 4250 83 3767 83 2033 51 4433 78 4083 84 1833 46 4417
83 2183 55 4800 81 1833 57 4800 76 4100 84 3966 77 4233 81 3500 87 4366 77 2250 51 4667 78 2100 60 4350 82 4133 91
1867 53 4600 78 1783 46 4367 77 3850 84 1933 49 4500 83 2383 71 4700 80 1867 49 3833 75 3417 64 4233 76 2400 53 4800
94 2000 55 4150 76 1867 50 4267 82 1750 54 4483 75 4000 78 4117 79 4083 78 4267 78 3917 70 4550 79 4083 70 2417 54
4183 86 2217 50 4450 90 1883 54 1850 54 4283 77 3950 79 2333 64 4150 75 2350 47 4933 86 2900 63 4583 85 3833 82 2083
57 4367 82 2133 67 4350 74 2200 54 4450 83 3567 73 4500 73 4150 88 3817 80 3917 71 4450 83 2000 56 4283 79 4767 78
4533 84 1850 58 4250 83 1983 43 2250 60 4750 75 4117 81 2150 46 4417 90 1817 46 4467 74
"""
DATA = np.array(TABLE.split(), dtype=float).reshape(-1, 2) / [1000, 10]  # waiting in tens of minutes


def log_normal(x, mean, factor):
    """Logarithmic density; the factor holds the logarithms of a diagonal and what is below it."""
    low = np.array([[np.exp(factor[0]), 0.0], [factor[2], np.exp(factor[1])]])
    z = np.linalg.solve(low, (x - mean).T)
    return -0.5 * np.sum(z**2, axis=0) - factor[0] - factor[1] - np.log(2 * np.pi)


def log_density(p, x=DATA):
    odds = p["odds"]
    first = -np.logaddexp(0.0, -odds) + log_normal(x, p["means"][0], p["factors"][0])
    second = -np.logaddexp(0.0, odds) + log_normal(x, p["means"][1], p["factors"][1])
    return np.logaddexp(first, second)


# %%
# The parameters are a dictionary; for Newton's method they are laid out as a vector.
start = {"odds": 0.0, "means": np.array([[2.5, 6.0], [4.0, 7.5]]), "factors": np.array([[-0.5, -0.2, 0.2]] * 2)}
p, unravel = fad.tree.ravel(start)
loss = lambda p: -np.mean(log_density(unravel(p)))
losses, path = [], [p]
for _ in range(14):
    value, gradient = fad.value_and_grad(loss)(p)
    bend, directions = np.linalg.eigh(fad.hessian(loss)(p))
    step = directions @ ((directions.T @ gradient) / np.maximum(np.abs(bend), 1e-3))  # downhill, saddles or not
    while loss(p - step) > value:
        step = step / 2
        if np.max(np.abs(step)) < 1e-12:
            break
    p = p - step
    losses.append(value)
    path.append(p)
found = unravel(p)
print(f"{len(losses)} steps, the gradient is {np.linalg.norm(fad.grad(loss)(p)):.1e}")
share = 1 / (1 + np.exp(-found["odds"]))
for name, part, mean in (("short", share, found["means"][0]), ("long", 1 - share, found["means"][1])):
    print(f"  {name:<6}{100 * part:5.1f} %  {mean[0]:.2f} minutes, then {10 * mean[1]:.0f} of waiting")

x, y = np.meshgrid(np.linspace(1.3, 5.5, 160), np.linspace(3.8, 10, 160))
density = np.exp(log_density(found, np.column_stack([x.ravel(), y.ravel()]))).reshape(x.shape)
figure, ax = plt.subplots()
ax.contourf(x, 10 * y, density, levels=np.geomspace(0.003, density.max(), 12), cmap="YlGnBu", alpha=0.85)
ax.plot(DATA[:, 0], 10 * DATA[:, 1], "o", color="#17324d", markersize=3.5, alpha=0.6)
for k in range(2):
    places = np.array([unravel(p)["means"][k] for p in path])
    ax.plot(places[:, 0], 10 * places[:, 1], "o-", color=("C1", "C3")[k], markersize=4)
ax.set(
    xlabel="eruption, minutes",
    ylabel="until the next, minutes",
    title="272 eruptions; the lines are Newton's way to both centres",
)
plt.show()
