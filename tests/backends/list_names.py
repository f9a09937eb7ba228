"""Print the names of NumPy that CuPy has: ``python tests/backends/list_names.py > tests/backends/cupy_names.txt``.

Needs CuPy, but no GPU. The stand-in of the GPU in these tests offers these names and no others.
"""

import numpy as np


def names(ours, theirs, prefix):
    for n in sorted(dir(theirs)):
        function = getattr(theirs, n)
        if not n.startswith("_") and callable(function) and not isinstance(function, type) and hasattr(ours, n):
            print(prefix + n)


def main():
    import cupy

    print("# The names that CuPy has, out of NumPy's: written by list_names.py where CuPy is installed.")
    print("# CuPy", cupy.__version__)
    names(cupy, np, "")
    names(cupy.linalg, np.linalg, "linalg.")
    names(cupy.fft, np.fft, "fft.")
    for n in sorted(dir(np.ndarray)):
        if not n.startswith("__") and hasattr(cupy.ndarray, n):
            print("ndarray." + n)


if __name__ == "__main__":
    main()
