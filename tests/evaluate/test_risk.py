"""Risk against brute force: rows compared with rows, sets of columns one by one.

Tables are random with fixed seeds and small enough to enumerate; numbers are compared exactly or
to 1e-9, so there is no false alarm. Only `test_models_find_the_uniques_of_a_sampled_population`
compares an estimate with a truth: its tolerance is 6 standard errors of the sample.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.support.paths import TESTS
from voile.cli import app
from voile.errors import TableError, UsageError, VoileError
from voile.evaluate.risk import Risk, risk
from voile.evaluate.risk.disclosure import LARGEST_KEY, keys_of
from voile.evaluate.risk.page import chances, class_sizes, facts, meaning
from voile.evaluate.risk.uniqueness import (
    expected_unique,
    feasible,
    fitted,
    log_likelihood,
    pitman_unique,
    set_weight,
    zayatz_unique,
)
from voile.units import percent

QI = ("a", "b", "c", "d")
Row = tuple[Any, ...]


def random_table(seed: int, rows: int = 60) -> list[Row]:
    """Four quasi-identifiers, some of them empty or suppressed, and a sensitive value."""
    random = np.random.default_rng(seed)
    values: list[Any] = ["x", "y", "z", "*", None]
    chances = [0.5, 0.25, 0.1, 0.1, 0.05]
    drawn = [random.choice(5, rows, p=chances) for _ in QI]
    columns = [[values[i] for i in column] for column in drawn]
    columns[1] = [int(n) for n in random.integers(0, 9, rows)]
    sensitive = [f"s{i}" for i in random.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])]
    return list(zip(*columns, sensitive, strict=True))


def arrow(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip((*QI, "s"), map(list, columns), strict=True)))


def looked_at(rows: list[Row], **options: Any) -> Risk:
    return risk(arrow(rows), qi=QI, sensitive="s", **options)


@pytest.fixture(params=range(6))
def rows(request: pytest.FixtureRequest) -> list[Row]:
    return random_table(request.param)


# ---------------------------------------------------------------------- classes


def test_k_and_chances_are_those_of_rows_that_are_alike(rows: list[Row]) -> None:
    found = looked_at(rows, threshold=0.4)
    sizes = [sum(other[:4] == row[:4] for other in rows) for row in rows]
    assert found.k == min(sizes)
    assert len(found.classes) == len({row[:4] for row in rows})
    assert found.uniqueness.unique == sizes.count(1)
    assert found.prosecutor.largest == 1 / min(sizes)
    assert found.prosecutor.average == pytest.approx(sum(1 / n for n in sizes) / len(rows))
    assert found.prosecutor.above == pytest.approx(sum(1 / n > 0.4 for n in sizes) / len(rows))
    assert found.marketer == pytest.approx(len({row[:4] for row in rows}) / len(rows))
    for chance, share in found.prosecutor.steps():
        assert share == pytest.approx(sum(1 / n >= chance - 1e-12 for n in sizes) / len(rows))
    for group in found.class_sizes():
        low, high = group["from"] or 1, group["to"] or math.inf
        assert group["rows"] == sum(low <= n <= high for n in sizes)


def test_a_chance_at_the_threshold_is_not_above_it() -> None:
    found = looked_at([("x", 1, "y", "z", "s0")] * 5, threshold=0.2)
    assert found.prosecutor.above == 0
    assert looked_at([("x", 1, "y", "z", "s0")] * 4, threshold=0.2).prosecutor.above == 1


def test_what_classes_tell_is_what_their_values_are(rows: list[Row]) -> None:
    found = looked_at(rows)
    whole = Counter(row[4] for row in rows)
    classes = [
        Counter(row[4] for row in rows if row[:4] == cell) for cell in {row[:4] for row in rows}
    ]
    assert found.measured("l_distinct") == min(len(c) for c in classes)
    assert found.measured("l_frequency") == pytest.approx(
        min(c.total() / max(c.values()) for c in classes)
    )
    entropies = [-sum(n / c.total() * math.log(n / c.total()) for n in c.values()) for c in classes]
    assert found.measured("l_entropy") == pytest.approx(math.exp(min(entropies)))
    apart = [
        sum(abs(Fraction(c[v], c.total()) - Fraction(whole[v], len(rows))) for v in whole) / 2
        for c in classes
    ]
    assert found.measured("t_emd_equal") == pytest.approx(float(max(apart)))
    assert found.measured("t") == pytest.approx(max(divergence(c, whole) for c in classes))
    ratios = [
        abs(math.log(Fraction(c[v], c.total()) / Fraction(whole[v], len(rows))))
        for c in classes
        for v in c
    ]
    assert found.measured("semantic_ignored") == pytest.approx(max(ratios))
    absent = any(len(c) < len(whole) for c in classes)
    assert (found.measured("semantic") is None) == absent


def divergence(one: Counter[str], whole: Counter[str]) -> float:
    def part(share: float, mean: float) -> float:
        return share * math.log(share / mean) if share else 0.0

    total = 0.0
    for value in whole:
        p, q = one[value] / one.total(), whole[value] / whole.total()
        total += part(p, (p + q) / 2) / 2 + part(q, (p + q) / 2) / 2
    return total


def test_several_sensitive_attributes_count_with_their_worst(rows: list[Row]) -> None:
    both = risk(arrow(rows), qi=("a", "b"), sensitive=["s", "d"])
    alone = [risk(arrow(rows), qi=("a", "b"), sensitive=name) for name in ("s", "d")]
    assert both.measured("l_distinct") == min(r.measured("l_distinct") or 0 for r in alone)
    assert both.measured("t") == max(r.measured("t") or 0 for r in alone)
    assert [d.attribute for d in both.disclosures] == ["s", "d"]


def test_classes_are_looked_at_in_parts(rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = looked_at(rows).to_dict()
    monkeypatch.setattr("voile.evaluate.risk.disclosure.PART", 7)
    assert looked_at(rows).to_dict() == whole


def test_adult_has_the_oracles_classes() -> None:
    data = json.loads((TESTS / "oracle" / "frontier.json").read_text())["data"]
    qi = ["age", "workclass", "education", "marital_status", "race", "sex"]
    found = risk("dataset:adult/frontier", qi=qi, sensitive="occupation")
    assert (found.rows, len(found.classes)) == (data["rows"], data["distinct_qi_cells"])


# ---------------------------------------------------------------------- a population


def test_a_journalist_looks_among_the_population() -> None:
    everyone = random_table(20, rows=200)
    rows = everyone[::4]
    found = looked_at(rows, population=arrow(everyone), threshold=0.3)
    people = [sum(other[:4] == row[:4] for other in everyone) for row in rows]
    assert found.journalist is not None
    assert found.journalist.largest == 1 / min(people)
    assert found.journalist.average == pytest.approx(sum(1 / n for n in people) / len(rows))
    assert found.journalist.above == pytest.approx(sum(1 / n > 0.3 for n in people) / len(rows))
    assert found.marketer == found.journalist.average
    assert found.uniqueness.population_unique == people.count(1)
    assert (found.population, found.outside) == (200, 0)
    shares = {
        cell: sum(r[:4] == cell for r in rows) / sum(r[:4] == cell for r in everyone)
        for cell in {row[:4] for row in everyone}
    }
    assert found.presence is not None
    assert found.presence.low == pytest.approx(min(shares.values()))
    assert found.presence.high == pytest.approx(max(shares.values()))
    alone = looked_at(rows)
    assert found.to_dict()["attributes"] == alone.to_dict()["attributes"]
    assert found.unique_sets.to_dict() == alone.unique_sets.to_dict()


def test_rows_that_a_population_lacks_are_told() -> None:
    everyone = random_table(21, rows=80)
    rows = [*everyone[:30], ("new", 1, "x", "x", "s0")]
    found = looked_at(rows, population=arrow(everyone))
    assert found.outside == 1
    assert any("1 row is not in the population" in note for note in found.notes)


# ---------------------------------------------------------------------- sets that single out


@pytest.mark.parametrize("largest", [1, 2, 3, 4])
def test_minimal_unique_sets_are_all_there_are(rows: list[Row], largest: int) -> None:
    found = looked_at(rows, largest=largest).unique_sets
    minimal: Counter[tuple[str, ...]] = Counter()
    single: Counter[tuple[str, ...]] = Counter()
    scores = []
    for row in rows:
        sets = [s for s in subsets(largest) if singles_out(rows, row, s)]
        least = [s for s in sets if not any(set(t) < set(s) for t in sets)]
        single.update(names(s) for s in sets)
        minimal.update(names(s) for s in least)
        scores.append(sum(set_weight(len(s), 4, largest) for s in least))
    assert {s.columns: s.rows for s in found.sets} == dict(single)
    assert {s.columns: s.minimal for s in found.sets if s.minimal} == dict(minimal)
    assert found.rows == sum(score > 0 for score in scores)
    assert sorted(found.scores) == sorted(score for score in scores if score)
    assert [minimal_sets for minimal_sets, _ in found.by_size] == [
        sum(n for s, n in minimal.items() if len(s) == size) for size in range(1, largest + 1)
    ]
    for column in found.columns:
        with_it = {s: n for s, n in minimal.items() if column.column in s}
        assert column.minimal == sum(with_it.values())
        weighed = sum(set_weight(len(s), 4, largest) * n for s, n in with_it.items())
        assert column.share == pytest.approx(weighed / (sum(scores) or 1))


def subsets(largest: int) -> list[tuple[int, ...]]:
    return [s for n in range(1, largest + 1) for s in itertools.combinations(range(4), n)]


def names(chosen: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(QI[j] for j in chosen)


def singles_out(rows: list[Row], row: Row, chosen: tuple[int, ...]) -> bool:
    return sum(all(other[j] == row[j] for j in chosen) for other in rows) == 1


def test_weights_are_sudas() -> None:
    """Of 5 columns and sets of up to 3: (5−1)(5−2)(5−3), (5−2)(5−3), 5−3."""
    assert [set_weight(size, 5, 3) for size in (1, 2, 3)] == [24, 6, 2]
    assert [set_weight(size, 3, 3) for size in (1, 2, 3)] == [2, 1, 1]


def test_sets_that_are_too_many_are_not_looked_at() -> None:
    assert feasible(7, 5_000_000, 3) == 3
    assert feasible(200, 5_000_000, 3) == 1
    assert feasible(2, 100, 3) == 2


def test_keys_of_many_large_columns_stay_apart() -> None:
    random = np.random.default_rng(5)
    codes = random.integers(0, 3, (40, 300)).astype(np.int32)
    codes[:, 200:] = codes[:, :100]
    sizes = [2**9] * 40  # 2**360 combinations
    assert math.prod(sizes) > LARGEST_KEY
    _, found = np.unique(keys_of(codes, sizes), return_inverse=True)
    _, expected = np.unique(codes, axis=1, return_inverse=True)
    alike = found[:, None] == found[None, :]
    assert (alike == (expected.ravel()[:, None] == expected.ravel()[None, :])).all()


# ---------------------------------------------------------------------- models of uniqueness


def partitions(n: int) -> list[list[int]]:
    """All ways to seat n people at tables, as the table of each."""
    ways: list[list[int]] = [[0]]
    for _ in range(n - 1):
        ways = [[*way, table] for way in ways for table in range(max(way) + 2)]
    return ways


def sizes_of(way: list[int]) -> tuple[Any, Any]:
    return np.unique(np.bincount(way), return_counts=True)


@pytest.mark.parametrize(("theta", "alpha"), [(1.5, 0.3), (0.4, 0.8), (20.0, 0.05)])
def test_pitmans_chances_sum_to_one_and_expect_their_uniques(theta: float, alpha: float) -> None:
    ways = partitions(7)
    chances = [math.exp(log_likelihood(theta, alpha, *sizes_of(way))) for way in ways]
    assert sum(chances) == pytest.approx(1)
    unique = [int((np.bincount(way) == 1).sum()) for way in ways]
    expected = sum(c * u for c, u in zip(chances, unique, strict=True))
    assert expected_unique(theta, alpha, 7) == pytest.approx(expected)


def test_pitmans_parameters_are_the_likeliest() -> None:
    sizes, classes = np.array([1, 2, 3, 5, 9]), np.array([60, 20, 8, 3, 1])
    theta, alpha = fitted(sizes, classes)
    best = log_likelihood(theta, alpha, sizes, classes)
    for other in np.exp(np.linspace(-1, 8, 60)):
        for share in np.linspace(0.02, 0.98, 60):
            assert log_likelihood(other, share, sizes, classes) <= best + 1e-6


def test_zayatz_by_hand() -> None:
    """4 classes of one and 2 of three, at 1/2: 4 · 4·½ / (4·½ + 2·3·½·¼)."""
    found = zayatz_unique(np.array([1, 3]), np.array([4, 2]), 0.5)
    assert found == pytest.approx(4 * 2 / (2 + 0.75))


def test_a_table_that_is_everyone_is_as_unique_as_it_is() -> None:
    sizes, classes = np.array([1, 2]), np.array([5, 7])
    assert pitman_unique(sizes, classes, 1.0) == zayatz_unique(sizes, classes, 1.0) == 5


def test_models_find_the_uniques_of_a_sampled_population() -> None:
    """A population of Pitman's own making, of which a tenth is seen."""
    random = np.random.default_rng(9)
    people = seated(random, 100_000, theta=50.0, alpha=0.6)
    population = np.bincount(people)
    sample = np.bincount(random.permutation(people)[:10_000], minlength=len(population))
    truth = int(((sample == 1) & (population == 1)).sum())
    sizes, classes = np.unique(sample[sample > 0], return_counts=True)
    found = pitman_unique(sizes, classes, 0.1)
    assert abs(found - truth) < 6 * math.sqrt(truth) < 0.3 * truth
    assert zayatz_unique(sizes, classes, 0.1) > truth  # it is known to overestimate


def seated(random: np.random.Generator, n: int, theta: float, alpha: float) -> Any:
    """One after the other: at a new table, or at one with a chance of its people less α."""
    tables, at = [1], [0]
    draws = random.random(n)
    for i in range(1, n):
        new = (theta + alpha * len(tables)) / (theta + i)
        if draws[i] < new:
            tables.append(0)
            at.append(len(tables) - 1)
        else:  # somebody's table, and one without regard to α as often as must be
            while True:
                chosen = at[int(random.integers(i))]
                if random.random() * tables[chosen] >= alpha:
                    break
            at.append(chosen)
        tables[at[-1]] += 1
    return np.array(at)


# ---------------------------------------------------------------------- suppressed and empty


SHOWN = "age,zip,illness\n[20-30],1*,flu\n[20-30],1*,cold\n*,*,flu\n*,*,flu\n,2*,cold\n,2*,\n"


@pytest.fixture
def anonymised(tmp_path: Path) -> Path:
    path = tmp_path / "shown.csv"
    path.write_text(SHOWN)
    return path


def test_suppressed_and_empty_cells_are_values_of_their_own(anonymised: Path) -> None:
    found = risk(anonymised, qi=["age", "zip"], sensitive="illness")
    assert (found.rows, found.k, len(found.classes)) == (6, 2, 3)
    assert (found.suppressed_cells, found.suppressed_rows, found.rows_left_out) == (4, 2, 0)
    assert found.measured("l_distinct") == 1
    assert any("4 cells are suppressed" in note for note in found.notes)
    named = risk(anonymised, qi=["age", "zip"], suppressed=["1*"])
    assert (named.suppressed_cells, named.suppressed_rows) == (2, 0)


def test_rows_of_which_nothing_is_shown_may_be_left_out(anonymised: Path) -> None:
    found = risk(anonymised, qi=["age", "zip"], sensitive="illness", suppressed_rows="leave-out")
    assert (found.rows, found.rows_left_out, len(found.classes)) == (4, 2, 2)
    assert found.measured("l_distinct") == 2


def test_all_columns_are_taken_only_with_a_word_about_it(anonymised: Path) -> None:
    found = risk(anonymised, sensitive=["illness"])
    assert found.qi == ("age", "zip")
    assert not found.qi_given
    assert any("all 2 columns were taken" in note for note in found.notes)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0 %"), (2e-7, "2e-05 %"), (0.1676, "16.8 %"), (0.999992, "99.9992 %"), (1, "100 %")],
)
def test_only_what_is_all_is_a_hundred_per_cent(share: float, words: str) -> None:
    assert percent(share, rough=True) == words


# ---------------------------------------------------------------------- the command


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["risk", *map(str, arguments)])


def test_the_command_prints_stable_keys(anonymised: Path) -> None:
    done = run(anonymised, "--qi", "age,zip", "--sensitive", "illness", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["k"], found["l_distinct"], found["l_frequency"]) == (2, 1, 1)
    assert list(found) == [
        "table", "rows", "qi", "qi_given", "sensitive", "classes", "k", "l_distinct",
        "l_frequency", "l_entropy", "t", "t_emd_equal", "semantic", "semantic_ignored",
        "t_distance", "attributes", "threshold", "prosecutor", "journalist", "marketer",
        "presence", "uniqueness", "class_sizes", "unique_sets", "population",
        "rows_outside_population", "suppressed_cells", "suppressed_rows", "rows_left_out", "notes",
    ]  # fmt: skip


def test_chances_are_drawn_from_all_rows_to_none() -> None:
    """Also where all classes have one size: every row unique is the worst case."""
    alone = looked_at([(f"x{i}", i, "y", "z", "s0") for i in range(9)])
    (line,) = lines_of(alone)
    assert line == [(0.1, 1.0), (1.0, 1.0), (1.0, 0.0)]
    several = looked_at([("x", i // 4, "y", "z", "s0") for i in range(9)])
    (line,) = lines_of(several)
    assert line == [(0.1, 1.0), (0.25, 1.0), (1.0, pytest.approx(1 / 9)), (1.0, 0.0)]


def lines_of(found: Risk) -> list[list[tuple[float, float]]]:
    """What is drawn as lines, by who looks."""
    drawn = chances(found).to_dict()
    (line,) = [layer for layer in drawn["layer"] if layer["mark"]["type"] == "line"]
    points: dict[str, list[tuple[float, float]]] = {}
    for record in drawn["datasets"][line["data"]["name"]]:
        points.setdefault(record["who"], []).append((record["chance"], record["share"]))
    return list(points.values())


def test_a_single_bar_has_a_label_that_is_not_turned() -> None:
    angles = []
    for number in (1, 12):
        found = looked_at([("x", i, "y", "z", "s0") for i in range(number) for _ in range(2**i)])
        angles.append(class_sizes(found).to_dict()["encoding"]["x"]["axis"]["labelAngle"])
    assert angles == [0, -35]


def test_a_share_names_its_threshold_and_means_something(anonymised: Path) -> None:
    found = risk(anonymised, qi=["age"], population=anonymised, threshold=0.35)
    named = [name for name, _ in facts(found) if "above" in name]
    assert named == ["prosecutor, above 0.35", "journalist, above 0.35"]
    assert all(meaning(name) for name, _ in facts(found))
    assert meaning("singled out by 1") == "rows that 1 column is enough to single out"
    assert "2 columns, or fewer" in meaning("singled out by 2")


def test_a_note_names_few_of_many_columns() -> None:
    table = pa.table({f"c{i}": [1, 2] for i in range(200)})
    (note, *_) = risk(table, largest=1).notes
    assert "all 200 columns" in note and "c9 and 190 more" in note and "c10" not in note


def test_the_view_says_what_matters(anonymised: Path) -> None:
    done = run(anonymised, "--qi", "age,zip", "--sensitive", "illness")
    assert done.exit_code == 0, done.output
    assert "Every row shares its age and zip with at least 1 other (k = 2)" in done.stdout
    assert "No row is singled out" in done.stdout
    assert "are alone" in run("dataset:adult/frontier", "--qi", "age,education,race").stdout


def test_a_page_is_whole_and_holds_no_values_as_code(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    table = tmp_path / "<b>.csv"
    table.write_text("<script>alert(1)</script>,n\nx,1\ny,2\n")
    page, plot = tmp_path / "risk.html", tmp_path / "risk.png"
    done = run(table, "--page", page, "--plot", plot, "--sampling-fraction", 0.5)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "<script>alert" not in text
    assert "2 of 2 rows" in text
    assert text.index("Risk of") < text.index("<svg") < text.index("All measures")
    assert not re.search(r"<(?:script|link|img)\b[^>]*\b(?:src|href)=\"(?:https?:)?//", text)
    assert plot.read_bytes().startswith(b"\x89PNG")
    again = run(table, "--page", page)
    assert isinstance(again.exception, UsageError)
    assert run(table, "--page", page, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--qi", "age,zap"], "has no column 'zap'"),
        (["--qi", "age,age"], "named twice"),
        (["--qi", ""], "no columns were chosen"),
        (["--sensitive", "ilness"], "has no column 'ilness'"),
        (["--qi", "age,illness", "--sensitive", "illness"], "quasi-identifier and sensitive"),
        (["--sensitive", "age,zip,illness"], "no columns were chosen"),
        (["--threshold", "0"], "threshold = 0 must be"),
        (["--threshold", "2"], "threshold = 2 must be"),
        (["--threshold", "nan"], "threshold = nan must be"),
        (["--sampling-fraction", "1.5"], "sampling fraction = 1.5"),
        (["--largest", "0"], "largest = 0 must be"),
        (["--suppressed-rows", "drop"], "'drop', is not known"),
        (["--page", "page.txt"], "is no page"),
        (["--plot", "plot.doc"], "ends in .doc"),
        (["--page", "nowhere/page.html"], "no folder"),
        (["--population", "dataset:nobody"], "nobody"),
    ],
    ids=lambda a: " ".join(a) if isinstance(a, list) else "",
)
def test_wrong_calls_are_named(anonymised: Path, arguments: list[str], words: str) -> None:
    done = run(anonymised, *arguments)
    assert isinstance(done.exception, VoileError)
    assert words in done.exception.message
    assert done.exception.hint
    assert done.exception.exit_code == 2


def test_a_population_of_others_is_refused(anonymised: Path, tmp_path: Path) -> None:
    others = tmp_path / "others.csv"
    others.write_text("age,zip\n25,12\n")
    done = run(anonymised, "--qi", "age,zip", "--population", others)
    assert isinstance(done.exception, UsageError)
    assert "no row of the table" in done.exception.message


@pytest.mark.parametrize("text", ["a,b\n", "a,b\n*,*\n"])
def test_a_table_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "none.csv"
    path.write_text(text)
    with pytest.raises(TableError, match=r"no rows|every row is suppressed"):
        risk(path, suppressed_rows="leave-out")
