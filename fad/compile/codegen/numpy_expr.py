"""How each operation is written in NumPy: the text of a call, found from the operation's own forward function.

A ufunc is written by its name, a lambda by its body with the parameters filled in, and any other function becomes
a helper that is copied to the head of the program together with what it calls.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
import types
from typing import Any, cast

import numpy as np

from fad.backends.counterparts import ScipyModule
from fad.control_flow.derivatives.stack import pop_p, push_p
from fad.core.programs.graph import Equation
from fad.ops.places.indexing import getitem_p, scatter_p

_INFIX = frozenset({"+", "-", "*", "/", "**", "@", "<", "<=", ">", ">=", "==", "!=", "//", "%"})
# Of Python's numbers alone; NumPy's functions are written out for arrays.
_ON_NUMBERS = {
    "neg": "-{}", "pos": "+{}", "abs": "abs({})", "~": "~{}", "&": "{} & {}", "|": "{} | {}", "^": "{} ^ {}",
    "<<": "{} << {}", ">>": "{} >> {}", ".real": "({}).real", ".imag": "({}).imag",
    ".conjugate()": "({}).conjugate()",
}  # fmt: skip


class Cannot(Exception):
    """An operation has no text that NumPy alone could run."""


class Helpers:
    """Functions and numbers that the text of a program needs beside NumPy: name -> source."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.names: dict[Any, str] = {}  # of the functions; two files may each have one of the same name
        self.modules: set[str] = set()

    def add(self, f: Any) -> str:
        """Copy a function, and the functions and numbers that it reads, and return its name."""
        f = inspect.unwrap(on_the_host(f))
        if f in self.names:
            return self.names[f]
        if not inspect.isfunction(f) or f.__name__ == "<lambda>":
            raise Cannot(f"{f!r} has no source of its own")
        try:
            tree = ast.parse(_bare(f.__code__))
        except (OSError, TypeError) as error:
            raise Cannot(str(error)) from None
        name = self.names[f] = self._free(f.__name__)  # known before its text, for it may call itself
        self.sources[name] = ""
        tree.body[0].name = name  # type: ignore[attr-defined]
        around = around_of(f)
        read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - set(f.__code__.co_varnames)
        texts = {other: self.need(other, around[other]) for other in sorted(read) if other in around}
        self.sources[name] = ast.unparse(_Fill(texts).visit(tree)) + "\n"
        return name

    def _free(self, name: str, text: str = "") -> str:
        """Return a name that stands for nothing else yet, or for the same text."""
        chosen, k = name, 1
        while chosen in self.sources and (not text or self.sources[chosen] != f"{chosen} = {text}\n"):
            k += 1
            chosen = f"{name}_{k}"
        return chosen

    def need(self, name: str, value: Any) -> str:
        """Return how what a function reads by a name from around it is called in the program."""
        if inspect.ismodule(value):
            if value is np:
                return "np"
            if value.__name__.split(".")[0] == "fad":
                raise Cannot(f"it needs {value.__name__}")
            self.modules.add(f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else ""))
            return name
        if isinstance(value, ScipyModule):
            return f"scipy.{value._name}"
        known = numpy_name(value)
        if known or value is None:
            return known or "None"
        if inspect.isfunction(on_the_host(value)) or hasattr(value, "__wrapped__"):
            return self.add(value)
        if value is np.ndarray:
            return "np.ndarray"
        if isinstance(value, type) and issubclass(value, Exception):
            return next(c.__name__ for c in value.__mro__ if c.__module__ == "builtins")
        source = getattr(type(value), "in_source", None)
        if source:
            self.sources.setdefault(name, source)
            return name
        text = literal(value)
        if type(value) in (int, float, str, bool):
            return text
        name = self._free(name, text)
        self.sources[name] = f"{name} = {text}\n"
        return name


def around_of(f: Any) -> dict[str, Any]:
    """Return what a function finds around it: its module's names, and those of the function that it was made in."""
    cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
    return {**f.__globals__, **{variable: cell.cell_contents for variable, cell in cells}}


def literal(value: Any) -> str:
    """Write a number, an array or a tuple of them so that it is read back the same, dtype and all.

    Raises Cannot for what has no text.
    """
    if isinstance(value, np.dtype):
        return f"np.dtype({value.str!r})"
    if isinstance(value, np.ndarray):
        return array_text(value)
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({_number(value.item())})" if value.dtype.kind != "b" else f"np.{value!r}"[3:]
    if type(value) in (int, float, complex):
        return _number(value)
    if type(value) is tuple:
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, (int, str, slice)) or value is None or value is Ellipsis:
        return repr(value)
    name = numpy_name(value)
    if name is None:
        raise Cannot(f"it reads {value!r}")
    return name


def _number(x: Any) -> str:
    if type(x) is complex:
        return f"complex({_number(x.real)}, {_number(x.imag)})"
    if type(x) is float and (x != x or x in (float("inf"), float("-inf"))):
        return f"float('{x}')"
    text = repr(x)
    return f"({text})" if text.startswith("-") else text  # -0.0, too


def array_text(c: Any) -> str:
    c = np.asarray(c)
    if c.size and c.tobytes() == c.flat[0].tobytes() * c.size:  # not ==, to which 0.0 and -0.0 are one
        return f"np.full({c.shape}, {_number(c.flat[0].item())}, np.dtype({c.dtype.str!r}))"
    values = ", ".join(_number(v) for v in c.reshape(-1).tolist())
    return f"np.array([{values}], np.dtype({c.dtype.str!r})).reshape({c.shape})"


@functools.lru_cache(maxsize=1024)
def _bare(code: types.CodeType) -> str:
    """Return the source of a function without what needs names of its own and what is not for plain arrays.

    The former are decorators, annotations and docstrings.
    """
    tree = _ForPlainArrays().visit(ast.parse(textwrap.dedent(inspect.getsource(code))))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list, node.returns = [], None
            every = node.args
            for a in (*every.args, *every.kwonlyargs, *every.posonlyargs, every.vararg, every.kwarg):
                if a is not None:
                    a.annotation = None
            if (
                len(node.body) > 1
                and isinstance(node.body[0], ast.Expr)
                and isinstance(node.body[0].value, ast.Constant)
            ):
                node.body = node.body[1:]
    return ast.unparse(ast.fix_missing_locations(tree))


class _ForPlainArrays(ast.NodeTransformer):
    """Leave out branches for traced values and for arrays of a device, and shortcuts that plain arrays may take."""

    def visit_If(self, node: ast.If) -> Any:
        answer = self.answer(node.test)
        if answer is None:
            return self.generic_visit(node)
        return [self.visit(statement) for statement in (node.body if answer else node.orelse)] or None

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return self.visit(ast.Assign([node.target], node.value, lineno=node.lineno)) if node.value else None

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if _is_of(node.test, "np.ndarray"):
            return self.visit(node.orelse)  # what is right for numbers, too
        answer = self.answer(node.test)
        return self.generic_visit(node) if answer is None else self.visit(node.body if answer else node.orelse)

    def answer(self, test: ast.expr) -> bool | None:
        """Return what a question is answered where all values are NumPy's; None if that depends on the value."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            answer = self.answer(test.operand)
            return None if answer is None else not answer
        if _is_of(test, "Tracer"):
            return False
        text = ast.unparse(test)
        return True if text.startswith("isinstance(") and text.endswith(", _HOST)") else None


def _is_of(test: ast.expr, kind: str) -> bool:
    """Return whether a question is ``type(x) is kind``."""
    text = ast.unparse(test)
    return text.startswith("type(") and text.endswith(f") is {kind}")


def spell(eq: Equation, ins: list[str], helpers: Helpers, written: Any) -> str:
    """Return a NumPy expression for an equation; ``written(value)`` writes a parameter.

    Raises Cannot if there is none.
    """
    prim = eq.prim
    if prim.symbol in _INFIX:
        return f"{ins[0]} {prim.symbol} {ins[1]}"
    if prim.array_form is not None and prim.symbol in _ON_NUMBERS:
        return _ON_NUMBERS[prim.symbol].format(*ins)
    if prim is getitem_p:
        return f"{ins[0]}[{_write_index(index_parts(eq.params['template'], ins[1:], written))}]"
    if prim.text is not None:
        return prim.text(*ins, **eq.params)
    return _call(prim.forward, ins, eq.params, helpers, written)


def statements(eq: Equation, ins: list[str], out: str, written: Any) -> list[str] | None:
    """Return the lines of an equation that puts values into an array, or None for one that is a mere call."""
    prim, params = eq.prim, eq.params
    if prim is scatter_p:
        made = f"{out} = np.zeros({params['shape']}, {written(params['dtype'])})"
        indices = [index_parts(index, (), written) for index in params["indices"]]
        return [made, *(_write_addition(out, index, v) for index, v in zip(indices, ins, strict=True))]
    if prim is push_p:  # a stack is the one below and the values
        return [f"{out} = ({', '.join(ins)})"]
    if prim is pop_p:
        return [f"{out} = {ins[0]}"]
    if not prim.updates:
        return None
    index = index_parts(params["template"], ins[2:], written)
    if not prim.adds:
        return [f"{out} = {ins[0]}.copy()", f"{out}[{_write_index(index)}] = {ins[1]}"]
    return [f"{out} = {ins[0]}.copy()", _write_addition(out, index, ins[1])]


def _write_addition(out: str, index: list, values: str) -> str:
    """Write an addition at an index. One of slices and numbers alone names every place once."""
    if all(basic for _, basic in index):
        return f"{out}[{_write_index(index)}] += {values}"
    parts = [f"np.s_[{text}]" if ":" in text and basic else text for text, basic in index]
    return f"np.add.at({out}, ({', '.join(parts)},), {values})"


def index_parts(template: tuple, arrays: Any, written: Any) -> list[tuple[str, bool]]:
    """Return the text of each part of an index, and whether it is a slice, a number, None or an ellipsis."""
    it = iter(arrays)
    return [(next(it), False) if type(p) is str else (_index_part(p, written), isinstance(p, _BASIC)) for p in template]


_BASIC = (slice, int, type(None), type(Ellipsis))


def _write_index(index: list[tuple[str, bool]]) -> str:
    return ", ".join(text for text, _ in index) or "()"


def _index_part(p: Any, written: Any) -> str:
    if type(p) is slice:
        text = f"{'' if p.start is None else p.start}:{'' if p.stop is None else p.stop}"
        return text if p.step is None else f"{text}:{p.step}"
    return "..." if p is Ellipsis else written(p)


def _call(f: Any, ins: list[str], params: dict, helpers: Helpers, written: Any) -> str:
    f = on_the_host(f)
    name = numpy_name(f)
    keywords = [f"{k}={written(v)}" for k, v in params.items()]
    if name:
        return f"{name}({', '.join([*ins, *keywords])})"
    if inspect.isfunction(f) and f.__name__ == "<lambda>":
        return _inline(f, ins, params, helpers, written)
    return f"{helpers.add(f)}({', '.join([*ins, *keywords])})"


def on_the_host(f: Any) -> Any:
    """Return what a function that asks where its operands are runs for NumPy's arrays."""
    return getattr(f, "host", f)


def numpy_name(f: Any) -> str | None:
    """Return how a function of NumPy or SciPy is called, ``np.sin``; None for any other."""
    # An operation that calls one has loaded its module.
    loaded = tuple(part for part in _SCIPY if f"scipy.{part}" in sys.modules)
    name = f.__name__ if isinstance(f, np.ufunc) else None
    if name is not None and getattr(np, name, None) is f:
        return f"np.{name}"
    return _known_names(loaded).get(id(on_the_host(f)))


_SCIPY = ("special", "linalg", "fft", "signal", "ndimage")


@functools.lru_cache(maxsize=8)
def _known_names(parts: tuple) -> dict[int, str]:
    found: dict[int, str] = {}
    for part in parts:
        found.update(_functions(f"scipy.{part}", sys.modules[f"scipy.{part}"]))
    for prefix, module in (("np.linalg", np.linalg), ("np.fft", np.fft), ("np", np)):
        found.update(_functions(prefix, module))
    return found


def _functions(prefix: str, module: types.ModuleType) -> dict[int, str]:
    values = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return {id(f): f"{prefix}.{name}" for name, f in values.items() if callable(f) and not isinstance(f, type)}


@functools.cache
def _lambda(code: types.CodeType) -> ast.Lambda:
    """Return the syntax tree of a lambda: the one in its file that compiles to the same code."""
    try:
        lines, _ = inspect.findsource(code)
    except OSError as error:
        raise Cannot(str(error)) from None
    known = [cast(tuple[int, int, int, int], p) for p in code.co_positions() if None not in p]
    places = [p for p in known if p[2:] != (0, 0) and p[0] >= code.co_firstlineno]
    first = min((p[0], p[2]) for p in places)
    last = max((p[1], p[3]) for p in places)
    for node in ast.walk(_file("".join(lines))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            body = node.body
            if (body.lineno, body.col_offset) <= first and last <= (body.end_lineno, body.end_col_offset):
                return node
    raise Cannot("its lambda is not found in its file")


@functools.lru_cache(maxsize=64)
def _file(text: str) -> ast.Module:
    return ast.parse(text)


class _Fill(ast.NodeTransformer):
    def __init__(self, values: dict[str, str]):
        self.values = values

    def visit_Name(self, node: ast.Name) -> Any:
        text = self.values.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body


def _inline(f: Any, ins: list[str], params: dict, helpers: Helpers, written: Any) -> str:
    node = _lambda(f.__code__)
    filled = {a.arg: text for a, text in zip(node.args.args, ins, strict=False)}
    if node.args.vararg:
        filled[node.args.vararg.arg] = f"({', '.join(ins[len(node.args.args) :])},)"
    filled.update({k: written(v) for k, v in params.items()})
    defaults = f.__defaults__ or ()
    for a, value in zip(node.args.args[len(node.args.args) - len(defaults) :], defaults, strict=True):
        filled.setdefault(a.arg, written(value))
    body = _ForPlainArrays().visit(ast.parse(ast.unparse(node.body), mode="eval").body)
    around = around_of(f)
    for name in sorted({n.id for n in ast.walk(body) if isinstance(n, ast.Name)} - set(filled)):
        if name in around:
            filled[name] = helpers.need(name, around[name])
    return ast.unparse(_Fill(filled).visit(body))
