"""Random programs that mix collectives and operations, against the serial program."""

import os

import random_rank_programs as P
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fad import distributed as D

NAMES = st.sampled_from([*P.UNARY, *P.BINARY, *P.COLLECTIVES, *P.COLLECTIVES])
PROGRAMS = st.lists(st.tuples(NAMES, st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8)


MORE = os.environ.get("RANK_PROGRAMS")  # the search: RANK_PROGRAMS=1000 pytest tests/distributed/test_random_...


@settings(
    max_examples=int(MORE or 15), deadline=None, derandomize=not MORE, suppress_health_check=list(HealthCheck)
)  # fmt: skip
@given(program=PROGRAMS, size=st.integers(1, 4))
def test_a_random_program_over_ranks_is_the_serial_one(program, size):
    D.run_ranks(lambda comm: P.check(program, comm), size, timeout=30)
