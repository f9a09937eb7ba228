"""Write the reference: a page for each public name, and a table for each namespace: python docs/reference.py

Names are those that users write (``fad.save``, whatever file it is defined in). A page has the signature, the
docstring, for an operation where its rules come from, and links to the examples of the gallery that use it. Run as a
script, this counts names and pages, and fails where a public name has none.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
OUT = HERE / "generated" / "reference"

# The namespaces in the order of the table of contents: caption -> (namespace, what it is for).
NAMESPACES = {
    "Derivatives": [
        ("fad", "derivatives, batches, compiling, control flow, saving"),
        ("fad.sparse", "Jacobians and Hessians that are mostly zero"),
        ("fad.tree", "pytrees: nested lists, dictionaries, models"),
        ("fad.testing", "derivatives compared with numerical ones"),
    ],
    "Models": [
        ("fad.nn", "layers and losses"),
        ("fad.nn.functional", "layers and losses as functions"),
        ("fad.nn.init", "first values of parameters"),
        ("fad.optim", "optimisers, clipping, loops of training"),
        ("fad.optim.schedules", "learning rates that change"),
        ("fad.data", "batches"),
        ("fad.random", "random numbers as functions of a key"),
        ("fad.distributed", "training, simulation and checkpoints over several processes"),
    ],
    "Seeing what happens": [
        ("fad.debug", "NaNs, printing from running programs, compiled ones too"),
        ("fad.profiler", "where the time goes"),
        ("fad.config", "settings"),
        ("fad.backends", "arrays of the host and of a GPU"),
    ],
    "NumPy": [
        ("fad.numpy", "NumPy's functions, for traced and for plain arrays"),
        ("fad.numpy.linalg", "linear algebra"),
        ("fad.numpy.fft", "Fourier transforms"),
    ],
    "SciPy": [
        ("fad.scipy.special", "special functions"),
        ("fad.scipy.linalg", "functions of matrices, decompositions, structured solvers"),
        ("fad.scipy.integrate", "integrals and differential equations"),
        ("fad.scipy.optimize", "roots, minima and fits, differentiated through the solution"),
        ("fad.scipy.interpolate", "splines and interpolation"),
        ("fad.scipy.signal", "filters and spectra"),
        ("fad.scipy.ndimage", "images"),
        ("fad.scipy.fft", "Fourier, cosine, sine and Hankel transforms"),
        ("fad.scipy.fftpack", "the older names of these transforms, and operators on periodic samples"),
        ("fad.scipy.stats", "distributions"),
        ("fad.scipy.sparse", "sparse matrices"),
        ("fad.scipy.sparse.linalg", "sparse solvers"),
        ("fad.scipy.spatial.distance", "distances"),
    ],
    "PyTorch": [
        ("fad.eager", "tensors and their functions"),
        ("fad.eager.nn", "modules"),
        ("fad.eager.nn.functional", "layers and losses as functions"),
        ("fad.eager.nn.utils.rnn", "sequences of different lengths"),
        ("fad.eager.nn.utils.parametrize", "parameters computed from others"),
        ("fad.eager.nn.utils.parametrizations", "weight and spectral norm"),
        ("fad.eager.optim", "optimisers"),
        ("fad.eager.optim.lr_scheduler", "learning rates"),
        ("fad.eager.autograd", "derivatives of tensors"),
        ("fad.eager.autograd.functional", "Jacobians and Hessians of functions of tensors"),
        ("fad.eager.autograd.graph", "the graph behind a tensor"),
        ("fad.eager.func", "transforms of functions of tensors"),
        ("fad.eager.linalg", "linear algebra"),
        ("fad.eager.distributions", "distributions"),
        ("fad.eager.utils.data", "data sets and loaders"),
        ("fad.eager.utils.checkpoint", "less memory for more time"),
    ],
}
LIBRARIES = {
    "fad.numpy": ("numpy", "https://numpy.org/doc/stable/reference/generated/{}.html"),
    "fad.scipy": ("scipy", "https://docs.scipy.org/doc/scipy/reference/generated/{}.html"),
}


class Name(NamedTuple):
    """A public name: where users find it, and what it is."""

    space: str
    name: str
    thing: Any

    @property
    def full(self) -> str:
        return f"{self.space}.{self.name}"

    @property
    def page(self) -> str:
        """The page's name, apart from others also where files differ in more than the case of letters alone."""
        return f"{self.full}-class" if isinstance(self.thing, type) else self.full


def load(space: str) -> Any:
    """Return a namespace; some are no modules of their own."""
    found = importlib.import_module("fad")
    for part in space.split(".")[1:]:
        found = getattr(found, part)
    return found


def names(space: str) -> list[Name]:
    """Return the public names of a namespace, those that NumPy or SciPy define themselves and modules left out."""
    module = load(space)
    listed = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    found = []
    for name in sorted(set(listed), key=lambda n: (n.lower(), n)):
        thing = getattr(module, name)
        if isinstance(thing, types.ModuleType) or not _is_ours(thing, space, hasattr(module, "__all__")):
            continue
        found.append(Name(space, name, thing))
    return found


def _is_ours(thing: Any, space: str, listed: bool) -> bool:
    where = getattr(thing, "__module__", None) or type(thing).__module__
    if not listed and space != "fad.eager.linalg":  # no list of names: what the module defines itself
        return where == space or (space == "fad.config" and type(thing).__name__ == "ContextVar")
    return str(where).startswith("fad") and not (isinstance(thing, type) and thing.__module__ == "fad.errors")


def everything() -> Iterator[Name]:
    for group in NAMESPACES.values():
        for space, _ in group:
            yield from names(space)


def own_doc(thing: Any) -> str:
    """Return what a thing's docstring says of it, not what its class says of all its instances."""
    text = inspect.getdoc(thing) or ""
    if not isinstance(thing, type) and not inspect.isroutine(thing) and text == (inspect.getdoc(type(thing)) or ""):
        return ""
    return text


_ROLE = re.compile(r":(?:ref|doc|term|any|func|class|meth|mod|obj|attr|py:\w+):`~?([^<`]*?)(?:\s*<[^>`]*>)?`")
_DERIVATIVE = re.compile(r"^Derivatives?\n-+\n((?:.*\S.*\n?)+)", re.MULTILINE)


def clean(text: str) -> str:
    """Return a docstring without what only the library that it was taken from can resolve.

    The first line may be a signature; references and footnotes lead to pages that are not here; formulas of a
    derivative are code.
    """
    text = re.sub(r"^\w+\(.*\)\n\n", "", text)
    text = re.sub(r"\.\. \[\d+\].*(?:\n[ \t]+\S.*)*", "", text)
    text = re.sub(r"\s?\[\w+\]_", "", _ROLE.sub(r"\1", text))
    text = re.sub(r"^References\n-+\s*(?=\Z|\w+\n-)", "", text, flags=re.MULTILINE)
    text = re.sub(r"\b((?:numpy|scipy)\.[\w.]*\w)_(?=,|\.html)", r"\1\_", text)  # a name, and not a reference's

    def formula(found: re.Match) -> str:
        body = "\n".join("    " + line for line in found[1].rstrip("\n").splitlines())
        return f".. rubric:: Derivative\n\n.. code-block:: text\n\n{body}\n\n"

    return _DERIVATIVE.sub(formula, text)


def napoleon(text: str, what: str) -> list[str]:
    """Return a docstring in NumPy's form as reStructuredText."""
    try:
        from sphinx.ext.napoleon import Config, NumpyDocstring
    except ImportError:  # names and pages are counted without Sphinx, too
        return clean(text).splitlines()
    settings = Config(napoleon_use_rtype=False)
    found = str(NumpyDocstring(clean(text), settings, what=what))
    # methods of distributions have the same names on all their pages
    return re.sub(r"^(\.\. method:: .*)$", r"\1\n   :no-index:", found, flags=re.MULTILINE).splitlines()


def library(name: Name) -> tuple[str, str] | None:
    """Return the dotted name of NumPy's or SciPy's function of this name, and the address of its page."""
    for prefix, (package, address) in LIBRARIES.items():
        if name.space.startswith(prefix):
            dotted = package + name.full[len(prefix) :]
            return dotted, address.format(dotted)
    return None


@functools.cache
def _public() -> dict[int, list[str]]:
    """Return the names under which users find each thing, by its id."""
    found: dict[int, list[str]] = {}
    for name in everything():
        found.setdefault(id(name.thing), []).append(name.full)
    return found


_BARE = re.compile(r"(?<![\w.\"'])([A-Za-z]\w*)(?=\()|(?<=@)([A-Za-z]\w*)\b(?![.\w])")
_BOUND = re.compile(r"(?:\bdef |\bclass |\bfor |\bas |\blambda |, |^)([A-Za-z]\w*)(?=[^=(]*? = |\(.*\):$| in |:)")


def full_names(text: str, thing: Any, space: str) -> str:
    """Return a docstring whose examples name things as users do: ``fad.vmap(f)``, where its module has ``vmap(f)``."""
    modules = [sys.modules.get(name) for name in (getattr(thing, "__module__", None) or "", space)]
    if modules[0] is None or ">>>" not in text:
        return text
    lines = text.split("\n")
    code = [line.lstrip()[4:] for line in lines if line.lstrip().startswith((">>> ", "... "))]
    bound = {m for line in code for m in _BOUND.findall(line)}

    def named(found: re.Match) -> str:
        bare = found[0]
        meant = next((vars(m)[bare] for m in modules if m is not None and bare in vars(m)), None)
        full = [] if bare in bound else _public().get(id(meant), [])
        if not full:
            return bare
        best = min(full, key=lambda f: (not f.startswith(f"{space}."), len(f)))
        return re.sub(r"^fad\.eager\b", "torch", best)

    for i, line in enumerate(lines):
        if line.lstrip().startswith((">>> ", "... ")):
            lines[i] = _BARE.sub(named, line)
    return "\n".join(lines)


def summary(name: Name) -> str:
    """Return one line about a name."""
    text = clean(own_doc(name.thing))
    if text:
        line = " ".join(text.split("\n\n")[0].split())
        return line if len(line) < 160 else line[:157].rsplit(" ", 1)[0] + " …"
    same = library(name)
    return f"Does what ``{same[0]}`` does, on traced arrays too." if same else f"The operation ``{name.name}``."


def _rules(thing: Any, rows: dict[str, tuple]) -> str:
    row = rows.get(getattr(thing, "name", ""))
    if row is None:
        return ""
    _, kind, jvp, vjp, batch, lowering, _ = row
    compiled = f"; ``fad.jit`` compiles it as ``{lowering}``" if lowering else ""
    return (
        f"An operation of the kind *{kind}*. Rules: JVP {jvp}, VJP {vjp}, batching {batch}{compiled}. "
        "What the words mean is said in :doc:`the table of all operations </generated/operations>`.\n"
    )


def write_page(name: Name, rows: dict[str, tuple], repeated: bool = False) -> str:
    """Return the page of one name, in reStructuredText; `repeated` if the same thing has a page under another name."""
    index = ["   :no-index:"] if repeated else []
    heading = name.full
    lines = [":orphan:", "", heading, "=" * len(heading), ""]
    text = own_doc(name.thing)
    if isinstance(name.thing, type):
        lines += [f".. autoclass:: {name.full}", "   :members:", *index, "", *_inherited(name)]
    elif text and inspect.isroutine(name.thing):
        lines += [f".. autofunction:: {name.full}", *index, ""]
    else:
        lines += [
            f".. py:function:: {name.full}{signature(name)}" if callable(name.thing) else f".. py:data:: {name.full}",
            "",
        ]
        body = napoleon(full_names(text, name.thing, name.space), "function") if text else [summary(name)]
        lines += ["   " + line if line else "" for line in body] + [""]
    if rules := _rules(name.thing, rows):
        lines += [rules]
    if same := library(name):
        lines += [f"The same name in the library: `{same[0]} <{same[1]}>`__.", ""]
    lines += [
        f".. minigallery:: {name.full}",
        f"   :add-heading: Examples with {name.name}",
        "   :heading-level: -",
        "",
    ]
    lines += [f"All names of :doc:`{name.space} <{name.space}>`.", ""]
    return "\n".join(lines)


@functools.cache
def _classes() -> dict[int, Name]:
    return {id(n.thing): n for n in everything() if isinstance(n.thing, type)}


def _inherited(name: Name) -> list[str]:
    """Return a line that leads to the classes whose methods a class has too."""
    pages = _classes()
    bases = [pages[id(c)] for c in name.thing.__mro__[1:] if id(c) in pages]
    links = " and ".join(f":doc:`{n.full} <{n.page}>`" for n in bases)
    return [f"It has the methods of {links} as well.", ""] if bases else []


def signature(name: Name) -> str:
    same = library(name)
    candidates = [name.thing]
    if same:
        found: Any = importlib.import_module(same[0].partition(".")[0])
        for part in same[0].split(".")[1:]:
            found = getattr(found, part, None)
        candidates.insert(0, found)
    for candidate in candidates:
        try:
            text = str(inspect.signature(candidate))
        except (TypeError, ValueError):
            continue
        return text if len(text) < 120 and "<" not in text else "(...)"
    return "(...)"


def write_table(space: str, about: str, found: list[Name]) -> str:
    """Return the page of a namespace: a table of its names."""
    lines = [space, "=" * len(space), "", f"{about[0].upper()}{about[1:]}. {len(found)} names.", ""]
    lines += [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for name in found:
        line = summary(name).replace("|", "\\|")
        lines += [f"   * - :doc:`{name.name} <{name.page}>`", f"     - {line}"]
    return "\n".join([*lines, ""])


def write() -> int:
    """Write all pages; unchanged files are left alone, so that Sphinx does not read them again."""
    import runpy

    rows = {row[0]: row for row in runpy.run_module("fad.ops.__main__", run_name="operations")["rows"]()}
    OUT.mkdir(parents=True, exist_ok=True)
    pages: dict[str, str] = {}
    seen: set[int] = set()
    contents = []
    for caption, group in NAMESPACES.items():
        hidden = ["", f".. toctree::\n   :caption: {caption}\n   :hidden:\n   :maxdepth: 1", ""]
        contents += ["", caption, "-" * len(caption), ""]
        contents += [".. list-table::", "   :widths: 35 51 14", "   :class: names", ""]
        for space, about in group:
            found = names(space)
            pages[space] = write_table(space, about, found)
            hidden.append(f"   {space}")
            count = f"{len(found)} names" if len(found) > 1 else "1 name"
            contents += [f"   * - :doc:`{space}`", f"     - {about}", f"     - {count}"]
            for name in found:
                pages[name.page] = write_page(name, rows, id(name.thing) in seen)
                seen.add(id(name.thing))
        contents += hidden
    pages["index"] = "\n".join([*INDEX, *contents, ""])
    for old in OUT.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for page, text in pages.items():
        path = OUT / f"{page}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return len(pages)


INDEX = """\
API
===

A page for each public name, with its signature, what it computes, where its rules come from, and the examples that use
it. Examples suppose ``import numpy as np`` and ``import fad``, or, for ``fad.eager``, ``import fad.eager as torch``.
:doc:`/coverage` says what each library differentiates, :doc:`/generated/operations` where each rule comes from.
:doc:`/errors` has a wrong and a right program for each error.
""".splitlines()


def main() -> None:
    found = list(everything())
    count = write()
    missing = [n.full for n in found if not (OUT / f"{n.page}.rst").exists()]
    print(f"{len(found)} public names, {count} pages, {len(missing)} names without one")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
