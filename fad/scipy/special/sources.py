"""Where the definitions and derivatives of special functions stand in the literature: `help` reads it from here.

One table for all modules, because a section of the Digital Library of Mathematical Functions (https://dlmf.nist.gov) is
about a family, whose functions, inverses and complements stand in several of them.
"""

from __future__ import annotations

from typing import Any

import scipy.special

from fad.core.primitives.docstring_sections import refer
from fad.core.primitives.primitive import Operation

SOURCES = """
DLMF 4.2, 4.6 : expm1 log1p exp2 exp10 exprel powm1 xlogy xlog1py cbrt
DLMF 4.13 : lambertw wrightomega
DLMF 4.14, 4.20 : cosm1 sindg cosdg tandg cotdg
DLMF 5.2 : gamma gammaln loggamma rgamma gammasgn digamma psi poch
DLMF 5.4, 5.15 : factorial polygamma
DLMF 5.12 : beta betaln
DLMF 1.2, 5.4 : binom comb perm
DLMF 35.3 : multigammaln
DLMF 6.2 : exp1 expi sici shichi
DLMF 7.2 : erf erfc erfcx erfi dawsn fresnel modfresnelp modfresnelm wofz ndtr log_ndtr
DLMF 7.17 : erfinv erfcinv ndtri ndtri_exp
DLMF 7.19 : voigt_profile
DLMF 8.2, 8.8 : gammainc gammaincc gammaincinv gammainccinv
DLMF 8.2 : chdtr chdtrc chdtri chdtriv gdtr gdtrc gdtria gdtrib gdtrix pdtr pdtrc pdtri pdtrik
DLMF 8.17 : betainc betaincc betaincinv betainccinv btdtria btdtrib
DLMF 8.17 : bdtr bdtrc bdtri bdtrik bdtrin nbdtr nbdtrc nbdtri nbdtrik nbdtrin fdtr fdtrc fdtri fdtridfd
DLMF 8.17 : stdtr stdtrit stdtridf
DLMF 8.19 : expn
DLMF 9.2 : airy airye
DLMF 9.10 : itairy
DLMF 10.2, 10.6 : jv jve jn j0 j1 yv yve yn y0 y1 hankel1 hankel1e hankel2 hankel2e jvp yvp h1vp h2vp
DLMF 10.25, 10.29 : iv ive i0 i0e i1 i1e kv kve kn k0 k0e k1 k1e ivp kvp
DLMF 10.22, 10.43 : itj0y0 it2j0y0 iti0k0 it2i0k0 besselpoly
DLMF 10.46 : wright_bessel log_wright_bessel
DLMF 10.47, 10.51 : spherical_jn spherical_yn spherical_in spherical_kn
DLMF 10.61, 10.63 : ber bei ker kei berp beip kerp keip kelvin
DLMF 11.2, 11.4, 11.7 : struve modstruve itstruve0 it2struve0 itmodstruve0
DLMF 12.2, 12.8 : pbdv pbvv
DLMF 12.14 : pbwa
DLMF 13.2, 13.3 : hyp1f1 hyperu
DLMF 14.3, 14.10 : lpmv
DLMF 14.30 : sph_harm_y
DLMF 15.2, 15.5 : hyp2f1
DLMF 16.2, 16.3 : hyp0f1
DLMF 18.3, 18.9 : eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre eval_hermite
DLMF 18.3, 18.9 : eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi
DLMF 18.3, 18.9 : eval_sh_legendre legendre_p
DLMF 19.2, 19.4 : ellipk ellipkm1 ellipe ellipkinc ellipeinc
DLMF 19.8 : agm
DLMF 19.16, 19.18 : elliprc elliprd elliprf elliprg elliprj
DLMF 22.2, 22.13 : ellipj
DLMF 25.2, 25.11 : zeta zetac
DLMF 25.12 : spence
DLMF 28.2, 28.4 : mathieu_a mathieu_b mathieu_cem mathieu_sem
DLMF 28.20 : mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2
DLMF 30.2 : obl_ang1 obl_ang1_cv obl_cv pro_ang1 pro_ang1_cv pro_cv
DLMF 30.11 : obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv pro_rad1 pro_rad1_cv pro_rad2 pro_rad2_cv
P. Huber, Ann. Math. Statist. 35 (1964) : huber pseudo_huber
G. Box and D. Cox, J. R. Stat. Soc. B 26 (1964) : boxcox boxcox1p inv_boxcox inv_boxcox1p
D. Owen, Ann. Math. Statist. 27 (1956) : owens_t
Z. Birnbaum and F. Tingey, Ann. Math. Statist. 22 (1951) : smirnov smirnovi
"""


def cite(names: dict[str, Any]) -> None:
    """Let public functions say where their formulas stand: operations on their pages, others in their docstrings."""
    rows = [line.partition(" : ") for line in SOURCES.strip().splitlines()]
    sources = {name: source for source, _, functions in rows for name in functions.split()}
    for name, function in names.items():
        if isinstance(function, Operation):
            function.source = sources.get(name, "")
        else:
            refer({name: function}, scipy.special, *filter(None, [sources.get(name)]))
