"""Objects of a program that stand for arrays, handed to NumPy's functions in several of its modules."""

import importlib
import sys

import numpy as np

import fad
from fad.testing import check_grads

MODULES = {
    "cells": """
import numpy as np

class Cell:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def lengths(self):
        return np.linalg.norm(self, axis=1)
""",
    "reductions": """
import numpy as np
from {package}.cells import Cell

def longest(cell):
    return np.linalg.norm(Cell(cell), axis=0).max()
""",
    "energies": """
import numpy as np
from {package} import reductions
from {package}.cells import Cell

def energy(x):
    return np.sum(Cell(x).lengths()) * reductions.longest(x)
""",
}


def load(folder, monkeypatch, package):
    """Return a function of a package that nothing has been run of."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text("")
    for name, text in MODULES.items():
        (folder / package / f"{name}.py").write_text(text.replace("{package}", package))
    monkeypatch.syspath_prepend(folder)
    return importlib.import_module(f"{package}.energies").energy


def test_each_module_has_functions_that_take_them_after_one_had(tmp_path, monkeypatch):
    x = np.arange(1.0, 10.0).reshape(3, 3)
    for k, transform in enumerate([fad.grad, lambda f: fad.jit(fad.grad(f)), lambda f: fad.vmap(fad.grad(f))]):
        package = f"array_likes_in_modules_{k}"
        energy = load(tmp_path, monkeypatch, package)
        given = np.stack([x, x]) if k == 2 else x
        slope = transform(energy)(given)  # the first run of this code
        check_grads(energy, (x,), order=2)
        np.testing.assert_allclose(slope[0] if k == 2 else slope, fad.grad(energy)(x))
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
