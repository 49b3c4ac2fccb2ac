"""What is said of an answer is kept with it, and does not contradict itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from voile.estimate import Answer, Estimate
from voile.kinds.manifest import Disclosed
from voile.terminal.answers import UNCOVERED, covers_sentence, write_answer
from voile.terminal.publications import disclosed_lines

NOTE = f"age > 33 cuts inside a bin: {UNCOVERED}"


def answer(*notes: str) -> Answer:
    one = Estimate(
        value=3.0, stderr=1.0, confidence=0.95, covers="", _interval=lambda _: (1.0, 5.0)
    )
    return Answer(({"n": one},), 0.95, "the statistic of the table", notes)


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_files_keep_what_intervals_cover_and_notes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write_answer(answer(NOTE), path)
    kept: dict[str, Any]
    if suffix == "parquet":
        kept = json.loads(pq.read_table(path).schema.metadata[b"voile"])
    else:
        kept = json.loads(
            (tmp_path / {"csv": "a.csv.about.json", "json": "a.json"}[suffix]).read_text()
        )
    assert kept["notes"] == [NOTE]
    assert (kept["covers"], kept["confidence"]) == ("the statistic of the table", 0.95)


def test_the_sentence_does_not_claim_what_a_note_excepts() -> None:
    assert "is not covered" in covers_sentence(answer(NOTE))
    assert "not covered" not in covers_sentence(answer("HAVING compares estimates"))


def test_what_is_disclosed_of_many_columns_is_one_line() -> None:
    said = ["the number of rows", *(f"which values occur in c{i}" for i in range(19))]
    lines = disclosed_lines([Disclosed(what=text, why="it is needed") for text in said])
    assert len(lines) == 2
    assert lines[1].startswith("which values occur in c0, c1") and "11 more columns" in lines[1]
    few = disclosed_lines([Disclosed(what=text, why="it is needed") for text in said[:3]])
    assert few == ["the number of rows", "which values occur in c0, c1"]
