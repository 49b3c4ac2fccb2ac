"""What the tests of SQL tools share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.paths import TESTS

CITIES = ["Aachen", "Bergen", "Cork", "Delft"]
CODEBOOK: dict[str, Any] = {
    "attributes": [
        {"name": "age", "kind": "integer", "range": [17, 90]},
        {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
        {"name": "city", "kind": "categorical", "values": CITIES},
        {"name": "smoker", "kind": "boolean", "values": [False, True]},
        {"name": "day", "kind": "date", "range": ["2024-01-01", "2024-04-09"]},
    ]
}
KEY = re.compile(r"-- (same|rows|columns|refused): (.*)")


@dataclass(frozen=True)
class Shape:
    """A statement as a tool sends it, and what is to come of it."""

    sql: str
    words: str
    same: str | None = None
    rows: list[Any] | None = None
    columns: str | None = None
    refused: str | None = None


def shapes() -> Iterator[Shape]:
    text = (TESTS / "dbapi" / "shapes.sql").read_text(encoding="utf-8")
    for block in text.split("\n\n")[1:]:
        lines = block.strip("\n").split("\n")
        keys = {found[1]: found[2] for line in lines if (found := KEY.match(line))}
        sql = "\n".join(line for line in lines if not line.startswith("-- "))
        rows = json.loads(keys["rows"]) if "rows" in keys else None
        yield Shape(
            sql, lines[0].removeprefix("-- "), keys.get("same"), rows, keys.get("columns"),
            keys.get("refused"),
        )  # fmt: skip


SHAPES = list(shapes())
