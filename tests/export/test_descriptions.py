"""Descriptions of releases, checked by the tools that read them."""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pyarrow.parquet as pq
import pytest

import voile
from voile.errors import UsageError
from voile.export import export

FRAME = pd.DataFrame(
    {"age": [20, 21, 22, 23] * 50, "sex": ["f", "m"] * 100, "ill": ["y", "n"] * 100}
)
DDI = "{ddi:codebook:2_5}"


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("described")
    options: dict[str, dict[str, Any]] = {
        "view": {"prior": 0.05, "retention": 0.5, "simulate_seed": 1},
        "classes": {"method": "mondrian", "k": 4, "qi": ["age"], "sensitive": ["sex"],
                    "identifiers": ["ill"]},
        "buckets": {"method": "mondrian", "l": 2, "recode": "bucketize", "qi": ["age"],
                    "sensitive": ["sex"], "identifiers": ["ill"]},
        "marginals": {"method": "marginals", "schema": "active", "epsilon": 2, "simulate_seed": 1},
        "counts": {"method": "conjuncts", "direct": True, "arity": 2, "rho": 0.5,
                   "simulate_seed": 1},
    }  # fmt: skip
    made = {
        name: voile.publish(FRAME, name="t", register=False, to=folder / f"{name}.voile", **given)
        for name, given in options.items()
    }
    to = folder / "perturbed.voile"
    made["perturbed"] = voile.perturb(FRAME, 0.7, name="t", register=False, to=to, simulate_seed=1)
    return made


def described(schema: dict[str, Any]) -> Any:
    import frictionless

    return frictionless.Schema.from_descriptor(schema)


KINDS = ["view", "classes", "buckets", "marginals", "counts", "perturbed"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_of_a_release_has_a_schema(releases: dict[str, Any], kind: str) -> None:
    import frictionless

    release = releases[kind]
    raw = json.loads((release.path / "datapackage.json").read_text())
    package = frictionless.Package.from_descriptor(raw)  # which refuses what is not valid
    assert list(frictionless.Package.metadata_validate(package.to_descriptor())) == []
    for table in raw["resources"]:
        stored = pq.read_schema(release.path / table["path"][0])
        assert [f["name"] for f in table["schema"]["fields"]] == stored.names
        assert table["schema"]["missingValues"] == [""]
    voile.verify(release.path)


@pytest.mark.parametrize("kind", ["perturbed", "classes"])
def test_rows_keep_to_the_schema(releases: dict[str, Any], tmp_path: Path, kind: str) -> None:
    import frictionless

    release = releases[kind]
    export(release, tmp_path / "rows.csv")
    package = json.loads((release.path / "datapackage.json").read_text())
    [table] = [r for r in package["resources"] if r["path"][0].startswith("data/")]
    shown = (tmp_path / "rows.csv").read_text().splitlines()[0].replace('"', "").split(",")
    schema = {**table["schema"], "fields": [f for f in table["schema"]["fields"]
                                            if f["name"] in shown]}  # fmt: skip
    with frictionless.system.use_context(trusted=True):
        report = frictionless.validate(str(tmp_path / "rows.csv"), schema=described(schema))
    assert report.valid, report.flatten(["message"])
    if kind == "perturbed":
        narrow = json.loads(json.dumps(schema))
        narrow["fields"][1]["constraints"]["enum"] = ["f"]
        with frictionless.system.use_context(trusted=True):
            assert not frictionless.validate(
                str(tmp_path / "rows.csv"), schema=described(narrow)
            ).valid


@pytest.mark.parametrize("kind", KINDS)
def test_croissant_is_read_by_its_own_tool(
    releases: dict[str, Any], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its libraries use what Python will remove
        import mlcroissant

        release = releases[kind]
        file = release.path.parent / f"{kind}.croissant.json"
        export(release, file)
        with caplog.at_level(logging.WARNING):
            dataset = mlcroissant.Dataset(jsonld=str(file))
        assert "not standard" not in caplog.text
        assert not dataset.metadata.ctx.issues.errors
        for records in dataset.metadata.record_sets:
            files = [f for f in release.manifest.files if f.rows is not None]
            wanted = sum(
                f.rows for f in files if source(records) in (f.path, f"{records.id}-files")
            )
            found = list(dataset.records(records.id))
            assert len(found) == wanted
            if kind == "perturbed":
                expected = release.to_arrow().to_pylist()
                plain = [{k.partition("/")[2]: text(v) for k, v in row.items()} for row in found]
                assert plain == expected


def source(records: Any) -> str:
    return str(next(iter(records.fields)).source.uuid)


def text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


ORDER = {
    "codeBook": ["docDscr", "stdyDscr", "fileDscr", "dataDscr"],
    "stdyDscr": ["citation", "stdyInfo", "method", "dataAccs"],
    "citation": ["titlStmt", "prodStmt"],
    "fileTxt": ["fileName", "fileCont", "dimensns", "fileType"],
    "dimensns": ["caseQnty", "varQnty"],
    "var": ["labl", "valrng", "catgry", "varFormat"],
    "catgry": ["catValu", "labl"],
}
"""Elements in the order in which the schema of DDI-Codebook 2.5 has them."""


@pytest.mark.parametrize("kind", KINDS)
def test_ddi_has_the_elements_of_its_schema_in_order(
    releases: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    release = releases[kind]
    export(release, tmp_path / "ddi.xml")
    root = ET.fromstring((tmp_path / "ddi.xml").read_bytes())  # noqa: S314
    assert root.tag == f"{DDI}codeBook"
    for element in root.iter():
        known = ORDER.get(element.tag.removeprefix(DDI))
        if known:
            places = [known.index(each.tag.removeprefix(DDI)) for each in element]
            assert places == sorted(places)
    files = {one.get("ID"): one for one in root.iter(f"{DDI}fileDscr")}
    rows = sum(int(one.text or "") for one in root.iter(f"{DDI}caseQnty"))
    assert rows == sum(f.rows for f in release.manifest.files if f.rows is not None)
    for variable in root.iter(f"{DDI}var"):
        place = tmp_path / str(files[str(variable.get("files"))].get("URI"))
        assert variable.get("name") in pq.read_schema(place).names
    digests = " ".join(note.text or "" for note in root.iter(f"{DDI}notes"))
    assert all(f.sha256 in digests for f in release.manifest.files if f.rows is not None)
    assert "What is promised" in digests


def test_ddi_lists_categories_and_ranges(releases: dict[str, Any], tmp_path: Path) -> None:
    export(releases["perturbed"], tmp_path / "ddi.xml")
    root = ET.fromstring((tmp_path / "ddi.xml").read_bytes())  # noqa: S314
    sex = next(v for v in root.iter(f"{DDI}var") if v.get("name") == "sex")
    assert [c.text for c in sex.iter(f"{DDI}catValu")] == ["f", "m"]


@pytest.mark.parametrize("name", ["croissant.json", "ddi.xml", "datapackage.json"])
def test_descriptions_are_the_same_every_time(
    releases: dict[str, Any], tmp_path: Path, name: str
) -> None:
    release = releases["perturbed"]
    export(release, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    export(voile.open(release.path), tmp_path / name, overwrite=True)
    assert (tmp_path / name).read_bytes() == first


@pytest.mark.parametrize("name", ["croissant.json", "ddi.xml", "datapackage.json"])
def test_no_path_leads_from_one_drive_of_windows_to_another(
    releases: dict[str, Any], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_windows(path: Path, start: Path) -> str:
        raise ValueError(f"path is on mount 'C:', start on mount 'D:': {path}, {start}")

    monkeypatch.setattr("os.path.relpath", of_windows)
    with pytest.raises(UsageError, match="on another drive"):
        export(releases["perturbed"], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_data_package_beside_a_release_finds_its_files(
    releases: dict[str, Any], tmp_path: Path
) -> None:
    release = releases["perturbed"]
    export(release, tmp_path / "datapackage.json")
    [table] = json.loads((tmp_path / "datapackage.json").read_text())["resources"]
    assert (tmp_path / table["path"][0]).resolve() == release.path / "data/part-00000.parquet"
    assert table["hash"].startswith("sha256:")
