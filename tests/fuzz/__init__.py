"""Random NumPy programs as source text, and what fad makes of them beside a plain run; see README.md."""
