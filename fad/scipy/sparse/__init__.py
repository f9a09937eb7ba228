"""``scipy.sparse``, differentiable: sparse matrices times dense arrays, and linear systems with them (`linalg`).

SciPy's own sparse matrices make plain arrays of what they are multiplied with, so ``matrix @ x`` of a traced x raises.
`matmul` takes such a matrix as a constant; `csr_array` and related functions make one whose entries may be traced.

>>> import numpy as np, scipy.sparse, fad
>>> a = scipy.sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
>>> fad.grad(lambda x: np.sum(fad.scipy.sparse.matmul(a, x) ** 2))(np.ones(2))
array([22., 30.])
"""

from __future__ import annotations

import scipy.sparse

from fad.core.docstring_sections import refer
from fad.scipy.registration import missing
from fad.scipy.sparse import linalg
from fad.scipy.sparse.array import SparseArray, coo_array, csc_array, csr_array, from_scipy, matmul

__all__ = ["SparseArray", "coo_array", "csc_array", "csr_array", "from_scipy", "linalg", "matmul"]
__getattr__ = missing("sparse")
refer({name: globals()[name] for name in __all__}, scipy.sparse)
