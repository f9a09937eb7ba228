"""Every public name says what it does in a docstring whose examples run; what is exempt is listed with its reason."""

import doctest
import importlib
import inspect
import re
import types
import warnings

import numpy as np
import pytest

import fad
from fad.core.primitive import Primitive

MODULES = [
    "fad", "fad.numpy", "fad.numpy.linalg", "fad.numpy.fft", "fad.numpy.emath", "fad.scipy.special", "fad.scipy.linalg",
    "fad.scipy.stats", "fad.scipy.fft", "fad.scipy.integrate", "fad.scipy.interpolate", "fad.scipy.ndimage",
    "fad.scipy.optimize", "fad.scipy.signal", "fad.scipy.sparse", "fad.scipy.sparse.linalg",
    "fad.scipy.spatial.distance", "fad.nn", "fad.nn.functional", "fad.nn.init", "fad.optim",
    "fad.optim.schedules", "fad.sparse", "fad.random",
    "fad.data", "fad.tree",
]  # fmt: skip

# fad's own names that need no example or no parameters section, each with its reason.
EXEMPT: dict[str, str] = {}


def public_names(module):
    """Return fad's own public functions, classes and objects of a module: NumPy's own are documented there."""
    found = {}
    for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
        thing = getattr(module, name)
        origin = getattr(thing, "__module__", None) or type(thing).__module__
        own = origin.partition(".")[0] == "fad" and not name.startswith("document_")
        if own and not isinstance(thing, types.ModuleType):
            found[name] = thing
    return found


NAMES = {f"{m}.{name}": x for m in MODULES for name, x in public_names(importlib.import_module(m)).items()}


def takes_arguments(thing):
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return False
    return bool(parameters)


def wants(thing):
    """Return the sections that a docstring must have."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return []
    return ["example", "parameters", "returns"] if takes_arguments(thing) else ["example"]


def has(thing):
    text = inspect.getdoc(thing) or ""
    return [
        word
        for word, there in (
            ("example", ">>> " in text),
            ("parameters", "\nParameters\n---" in text or "\nMethods\n---" in text),
            ("returns", isinstance(thing, type) or "\nReturns\n---" in text),
        )
        if there
    ]


def count():
    """Return for each module how many names it has, and how many say what they must."""
    rows = {}
    for module in MODULES:
        names = public_names(importlib.import_module(module))
        wanted = [n for n in names if f"{module}.{n}" not in EXEMPT]
        rows[module] = (len(names), *(sum(w in has(names[n]) for n in wanted) for w in ("example", "parameters")))
    return rows


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_sentence_parameters_and_an_example(module):
    names = public_names(importlib.import_module(module))
    lacking = {n: set(wants(x)) - set(has(x)) for n, x in names.items() if f"{module}.{n}" not in EXEMPT}
    assert {n: sorted(ws) for n, ws in lacking.items() if ws} == {}
    assert [n for n, x in names.items() if not (inspect.getdoc(x) or "").strip()] == []


# Where every docstring is fad's own, and not completed by NumPy's or SciPy's page, which has other names for *args.
OWN = ["fad", "fad.nn", "fad.nn.functional", "fad.nn.init", "fad.optim", "fad.optim.schedules", "fad.random",
       "fad.data", "fad.tree", "fad.sparse", "fad.scipy.optimize", "fad.scipy.sparse", "fad.scipy.sparse.linalg",
       "fad.scipy.integrate", "fad.scipy.interpolate"]  # fmt: skip


def described(text):
    """Return the names before the colons of a parameters section."""
    section = re.search(r"\nParameters\n-+\n(.*?)(?=\n\n[A-Z]\w+\n---|\Z)", text, re.DOTALL)
    heads = [line.partition(" : ")[0] for line in (section[1] if section else "").splitlines() if line[:1] != " "]
    return set(re.findall(r"\w+", " ".join(heads)))


@pytest.mark.parametrize("module", OWN)
def test_a_parameters_section_names_every_parameter(module):
    lacking = {}
    for name, thing in public_names(importlib.import_module(module)).items():
        if "parameters" in wants(thing) and not isinstance(thing, Primitive):
            missing = set(inspect.signature(thing).parameters) - described(inspect.getdoc(thing) or "")
            lacking |= {name: sorted(missing)} if missing else {}
    assert lacking == {}


def test_the_list_of_exceptions_names_what_exists_and_needs_it():
    assert set(EXEMPT) <= set(NAMES)
    assert [n for n in EXEMPT if not set(wants(NAMES[n])) - set(has(NAMES[n]))] == []


def run_examples(name, thing):
    """Return the report of the examples of a docstring that fail, or ''; they know the names of its module."""
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    text = inspect.getdoc(thing) or ""
    own = vars(importlib.import_module(getattr(thing, "__module__", None) or type(thing).__module__))
    names = {**own, "np": np, "fad": fad}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=flags).run(test, out=said.append)
    return "".join(said)


@pytest.mark.parametrize("module", MODULES)
def test_every_example_of_a_public_name_runs_and_shows_what_is_written(module):
    seen, failed = set(), []
    for name, thing in public_names(importlib.import_module(module)).items():
        if id(thing) not in seen:
            seen.add(id(thing))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                failed.append(run_examples(f"{module}.{name}", thing))
    assert "".join(failed) == ""


if __name__ == "__main__":
    print(f"{'module':32} names  example  parameters   (of them exempt: {len(EXEMPT)})")
    for module, row in (rows := count()).items():
        print(f"{module:32} {row[0]:5} {row[1]:8} {row[2]:11}")
    print(f"{'all':32} {sum(r[0] for r in rows.values()):5} {sum(r[1] for r in rows.values()):8} "
          f"{sum(r[2] for r in rows.values()):11}")  # fmt: skip
