"""``torch.func``: transforms of functions of tensors, in PyTorch's names and signatures. They are fad's own.

>>> import fad.eager as torch
>>> slope = grad(lambda x: torch.sin(x))
>>> slope(torch.tensor(0.0)), vmap(slope)(torch.zeros(3))
(tensor(1.), tensor([1., 1., 1.]))
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fad import tree
from fad.core.tracing.tracer import Tracer
from fad.eager.core.mode import WITH_HISTORY, WITHOUT_HISTORY, NeedsHistory, inside, transform
from fad.eager.nn.module import Module
from fad.eager.ops.shaping import stack
from fad.eager.rng import refusing
from fad.eager.tensor import Tensor, is_tensor
from fad.transforms import grad as gradients
from fad.transforms import jacobian
from fad.transforms import jvp as forward_mode
from fad.transforms import vjp as reverse_mode
from fad.transforms import vmap as batching
from fad.transforms.linearize import linearize
from fad.transforms.reverse.tape import Recorder

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def _reverse(func: Callable) -> Callable:
    """Return a function for reverse mode, which runs with a history of tensors if it calls `autograd.grad` itself."""
    if not callable(func):
        return func

    @functools.wraps(func, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        before = inside.get()
        try:
            inside.set(WITHOUT_HISTORY)
            return func(*args, **kwargs)
        except NeedsHistory:
            inside.set(WITH_HISTORY)
            args, kwargs = tree.map(_with_history, (args, kwargs), is_leaf=is_tensor)
            return tree.map(lambda x: Tensor(x.value) if is_tensor(x) else x, func(*args, **kwargs), is_leaf=is_tensor)
        finally:
            inside.set(before)

    return transform(run)


def _with_history(x: Any) -> Any:
    traced = is_tensor(x) and type(x.value) is Tracer and isinstance(x.value.owner, Recorder)
    return Tensor(x.value).requires_grad_() if traced else x


def grad(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes the gradient of `func`, or ``(gradient, aux)``: :func:`fad.grad`."""
    return gradients.grad(_reverse(func), argnums, has_aux)


def grad_and_value(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """Return a function that computes ``(gradient, value)``, with ``has_aux`` ``(gradient, (value, aux))``.

    >>> import fad.eager as torch
    >>> grad_and_value(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    both = gradients.value_and_grad(_reverse(func), argnums, has_aux)

    def turn(*args: Any, **kwargs: Any) -> tuple:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return turn


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Return ``(output, pullback)``, with ``has_aux`` ``(output, pullback, aux)``.

    The pullback takes one argument of the structure of the output, and returns a tuple with one entry per primal.
    """
    out, pull, *aux = reverse_mode.vjp(_reverse(func), *primals, has_aux=has_aux)

    def pullback(cotangents: Any, **options: Any) -> tuple:
        return pull(cotangents)

    return (out, pullback, *aux)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """Return ``(output, tangent of the output)``: :func:`fad.jvp`."""
    return forward_mode.jvp(func, primals, tangents, has_aux=has_aux)


def jacrev(func: Callable, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Callable:
    """Return a function that computes the Jacobian by reverse mode: :func:`fad.jacrev`."""
    return jacobian.jacrev(_reverse(func), argnums, has_aux, chunk_size=chunk_size)


def jacfwd(func: Callable, argnums: Any = 0, has_aux: bool = False, *, chunk_size: int | None = None) -> Callable:
    """Return a function that computes the Jacobian by forward mode: :func:`fad.jacfwd`."""
    return jacobian.jacfwd(func, argnums, has_aux, chunk_size=chunk_size)


def hessian(func: Callable, argnums: Any = 0) -> Callable:
    """Return a function that computes the matrix of second derivatives: :func:`fad.hessian`."""
    return jacobian.hessian(_reverse(func), argnums)


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """Return a function of batches from one of single examples: :func:`fad.vmap`.

    `randomness` says what random numbers of `fad.eager` do inside: ``"error"``, or ``"same"`` for all examples. For
    different ones draw them outside, with an axis for the batch.
    """
    if randomness not in ("error", "same"):
        raise ValueError(
            f"randomness of vmap is 'error' or 'same', not {randomness!r}: for different numbers draw them outside, as "
            "one more batched argument"
        )

    def quiet(*args: Any, **kwargs: Any) -> Any:
        with refusing("vmap would give all examples the same random numbers: pass randomness='same', or draw outside"):
            return func(*args, **kwargs)

    return batching.vmap(func if randomness == "same" else quiet, in_dims, out_dims, chunk_size=chunk_size)


def functional_call(module: Module, tensors: Any, args: Any = None, kwargs: dict | None = None) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers, named as in ``named_parameters``.

    `tensors` is a dictionary, or a sequence of them; what is not named stays. `args` is one argument or a tuple.

    >>> import fad.eager as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> functional_call(layer, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, torch.tensor([3.0, 4.0]))
    tensor([7.])
    """
    given: dict[str, Any] = {}
    for part in (tensors,) if isinstance(tensors, dict) else tensors:
        given |= part
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replace(module, given):
        return module(*args, **(kwargs or {}))


@contextlib.contextmanager
def _replace(module: Module, given: dict[str, Any]) -> Iterator[None]:
    modules, tied = dict(module.named_modules(remove_duplicate=False)), _find_tied(module)
    undo: list[tuple] = []
    try:
        for name, value in given.items():
            path, _, own = name.rpartition(".")
            below = modules.get(path)
            tables = below._tables() if below is not None else {}
            table = next((t for t in (tables.get("_parameters", {}), tables.get("_buffers", {})) if own in t), None)
            if table is not None:
                places, before = tied[id(table), own]
                if table[own] is not before and table[own] is not value:
                    raise ValueError(f"{name!r} is tied to another name, and another tensor was given for that one")
                for where, key in places:
                    undo.append((where.__setitem__, key, before))
                    where[key] = value
            elif below is not None and own in below._own_buffers():
                undo.append((below._write_buffer, own, below._own_buffers()[own].value.copy()))
                below._write_buffer(own, value.value)
            else:
                raise KeyError(f"{type(module).__name__} has no parameter or buffer {name!r}")
        yield
    finally:
        for put, own, before in reversed(undo):
            put(own, before)


def _find_tied(module: Module) -> dict[tuple[int, str], tuple[list, Any]]:
    """Return, for each place of a tensor in a module's tables, all places of that tensor, and the tensor."""
    groups: dict[int, tuple[list, Any]] = {}
    found = {}
    for below in module.modules():
        for table in (below._tables()["_parameters"], below._tables()["_buffers"]):
            for own, x in table.items():
                group = groups.setdefault(id(x), ([], x)) if x is not None else ([], x)
                group[0].append((table, own))
                found[id(table), own] = group
    return found


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of models of one kind, each stacked along a new first axis."""
    if not models:
        raise ValueError("stack_module_state needs at least one model")
    names: list[dict] = [dict(models[0].named_parameters()), dict(models[0].named_buffers())]
    every: list[list[dict]] = [[dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models]]
    parameters, buffers = (
        {name: stack([own[name].detach() for own in of_all]) for name in firsts}
        for firsts, of_all in zip(names, every, strict=True)
    )
    for x in parameters.values():
        x.requires_grad_()
    return parameters, buffers
