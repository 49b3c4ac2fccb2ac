"""A release's rows on a cluster: the same answers as DuckDB's, and nothing else is read.

What every engine owes is in tests/engines/test_rows.py.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.spark.cluster import ApacheSpark
from tests.support.published import KINDS
from voile.engines.duckdb import weighted
from voile.engines.duckdb.rows import DuckRows
from voile.engines.spark import rows as spark_rows
from voile.engines.spark.rows import ClusterEngine, SparkRows
from voile.engines.spark.session import Cluster, cluster_at
from voile.errors import QueryError, ReleaseError, UsageError, VoileError
from voile.kinds.parquet import write_part
from voile.query import parse
from voile.query.predicate import Term
from voile.query.rows import HISTORY, SCORE, SPREAD, WeightedTerm
from voile.schema import Attribute, Interval, Range, Schema, TupleIndex, Values, WholeBins

QUERIES = (
    "select count(*) from t",
    "select count(*) from t where age > 40",
    "select sex, count(*) from t group by sex",
    "select job, avg(pay) from t where age between 25 and 50 group by job",
    "select sum(pay) from t where job in ('a', 'c')",
    "select count(*) from t where case when sex = 'F' then pay > 5 else age < 30 end",
    "select floor(age / 10), count(*), sum(pay * 2) from t group by 1",
    "select median(pay) from t where sex = 'M'",
    "select stddev(pay) from t",
    "select count(*) from t where job in (select code from jobs where good)",
    "select jobs.word, count(*) from t join jobs on t.job = jobs.code group by jobs.word",
    "select count(*) from t where pay > age / 5 or sex is null",
    "select sex, job, sum(age) from t where pay <> 3 group by sex, job",
    "select count(*) from t where 1 / (age - 30) > 0",
)
JOBS = pd.DataFrame(
    {"code": [*"abcd"], "good": [True, False, True, False], "word": ["x", "y", "x", "z"]}
)
ASKED = ("view", "view, a set", "view, shaped", "view, series", "perturbed", "perturbed, em",
         "marginals", "counts", "classes, mondrian", "classes, anatomy")  # fmt: skip
"""Kinds of releases; those without rows must simply work."""
SUMMED = ("view, shaped", "view, series")
"""Those whose estimates are sums of floats."""


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return cluster_at("local")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return published("perturbed", tmp_path_factory.mktemp("release"))


def table(count: int = 1500) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, count),
            "sex": rng.choice(["F", "M"], count),
            "job": rng.choice([*"abcd"], count, p=[0.5, 0.3, 0.15, 0.05]),
            "pay": rng.integers(0, 12, count),
        }
    )


def published(name: str, folder: Path) -> Any:
    kind = KINDS[name]
    return kind.publish(kind.table(table(), 7), 7, folder)


def answer(release: Any, sql: str, name: str, **more: Any) -> Any:
    """Numbers, or the words of a refusal."""
    try:
        found = release.query(sql, tables={"jobs": JOBS}, **KINDS[name].ask, **more)
    except VoileError as error:
        return str(error)
    return found.to_dict()


def leaves(found: Any) -> Iterator[Any]:
    if isinstance(found, dict | list):
        for part in found.values() if isinstance(found, dict) else found:
            yield from leaves(part)
    else:
        yield found


def assert_same(one: Any, other: Any, tolerance: float = 0.0) -> None:
    left, right = [*leaves(one)], [*leaves(other)]
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        if isinstance(a, float) and isinstance(b, float):
            assert math.isclose(a, b, rel_tol=tolerance) or math.isnan(a), (a, b)
        else:
            assert a == b


# ---------------------------------------------------------------------- answers


@pytest.mark.parametrize("name", ASKED)
def test_answers_are_those_of_duckdb(name: str, tmp_path: Path, cluster: Cluster) -> None:
    release = published(name, tmp_path)
    tolerance = 1e-12 if name in SUMMED else 0.0
    for sql in QUERIES:
        ours = answer(release, sql, name)
        assert_same(ours, answer(release, sql, name, engine=cluster), tolerance)
    ours, theirs = (release.explain(QUERIES[3], engine=e) for e in (None, cluster))
    assert_same(ours, theirs, tolerance)


@pytest.mark.parametrize("whole", [False, True], ids=["by question", "as a whole"])
@pytest.mark.parametrize("name", ["view", "view, series", "perturbed"])
def test_answers_do_not_depend_on_what_is_brought_at_once(
    name: str, whole: bool, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted, "WHOLE", 2**40 if whole else 0)
    release = published(name, tmp_path)
    for sql in QUERIES[3:7]:
        assert_same(answer(release, sql, name), answer(release, sql, name, engine=cluster), 1e-12)


def test_a_release_remembers_its_engine(tmp_path: Path, cluster: Cluster) -> None:
    made = published("view", tmp_path)
    release = voile.open(made.path, engine=cluster)
    assert isinstance(release._view, SparkRows)
    assert release.counted_by(cluster) is release
    assert release.counted_by("local") is release  # the same session
    assert_same(made.query(QUERIES[2]).to_dict(), release.query(QUERIES[2]).to_dict())
    other = made.counted_by(cluster.session)
    assert other is made.counted_by(cluster)
    assert type(other) is type(made)
    assert not isinstance(made._view, SparkRows)


def test_attacks_and_losses_count_on_the_cluster_too(tmp_path: Path, cluster: Cluster) -> None:
    made = published("view", tmp_path)
    other = made.counted_by(cluster)
    codes = TupleIndex(made.schema.sizes).decode(made.keys()[:200])
    assert other.seen(codes).tolist() == made.seen(codes).tolist()
    assert sorted(other.keys()) == sorted(made.keys())
    assert other.to_arrow().equals(made.to_arrow())
    assert other.foreign_attribute() is None


# ---------------------------------------------------------------------- random releases


SCHEMA = Schema(
    (
        Attribute("whole", "integer", Range(-3, 9), null=True),
        Attribute('Text `of` "all" kinds.', "categorical", Values(("", "ä b", "`", "'", "."))),
        Attribute("number", "numeric", Values((-0.0, 0.5, 1e300)), null=True),
        Attribute("step", "numeric", Interval(0.0, 1.0, 0.1)),
        Attribute("truth", "boolean", Values((False, True)), null=True),
        Attribute("day", "date", Range(dt.date(1400, 2, 27), dt.date(1400, 3, 2))),
        Attribute("binned", "integer", WholeBins((0.0, 5.0, 20.0)), null=True),
    )
)
EXPRESSIONS = (
    "whole", "whole * 2 + step", '"Text `of` ""all"" kinds."', "cast(number as varchar)",
    "1 / number", "step", "truth", "day", "month(day)", "binned", "whole > 2 and truth",
    "length(\"Text `of` \"\"all\"\" kinds.\")", "number is null",
)  # fmt: skip


def random_parts(folder: Path, sizes: tuple[int, ...], seed: int) -> list[Path]:
    rng, index = np.random.default_rng(seed), TupleIndex(SCHEMA.sizes)
    files = []
    for number, count in enumerate(sizes):
        codes = [rng.integers(0, size, count) for size in SCHEMA.sizes]
        files.append(folder / f"part-{number:05}.parquet")
        write_part(files[-1], SCHEMA, [index.encode(codes)])
    return files


def expression(text: str) -> Any:
    return parse(f"select count(*) from t group by {text}", SCHEMA).groups[0]


def listed(rows: Any, keys: Any, sums: Any) -> dict[Any, Any]:
    found = rows.sums(None, keys, sums)
    return dict(zip(zip(*(map(str, k) for k in found.keys), strict=True), found.sums, strict=True))


@pytest.mark.parametrize("sizes", [(0,), (1,), (300, 0, 500)], ids=str)
def test_random_releases(tmp_path: Path, cluster: Cluster, sizes: tuple[int, ...]) -> None:
    files = random_parts(tmp_path, sizes, sum(sizes))
    ours = DuckRows(files, SCHEMA)
    theirs = SparkRows(cluster, [*map(str, files)], SCHEMA, rows=sum(sizes))
    rng = np.random.default_rng(0)
    for _ in range(25):
        keys = [expression(text) for text in rng.choice(EXPRESSIONS, 2, replace=False)]
        values = tuple(map(expression, rng.choice(["whole", "number", "step"], rng.integers(3))))
        asked = keys, [WeightedTerm(Term()), WeightedTerm(Term(None, values))]
        one, other = listed(ours, *asked), listed(theirs, *asked)
        assert one.keys() == other.keys()
        for key, sums in one.items():
            np.testing.assert_allclose(other[key], sums, rtol=1e-12)
    assert ours.outside() is theirs.outside() is None
    assert sorted(ours.keys()) == sorted(theirs.keys())


def test_random_histories(tmp_path: Path, cluster: Cluster) -> None:
    rng = np.random.default_rng(5)
    rows = pq.read_table(random_parts(tmp_path, (400,), 3)[0])
    rows = rows.append_column(HISTORY, pa.array(rng.choice(["0,1", "2,0", "1,1"], 400)))
    pq.write_table(rows, tmp_path / "h.parquet")
    scores = pa.table({HISTORY: ["0,1", "2,0", "1,1"], SCORE: [0.1, 0.3, -2], SPREAD: [1, 0.7, 0]})
    ours = DuckRows([tmp_path / "h.parquet"], SCHEMA, scores)
    theirs = SparkRows(cluster, [str(tmp_path / "h.parquet")], SCHEMA, scores)
    sums = [WeightedTerm(Term(), weight) for weight in ("", SCORE, SPREAD)]
    for text in EXPRESSIONS:
        one, other = (listed(rows, [expression(text)], sums) for rows in (ours, theirs))
        assert one.keys() == other.keys()
        for key, found in one.items():
            np.testing.assert_allclose(other[key], found, rtol=1e-12, atol=1e-12)
            assert other[key][0] == found[0]


# ---------------------------------------------------------------------- what is read, and refused


@pytest.mark.parametrize("folder", ["age=45", "with space", "per%20cent", "co,lon:", "ünï"])
def test_folders_are_no_columns_and_no_patterns(
    tmp_path: Path, cluster: Cluster, folder: str
) -> None:
    """A folder that is called age=45 adds no column, and files beside are not read."""
    home = tmp_path / folder
    home.mkdir()
    files = random_parts(home, (20, 30), 1)
    rows = SparkRows(cluster, [str(files[0])], SCHEMA)
    assert rows.sums(None, [], [WeightedTerm(Term())]).sums.tolist() == [[20.0]]


@pytest.mark.parametrize("sign", "*?[]{}\\")
def test_a_pattern_is_refused(tmp_path: Path, cluster: Cluster, sign: str) -> None:
    with pytest.raises(UsageError, match="for a pattern"):
        SparkRows(cluster, [str(tmp_path / f"a{sign}b" / "part.parquet")], SCHEMA)


def test_files_that_are_not_there(tmp_path: Path, cluster: Cluster) -> None:
    files = random_parts(tmp_path, (20, 30), 1)
    with pytest.raises(ReleaseError, match=r"no rows at|cannot be counted"):
        SparkRows(cluster, [str(tmp_path / "none.parquet")], SCHEMA)
    files[1].unlink()
    with pytest.raises(ReleaseError, match=r"20 rows, and the release states 50|cannot be counted"):
        SparkRows(cluster, [*map(str, files)], SCHEMA, rows=50).sums(
            None, [], [WeightedTerm(Term())]
        )


def test_other_columns_are_refused(tmp_path: Path, cluster: Cluster) -> None:
    files = random_parts(tmp_path, (20,), 1)
    whole = pq.read_table(files[0])
    pq.write_table(whole.drop_columns(["step"]), files[0])
    with pytest.raises(ReleaseError, match="column 'step' is not there"):
        SparkRows(cluster, [str(files[0])], SCHEMA)
    texts = pa.array(["1"] * 20)
    pq.write_table(whole.set_column(0, "whole", texts), files[0])
    with pytest.raises(ReleaseError, match="column 'whole' has strings, not bigints"):
        SparkRows(cluster, [str(files[0])], SCHEMA)


def test_too_many_combinations(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted, "WHOLE", 0)
    monkeypatch.setattr(spark_rows, "MOST", 20)
    files = random_parts(tmp_path, (300,), 1)
    rows = SparkRows(cluster, [*map(str, files)], SCHEMA)
    assert len(rows.sums(None, [expression("whole")], [WeightedTerm(Term())]).sums) == 14
    with pytest.raises(QueryError, match=r"whole, day have 56 combinations .* at most 20") as said:
        rows.sums(None, [expression("whole"), expression("day")], [WeightedTerm(Term())])
    assert "fewer columns" in said.value.hint
    few = SparkRows(cluster, [*map(str, files)], SCHEMA, rows=19)  # which is not true
    with pytest.raises(QueryError, match=r"whole, day have at least \d+ combinations"):
        few.sums(None, [expression("whole"), expression("day")], [WeightedTerm(Term())])


def test_more_values_than_the_domain_has(tmp_path: Path, cluster: Cluster) -> None:
    files = random_parts(tmp_path, (300,), 1)
    narrowed: dict[str, Range | Interval] = {"whole": Range(0, 3), "step": Interval(0.0, 1.0, 0.5)}
    for name, narrow in narrowed.items():
        attributes = [
            Attribute(a.name, a.kind, narrow if a.name == name else a.domain, null=a.null)
            for a in SCHEMA
        ]
        declared = Schema(tuple(attributes))
        assert SparkRows(cluster, [*map(str, files)], declared).outside() == name
        assert DuckRows(files, declared).outside() == name


class FakeSession:
    """Not one of Spark's."""


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("", "is no address of a Spark Connect server"),
        ("spark://host:7077", "is no address of a Spark Connect server"),
        ("http://host", "is no address of a Spark Connect server"),
        ("sc://", "is no address of a Spark Connect server"),
        ("sc://127.0.0.1:1", "no Spark Connect server answers"),
        ("sc://no.such.host.invalid:15002", "no Spark Connect server answers"),
        (7, "a int does not count rows"),
        (FakeSession(), "a FakeSession does not count rows"),
        (pd.DataFrame(), "a DataFrame does not count rows"),
        (ClusterEngine, "a type does not count rows"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_engines_that_are_none(release: Any, engine: Any, said: str) -> None:
    for ask in (
        lambda: release.query(QUERIES[0], engine=engine),
        lambda: release.explain(QUERIES[0], engine=engine),
        lambda: voile.open(release.path, engine=engine),
        lambda: voile.verify(release.path, engine=engine),
    ):
        with pytest.raises(UsageError, match=said):
            ask()


def test_an_interruption_ends_nothing_else(tmp_path: Path, cluster: Cluster) -> None:
    files = random_parts(tmp_path, (30,), 1)
    rows = SparkRows(cluster, [*map(str, files)], SCHEMA)
    rows.interrupt()
    assert rows.sums(None, [], [WeightedTerm(Term())]).sums.tolist() == [[30.0]]


# ---------------------------------------------------------------------- Apache Spark


@pytest.mark.soak
def test_answers_of_apache_spark(tmp_path: Path, apache_spark: ApacheSpark) -> None:
    for name in ("view, series", "perturbed"):
        release = published(name, tmp_path)
        for sql in QUERIES[2:4]:
            theirs = answer(release, sql, name, engine=apache_spark.address)
            assert_same(answer(release, sql, name), theirs, 1e-12)
        assert voile.verify(release, engine=apache_spark.address)
    files = random_parts(tmp_path, (200, 300), 2)
    rows = SparkRows(cluster_at(apache_spark.address), [*map(str, files)], SCHEMA, rows=500)
    ours = DuckRows(files, SCHEMA)
    assert sorted(rows.keys()) == sorted(ours.keys())
    codes = TupleIndex(SCHEMA.sizes).decode(ours.keys()[:50])
    assert rows.counts(codes).tolist() == ours.counts(codes).tolist()
    assert rows.outside() is None
    for text in EXPRESSIONS[1:5]:
        asked = [expression(text)], [WeightedTerm(Term())]
        one, other = listed(ours, *asked), listed(rows, *asked)
        assert one.keys() == other.keys() and all((other[key] == one[key]).all() for key in one)
