"""Every public name of the eager API has a sentence and PyTorch's signature, and says what differs."""

import importlib
import inspect
import types

import numpy as np
import pytest

import fad.eager as torch

PARTS = [
    "", ".nn", ".nn.functional", ".nn.init", ".nn.utils", ".nn.utils.rnn", ".optim", ".optim.lr_scheduler", ".autograd",
    ".autograd.functional", ".distributions", ".func", ".utils.data", ".utils.checkpoint",
]  # fmt: skip


def own(part):
    module = importlib.import_module(f"fad.eager{part}")
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    found = {n: getattr(module, n) for n in names}
    return {
        n: x
        for n, x in found.items()
        if callable(x)
        and not isinstance(x, types.ModuleType)
        and (getattr(x, "__module__", "") or "").startswith("fad")
    }


@pytest.mark.parametrize("part", PARTS)
def test_every_name_has_a_sentence_of_its_own(part):
    silent = []
    for name, thing in own(part).items():
        text = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
        if not (text or "").strip() or "of tensors, as NumPy or fad computes it" in text:
            silent.append(name)
    assert silent == []


@pytest.mark.parametrize("part", PARTS)
def test_no_signature_is_only_args_and_kwargs(part):
    hidden = []
    for name, thing in own(part).items():
        kinds = [p.kind for p in inspect.signature(thing).parameters.values()]
        if kinds == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
            hidden.append(name)
    assert hidden == []


def test_every_function_names_pytorchs_and_says_what_differs():
    functions = {n: x for n, x in own("").items() if inspect.isfunction(x)}
    assert [n for n, x in functions.items() if "``torch." not in x.__doc__] == []
    assert torch.cross.__doc__.endswith("without ``out=``. `dim` is the last axis unless it is given.")
    assert torch.absolute.__doc__.startswith("Return the absolute value of each element")
    assert str(inspect.signature(torch.addcmul)) == "(input, tensor1, tensor2, value=1.0)"


def test_layers_have_the_signatures_of_pytorchs_and_classes_of_users_their_own():
    assert list(inspect.signature(torch.nn.Flatten).parameters) == ["start_dim", "end_dim"]
    assert next(iter(inspect.signature(torch.nn.LazyLinear).parameters)) == "out_features"
    assert next(iter(inspect.signature(torch.nn.functional.glu).parameters)) == "input"

    class Scaled(torch.nn.Linear):
        def __init__(self, size):
            super().__init__(size, size)

    assert list(inspect.signature(Scaled).parameters) == ["size"]


SAMPLES = {"n": 1, "p": 2.0, "k": 1, "repeats": 2, "shifts": 1, "dim": 0, "q": 0.5, "maxnorm": 1.0, "row": 3, "col": 3}
MATRICES = {
    "cdist", "cholesky", "corrcoef", "cov", "det", "fliplr", "flipud", "inverse", "logdet", "matrix_exp",
    "matrix_power", "mm", "pinverse", "qr", "renorm", "rot90", "slogdet", "trace",
}  # fmt: skip
# They need operands that this test does not make.
ELSEWHERE = {
    "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "gcd", "lcm", "addbmm",
    "addmv", "addr", "baddbmm", "bmm", "mv", "complex", "polar", "polygamma", "mvlgamma", "take_along_dim", "tile",
    "acosh", "erfinv", "view_as_complex", "cross", "vander", "column_stack", "dstack", "hstack", "vstack",
    "tensordot",
}  # fmt: skip


def _lines():
    from fad.eager import signatures

    return [signatures._parse(line)[0] for line in signatures._LINES.strip().splitlines()]


@pytest.mark.parametrize("name", sorted(set(_lines()) - ELSEWHERE))
def test_a_function_takes_what_its_signature_says(name):
    fun = getattr(torch, name)
    x = torch.tensor(np.diag([0.5, 0.25, 0.75]) + 0.125 if name in MATRICES else [0.25, 0.5, 0.75], dtype=torch.float64)
    args, named = [], {}
    for parameter in inspect.signature(fun).parameters.values():
        if parameter.default is not parameter.empty:
            if parameter.kind != parameter.POSITIONAL_ONLY and parameter.name not in ("dim", "dtype"):
                named[parameter.name] = parameter.default
        else:
            args.append(SAMPLES.get(parameter.name, x.clone()))
    fun(*args, **named)
