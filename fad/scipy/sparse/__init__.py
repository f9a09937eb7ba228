"""``scipy.sparse``, differentiable: sparse matrices times dense arrays, and linear systems with them (`linalg`).

SciPy's own sparse matrices are multiplied with traced arrays as they are: ``matrix @ x``, ``x @ matrix``, `matmul`.
Their entries are constants then; `csr_array` and related functions make one whose entries may be traced.

>>> import numpy as np, scipy.sparse, fad
>>> a = scipy.sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
>>> fad.grad(lambda x: np.sum((a @ x) ** 2))(np.ones(2))
array([22., 30.])
"""

from __future__ import annotations

import scipy.sparse

from fad.core.primitives.docstring_sections import refer
from fad.scipy.registration import missing
from fad.scipy.sparse import linalg
from fad.scipy.sparse.array import SparseArray, from_scipy, issparse, matmul
from fad.scipy.sparse.blocks import (
    block_array,
    block_diag,
    bmat,
    find,
    hstack,
    kron,
    kronsum,
    spdiags,
    tril,
    triu,
    vstack,
)
from fad.scipy.sparse.construct import diags, diags_array
from fad.scipy.sparse.forms import bsr_array, coo_array, csc_array, csr_array, dia_array
from fad.scipy.sparse.operators import install_products

__all__ = [
    "SparseArray", "block_array", "block_diag", "bmat", "bsr_array", "coo_array", "csc_array", "csr_array", "dia_array",
    "diags", "diags_array", "find", "from_scipy", "hstack", "issparse", "kron", "kronsum", "linalg", "matmul",
    "spdiags", "tril", "triu", "vstack",
]  # fmt: skip
__getattr__ = missing("sparse")
install_products()
refer({name: globals()[name] for name in __all__}, scipy.sparse)
