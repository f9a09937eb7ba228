"""Random programs: what fad makes of them is what NumPy makes of them.

``FUZZ_PROGRAMS`` is how many, and ``FUZZ_SEED`` the first seed; README.md says what to do with a finding.
"""

import os

import pytest

from .campaign import run
from .kinds import KINDS

COUNT = int(os.environ.get("FUZZ_PROGRAMS", "40"))
FIRST = int(os.environ.get("FUZZ_SEED", "0"))
SHARES = {"pure": 0.5, "imperative": 0.25, "scratch": 0.25}
BATCH = 10


def batches():
    """Return (kind, first seed, count) of all batches."""
    for kind in KINDS:
        last = FIRST + max(1, round(COUNT * SHARES[kind]))
        for seed in range(FIRST, last, BATCH):
            yield kind, seed, min(BATCH, last - seed)


@pytest.mark.parametrize(("kind", "seed", "count"), list(batches()))
def test_random_programs_do_what_a_plain_run_does(kind, seed, count):
    report = run(range(seed, seed + count), kind)
    assert report.programs == count
    assert not report.findings, "\n\n".join(
        f"{finding}\n# again: python -m tests.fuzz --kind {kind} --seed {finding.program.seed} --programs 1 --shrink"
        for finding in report.findings
    )
