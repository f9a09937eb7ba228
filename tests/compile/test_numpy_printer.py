"""What `fad.source` prints for each operation and its derivative runs, and gives what fad gives."""

import warnings

import all_of_fad
import numpy as np
import pytest
from each import each
from natively import alone, with_pullback

import fad
from fad import tree
from fad.compile.targets.select import using
from fad.core.primitives.primitive import REGISTRY, Primitive
from fad.errors import MissingRuleError
from fad.testing.cases import cases

all_of_fad.load()
SAMPLED = [name for name, operation in REGISTRY.items() if operation.samples is not None]
FAMILIES = {}
for _name in SAMPLED:
    FAMILIES.setdefault(_name.rpartition(".")[0], []).append(_name)
# Of these it says that it cannot, for what they read besides arrays: a sparse pattern, a table, fad's own backends.
UNWRITTEN = ("scipy.", "special.", "matrix_", "random_", "cross_entropy_of_logits", "checked_labels")


def check_sources(name):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # A composite is a formula of primitives, each of which is written for all of its own samples.
        few = None if isinstance(REGISTRY[name], Primitive) else 2
        for case in cases(REGISTRY[name], np.float64, batch=1)[:few]:
            program = with_pullback(case) if case.diff else alone(case)
            try:
                text = fad.source(program)(*case.operands)
            except MissingRuleError:
                assert name.startswith(UNWRITTEN)
                continue
            space = {}
            exec(text, space)
            found = space["program"](*tree.leaves(case.operands))
            wanted = tree.leaves(program(*case.operands))
            for a, b in zip(found if isinstance(found, tuple) else [found], wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family or "numpy")
def test_the_source_of_an_operation_and_its_pullback_computes_them(family):
    each("name", FAMILIES[family])(check_sources)()


@pytest.mark.parametrize(
    "f", [lambda x: np.copysign(x, np.array([0.0, -0.0])), lambda x: np.copysign(1.0, (-0.0) ** x)]
)
def test_the_source_keeps_the_signs_of_zeros(f):
    x = np.array([1.0, 2.0])
    space = {}
    exec(fad.source(f)(x), space)
    np.testing.assert_array_equal(space["program"](x), f(x))
    with using("numpy"):
        fast = fad.jit(f)
        fast(x)
        np.testing.assert_array_equal(fast(x), f(x))


WRONG = ["", "my program", "f(x)", "1f", "f.g", "a\nimport os", "f(a):\n    pass\ndef g", "__debug__", 3, b"f", ("f",)]


@pytest.mark.parametrize("name", WRONG)
def test_the_name_in_a_source_is_an_identifier(name):
    with pytest.raises(ValueError, match=r"must be an identifier, as 'program'; .* is no identifier"):
        fad.source(np.sin, name=name)


@pytest.mark.parametrize("name", ["def", "class", "None", "True", "lambda", "async"])
def test_the_name_in_a_source_is_no_keyword(name):
    with pytest.raises(ValueError, match=f"must be an identifier, as 'program'; '{name}' is a keyword of Python's"):
        fad.source(np.sin, name=name)


def grown(x):
    return fad.fori_loop(0, 3, lambda i, y: y * np.where(y > i, x, fad.nn.functional.softplus(y)), x)


@pytest.mark.parametrize("name", ["np", "range"])
def test_a_name_that_the_text_has_for_something_else_is_refused(name):
    with pytest.raises(ValueError, match=f"the name '{name}' for something else: call fad.source with another name="):
        fad.source(grown, name=name)(np.ones(2))


@pytest.mark.parametrize("name", [None, "a", "d", "f", "_", "match", "größe", "sum", "gradient_of_loss"])
def test_a_source_with_a_name_of_its_own_runs(name):
    space = {}
    x = np.array([0.5, 2.0])
    exec(fad.source(grown, name=name)(x), space)
    np.testing.assert_allclose(space[name or "program"](x), grown(x))
