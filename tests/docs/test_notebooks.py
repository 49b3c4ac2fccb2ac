"""The notebooks run, and show what they were saved with.

`VOILE_WRITE=1 pytest tests/docs/test_notebooks.py` runs them and saves what they show.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.soak import some

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

NOTEBOOKS = ROOT / "docs" / "notebooks"
SECONDS = 120
"""For one cell; the notebooks take less than 20 seconds each on two idle cores."""


def texts(notebook: Any) -> list[str]:
    """What each cell of code showed as text, however it was cut into pieces on the way."""
    found = []
    for cell in notebook.cells:
        shown = cell.get("outputs", [])
        said = [each.get("text") or each.get("data", {}).get("text/plain", "") for each in shown]
        found.append("".join(text for text in said if not text.startswith("<IPython")))
    return found


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def alike(fresh: str, saved: str) -> bool:
    """The same words, and numbers that differ by no more than processors do.

    A model is fitted in steps whose last digits depend on the order in which a processor adds; of
    values that few people have, that is more than a hundredth.
    """
    if NUMBER.sub("0", fresh).split() != NUMBER.sub("0", saved).split():
        return False
    pairs = zip(NUMBER.findall(fresh), NUMBER.findall(saved), strict=True)
    return all(abs(float(a) - float(b)) <= 0.11 + 0.02 * abs(float(b)) for a, b in pairs)


def pictures(notebook: Any) -> list[int]:
    """How many pictures each cell shows; they are drawn alike only by the same fonts."""
    shown = [cell.get("outputs", []) for cell in notebook.cells]
    return [sum("image/png" in each.get("data", {}) for each in outputs) for outputs in shown]


def without_times(notebook: Any) -> Any:
    """What would differ from run to run is not kept."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def run(notebook: Any, folder: Path) -> Any:
    """A copy with the outputs of a fresh kernel that works in an empty folder."""
    fresh = nbformat.from_dict(notebook)
    client = nbclient.NotebookClient(
        fresh,
        timeout=SECONDS,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    with warnings.catch_warnings():  # of the machinery between us and the kernel, not of ours
        warnings.simplefilter("ignore")
        client.execute()
    return without_times(fresh)


@pytest.mark.parametrize(
    "file", some(sorted(NOTEBOOKS.glob("*.ipynb")), 1, seed=5), ids=lambda file: str(file.stem)
)
def test_a_notebook_runs_and_shows_what_it_was_saved_with(file: Path, tmp_path: Path) -> None:
    saved = nbformat.read(file, as_version=4)
    fresh = run(saved, tmp_path)
    if os.environ.get("VOILE_WRITE"):
        nbformat.write(fresh, file)
        saved = fresh
    assert sum(pictures(fresh)) >= 2, "a notebook is there to be looked at"
    assert pictures(fresh) == pictures(saved)
    for now, before in zip(texts(fresh), texts(saved), strict=True):
        assert alike(now, before), f"{file.name} shows {now!r} for {before!r}; see VOILE_WRITE"
    shown = [each for cell in fresh.cells for each in cell.get("outputs", [])]
    assert not any("<script" in str(each.get("data", {})) for each in shown)


def test_another_word_or_number_is_seen() -> None:
    saved = "ward  people\n0  4017.3  56.7"
    assert alike("ward   people\n0  4017.4  56.7", saved)
    assert not alike("ward  persons\n0  4017.3  56.7", saved)
    assert not alike("ward  people\n0  4117.3  56.7", saved)
    assert not alike("ward  people\n0  4017.3", saved)


def test_there_is_a_notebook_for_each_kind_of_reader() -> None:
    assert {file.stem for file in NOTEBOOKS.glob("*.ipynb")} == {"analyst", "researcher", "steward"}
