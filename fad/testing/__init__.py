"""Testing derivatives: what fad's own rules must pass, for users' functions and rules too."""

from fad.core.samples import Call, Sampler, call
from fad.testing.gradcheck import check_grads
from fad.testing.numerical import numerical_jvp
from fad.testing.programs import SMOOTH, Program
from fad.testing.suite import CLAUSES, contract

__all__ = ["CLAUSES", "SMOOTH", "Call", "Program", "Sampler", "call", "check_grads", "contract", "numerical_jvp"]
