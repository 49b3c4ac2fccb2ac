"""Words that the builder of questions must quote: a column may be called like a word of SQL."""

from __future__ import annotations

import re
from importlib.resources import files

import duckdb

from voile.errors import QueryError
from voile.query import parse
from voile.schema import Schema
from voile.studio.screens.releases import RESERVED


def quoted_by_the_builder() -> set[str]:
    text = (files("voile.web") / "static" / "sql.js").read_text(encoding="utf-8")
    found = re.search(r"RESERVED = new Set\(\((.*?)\)\.split", text, re.DOTALL)
    assert found is not None
    return set("".join(re.findall(r'"([^"]*)"', found[1])).split())


def needs_quotes(word: str) -> bool:
    """Whether a question about a column of this name cannot be read without quotes."""
    schema = Schema.from_dict({"attributes": [{"name": word, "kind": "integer", "range": [0, 3]}]})
    try:
        parse(f"select avg({word}) from t where {word} between 1 and 2", schema)
        parse(f"select {word}, count(*) from t where {word} = 1 group by {word}", schema)
    except QueryError:
        return True
    return False


def test_every_word_that_needs_quotes_gets_them() -> None:
    with duckdb.connect() as own:
        found = own.execute("select keyword_name from duckdb_keywords()").fetchall()
    words = [word for (word,) in found]
    needed = {word for word in words if needs_quotes(word)}
    assert "alter" in needed  # the age, in German tables
    assert needed <= quoted_by_the_builder()
    assert needed <= RESERVED
