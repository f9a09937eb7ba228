"""What runs while a compiled program runs: the engine, its cache, threads, signals, BLAS."""
