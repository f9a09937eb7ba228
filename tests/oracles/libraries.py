"""JAX, PyTorch and HIPS autograd as `Peer`s; a module that is not installed fails when its class is made."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .peers import Peer, lookup, placed

TRIANGLE = "it differentiates a function of one triangle; fad, at a Hermitian matrix, among Hermitian matrices"
SETS = "it drops the derivative of a set's values; fad follows each value to where it stands in the argument"
PHASE = "it is no derivative of NumPy's eigenvectors, which have length 1 and a real largest component"
SIGN = "it calls the sign of complex numbers flat; it is z / abs(z), which turns with z"


class Jax(Peer):
    name = "JAX"
    different = {
        **dict.fromkeys(["intersect1d", "setdiff1d", "setxor1d", "union1d"], SETS),
        **dict.fromkeys(["unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"], SETS),
        "arange": "its ends have no derivative there; fad's start and step have one",
        "sign": SIGN,
        "scipy.linalg.cholesky": TRIANGLE,
        "scipy.special.spence": "NaN at 1",
        "scipy.special.hyp1f1": "NaN in its parameters",
    }
    not_comparable = {
        "roots": "it takes no list", "partition": "it takes no axis=None",
        "scipy.linalg.eigh": "it has no generalised problem",
        "scipy.linalg.sqrtm": "it is complex for every matrix",
        "scipy.linalg.cho_factor": "it fills the other triangle differently",
        "scipy.stats.vonmises.logpdf": "it has no loc and scale",
        "scipy.stats.vonmises.pdf": "it has no loc and scale",
        "scipy.interpolate.RegularGridInterpolator": "a class, called in two steps",
        "scipy.stats.gaussian_kde": "a class, called in two steps",
    }  # fmt: skip

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.jnp = importlib.import_module("jax.numpy")
        for part in ("special", "linalg", "integrate", "stats", "fft"):
            importlib.import_module(f"jax.scipy.{part}")
        self.version = self.jax.__version__
        self.last: tuple = (None, {})

    def rest(self):
        self.jax.clear_caches()

    def try_operation(self, path, operation, limit=3):
        with self._double():
            return super().try_operation(path, operation, limit)

    def try_program(self, program):
        with self._double():
            return super().try_program(program)

    @contextlib.contextmanager
    def _double(self):
        """Compute in double precision, which JAX needs a setting for."""
        before = self.jax.config.jax_enable_x64
        self.jax.config.update("jax_enable_x64", True)
        try:
            yield
        finally:
            self.jax.config.update("jax_enable_x64", before)

    def find(self, path):
        jax = self.jax
        own = {
            "conv": self._conv, "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid,
            "top_k": lambda x, k: tuple(jax.lax.top_k(x, k)),
            "softmax_over": lambda x, axis: jax.nn.softmax(x, axis),
            "log_softmax_over": lambda x, axis: jax.nn.log_softmax(x, axis),
            "conv_transpose": None, "max_pool": None, "avg_pool": None,
        }  # fmt: skip
        if path in own:
            return own[path]
        return lookup(self.jax if path.startswith("scipy.") else self.jnp, path)

    def _conv(self, x, w, bias=None, stride=1, padding="valid", dilation=1, groups=1):
        n = w.ndim - 2
        each = lambda v: (v,) * n if isinstance(v, int) else tuple(v)
        pad = padding.upper() if isinstance(padding, str) else [(p, p) for p in each(padding)]
        y = self.jax.lax.conv_general_dilated(
            x, w, each(stride), pad, rhs_dilation=each(dilation), feature_group_count=groups
        )
        return y if bias is None else y + bias.reshape((-1,) + (1,) * n)

    def function(self, case, function):
        def f(*xs):
            out = case.call(function, *placed(case, xs, self.jnp.asarray))
            leaves = [y for y in self.jax.tree.leaves(out) if hasattr(y, "dtype")]
            return tuple(y for y in leaves if y.dtype.kind in "fc")

        return f

    def _arrays(self, xs):
        return tuple(map(self.jnp.asarray, xs))

    def value(self, f, points):
        return f(*self._arrays(points))

    def derivative(self, stage, f, reference):
        jax, xs, ts, cts = self.jax, *map(self._arrays, (reference.points, reference.ts, reference.cts))
        pulled = lambda *xs: jax.vjp(f, *xs)[1](cts)
        runs = {
            "gradient": lambda: pulled(*xs),
            "forward": lambda: jax.jvp(f, xs, ts)[1],
            "second": lambda: jax.jvp(pulled, xs, ts)[1],
        }
        if self.last[0] is not reference:  # compiled together, which takes a third of the time
            self.last = (reference, {})
            with contextlib.suppress(Exception):  # values decide about shapes, or one of them fails: one at a time
                self.last = (reference, jax.jit(lambda: {stage: run() for stage, run in runs.items()})())
        return self.last[1][stage] if stage in self.last[1] else runs[stage]()


class Torch(Peer):
    name = "PyTorch"
    different = {
        "ldexp": "it multiplies by 2**n in integers, so that a negative n gives 0",
        "sinc": "the second derivative is NaN at 0",
        **dict.fromkeys(["full", "asarray", "arange", "logspace"], "what it makes does not depend on its arguments"),
        **dict.fromkeys(["linalg.cholesky", "linalg.eigh"], "forward mode: " + TRIANGLE),
        "linalg.eig": "forward mode: " + PHASE,
        "linalg.svd": "the columns that full_matrices adds do not move there",
        "scipy.sparse.matmul": "the gradient in the entries is a constant there, so that second derivatives lack it",
        **dict.fromkeys(
            [f"scipy.special.{name}" for name in ("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e")],
            "they have no derivative, and forward mode gives zeros without a word",
        ),
    }
    not_comparable = {
        "select": "another function", "astype": "a method", "split": "it takes sizes, not places",
        "vander": "another call",
        "linalg.trace": "it has no offset", "linalg.lstsq": "it returns no residuals and ranks here",
        "scipy.linalg.lstsq": "it returns no residuals and ranks here",
        **dict.fromkeys(["cumulative_sum", "cumulative_prod"], "it has no include_initial"),
        "histogramdd": "it takes bins otherwise", "scipy.linalg.eigh": "it has no generalised problem",
        "scipy.linalg.eig": "another normalisation", "scipy.linalg.solve_triangular": "the triangle has no default",
        "scipy.linalg.cholesky": "it has no lower=", "scipy.linalg.lu_solve": "it takes its own factors",
        "scipy.sparse.linalg.spsolve": "on NVIDIA GPUs alone",
    }  # fmt: skip
    # NumPy's name -> PyTorch's, where they differ.
    NAMES = {
        "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
        "arccosh": "acosh", "arctanh": "atanh", "absolute": "abs", "power": "pow", "conjugate": "conj_physical",
        "concatenate": "cat", "astype": "asarray", "expand_dims": "unsqueeze", "transpose": "permute",
        "invert": "bitwise_not", "fabs": "abs", "vecdot": "linalg.vecdot", "vander": "linalg.vander",
        "matrix_transpose": "adjoint", "repeat": "repeat_interleave", "array_split": "tensor_split",
        "trapezoid": "trapezoid", "product": "prod", "permute_dims": "permute", "degrees": "rad2deg",
        "radians": "deg2rad", "cumulative_sum": "cumsum", "cumulative_prod": "cumprod",
        "linalg.matrix_transpose": "adjoint", "linalg.outer": "outer", "linalg.tensordot": "tensordot",
        "linalg.trace": "trace", "linalg.diagonal": "linalg.diagonal", "linalg.cross": "linalg.cross",
        "scipy.linalg.expm": "matrix_exp", "scipy.linalg.block_diag": "block_diag", "scipy.linalg.inv": "linalg.inv",
        "scipy.linalg.det": "linalg.det", "scipy.linalg.lu": "linalg.lu", "scipy.linalg.solve": "linalg.solve",
        "scipy.linalg.cholesky": "linalg.cholesky", "scipy.linalg.pinv": "linalg.pinv",
        "scipy.linalg.svd": "linalg.svd", "scipy.linalg.svdvals": "linalg.svdvals",
        "scipy.linalg.eigh": "linalg.eigh", "scipy.linalg.qr": "linalg.qr",
        "scipy.linalg.eigvalsh": "linalg.eigvalsh", "scipy.linalg.eigvals": "linalg.eigvals",
        "scipy.linalg.eig": "linalg.eig", "scipy.linalg.norm": "linalg.norm",
        "scipy.linalg.solve_triangular": "linalg.solve_triangular", "scipy.integrate.trapezoid": "trapezoid",
        "scipy.integrate.cumulative_trapezoid": "cumulative_trapezoid",
        "scipy.special.j0": "special.bessel_j0", "scipy.special.j1": "special.bessel_j1",
        "scipy.special.y0": "special.bessel_y0", "scipy.special.y1": "special.bessel_y1",
        "scipy.special.k0": "special.modified_bessel_k0", "scipy.special.k1": "special.modified_bessel_k1",
        "scipy.special.k0e": "special.scaled_modified_bessel_k0",
        "scipy.special.k1e": "special.scaled_modified_bessel_k1",
        "scipy.special.multigammaln": "special.multigammaln", "scipy.special.psi": "special.digamma",
        "scipy.special.eval_chebyt": "special.chebyshev_polynomial_t",
        "scipy.special.eval_chebyu": "special.chebyshev_polynomial_u",
        "scipy.special.eval_hermite": "special.hermite_polynomial_h",
        "scipy.special.eval_hermitenorm": "special.hermite_polynomial_he",
        "scipy.special.eval_laguerre": "special.laguerre_polynomial_l",
        "scipy.special.eval_legendre": "special.legendre_polynomial_p",
    }  # fmt: skip

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        self.version = self.torch.__version__.split("+")[0]

    def find(self, path):
        torch = self.torch
        own = {
            "conv": self._conv, "conv_transpose": self._conv_transpose, "max_pool": self._pool("max_pool"),
            "avg_pool": self._pool("avg_pool"), "relu": torch.relu, "sigmoid": torch.sigmoid,
            "top_k": lambda x, k: tuple(torch.topk(x, k)),
            "softmax_over": lambda x, axis: torch.softmax(x, axis),
            "log_softmax_over": lambda x, axis: torch.log_softmax(x, axis),
        }  # fmt: skip
        if path in own:
            return own[path]
        name = self.NAMES.get(path, path.removeprefix("scipy."))
        return lookup(torch, name) or (lookup(torch.special, name) if "." not in name else None)

    def _conv(self, x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
        function = getattr(self.torch.nn.functional, f"conv{w.ndim - 2}d")
        return function(x, w, bias, stride, 0 if padding == "valid" else padding, dilation, groups)

    def _conv_transpose(self, x, w, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
        function = getattr(self.torch.nn.functional, f"conv_transpose{w.ndim - 2}d")
        return function(x, w, bias, stride, padding, output_padding, groups, dilation)

    def _pool(self, name):
        def pool(x, window, *args, **kwargs):
            n = len(window) if isinstance(window, tuple) else 1
            return getattr(self.torch.nn.functional, f"{name}{n}d")(x, window, *args, **kwargs)

        return pool

    def function(self, case, function):
        torch = self.torch
        renamed = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction", "axes": "dim", "n": "n"}

        def called(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except (TypeError, RuntimeError):
                if not kwargs:
                    raise
            return function(*args, **{renamed.get(k, k): v for k, v in kwargs.items()})

        def f(*xs):
            out = case.call(called, *placed(case, xs, torch.as_tensor))
            leaves = out if isinstance(out, (tuple, list)) else (out,)
            return tuple(y for y in leaves if torch.is_tensor(y) and (y.is_floating_point() or y.is_complex()))

        return f

    def _tensors(self, xs):
        return tuple(self.torch.as_tensor(np.asarray(x)) for x in xs)

    def value(self, f, points):
        return _numpy(f(*self._tensors(points)))

    def derivative(self, stage, f, reference):
        torch = self.torch
        xs, ts = self._tensors(reference.points), self._tensors(reference.ts)
        # PyTorch's cotangents are the conjugates of those that pair as Re(sum(ct * t)).
        cts = self._tensors([np.conj(c) for c in reference.cts])
        if stage == "forward":
            return _numpy(torch.func.jvp(f, xs, ts)[1])
        functional = torch.autograd.functional
        if stage == "gradient":
            if not any(y.requires_grad for y in f(*[x.clone().requires_grad_() for x in xs])):
                raise RuntimeError("the result does not require grad")
            return tuple(np.conj(c) for c in _numpy(functional.vjp(f, xs, cts)[1]))
        pulled = lambda *xs: functional.vjp(f, xs, cts, create_graph=True)[1]
        return tuple(np.conj(c) for c in _numpy(functional.vjp(pulled, xs, ts)[1]))


def _numpy(xs: Any) -> tuple:
    return tuple((x + 0).detach().resolve_conj().resolve_neg().numpy() for x in xs)  # + 0: a zero may have no memory


class Autograd(Peer):
    name = "autograd"
    different = {
        **dict.fromkeys(["full", "full_like"], "it sums over all axes, though the fill value may be an array"),
        **dict.fromkeys(["fft.rfft2", "fft.rfftn", "fft.irfft2", "fft.irfftn"], "its rules do not know norm='forward'"),
        "tile": "it adds up the wrong copies of an array of two axes tiled along the last one",
        "sign": SIGN,
        "sinc": "NaN at 0",
        "linalg.eigh": TRIANGLE,
        "linalg.eig": PHASE,
        **dict.fromkeys(["scipy.special.iv", "scipy.special.ive"], "it calls the order flat"),
    }
    not_comparable = {"histogramdd": "it flattens a sample of one axis"}

    def __init__(self) -> None:
        self.autograd = importlib.import_module("autograd")
        self.anp = importlib.import_module("autograd.numpy")
        self.scipy = importlib.import_module("autograd.scipy")
        for part in ("special", "linalg", "stats"):
            importlib.import_module(f"autograd.scipy.{part}")
        self.version = importlib.import_module("importlib.metadata").version("autograd")

    def find(self, path):
        if path.startswith("scipy."):
            return lookup(self.scipy, path.removeprefix("scipy."))
        return lookup(self.anp, path)

    def function(self, case, function) -> Callable:
        def f(*xs):
            out = case.call(function, *placed(case, xs, lambda x: x))
            leaves = out if self.autograd.isinstance(out, (tuple, list)) else (out,)
            dtypes = [getattr(y, "dtype", np.dtype(bool)) for y in leaves]
            if np.dtype(object) in dtypes:
                raise TypeError("the result is an array of objects")
            return tuple(y for y, dtype in zip(leaves, dtypes, strict=True) if dtype.kind in "fc")

        return f

    def value(self, f, points):
        return f(*points)

    def derivative(self, stage, f, reference):
        core = self.autograd.core
        g = lambda xs: self.autograd.tuple(f(*xs))
        points, ts, cts = (self.autograd.tuple(v) for v in (reference.points, reference.ts, reference.cts))
        if stage == "gradient":
            return tuple(core.make_vjp(g, points)[0](cts))
        if stage == "forward":
            return tuple(core.make_jvp(g, points)(ts)[1])
        return tuple(core.make_vjp(lambda xs: core.make_vjp(g, xs)[0](cts), points)[0](ts))
