"""Memory that arrays have freed stays with the process where that is asked for."""

import subprocess
import sys

import numpy as np
import pytest
from each import each

import fad

PROGRAM = """
import resource
import numpy as np
import fad

gradient = fad.grad(lambda x: np.sum(np.sin(x * x) * np.cos(x)))
x = np.linspace(0.0, 1.0, 300_000)


def count_pages():
    gradient(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        gradient(x)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


given_back = count_pages()
kept = fad.config.keep_freed_memory("1GiB")
print(given_back, count_pages(), kept, fad.config.keep_freed_memory(0))
"""


def test_later_arrays_need_no_new_pages_from_the_system():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    given_back, with_kept, kept, undone = done.stdout.split()
    assert kept == undone
    if kept == "False":
        pytest.skip("the C library has no such setting")
    assert int(with_kept) < int(given_back) / 10


@each("most", [-1, "much", True, np.nan])
def test_what_is_no_amount_of_memory_is_refused(most):
    with pytest.raises(ValueError, match="'200MB'"):
        fad.config.keep_freed_memory(most)
