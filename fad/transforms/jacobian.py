"""Jacobians and Hessians: ``vmap`` of pushes or pulls over a basis, in chunks that bound the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.backends import is_on_device, made_like
from fad.core.primitives.cotangent import Masked
from fad.core.runs.transformed import Transformed, as_run, transformed
from fad.core.tracing.views import unwrap
from fad.errors import ComplexGradientError
from fad.transforms.arguments.check import as_value, check_function, flatten_primals, separate_aux
from fad.transforms.grad import grad, refuse_integers, split_arguments
from fad.transforms.jvp import jvp
from fad.transforms.linearize import linearize
from fad.transforms.reverse.slopes import is_steep_now
from fad.transforms.vjp import Tape, vjp
from fad.transforms.vmap import vmap
from fad.typing import PyTree

_BUDGET = 1 << 28  # bytes of basis and result that one chunk of rows may take, for chunk_size="auto"


def chunks(n: int, width: int, chunk_size: Any) -> Iterator[tuple[int, int]]:
    """Cut n rows into ranges; `width` is the number of elements of one row."""
    if chunk_size == "auto":
        chunk_size = max(1, _BUDGET // (32 * max(1, width)))
    elif chunk_size is not None and (not isinstance(chunk_size, (int, np.integer)) or chunk_size < 1):
        raise ValueError(f"chunk_size must be a positive int, None or 'auto', not {chunk_size!r}")
    step = chunk_size or max(1, n)
    return ((start, min(n, start + step)) for start in range(0, n, step))


def _basis(xs: list, start: int, stop: int) -> list:
    """Return unit vectors number start to stop of the space of all leaves together, one batched array per leaf."""
    out, offset = [], 0
    for x in xs:
        rows = np.zeros_like(unwrap(x), shape=(stop - start, x.size))
        low, high = max(start, offset), min(stop, offset + x.size)
        if low < high:
            rows[np.arange(low, high) - start, np.arange(low, high) - offset] = 1
        out.append(rows.reshape((stop - start, *x.shape)))
        offset += x.size
    return out


def _stack(parts: list) -> list:
    return parts[0] if len(parts) == 1 else [np.concatenate(column) for column in zip(*parts, strict=True)]


def _split_by_leaf(rows: Any, xs: list) -> list:
    """Cut an array with one row per element of all leaves into one array of shape ``(*leaf.shape, ...)`` per leaf."""
    out, offset = [], 0
    for x in xs:
        out.append(rows[offset : offset + x.size].reshape((*x.shape, *rows.shape[1:])))
        offset += x.size
    return out


def check_kinds(xs: list, holomorphic: bool, name: str, what: str) -> None:
    for x in xs:
        if holomorphic and x.dtype.kind != "c":
            raise ComplexGradientError(
                f"{name} with holomorphic=True needs a complex {what}, but its dtype is {x.dtype}"
            )
        if not holomorphic and x.dtype.kind == "c":
            raise ComplexGradientError(
                f"{name} needs a real {what}, but it is complex; pass holomorphic=True for a complex-differentiable "
                "function, or split real and imaginary parts"
            )


def _prepare(fun, args, kwargs, argnums, argnames, name):
    f, chosen, single = split_arguments(fun, args, kwargs, argnums, argnames, name)
    leaves, in_tree = flatten_primals(chosen, f"the argument of {name}")
    return f, leaves, in_tree, single


def _finish(blocks: list, out_tree: Any, in_tree: Any, single: bool) -> Any:
    """Nest the blocks: output structure outside, input structure inside."""
    rows = []
    for row in blocks:
        row = [b[()] if b.ndim == 0 and not is_on_device(unwrap(b)) else b for b in row]  # a number, as NumPy gives it
        inner = tree.unflatten(in_tree, row)
        rows.append(inner[0] if single else inner)
    return tree.unflatten(out_tree, rows)


def _forward(f, xs, in_tree, has_aux, holomorphic, chunk_size, name="jacfwd"):
    check_kinds(xs, holomorphic, name, "input")
    seen: dict = {}
    ranges = _ranges(xs, chunk_size)
    if len(ranges) == 1:

        def push(*tangents):
            out = jvp(f, tree.unflatten(in_tree, xs), tree.unflatten(in_tree, list(tangents)), has_aux)
            _note_output(seen, out[0], out[2] if has_aux else None, name)
            return tree.leaves(out[1])

        return _push_all(push, xs, ranges), seen
    # The function runs once, however many chunks there are: what it writes outside of itself is written once.
    out = linearize(f, *tree.unflatten(in_tree, xs), has_aux=has_aux)
    _note_output(seen, out[0], out[2] if has_aux else None, name)
    ys = [as_value(y) for y in tree.leaves(out[0])]
    if not ranges:  # no input element at all
        return [[made_like(np.zeros_like, y, y.shape + x.shape) for x in xs] for y in ys], seen
    return _push_all(lambda *ts: tree.leaves(out[1](*tree.unflatten(in_tree, list(ts)))), xs, ranges), seen


def _ranges(xs: list, chunk_size: Any) -> list:
    """Return the ranges of the unit vectors of the space of all leaves together that are pushed or pulled at once."""
    n = sum(x.size for x in xs)
    return list(chunks(n, max(n, 1), chunk_size))


def _note_output(seen: dict, out: PyTree, aux: PyTree, name: str) -> None:
    refuse_integers(tree.leaves(tree.map(as_value, out)), name)
    seen["tree"] = tree.flatten(out)[1]
    seen["aux"] = aux


def _push_all(push: Callable, xs: list, ranges: list) -> list:
    """Return the Jacobian's blocks: per output leaf, one per input leaf, from the pushes of all unit vectors."""
    columns = _stack([vmap(push)(*_basis(xs, start, stop)) for start, stop in ranges])
    return [
        [
            np.moveaxis(c, tuple(range(x.ndim)), tuple(range(-x.ndim, 0)))
            for c, x in zip(_split_by_leaf(y, xs), xs, strict=True)
        ]
        for y in columns
    ]


def _reverse(f, xs, in_tree, has_aux, holomorphic, chunk_size, name="jacrev"):
    tape = Tape(f, in_tree, xs, has_aux)
    return _pull_all(tape, xs, holomorphic, chunk_size, name)


def _pull_all(tape, xs, holomorphic, chunk_size, name):
    ys = tape.values()
    refuse_integers(ys, name)
    check_kinds(ys, holomorphic, name, "output")
    m, n = sum(y.size for y in ys), sum(x.size for x in xs)
    pull = _pull_units if is_steep_now(tape.records) else lambda tape, cts: tape.pull(cts, keep=True)
    parts = [
        vmap(lambda *cts: pull(tape, list(cts)))(*_basis(ys, start, stop))
        for start, stop in chunks(m, max(n, m), chunk_size)
    ]
    seen = {"tree": tape.out_tree, "aux": tape.aux}
    if not parts:
        return [[made_like(np.zeros_like, x, y.shape + x.shape) for x in xs] for y in ys], seen
    columns = [_split_by_leaf(c, ys) for c in _stack(parts)]  # per input, per output
    return [[columns[i][k] for i in range(len(xs))] for k in range(len(ys))], seen


def _pull_units(tape: Tape, cts: list) -> list:
    """Pull unit vectors, whose zeros meet no infinite slope: what makes other elements of the output is not used."""
    return tape.pull([Masked(ct, np.not_equal(ct, 0), clean=True) for ct in cts], keep=True)


def jacfwd(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, *,
    chunk_size: int | str | None = None, argnames: str | Sequence[str] | None = None,
) -> Callable:  # fmt: skip
    """Return a function that computes the Jacobian column by column, by forward mode.

    The better choice where the input is smaller than the output.

    Parameters
    ----------
    fun : callable
        Function of arrays or pytrees.
    argnums, has_aux, holomorphic, argnames
        As in :func:`fad.grad`.
    chunk_size : int, None or "auto"
        How many columns to compute at once; None means all, "auto" bounds the memory.

    Returns
    -------
    callable
        Returns arrays of shape ``out.shape + in.shape``; for pytrees the output's structure is outside.

    Raises
    ------
    IntegerInputError
        if the argument is an integer or a boolean.

    Examples
    --------
    >>> import numpy as np
    >>> jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_function(fun, "jacfwd", argnums)
    return _jacobian(_forward, "jacfwd", fun, argnums, has_aux, holomorphic, chunk_size, argnames)


def jacrev(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, *,
    chunk_size: int | str | None = None, argnames: str | Sequence[str] | None = None,
) -> Callable:  # fmt: skip
    """Return a function that computes the Jacobian row by row, by reverse mode.

    The better choice where the output is smaller than the input. Parameters and result as in :func:`jacfwd`.

    Parameters
    ----------
    fun : callable
        Function of arrays or trees; may return any shape.
    argnums : int or tuple of int
        The arguments to differentiate.
    has_aux, holomorphic : bool
        As of :func:`jacfwd`.
    chunk_size : int or "auto", keyword only
        How many cotangents are pulled at once.
    argnames : str or tuple of str, keyword only
        Arguments to differentiate by name.

    Returns
    -------
    callable
        Returns arrays of shape ``out.shape + in.shape``; for a tree, a tree of trees.

    Raises
    ------
    IntegerInputError
        if the argument is an integer or a boolean.
    ComplexGradientError
        if the result is complex, and `holomorphic` is false.

    Examples
    --------
    >>> import numpy as np
    >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_function(fun, "jacrev", argnums)
    return _jacobian(_reverse, "jacrev", fun, argnums, has_aux, holomorphic, chunk_size, argnames)


def jacobian(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, *,
    mode: str = "auto", chunk_size: int | str | None = "auto", argnames: str | Sequence[str] | None = None,
) -> Callable:  # fmt: skip
    """Return a function that computes the Jacobian, in the mode that needs fewer passes.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic, argnames
        As in :func:`fad.grad`.
    mode : "auto", "fwd" or "rev"
        "auto" goes forward if there are fewer inputs than outputs, else backward.
    chunk_size : int, None or "auto"
        How many passes to run at once.

    Returns
    -------
    callable
        Returns arrays of shape ``out.shape + in.shape``.

    Raises
    ------
    ValueError
        if `mode` is none of "auto", "fwd" and "rev".
    IntegerInputError
        if the argument is an integer or a boolean.
    ArgnumsError
        if there is no such argument.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: np.array([[1.0, 2.0]]) @ x)(np.ones(2))
    array([[1., 2.]])
    """
    check_function(fun, "jacobian", argnums)
    modes = {"auto": _cheaper, "fwd": _forward, "rev": _reverse}
    if mode not in modes:
        raise ValueError(f"mode of jacobian must be 'auto', 'fwd' or 'rev', not {mode!r}")
    return _jacobian(modes[mode], "jacobian", fun, argnums, has_aux, holomorphic, chunk_size, argnames)


def _cheaper(f, xs, in_tree, has_aux, holomorphic, chunk_size, name):
    tape = Tape(f, in_tree, xs, has_aux)
    inputs, outputs = sum(x.size for x in xs), sum(y.size for y in tape.values())
    real = holomorphic or not any(x.dtype.kind == "c" for x in xs)
    if inputs < outputs and real and not tape.trace.rules and not is_steep_now(tape.records):
        return _push_through(tape, xs, holomorphic, chunk_size, name)
    return _pull_all(tape, xs, holomorphic, chunk_size, name)


def _push_through(tape, xs, holomorphic, chunk_size, name):
    """Compute the Jacobian by columns from the record of a run, without a second one.

    A second run would do again what the function does outside of itself: write into arrays, print, draw numbers. The
    pull is linear in the cotangents, and what is linear is its own derivative: so its pullback is the push. (A rule of
    the user's that clips cotangents is not linear: its Jacobian is computed by rows.)
    """
    ys = tape.values()
    refuse_integers(ys, name)
    ranges = _ranges(xs, chunk_size)
    if not ranges:
        return _pull_all(tape, xs, holomorphic, chunk_size, name)
    cts = [np.ones_like(y) for y in ys]
    with np.errstate(all="ignore"):  # of this pull only the record is used
        back = Tape(lambda *cts: tape.pull(list(cts), keep=True), tree.flatten(tuple(cts))[1], cts, False)
    blocks = _push_all(lambda *ts: back.pull(list(ts), keep=True), xs, ranges)
    return blocks, {"tree": tape.out_tree, "aux": tape.aux}


def _jacobian(compute, name, fun, argnums, has_aux, holomorphic, chunk_size, argnames):
    @transformed(name, fun)
    def evaluate(*args, **kwargs):
        f, xs, in_tree, single = _prepare(fun, args, kwargs, argnums, argnames, name)
        blocks, seen = compute(f, xs, in_tree, has_aux, holomorphic, chunk_size, name)
        result = _finish(blocks, seen["tree"], in_tree, single)
        return (result, separate_aux(seen["aux"], (args, kwargs))) if has_aux else result

    return evaluate


def hessian(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False, *,
    chunk_size: int | str | None = "auto",
) -> Callable:  # fmt: skip
    """Return a function that computes the matrix of second derivatives, by forward over reverse mode.

    Parameters as in :func:`jacfwd`; `fun` may return any shape.

    Parameters
    ----------
    fun : callable
        Function of arrays or trees; may return any shape.
    argnums : int or tuple of int
        The arguments to differentiate.
    has_aux, holomorphic : bool
        As of :func:`jacfwd`.
    chunk_size : int or "auto", keyword only
        How many directions are pushed at once.

    Returns
    -------
    callable
        Returns arrays of shape ``out.shape + in.shape + in.shape``; for a tree, a tree of trees.

    Raises
    ------
    IntegerInputError
        if the argument is an integer or a boolean.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    check_function(fun, "hessian", argnums)
    inner = jacrev(fun, argnums, has_aux, holomorphic, chunk_size=chunk_size)
    outer = jacfwd(inner, argnums, has_aux, holomorphic, chunk_size=chunk_size)
    return Transformed("hessian", fun, outer)


def _as_tuple(x: Any, what: str) -> tuple:
    if not isinstance(x, (tuple, list)):
        raise TypeError(f"{what} must be a tuple with one entry per argument: (x,)")
    return tuple(x)


def hvp(fun: Callable, primals: PyTree, tangents: PyTree) -> tuple:
    """Multiply the Hessian of a scalar function by a vector, at the cost of a few gradients.

    Parameters
    ----------
    fun : callable
        Function that returns one real number.
    primals, tangents : tuple
        Point and vector, one entry per argument.

    Returns
    -------
    (value, product)
        The product has the structure of ``primals[0]`` if there is one primal, else it is a tuple.

    Raises
    ------
    NonScalarOutputError
        if the function returns anything but one number.
    ShapeMismatchError
        if a tangent has another shape than its primal.

    Examples
    --------
    >>> import numpy as np
    >>> hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    (np.float64(9.0), array([6., 0.]))
    """
    primals, tangents = _as_tuple(primals, "primals of hvp"), _as_tuple(tangents, "tangents of hvp")
    gradient = grad(lambda *xs: _double(as_run(fun)(*xs)), argnums=tuple(range(len(primals))), has_aux=True)
    _, product, value = jvp(gradient, primals, tangents, has_aux=True)
    return value, (product[0] if len(primals) == 1 else product)


def _double(y):
    return y, y


def vhp(fun: Callable, primals: PyTree, cotangents: PyTree) -> tuple:
    """Multiply a vector by the Hessian of a scalar function, by reverse over reverse mode.

    Parameters and result as in :func:`hvp`.

    Parameters
    ----------
    fun : callable
        Function that returns one real number.
    primals, cotangents : tuple
        Point and vector, one entry per argument.

    Returns
    -------
    (value, product)
        The product has the structure of ``primals[0]`` if there is one primal, else it is a tuple.

    Raises
    ------
    TypeError
        if `cotangents` is no tuple with an entry for each argument.

    Examples
    --------
    >>> import numpy as np
    >>> vhp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    (np.float64(9.0), array([6., 0.]))
    """
    primals, cotangents = _as_tuple(primals, "primals of vhp"), _as_tuple(cotangents, "cotangents of vhp")
    gradient = grad(lambda *xs: _double(as_run(fun)(*xs)), argnums=tuple(range(len(primals))), has_aux=True)
    _, pullback, value = vjp(gradient, *primals, has_aux=True)
    product = pullback(cotangents)
    return value, (product[0] if len(primals) == 1 else product)


def elementwise_grad(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable:
    """Return a function that computes the sum of each column of the Jacobian, in the shape of the argument.

    Where every output element depends on its own input element alone, that is the elementwise derivative.

    Parameters
    ----------
    fun : callable
        Function of arrays; each element of its result depends on its own element of the argument.
    argnums : int or tuple of int
        The arguments to differentiate.

    Returns
    -------
    callable
        With the arguments of `fun`; returns the derivative in the shape of the argument.

    Raises
    ------
    IntegerInputError
        if the argument is an integer or a boolean.

    Examples
    --------
    >>> import numpy as np
    >>> elementwise_grad(np.sin)(np.zeros(3))
    array([1., 1., 1.])
    """
    check_function(fun, "elementwise_grad", argnums)

    @transformed("elementwise_grad", fun)
    def evaluate(*args, **kwargs):
        f, chosen, single = split_arguments(fun, args, kwargs, argnums, None, "elementwise_grad")
        out, pullback = vjp(f, *chosen)
        refuse_integers(tree.leaves(tree.map(as_value, out)), "elementwise_grad")
        found = pullback(tree.map(lambda y: np.ones_like(y) if np.ndim(y) else y.dtype.type(1), out))
        return found[0] if single else found

    return evaluate
