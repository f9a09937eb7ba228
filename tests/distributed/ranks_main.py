"""All checks of `rank_programs` on the ranks of MPI: run by mpiexec from test_mpi.py."""

import sys

import rank_programs

from fad import distributed as D


def main(size):
    comm = D.init(timeout=60.0)
    assert comm.engine == "mpi"
    assert comm.size == size
    for check, run in rank_programs.CHECKS.items():
        for name in rank_programs.CASES:
            try:
                run(comm, name)
            except Exception as error:
                error.add_note(f"in {check} of {name} on rank {comm.rank} of {comm.size}")
                raise
    comm.barrier()
    if comm.rank == 0:
        print(f"{len(rank_programs.CHECKS) * len(rank_programs.CASES)} checks passed on {comm.size} ranks")


if __name__ == "__main__":
    main(int(sys.argv[1]))
