"""What an installation may lack: packages that only some of the work needs.

Whoever only reads releases installs little; what publishes, serves and draws comes as extras.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from voile.errors import UsageError, spelled

EXTRAS = {
    "adbc_driver_postgresql": "postgres",
    "altair": "plots",
    "fastapi": "server",
    "jinja2": "studio",
    "msgspec": "server",
    "numba": "publish",
    "opendp": "dp",
    "pandas": "files",
    "psycopg": "postgres",
    "pyreadr": "files",
    "pyreadstat": "files",
    "pyspark": "spark",
    "python_calamine": "files",
    "scipy": "publish",
    "sklearn": "mining",
    "sqlalchemy": "sqlalchemy",
    "uvicorn": "server",
    "vl_convert": "plots",
}
"""Which extra brings a package."""

PUBLISHING = ("scipy", "numba")
DRAWING = ("altair", "vl_convert")
SERVING = (*PUBLISHING, "fastapi", "msgspec", "uvicorn")
DRAWN_BY_OPENDP = ("gaussian", "geometric")
"""Kinds of a server's noise whose sampler is OpenDP's."""


def check_installed(what: str, modules: Sequence[str], extra: str) -> None:
    """Refuse before anything is read or written where a package is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"{what} needs {' and '.join(missing)}", hint=advice(extra))


def check_server(noise: str, ledger: str | None) -> None:
    """Refuse before a table is read where a server lacks a package, or its noise or ledger does."""
    check_installed("a server", SERVING, "server")
    if noise in DRAWN_BY_OPENDP:
        check_installed(spelled("noise", noise), ("opendp",), "dp")
    if ledger is not None:
        check_installed("a ledger in PostgreSQL", ("psycopg",), "postgres")


def advice(extra: str) -> str:
    """How to get an extra."""
    return f"pip install 'voile[{extra}]'"


def lacking(error: ImportError) -> UsageError | None:
    """What an import that failed means, where it is a package of an extra."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return UsageError(f"this needs the package {package}", hint=advice(EXTRAS[package]))
