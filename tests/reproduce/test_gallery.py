"""The gallery's writer: one run, twenty repetitions of what is judged, and one picture of 2026."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from tools import gallery

from voile.reproduce.vldb07.adult import FRAPP, MARGINALS, MARGINALS_1, TIGHT


def entry(name: str, **changed: Any) -> dict[str, Any]:
    """A verdict as `voile reproduce` writes it, of one number that chance decides."""
    number = {"mean": 108.3, "sd": 5.8, "runs": 20, "right": None, "agrees": True, "sound": True,
              "why": ""}  # fmt: skip
    return {
        "name": name, "paper": "A paper", "what": f"Figure of {name}", "title": "A title",
        "agrees": True, "sound": True, "quick": False, "seed": 1, "voile": "0.2.0",
        "printed": {"error": 120.0}, "measured": {"error": number | changed},
    }  # fmt: skip


def test_the_page_says_of_which_run_it_is_and_its_lines_are_short() -> None:
    text = "".join(gallery.page([entry("one"), entry("two")]))
    assert "Made by version 0.2.0, in a full run with the seed 1." in " ".join(text.split())
    assert "2 figures and tables: 2 are as printed" in " ".join(text.split())
    assert "| error | 120 | 108.3 ± 5.8 (20 runs) | agrees |" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 100


def test_figures_of_two_versions_make_no_gallery() -> None:
    older = entry("two") | {"voile": "0.1.0"}
    with pytest.raises(ValueError, match=r"several runs: voile is 0\.1\.0, 0\.2\.0"):
        "".join(gallery.page([entry("one"), older]))


def test_a_printed_number_with_few_runs_is_found() -> None:
    exact, unprinted = entry("exact", runs=1, sd=0.0), entry("ours", runs=8)
    unprinted["printed"]["error"] = None
    few = entry("few", runs=8)
    assert gallery.few_runs([entry("one"), exact, unprinted, few]) == ["few: error"]


def test_the_picture_of_2026_is_of_the_data_of_figure_3(tmp_path: Path) -> None:
    errors = {FRAPP: 500, TIGHT: 100, MARGINALS: 5, MARGINALS_1: 25}
    rows = [
        (method, count, error)
        for method, error in errors.items()
        for count in (10, 50, 100, 500, 5000)
    ]
    with (tmp_path / "vldb07-fig3.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("method", "threshold", "mean_error"), *rows])
    picture = gallery.then_and_now(tmp_path)
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
