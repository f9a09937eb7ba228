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
from fad.core.primitives.primitive import Primitive

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

# Names without errors of their own, with the reason; what every function raises (a TypeError for what is no array, what
# a function that is given raises) is not said of each.
RAISES_NOTHING = {
    "is elementwise, and defined for every number": """
        fad.numpy: angle i0 imag isreal iscomplex real real_if_close sinc
        fad.numpy.emath: sqrt log log2 log10 arccos arcsin arctanh
        fad.nn: CELU ELU SELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid Mish ReLU ReLU6
        fad.nn: SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink Threshold
        fad.nn.functional: celu elu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid logsigmoid mish
        fad.nn.functional: relu relu6 selu sigmoid silu softplus softshrink softsign tanh tanhshrink threshold
        fad.optim: clip_by_value
        fad.scipy.signal: sawtooth square
    """,
    "takes arrays of any shape": """
        fad.numpy: argwhere array_equal array_equiv at atleast_1d atleast_2d atleast_3d flatnonzero
        fad.numpy: intersect1d kron outer polydiv polyval setdiff1d setxor1d union1d
        fad.numpy: unique_all unique_counts unique_inverse unique_values
        fad.scipy.linalg: block_diag circulant fiedler hankel toeplitz
        fad.scipy.fft: fht ifht
        fad.nn: AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        fad.nn: AdaptiveMaxPool3d Buffer Flatten Parameter
        fad.nn.init: eye
        fad.random: philox
    """,
    "raises what the function that it is given does": """
        fad: eval_shape
        fad.scipy.integrate: dblquad tplquad
        fad.scipy.optimize: LinearConstraint fixed_point
    """,
    "takes any tree": """
        fad: device_get stop_gradient
        fad.scipy.sparse: block_diag find issparse kron spdiags tril triu
        fad.tree: flatten flatten_with_path leaves norm ravel scale structure zeros_like
    """,
    "is an object or an error, whose methods say what they raise": """
        fad: ShapeDtypeStruct
        fad.scipy.stats: dirichlet multivariate_normal multivariate_t wishart
        fad.scipy.sparse: SparseArray
        fad.nn: LabelError StateDictError TransformerDecoder TransformerEncoder
        fad.optim: History NonFiniteLossError
    """,
    "is made of numbers, which are not checked": """
        fad: doctor
        fad.nn: seed
        fad.nn.init: seed
        fad.optim.schedules: constant linear cosine exponential step_decay warmup one_cycle
    """,
}

# Where every name answers for one of NumPy's, SciPy's or PyTorch's, or computes a published formula.
SOURCED = [m for m in MODULES if m not in ("fad", "fad.sparse", "fad.data", "fad.tree", "fad.optim.schedules")]
WITHOUT_SOURCE = {
    "is fad's own": """
        fad.numpy: at put_along_axis top_k vectorize
        fad.scipy.sparse: SparseArray from_scipy matmul
        fad.nn: LabelError StateDictError seed
        fad.nn.init: seed next_key fans
        fad.optim: History NonFiniteLossError Optimizer check_finite fit sharded
    """,
    "is the definition": """
        fad.numpy: c_ r_
        fad.nn.functional: relu sigmoid avg_pool max_pool attention_weights
        fad.nn.init: constant dirac eye normal ones orthogonal trunc_normal uniform zeros calculate_gain
        fad.optim: clip_by_value global_norm
        fad.random: bernoulli cauchy choice exponential gumbel laplace logistic multivariate_normal normal permutation
        fad.random: poisson rademacher randint t truncated_normal uniform
    """,
}


def listed(groups):
    """Return the full names of a list of exceptions."""
    rows = [row.split() for text in groups.values() for row in text.strip().splitlines()]
    return [f"{module.removesuffix(':')}.{name}" for module, *names in rows for name in names]


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
            ("raises", "\nRaises\n---" in text),
            ("source", "\nReferences\n---" in text or re.search(r"\b(1[89]|20)\d\d\)", text)),
        )
        if there
    ]


WORDS = ("example", "parameters", "raises", "source")


def count():
    """Return for each module how many names it has, and how many say what they must."""
    rows = {}
    for module in MODULES:
        names = public_names(importlib.import_module(module))
        wanted = [n for n in names if f"{module}.{n}" not in EXEMPT]
        rows[module] = (len(names), *(sum(w in has(names[n]) for n in wanted) for w in WORDS))
    return rows


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_sentence_parameters_and_an_example(module):
    names = public_names(importlib.import_module(module))
    lacking = {n: set(wants(x)) - set(has(x)) for n, x in names.items() if f"{module}.{n}" not in EXEMPT}
    assert {n: sorted(ws) for n, ws in lacking.items() if ws} == {}
    assert [n for n, x in names.items() if not (inspect.getdoc(x) or "").strip()] == []


# Where anything is taken or returned: `jit` gives a decorator as well, what describes a tree is an object of optree's,
# and a reduction returns what its function does.
ANYTHING = {
    "fad.jit.return", "fad.tree.reduce.return", "fad.tree.structure.return", "fad.tree.transpose.inner",
    "fad.tree.transpose.outer", "fad.tree.unflatten.treedef",
}  # fmt: skip


def test_signatures_say_what_is_taken_and_returned():
    found, others = set(), (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    # Functions of NumPy's and SciPy's names have their signatures, which say nothing of types.
    for module in [m for m in MODULES if not m.startswith(("fad.numpy", "fad.scipy"))]:
        for name, thing in public_names(importlib.import_module(module)).items():
            if inspect.isfunction(thing) or isinstance(thing, type):
                signature = inspect.signature(thing)
                said = {p.name: p.annotation for p in signature.parameters.values() if p.kind not in others}
                if not isinstance(thing, type):
                    said["return"] = signature.return_annotation
                found |= {f"{module}.{name}.{n}" for n, a in said.items() if a in ("Any", inspect.Parameter.empty)}
    assert found == ANYTHING, "say ArrayLike, Array or PyTree: see fad/typing.py"


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_says_what_it_raises_but_those_of_which_there_is_nothing_to_say(module):
    names = public_names(importlib.import_module(module))
    silent = {f"{module}.{n}" for n, x in names.items() if "raises" not in has(x)}
    assert silent == {n for n in listed(RAISES_NOTHING) if n.rpartition(".")[0] == module}


@pytest.mark.parametrize("module", SOURCED)
def test_every_public_name_of_a_formula_says_where_it_stands(module):
    names = public_names(importlib.import_module(module))
    silent = {f"{module}.{n}" for n, x in names.items() if "source" not in has(x)}
    assert silent == {n for n in listed(WITHOUT_SOURCE) if n.rpartition(".")[0] == module}


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
    rows = count()
    print(f"{'module':32} {'names':>10} " + " ".join(f"{word:>10}" for word in WORDS))
    for module, row in [*rows.items(), ("all", [sum(column) for column in zip(*rows.values(), strict=True)])]:
        print(f"{module:32} " + " ".join(f"{n:10}" for n in row))
