"""Every registered operation, jitted with each lowering, gives what it gives without jit; so do its derivatives."""

import all_of_fad
import numpy as np
import pytest
from each import each
from natively import alone, with_pullback

from fad import tree
from fad.compile.targets.select import has_llvm, using
from fad.core.primitives.primitive import REGISTRY, Primitive
from fad.jitting.jit import jit
from fad.testing.cases import cases

all_of_fad.load()
LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
SAMPLED = [name for name, operation in REGISTRY.items() if operation.samples is not None]


def agrees(got, wanted, single=False):
    got, got_tree = tree.flatten(got)
    wanted, wanted_tree = tree.flatten(wanted)
    assert got_tree == wanted_tree
    for a, b in zip(got, wanted, strict=True):
        if not all(isinstance(y, (np.ndarray, np.generic)) for y in (a, b)):  # one is Python's number, and one NumPy's
            if not isinstance(b, (float, complex)):
                assert a == b
                continue
            a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        single = single or b.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(a, b, rtol=1e-4 if single else 1e-10, atol=1e-5 if single else 1e-11)


def jit_agrees(case, program, single=False):
    fast, wanted = jit(program), program(*case.operands)
    for _ in range(3):  # recorded, compiled, run again in the same memory
        agrees(fast(*case.operands), wanted, single)


# SciPy deprecates degrees that are no integers, and says where logm may be inaccurate.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@each("lowering", LOWERINGS)
@pytest.mark.parametrize("name", SAMPLED)
def test_an_operation_and_its_pullback_are_the_same_under_jit(name, lowering):
    operation = REGISTRY[name]
    with using(lowering), np.errstate(all="ignore"):
        # What NumPy's calls give for the other samples, test_numpy_printer.py sees: there they are written as a text.
        # A composite is a formula of primitives, each of which is compiled for all of its own samples.
        alone_compiled = isinstance(operation, Primitive)
        few = int(alone_compiled) if lowering == "numpy" else None if alone_compiled else 2
        for case in cases(operation, batch=1)[:few]:
            jit_agrees(case, with_pullback(case) if case.diff else alone(case))
        # Native code depends on the dtype; NumPy's calls are those that the contract makes.
        if lowering == "llvm" and alone_compiled:
            case = cases(operation, np.float32, batch=1)[0]
            jit_agrees(case, alone(case), operation.rounding == "single")  # as the contract has it
