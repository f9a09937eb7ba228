"""The compiler behind jit: a recorded graph becomes NumPy calls, native code or kernels of a device; see `pipeline`."""
