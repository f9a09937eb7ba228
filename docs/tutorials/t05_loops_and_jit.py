"""
Loops and jit
=============

``fad.jit`` runs a function once, records what it does with arrays, and from then on runs the recording as machine
code. The result is the same; ``if`` on values is checked on each call.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")


def timed(f, *args, repeats=20):
    f(*args)
    f(*args)
    begin = time.perf_counter()
    for _ in range(repeats):
        f(*args)
    return (time.perf_counter() - begin) / repeats


# %%
# A loop in Python of two hundred steps: the logistic map, and its derivative with respect to the rate.
def population(rate, x=0.4, steps=200):
    for _ in range(steps):
        x = rate * x * (1 - x)
    return x


slope = fad.grad(population)
quick = fad.jit(slope)
print(f"the same number: {slope(3.3):.12g} and {quick(3.3):.12g}")
print(f"{1e6 * timed(slope, 3.3):.0f} microseconds without jit, {1e6 * timed(quick, 3.3):.1f} with")

# %%
# The recorded program can be looked at, and so can the NumPy code that it stands for.
short = lambda x: np.sum(np.sin(x) ** 2)
print(fad.make_graph(fad.grad(short))(np.ones(3)))
print(fad.source(fad.grad(short))(np.ones(3)))


# %%
# A long loop of Python's stays a loop in the machine code, so it compiles as quickly as a short one. ``explain()`` says
# what became of it. :doc:`/control-flow` says which loops can be captured so, and what to write for those that cannot.
@fad.jit
def long(rate):
    x = 0.4
    for _ in range(20_000):
        x = rate * x * (1 - x)
    return x


print(f"20 000 steps in {1e3 * timed(long, 3.3):.2f} ms")
print(next(line for line in long.explain().splitlines() if "loop at" in line).partition(": ")[2])


# %%
# A branch on values is recorded for each way that is taken, and every call checks which one it is.
@fad.jit
def absolute(x):
    return x if x > 0 else -x


print([float(absolute(v)) for v in (2.0, -3.0)])

# %%
# One loop over an array of 900 rates: where populations settle, and how sensitive they are (Lyapunov's exponent is the
# mean logarithm of the map's own derivative).
rates = np.linspace(2.5, 4.0, 900)
step = lambda x, r: r * x * (1 - x)
derivative = fad.elementwise_grad(step)
x, seen, exponent = np.full(900, 0.4), [], np.zeros(900)
for i in range(700):
    if i >= 500:
        seen.append(x)
        exponent += np.log(np.abs(derivative(x, rates)) + 1e-12) / 200
    x = step(x, rates)
figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6), sharex=True, height_ratios=(2.2, 1))
top.plot(np.tile(rates, len(seen)), np.concatenate(seen), ",", color="C0", alpha=0.25)
top.set(ylabel="population", title="Where the logistic map settles")
bottom.axhline(0, color="#888888", linewidth=0.8)
bottom.fill_between(rates, exponent, 0, where=exponent > 0, color="C1", alpha=0.6, label="chaos")
bottom.fill_between(rates, exponent, 0, where=exponent <= 0, color="C2", alpha=0.5, label="calm")
bottom.set(xlabel="rate", ylabel="exponent", ylim=(-2, 0.9), title="Mean logarithm of the derivative")
bottom.legend()
plt.show()

# %%
# When is it worth while? When a function is called often, and its arrays are small or many operations follow each
# other.
sizes = [10, 100, 1000, 10_000, 100_000]
chain = fad.grad(lambda x: np.sum(np.tanh(np.sin(x) * x + np.cos(x)) ** 2))
compiled = fad.jit(chain)
figure, ax = plt.subplots()
for f, name in ((chain, "fad.grad"), (compiled, "fad.jit(fad.grad)")):
    ax.loglog(sizes, [1e6 * timed(f, np.linspace(0, 1, n), repeats=5) for n in sizes], "o-", label=name)
ax.set(xlabel="numbers", ylabel="microseconds", title="Eight operations and their gradient")
ax.legend()
plt.show()
