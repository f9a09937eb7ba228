"""What a graph is lowered to: native code, NumPy calls, kernels of a device; and which of them is taken."""
