"""Names and places: what Windows takes for something else, and what cases tell apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from voile import storage
from voile.errors import UsageError
from voile.files import check_name, lies_within, write_whole
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, README, SIGNATURE
from voile.kinds.registry import built_in_kinds
from voile.register.places import register_place
from voile.system import here as system
from voile.system.names import fault_of_name, fault_of_path
from voile.system.windows import fault_of_path as of_windows


@pytest.mark.parametrize(
    "path",
    [
        "people.csv", r"C:\people.csv", "C:/data/people.voile", r"C:people.csv", "../x.voile",
        r"\\server\share\people.voile", "console.csv", "com10.csv", "COM.csv", "auxiliary.voile",
        ".people.voile.partial-1", "ä ε.csv",
    ],
)  # fmt: skip
def test_paths_that_windows_has(path: str) -> None:
    assert of_windows(path) == ""


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("CON", "device"), ("con.csv", "device"), (r"C:\data\Aux.voile", "device"),
        ("NUL", "device"), ("nul .csv", "device"), ("data/lpt1/x.csv", "device"),
        ("COM¹.txt", "device"), ("a?.csv", "'?'"), ("data:x.csv", "':'"), ('a"b', "'\"'"),
        ("people.", "point"), ("people /x", "space"), ("tab\t.csv", "'\\t'"),
    ],
)  # fmt: skip
def test_paths_that_it_takes_for_something_else(path: str, why: str) -> None:
    assert why in fault_of_path(path)


def test_only_where_the_system_is_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(system, "fault_of_path", lambda _: "")
    check_name(Path("aux.voile"))
    monkeypatch.setattr(system, "fault_of_path", of_windows)
    with pytest.raises(UsageError, match=r"'aux\.voile' is the name of a device"):
        check_name(Path("aux.voile"))
    with pytest.raises(UsageError, match="device"):
        write_whole(tmp_path / "con.html", b"")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", [r"C:\x.csv", "c:/x.csv", "C://x.csv", "D:"])
def test_a_drive_is_no_address(text: str) -> None:
    assert not storage.is_url(text)
    assert register_place(r"C:\data\register.db").file is not None


@pytest.mark.parametrize(
    "text", ["s3://bucket/x", "file:///C:/x", "postgresql://host/x", "hdfs://h/x"]
)
def test_addresses_are_addresses(text: str) -> None:
    assert storage.is_url(text)


def test_a_place_in_a_folder_is_known_by_any_case(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As folders of macOS and Windows have it: ADULT.voile is adult.voile."""
    release = tmp_path / "adult.voile"
    release.mkdir()
    assert lies_within(release / "x.csv", release)
    if not (tmp_path / "ADULT.voile").exists():  # a folder that is not such itself
        assert not lies_within(tmp_path / "ADULT.voile" / "x.csv", release)
    assert not lies_within(tmp_path / "x.csv", release)
    assert lies_within(tmp_path / "none" / "x.csv", tmp_path / "none")
    exists, same = Path.exists, Path.samefile

    def found(path: Path) -> Path:
        return Path(str(path).replace("ADULT", "adult"))

    monkeypatch.setattr(Path, "exists", lambda path: exists(found(path)))
    monkeypatch.setattr(Path, "samefile", lambda one, other: same(found(one), found(other)))
    assert lies_within(tmp_path / "ADULT.voile" / "x.csv", release)


def test_a_release_can_be_carried_to_any_system() -> None:
    """The names in it are none that Windows keeps, and differ by more than their case."""
    plain = {README, MANIFEST, DATA_PACKAGE, SIGNATURE}
    for kind in built_in_kinds():
        for pattern in kind.file_names:
            assert pattern == pattern.lower(), (kind.about, pattern)
    assert len({one.lower() for one in plain}) == len(plain)
    for one in [*plain, "data", "part-00000.parquet", "model"]:
        assert fault_of_name(one) == ""
