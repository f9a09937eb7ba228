"""Recorded programs: a `Graph` is a list of equations, each one operation on numbered values.

A graph is what ``jit`` writes down and what its passes rewrite. It is data: printable, comparable by structure, and run
again by binding its operations, so that every transform re-interprets it as it would the program it came from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fad.backends import backend_of, host, is_numpy, is_numpy_scalar, is_on_device
from fad.core.primitives.primitive import Primitive
from fad.core.programs.liveness import live_bytes
from fad.core.tracing.tracer import Tracer, bind, outcome
from fad.introspect.frames import show_place
from fad.viz import drawing, tables, timelines

ARRAY, SCALAR, NUMBER = "array", "scalar", "number"  # a NumPy array, a NumPy scalar, a Python number


class Type:
    """What is known of a value before it is computed: shape, dtype, and whether it is array, scalar or number.

    `home` is the backend of an array that lives on a device. It is no part of the comparison: a constant of the host
    may stand for a value of a device, and is put there by `placed`.
    """

    __slots__ = ("shape", "dtype", "kind", "home")

    def __init__(self, shape: tuple, dtype: np.dtype, kind: str = ARRAY, home: Any = None):
        self.shape = shape
        self.dtype = dtype
        self.kind = kind
        self.home = home

    @property
    def size(self) -> int:
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def key(self) -> tuple:
        return (self.shape, self.dtype, self.kind)

    def zeros(self, *lengths: int) -> Any:
        """Return zeros of this type; with lengths, an array with these axes in front."""
        shape = (*lengths, *self.shape)
        if self.home is not None:
            return self.home.zeros(shape, self.dtype)
        if lengths or self.kind == ARRAY:
            return np.zeros(shape, self.dtype)
        zero = self.dtype.type(0)
        return zero.item() if self.kind == NUMBER else zero

    def __eq__(self, other: object) -> bool:
        return type(other) is Type and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __str__(self) -> str:
        name = {"bool": "bool"}.get(self.dtype.name, f"{self.dtype.kind}{8 * self.dtype.itemsize}")
        mark = "~" if self.kind == NUMBER else ""
        return f"{mark}{name}[{','.join(map(str, self.shape))}]"


def type_of(x: Any) -> Type:
    """Return the type of a plain value."""
    kind = type(x)
    if kind is np.ndarray:
        return Type(x.shape, x.dtype)
    if is_numpy_scalar(x):
        return Type((), x.dtype, SCALAR)
    if kind in (bool, int, float, complex):
        return Type((), np.asarray(x).dtype, NUMBER)
    return Type(x.shape, x.dtype, ARRAY, backend_of(x) if is_on_device(x) else None)


def place_constant(c: Any, t: Type) -> Any:
    """Return a constant where it is to be: what was computed on the host may stand for an array of a device."""
    return c if t.home is None or not is_numpy(c) else t.home.from_host(np.asarray(c))


class Equation:
    """One operation: ``outs = prim(*ins, **params)``, values by number, and the user's line where that was noted."""

    __slots__ = ("prim", "ins", "params", "outs", "place")

    def __init__(self, prim: Primitive, ins: tuple, params: dict, outs: tuple, place: tuple[str, int] | None = None):
        self.prim = prim
        self.ins = ins
        self.params = params
        self.outs = outs
        self.place = place

    @property
    def is_guard(self) -> bool:
        return self.prim is GUARD

    @property
    def bodies(self) -> tuple[Graph, ...]:
        """The body of a loop, or the branches of a choice; of any other operation nothing."""
        archetype = self.prim.archetype
        if archetype == "loop":
            return (self.params["body"],)
        return self.params["branches"] if archetype == "branch" else ()

    @property
    def is_view(self) -> bool:
        """Whether the result lies in its operand's memory, as that of an index without arrays does."""
        return self.prim.view is not None and len(self.ins) == 1


class GuardFailed(Exception):
    """A recorded answer to ``if``, ``int`` or ``float`` is not the answer for these values."""

    def __init__(self, equation: Equation, position: int, found: Any):
        super().__init__(f"the answer was {equation.params['outcome']!r} when recorded and is {found!r} now")
        self.equation = equation
        self.position = position
        self.found = found


EFFECT = "effect"
"""The archetype of operations that others see: they run once in each run of a program, in their order."""


def has_effects(eq: Equation) -> bool:
    """Return whether an equation, or one in the bodies of a loop or branch, is an operation with an effect."""
    return eq.prim.archetype == EFFECT or any(has_effects(e) for body in eq.bodies for e in body.equations)


def _no_value(*_: Any, **__: Any) -> Any:
    raise TypeError("a guard is no operation: it is checked by what runs the graph")


# A conversion of a value to a bool or number: params are convert (a callable), outcome and line.
GUARD = Primitive("guard", _no_value, flat=True, archetype="guard")


def ask(x: Any, convert: Callable | None) -> Any:
    """Answer a guard's question for a value, traced or plain; without `convert` it is the whole array.

    What the question raises for a plain value, as ``int()`` of NaN does, is an answer that no recording has.
    """
    if convert is None:
        return np.asarray(host(outcome(x)))
    if type(x) is Tracer:
        return x.owner.concrete(x, convert)
    try:
        return convert(x)
    except (ValueError, OverflowError) as error:
        return error


def same_outcome(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and a.shape == b.shape and a.tobytes() == b.tobytes()
    return repr(a) == repr(b) if type(a) in (float, complex) else a == b  # tells 0.0 from -0.0, and NaN equals NaN


class Graph:
    """A recorded program.

    ``types[i]`` says what value i is; `inputs` and `outputs` are numbers of values;
    ``constants[i]`` is a value known beforehand.
    """

    __slots__ = ("types", "inputs", "constants", "equations", "outputs", "_hash")

    def __init__(self, types: list, inputs: list, constants: dict, equations: list, outputs: list):
        self.types = types
        self.inputs = inputs
        self.constants = constants
        self.equations = equations
        self.outputs = outputs
        self._hash: int | None = None

    def replace(self, **parts: Any) -> Graph:
        """Return a graph with some of its parts exchanged."""
        return Graph(*(parts.get(name, getattr(self, name)) for name in self.__slots__[:-1]))

    # --- running it ---------------------------------------------------------------------------------------------

    def __call__(self, *xs: Any) -> list:
        """Run the program on values of any kind, traced or not, and return the outputs as a list.

        Raises GuardFailed if the values lead down another path than the recorded one.
        """
        if len(xs) != len(self.inputs):
            raise TypeError(f"this graph takes {len(self.inputs)} values, but was given {len(xs)}")
        env: dict[int, Any] = {i: place_constant(c, self.types[i]) for i, c in self.constants.items()}
        env.update(zip(self.inputs, xs, strict=True))
        for position, eq in enumerate(self.equations):
            if eq.is_guard:
                found = ask(env[eq.ins[0]], eq.params["convert"])
                if not same_outcome(eq.params["outcome"], found):
                    raise GuardFailed(eq, position, found)
                continue
            y = bind(eq.prim, *[env[i] for i in eq.ins], **eq.params)
            if eq.prim.multi:
                env.update(zip(eq.outs, y, strict=True))
            else:
                env[eq.outs[0]] = y
        return [env[i] for i in self.outputs]

    def guards(self) -> list[Equation]:
        return [eq for eq in self.equations if eq.is_guard]

    # --- comparing and showing it -------------------------------------------------------------------------------

    def key(self) -> tuple:
        """Return a hashable description: equal for graphs of one structure, whatever numbers their values have."""
        number: dict[int, int] = {}

        def name(i: int) -> int:
            return number.setdefault(i, len(number))

        inputs = tuple((name(i), self.types[i]) for i in self.inputs)
        constants = tuple((name(i), hashable(c)) for i, c in sorted(self.constants.items()))
        lines = tuple(
            (eq.prim.name, tuple(map(name, eq.ins)), hashable(eq.params), tuple(map(name, eq.outs)))
            for eq in self.equations
        )
        return inputs, constants, lines, tuple(map(name, self.outputs))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(other) is Graph and hash(self) == hash(other) and self.key() == other.key()

    def __hash__(self) -> int:
        """Return the hash, computed once: a key holds the bodies of loops, whose keys hold those of theirs."""
        if self._hash is None:
            self._hash = hash(self.key())
        return self._hash

    def __len__(self) -> int:
        return len(self.equations)

    def __str__(self) -> str:
        from_names = names(self)
        heads = ", ".join(f"{from_names[i]}: {self.types[i]}" for i in self.inputs)
        lines = [f"graph({heads}) {{"]
        lines += [f"  {from_names[i]}: {self.types[i]} = constant" for i, c in self.constants.items() if is_large(c)]
        lines += [f"  {show_equation(self, eq, from_names)}" for eq in self.equations]
        lines.append(f"  return {', '.join(from_names[i] for i in self.outputs)}")
        return "\n".join([*lines, "}"])

    __repr__ = __str__

    def to_dot(self) -> str:
        """Return the graph in Graphviz's language: operations, results, shapes, bytes and the user's lines."""
        return drawing.to_dot(draw(self))

    def to_html(self) -> str:
        """Return a page of its own that shows the graph as a drawing (SVG) and a table, readable without a network."""
        computed = sum(self.types[o].nbytes for eq in self.equations for o in eq.outs)
        summary = (
            f"operations: {len(self.equations)}, which compute {drawing.amount(computed)}; "
            f"inputs: {len(self.inputs)}; outputs: {len(self.outputs)}"
        )
        head = ("value", "operation", "type", "bytes", "line")
        return drawing.page("fad graph", summary, draw(self), head, self._memory_chart())

    def live_bytes(self) -> list[int]:
        """Return the bytes held while each operation runs, in their order, if what is not read any more is freed.

        Inputs and constants are held throughout. A view (a slice, a reshape, a transpose) has its operand's memory.
        A loop counts with its operands and results. Compiled programs hold less: values inside a fused loop have no
        memory, and results are written over operands.
        """
        return live_bytes(self)

    def _memory_chart(self) -> str:
        if not self.equations:
            return ""
        says = [f"{eq.prim.name}  {tables.without_folder(show_place(eq.place))}" for eq in self.equations]
        return "<h2>Bytes held while each operation runs</h2>" + timelines.memory(self.live_bytes(), says)

    def _repr_html_(self) -> str:
        return drawing.frame(self.to_html())


def hashable(x: Any) -> Any:
    """Return something hashable that is equal for equal parameters."""
    kind = type(x)
    if kind is dict:  # the most frequent kinds first: this runs for every operation
        return tuple([(k, hashable(v)) for k, v in (sorted(x.items()) if len(x) > 1 else x.items())])
    if kind is tuple or kind is list:
        return (kind.__name__, *map(hashable, x))
    if kind is int or kind is bool:
        return (kind.__name__, x)
    if kind is slice:
        return ("slice", x.start, x.stop, x.step)
    if isinstance(x, np.ndarray):
        return (x.shape, x.dtype.str, _contents(x))
    if isinstance(x, np.generic) or kind in (float, complex):
        return (kind.__name__, np.asarray(x).tobytes())  # tells 0.0 from -0.0, and NaN equals NaN
    try:
        hash(x)
    except TypeError:
        return ("object", id(x))
    return x


def _contents(x: np.ndarray) -> Any:
    """Return the bytes of an array; one element for a number that is broadcast, whose bytes are nowhere in memory."""
    if x.size > 1 and not any(stride for stride, n in zip(x.strides, x.shape, strict=True) if n > 1):
        return ("everywhere", x[(0,) * x.ndim].tobytes())
    return x.tobytes()


def is_large(c: Any) -> bool:
    """Return whether a constant is an array that should not stand in the middle of a line."""
    return isinstance(c, np.ndarray) and c.size != 1


def names(graph: Graph) -> dict[int, str]:
    """Name the values a, b, ..., z, aa, ... in the order in which they appear; small constants by what they are."""
    found = {i: show_constant(c) for i, c in graph.constants.items() if not is_large(c)}
    order: Iterable[int] = [*graph.inputs, *graph.constants, *(o for eq in graph.equations for o in eq.outs)]
    count = 0
    for i in order:
        if i not in found:
            found[i] = letters(count)
            count += 1
    return found


def show_constant(c: Any) -> str:
    return repr(c.item()) if hasattr(c, "item") else repr(c)


def letters(n: int) -> str:
    text = ""
    n += 1
    while n:
        n, digit = divmod(n - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def show_equation(graph: Graph, eq: Equation, name: dict[int, str]) -> str:
    ins = " ".join(name[i] for i in eq.ins)
    if eq.is_guard:
        how = getattr(eq.params["convert"], "__name__", "value").strip("_")
        return f"guard {how} {ins} == {_short(eq.params['outcome'])}"
    outs = ", ".join(f"{name[o]}: {graph.types[o]}" for o in eq.outs)
    plain = {k: v for k, v in eq.params.items() if not _is_body(v)}
    if eq.prim.archetype == "loop":  # how many there are is seen from the body
        plain = {k: v for k, v in plain.items() if k not in ("consts", "carries", "index") and v not in (None, False)}
    params = ", ".join(f"{k}={_short(v)}" for k, v in plain.items())
    head = f"{outs} = {eq.prim.name} {ins}" + (f" {{{params}}}" if params else "")
    bodies = [g for v in eq.params.values() if _is_body(v) for g in (v if type(v) is tuple else (v,))]
    return "\n    ".join([head, *[str(g).replace("\n", "\n    ") for g in bodies]])


def _is_body(value: Any) -> bool:
    return type(value) is Graph or (type(value) is tuple and any(type(v) is Graph for v in value))


def draw(graph: Graph) -> list[drawing.Node]:
    """Return the boxes of a drawing: inputs, large constants, operations, guards and outputs."""
    name = names(graph)
    found: list[drawing.Node] = []
    place: dict[int, int] = {}

    def put(kind: str, head: str, outs: Sequence[int], ins: Sequence[int], says: str, where: Any) -> None:
        types = [graph.types[o] for o in outs] or [graph.types[i] for i in ins if kind == "output"]
        size = drawing.amount(sum(t.nbytes for t in types)) if types else ""
        results = ", ".join(name[o] for o in outs)
        shown = ", ".join(map(str, types))
        mine = " ".join(filter(None, (results and f"{results}:", shown, size and f"({size})")))
        line = f"{os.path.basename(where[0])}:{where[1]}" if where else ""
        cells = (results or kind, says, shown, size, show_place(where))
        parents = [place[i] for i in ins if i in place]
        found.append(drawing.Node(results, kind, (head, mine, line), cells, parents))
        place.update(dict.fromkeys(outs, len(found) - 1))

    for i in graph.inputs:
        put("input", f"input {name[i]}", (i,), (), "input", None)
    for i, c in graph.constants.items():
        if is_large(c):
            put("constant", f"constant {name[i]}", (i,), (), "constant", None)
    for eq in graph.equations:
        says = show_equation(graph, eq, name)
        if eq.is_guard:
            put("guard", says, (), eq.ins, says, eq.place)
        else:
            head = " ".join([eq.prim.name, *(name[i] for i in eq.ins)])
            put("operation", head, eq.outs, eq.ins, says.partition(" = ")[2], eq.place)
    for k, i in enumerate(graph.outputs):
        put("output", f"output {k}: {name[i]}", (), (i,), name[i], None)
    return found


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{value.shape}" if value.size > 6 else np.array2string(value, separator=", ")
    text = str(value) if isinstance(value, np.dtype) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
