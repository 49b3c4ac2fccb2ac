"""A release's rows and its domain, counted with DuckDB behind locked doors."""

from __future__ import annotations

import glob
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.engines.encode import domain_array
from voile.engines.sources import quote_identifier
from voile.engines.sql import first_line, literal, not_in_domain
from voile.errors import QueryError, ReleaseError
from voile.schema import Attribute, Bins, Range, Schema

BinPoint = Literal["low", "middle", "high"]
CHUNK = 2**20
"""Tuples of a sub-domain that are evaluated at a time."""


class View:
    """The rows of a release, and its domain, behind a connection that can reach nothing else."""

    def __init__(self, files: Sequence[Path], schema: Schema) -> None:
        self.schema = schema
        self._con = duckdb.connect(
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            }
        )
        self._domains: set[str] = set()
        # DuckDB takes every path for a pattern, and checks it before and after expanding it.
        listed = ", ".join(literal(glob.escape(str(file))) for file in files)
        allowed = ", ".join([*(literal(file) for file in files), listed])
        columns = ", ".join(quote_identifier(name) for name in schema.names)
        self._con.execute(f"SET allowed_paths = [{allowed}]")
        self._con.execute("SET enable_external_access = false")
        self._con.execute("SET lock_configuration = true")
        self._con.execute(f"CREATE VIEW view AS SELECT {columns} FROM read_parquet([{listed}])")

    def check(self, conditions: Sequence[str]) -> None:
        """Each condition must be true or false (or NULL) of a row; types are DuckDB's business."""
        for condition in conditions:
            try:
                relation = self._con.sql(f"SELECT ({condition}) AS c FROM view LIMIT 0")
            except duckdb.Error as error:
                raise QueryError(
                    f"{condition} does not fit the table: {first_line(error)}"
                ) from None
            if str(relation.types[0]) != "BOOLEAN":
                raise QueryError(
                    f"{condition} is of type {relation.types[0]}, not true or false",
                    hint="compare it with something, as in age > 30",
                )

    def count(self, condition: str) -> int:
        """Rows of the view for which the condition is true."""
        return self._count(f"SELECT count(*) FROM view WHERE {condition}")

    def outside(self) -> str | None:
        """The first attribute that has a row with a value outside its domain, if any."""
        asked = ", ".join(f"count(*) FILTER (WHERE {self._foreign(a)})" for a in self.schema)
        counts = self._con.execute(f"SELECT {asked} FROM view").fetchall()[0]
        wrong = (a.name for a, n in zip(self.schema, counts, strict=True) if n)
        return next(wrong, None)

    def _foreign(self, attribute: Attribute) -> str:
        column = quote_identifier(attribute.name)
        if isinstance(attribute.domain, Range):
            foreign = not_in_domain(attribute, column)
        else:
            foreign = f"{column} NOT IN (SELECT v FROM {self._domain(attribute.name)} AS d(v) "
            foreign += "WHERE v IS NOT NULL)"
        return foreign if attribute.null else f"({foreign}) OR {column} IS NULL"

    def domain_count(
        self, attributes: Sequence[str], condition: str, at: BinPoint = "middle"
    ) -> int:
        """Tuples of the product of these attributes' domains for which the condition is true.

        `at` says which point stands for a bin.
        """
        tables = " CROSS JOIN ".join(self._domain(name, at) for name in attributes) or "(SELECT 1)"
        return self._count(f"SELECT count(*) FROM {tables} WHERE {condition}")

    def truth(self, attributes: tuple[str, ...], condition: str) -> npt.NDArray[np.bool_]:
        """Where the condition is true on the product of domains, one axis for each attribute."""
        if not attributes:
            return np.array(self._count(f"SELECT count(*) WHERE TRY({condition})") == 1)
        found = [self.schema[name] for name in attributes]
        shape = tuple(a.size for a in found)
        values = [domain_array(a) for a in found]
        sql = f"SELECT coalesce(TRY({condition}), false) AS t FROM incoming"
        parts = []
        for start in range(0, math.prod(shape), CHUNK):
            places = np.arange(start, min(start + CHUNK, math.prod(shape)))
            codes = np.unravel_index(places, shape)
            columns = [v.take(pa.array(c)) for v, c in zip(values, codes, strict=True)]
            self._con.register("incoming", pa.table(columns, names=list(attributes)))
            parts.append(self._con.execute(sql).fetchnumpy()["t"])
            self._con.unregister("incoming")
        return np.concatenate(parts).reshape(shape)

    def _domain(self, name: str, at: BinPoint = "middle") -> str:
        attribute = self.schema[name]
        if isinstance(attribute.domain, Bins) and at != "middle":
            return bin_points(attribute, attribute.domain, at)
        if isinstance(attribute.domain, Range):
            return range_rows(attribute)
        table = quote_identifier(f"domain {name}")
        if name not in self._domains:
            values = pa.table({name: domain_array(attribute)})
            self._con.register("incoming", values)
            self._con.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
            self._con.unregister("incoming")
            self._domains.add(name)
        return table

    def _count(self, sql: str) -> int:
        try:
            return int(self._con.execute(sql).fetchall()[0][0])
        except duckdb.Error as error:
            raise ReleaseError(
                f"the release cannot be counted: {first_line(error)}", hint="try `voile verify`"
            ) from None


def range_rows(attribute: Attribute) -> str:
    """A range as a table that DuckDB counts through without holding it."""
    assert isinstance(attribute.domain, Range)  # noqa: S101
    name, low = quote_identifier(attribute.name), attribute.domain.low
    day = f"CAST(DATE '{low}' + CAST(range AS INTEGER) AS DATE)"
    value = f"range + ({low})" if isinstance(low, int) else day
    missing = " UNION ALL SELECT NULL" if attribute.null else ""
    return f"(SELECT {value} AS {name} FROM range({attribute.domain.size}){missing}) AS {name}"


def bin_points(attribute: Attribute, bins: Bins, at: BinPoint) -> str:
    """The lowest or the highest point of every bin as a table."""
    highest = [math.nextafter(edge, -math.inf) for edge in bins.edges[1:-1]] + [bins.edges[-1]]
    points = [repr(p) for p in (bins.edges[:-1] if at == "low" else highest)]
    name = quote_identifier(attribute.name)
    missing = " UNION ALL SELECT NULL" if attribute.null else ""
    listed = f"unnest([{', '.join(f'{p}::DOUBLE' for p in points)}])"
    return f"(SELECT {listed} AS {name}{missing}) AS {name}"
