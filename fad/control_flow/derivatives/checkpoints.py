"""What reverse mode keeps of a long loop: loops of loops that keep the state between them, and compute the rest again.

A loop of ``c₁ c₂ ⋯ c_k`` steps on k levels keeps c₁ states, then c₂ of one of its parts, and so on; of the innermost
level it keeps all that c_k steps need. So it takes ``(c₁ + ⋯ + c_{k-1}) s + c_k r`` bytes, where a state takes s and
what one step keeps r, and runs the steps forward k times. That is least where all terms are equal. Steps that are left
over, because the lengths do not divide, are loops of their own behind the others, and keep what they need beside them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.config import bytes_of, memory_limit
from fad.control_flow.bodies.interpreter import first_step
from fad.control_flow.bodies.loop_layout import Inputs, Operands, Results
from fad.control_flow.bodies.subgraph import record_flat, to_number_p
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import SCALAR, Equation, Graph, Type
from fad.core.tracing.tracer import bind
from fad.errors import MemoryLimitError

SHORT = 64  # steps up to which reverse mode keeps everything
KEPT = 1 << 25  # bytes up to which a longer loop does so, too: computing again would cost more
_GAIN = {"sqrt": 2, "binomial": 1}  # a loop is cut to take less memory by this factor at least: its steps run again
_SHARE = 2  # one loop keeps at most this part of the limit, if it can: there may be others
_MOST_LEVELS = 12


def chunk_sizes(steps: int, save: Any, state: int, kept: int, fixed: int = 0, beside: int = 0) -> tuple[int, ...]:
    """Return the lengths of the inner loops that a loop is cut into, from the outside in; empty if it keeps everything.

    `state` is the bytes of the state, `kept` those that one step keeps, `fixed` those of what there is in any case,
    and `beside` what each level takes beside the states that it keeps.
    """
    if type(save) is tuple:
        return tuple([n for n in save if n < steps])
    if save == "carry":
        return ()
    limit = memory_limit.get()
    if limit is not None:
        return _within(bytes_of(limit), steps, state, kept, fixed, beside)
    if save == "none" or steps <= SHORT or kept * steps <= KEPT:
        return ()
    sizes = (math.isqrt(steps),) if save == "sqrt" else _halves(steps, kept)
    pays = _GAIN[save] * bytes_kept(steps, sizes, state, kept, beside) <= steps * kept
    return sizes if pays else ()


def _halves(steps: int, kept: int) -> tuple[int, ...]:
    sizes = []
    while steps > SHORT and steps * kept > KEPT:
        steps //= 2  # of an odd number one step is left over, and not half of them
        sizes.append(steps)
    return tuple(sizes)


def _within(limit: int, steps: int, state: int, kept: int, fixed: int, beside: int) -> tuple[int, ...]:
    """Return the cut with the fewest levels that takes half of what is left of a limit; or else all of it."""
    plans = [(), *[_levels(k, steps, state, kept) for k in range(2, _MOST_LEVELS + 1)]]
    for share in (_SHARE, 1):
        for sizes in plans:
            if fixed + share * bytes_kept(steps, sizes, state, kept, beside) <= limit:
                return sizes
    least = fixed + min(bytes_kept(steps, sizes, state, kept, beside) for sizes in plans)
    raise MemoryLimitError(
        f"the backward pass of a loop of {steps} steps, whose state takes {state} bytes, needs at least {least} bytes "
        f"of memory, but the limit is {limit}: raise it, fad.config.use(memory_limit={least}), or make the state "
        "smaller",
        least,
    )


def _levels(k: int, steps: int, state: int, kept: int) -> tuple[int, ...]:
    """Return the lengths of the inner loops of k levels that together keep the least."""
    terms = (steps * max(1, kept) / max(1, state)) ** (1 / k)  # of states on each level
    sizes, left = [], steps
    for _ in range(k - 1):
        left = _divisor(left, max(1, math.ceil(left / max(2.0, terms))))
        sizes.append(left)
    return tuple(sizes[: sizes.index(1) + 1] if 1 in sizes else sizes)


def _divisor(steps: int, least: int) -> int:
    """Return a length not much above `least` that leaves as few steps over as one can."""
    longer = range(least, least + min(least // 8, 64) + 1)
    return min(longer, key=lambda size: steps % size)


def bytes_kept(steps: int, sizes: tuple[int, ...], state: int, kept: int, beside: int = 0) -> int:
    """Return the bytes that a loop keeps if it is cut so."""
    return sum(_count_held_bytes(steps, sizes, state, kept, beside))


def _count_held_bytes(steps: int, sizes: tuple[int, ...], state: int, kept: int, beside: int) -> tuple[int, int]:
    """Return the bytes that a loop holds to its end, and the most that one of its inner loops takes while it runs."""
    sizes = tuple([n for n in sizes if n < steps])
    if not sizes:
        return steps * kept, 0
    size, inner = sizes[0], sizes[1:]
    rest, beside_rest = _count_held_bytes(steps % size, inner, state, kept, beside)  # of the steps that are left over
    part = sum(_count_held_bytes(size, inner, state, kept, beside))
    return steps // size * state + beside + rest, max(part, beside_rest)


def run_in_chunks(scan: Primitive, args: Any, params: dict, sizes: tuple[int, ...]) -> list:
    """Run a long loop as a loop of loops: reverse mode keeps the states between them, and computes the rest again."""
    steps, size = params["length"], sizes[0]
    chunks = steps // size
    whole = chunks * size
    operands = Operands.split(args, params)
    inner = {**params, "length": size, "save": sizes[1:]}
    reverse = params["reverse"]

    def with_numbers(xs, a, b):
        return [*([np.arange(a, b)] if params["index"] else []), *[x[a:b] for x in xs]]

    body = _indexed_by_xs(params["body"], params) if params["index"] else params["body"]
    inner.update(body=body, index=False)
    first = (steps - whole, steps) if reverse else (0, whole)
    rest = (0, steps - whole) if reverse else (whole, steps)
    blocks = [x.reshape((chunks, size, *x.shape[1:])) for x in with_numbers(operands.xs, *first)]

    def block(*flat: Any) -> list:
        return list(bind(scan, *flat, **inner))

    outer = {**inner, "length": chunks, "save": "carry"}
    given = operands._replace(xs=blocks)
    outer["body"] = record_flat(block, first_step(given, outer).join())
    state, ys, _ = Results.split(bind(scan, *given.join(), **outer), outer)
    ys = [y.reshape((whole, *y.shape[2:])) for y in ys]
    if steps > whole:
        tail = {**inner, "length": steps - whole}
        given = operands._replace(carry=state, xs=with_numbers(operands.xs, *rest))
        state, more, _ = Results.split(bind(scan, *given.join(), **tail), tail)
        ys = [np.concatenate([b, a] if reverse else [a, b]) for a, b in zip(ys, more, strict=True)]
    return [*state, *ys]


def _indexed_by_xs(body: Graph, params: dict) -> Graph:
    """Let a body take the number of its step as one of its xs, the first."""
    inputs = Inputs.split(body.inputs, params)
    types = [*body.types, Type((), np.dtype(np.int64), SCALAR)]
    number = len(body.types)
    equations = [Equation(to_number_p, (number,), {}, tuple(inputs.number)), *body.equations]
    inputs = inputs._replace(number=[], xs=[number, *inputs.xs])
    return body.replace(types=types, equations=equations, inputs=inputs.join())
