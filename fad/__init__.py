"""fad differentiates ordinary NumPy programs.

>>> import numpy as np, fad
>>> fad.grad(lambda x: np.sum(np.sin(x) ** 2))(np.array([0.0, np.pi / 4]))
array([0., 1.])

This file is the table of contents: everything here is defined in the file it is imported from.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from fad import backends, config, errors, numpy, ops, tree
from fad.backends import device_get, device_put
from fad.control import associative_scan, cond, fori_loop, map, scan, switch, while_loop
from fad.core.runs.stand_ins import FINDERS
from fad.core.tracing.conversions import OFFERED
from fad.core.tracing.numpy_dispatch import LOADERS
from fad.core.tracing.spec import ShapeDtypeStruct
from fad.core.tracing.values import stop_gradient
from fad.doctor import doctor
from fad.jitting.jit import jit, source
from fad.staging.record import make_graph
from fad.transforms.checkpoint import checkpoint
from fad.transforms.custom import custom_jvp, custom_vjp
from fad.transforms.eval_shape import eval_shape
from fad.transforms.grad import grad, value_and_grad
from fad.transforms.implicit import custom_linear_solve, custom_root
from fad.transforms.jacobian import elementwise_grad, hessian, hvp, jacfwd, jacobian, jacrev, vhp
from fad.transforms.jet import jet
from fad.transforms.jvp import jvp
from fad.transforms.linearize import linear_transpose, linearize
from fad.transforms.vjp import vjp
from fad.transforms.vmap import vmap

if TYPE_CHECKING:
    from fad import compat, data, debug, distributed, eager, nn, optim, profiler, random, scipy, sparse, testing
    from fad.files import load, save
    from fad.keeping import saved

remat = checkpoint
__version__ = "0.1.0"

__all__ = [
    "ShapeDtypeStruct", "associative_scan", "backends", "checkpoint", "compat", "cond", "config", "custom_jvp",
    "custom_linear_solve", "custom_root", "custom_vjp", "data", "debug", "device_get", "device_put", "distributed",
    "doctor", "eager", "elementwise_grad", "errors", "eval_shape", "fori_loop", "grad", "hessian", "hvp", "jacfwd",
    "jacobian", "jacrev", "jet", "jit", "jvp", "linear_transpose", "linearize", "load", "make_graph", "map", "nn",
    "numpy", "ops", "optim", "profiler", "random", "remat", "save", "saved", "scan", "scipy", "source", "sparse",
    "stop_gradient", "switch", "testing", "tree", "value_and_grad", "vhp", "vjp", "vmap", "while_loop",
]  # fmt: skip

# What needs SciPy, the training layer, the tests' and the modules for other libraries' programs are loaded when they
# are first requested, so that `import fad` stays quick.
_LATER = {
    "compat": "compat", "data": "data", "debug": "debug", "distributed": "distributed", "eager": "eager",
    "nn": "nn", "optim": "optim", "profiler": "profiler", "random": "random", "scipy": "scipy", "sparse": "sparse",
    "testing": "testing", "load": "files", "save": "files", "saved": "keeping",
}  # fmt: skip


# Names that people from JAX look for here; docs/jax.md has the others.
_OF_JAX = {
    "lax": "fad.cond, fad.scan, fad.while_loop and fad.numpy for the names of lax", "make_jaxpr": "fad.make_graph",
    "tree_util": "fad.tree", "tree_map": "fad.tree.map", "flatten_util": "fad.tree.ravel for ravel_pytree",
    "pmap": "fad.vmap", "custom_gradient": "fad.custom_vjp", "Array": "np.ndarray",
    "checkpoint_policies": "fad.checkpoint(f, policy='nothing') or 'everything'",
    "block_until_ready": "nothing: what a call returns is there", "tree_leaves": "fad.tree.leaves",
    "pure_callback": "fad.custom_vjp above a function that is not NumPy's, or fad.debug.callback",
}  # fmt: skip


# opt_einsum looks for these three in the package that an array's class comes from.
_FOR_OPT_EINSUM = ("einsum", "tensordot", "transpose")


def __getattr__(name: str) -> Any:
    if name in _FOR_OPT_EINSUM:
        return getattr(numpy, name)
    where = _LATER.get(name)
    if where is None:
        instead = f"; write {_OF_JAX[name]}" if name in _OF_JAX else ""
        raise AttributeError(f"module 'fad' has no attribute {name!r}{instead}")
    module = importlib.import_module(f"fad.{where}")
    found = module if where == name else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _offers(name: str) -> bool:
    """Return whether fad has a library's function under the same name: ``scipy.linalg.expm``."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module("fad.scipy") if first == "scipy" else globals().get(first)
    for part in rest:
        found = getattr(found, part, None)
    return getattr(found, "__module__", "numpy").partition(".")[0] not in ("numpy", "scipy")


OFFERED.append(_offers)


def _load_rules(ufunc: Any) -> None:
    """Bring in the rules of SciPy's ufuncs, the first time that one may have met a traced value."""
    if "scipy.special" in sys.modules:
        importlib.import_module("fad.scipy.special")


LOADERS.append(_load_rules)


def _pair_names(stand_ins: dict, objects: dict) -> None:
    """Find what stands in for SciPy's names and objects, where a program has imported it."""
    if "scipy" in sys.modules:
        importlib.import_module("fad.scipy.stand_ins").pair_names(stand_ins, objects)


FINDERS.append(_pair_names)
