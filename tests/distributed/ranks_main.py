"""All checks of `rank_programs` on the ranks of MPI: run by mpiexec from test_mpi.py."""

import itertools
import sys

import random_rank_programs
import rank_programs

from fad import distributed as D


def main(size, every=1):
    """Run the checks, or each `every`-th of them where there are more ranks than cores."""
    comm = D.init(timeout=60.0)
    assert comm.engine == "mpi"
    assert comm.size == size
    checks = list(itertools.product(rank_programs.CHECKS, rank_programs.CASES))[::every]
    for check, name in checks:
        try:
            rank_programs.CHECKS[check](comm, name)
        except Exception as error:
            error.add_note(f"in {check} of {name} on rank {comm.rank} of {comm.size}")
            raise
    for seed in range(6):
        random_rank_programs.check(random_rank_programs.drawn(100 * size + seed), comm)
    comm.barrier()
    if comm.rank == 0:
        print(f"{len(checks)} checks passed on {comm.size} ranks")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
