"""The pictures: small, complete, readable without a network, and refused without the extra."""

from __future__ import annotations

import errno
import json
import re
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voile.arrays import Floats
from voile.errors import UsageError
from voile.evaluate import plots

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

WORDS: dict[str, Any] = {"title": "A title", "subtitle": "A subtitle"}


def workload(queries: int = 300_000, noise: float = 20.0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(3)
    truth = np.floor(30_000 / rng.permutation(np.arange(1, queries + 1)))
    return truth, truth + rng.normal(0, noise, queries)


def datasets(chart: Any) -> dict[str, list[dict[str, Any]]]:
    """All rows that a chart carries, which are those that its HTML carries."""
    spec: dict[str, Any] = chart.to_dict()
    found: dict[str, list[dict[str, Any]]] = spec["datasets"]
    return found


def embedded(html: str) -> dict[str, Any]:
    line = next(part for part in html.splitlines() if '"$schema"' in part and '"datasets"' in part)
    spec: dict[str, Any] = json.JSONDecoder().raw_decode(line[line.index("{") :])[0]
    return spec


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    truth, estimate = workload()
    chart = plots.estimates(
        truth, estimate, 60.0, labels="</script>{}".format, others={"other": estimate + 9}, **WORDS
    )
    return plots.save(chart, tmp_path_factory.mktemp("plots") / "new" / "release.v1")


def test_both_files_are_written_and_nothing_else(saved: list[Path]) -> None:
    assert [path.name for path in saved] == ["release.v1.png", "release.v1.html"]
    assert sorted(saved[0].parent.iterdir()) == sorted(saved)


def test_png_is_large_enough_to_print(saved: list[Path]) -> None:
    head = saved[0].read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    assert 2000 < width < 4000
    assert 1200 < height < 2500


def test_html_needs_no_network_and_is_small(saved: list[Path]) -> None:
    html = saved[1].read_text(encoding="utf-8")
    assert len(html.encode()) < 3_000_000
    assert re.findall(r"<(?:script|link|iframe)\b[^>]*\b(?:src|href)\s*=", html) == []
    assert re.findall(r"(?:src|href|import)\s*[=(]\s*[\"']?https?:", html) == []
    assert "cdn.jsdelivr" not in html
    assert '"editor": false' in html


def test_labels_cannot_end_the_script(saved: list[Path]) -> None:
    html = saved[1].read_text(encoding="utf-8")
    assert html.count("</script>") == html.count("<script>") == 2
    assert embedded(html)["datasets"]["points"][0]["query"].startswith("</script>")


def test_html_embeds_few_rows_of_many_queries(saved: list[Path]) -> None:
    rows = embedded(saved[1].read_text(encoding="utf-8"))["datasets"]
    assert 3000 < sum(len(values) for values in rows.values()) < 10_000


def test_every_query_is_either_a_dot_or_in_a_cell() -> None:
    truth, estimate = workload(20_000)
    estimate[truth.argmin()] += 5000
    rows = datasets(plots.estimates(truth, estimate, 1000.0, labels=str, **WORDS))
    assert len(rows["points"]) == plots.MAX_POINTS + 1
    assert sum(point["outside"] for point in rows["points"]) == 1
    for name in ("cells", "error cells"):
        assert 20_000 - len(rows["points"]) <= sum(cell["n"] for cell in rows[name]) <= 20_000


def test_dots_are_the_largest_queries_with_their_labels() -> None:
    truth, estimate = workload(5000)
    names = [f"query {i}" for i in range(5000)]
    for labels in (names, names.__getitem__):
        rows = datasets(plots.estimates(truth, estimate, 1000.0, labels=labels, **WORDS))
        points = rows["points"]
        assert min(point["truth"] for point in points) >= np.sort(truth)[-plots.MAX_POINTS]
        for point in points[::100]:
            i = names.index(point["query"])
            assert point["truth"] == truth[i]
            assert point["estimate"] == pytest.approx(estimate[i], abs=0.051)
            assert point["error"] == pytest.approx(estimate[i] - truth[i], abs=0.051)


def test_labels_are_asked_only_for_the_dots() -> None:
    asked: list[int] = []

    def label(index: int) -> str:
        asked.append(index)
        return str(index)

    plots.estimates(*workload(50_000), 1e6, labels=label, **WORDS)
    assert len(asked) == plots.MAX_POINTS


def test_mean_errors_have_a_line_per_method() -> None:
    truth, estimate = workload(5000)
    chart = plots.mean_errors(truth, {"a": estimate, "b": truth + 7}, **WORDS)
    (rows,) = datasets(chart).values()
    assert {row["method"] for row in rows} == {"a", "b"}
    assert {row["y"] for row in rows if row["method"] == "b"} == {7.0}
    assert rows[0]["x"] == 0
    assert rows[0]["n"] == 5000
    assert rows[0]["y"] == pytest.approx(np.abs(estimate - truth).mean(), abs=0.01)
    assert min(row["n"] for row in rows) >= plots.MIN_QUERIES


@pytest.mark.parametrize("truth", [[3.0], [0.0] * 5, [0.0, 1.0, 2.7], [1e6, 0.0]])
def test_few_or_equal_counts_are_drawn_too(truth: list[float], tmp_path: Path) -> None:
    known = np.array(truth)
    chart = plots.estimates(known, known + 1, 2.0, labels=["q"] * len(truth), **WORDS)
    assert len(datasets(chart)["points"]) == len(truth)
    assert all(path.stat().st_size > 10_000 for path in plots.save(chart, tmp_path / "few"))


@pytest.mark.parametrize(
    ("truth", "estimate", "halfwidth", "more"),
    [
        ([1.0, 2.0], [1.0], 1.0, {}),
        ([], [], 1.0, {}),
        ([1.0], [np.nan], 1.0, {}),
        ([-1.0], [1.0], 1.0, {}),
        ([1.0], [1.0], 0.0, {}),
        ([1.0], [1.0], np.inf, {}),
        ([1.0], [1.0], 1.0, {"labels": ["one", "two"]}),
        ([1.0], [1.0], 1.0, {"method": "a", "others": {"a": [1.0]}}),
        ([1.0], [1.0], 1.0, {"others": {str(i): [1.0] for i in range(7)}}),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    truth: list[float], estimate: list[float], halfwidth: float, more: dict[str, Any]
) -> None:
    options = {"labels": str, **WORDS, **more}
    with pytest.raises(UsageError):
        plots.estimates(np.array(truth), np.array(estimate), halfwidth, **options)


def test_no_method_is_refused() -> None:
    with pytest.raises(UsageError):
        plots.mean_errors(np.array([1.0]), {}, **WORDS)


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_missing_extra_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, estimate = workload(10)
    # None in sys.modules is how Python marks a module as not importable.
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=missing) as refusal:
        plots.estimates(truth, estimate, 1.0, labels=str, **WORDS)
    assert refusal.value.hint == "pip install 'voile[plots]'"


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "kept.png"
    old.write_bytes(b"old")

    def full(_path: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    chart = plots.mean_errors(np.array([1.0, 2.0]), {"a": np.array([1.0, 3.0])}, **WORDS)
    with pytest.raises(UsageError, match="no space"):
        plots.save(chart, tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.png"]
    assert old.read_bytes() == b"old"
