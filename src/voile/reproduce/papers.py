"""How the papers are cited."""

from __future__ import annotations

VLDB07 = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. VLDB 2007"
)


# ------------------------------------------------------------------ what the paper is called


TR07 = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. "
    "Technical report"
)


# ------------------------------------------------------------------ the paper's name


KDD09 = "Li, Li: On the Tradeoff Between Privacy and Utility in Data Publishing. KDD 2009"


# ----------------------------------------------------- the paper's name, as every figure states it


SIGMOD05 = "Agrawal, Srikant, Thomas: Privacy Preserving OLAP. SIGMOD 2005"


# ------------------------------------------------------------------ how the slides are cited


CRYPTO04 = (
    "Dwork, Nissim: Privacy-Preserving Datamining on Vertically Partitioned Databases. "
    "CRYPTO 2004 (slides)"
)
