"""From scheduled steps to code: LLVM's text, rows of a table of functions, NumPy's calls, CUDA C."""
