"""Random programs that mix collectives and operations, against the serial program."""

import os

import pytest
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


@pytest.mark.parametrize("seed", [214, 231, 253, 281, 315])
def test_second_derivatives_meet_where_only_some_ranks_have_one(seed):
    # what was sent along a line of ranks is used by some and comes from others, and is differentiated twice
    program = P.drawn(seed, 2 + seed % 7)
    D.run_ranks(lambda comm: P.check(program, comm), 1 + seed % 4, timeout=10)
