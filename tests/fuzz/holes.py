"""What may stand in the holes of templates: each function looks at the values that a program has and returns text.

The last array that was drawn is the context: ``{axis}`` is one of its axes, ``{y}`` broadcasts with it, ``{i}`` is an
index of it.
"""

import numpy as np

from .arguments import draw_array
from .program import literal


class Unfit(Exception):
    """Nothing that the program has fits into this hole."""


HOLES = {}


def hole(name):
    """Register what fills ``{name}``."""

    def register(f):
        HOLES[name] = f
        return f

    return register


def is_array(v):
    return isinstance(v, np.ndarray)


def is_number(v):
    return isinstance(v, (np.ndarray, np.generic, int, float, complex))


def kind_of(v):
    return np.asarray(v).dtype.kind


SMALL = ["-{x}", "({x} * 2)", "({x} + 1)", "{x}[::-1]", "{x}.T", "({x} - {y})", "({x} * {y})", "abs({x})"]
SMALL_RIGHT = ["np.sin({})", "({} * 2)", "({0} * {0})", "({} + 1)", "np.exp(-abs({}))"]


def _operand(g, fits, depth=0):
    """Return a name that fits, or now and then a small expression of one."""
    name = g.pick_name(fits)
    if depth == 0 and g.chance(0.2):
        form = g.pick(SMALL)
        other = name if "{y}" not in form else g.pick_name(lambda v: _meets(v, g.values[name]))
        text = form.format(x=name, y=other)
        try:
            if fits(g.value(text)):
                return text
        except Exception:
            return name
    return name


def _meets(a, b):
    """Return whether two values broadcast, as numbers."""
    if not is_number(a) or not is_number(b):
        return False
    try:
        np.broadcast_shapes(np.shape(a), np.shape(b))
    except ValueError:
        return False
    return True


def _with_context(g, text):
    g.context = text
    return text


def context(g):
    """Return the value of the array that was drawn last."""
    if g.context is None:
        raise Unfit
    return g.value(g.context)


@hole("x")
def any_array(g):
    return _with_context(g, _operand(g, lambda v: is_array(v) and v.dtype.kind != "b"))


@hole("b")
def a_name(g):
    """A plain name of an array of any kind."""
    return _with_context(g, g.pick_name(is_array))


@hole("live")
def argument(g):
    """An argument: what meets an array outside of the function must depend on one, or jit takes it for a constant."""
    return _with_context(g, g.pick_name(is_array, among=lambda name: name in ("x", "y", "z")))


@hole("f")
def floats(g):
    return _with_context(g, _operand(g, lambda v: is_number(v) and kind_of(v) == "f"))


@hole("c")
def complexes(g):
    return _with_context(g, _operand(g, lambda v: is_number(v) and kind_of(v) == "c"))


@hole("s")
def scalar(g):
    return _with_context(g, g.pick_name(lambda v: is_number(v) and np.ndim(v) == 0 and kind_of(v) in "if"))


@hole("e")
def element(g):
    """A real number of the program: a scalar's name, or an element of an array."""
    name = g.pick_name(lambda v: is_number(v) and kind_of(v) in "f" and np.size(v))
    v = g.values[name]
    return name if np.ndim(v) == 0 else f"{name}[{', '.join(str(int(g.r.integers(-n, n))) for n in v.shape)}]"


@hole("y")
def meets_context(g):
    """Something that broadcasts with the context."""
    v = context(g)
    if g.chance(0.12):
        return HOLES["n"](g)
    return _operand(g, lambda w: _meets(w, v) and kind_of(w) != "b")


@hole("same")
def of_the_same_shape(g):
    v = context(g)
    return _operand(g, lambda w: is_array(w) and w.shape == np.shape(v) and w.dtype.kind != "b")


@hole("m")
def mask(g):
    """A mask of the context's shape: a name, a comparison, or numbers written out."""
    v = context(g)
    if g.chance(0.3):
        try:
            return g.pick_name(lambda w: is_array(w) and w.dtype == bool and w.shape == np.shape(v))
        except Unfit:
            pass
    if g.chance(0.3):
        return literal(g.r.random(np.shape(v)) < 0.5)
    other = g.pick_name(lambda w: is_number(w) and np.shape(w) == np.shape(v) and kind_of(w) in "fi")
    return f"({other} {g.pick(['>', '<', '>=', '!='])} {g.pick(['0', '0.25', '1'])})"


@hole("n")
def number(g):
    return g.pick(["2", "3.0", "0.5", "-1.5", "1", "-2", "0.25", "np.float64(1.5)", "np.float32(0.5)", "0"])


@hole("k")
def small_int(g):
    return str(g.pick([0, 1, 1, 2, -1]))


@hole("axis")
def axis(g):
    n = np.ndim(context(g))
    if n == 0:
        raise Unfit
    return str(int(g.r.integers(-n, n)))


@hole("axes")
def axes(g):
    """An axis, several, or all."""
    n = np.ndim(context(g))
    if n == 0 or g.chance(0.25):
        return "None"
    if g.chance(0.3):
        return repr(tuple(int(a) for a in g.r.permutation(n)[: g.r.integers(1, n + 1)]))
    return axis(g)


@hole("order")
def order_of_axes(g):
    return repr(tuple(int(a) for a in g.r.permutation(np.ndim(context(g)))))


@hole("bool")
def yes_or_no(g):
    return g.pick(["True", "False"])


@hole("cmp")
def comparison(g):
    return g.pick([">", "<", ">=", "<="])


@hole("op")
def operator(g):
    return g.pick(["+", "-", "*", "*", "+"])


@hole("dtype")
def dtype(g):
    return g.pick(["np.float32", "np.float64", "float", "complex", "np.float64", "np.int64"])


@hole("floating")
def floating(g):
    return g.pick(["np.float32", "np.float64", "float"])


@hole("shape")
def shape(g):
    """A shape of as many elements as the context, as a program writes it."""
    n = np.size(context(g))
    found = [(n,), (-1,), (1, n), (n, 1), (n, 1, 1)] + [(d, n // d) for d in (2, 3) if n and n % d == 0]
    found += [(-1, d) for d in (2, 3) if n and n % d == 0]
    return repr(g.pick(found))


@hole("size")
def any_shape(g):
    """The shape of a new array: that of another, or numbers."""
    if g.chance(0.6):
        name = g.pick_name(is_array)
        return g.pick([f"{name}.shape", repr(g.values[name].shape), f"np.shape({name})"])
    return repr(g.pick([3, (3,), (2, 3), (4,), (2, 2), (3, 3), ()]))


@hole("i")
def index(g):
    """An index of the context: integers, slices, ellipsis, new axes, arrays of integers, masks."""
    return _index_of(g, np.shape(context(g)), advanced=True)


@hole("view")
def basic_index(g):
    """An index of the context that gives a view."""
    return _index_of(g, np.shape(context(g)), advanced=False)


def _index_of(g, dims, advanced):
    if advanced and dims and g.chance(0.15):
        return mask(g)
    parts = []
    for n in dims[: int(g.r.integers(1, len(dims) + 1))] if dims else ():
        parts.append(_along(g, n, advanced))
    if g.chance(0.12):
        parts.insert(int(g.r.integers(len(parts) + 1)), "...")
    if g.chance(0.1):
        parts.insert(int(g.r.integers(len(parts) + 1)), "None")
    return ", ".join(parts) or g.pick(["...", "()"])


def _along(g, n, advanced):
    """Return an index along an axis of n elements."""
    if advanced and n and g.chance(0.2):
        if g.chance(0.3):
            names = [k for k in g.names if _indexes(g.values[k], n)]
            if names:
                return g.pick(names)
        places = g.r.integers(-n, n, int(g.r.integers(1, 4))).tolist()
        return g.pick([repr(places), f"np.array({places})"])
    if n and g.chance(0.35):
        names = [k for k in g.names if isinstance(g.values[k], (int, np.integer)) and -n <= g.values[k] < n]
        if names and g.chance(0.5) and not isinstance(g.values[names[-1]], bool):
            return names[-1]
        return str(int(g.r.integers(-n, n)))
    start, stop = sorted(g.r.integers(0, n + 1, 2).tolist())
    drawn = [f"{start}:{stop}", f"{start}:", f":{stop}", f"-1:{start}:-1"]
    return g.pick([":", "::-1", "::2", "1:", ":-1", "::-2", *drawn])


def _indexes(v, n):
    return is_array(v) and v.dtype.kind in "iu" and v.ndim == 1 and v.size and v.min() >= -n and v.max() < n


@hole("w")
def written(g):
    """A plain name of an array that can be written."""
    return _with_context(g, g.pick_name(lambda v: is_array(v) and v.flags.writeable))


@hole("p")
def place(g):
    """Where something is written: an array's name with an index; the context is what stands there."""
    name = written(g)
    text = f"{name}[{index(g)}]"
    try:
        g.value(text)
    except Exception:
        raise Unfit from None
    return _with_context(g, text)


@hole("v")
def assignable(g):
    """What can be assigned to the context: something that broadcasts to its shape."""
    want = context(g)
    draw = g.r.random()
    if draw < 0.12:
        return number(g)
    if draw < 0.3 and np.size(want):
        return f"{g.pick(['2 *', '-', 'np.float64(0.5) *', ''])} {g.context}".strip()

    def fits(v):
        try:
            return is_number(v) and np.broadcast_shapes(np.shape(v), np.shape(want)) == np.shape(want)
        except ValueError:
            return False

    text = _operand(g, fits)
    if g.chance(0.3):
        text = f"({text} * 2)" if g.exact else g.pick(SMALL_RIGHT).format(text)
    return text


@hole("idx")
def integer_array(g):
    return g.pick_name(lambda v: is_array(v) and v.dtype.kind in "iu")


@hole("ones")
def plain_of_the_same_shape(g):
    """An array of numbers written out, of the context's shape."""
    return literal(g.r.integers(-2, 3, np.shape(context(g))) / 1.0)


def _one_of(*texts):
    return lambda g: g.pick(texts)


HOLES |= {
    "mode": _one_of('"full"', '"same"', '"valid"'),
    "padding": _one_of('"edge"', '"reflect"', '"wrap"'),
    "tda": _one_of("1", "0", "2", "([0], [0])"),
    "cf": _one_of('"C"', '"F"', '"A"', '"K"'),
}


@hole("array3")
def three_numbers(g):
    return literal(draw_array(g.r, (3,), exact=g.exact))


@hole("array2")
def some_numbers(g):
    return literal(draw_array(g.r, g.pick([(2,), (4,), (3, 3)]), exact=g.exact))


def _buffer(g, fits=lambda v: True):
    return g.pick_name(lambda v: is_array(v) and fits(v), among=lambda name: name.startswith("p"))


@hole("plain")
def plain_buffer(g):
    """A buffer that never holds what depends on the arguments."""
    return _buffer(g)


@hole("plainmask")
def plain_mask(g):
    return _buffer(g, lambda v: v.dtype == bool)


@hole("plainints")
def plain_integers(g):
    return _buffer(g, lambda v: v.dtype.kind == "i")
