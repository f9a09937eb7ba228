"""autograd.scipy.stats: the names of :mod:`fad.scipy.stats`."""

from __future__ import annotations

import sys
from typing import Any

import fad.scipy.stats as _part

# There each distribution is a module, and `import autograd.scipy.stats.norm as norm` is common.
for _name in ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"):
    sys.modules[f"{__name__}.{_name}"] = getattr(_part, _name)


def __getattr__(name: str) -> Any:
    return getattr(_part, name)
