"""``torch.utils.checkpoint``: keep arguments instead of what is computed from them, and compute that twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fad.transforms import checkpoint as rematerialising

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(
    function: Callable, *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs: Any
) -> Any:
    """Call a function of which the backward pass runs the forward pass again: :func:`fad.checkpoint`.

    Random numbers of the second run are those of the first. There is one way of running it, so `use_reentrant` is
    taken and has no meaning.

    >>> import fad.eager as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
    >>> bool(torch.allclose(x.grad, x.exp().cos() * x.exp()))
    True
    """
    if not preserve_rng_state:
        raise ValueError("checkpoint runs the function with the same random numbers: preserve_rng_state=True")
    return rematerialising.checkpoint(function)(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **options: Any
) -> Any:
    """Run functions, or parts of a ``Sequential``, one after another in `segments`, all but the last checkpointed."""
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 0 < segments <= len(parts):
        raise ValueError(f"segments must be between 1 and the number of functions, {len(parts)}, not {segments}")
    size = len(parts) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(_chain(parts[start : start + size]), input, use_reentrant=use_reentrant, **options)
    return _chain(parts[size * (segments - 1) :])(input)


def _chain(parts: Sequence[Callable]) -> Callable:
    def run(x: Any) -> Any:
        for part in parts:
            x = part(x)
        return x

    return run
