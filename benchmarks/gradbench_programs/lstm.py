"""A network of LSTM cells that predicts the next character of a text: its loss, and the gradient."""

import numpy as np

import fad


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell_of(weight, bias, hidden, cell, x):
    forget, ingate, outgate, change = (np.concatenate([x, hidden, x, hidden]) * weight + bias).reshape(4, -1)
    cell = cell * sigmoid(forget) + sigmoid(ingate) * np.tanh(change)
    return sigmoid(outgate) * np.tanh(cell), cell


def loss(main, extra, state, sequence):
    """Return the mean loss; a layer has two rows of `main`, weights and biases, and two of `state`, output and cell."""
    state = state.copy()
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * extra[0]
        for k in range(0, len(state), 2):
            state[k], state[k + 1] = cell_of(main[k], main[k + 1], state[k], state[k + 1], x)
            x = state[k]
        predicted = x * extra[1] + extra[2]
        total += np.sum(sequence[t + 1] * (predicted - np.log(2 + np.sum(np.exp(predicted)))))
    return -total / (sequence.shape[1] * (len(sequence) - 1))


def flat_gradient(main, extra, state, sequence):
    parts = fad.grad(loss, argnums=(0, 1))(main, extra, state, sequence)
    return np.concatenate([part.ravel() for part in parts])


def prepare(given):
    return tuple([np.array(given[name], dtype=float) for name in ("main_params", "extra_params", "state", "sequence")])


objective = fad.jit(loss)
jacobian = fad.jit(flat_gradient)


def answer(output):
    return output.tolist()
