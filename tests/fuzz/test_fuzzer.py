"""The fuzzer finds what is wrong, says nothing about what is right, and shrinks what it found."""

import ast

import numpy as np
import pytest

from .campaign import CHECKS, Finding, examine, explained_by_rounding
from .compare import observe
from .generate import generate
from .kinds import KINDS
from .known import known
from .program import Program, evaluate, literal
from .rounding import depends_on_rounding, rounded_otherwise
from .shrink import inlined_names, shrink

RIGHT = Program("def f(x):\n    return np.sin(x) * x, x.sum()\n", ("np.array([0.5, -1.0, 2.0])",))


@pytest.mark.parametrize("check", CHECKS)
def test_no_check_objects_to_a_right_program(check):
    assert examine(RIGHT, check)[0] in ("same", "skipped")


def test_a_number_stays_a_number_for_a_sparse_derivative():
    program = program_with("def f(x):\n    return round(x, 1) * x\n", "np.float64(1.0)")
    assert examine(program, "sparse jacobian")[0] == "same"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_a_seed_gives_one_program_that_runs(kind, seed):
    program = generate(seed, kind)
    assert program == generate(seed, kind)
    names = {}
    exec("import numpy as np\n" + program.script(), names)
    names["f"](*names["arguments"])


def program_with(source, *arguments):
    return Program(source, arguments or ("np.array([0.5, -1.0, 2.0])",))


WRONG = '''
import fad
double = fad.custom_jvp(lambda v: v * v)
double.defjvp(lambda primals, tangents: (primals[0] * primals[0], primals[0] * tangents[0]))


def f(x):
    a = np.sin(x) + 1
    if a[0] > 0:
        b = double(a)
    c = np.sum(b)
    return a, c
'''


def test_a_wrong_rule_is_found_and_shrunk_to_its_line():
    program = program_with(WRONG)
    outcome, message = examine(program, "differences")
    assert outcome == "finding"
    assert "the slope beside differences" in message
    small = shrink(program, "differences")
    body = next(n for n in ast.parse(small.source).body if isinstance(n, ast.FunctionDef))
    assert len(body.body) <= 3
    assert "double(" in ast.unparse(body)
    assert "sin" not in small.source


def test_a_call_that_writes_into_its_argument_only_when_it_is_plain_is_found():
    source = "def f(x):\n    if type(x) is np.ndarray:\n        x[0] = 7\n    return x * 2\n"
    assert examine(program_with(source), "value under jvp")[0] == "finding"


def test_another_exception_is_found():
    source = "def f(x):\n    if type(x) is not np.ndarray:\n        raise KeyError('traced')\n    return x * 2\n"
    outcome, message = examine(program_with(source), "vmap")
    assert outcome == "finding"
    assert "KeyError" in message


def test_what_hangs_on_a_tie_is_explained_by_rounding():
    source = "def f(x):\n    return np.sort(x)\n"
    program = program_with(source, "np.array([1.0, 1.0, 2.0])")
    assert explained_by_rounding(program, "differences", 0)
    assert examine(program, "differences")[0] != "finding"


def test_a_jump_at_a_rounded_number_is_explained_by_rounding():
    source = "def f(x):\n    a = np.logspace(x[0] * 0.3, 0.5, 3)\n    b = np.modf(a * a)[0]\n    return {}\n"
    assert depends_on_rounding(program_with(source.format("b")), gradients=False)
    assert depends_on_rounding(program_with(source.format("np.where(b > 0.5, x, 2 * x)")), gradients=True)
    assert not depends_on_rounding(program_with(source.format("a * b[0]")), gradients=True)


def test_a_program_that_rounds_otherwise_writes_into_the_same_arrays():
    writes = "    y = x[1:]\n    np.sum(x, out=y[:1], keepdims=True)\n    y += np.exp(x[:2])\n"
    program = program_with(f"def f(x):\n{writes}    return x.sum() ** 3\n")
    wanted, got = (
        observe(p.world().f, p.world(), evaluate(p.arguments)) for p in (program, rounded_otherwise(program, 0))
    )
    np.testing.assert_allclose(got.outputs, wanted.outputs, rtol=1e-14)
    np.testing.assert_allclose(got.arguments[0], wanted.arguments[0], rtol=1e-14)
    assert got.outputs != wanted.outputs


def test_differences_say_nothing_of_small_steps_on_a_slope():
    source = "def f(x):\n    return 40 * x + 1e-5 * np.floor(x * 1e4)\n"
    assert examine(program_with(source), "differences")[0] == "skipped"


def test_differences_say_nothing_of_steps_finer_than_their_own():
    source = "def f(x):\n    return np.rint(x * 1e7)\n"
    assert examine(program_with(source), "differences")[0] == "skipped"


def test_differences_say_nothing_of_another_program_in_double_precision():
    source = "def f(x):\n    y = x.astype(float, copy=False)\n    x[0] = 7 * y[1]\n    return x[0] * y\n"
    outcome, message = examine(program_with(source, "np.array([0.5, -1.0, 2.0], np.float32)"), "differences")
    assert outcome == "skipped", message


def test_a_finding_prints_a_module_that_runs():
    text = str(Finding(RIGHT, "jit", "two\nlines"))
    names = {}
    exec(text, names)
    np.testing.assert_array_equal(names["f"](*names["arguments"])[1], 1.5)


@pytest.mark.parametrize(
    "x",
    [
        1.5, 2, True, 1 + 2j, np.float32(0.1), np.float64(2), np.array(1.0), np.zeros((0, 2), "f4"), np.arange(3),
        np.array([True]), np.array([0.1], "f4"), np.array([1j]),
    ],
)  # fmt: skip
def test_a_literal_gives_the_value_back(x):
    (y,) = evaluate([literal(x)])
    assert type(y) is type(x)
    assert np.asarray(y).dtype == np.asarray(x).dtype
    np.testing.assert_array_equal(x, y)


def test_a_program_that_overwrites_its_argument_meets_an_infinite_partial():
    source = "def f(x):\n    x //= 0.5\n    return np.cbrt(x + 3)\n"
    program = program_with(source, "np.array([-1.0, 0.5, -1.5])")
    assert known(program, "jacobian", "nan is wanted, not 0.0")


def test_a_statement_that_stands_alone_is_not_put_into_itself():
    source = "def f(x):\n    c = x\n    for k in range(2):\n        c = c * x\n    return c\n"
    assert list(inlined_names(program_with(source, "1.5")))


def test_an_inverse_that_consists_of_rounding_is_known_as_such():
    message = "the slope of reverse mode beside forward mode: 0.0 is wanted, not -10.1"
    source = "def f(y):\n    return np.linalg.slogdet(np.linalg.outer(y, y) + {} * np.eye(3))[1]\n"
    argument = "np.array([1.074, 0.324, -1.132], np.float32)"
    assert known(program_with(source.format(0.0), argument), "modes", message)
    assert not known(program_with(source.format(1.0), argument), "modes", message)


def test_a_loop_that_lost_its_end_is_no_smaller_program(monkeypatch):
    monkeypatch.setattr("tests.fuzz.shrink._SECONDS", 1)
    loop = "    k = 2\n    while k > 0:\n        k -= 1\n        x = x + 1\n"
    source = f"def f(x):\n{loop}    if type(x) is not np.ndarray:\n        x = x * 2\n    return x\n"
    small = shrink(program_with(source), "value under jvp", rounds=1)
    assert "while k" not in small.source or "k -= 1" in small.source
