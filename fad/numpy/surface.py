"""How fad.numpy is made: each of NumPy's names is bound to the operation that answers for it, or to NumPy's own."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fad.core.primitives.primitive import Composite, operations


def answers() -> dict[Any, Any]:
    """Return, for each NumPy callable that has one, the operation that answers for it.

    An operation is called as it is; a composite through its wrapper, which leaves plain arguments to NumPy itself.
    """
    found: dict[Any, Any] = {}
    for operation in operations():
        call = operation.function if isinstance(operation, Composite) else operation
        for f in operation.numpy:
            if type(f) is not list:  # a ufunc's method, such as np.add.reduce
                found[f] = call
    return found


def namespace(module: ModuleType) -> dict[str, Any]:
    """Return what a module of fad.numpy holds: every public name of NumPy's module, answered where it can be."""
    known = answers()
    found = {}
    for name in module.__all__:
        thing = vars(module).get(name, module)  # what is not there yet is a submodule that NumPy loads when asked
        if isinstance(thing, ModuleType):
            continue
        found[name] = known.get(thing, thing) if callable(thing) else thing
    return found
