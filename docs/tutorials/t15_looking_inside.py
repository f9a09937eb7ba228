"""
Looking inside: programs, time, memory
======================================

What did fad record, where does the time go, which arrays does the backward pass wait for, and which operations became
one loop? Each answer is an object. In a notebook, as on this page, the last line of a cell shows it.
"""

import matplotlib.pyplot as plt
import numpy as np

import fad

plt.style.use("fad.style")


# %%
# A small program to look at: one layer, and how much neighbours in its result differ.
def roughness(weights, inputs):
    hidden = np.tanh(inputs @ weights)
    steps = hidden[1:] - hidden[:-1]
    return np.mean(steps**2)


rng = np.random.default_rng(0)
weights, inputs = 0.3 * rng.normal(size=(40, 60)), rng.normal(size=(500, 40))

# %%
# **The program.** :func:`fad.make_graph` records one call. The drawing has a box for each operation, with shape, bytes
# and your line; below it are the bytes held while each operation runs, and a table. Point at a step to read what it is.
graph = fad.make_graph(roughness)(weights, inputs)
graph

# %%
# **Where the time goes.** The chart has the calls in the order in which they ran, those inside a labelled block below
# it. Forward calls are blue, backward ones orange. The bars of the table are shares of the time.
gradient = fad.grad(roughness)
gradient(weights, inputs)  # what is done once, in the first call, is not measured
with fad.profiler.profile(profile_memory=True, with_stack=True) as profile:
    for _ in range(3):
        with fad.profiler.record_function("gradient"):
            gradient(weights, inputs)
profile

# %%
# The same for a trace viewer, such as Perfetto or ``chrome://tracing``, is written by
# ``profile.export_chrome_trace("trace.json")``.
#
# **What reverse mode keeps** from the forward for the backward pass, by line. :func:`fad.checkpoint` keeps less.
fad.saved(roughness)(weights, inputs)

# %%
# **What became one loop.** A jitted function shows each program that it has compiled, with the guards that lead to it.
# Operations on one line of the table are one loop over the elements; what lies between them is never stored.
compiled = fad.jit(gradient)
for _ in range(2):
    compiled(weights, inputs)
compiled

# %%
# **Memory from operation to operation.** ``graph.live_bytes()`` has the bytes held at each. A hundred layers keep a
# hundred arrays for the backward pass; with :func:`fad.checkpoint` around ten layers at a time, the program keeps one
# for each ten, and computes the others again when they are needed.


def deep(x, block):
    for _ in range(10):
        x = block(x)
    return np.sum(x)


def ten_layers(x):
    for _ in range(10):
        x = np.sin(1.1 * x)
    return x


figure, ax = plt.subplots(figsize=(9.5, 3.6))
for label, block in (("all is kept", ten_layers), ("fad.checkpoint", fad.checkpoint(ten_layers))):
    recorded = fad.make_graph(fad.grad(lambda x, block=block: deep(x, block)))(np.ones(10_000))
    held = np.array(recorded.live_bytes()) / 1e6
    ax.plot(held, label=f"{label}: {held.max():.1f} MB at most, {len(recorded)} operations")
ax.set(title="Bytes held while the gradient of a hundred layers runs", xlabel="operation", ylabel="MB", ylim=(0, None))
ax.legend()
plt.show()
