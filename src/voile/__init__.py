"""Voile: publish tables about people so that anyone can count, within a promise to each of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Unpack

__version__ = "0.2.0"

if TYPE_CHECKING:
    from voile.engines.table import Table
    from voile.errors import VoileError
    from voile.estimate import Answer, Estimate
    from voile.evaluate.frontier import frontier
    from voile.options.reading import ReadingKeywords
    from voile.publishing import generalize, perturb, publish
    from voile.release import Release, sign, verify
    from voile.remote.client import connect
    from voile.schema import Schema

_HOMES = {
    "Answer": "voile.estimate",
    "Estimate": "voile.estimate",
    "Release": "voile.release",
    "Schema": "voile.schema",
    "Table": "voile.engines.table",
    "VoileError": "voile.errors",
    "connect": "voile.remote.client",
    "frontier": "voile.evaluate.frontier",
    "generalize": "voile.publishing",
    "perturb": "voile.publishing",
    "publish": "voile.publishing",
    "sign": "voile.release",
    "verify": "voile.release",
}

__all__ = [
    "Answer", "Estimate", "Release", "Schema", "Table", "VoileError",
    "connect", "frontier", "generalize", "open", "perturb", "publish", "read", "sign", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # Loaded on first use, so that `voile --help` need not wait for DuckDB and Numba.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'voile' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def read(source: Any, **how: Unpack[ReadingKeywords]) -> Table:
    """A table to publish: a path, 'dataset:adult', 'postgresql://…::table', or a data frame.

    `null_text` names texts that mean NULL; `na=True` reads NA, N/A, null and the like as NULL;
    `decimal`, `thousands` and `dates` say how numbers and dates are written. Of text files only:
    `separator`, `encoding`, `header`, `skip` and `bad_rows` say how the file is written, where
    that does not show for certain.
    """
    from voile.engines import connect

    return connect(source, **how)


def open(path: Any, *, check: bool = True, engine: Any = None) -> Release:
    """Open a release that was saved: a folder, or a URL such as 's3a://bucket/people.voile'.

    Without `check` its files are not hashed. `engine` counts the rows where they lie: the address
    of a Spark Connect server, "sc://HOST:PORT", "local" for one in this process, or a session.
    """
    from voile.release import Release

    return Release.open(path, check=check, engine=engine)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext voile` calls in a notebook: then %voile and %%voile ask releases."""
    importlib.import_module("voile.notebook").load_ipython_extension(shell)
