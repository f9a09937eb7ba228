"""``scipy.special``, differentiable: the gamma, error, Bessel, elliptic, hypergeometric and distribution functions.

SciPy's own ufuncs work on traced values as they are (``scipy.special.gammaln(x)`` inside ``fad.grad``); here are the
same operations, and SciPy's functions that are not ufuncs (logsumexp, polygamma, zeta, lambertw, spherical Bessel ...).
Every function has its derivative in the argument. A parameter has one where a closed form, or a quadrature accurate to
rounding, exists; elsewhere requesting it raises :class:`fad.errors.DerivativeError`.

>>> import numpy as np, scipy.special, fad
>>> fad.grad(lambda x: np.sum(scipy.special.gammaln(x)))(np.array([1.0, 2.0])).round(6)
array([-0.577216,  0.422784])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scipy.special as _sc

from fad.core.tracing.numpy_dispatch import UFUNCS as _UFUNCS
from fad.scipy.special import (  # noqa: F401  (each operation module registers its operations)
    bessel,
    distributions,
    elementary,
    elliptic,
    equations,
    gaussian,
    hypergeometric,
    orthogonal,
)
from fad.scipy.special import gamma as _gamma  # noqa: F401
from fad.scipy.special.bessel import (
    h1vp,
    h2vp,
    ivp,
    jvp,
    kvp,
    spherical_in,
    spherical_jn,
    spherical_kn,
    spherical_yn,
    yvp,
)
from fad.scipy.special.elementary import lambertw
from fad.scipy.special.gamma import comb, factorial, multigammaln, perm, polygamma, zeta
from fad.scipy.special.orthogonal import legendre_p, sph_harm_y
from fad.scipy.special.reductions import log_softmax, logsumexp, softmax, softplus
from fad.scipy.special.sources import cite

if TYPE_CHECKING:  # what editors show of the ufuncs below
    from scipy.special import *  # noqa: F403

# The ufuncs, under SciPy's names: whatever a module has answered for.
_OPERATIONS = {
    name: _UFUNCS[value]
    for name, value in vars(_sc).items()
    if getattr(value, "nin", 0) and not isinstance(value, type) and value.__hash__ and value in _UFUNCS
}
globals().update(_OPERATIONS)
sinc = _sc.sinc  # NumPy's

__all__ = [
    *sorted(_OPERATIONS), "comb", "factorial", "h1vp", "h2vp", "ivp", "jvp", "kvp", "lambertw", "legendre_p",
    "log_softmax", "logsumexp", "multigammaln", "perm", "polygamma", "sinc", "softmax", "softplus", "sph_harm_y",
    "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn", "yvp", "zeta",
]  # fmt: skip

cite({name: globals()[name] for name in __all__})


def __getattr__(name: str) -> Any:
    if hasattr(_sc, name):
        raise AttributeError(
            f"fad.scipy.special has no {name}: it has no derivative rule. "
            f"For plain arrays use scipy.special.{name}; for a rule of your own, fad.custom_jvp"
        )
    raise AttributeError(f"neither scipy.special nor fad.scipy.special has a function {name!r}")
