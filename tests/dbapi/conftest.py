"""A table of people as releases of every kind, and as the table of a server."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import voile
from tests.dbapi.support import CITIES, CODEBOOK
from tests.support.serving import running
from voile.dbapi import SqlSession, SqlSource
from voile.dbapi.sources import opened_tables
from voile.serve.creation import begin
from voile.serve.opened import opened

METHODS: dict[str, dict[str, Any]] = {
    "view": {"prior": 0.01, "retention": 0.5},
    "classes": {
        "method": "mondrian", "k": 5, "qi": ["age", "city", "day", "smoker"], "sensitive": ["sex"],
    },
    "marginals": {"method": "marginals", "epsilon": 1},
    "counts": {"method": "conjuncts", "direct": True, "arity": 3, "rho": 0.1},
}  # fmt: skip


def people(rows: int = 600) -> pd.DataFrame:
    chance = np.random.default_rng(7)
    days = [dt.date(2024, 1, 1) + dt.timedelta(int(d)) for d in chance.integers(0, 100, rows)]
    return pd.DataFrame({
        "age": chance.integers(17, 91, rows), "sex": chance.choice(["Female", "Male"], rows),
        "city": chance.choice(CITIES, rows), "smoker": chance.random(rows) < 0.3, "day": days,
    })  # fmt: skip


def published(kind: str, to: Path) -> Any:
    options: dict[str, Any] = {
        "schema": CODEBOOK, "name": "people", "register": False, "simulate_seed": 1, "to": to,
    }  # fmt: skip
    if kind == "perturbed":
        return voile.perturb(people(), 0.5, **options)
    return voile.publish(people(), **METHODS[kind], **options)


@pytest.fixture(scope="package")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Releases of every kind, in one folder."""
    folder = tmp_path_factory.mktemp("releases")
    kinds = [*METHODS, "perturbed"]
    return {kind: published(kind, folder / f"{kind}.voile") for kind in kinds}


@pytest.fixture(params=[*METHODS, "perturbed"])
def release(request: pytest.FixtureRequest, releases: dict[str, Any]) -> Any:
    """A release of each kind in turn."""
    return releases[request.param]


@pytest.fixture(scope="package")
def sources(releases: dict[str, Any]) -> Iterator[dict[str, SqlSource]]:
    """What sessions over these releases share."""
    found = {kind: SqlSource(opened_tables(release)) for kind, release in releases.items()}
    yield found
    for source in found.values():
        source.close()


@pytest.fixture
def session(release: Any, releases: dict[str, Any], sources: dict[str, SqlSource]) -> SqlSession:
    """A session over the release of each kind in turn."""
    (kind,) = [kind for kind, one in releases.items() if one is release]
    return SqlSession(sources[kind])


@pytest.fixture
def viewed(sources: dict[str, SqlSource]) -> SqlSession:
    """A session over a noisy view."""
    return SqlSession(sources["view"])


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server of the same table, and a file with a token for it."""
    folder = tmp_path_factory.mktemp("server")
    begin(folder / "s", people(), queries=60, delta=1.0, schema=CODEBOOK, name="people")
    with opened(folder / "s") as service:
        token, _ = service.ledger.issue("anna")
    file = folder / "anna.token"
    file.write_text(token + "\n", encoding="ascii")
    with running(folder / "s") as found:
        yield found.data["url"], file
