"""Every collective in every mode, on ranks that are threads, against the serial program."""

import pytest
import rank_programs

from fad import distributed as D


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("check", rank_programs.CHECKS)
def test_a_collective_is_that_of_the_serial_program(check, size):
    def run(comm):
        for name in rank_programs.CASES:
            try:
                rank_programs.CHECKS[check](comm, name)
            except Exception as error:
                error.add_note(f"in {check} of {name} on rank {comm.rank} of {comm.size}")
                raise

    D.run_ranks(run, size, timeout=60)
