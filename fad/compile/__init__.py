"""What jit lowers to: passes over graphs, a NumPy program, and native code where llvmlite is installed."""
