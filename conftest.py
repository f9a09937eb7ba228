"""What the examples of docstrings may use without an import: ``np`` and ``fad``."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _names_of_examples(doctest_namespace):
    import numpy as np  # not before tests/conftest.py has said how many threads it may use

    import fad

    doctest_namespace.update(np=np, fad=fad)
