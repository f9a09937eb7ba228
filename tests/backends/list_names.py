"""Print what CuPy offers: ``python tests/backends/list_names.py > tests/backends/cupy_names.txt``.

Needs CuPy and NumPy, but neither a GPU nor CUDA's libraries. The stand-in of the GPU in these tests offers what is
printed here and nothing else. A line is a name, and how it may be called: ``sin ufunc e->e f->f d->d`` gives the dtypes
that an elementwise function was written for, ``sort (a, axis=-1, kind=None)`` a signature; an attribute stands alone.
Names below ``scipy.`` are those of ``cupyx.scipy``.
"""

import importlib
import inspect
import re
from unittest import mock

import numpy as np

MODULES = ["", "linalg", "fft", "lib.stride_tricks"]
SCIPY = ["special", "linalg"]
OF_OTHERS = set("E")  # a dtype of a package beside NumPy (ml_dtypes), for which CuPy has loops where it is installed
LIBRARIES = ["cublas", "cusolver", "cusparse", "cufft", "curand"]


def described(function):
    """Return how a function of CuPy may be called, as the rest of its line."""
    if hasattr(function, "types"):
        return " ufunc " + " ".join(loop for loop in function.types if not set(loop) & OF_OTHERS)
    try:
        return f" {plain(inspect.signature(function))}"
    except (TypeError, ValueError):
        return " " + compiled_signature(function)


def plain(signature):
    """Return a signature without annotations, and with literals alone for defaults, so that it can be read again."""
    literal = (bool, int, float, str, tuple, type(None))
    parameters = []
    for p in signature.parameters.values():
        p = p.replace(annotation=p.empty)
        unreadable = p.default is not p.empty and type(p.default) not in literal
        parameters.append(p.replace(default=None) if unreadable else p)
    return inspect.Signature(parameters)


def compiled_signature(function):
    """Return the signature that stands in the first line of a compiled function's documentation, without types."""
    first = (function.__doc__ or "").split("\n")[0]
    inside = re.search(r"\((.*)\)", first)
    if inside is None:
        return "(*args, **kwargs)"
    parts = [p.strip() for p in inside[1].split(",")]
    return "(" + ", ".join(re.sub(r"^[\w.]+ (?=[\w*])", "", p) for p in parts if p) + ")"


def functions(module, prefix, wanted):
    for n in sorted(dir(module)):
        f = getattr(module, n)
        if not n.startswith("_") and callable(f) and not isinstance(f, type) and wanted(n):
            print(prefix + n + described(f))


def found(package, name):
    try:
        return importlib.import_module(f"{package}.{name}" if name else package)
    except ImportError:
        return None


def pretend_libraries(cuda):
    """Put something in place of those libraries of CUDA that are not installed: only names are read."""
    for name in LIBRARIES:
        try:
            getattr(cuda, name)
        except (ImportError, AttributeError):
            setattr(cuda, name, mock.MagicMock())


def main():
    import cupy

    pretend_libraries(cupy.cuda)
    print("# What CuPy offers, out of NumPy's and SciPy's names: written by list_names.py where CuPy is installed.")
    print("# CuPy", cupy.__version__)
    for name in MODULES:
        theirs, ours = found("cupy", name), found("numpy", name)
        if theirs is not None:
            prefix = f"{name}." if name else ""
            functions(theirs, prefix, lambda n, ours=ours: hasattr(ours, n))
    for n in sorted(dir(np.ndarray)):
        if hasattr(cupy.ndarray, n) and not n.startswith("__"):
            f = getattr(cupy.ndarray, n)
            print("ndarray." + n + (" " + compiled_signature(f) if callable(f) else ""))
    for name in SCIPY:
        module = found("cupyx.scipy", name)
        if module is not None:
            functions(module, f"scipy.{name}.", lambda n: True)


if __name__ == "__main__":
    main()
