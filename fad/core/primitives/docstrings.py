"""The documentation page of an operation, made from what the registry knows when somebody first looks at it.

An operation's module states the function, its partial derivatives and where it is defined. `page` writes them down as a
docstring: the signature, one sentence, the derivative as its module writes it, parameters, results, dtypes, and an
example that is run to be shown. Sentence and parameters are read from NumPy's or SciPy's own page, which is installed.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import re
import sys
import textwrap
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad.core.primitives.docstring_sections import (
    numpydoc_sections,
    references,
    section,
    stated_errors,
    with_errors,
    with_references,
)
from fad.core.primitives.samples import Sampler

_UFUNC_OPTIONS = {
    "out": None, "where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True,
}  # fmt: skip
_NICE = (0.5, 1.5, 0.25, 2.0, 0.75, 2.5, 1.2, 3.0, 4.0, -0.5, 5.0, 8.0)


class SignatureOfInstance:
    """``__signature__`` of an operation; the class has none of its own, and so keeps that of its constructor."""

    def __get__(self, instance: Any, owner: Any = None) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return signature(instance)


# --- the page ---------------------------------------------------------------------------------------------------------


def page(operation: Any) -> str:
    """Return the docstring of a `Primitive`; it is kept once fad is loaded, so that its public name is known."""
    if operation not in _PAGES:
        text = _page(operation)
        if not hasattr(sys.modules.get("fad"), "__version__"):
            return text
        _PAGES[operation] = text
    return _PAGES[operation]


_PAGES: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def _page(operation: Any) -> str:
    upstream = _upstream(operation)
    names = operand_names(operation)
    example = _example(operation, len(names))
    parts = [
        f"{operation.__name__}{signature(operation)}",
        sentence(operation, upstream),
        section("Derivative", "\n".join(_derivative(operation, names))),
        with_errors(numpydoc_sections(upstream) or _own_sections(operation, names), _errors(operation, names)),
        section("Notes", _notes(operation, names)),
        section("Examples", example) if example else "",
    ]
    text = "\n\n".join(p for p in parts if p) + "\n"
    upstream_functions = (*operation.numpy, _special_function(operation))
    return with_references(text, [*filter(None, [operation.source]), *references(upstream_functions)])


def _upstream(operation: Any) -> str:
    """Return the page that NumPy or SciPy has of the function that an operation answers for, or ''."""
    for f in (*operation.numpy, _special_function(operation)):
        text = getattr(f, "__doc__", None)
        if text and (isinstance(f, np.ufunc) or not (getattr(f, "__module__", "") or "").startswith("fad")):
            return text
    return ""


def _special_function(operation: Any) -> Any:
    """Return SciPy's function of the name of an operation that is a special function."""
    special = sys.modules.get("scipy.special") if operation.name.startswith("special.") else None
    return getattr(special, operation.__name__, None)


def signature(operation: Any) -> inspect.Signature:
    """Return the signature of a `Primitive`: a ufunc's, or that of its forward function."""
    kinds = inspect.Parameter
    if operation.archetype in ("elementwise", "special") or any(isinstance(f, np.ufunc) for f in operation.numpy):
        operands = [kinds(n, kinds.POSITIONAL_ONLY) for n in operand_names(operation)]
        options = [kinds(n, kinds.KEYWORD_ONLY, default=d) for n, d in _UFUNC_OPTIONS.items()]
        return inspect.Signature([*operands, *options])
    try:
        return inspect.signature(operation.forward)
    except (TypeError, ValueError):
        return inspect.Signature(
            [kinds("xs", kinds.VAR_POSITIONAL), kinds("params", kinds.VAR_KEYWORD)],
        )


@functools.lru_cache(1024)
def operand_names(operation: Any) -> tuple[str, ...]:
    """Return the names of the operands as NumPy's or SciPy's page has them, or else as the rules have them."""
    rules = operation.declared or operation.partials or ()
    arity = len(rules) or (2 if operation.archetype == "bilinear" else 0)
    ufunc = next((f for f in operation.numpy if isinstance(f, np.ufunc)), None)
    arity = ufunc.nin if ufunc is not None else arity
    name = getattr(ufunc or operation, "__name__", operation.name)
    for inside in reversed(re.findall(rf"(?m)^\s*{re.escape(name)}\(([^)]*)", _upstream(operation))):
        found = [n.strip() for n in inside.split(",")]
        if len(found) >= arity and all(n.isidentifier() for n in found[:arity]):
            return tuple(found[:arity])
    if not arity:
        return tuple(n for n, p in _forward_parameters(operation) if p.kind <= p.VAR_POSITIONAL)
    return ("x",) if arity == 1 else tuple(f"x{i + 1}" for i in range(arity))


def _forward_parameters(operation: Any) -> list:
    try:
        return list(inspect.signature(operation.forward).parameters.items())
    except (TypeError, ValueError):
        return []


def sentence(operation: Any, upstream: str) -> str:
    """Return what an operation computes: its own words, or the first sentence of NumPy's or SciPy's page."""
    if operation.doc:
        return operation.doc
    found = summary(upstream)
    if found:
        return found
    own = str(getattr(operation.forward, "__module__", "")).startswith("fad")
    text = inspect.getdoc(operation.forward) if own else ""
    return summary(text or "") or f"The operation {operation.name}, which other functions of fad are made of."


def summary(text: str) -> str:
    """Return the first paragraph of a docstring that is no signature."""
    before = re.split(r"(?m)^\s*Parameters\s*\n\s*-+", text)[0]
    for paragraph in re.split(r"\n\s*\n", before):
        words = " ".join(paragraph.split())
        if words and not re.fullmatch(r"[\w.]+\(.*\)", words):
            return words
    return ""


def _own_sections(operation: Any, names: tuple[str, ...]) -> str:
    kind = "real or complex" if operation.complex else "real"
    entries = [f"{n} : array_like, {kind}" for n in names]
    params = [n for n, p in _forward_parameters(operation) if p.kind == p.KEYWORD_ONLY]
    entries += [f"{n} : parameter, not differentiated" for n in params]
    given = section("Parameters", "\n".join(entries)) + "\n\n" if entries else ""
    result = "tuple of arrays" if operation.multi else "ndarray or scalar"
    return given + section("Returns", result)


_REFUSED_MATRICES = {
    "infinite": "LinAlgError: An entry is infinite or NaN.",
    "indefinite": "LinAlgError: The matrix is not positive definite.",
    "singular": "LinAlgError: The matrix is singular.",
}


def _errors(operation: Any, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Give the errors that the registry knows of: of dtypes, of shapes, of matrices, of derivatives that it lacks."""
    yield from stated_errors(operation.raises)
    ufunc = next((f for f in (*operation.numpy, operation.forward) if isinstance(f, np.ufunc)), None)
    refused = [word for word, dtype in _KINDS.items() if ufunc is not None and not _takes(ufunc, dtype)]
    if refused:
        *first, last = refused
        yield "TypeError", f"    An operand is {', '.join(first)}{' or ' if first else ''}{last}."
    if len(names) > 1 and operation.archetype in ("elementwise", "special"):
        yield "ValueError", "    The operands cannot be broadcast against each other."
    if operation.refuses:
        yield from stated_errors(_REFUSED_MATRICES[operation.refuses])
    lacking = [(n, rule) for n, rule in zip(names, operation.declared or (), strict=False) if isinstance(rule, str)]
    for name, reason in lacking:
        yield "DerivativeError", f"    A derivative in {name} is requested: {reason}."


_KINDS = {"complex": "D", "a string": "U1", "a date": "M8[D]"}


def _takes(ufunc: np.ufunc, dtype: str) -> bool:
    """Return whether a ufunc has a loop for operands of a dtype: of complex ones, for one of them at least."""
    if dtype == "D":
        return any({*"FDG"} & {*loop.partition("->")[0]} for loop in ufunc.types)
    try:
        ufunc.resolve_dtypes((np.dtype(dtype),) * ufunc.nin + (None,) * ufunc.nout)
    except (TypeError, ValueError):
        return False
    return True


def _notes(operation: Any, names: tuple[str, ...]) -> str:
    notes = []
    if operation.archetype in ("elementwise", "special") and len(names) > 1:
        notes.append("The operands are broadcast against each other.")
    ufunc = next((f for f in (*operation.numpy, operation.forward) if isinstance(f, np.ufunc)), None)
    if ufunc is not None:
        results = {t.rpartition(">")[2][:1]: None for t in ufunc.types if t[-1] not in "OMm"}
        dtypes = ", ".join(dict.fromkeys(str(np.dtype(c)) for c in results))
        notes.append(f"The result has one of the dtypes {dtypes}: the first that holds the operands.")
    if operation.partials and not operation.flat:
        intervals = operation.domain if isinstance(operation.domain[0], tuple) else (operation.domain,) * len(names)
        if operation.samples is None:
            shown = ", ".join(f"{a} < {n} < {b}" for n, (a, b) in zip(names, intervals, strict=False))
            notes.append(f"The derivatives are checked against differences for {shown}.")
        notes.append(
            "Complex operands are differentiated too." if operation.complex else "Derivatives are for real operands."
        )
    return "\n".join(notes) or "Found in what `fad.make_graph` prints."


# --- the derivative -----------------------------------------------------------------------------------------------


def _derivative(operation: Any, names: tuple[str, ...]) -> Iterator[str]:
    rules = operation.declared or operation.partials
    if operation.flat:
        yield "Zero wherever it exists."
    elif rules and len(rules) == len(names):
        for name, rule in zip(names, rules, strict=True):
            yield f"d/d{name} = {write_partial(rule, names)}"
        if any("out" in re.findall(r"\w+", write_partial(rule, names)) for rule in rules):
            yield "where out is the result."
    elif operation.archetype == "linear":
        yield "The operation is linear: its derivative applies it to the tangent, reverse mode applies its transpose."
    elif operation.archetype == "bilinear":
        yield "The operation is linear in each operand: the product rule, by the operation itself."
    else:
        yield f"By a rule of its own, in {getattr(operation.forward, '__module__', None) or 'fad.ops'}."


def write_partial(rule: Any, names: tuple[str, ...]) -> str:
    """Return a partial derivative as its module writes it, in the operands' names; the result is called ``out``."""
    if rule is None:
        return "0 wherever it exists"
    if isinstance(rule, str):
        return f"none ({rule}): requesting it raises DerivativeError"
    text = getattr(rule, "written", None)
    if text is not None:
        return text if isinstance(text, str) else write_partial(text, names)
    derived = getattr(rule, "derives", None)
    if derived is not None:
        function, k = derived
        return f"the derivative in {names[k]} of {as_written(function, names)}"
    return as_written(rule, ("out", *names))


def as_written(rule: Callable, names: tuple[str, ...]) -> str:
    """Return what a function of one expression returns, in other names for its parameters, or else its source."""
    node = _definition(rule)
    if node is None:
        return f"{getattr(rule, '__name__', 'a rule')}({', '.join(names)})"
    parameters = [a.arg for a in node.args.args] if isinstance(node, ast.Lambda | ast.FunctionDef) else []
    known = dict(zip(parameters, names, strict=False))
    body = node.body if isinstance(node, ast.Lambda) else _only_value(node)
    if body is not None:
        return ast.unparse(_Renamed(known).visit(ast.parse(ast.unparse(body), mode="eval").body))
    source = textwrap.dedent("\n".join(_lines(rule.__code__.co_filename)[node.lineno - 1 : node.end_lineno]))
    shown = ", ".join(f"{p} is {n}" for p, n in known.items() if not p.startswith("_") and p != n)
    return f"{node.name}(...){', where ' + shown if shown else ''}::\n\n{textwrap.indent(source, '    ')}\n"


def _only_value(node: ast.FunctionDef) -> ast.expr | None:
    """Return the expression that a function returns if it has no other statement."""
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


class _Renamed(ast.NodeTransformer):
    def __init__(self, known: dict[str, str]):
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.known.get(node.id, node.id), node.ctx)


@functools.lru_cache(64)
def _lines(path: str) -> list[str]:
    return [line.rstrip("\n") for line in linecache.getlines(path)]


@functools.lru_cache(64)
def _functions(path: str) -> dict[int, list]:
    found: dict[int, list] = {}
    lines = _lines(path)
    for node in ast.walk(ast.parse("\n".join(lines))) if lines else ():
        if isinstance(node, ast.Lambda | ast.FunctionDef):
            found.setdefault(node.lineno, []).append(node)
    return found


def _definition(rule: Callable) -> Any:
    """Return the syntax tree of a function: of several lambdas in a line, the one in whose text its code lies."""
    code = getattr(rule, "__code__", None)
    if code is None:
        return None
    nodes = _functions(code.co_filename).get(code.co_firstlineno, [])
    nodes = [n for n in nodes if [a.arg for a in (*n.args.posonlyargs, *n.args.args)] == list(_arguments(code))]
    places = [(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None and p[3]]
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            return node
        if any((node.body.lineno, node.body.col_offset) == place for place in places):
            return node
    return nodes[0] if len(nodes) == 1 else None


def _arguments(code: Any) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount]


# --- the example --------------------------------------------------------------------------------------------------


def _example(operation: Any, arity: int) -> str:
    """Return a doctest of an operation and its derivative at the first point where both run, or ''."""
    path = public_path(operation)
    if path is None:
        return ""
    for point in _points(operation, arity):
        lines = run_example(f"{path}({_show(point)})")
        if lines:
            return "\n".join([">>> import numpy as np, fad", *lines, *_run_derivative(operation, path, point)])
    return ""


def _run_derivative(operation: Any, path: str, point: tuple) -> list[str]:
    rules = operation.declared or operation.partials or (operation,) * len(point)
    inexact = [np.asarray(x).dtype.kind in "fc" for x in point]
    free = [i for i, r in enumerate(rules) if not isinstance(r, str | type(None)) and inexact[i]]
    if operation.flat or not free:
        return []
    which = "" if len(point) == 1 else f", argnums={free[0] if len(free) == 1 else tuple(free)}"
    one = ", ".join("x" if i == free[-1] else _show((x,)) for i, x in enumerate(point))
    run = [
        f"fad.grad({path}{which})({_show(point)})",
        f"fad.grad(lambda *xs: {path}(*xs).sum(){which})({_show(point)})",
        f"fad.jvp(lambda x: {path}({one}), ({_show((point[free[-1]],))},), (1.0,))[1]",
    ]
    return next((lines for lines in map(run_example, run) if lines), [])


def public_path(operation: Any) -> str | None:
    """Return the name under which users find an operation, or None for one that only graphs show."""
    last = operation.__name__
    for module in ("numpy", "scipy.special", "numpy.linalg", "numpy.fft", "nn.functional"):
        if getattr(sys.modules.get(f"fad.{module}"), last, None) is operation:
            return f"fad.{module}.{last}"
    return None


def _points(operation: Any, arity: int) -> Iterator[tuple]:
    """Give arguments to try: numbers where an elementwise operation is defined, or small arrays from its samples."""
    elementwise = operation.archetype in ("elementwise", "special")
    if operation.samples is not None:
        for call in operation.samples(Sampler(seed=0)):
            if len(call.args) == arity and not call.kwargs and all(np.size(x) for x in call.args):
                yield tuple(_number(x) if elementwise else _small(x) for x in call.args)
        return
    domain = operation.domain
    intervals = domain if isinstance(domain[0], tuple) else (domain,) * arity
    for shift in range(3):
        inside = [[x for x in _NICE if low < x < high] or [(low + high) / 2] for low, high in intervals]
        yield tuple(xs[(i + shift) % len(xs)] for i, xs in enumerate(inside))
    yield (6, 3)[:arity]


def _number(x: Any) -> Any:
    first = np.ravel(x)[0].item()
    return float(f"{first:.2g}") if type(first) is float else first


def _small(x: Any) -> Any:
    return np.round(x[(slice(2),) * x.ndim], 1) if isinstance(x, np.ndarray) else x


def _show(point: tuple) -> str:
    return ", ".join(f"np.array({x.tolist()})" if isinstance(x, np.ndarray) else repr(x) for x in point)


def run_example(text: str) -> list[str]:
    """Return an expression with its value as a doctest, or nothing where it raises, warns, or has no finite value."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            value = eval(text, {"np": np, "fad": sys.modules["fad"]})
        if not np.all(np.isfinite(np.asarray(value, dtype=complex))):
            return []
        shown = repr(value)
    except Exception:  # whatever the operation raises there, the next point is tried
        return []
    return [f">>> {text}", *shown.splitlines()]
