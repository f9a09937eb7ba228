"""The contract: every registered operation, on its own samples, against every clause (see fad.testing)."""

import importlib
import pkgutil

import numpy as np
import pytest

import fad
from fad.core.primitive import REGISTRY
from fad.errors import GradientCheckError
from fad.testing import CLAUSES, call, contract


def _load_every_room():
    """Import all modules that register operations, those that `import fad` leaves out too."""
    for package in ("fad.ops", "fad.numpy", "fad.scipy"):
        try:
            module = importlib.import_module(package)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(("fad.", "scipy")):
                raise
            continue
        for found in pkgutil.walk_packages(module.__path__, package + "."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)


_load_every_room()


@pytest.mark.parametrize("group", list(CLAUSES))
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_operation_passes_every_clause_of_the_contract(name, group):
    contract(name, groups=[group])
