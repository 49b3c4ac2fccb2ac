"""How the papers are cited."""

from __future__ import annotations

VLDB07 = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. VLDB 2007"
)

TR07 = (
    "Rastogi, Suciu, Hong: The Boundary Between Privacy and Utility in Data Publishing. "
    "Technical report"
)

KDD09 = "Li, Li: On the Tradeoff Between Privacy and Utility in Data Publishing. KDD 2009"

SIGMOD05 = "Agrawal, Srikant, Thomas: Privacy Preserving OLAP. SIGMOD 2005"

CRYPTO04 = (
    "Dwork, Nissim: Privacy-Preserving Datamining on Vertically Partitioned Databases. "
    "CRYPTO 2004 (slides)"
)
