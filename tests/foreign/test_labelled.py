"""Tables of SPSS and Stata: labels, values declared missing, dates, encodings."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest

import voile
from tests.support.running import told
from tests.support.running import voile as run
from voile.errors import VoileError
from voile.foreign import ForeignTable
from voile.foreign.labelled import plain_numbers, read_labelled
from voile.schema import Schema

DAY, MOMENT = dt.date(1912, 3, 4), dt.datetime(2020, 1, 2, 3, 4, 5)


def spss(path: Path, columns: dict[str, Any], **more: Any) -> ForeignTable:
    pyreadstat.write_sav(pd.DataFrame(columns), str(path / "t.sav"), **more)
    return read_labelled(path / "t.sav", {})


def stata(path: Path, columns: dict[str, Any], **more: Any) -> ForeignTable:
    pyreadstat.write_dta(pd.DataFrame(columns), str(path / "t.dta"), **more)
    return read_labelled(path / "t.dta", {})


def test_a_column_with_a_label_for_every_value_is_shown_by_them(tmp_path: Path) -> None:
    labels = {"sex": {1: "male", 2: "female", 3: "diverse"}}
    found = spss(
        tmp_path,
        {"sex": [2.0, 1.0, np.nan, 2.0]},
        variable_value_labels=labels,
        column_labels={"sex": "Sex of respondent"},
    )
    assert found.rows["sex"].to_pylist() == ["female", "male", None, "female"]
    assert found.categories == {"sex": ["male", "female", "diverse"]}
    assert found.labels == {"sex": "Sex of respondent"}
    assert list(found.notes) == []
    found = stata(tmp_path, {"sex": [2, 1]}, variable_value_labels=labels)
    assert found.rows["sex"].to_pylist() == ["female", "male"]


def test_texts_may_have_labels_too(tmp_path: Path) -> None:
    labels = {"land": {"D": "Germany", "F": "France"}}
    found = spss(tmp_path, {"land": ["D", "F", ""]}, variable_value_labels=labels)
    assert found.rows["land"].to_pylist() == ["Germany", "France", None]


def test_codes_are_kept_where_labels_are_partial_or_repeat(tmp_path: Path) -> None:
    found = spss(tmp_path, {"age": [20.0, 99.0]}, variable_value_labels={"age": {99: "99+"}})
    assert found.rows["age"].to_pylist() == [20, 99]
    assert found.rows["age"].type == pa.int64()
    [note] = found.notes
    assert "'age': 1 value of 2 have no label (such as 20), so codes are kept" in note
    twice = {"a": {1: "yes", 2: "yes"}}
    found = spss(tmp_path, {"a": [1.0, 2.0]}, variable_value_labels=twice)
    assert found.rows["a"].to_pylist() == [1, 2]
    assert "two codes have the label 'yes'" in found.notes[0]


def test_values_that_the_file_declares_missing_are_null(tmp_path: Path) -> None:
    found = spss(
        tmp_path,
        {"income": [100.5, -9.0, -8.0, np.nan], "answer": [1.0, 2.0, 9.0, 1.0]},
        variable_value_labels={"income": {-9: "refused"}, "answer": {1: "yes", 2: "no", 9: "n/a"}},
        missing_ranges={"income": [{"lo": -9, "hi": -8}], "answer": [9]},
    )
    assert found.rows["income"].to_pylist() == [100.5, None, None, None]
    assert found.rows["answer"].to_pylist() == ["yes", "no", None, "yes"]
    assert found.categories == {"answer": ["yes", "no"]}
    assert "2 values declared missing in the file (-9 'refused', -8)" in found.notes[0]
    found = stata(tmp_path, {"x": [1.5, 2.5, "a", "b"]}, missing_user_values={"x": ["a", "b"]})
    assert found.rows["x"].to_pylist() == [1.5, 2.5, None, None]
    assert "2 values declared missing in the file (.a, .b)" in found.notes[0]


@pytest.mark.parametrize("write", [spss, stata])
def test_days_and_moments(tmp_path: Path, write: Any) -> None:
    found = write(tmp_path, {"day": [DAY, None], "moment": [MOMENT, MOMENT]})
    assert found.rows["day"].to_pylist() == [DAY, None]
    assert found.rows["moment"].to_pylist() == [MOMENT, MOMENT]


def test_formats_of_days_times_and_periods(tmp_path: Path) -> None:
    second = 86_400.0
    days = (DAY - dt.date(1582, 10, 14)).days * second
    formats = {"a": "ADATE10", "m": "MOYR8", "t": "TIME8"}
    found = spss(tmp_path, {"a": [days], "m": [days], "t": [90.0]}, variable_format=formats)
    assert found.rows.to_pylist() == [{"a": DAY, "m": DAY, "t": 90}]
    assert "'t' holds times, read as seconds" in found.notes[0]
    found = stata(tmp_path, {"m": [720], "d": [5]}, variable_format={"m": "%tm", "d": "%td"})
    assert found.rows.to_pylist() == [{"m": 720, "d": dt.date(1960, 1, 6)}]
    assert "'m' counts months since 1960, read as numbers" in found.notes[0]
    with pytest.raises(VoileError, match="row 1, column 'd': a day outside the years 1 to 9999"):
        stata(tmp_path, {"d": [10**7]}, variable_format={"d": "%td"})


def test_numbers_are_whole_where_all_are_and_short_where_stored_short() -> None:
    none = np.zeros(2, bool)
    assert plain_numbers(np.array([1.0, 2.0]), none).type == pa.int64()
    assert plain_numbers(np.array([1.0, 2.5]), none).to_pylist() == [1.0, 2.5]
    tenth = np.array([0.1, 2.0], np.float32).astype(float)
    assert plain_numbers(tenth, np.array([False, True]), single=True).to_pylist() == [0.1, None]


def test_letters_of_other_encodings(tmp_path: Path) -> None:
    spss(tmp_path, {"name": ["Zoë"] * 3})
    raw = (tmp_path / "t.sav").read_bytes()
    # As an old program wrote it: one byte for a letter, and no word of the encoding.
    assert raw.count(b"UTF-8") == 1
    (tmp_path / "t.sav").write_bytes(
        raw.replace("Zoë".encode(), "Zoë ".encode("latin-1")).replace(b"UTF-8", b"ASCII")
    )
    for wrong in ({}, {"encoding": "utf-8"}):
        with pytest.raises(VoileError) as refused:
            read_labelled(tmp_path / "t.sav", wrong)
        assert "encoding='cp1252'" in refused.value.hint
    assert "row 1, column 'name'" in refused.value.message
    found = read_labelled(tmp_path / "t.sav", {"encoding": "cp1252"})
    assert found.rows["name"].to_pylist() == ["Zoë"] * 3


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_what_is_no_such_file_is_refused(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"t.{ending}").write_bytes(bytes(range(256)) * 4)
    with pytest.raises(VoileError, match=rf"t\.{ending} cannot be read: "):
        read_labelled(tmp_path / f"t.{ending}", {})


def test_labels_become_a_codebook(tmp_path: Path) -> None:
    spss(
        tmp_path,
        {"sex": [1.0, 2.0] * 30, "age": [20.0, 30.0, 40.0] * 20},
        variable_value_labels={"sex": {1: "male", 2: "female", 3: "diverse"}},
        column_labels={"sex": "Sex of\nrespondent"},
    )
    file, codebook = tmp_path / "t.sav", tmp_path / "t.yaml"
    table = voile.read(file)
    assert table.name == "t"
    assert table.infer(["sex"], "error")["sex"].domain.size == 3
    assert run("schema", str(file), "-o", str(codebook)).returncode == 0
    assert "# Sex of respondent\n- name: sex\n" in codebook.read_text()
    assert list(Schema.open(codebook)["sex"]) == ["male", "female", "diverse"]
    attributes = told(["inspect", str(file)])["attributes"]
    assert [one["label"] for one in attributes] == ["Sex of\nrespondent", None]
    release = voile.perturb(file, 0.5, schema=codebook, register=False)
    assert "diverse" in list(release.schema["sex"])


def test_a_member_of_a_file_that_has_none_is_refused(tmp_path: Path) -> None:
    spss(tmp_path, {"a": [1.0]})
    with pytest.raises(VoileError, match="holds one table, so '::b' names nothing in it"):
        voile.read(f"{tmp_path / 't.sav'}::b")
