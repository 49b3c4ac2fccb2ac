"""Which engine reads what: engines are asked in turn, and tables go through as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import voile
from tests.engines.conftest import SOURCES
from voile.engines import Engine, connect, files_of, open_rows, read_all, registry
from voile.engines.duckdb import ENGINE
from voile.engines.duckdb.table import DuckTable
from voile.engines.rows import ReleaseRows
from voile.engines.table import Table
from voile.errors import UsageError
from voile.schema import Attribute, Range, Schema


class ElsewhereTable(DuckTable):
    def __init__(self, source: object, *, null_text: Sequence[str] = ()) -> None:
        assert source == "elsewhere://rows"
        super().__init__(pa.table({"x": [1, 2]}), null_text=null_text)


class Elsewhere:
    """An engine for addresses of its own; its rows are DuckDB's."""

    name = "elsewhere"

    def __init__(self) -> None:
        self.opened: list[Path] = []

    def reads(self, source: object) -> bool:
        return isinstance(source, str) and source.startswith("elsewhere://")

    def table_type(self) -> type[Table]:
        return ElsewhereTable

    def files_of(self, source: str) -> list[Path]:  # noqa: ARG002
        return []

    def opens(self, parts: Sequence[Path]) -> bool:
        return any("elsewhere" in str(part) for part in parts)

    def open_rows(self, parts: Sequence[Path], schema: Schema, **more: Any) -> ReleaseRows:
        self.opened += parts
        return ENGINE.open_rows([], schema, **more)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(registry, "_added", [])
    engine = Elsewhere()
    registry.register(engine)
    yield engine


def test_every_engine_is_under_test() -> None:
    known = [name for name in SOURCES if name != "scattered"]  # which is of the tests alone
    assert sorted(engine.name for engine in registry.engines()) == sorted(known)


def test_an_engine_is_asked_before_duckdb(elsewhere: Engine, tmp_path: Path) -> None:
    first, *_, last = registry.engines()
    assert (first, last) == (elsewhere, ENGINE)
    for table in (connect("elsewhere://rows"), voile.read("elsewhere://rows")):
        assert type(table) is ElsewhereTable and len(table) == 2
    assert files_of("elsewhere://rows") == []
    assert type(connect("dataset:adult")) is ENGINE.table_type()
    schema = Schema((Attribute("x", "integer", Range(0, 1)),))
    open_rows([tmp_path / "elsewhere.parquet"], schema)
    assert isinstance(elsewhere, Elsewhere) and len(elsewhere.opened) == 1


def test_the_front_door_makes_the_engines_table(elsewhere: Engine) -> None:  # noqa: ARG001
    make: Any = voile.Table
    assert type(make("dataset:adult")) is ENGINE.table_type()
    assert type(make("elsewhere://rows")) is ElsewhereTable
    assert isinstance(make("dataset:adult"), voile.Table)


def test_a_table_is_given_back_as_it_is() -> None:
    table = connect(pa.table({"x": [1]}))
    assert connect(table) is table and voile.read(table) is table


def test_null_text_is_handed_on(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\nNA\n")
    assert connect(tmp_path / "t.csv", null_text=["NA"]).null_counts(["x"]) == {"x": 1}
    assert voile.read(tmp_path / "t.csv", null_text="NA").kind("x") == "integer"


def test_small_tables_are_read_whole(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,b\n")
    assert read_all(tmp_path / "t.csv").to_pydict() == {"x": [1, 2], "y": ["a", "b"]}
    assert files_of(str(tmp_path / "t.csv")) == [tmp_path / "t.csv"]
    assert files_of("dataset:adult") == []


def test_what_nobody_reads_is_refused() -> None:
    with pytest.raises(UsageError, match="http:// is not read"):
        connect("http://somewhere/t.csv")
    with pytest.raises(UsageError, match="the int is not a table"):
        connect(7)
