"""Arguments of random programs as expressions: which numbers, dtypes, shapes, and how they lie in memory."""

import numpy as np

from .program import evaluate, literal

FAMILIES = [  # arguments of one program have related shapes, so that they meet in operations
    [(3,), (3,), (3,)], [(4,), (4,), ()], [(3, 3), (3, 3), (3,)], [(2, 3), (3, 2), (3,)], [(2, 3), (3,), (2, 1)],
    [(3,), (3, 3), ()], [(2, 2, 3), (2, 3), (3,)], [(4,), (2, 2), (1,)], [(), (), ()], [(5,), (1,), (5,)],
    [(0,), (3,), (1,)],
    [(4, 2), (2,), (4, 1)], [(6,), (6,), (2, 3)], [(1, 3), (3, 1), (3,)],
]  # fmt: skip
DTYPES = ["float64"] * 8 + ["float32"] * 2 + ["complex128"]


def draw_array(r, shape, dtype="float64", exact=False):
    """Draw an array: any numbers, or for exact programs quarters with ties and zeros of both signs."""
    if np.dtype(dtype).kind == "b":
        return r.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        return r.integers(-3, 4, shape).astype(dtype)
    if exact:
        x = r.integers(-8, 9, shape) / 4.0
        x = np.where((x == 0) & (r.random(shape) < 0.4), -0.0, x)
    else:
        x = np.round(r.normal(size=shape) * r.choice([0.7, 1.5]), 3)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * draw_array(r, shape, "float64", exact)
    return np.asarray(x).astype(dtype)


def draw_arguments(r, exact=False):
    """Draw the arguments of a program: one to three, of related shapes."""
    family = FAMILIES[r.integers(len(FAMILIES))]
    common = DTYPES[r.integers(len(DTYPES))]
    found = []
    for shape in family[: r.integers(1, 4)]:
        dtype = common if r.random() < 0.8 else DTYPES[r.integers(len(DTYPES))]
        x = draw_array(r, shape, dtype, exact)
        if shape == () and r.random() < 0.6:
            x = x.item() if r.random() < 0.6 and dtype != "float32" else x[()]
        text = literal(x)
        if (shape == () and not text.startswith("np.")) or isinstance(x, np.generic):
            found.append(text)
        else:
            found.append(lay(r, text) if r.random() < 0.25 else text)
    return tuple(found)


LAYOUTS = [
    "np.asfortranarray({x})",
    "np.flip(np.flip({x}).copy())",  # every stride is negative
    "np.stack([{x}, {x}], -1)[..., 0]",  # gaps
    "np.concatenate([{x}, {x}], 0)[::2]",  # other numbers too
    "np.broadcast_to(np.ravel({x})[:1], np.shape({x}))",  # one number, strides of zero, read-only
    "np.ascontiguousarray({x}.T).T",
]


def lay(r, text):
    """Return an expression for the same kind of array, laid out otherwise in memory."""
    fits = [form.format(x=text) for form in LAYOUTS]
    return usable(r, fits, text, lambda a, b: a.shape == b.shape and a.dtype == b.dtype)


def usable(r, texts, original, alike=lambda a, b: True):
    """Return one of the expressions that can be evaluated and give something like the original."""
    (old,) = evaluate([original])
    for k in r.permutation(len(texts)):
        try:
            (new,) = evaluate([texts[k]])
        except (ValueError, TypeError, IndexError, AttributeError):
            continue
        if isinstance(new, np.ndarray) == isinstance(old, np.ndarray) and alike(np.asarray(new), np.asarray(old)):
            return texts[k]
    return original


def is_array(text):
    """Return whether an argument is an array: numbers of Python and of NumPy have no layout."""
    return isinstance(evaluate([text])[0], np.ndarray)


def with_noise(r, texts, size=1e-3):
    """Return arguments of nearly the same numbers, contiguous: a tie or a rounding is not there any more."""
    return tuple(_moved(r, x, size) for x in evaluate(texts))


def _moved(r, x, size):
    if np.asarray(x).dtype.kind not in "fc":
        return literal(x)
    moved = np.asarray(x) + size * r.normal(size=np.shape(x))
    if isinstance(x, (float, complex)) and not isinstance(x, np.generic):
        return literal(moved[()].item())
    return literal(moved.astype(np.asarray(x).dtype.newbyteorder("="))[() if isinstance(x, np.generic) else ...])


def with_contents(r, texts, exact=False):
    """Return arguments of the same kinds with other numbers."""
    found = []
    for x in evaluate(texts):
        if isinstance(x, np.ndarray):
            found.append(literal(draw_array(r, x.shape, x.dtype.newbyteorder("="), exact)))
        elif isinstance(x, np.generic):
            found.append(literal(draw_array(r, (), x.dtype, exact)[()]))
        else:
            found.append(repr(type(x)(draw_array(r, (), np.asarray(x).dtype, exact).item())))
    return tuple(found)


DTYPE_CHANGES = {
    "narrow": {"float64": "float32", "complex128": "complex64"},
    "wide": {"float32": "float64", "complex64": "complex128"},
    "complex": {"float64": "complex128", "float32": "complex64"},
    "big-endian": {"float64": ">f8", "float32": ">f4", "int64": ">i8", "complex128": ">c16"},
}


def with_dtype(texts, change):
    """Return arguments of another dtype, where they are arrays and the change says something about theirs."""
    found = []
    for text, x in zip(texts, evaluate(texts), strict=True):
        new = DTYPE_CHANGES[change].get(np.asarray(x).dtype.name) if isinstance(x, (np.ndarray, np.generic)) else None
        found.append(f"({text}).astype({new!r})" if new else text)
    return tuple(found)


def with_longer_axes(texts):
    """Return arguments whose axes of more than one element have one more, in all alike."""
    found = []
    for text, x in zip(texts, evaluate(texts), strict=True):
        if isinstance(x, np.ndarray):
            for axis, n in enumerate(x.shape):
                if n > 1:
                    x = np.concatenate([x, np.take(x, [0], axis)], axis)
            text = literal(x)
        found.append(text)
    return tuple(found)
