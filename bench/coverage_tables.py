"""Real tables on which intervals are counted, made by the interpreter of the environment `tables`.

Nothing here imports Voile, and each table is read from the package that has it: none is shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.first_minutes_tables import few_flights, modelled, of_r


@dataclass(frozen=True)
class CountedTable:
    """How a table is made, by which columns it is grouped, which numbers are asked about."""

    make: Callable[[], Any]
    groups: tuple[str, ...]
    values: tuple[str, ...]
    tuned: bool = False
    """Whether some constant of an interval was chosen with this table in view."""


def table(name: str, groups: str, values: str, *, tuned: bool = False) -> CountedTable:
    """One of R's packages."""
    return CountedTable(of_r(name), tuple(groups.split()), tuple(values.split()), tuned)


TABLES = {
    "anes96": CountedTable(
        modelled("anes96"), ("vote", "PID", "educ"), ("selfLR", "age"), tuned=True
    ),
    "slid": table("SLID", "sex language", "wages education age", tuned=True),
    "vocab": table("Vocab", "sex year", "education vocabulary", tuned=True),
    "doctor": table("DoctorAUS", "sex insurance chcond", "illness hscore", tuned=True),
    "males": table("Males", "union residence ethn", "school wage", tuned=True),
    "few-flights": CountedTable(
        few_flights, ("origin", "carrier"), ("dep_delay", "distance"), tuned=True
    ),
    "pneumon": table("pneumon", "region race smoke", "mthage education"),
    "azpro": table("azpro", "procedure sex admit", "los age75"),
    "medpar": table("medpar", "hmo died type", "los age80"),
    "benefits": table("Benefits", "joblost sex married", "age tenure"),
    "treatment": table("Treatment", "treat ethn married", "age educ"),
    "unemployment": table("UnempDur", "censor1 censor4 ui", "spell age"),
    "psid": table("PSID", "married kids", "educatn hours"),
    "mortgages": table("Hdma", "ccs mcs black", "hir lvr"),
    "turnout": table("turnout", "race vote", "age educate"),
    "aids": table("Aids2", "state status T.categ", "age"),
    "wilms": table("nwtco", "histol stage rel", "age"),
    "bfi": table("bfi", "gender A1 C1", "age E1"),
    "tobacco": table("Tobacco", "occupation region nkids2", "nadults lnx"),
    "baseball": table("baseball", "lg stint", "year g"),
}
"""Those that some constant was chosen with, and those that had no part in any."""


def written(*, folder: str) -> dict[str, Any]:
    """Write every table that the installed packages have, and say what is asked of each."""
    found = {}
    for name, about in TABLES.items():
        try:
            frame = about.make()
        except ImportError:  # a package that is not there has no table
            continue
        names = [*about.groups, *about.values]
        frame[names].rename(columns=plain).dropna().to_csv(
            Path(folder) / f"{name}.csv", index=False
        )
        found[name] = {
            "groups": [plain(one) for one in about.groups],
            "values": [plain(one) for one in about.values],
            "tuned": about.tuned,
        }
    return found


def plain(name: str) -> str:
    """A column's name without dots, which SQL would have to quote."""
    return name.replace(".", "_").lower()
