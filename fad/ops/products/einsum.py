"""einsum: any sum of products over named axes, as a chain of products of two operands.

One bilinear primitive, `contract_p`, holds the product of two operands without repeated, unit or private letters.
It is closed: each of its two cotangents is again such a product, and a batch axis is one more letter.
Wherever letters are summed it runs as a matrix product.
"""

from __future__ import annotations

import functools
import string
from typing import Any

import numpy as np

from fad.backends import backend_of
from fad.core.handles.buffers import Taken
from fad.core.primitives.archetypes import cast
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind, strong
from fad.core.tracing.views import layout
from fad.ops.arrangement.structural import as_array
from fad.ops.layout.memory_order import axes_in_memory, lay_out, lay_out_axes
from fad.ops.places.indexing import ARRAY, index_set_p
from fad.ops.reductions.reduction import as_scalar, sum_p

# --- the product of two operands ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def pair_plan(a: str, b: str, out: str) -> tuple:
    """Return how to run a product of two operands as a matrix product.

    ``(perm_x, perm_y, n_batch, n_left, n_sum, n_right, perm_out)``, a permutation being None where nothing moves.
    Both operands are brought to (batch, left, sum) and (batch, sum, right); the result is (batch, left, right).
    """
    batch = [c for c in out if c in a and c in b]
    left = [c for c in out if c in a and c not in b]
    right = [c for c in out if c in b and c not in a]
    summed = [c for c in b if c in a and c not in out]
    perm_x = _permutation(a, batch + left + summed)
    perm_y = _permutation(b, batch + summed + right)
    perm_out = _permutation(batch + left + right, out)
    return perm_x, perm_y, len(batch), len(left), len(summed), len(right), perm_out


def _permutation(have: Any, want: Any) -> tuple | None:
    order = tuple(list(have).index(c) for c in want)
    return None if order == tuple(range(len(order))) else order


def _contract(x: Any, y: Any, *, a: str, b: str, result: str) -> Any:
    """Compute ``einsum("a,b->result", x, y)`` by one matrix product."""
    perm_x, perm_y, n_batch, n_left, n_sum, n_right, perm_out = pair_plan(a, b, result)
    if (n_batch and not (n_left or n_right)) or (n_sum == 0 and n_batch):
        backend_of(x, y)  # which refuses two: a device's einsum may take NumPy's arrays there in silence
        return np.einsum(f"{a},{b}->{result}", x, y)
    x = x if perm_x is None else x.transpose(perm_x)
    y = y if perm_y is None else y.transpose(perm_y)
    if not n_batch and n_sum == 1 and n_left < 2 and n_right < 2:
        z = np.matmul(x, y)
    else:
        batch, left = x.shape[:n_batch], x.shape[n_batch : n_batch + n_left]
        right = y.shape[n_batch + n_sum :]
        k = _size(x.shape[n_batch + n_left :])
        z = np.matmul(x.reshape(*batch, _size(left), k), y.reshape(*batch, k, _size(right)))
        z = z.reshape(batch + left + right)
    if not result:
        return z[()]
    return z if perm_out is None else z.transpose(perm_out)


def _size(shape: tuple) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _contract_jvp(tangents, z, xs, params):
    t, u = tangents
    total = None if t is None else bind(contract_p, t, xs[1], **params)
    if u is not None:
        other = bind(contract_p, xs[0], u, **params)
        total = other if total is None else total + other
    return cast(total, z.dtype)


def _contract_batch(size, batched, xs, params):
    used = params["a"] + params["b"] + params["result"]
    batch_letter = next(c for c in string.ascii_letters if c not in used)
    a, b = (batch_letter + s if flag else s for flag, s in zip(batched, (params["a"], params["b"]), strict=True))
    return bind(contract_p, *xs, a=a, b=b, result=batch_letter + params["result"])


contract_p: Any = register(
    Primitive(
        "contract",
        _contract,
        jvp=_contract_jvp,
        vjp=(
            lambda ct, z, x, y, a, b, result: bind(contract_p, ct, y, a=result, b=b, result=a),
            lambda ct, z, x, y, a, b, result: bind(contract_p, x, ct, a=a, b=result, result=b),
        ),
        batch=_contract_batch,
        archetype="bilinear",
        dependence="contraction",
        saves="operands",
        text=lambda x, y, a, b, result: f"np.einsum('{a},{b}->{result}', {x}, {y})",
        samples=lambda s: [
            call(s.real(3, 4), s.real(4, 2), a="ij", b="jk", result="ik"),
            call(s.real(2, 3, 4), s.real(4, 2, 5), a="bij", b="jbk", result="kbi"),
            call(s.real(3, 4), s.real(3, 4), a="ij", b="ij", result=""),
            call(s.real(3, 4), s.real(4, 3), a="ij", b="ji", result="i"),
            call(s.real(3), s.real(2), a="i", b="j", result="ji"),
            call(s.real(), s.real(2), a="", b="j", result="j"),
            call(s.real(2, 0), s.real(0, 3), a="ij", b="jk", result="ik"),
        ],
    )
)

# --- from the user's subscripts to a chain of products --------------------------------------------------------------


def _letters(labels: Any) -> str:
    """Spell a list of axis numbers (NumPy's other form of einsum) as letters, in NumPy's order."""
    out = ""
    for label in labels:
        if label is Ellipsis:
            out += "..."
        else:
            i = label.__index__()
            if not 0 <= i < 52:
                raise ValueError("einsum labels must be integers from 0 to 51, or Ellipsis")
            out += (string.ascii_uppercase + string.ascii_lowercase)[i]
    return out


def _spell(operands: tuple) -> tuple[str, list]:
    """Return subscripts and operands for either form of einsum's arguments."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), [strong(as_array(x)) for x in operands[1:]]
    pairs = len(operands) // 2
    arrays = [strong(as_array(x)) for x in operands[0 : 2 * pairs : 2]]
    subscripts = ",".join(_letters(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        subscripts += "->" + _letters(operands[-1])
    return subscripts, arrays


@functools.lru_cache(maxsize=4096)
def _explicit(subscripts: str, ranks: tuple) -> tuple[tuple, str]:
    """Return the letters of each operand and of the result, with ellipses and the implicit result spelled out.

    Raises ValueError where NumPy does.
    """
    given, arrow, result = subscripts.partition("->")
    terms = given.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum got {len(ranks)} operands for the subscripts {given!r}, which name {len(terms)}")
    spare = "".join(c for c in string.ascii_letters if c not in subscripts)
    widths = [
        rank - len(term.replace("...", "")) if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)
    ]
    rest = spare[: max(widths)]
    for term, rank, width in zip(terms, ranks, widths, strict=True):
        bare = term.replace("...", "", 1)
        if not all(c in string.ascii_letters for c in bare):
            raise ValueError(f"einsum subscripts {subscripts!r} hold a character that is no letter")
        if width < 0 or ("..." not in term and len(term) != rank):
            raise ValueError(f"einsum subscripts {term!r} name {len(bare)} axes, but the operand has {rank}")
    inputs = tuple(t.replace("...", rest[len(rest) - w :]) for t, w in zip(terms, widths, strict=True))
    if not arrow:
        bare = given.replace(",", "").replace(".", "")
        result = rest + "".join(sorted(c for c in set(bare) if bare.count(c) == 1))
    else:
        if rest and "..." not in result:
            raise ValueError("einsum: the ellipsis of an operand must appear in the result too")
        result = result.replace("...", rest)
    for c in result:
        if result.count(c) > 1 or c not in "".join(inputs):
            raise ValueError(f"einsum's result {result!r} must name axes of the operands, each once")
    return inputs, result


def _diagonal(x: Any, term: str) -> tuple[Any, str]:
    """Take the diagonal for a letter that an operand names twice, until none is."""
    for c in term:
        while term.count(c) > 1:
            i = term.index(c)
            j = term.index(c, i + 1)
            n = x.shape[i]
            if x.shape[j] != n:
                raise ValueError(f"einsum: dimensions of the repeated index {c!r} do not match: {n} and {x.shape[j]}")
            x = _line(np.moveaxis(x, (i, j), (0, 1)))
            term = c + "".join(d for k, d in enumerate(term) if k not in (i, j))
    return x, term


_line = Taken(
    lambda x: x[np.arange(len(x)), np.arange(len(x))],
    lambda x: np.einsum("ii...->i...", x),
    lambda x, y: bind(index_set_p, x, y, *2 * [np.arange(len(x))], template=(ARRAY, ARRAY)),
)


def _as_wide(arrays: list) -> list:
    """Give operands the precision of the result, in which NumPy adds up and multiplies from the first on."""
    common = np.result_type(*[x.dtype for x in arrays])
    real = np.finfo(common).dtype if common.kind == "c" else common  # for real operands beside complex ones
    wanted = [common if x.dtype.kind == "c" else real for x in arrays]
    return [x if x.dtype == dtype else x.astype(dtype) for x, dtype in zip(arrays, wanted, strict=True)]


def _prepare(x: Any, term: str, sizes: dict, others: str) -> tuple[Any, str]:
    """Drop the axes of an operand that take no part in a product: broadcast unit axes, and letters of its own."""
    unit = tuple(i for i, c in enumerate(term) if x.shape[i] == 1 and sizes[c] != 1)
    if unit:
        x = x.reshape(tuple(d for i, d in enumerate(x.shape) if i not in unit))
        term = "".join(c for i, c in enumerate(term) if i not in unit)
    own = tuple(i for i, c in enumerate(term) if c not in others)
    if own:
        dtype = x.dtype
        x = bind(sum_p, x, axis=own, keepdims=False)
        x = x if x.dtype == dtype else x.astype(dtype)  # einsum adds up narrow integers as they are, unlike sum
        term = "".join(c for i, c in enumerate(term) if i not in own)
    return x, term


@functools.lru_cache(maxsize=4096)
def _plain_pair(subscripts: str, shape_x: tuple, shape_y: tuple) -> tuple | None:
    """Return the letters of both operands and of the result, if the two can be multiplied as they are."""
    (a, b), result = _explicit(subscripts.replace(" ", ""), (len(shape_x), len(shape_y)))
    if len(set(a)) < len(a) or len(set(b)) < len(b):
        return None
    sizes = dict(zip(a, shape_x, strict=True))
    same = all(sizes.get(c, d) == d for c, d in zip(b, shape_y, strict=True))
    private = any(c not in b + result for c in a) or any(c not in a + result for c in b)
    return (a, b, result) if same and not private else None


@functools.lru_cache(maxsize=1024)
def _path(terms: tuple, result: str, shapes: tuple) -> tuple:
    """Return an order of products for three or more operands, found greedily by their sizes."""
    stand_ins = [np.broadcast_to(np.empty(()), shape) for shape in shapes]
    path = np.einsum_path(",".join(terms) + "->" + result, *stand_ins, optimize="greedy")[0][1:]
    return tuple(tuple(sorted(step)) for step in path)


def _multiply(arrays: list, terms: list, result: str) -> Any:
    """Multiply prepared operands two at a time."""
    if len(arrays) > 2:
        path = _path(tuple(terms), result, tuple(x.shape for x in arrays))
    else:
        path = ((0, 1),) if len(arrays) == 2 else ()
    for step in path:
        xs, names = [arrays[i] for i in step], [terms[i] for i in step]
        arrays = [x for i, x in enumerate(arrays) if i not in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        x, a = xs[0], names[0]
        for k in range(1, len(xs)):
            wanted = result + "".join(terms + names[k + 1 :])
            out = "".join(dict.fromkeys(c for c in a + names[k] if c in wanted))
            if not terms and k == len(xs) - 1:
                out = result
            x, a = _product(x, a, xs[k], names[k], out), out
        arrays.append(x)
        terms.append(a)
    return _transpose(arrays[0], terms[0], result)


def _product(x: Any, a: str, y: Any, b: str, out: str) -> Any:
    """Multiply two operands; letters that became private to one of them are summed first."""
    sizes = {**dict(zip(a, x.shape, strict=True)), **dict(zip(b, y.shape, strict=True))}
    x, a = _prepare(x, a, sizes, b + out)
    y, b = _prepare(y, b, sizes, a + out)
    return bind(contract_p, x, y, a=a, b=b, result=out)


def _transpose(x: Any, term: str, result: str) -> Any:
    return x if term == result else x.transpose(tuple(term.index(c) for c in result))


def _sizes(arrays: list, inputs: list) -> dict:
    """Return the size of each letter; an axis of size one broadcasts."""
    sizes: dict = {}
    for x, term in zip(arrays, inputs, strict=True):
        for c, d in zip(term, x.shape, strict=True):
            if sizes.get(c, 1) == 1:
                sizes[c] = d
            elif d not in (1, sizes[c]):
                raise ValueError(f"einsum: the index {c!r} has the sizes {sizes[c]} and {d}")
    return sizes


def _einsum_samples(s):
    return [
        call("ij,jk->ik", s.real(3, 4), s.real(4, 2)),
        call("ij,jk", s.real(3, 4), s.real(4, 2)),
        call("ii->i", s.real(3, 3)),
        call("ii", s.real(3, 3)),
        call("iji,kj->k", s.real(2, 3, 2), s.real(4, 3)),
        call("...ij,...jk->...ik", s.real(2, 1, 3, 4), s.real(5, 4, 2)),
        call("i...->...", s.real(3, 4)),
        call("ij,kl->", s.real(2, 3), s.real(2, 2)),
        call("ij,ij,ij->i", s.real(2, 3), s.real(2, 3), s.real(2, 3)),
        call("ab,bc,cd,de->ae", s.real(2, 3), s.real(3, 4), s.real(4, 2), s.real(2, 3), optimize=True),
        call("ij,jk->ki", s.real(1, 4), s.real(1, 3)),
        call("ba", s.real(2, 3)),
        call(s.real(3, 4), [0, 1], s.real(4, 2), [1, 2], [2, 0]),
        call(s.real(3, 4), [Ellipsis, 1], s.real(4), [1]),
        call(",i->i", s.real(), s.real(3)),
    ]


@public(np.einsum, samples=_einsum_samples)
def einsum(*operands, out=None, optimize=False, dtype=None, order="K", casting="safe"):
    """Sum products over named axes, in any form that NumPy takes; several operands are multiplied in a good order.

    Operands are multiplied two at a time, as matrix products,
    in an order found by their sizes, with or without `optimize`.

    >>> fad.grad(lambda a: fad.numpy.einsum("ij,j->", a, np.array([1.0, 2.0])))(np.ones((2, 2)))
    array([[1., 2.],
           [1., 2.]])
    """
    if len(operands) == 3 and type(operands[0]) is str and out is dtype is None:
        _, x, y = operands
        if getattr(x, "ndim", 0) and getattr(y, "ndim", 0):
            names = _plain_pair(operands[0], x.shape, y.shape)
            if names is not None:
                a, b, result = names
                y = bind(contract_p, x, y, a=a, b=b, result=result)
                return y if optimize else _lay_out_result(y, [x, operands[2]], (a, b), result, order)
    refuse_out(out)
    subscripts, arrays = _spell(operands)
    inputs, result = _explicit(subscripts, tuple([x.ndim for x in arrays]))
    if len(arrays) > 1 or not set(inputs[0]) <= set(result):  # else it is a view, of any dtype and byte order
        arrays = [x.astype(dtype) for x in arrays] if dtype is not None else _as_wide(arrays)
    pairs = [_diagonal(x, term) for x, term in zip(arrays, inputs, strict=True)]
    arrays, terms = [p[0] for p in pairs], [p[1] for p in pairs]
    sizes = _sizes(arrays, terms)
    given = [*arrays], tuple(terms)
    for k in range(len(arrays)):
        others = result + "".join(terms[:k] + terms[k + 1 :])
        arrays[k], terms[k] = _prepare(arrays[k], terms[k], sizes, others)
    y = as_scalar(_multiply(arrays, terms, result))
    is_view = len(arrays) == 1 and len(result) == len(given[1][0])
    return y if optimize or is_view else _lay_out_result(y, *given, result, order)


def _lay_out_result(y: Any, arrays: list, terms: tuple, result: str, order: str) -> Any:
    """Return a result as it lies in memory where NumPy computes it."""
    if type(y) is not Tracer or not result:
        return y
    if len(result) == 1:
        return lay_out(y, "C")
    if order in ("C", "F"):
        return lay_out(y, order)
    plain = [layout(x) for x in arrays]
    if not all(isinstance(x, (np.ndarray, np.generic)) for x in plain):
        return y
    return lay_out_axes(y, _axes_of_result(tuple([(x.shape, x.strides) for x in plain]), terms, result))


@functools.lru_cache(maxsize=1024)
def _axes_of_result(layouts: tuple, terms: tuple, result: str) -> tuple:
    """Return the axes of a result from the slowest to the fastest: NumPy's iterator orders them as the operands'."""
    letters = result + "".join(sorted(set("".join(terms)) - set(result)))
    # Nothing of the operands is read.
    operands: Any = [np.lib.stride_tricks.as_strided(np.empty(1), *layout) for layout in layouts]
    flags: Any = [*[["readonly"]] * len(operands), ["readwrite", "allocate"]]
    axes: Any = [[term.find(c) for c in letters] for term in (*terms, result)]
    iterator = np.nditer(
        [*operands, None],
        flags=["reduce_ok", "external_loop", "buffered", "delay_bufalloc", "zerosize_ok"],
        op_flags=flags,
        op_axes=axes,
    )
    return axes_in_memory(iterator.operands[-1])
