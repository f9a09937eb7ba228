"""
A neural differential equation of hares and lynxes
==================================================

The data are the pelts that the Hudson's Bay Company took in 1900 to 1920, in thousands (public domain). The growth
rates of both animals are a small network of their numbers; the gradient goes through all steps of a Runge-Kutta method.

Run it as ``python examples/neural_ode.py --steps 1500``.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

import fad
from fad import data, nn, optim

YEARS = np.arange(1900, 1921)
HARES = [
    30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2,
    24.7,
]  # fmt: skip
LYNXES = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
LOGS = np.log(np.column_stack([HARES, LYNXES]))


class Growth(nn.Module):
    """d/dt (log hares, log lynxes) as a network of the logarithms."""

    def __init__(self, width=16):
        self.mean, self.std = nn.Buffer(LOGS.mean(axis=0)), nn.Buffer(LOGS.std(axis=0))
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, x):
        return self.net((x - self.mean) / self.std)


def runge_kutta(f, x, h, steps):
    for _ in range(steps):
        a = f(x)
        b = f(x + h / 2 * a)
        c = f(x + h / 2 * b)
        d = f(x + h * c)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
    return x


def path(model, start, years, per_year=4):
    xs = [start]
    for _ in range(years):
        xs.append(runge_kutta(model, xs[-1], 1 / per_year, per_year))
    return np.stack(xs)


def loss(model, starts, years):
    """Squared error of the logarithms over some years from each start: several short shootings at once."""
    found = path(model, LOGS[starts], years)
    expected = np.stack([LOGS[starts + t] for t in range(years + 1)])
    return np.mean((found - expected) ** 2)


def train(steps=1500, seed=0):
    with nn.seed(seed):
        model = Growth()
    opt = optim.Adam(model, lr=optim.schedules.cosine(1e-2, steps, 1e-4))
    history = optim.History()
    bar = data.progress(range(steps), "training")
    for step in bar:
        years = 3 if step < steps // 2 else 6  # short paths first: they are easier to learn
        value, grads = fad.value_and_grad(loss)(model, np.arange(len(YEARS) - years), years)
        optim.check_finite(value, step)
        opt.step(optim.clip_by_global_norm(grads, 1.0)[0])
        history.add(loss=value)
        bar.show(loss=value)
    return model, history


def draw(model):
    """Show the path from 1900 on, and the growth that the network learnt as a field of arrows."""
    plt.style.use("fad.style")
    _, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), width_ratios=(1.5, 1))
    found = np.exp(path(model, LOGS[0], len(YEARS) - 1))
    for k, name in enumerate(("hares", "lynxes")):
        left.plot(YEARS, found[:, k], color=f"C{k}", label=name)
        left.plot(YEARS, np.exp(LOGS[:, k]), "o", color=f"C{k}")
    left.set(xlabel="year", ylabel="thousands of pelts", title="Points: counted; curves: the network's")
    left.set_xticks(YEARS[::5])
    left.legend()
    grid = np.stack(np.meshgrid(np.linspace(2, 4.5, 18), np.linspace(1.2, 4.2, 18)), axis=-1).reshape(-1, 2)
    right.quiver(*grid.T, *model(grid).T, np.linalg.norm(model(grid), axis=1), cmap="viridis", width=0.004)
    right.plot(*LOGS.T, "o-", color="C1", linewidth=1)
    right.set(xlabel="log hares", ylabel="log lynxes", title="The learnt field")
    plt.show()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    model, history = train(parser.parse_args().steps)
    print(f"mean squared error of the logarithms: {history['loss'][0]:.3f} before, {history.last('loss'):.4f} after")
    print("year  hares found (true)   lynxes found (true)")
    for year, x, y in zip(YEARS, np.exp(path(model, LOGS[0], len(YEARS) - 1)), np.exp(LOGS), strict=True):
        print(f"{year}  {x[0]:8.1f} ({y[0]:.1f})  {x[1]:12.1f} ({y[1]:.1f})")
    draw(model)


if __name__ == "__main__":
    main()
