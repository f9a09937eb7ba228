"""A program as source text with its arguments, compiled with lines that tracebacks show."""

import functools
import itertools
import linecache
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

_numbers = itertools.count()
_files = deque(maxlen=50)  # names of programs whose lines tracebacks show


@dataclass(frozen=True)
class Program:
    """The text of a module that defines ``f``, and its arguments as expressions.

    Attributes
    ----------
    source : str
        Lines that define ``f``, and before it the helpers and arrays that it reads; ``np`` is there.
    arguments : tuple of str
        One expression for each of f's arguments; evaluating it gives a new array each time.
    kind : str
        The kind of program: a key of :data:`.kinds.KINDS`.
    seed : int, optional
        What :func:`.generate.generate` made it from.
    """

    source: str
    arguments: tuple[str, ...]
    kind: str = "pure"
    seed: int | None = field(default=None, compare=False)

    def world(self):
        """Return the program loaded again: its own arrays outside of ``f``, its own arguments."""
        return World(self)

    def renewed(self):
        """Return an equal program with code of its own: what fad has learnt of this one's it does not know of that."""
        return replace(self)

    @functools.cached_property
    def code(self):
        """The compiled text, which all worlds of this program share."""
        name = f"<program {next(_numbers)}>"
        if len(_files) == _files.maxlen:
            linecache.cache.pop(_files[0], None)
        _files.append(name)
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        return compile(self.source, name, "exec")

    def given(self, *arguments):
        """Return the same program with other arguments."""
        return replace(self, arguments=tuple(arguments))

    def script(self):
        """Return the text of a module that anyone can run."""
        lines = ["import numpy as np", "", self.source.strip(), "", f"arguments = [{', '.join(self.arguments)}]"]
        return "\n".join(lines)


class World:
    """A loaded program: the function ``f`` and the arrays that it can reach, which belong to this world alone."""

    def __init__(self, program):
        self.names = {"np": np, "__name__": "program"}
        exec(program.code, self.names)
        self.f = self.names["f"]

    def outside(self):
        """Return the arrays outside of ``f``, by name: those of the module, and those of its class ``state``."""
        found = {k: v for k, v in self.names.items() if isinstance(v, np.ndarray)}
        held = vars(self.names["state"]) if "state" in self.names else {}
        return found | {f"state.{k}": v for k, v in held.items() if isinstance(v, np.ndarray)}

    def put_back(self, before):
        """Let the arrays outside of ``f`` hold what they held before."""
        for name, x in self.outside().items():
            x[...] = before[name]


def evaluate(expressions):
    """Return what expressions of NumPy give, newly made."""
    return [eval(_expression(e), {"np": np}) for e in expressions]


@functools.lru_cache(4096)
def _expression(text):
    return compile(text, "<argument>", "eval")


def literal(x):
    """Return an expression that gives this array, NumPy scalar or Python number."""
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return repr(x)
    x = np.asarray(x) if not isinstance(x, (np.ndarray, np.generic)) else x
    plain = x.dtype.newbyteorder("=").type.__name__.rstrip("_")
    name = f"np.{plain}_" if plain == "bool" else f"np.{plain}"
    if isinstance(x, np.generic):
        return f"{name}({_numbers_of(np.asarray(x))})"
    standard = {"f": "float64", "i": "int64", "b": "bool", "c": "complex128"}.get(x.dtype.kind) == plain
    text = f"np.array({_numbers_of(x)}{'' if standard and x.size else f', {name}'})"
    return text if x.size else f"np.zeros({x.shape}, {name})"


def _numbers_of(x):
    """Return nested lists as text, with numbers as short as they can be."""
    if x.dtype == np.float32:  # 0.1, and not the number of double precision that it is
        x = np.asarray([float(str(v)) for v in x.ravel()]).reshape(x.shape)
    return repr(x.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
