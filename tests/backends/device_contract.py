"""The contract of operations on a device: what they give there must be what NumPy gives, and must stay there.

Each sample of each operation is tried in double, single and complex precision: its value, its value under `vmap`, both
first derivatives, batched ones, second ones, and all of that compiled.
"""

import contextlib
import copy
import re
from pathlib import Path

import numpy as np
import scipy

import fad
import fad.nn
import fad.scipy.linalg
import fad.scipy.special  # enters its operations
from fad import tree
from fad.core.primitives.primitive import REGISTRY
from fad.testing.cases import cases, is_defined

DTYPES = {"double": np.float64, "single": np.float32, "complex": np.complex128}

NAMES = sorted(n for n in REGISTRY if not n.startswith("scipy.") or n.startswith("scipy.linalg."))  # others: the host


def read_known(path):
    """Return {"operation" or "operation dtype": reason}; a reason is the comment above a paragraph of names.

    Paragraphs about older versions of SciPy than the one installed are left out.
    """
    known, reason, fresh = {}, "", True
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line[1:].strip() if fresh else f"{reason} {line[1:].strip()}"
            fresh = False
        else:
            fresh = True
            for name in filter(None, (part.strip() for part in line.split(","))):
                assert name not in known, f"{name} stands twice in the list of known differences"
                known[name] = reason
    return {name: reason for name, reason in known.items() if not _is_past(reason)}


def _is_past(reason):
    """Return whether a reason is one of older versions of SciPy: "Before SciPy 1.18: ..."."""
    before = re.match(r"Before SciPy (\d+)\.(\d+):", reason)
    return before is not None and tuple(map(int, scipy.__version__.split(".")[:2])) >= tuple(map(int, before.groups()))


# Vectors that are determined but for a sign or phase, which each library chooses: their squares are compared.
FREE = {
    "eig", "eigh", "svd", "qr", "scipy.linalg.eig", "scipy.linalg.eigh", "scipy.linalg.svd", "scipy.linalg.qr",
    "scipy.linalg.orth",
}  # fmt: skip
# Vectors that are any orthonormal basis of a space: what is compared is the projection on it.
BASES = {"scipy.linalg.null_space"}
# Results whose order each library chooses, all of it or part: they are compared sorted.
UNORDERED = {
    "partition", "argpartition", "partial_order_along", "order_of_partition", "eig", "eigvals", "scipy.linalg.eig",
    "scipy.linalg.eigvals", "roots",
}  # fmt: skip
KNOWN = read_known(Path(__file__).parent / "known_differences.txt")
WAITING = read_known(Path(__file__).parent / "waiting.txt")


def tolerance(backend, dtype):
    if dtype == "single":
        return 1e-3 if backend.name == "cupy" else 1e-5
    return 1e-6 if backend.name == "cupy" else 1e-9


def assert_same(backend, device, host, within):
    assert len(device) == len(host)
    for d, h in zip(device, host, strict=True):
        h = np.asarray(h)
        if type(h.item() if h.ndim == 0 else h) is str or (h.ndim == 0 and type(d) in (int, float, bool)):
            assert d == h  # a size, a shape: plain numbers on both
            continue
        assert type(d) is backend.array_type, f"a result left the device as {type(d).__name__}"
        assert d.dtype == h.dtype, f"the dtype is {d.dtype}, NumPy's is {h.dtype}"
        assert d.shape == h.shape, f"the shape is {d.shape}, NumPy's is {h.shape}"
        scale = np.max(np.abs(h[np.isfinite(h)]), initial=0.0) if h.dtype.kind in "fc" else 0.0
        np.testing.assert_allclose(backend.to_host(d), h, rtol=within, atol=within * max(scale, 1.0))


def arrays(out):
    """Return the arrays and numbers of a result, flat."""
    return tuple(x for x in tree.leaves(out) if hasattr(x, "dtype") or type(x) in (bool, int, float, complex))


def smooth(out, free=False):
    """Return the floating-point and complex arrays of a result, flat; `free` of signs and phases, their squares."""
    found = tuple(x for x in arrays(out) if hasattr(x, "dtype") and x.dtype.kind in "fc")
    return tuple((x * np.conj(x)).real for x in found) if free else found


def _pulled(f, xs):
    ys, pullback = fad.vjp(f, *xs)
    return [*ys, *pullback(tree.map(np.ones_like, ys))]


def _pushed(f, xs):
    return list(fad.jvp(f, tuple(xs), tuple(np.ones_like(x) for x in xs))[1])


def _compiled(f, xs):
    g = fad.jit(f)
    g(*xs)
    return list(g(*xs))  # recorded, then replayed


def batch(xs):
    return [np.stack([x, x]) for x in xs]


# name -> function of (smooth function, its differentiable operands)
CLAUSES = {
    "batch": lambda f, xs: list(fad.vmap(f)(*batch(xs))),
    "jit": _compiled,
    "vjp": _pulled,
    "jvp": _pushed,
    "vmap of vjp": lambda f, xs: list(fad.vmap(lambda *xs: tuple(_pulled(f, xs)))(*batch(xs))),
    "jit of vjp": lambda f, xs: _compiled(lambda *xs: tuple(_pulled(f, xs)), xs),
    "second": lambda f, xs: _pushed(lambda *xs: tuple(_pulled(f, xs)), xs),
}
# What the host computes for a clause, where that is not the clause itself: the contract has it that jit gives what the
# plain function gives, and vmap of one operand twice gives it twice.
ON_THE_HOST = {"jit": "plain", "batch": "plain", "jit of vjp": "vjp", "vmap of vjp": "vjp"}


class Host:
    """What the clauses give on the host, each computed once for all that are compared with it."""

    def __init__(self, f, xs):
        self.f = f
        self.xs = xs
        self.found = {}

    def expected(self, clause):
        base = ON_THE_HOST.get(clause, clause)
        if base not in self.found:
            self.found[base] = list(self.f(*self.xs)) if base == "plain" else CLAUSES[base](self.f, self.xs)
        ys = self.found[base]
        return [np.stack([y, y]) for y in ys] if clause in ("batch", "vmap of vjp") else ys

    def refuses(self, clause):
        """Return whether the host has no answer either: there is no such derivative, or a batch that does not fit."""
        try:
            CLAUSES[clause](self.f, self.xs)
        except Exception:
            return True
        return False


def clauses(case, dtype):
    """Return the names of the clauses that are tried of a case; what is compiled, for each sample in one precision."""
    names = ["batch"]
    if case.number == 0 or (dtype == "double" and case.is_flat()):  # "jit of vjp" gives the value as well
        names += ["jit"]
    if not case.is_flat():
        names += ["vjp", "jvp"]
        if dtype == "double":
            names += ["vmap of vjp", "jit of vjp"] if case.number < 2 else []
            names += ["second"] if case.operation.order >= 2 and case.number == 0 else []
    return names


def drawn(operation, dtype):
    """Return the cases of an operation in a dtype; none where the operation does not know it."""
    kind = DTYPES[dtype]
    if dtype == "complex" and not operation.complex:
        return []
    found = cases(operation, kind, batch=1)
    if dtype == "double":
        return found
    return [c for c in found if any(x.dtype == kind for x in c.operands) and is_defined(c)]


def _comparable(case, out, found):
    """Return the arrays of a result in a form that all libraries agree on."""
    name = case.operation.name
    xs = smooth(out, free=True) if name in FREE else found(out)
    if name in BASES:
        return tuple(x @ np.conj(x).T for x in xs)
    if name.endswith("svd") and len(xs) == 3:
        u, s, vh = xs
        return _evened(u, s.shape[-1]), s, _evened(vh.swapaxes(-1, -2), s.shape[-1]).swapaxes(-1, -2)
    return tuple(np.sort(np.ravel(x)) for x in xs) if name in UNORDERED else xs


def _evened(squares, k):
    """Return the squares of vectors (..., m, n), with their mean in place of all from the k-th on.

    These, which complete the others to a whole basis, are any basis of the rest.
    """
    rest = squares[..., k:]
    if not rest.shape[-1]:
        return squares
    return np.concatenate([squares[..., :k], np.mean(rest, -1, keepdims=True) + np.zeros_like(rest)], -1)


def _partial(case, operands):
    """Return the operation as a function of its differentiable operands, among the operands given."""

    def f(*xs):
        full = list(operands)
        for k, x in zip(case.diff, xs, strict=True):
            full[k] = x
        return _comparable(case, case.call(case.function, *full), smooth)

    return f


def check(name, backend, dtype="double", still=contextlib.nullcontext):
    """Run every sample of an operation on the device, through every clause, beside the host; return how many ran.

    `still` makes a block in which copies to the host are forbidden: the device works inside it.
    """
    ran = 0
    for case in drawn(REGISTRY[name], dtype):
        placed = _placed(case, backend)
        if not any(type(x) is backend.array_type for x in (*placed.operands, *placed.leaves)):
            continue  # numbers alone: they live on the host
        host = _found(case)
        with still():
            device = _found(placed)
        assert_same(backend, device, host, tolerance(backend, dtype))
        ran += 1
        if case.diff:
            ran += _check_clauses(case, placed, backend, dtype, still)
        assert_unchanged(backend, placed.operands, case.operands)
    return ran


def assert_unchanged(backend, device, host):
    """Check that nobody wrote into the operands."""
    for d, h in zip(device, host, strict=True):
        np.testing.assert_array_equal(backend.to_host(d), np.asarray(h), "an operand was written into")


def judge(name, backend, dtype, still):
    """Run the contract of one operation, and return what is wrong with it or with the lists of what is known, or ''.

    An operation that is not known to wait must not copy to the host; one that is known to differ must do so.
    """
    if name in KNOWN or f"{name} {dtype}" in KNOWN:
        try:
            ran = check(name, backend, dtype)
        except Exception:
            return ""
        return f"{name} in {dtype} precision works now: take it off the list of known differences" if ran else ""
    if name not in WAITING and f"{name} {dtype}" not in WAITING:
        check(name, backend, dtype, still)
        return ""
    check(name, backend, dtype)
    if name in WAITING and dtype != "double":
        return ""  # it was asked in double precision
    try:
        check(name, backend, dtype, still)
    except Exception:
        return ""
    return f"{name} does not wait for the device: take it off the list of those that do"


def _placed(case, backend):
    """Return a case whose arrays live on the device."""
    placed = copy.copy(case)
    placed.operands = [backend.from_host(np.asarray(x)) for x in case.operands]
    placed.leaves = [backend.from_host(x) if isinstance(x, np.ndarray) else x for x in case.leaves]
    return placed


def _found(case):
    out = case.call(case.function, *case.operands)
    return _comparable(case, out, arrays)


def _check_clauses(case, placed, backend, dtype, still):
    """Run one sample on the device through every clause; return how many the host does not refuse."""
    host = Host(_partial(case, case.operands), [np.asarray(case.operands[k]) for k in case.diff])
    f, xs = _partial(placed, placed.operands), [placed.operands[k] for k in case.diff]
    ran = 0
    for clause in clauses(case, dtype):
        try:
            expected = host.expected(clause)
        except Exception:
            continue  # refused on the host
        try:
            with still():
                found = CLAUSES[clause](f, xs)
            assert_same(backend, found, expected, tolerance(backend, dtype))
        except Exception as error:
            if host.refuses(clause):
                continue
            raise AssertionError(f"{clause} of {case}: {type(error).__name__}: {error}") from error
        ran += 1
    return ran
