"""What the examples of docstrings may use without an import: ``np`` and ``fad``."""

import numpy as np
import pytest

import fad


@pytest.fixture(autouse=True)
def _names_of_examples(doctest_namespace):
    doctest_namespace.update(np=np, fad=fad)
