"""What this machine and process offer a program: vectors of the CPU, BLAS, threads, the clock and Python's signals."""
