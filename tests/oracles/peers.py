"""The same sample calls in another library: what the tests against JAX, PyTorch and HIPS autograd share.

A `Peer` is compared on an operation: does it have one of that name, does it take the samples, and are its value, its
gradient, its forward derivative and its second derivative those of fad? `benchmarks/operation_coverage.py` makes the
table of the documentation from the answers.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import fad
from fad.core.primitives.primitive import REGISTRY
from fad.testing.cases import cases
from fad.testing.gradcheck import random_like

SPACES = {"": np, "linalg.": np.linalg, "fft.": np.fft, "emath.": np.emath}
# Operations of fad's own that other libraries have under names of their own.
OWN = [
    "conv", "conv_transpose", "max_pool", "avg_pool", "top_k", "sigmoid", "relu", "softmax_over", "log_softmax_over",
]  # fmt: skip
STAGES = ("value", "gradient", "forward", "second")
YES, SOME, NO, NAN, WRONG = "yes", "some", "no", "NaN", "wrong"


PARTS = ("special", "linalg", "stats", "integrate", "signal", "ndimage", "interpolate", "fft", "spatial")


def operations(parts: tuple = PARTS) -> dict[str, Any]:
    """Return ``{path: operation}`` for every public operation: NumPy's by their paths below numpy, and SciPy's."""
    special = importlib.import_module("fad.scipy.special")
    for part in parts:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"fad.scipy.{'spatial.distance' if part == 'spatial' else part}")
    integrate = importlib.import_module("fad.scipy.integrate")
    importlib.import_module("fad.nn.functional")
    found = {}
    for name, operation in REGISTRY.items():
        if name.count(".") > 1 and name.split(".")[1] not in parts:
            continue
        for f in operation.numpy:
            for prefix, space in SPACES.items():
                if type(f) is not list and getattr(space, getattr(f, "__name__", ""), None) is f:
                    found.setdefault(prefix + f.__name__, operation)
        if name.startswith("special.") and hasattr(special, name.removeprefix("special.")):
            found.setdefault(f"scipy.{name}", operation)
        elif name in OWN or (name.startswith("scipy.") and name.count(".") > 1):
            found.setdefault(name, operation)
        elif hasattr(integrate, name.removeprefix("scipy.")):  # sums of samples, which scipy.integrate gives
            found.setdefault(name.replace("scipy.", "scipy.integrate."), operation)
    return found


def shown(path: str) -> str:
    """Return the path as the table of the documentation prints it."""
    return path.removeprefix("scipy.special.").removeprefix("scipy.stats.").removesuffix("_over")


def lookup(space: Any, path: str) -> Any:
    """Return the function of that dotted path in a library's namespace, or None."""
    for part in path.split("."):
        space = getattr(space, part, None)
        if space is None:
            return None
    return space


class Reference:
    """What fad gives for a function, in one direction: value, gradient, forward and second derivative."""

    def __init__(self, f: Callable, points: tuple, value: tuple, tolerances: tuple, seed: int):
        rng = np.random.default_rng(seed)
        self.f = f
        self.value = value
        self.points = points
        self.tolerances = tolerances  # of the first derivatives and of the second
        self.ts = tuple(random_like(x, rng) for x in points)
        self.cts = tuple(random_like(y, rng) for y in value)

    def derivatives(self) -> dict:
        f = self.f
        pulled = lambda *xs: fad.vjp(f, *xs)[1](self.cts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {"gradient": pulled(*self.points), "forward": fad.jvp(f, self.points, self.ts)[1]}
            try:
                found["second"] = fad.jvp(pulled, self.points, self.ts)[1]
            except fad.errors.FadError:
                found["second"] = None
        return found


class Peer:
    """Another library. A subclass says how it finds a function, calls it on a sample, and differentiates.

    ``different`` says where it gives other derivatives, and why; the contract has compared fad's with differences of
    values. ``not_comparable`` says which functions of the same name do not take fad's samples, and why.
    """

    name = ""
    different: dict[str, str] = {}
    not_comparable: dict[str, str] = {}

    def find(self, path: str) -> Callable | None:
        raise NotImplementedError

    def function(self, case: Any, function: Callable) -> Callable:
        """Return the sample as the library's function of the differentiated operands; it returns a tuple."""
        raise NotImplementedError

    def value(self, f: Callable, points: tuple) -> tuple:
        raise NotImplementedError

    def derivative(self, stage: str, f: Callable, reference: Reference) -> tuple:
        """Return the gradient, forward or second derivative as NumPy arrays in fad's convention."""
        raise NotImplementedError

    def rest(self) -> None:
        """Let go of what piles up while many operations are compared."""

    def try_operation(self, path: str, operation: Any, limit: int = 3) -> dict[str, str] | str:
        """Return ``{stage: answer}`` over the samples that the library takes, or why it was not compared.

        An answer is "yes", "some" (of the samples; the others raise), "no" (an error), "NaN", or "wrong" with numbers.
        """
        function = self.find(path)
        if function is None:
            return "absent"
        answers: dict[str, str] = {}
        reason = "its samples have no floating-point operand"
        taken = 0
        for case in cases(operation, np.float64):
            value = case.smooth(*case.operands)
            if taken == limit or (not value and operation.flat is not True):
                continue
            tolerances = _tolerances(*value, *case.points)
            reference = Reference(case.of(case.diff), case.points, value, tolerances, case.number)
            f = self.function(case, function)
            try:
                value = self.value(f, reference.points)
            except Exception as error:
                reason = f"another call: {type(error).__name__}: {str(error).strip()[:60]}"
                continue
            if not same_values(reference.value, value):
                reason = "another value: " + ", ".join(f"{v.dtype}{list(v.shape)}" for v in map(np.asarray, value))[:60]
                continue
            taken += 1
            answers["value"] = YES
            if case.differentiable():
                self._differentiate(f, reference, answers)
        return answers or reason

    def try_program(self, program: Any) -> dict[str, str] | str:
        """Return the same answers about a program of `solvers`."""
        if self.name not in program.others:
            return "absent"
        ours = lambda *xs: (program.fad(*xs),)
        reference = Reference(ours, program.points, ours(*program.points), program.tolerances, 0)
        theirs = program.others[self.name](self)
        f = lambda *xs: (theirs(*xs),)
        try:
            value = self.value(f, reference.points)
        except Exception as error:
            return f"another call: {type(error).__name__}: {str(error).strip()[:100]}"
        if not same_values(reference.value, value):
            return f"another value: {value} and not {reference.value}"
        answers = {"value": YES}
        self._differentiate(f, reference, answers)
        return answers

    def _differentiate(self, f: Callable, reference: Reference, answers: dict) -> None:
        ours = reference.derivatives()
        if not any(np.any(np.asarray(c)) for c in ours["gradient"]):
            return  # a derivative that is 0 here tells nothing of one that is forgotten
        for stage, wanted in ours.items():
            if wanted is None:
                continue
            try:
                got = self.derivative(stage, f, reference)
            except Exception as error:  # it has no rule, or not for this call
                answer = f"{NO}: {type(error).__name__}: {str(error).strip()[:100]}"
            else:
                answer = compared(got, wanted, reference.tolerances[stage == "second"])
            answers[stage] = together(answers.get(stage, answer), answer)


def _tolerances(*xs: Any) -> tuple[float, float]:
    single = any(np.asarray(x).dtype in (np.float32, np.complex64) for x in xs)
    return (1e-5, 1e-5) if single else (1e-8, 1e-7)


def together(a: str, b: str) -> str:
    """Return the answer for two samples."""
    for what in (WRONG, NAN, SOME):
        for answer in (a, b):
            if answer.startswith(what):
                return answer
    if (a == YES) == (b == YES):
        return a
    return SOME + (a if b == YES else b).removeprefix(NO)


def compared(got: tuple, wanted: tuple, tolerance: float) -> str:
    """Say whether two derivatives agree; a real operand takes the real part of what a library forgets to drop."""
    answer = YES
    if len(got) != len(wanted):
        return f"{NO}: it loses the traced values"
    for g, w in zip(got, wanted, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        g = g if w.dtype.kind == "c" else g.real
        if g.shape != w.shape:
            return f"{WRONG}: the shape is {g.shape} and not {w.shape}"
        if np.isnan(g).any() and not np.isnan(w).any():
            return NAN
        if not np.allclose(g, w, rtol=tolerance, atol=tolerance, equal_nan=True):
            answer = f"{WRONG}: {g.ravel()[:3]} and not {w.ravel()[:3]}"
    return answer


def same_values(wanted: tuple, got: tuple) -> bool:
    """Return whether another library computes the same thing for this call; names alone do not say so."""
    if len(wanted) != len(got):
        return False
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(wanted, got, strict=True)]
    return all(
        a.dtype.kind == b.dtype.kind and a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)
        for a, b in pairs
    )


def placed(case: Any, xs: Any, convert: Callable) -> list:
    """Return the operands of a sample in a library's arrays, the differentiated ones given."""
    operands = [convert(x) for x in case.operands]
    for k, x in zip(case.diff, xs, strict=True):
        operands[k] = x
    return operands


def check(peer: Peer, path: str, operation: Any) -> None:
    """Assert that a library agrees, or differs where a reason is written down; and that it was compared at all."""
    _judge(peer, path, peer.try_operation(path, operation))


def check_program(peer: Peer, path: str, program: Any) -> None:
    """Assert the same of a program of `solvers`."""
    _judge(peer, path, peer.try_program(program))


def _judge(peer: Peer, path: str, answer: dict | str) -> None:
    if isinstance(answer, str):
        assert path in peer.not_comparable, f"{path} was not compared with {peer.name} ({answer}), for no given reason"
        return
    assert path not in peer.not_comparable, f"{path} is compared with {peer.name} now: take it out of `not_comparable`"
    wrong = {stage: text for stage, text in answer.items() if text.startswith((WRONG, NAN))}
    if path in peer.different:
        assert wrong, f"{path} agrees with {peer.name} now: take it from the list of differences"
    else:
        assert not wrong, f"{path} differs from {peer.name}: {wrong}"


def shared(peer: Peer) -> dict[str, Any]:
    """Return the operations that a library has a function of the same name for."""
    return {path: operation for path, operation in operations().items() if peer.find(path) is not None}
