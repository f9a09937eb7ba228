"""The sections of public docstrings on parameters, results, errors and references, made where they are regular.

Parameters and results of a function that answers for NumPy's or SciPy's are read from their page, those of fad's own
layers, optimisers and random numbers from a table. What a function raises follows from the names of its parameters
(`RAISES`) and from what its operation states (`Operation.raises`); what it is checked against is its reference.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

_AFTER = re.compile(r"\n *(?:See Also|See also|Notes|Examples|References|Warnings|Warns)\n")

_ERROR_IN_A_LINE = re.compile(r"\A(\w+) : (.+)$", re.MULTILINE)

# The errors that a parameter of a function with NumPy's or SciPy's signature can lead to. ``owner.name`` is for one
# function or package, and goes before ``name``; without a text it says that there is no error to name.
RAISES = """
axis : IndexError
    The array has no such axis.
cumulative_simpson.axis, spearmanr.axis : ValueError
    The array has no such axis.
lfilter.axis, resample.axis, f_oneway.axis : None
axes : ValueError
    An axis is named twice, or the array has no such axis.
tensordot.axes, fftshift.axes, ifftshift.axes, apply_over_axes.axes : IndexError
    The array has no such axis.
rfft2.axes, irfft2.axes, fft2.axes, ifft2.axes, fftn.axes, ifftn.axes, rfftn.axes, irfftn.axes, vecdot.axes : None
axis1 : IndexError
    The array has no such axis.
source : IndexError
    The array has no such axis.
kind : ValueError
    There is no such algorithm.
order : ValueError
    There is no such order.
astype.order : TypeError
    There is no such order.
ndimage.order : TypeError
    The order is no integer.
dtype : TypeError
    There is no such dtype.
mode : ValueError
    There is no such mode.
ndimage.mode : RuntimeError
    There is no such mode.
method : ValueError
    There is no such method.
norm : ValueError
    There is no such normalisation.
type : ValueError
    There is no such type.
eigh.type, eigvalsh.type, fftpack.type : None
k : TypeError
    The number of the diagonal is no integer.
rot90.k : TypeError
    The number of quarter turns is no integer.
polyint.k, BSpline.k, integrate.k, make_interp_spline.k : None
n : ValueError
    The length of the result is less than 1.
diff.n : ValueError
    It is negative.
decimate.n : ValueError
    The order of the filter is less than 1.
signal.k, logn.n, matrix_power.n, freqresp.n, bode.n, tf2ss.num, taylor.norm : None
num : ValueError
    It is negative.
shape : ValueError
    A length is negative.
reshape.shape : ValueError
    The array has another number of elements.
deg : ValueError
    The degree is negative.
angle.deg : None
check_finite : ValueError
    It is true, and an array has infinities or NaNs.
matmul_toeplitz.check_finite : None
"""


class PageOfInstance:
    """``__doc__`` of a class whose instances have pages of their own: the class keeps its text."""

    def __init__(self, text: str | None, page: Callable[[Any], str]):
        self.text = text
        self.page = page

    def __get__(self, instance: Any, owner: Any = None) -> str | None:
        return self.text if instance is None else self.page(instance)


def document(function: Any, name: str | None, doc: str, plain: Any, raises: str = "", source: str = "") -> None:
    """Complete the docstring of a public function: parameters and results as on the page of NumPy's function.

    `name` and `doc` are for a function that another one made; `plain` is what NumPy or SciPy calls the function;
    `raises` and `source` are fields of `Operation`.
    """
    if not inspect.isfunction(function):  # a method, which its class documents
        return
    if name is not None and "<locals>" in function.__qualname__:
        function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    own = doc or function.__doc__ or ""
    if not own:
        return
    if plain is not None and not isinstance(plain, list | tuple) and "Parameters\n" not in own:
        sections = numpydoc_sections(plain.__doc__ or "")
        own = join(inspect.cleandoc(own), sections) if sections else own
    code = inspect.unwrap(function).__code__  # a wrapper takes any parameters
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    errors = [*stated_errors(raises), *errors_of_parameters(parameters, owners_of(function))]
    own = with_errors(inspect.cleandoc(own), errors)
    function.__doc__ = with_references(own, [*filter(None, [source]), *references((plain,))])


def complete(
    names: dict[str, Any],
    parameters: str,
    result: Callable[[str, Any], str],
    raises: str = "",
    source: Callable[[str], str] = lambda name: "",
) -> None:
    """Add sections on parameters, results and errors to public functions and classes that lack them.

    `parameters` describes each once: lines ``name, other : type`` with indented text below; ``function.name`` or
    ``Class.name`` goes before ``name``. `result` returns the text of the section on results, or ''. `raises` has the
    form of `parameters`, with an error for the type, or with the name of the function or class alone before it.
    `source` says of a name where its formula stands, or what it is checked against.
    """
    known, errors = entries(parameters), entries(raises)
    for name, thing in names.items():
        if not callable(thing) or isinstance(vars(type(thing)).get("__doc__"), PageOfInstance):
            continue
        own = inspect.cleandoc(vars(thing).get("__doc__") or "" if isinstance(thing, type) else thing.__doc__ or "")
        missing = [title for title in ("Parameters", "Returns") if f"\n{title}\n---" not in own]
        owners = [c.__name__ for c in thing.__mro__] if isinstance(thing, type) else [thing.__name__]
        given = inspect.signature(thing).parameters
        texts = {
            "Parameters": "\n".join(filter(None, (_describe(known, owners, p) for p in given))),
            "Returns": result(name, thing),
        }
        own = join(own, "\n\n".join(section(title, texts[title]) for title in missing if texts[title]))
        whole = [errors[owner] for owner in owners[:1] if owner in errors]
        own = with_errors(own, [*whole, *errors_of_parameters(given, owners, errors)])
        thing.__doc__ = with_references(own, [*filter(None, [source(name)])])


def section(title: str, text: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{text}"


def entries(table: str) -> dict[str, tuple[str, str]]:
    """Return ``{name: (type, text)}`` of a table of parameters or errors."""
    found = {}
    for head, text in re.findall(r"^(\S.*)\n((?: {4}.*\n)*)", table, flags=re.MULTILINE):
        names, _, kind = head.partition(" : ")
        found.update({name.strip(): (kind, text.rstrip()) for name in names.split(",")})
    return found


_ERRORS = entries(RAISES)


def _find(known: dict[str, tuple[str, str]], owners: Iterable[str], name: str) -> tuple[str, str] | None:
    return next((known[k] for k in (*(f"{owner}.{name}" for owner in owners), name) if k in known), None)


def _describe(known: dict[str, tuple[str, str]], owners: list[str], name: str) -> str:
    found = _find(known, owners, name)
    if found is None:
        return ""
    kind, text = found
    return f"{name} : {kind}\n{text}" if kind else f"{name}\n{text}"


def owners_of(function: Any) -> tuple[str, ...]:
    """Return the names under which tables speak of a function's parameters: its own, its module's, its packages'."""
    return (function.__name__.strip("_"), *reversed(function.__module__.split(".")))


def errors_of_parameters(
    parameters: Iterable[str], owners: Iterable[str], known: dict[str, tuple[str, str]] = _ERRORS
) -> Iterator[tuple[str, str]]:
    """Give the errors that parameters of these names lead to, as ``(error, text)``."""
    owners = tuple(owners)
    for name in parameters:
        found = _find(known, owners, name)
        if found is not None and found[1]:
            yield found[0], f"    `{name}`: {found[1][4:5].lower()}{found[1][5:]}"


def stated_errors(raises: str) -> Iterator[tuple[str, str]]:
    """Give the errors of `Operation.raises`, one in a line: ``"ValueError: The array has fewer than two axes."``."""
    for line in raises.splitlines():
        error, _, text = line.partition(": ")
        yield error, f"    {text}"


def with_errors(own: str, errors: Iterable[tuple[str, str]]) -> str:
    """Add errors to a docstring's section on them, which is made where it lacks."""
    lines = list(dict.fromkeys(f"{error}\n{text}" for error, text in errors))
    if not lines:
        return own
    head = "\nRaises\n------\n"
    if head in own:
        before, _, theirs = own.partition(head)
        return before + head + "\n".join(lines) + "\n" + _ERROR_IN_A_LINE.sub(r"\1\n    \2", theirs, count=1)
    return join(own, section("Raises", "\n".join(lines)))


def with_references(own: str, lines: list[str]) -> str:
    """Add a section on sources to a docstring that has none."""
    return own if not lines or "\nReferences\n---" in own else join(own, section("References", "\n".join(lines)))


def refer(names: dict[str, Any], module: Any, *sources: str) -> None:
    """Let public functions and classes name the one of a module of NumPy's or SciPy's that has their name."""
    for name, thing in names.items():
        theirs = getattr(module, name, None)
        own = vars(thing).get("__doc__") if isinstance(thing, type) else getattr(thing, "__doc__", None)
        if own and (inspect.isfunction(thing) or isinstance(thing, type)):
            thing.__doc__ = with_references(inspect.cleandoc(own), [*sources, *references((theirs,))])


_SITES = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
}


def references(functions: Iterable[Any]) -> Iterator[str]:
    """Give the page of the first function of NumPy or SciPy among those that an operation answers for."""
    for f in functions:
        if isinstance(f, list | tuple):
            f = f[0]
        name = getattr(f, "__name__", "")
        module = ".".join(p for p in (getattr(f, "__module__", None) or _module_of(f)).split(".") if p[:1] != "_")
        site = _SITES.get(module.partition(".")[0])
        if site is not None and name.isidentifier():
            yield f"{module}.{name}, {site.format(f'{module}.{name}')}"
            return


def _module_of(f: Any) -> str:
    """Return the module of a ufunc, which does not say it."""
    if not isinstance(f, np.ufunc):
        return ""
    return "numpy" if getattr(np, f.__name__, None) is f else "scipy.special" if "scipy.special" in sys.modules else ""


def join(own: str, sections: str) -> str:
    """Put sections behind the words of a docstring and before its examples."""
    if not own or not sections:
        return own
    at = own.find("\n>>> ") + 1 or len(own)
    words, example = own[:at].removesuffix("Examples\n--------\n").rstrip(), own[at:]
    return f"{words}\n\n{sections}" + (f"\n\nExamples\n--------\n{example}" if example else "")


def numpydoc_sections(text: str) -> str:
    """Return the sections on parameters, results and errors of a docstring in NumPy's format.

    They stand one after the other; it runs for each function when fad is imported, and so looks for their ends alone.
    """
    at = text.find("Parameters\n")
    if at < 0:
        return ""
    start = text.rfind("\n", 0, at) + 1
    margin = text[start:at]
    end = _AFTER.search(text, at)
    kept = text[start : end.start() if end else None].rstrip()
    return kept.replace("\n" + margin, "\n")[len(margin) :] if margin else kept
