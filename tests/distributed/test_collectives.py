"""Every collective in every mode, on ranks that are threads, against the serial program."""

import pytest
import rank_programs

from fad import distributed as D


# Each on no even number of ranks but one: half on two, where messages meet at once, and half on four, where they do so
# in two rounds.
@pytest.mark.parametrize(
    ("check", "size"),
    [(check, size) for k, check in enumerate(rank_programs.CHECKS) for size in (1, 3, (2, 4)[k % 2])],
)
def test_a_collective_is_that_of_the_serial_program(check, size):
    def run(comm):
        for name in rank_programs.CASES:
            try:
                rank_programs.CHECKS[check](comm, name)
            except Exception as error:
                error.add_note(f"in {check} of {name} on rank {comm.rank} of {comm.size}")
                raise

    D.run_ranks(run, size, timeout=60)
