"""At most so many rows of each person, and promises that hold for all of them together."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import voile
from tests.support.forging import sealed
from tests.support.running import told
from tests.support.running import voile as run
from voile.errors import ReleaseError, TableError, UsageError, VoileError
from voile.kinds.counts.manifest import change_of, promise_for_delta, promise_for_rho
from voile.kinds.counts.publishing import count_table
from voile.kinds.marginals.measuring import MeasurementPlan, whole_figures
from voile.kinds.marginals.publishing import measure_table
from voile.kinds.people import ProtectedPeople, bounded, kept_rows
from voile.kinds.perturbed.combining import combine
from voile.kinds.perturbed.publishing import perturb_table
from voile.kinds.registration import departure_of
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import of_one_record
from voile.kinds.views.publishing import publish_table
from voile.noise import Key
from voile.privacy import DGamma, plan
from voile.privacy.guarantee import LikelihoodRatio, root
from voile.privacy.interactive.laws import noise_law
from voile.register.accounts import loss_of
from voile.schema import Attribute, Schema, Values

PUBLISHED: dict[str, Any] = {
    "view": (publish_table, {"prior": 0.02}),
    "marginals": (measure_table, {"schema": None}),
    "counts": (count_table, {"arity": 1}),
    "rows": (perturb_table, {"retention": 0.3}),
}


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """Nine hundred rows of about two hundred people."""
    rng = np.random.default_rng(3)
    who = rng.integers(0, 200, 900)
    return pd.DataFrame({
        "who": [f"p{i}" for i in who], "ward": rng.choice(list("abcd"), 900),
        "days": rng.integers(1, 9, 900), "sex": rng.choice(["f", "m"], 900),
    })  # fmt: skip


def published(kind: str, table: Any, **more: Any) -> Any:
    make, options = PUBLISHED[kind]
    given = {name: value for name, value in options.items() if value is not None}
    return make(table, **given, person="who", simulate_seed=5, **more)


# ---------------------------------------------------------------------- which rows are kept


def rows_of(table: Any) -> Counter[tuple[Any, ...]]:
    found = table.rows(list(table.columns))[0].to_pylist()
    return Counter(tuple(row.values()) for row in found)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_at_most_so_many_rows_of_each_are_kept(visits: pd.DataFrame, most: int) -> None:
    kept = bounded(voile.read(visits), "who", most, Key.from_seed(1))
    sizes = visits.groupby("who").size()
    assert len(kept.table) == sizes.clip(upper=most).sum()
    assert kept.count.people == len(sizes)
    assert kept.count.rows_left_out == len(visits) - len(kept.table)
    assert list(kept.table.columns) == ["ward", "days", "sex"]
    assert rows_of(kept.table) <= rows_of(voile.read(visits[["ward", "days", "sex"]]))


def test_the_order_of_the_table_decides_nothing(visits: pd.DataFrame) -> None:
    """Neither which rows are kept nor in which order they are read."""
    first = bounded(voile.read(visits), "who", 2, Key.from_seed(1)).table
    for seed in range(3):
        mixed = visits.sample(frac=1, random_state=seed)
        other = bounded(voile.read(mixed), "who", 2, Key.from_seed(1)).table
        names = list(first.columns)
        assert other.rows(names)[0].equals(first.rows(names)[0])


def test_one_person_does_not_decide_which_rows_of_others_are_kept(visits: pd.DataFrame) -> None:
    """So that tables which differ in a person differ in at most so many kept rows."""
    whole = bounded(voile.read(visits), "who", 2, Key.from_seed(1)).table
    without = bounded(voile.read(visits[visits.who != "p7"]), "who", 2, Key.from_seed(1)).table
    assert rows_of(without) < rows_of(whole)
    assert (rows_of(whole) - rows_of(without)).total() == 2


def test_every_row_of_a_person_is_as_likely_to_be_kept() -> None:
    """Also rows that are equal: 'a' is there three times, and is kept three times in four.

    A sound choice fails with a chance of 10⁻⁶; one that takes equal rows for one, which keeps 'a'
    every second time, passes with less than 10⁻⁹.
    """
    rows = pd.DataFrame({"who": [1] * 4, "value": ["a", "a", "b", "a"]})
    table, times = voile.read(rows), 300
    kept = [
        next(iter(rows_of(bounded(table, "who", 1, Key.from_seed(seed)).table)))[0]
        for seed in range(times)
    ]
    assert stats.binomtest(kept.count("a"), times, 0.75).pvalue > 1e-6
    assert stats.binomtest(times // 2, times, 0.75).pvalue < 1e-9


@pytest.mark.parametrize("kind", PUBLISHED)
def test_the_same_coins_give_the_same_release_whatever_the_order(
    kind: str, visits: pd.DataFrame
) -> None:
    one = published(kind, visits, rows_per_person=2).release
    other = published(kind, visits.iloc[::-1], rows_per_person=2).release
    files = [file.sha256 for file in one.manifest.files if file.path.startswith("data/")]
    assert files
    assert files == [f.sha256 for f in other.manifest.files if f.path.startswith("data/")]


# ---------------------------------------------------------------------- views: exact likelihoods


def chance_of_copies(mechanism: AlphaBeta, records: int, most: int) -> np.ndarray[Any, Any]:
    """P(a tuple with so many records is seen 0, 1, … times), by convolution."""
    kept = stats.binom.pmf(np.arange(records + 1), records, mechanism.retention)
    noise = (1 - mechanism.noise) * mechanism.noise ** np.arange(most + 1)
    return np.convolve(kept, noise)[: most + 1]


def ratios(mechanism: AlphaBeta, others: tuple[int, ...], rows: tuple[int, ...]) -> Iterator[float]:
    """P(view | with the person) / P(view | without), for every view of two tuples."""
    most = 12
    with_, without = (
        [chance_of_copies(mechanism, n, most) for n in counts]
        for counts in (tuple(map(sum, zip(others, rows, strict=True))), others)
    )
    for seen in itertools.product(range(most + 1), repeat=2):
        yield math.prod(w[y] / o[y] for w, o, y in zip(with_, without, seen, strict=True))


@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_view_keeps_its_promise_for_all_rows_of_a_person(adversary: Any, most: int) -> None:
    """Every view, every table of two tuples and every way to have so many rows."""
    promise = DGamma(0.05, 0.3, adversary)
    planned = plan(of_one_record(promise, most), "multiset")
    mechanism = AlphaBeta(planned.retention, planned.noise, "multiset")
    bounds = mechanism.likelihood_ratio().of_group(most)
    assert promise.kept_by(bounds)
    assert not promise.kept_by(mechanism.likelihood_ratio().of_group(most + 1))
    found = [
        ratio
        for others in itertools.product(range(3), repeat=2)
        for mine in range(most + 1)
        for ratio in ratios(mechanism, others, (mine, most - mine))
    ]
    assert min(found) >= float(bounds.low) * (1 - 1e-9)
    assert max(found) <= float(bounds.high or 0) * (1 + 1e-9)
    assert max(found) > float(bounds.high or 0) * 0.95  # it is reached, nearly
    worst = max(found) / (min(found) if adversary == "exclusive" else 1.0)
    believed = worst * promise.prior / (worst * promise.prior + 1 - promise.prior)
    assert believed <= promise.posterior * (1 + 1e-9)


def test_roots_are_on_the_side_of_more_noise() -> None:
    promise = DGamma(1e-7, 0.2)
    for degree in (1, 2, 3, 7, 100):
        high, low = promise.ratio_high, promise.ratio_low
        above = root(high, degree, up=False) ** degree / high
        below = root(low, degree, up=True) ** degree / low
        assert above <= 1 <= below
        assert float(above) > 1 - 1e-9
        assert float(below) < 1 + 1e-9


def test_a_group_multiplies_ratios() -> None:
    bounds = LikelihoodRatio(Fraction(1, 2), Fraction(3)).of_group(3)
    assert (bounds.low, bounds.high) == (Fraction(1, 8), Fraction(27))
    assert LikelihoodRatio(Fraction(1, 2), None).of_group(3).high is None


# ---------------------------------------------------------------------- marginals: exact accounts


def moved(plan_: MeasurementPlan, rows: list[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    """What rows do to the figures of each measurement, in parts of its scale."""
    found = []
    for m in plan_.measurements:
        counts = np.zeros([plan_.sizes[i] for i in m.columns], dtype=np.int64)
        for row in rows:
            counts[tuple(row[i] for i in m.columns)] += 1
        found.append(whole_figures(plan_, m, counts).ravel() / m.scale)
    return found


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("pure", [False, True])
def test_marginals_promise_what_a_person_can_do_to_every_figure(most: int, pure: bool) -> None:
    """Over all ways to have so many rows: the norm that noise must hide, and not more."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"who": range(400), "a": rng.integers(0, 2, 400),
                          "b": rng.integers(0, 3, 400)})  # fmt: skip
    schema = Schema((
        Attribute("a", "integer", Values((0, 1))), Attribute("b", "integer", Values((0, 1, 2)))
    ))  # fmt: skip
    done = measure_table(
        table, schema=schema, person="who", rows_per_person=most, order=2, epsilon=1.0,
        pure=pure, simulate_seed=1,
    )  # fmt: skip
    guarantee, plan_ = done.release.manifest.guarantee, done.release.manifest.plan
    cells = list(itertools.product(range(2), range(3)))
    worst = 0.0
    for rows in itertools.combinations_with_replacement(cells, most):
        shift = np.concatenate(moved(plan_, list(rows)))
        worst = max(worst, float(np.abs(shift).sum() if pure else np.sqrt((shift**2).sum())))
    assert worst == pytest.approx(guarantee.epsilon if pure else guarantee.mu, rel=1e-6)
    assert guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    assert guarantee.epsilon <= 1.0


def test_a_domain_is_learnt_for_a_person_within_the_same_promise(visits: pd.DataFrame) -> None:
    manifest = published("marginals", visits, rows_per_person=3, order=1).release.manifest
    account = manifest.parameters.schema_account
    assert account is not None
    assert account.rows_per_person == 3
    assert 0.99 < manifest.guarantee.epsilon <= 1


@pytest.mark.parametrize("options", [{"rho": 0.1}, {"unit": "exchange"}, {"delta": 1e-6}])
def test_several_rows_cost_no_promise_but_noise(visits: pd.DataFrame, options: Any) -> None:
    one, three = (
        published(
            "marginals", visits, rows_per_person=n, order=1, schema="active", **options
        ).release.manifest
        for n in (1, 3)
    )
    for name in ("epsilon", "delta", "rho", "mu"):
        assert getattr(one.guarantee, name) == pytest.approx(
            getattr(three.guarantee, name), rel=1e-8
        )
    wide = [m.scale for m in three.parameters.measurements if m.scale]
    narrow = [m.scale for m in one.parameters.measurements if m.scale]
    assert wide == pytest.approx([3 * scale for scale in narrow], rel=1e-6)


# ---------------------------------------------------------------------- counts: exact losses

SHIFTS: dict[int, list[tuple[int, ...]]] = {
    1: [(1, -1)],
    2: [(2, -2), (1, 1, -2), (1, 1, -1, -1), (1, -1)],
}
"""What rows of one person that are replaced by others can do to the cells of a table."""


def losses(law: Any, shift: tuple[int, ...]) -> tuple[Any, Any]:
    """The law of the loss of one table, by enumeration of the noise on the cells that change."""
    far = int(law.parameter) // 2
    k = np.arange(-far, far + 1)
    values, chances = np.zeros(1), np.ones(1)
    for step in shift:
        away = law.log_pmf(k + step)
        values = np.add.outer(values, law.log_pmf(k) - away).ravel()
        chances = np.multiply.outer(chances, law.pmf(k)).ravel()
    return values, chances


@pytest.mark.parametrize("most", [1, 2])
def test_counts_keep_their_promise_for_all_rows_of_a_person(most: int) -> None:
    """Binomial noise, one table, every shape of a change: (δ,T)-privacy and (ε, δ)."""
    people = ProtectedPeople(column="who", rows_per_person=most)
    promise = promise_for_delta("binomial", 2.5, 0.02, 1, people)
    law = noise_law("binomial", promise.unit_variance, change_of(most))
    for shift in SHIFTS[most]:
        values, chances = losses(law, shift)
        assert chances[values > promise.delta].sum() <= promise.eta * (1 + 1e-9)
        if promise.epsilon is not None:
            above = np.clip(-np.expm1(promise.epsilon - values), 0, None)
            assert (chances * above).sum() <= promise.epsilon_delta * (1 + 1e-6)
    assert law.variance == pytest.approx(2 * most**2 * promise.unit_variance, rel=0.3)


def test_noise_for_one_row_does_not_hide_two() -> None:
    promise = promise_for_delta("binomial", 2.5, 0.02, 1)
    values, chances = losses(noise_law("binomial", promise.unit_variance, change_of(1)), (2, -2))
    assert chances[values > promise.delta].sum() > 2 * promise.eta


def test_rho_is_stated_for_a_person() -> None:
    people = ProtectedPeople(column="who", rows_per_person=3)
    one, three = (promise_for_rho("gaussian", 0.1, 1e-6, 5, p) for p in (None, people))
    assert one.rho == three.rho == 0.1
    assert one.unit_variance == three.unit_variance
    assert one.unit != three.unit


# ---------------------------------------------------------------------- rows: exact ratios


@pytest.mark.parametrize("most", [1, 2])
def test_perturbed_rows_promise_what_all_rows_of_a_person_reveal(most: int) -> None:
    rows = pd.DataFrame({"who": range(60), "a": ["x", "y", "z"] * 20})
    found = perturb_table(rows, retention=0.4, person="who", rows_per_person=most, simulate_seed=1)
    p, size = 0.4, 3
    chance = p * np.eye(size) + (1 - p) / size
    tuples = list(itertools.product(range(size), repeat=most))
    worst = 0.0
    for one, other, seen in itertools.product(tuples, tuples, tuples):
        each = [chance[x, s] / chance[y, s] for x, y, s in zip(one, other, seen, strict=True)]
        worst = max(worst, math.prod(map(float, each)))
    assert found.release.manifest.guarantee.epsilon == pytest.approx(math.log(worst))
    assert "a person" in found.release.promise_in_short


def test_the_largest_epsilon_is_that_of_a_person(visits: pd.DataFrame) -> None:
    limit: dict[str, Any] = {"retention": 0.3, "person": "who", "most_epsilon": 7.0}
    perturb_table(visits, rows_per_person=1, **limit)
    with pytest.raises(VoileError, match="for a person"):
        perturb_table(visits, rows_per_person=3, **limit)


# ---------------------------------------------------------------------- what is said of it


@pytest.mark.parametrize("kind", PUBLISHED)
def test_it_is_said_everywhere_whose_promise_it_is(
    kind: str, visits: pd.DataFrame, tmp_path: Path
) -> None:
    done = published(kind, visits, rows_per_person=2, to=tmp_path / "r.voile")
    release = voile.verify(tmp_path / "r.voile")
    data = json.loads((tmp_path / "r.voile/manifest.json").read_text(encoding="utf-8"))
    assert data["people"] == {"column": "who", "rows_per_person": 2}
    assert "who" not in release.schema.names
    assert "At most 2 rows of each person" in (tmp_path / "r.voile/README.md").read_text()
    assert all("one person with up to 2 rows" in one.condition for one in release.promised())
    assert release.protects == "person"
    assert str(done.people.people) not in (tmp_path / "r.voile/README.md").read_text()
    said = done.to_dict()
    assert said["people"] == done.people.to_dict()
    assert said["rows_in"] == 900
    assert said["rows_dropped"] == done.people.rows_left_out
    assert done.people_facts() == [("people", done.people.words)]
    assert f"{done.people.people:,} people, at most 2 rows of each" in done.people.words


@pytest.mark.parametrize("kind", PUBLISHED)
def test_without_people_nothing_is_said_of_them(kind: str, visits: pd.DataFrame) -> None:
    make, options = PUBLISHED[kind]
    given = {name: value for name, value in options.items() if value is not None}
    done = make(visits[["ward", "sex"]], simulate_seed=5, **given)
    assert "people" not in json.loads(done.release.manifest.text())
    assert done.release.protects == "record"
    assert done.to_dict()["people"] is None


def test_the_register_counts_it_for_a_person(visits: pd.DataFrame, tmp_path: Path) -> None:
    options: dict[str, Any] = {"order": 1, "epsilon": 0.5, "schema": "active"}
    done = measure_table(visits, person="who", rows_per_person=2, **options)
    leaving = departure_of(done.release, str(tmp_path))
    assert leaving.unit == "person"
    mu = done.release.manifest.guarantee.mu or 0.0
    assert loss_of(leaving, "person").mu == pytest.approx(2 * mu, rel=1e-6)
    plain = measure_table(visits[["ward", "sex"]], **options)
    assert not loss_of(departure_of(plain.release, str(tmp_path)), "person").is_bounded


def test_rows_that_were_kept_once_are_published_in_several_ways(visits: pd.DataFrame) -> None:
    """What methods are compared on is what is published."""
    options = ViewOptions(person="who", rows_per_person=2, prior=0.02, simulate_seed=5)
    kept = kept_rows(voile.read(visits), options)
    assert kept is not None
    again = published("view", kept, rows_per_person=2).release
    assert again.to_arrow().equals(published("view", visits, rows_per_person=2).release.to_arrow())
    with pytest.raises(UsageError, match="other people"):
        published("view", kept, rows_per_person=3)


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("kind", PUBLISHED)
def test_what_is_wrong_about_people_is_refused(kind: str, visits: pd.DataFrame) -> None:
    make, options = PUBLISHED[kind]
    given = {name: value for name, value in options.items() if value is not None}
    with pytest.raises(UsageError, match="needs person=") as refused:
        make(visits, rows_per_person=2, **given)
    assert "person='COLUMN'" in refused.value.hint
    with pytest.raises(UsageError, match="cannot be published") as refused:
        make(visits, person="who", columns=["who", "ward"], **given)
    assert refused.value.hint == "leave it out: columns=['ward']"
    make(visits, person="who", columns=["ward"], simulate_seed=1, **given)
    with pytest.raises(UsageError, match="no column 'whom'"):
        make(visits, person="whom", **given)
    with pytest.raises(UsageError, match="rows_per_person=0"):
        make(visits, person="who", rows_per_person=0, **given)
    nameless = visits.assign(who=visits.who.where(visits.index % 100 > 0))
    with pytest.raises(TableError, match="NULL in 9 rows"):
        make(nameless, person="who", **given)
    with pytest.raises(TableError, match="no other column"):
        make(visits[["who"]], person="who", **given)


def test_people_are_not_in_a_codebook(visits: pd.DataFrame) -> None:
    schema = Schema((Attribute("who", "categorical", Values(tuple(sorted(set(visits.who))))),))
    with pytest.raises(UsageError, match="is in the schema"):
        publish_table(visits, person="who", schema=schema, prior=0.02)


def test_views_refuse_what_they_cannot_promise(visits: pd.DataFrame, tmp_path: Path) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"series": "monthly", "to": tmp_path / "v.voile"}, "other rows of a person"),
        ({"rows": "set"}, "several people"),
        ({"rows_per_person": 2, "noise_prior": "product"}, "about one record"),
    ]
    for options, words in refused:
        with pytest.raises(UsageError, match=words):
            publish_table(visits, person="who", **options)


def test_parts_of_people_are_neither_joined_nor_stacked(
    visits: pd.DataFrame, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="does not go with person="):
        perturb_table(visits, retention=0.3, person="who", row_key="days")
    parts = [published("rows", visits, to=tmp_path / f"{i}.voile").release.path for i in range(2)]
    shutil.rmtree(parts[1])
    other = perturb_table(visits, retention=0.3, columns=["ward"], simulate_seed=1,
                          to=tmp_path / "1.voile").release.path  # fmt: skip
    with pytest.raises(UsageError, match="rows of each person"):
        combine([parts[0], other], tmp_path / "both.voile")


# ---------------------------------------------------------------------- hostile manifests


@pytest.fixture(scope="module")
def releases(visits: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind, with up to two rows of a person; each verifies."""
    folder = tmp_path_factory.mktemp("people")
    for kind in PUBLISHED:
        published(kind, visits, rows_per_person=2, to=folder / f"{kind}.voile")
        voile.verify(folder / f"{kind}.voile")
    return {kind: folder / f"{kind}.voile" for kind in PUBLISHED}


@pytest.mark.parametrize("kind", PUBLISHED)
@pytest.mark.parametrize(
    "people",
    [
        None,
        {"column": "who", "rows_per_person": 1},
        {"column": "who", "rows_per_person": 7},
        {"column": "ward", "rows_per_person": 2},
    ],
)
def test_a_manifest_that_misstates_its_people_is_refused(
    kind: str, people: Any, releases: dict[str, Path], tmp_path: Path
) -> None:
    """What is promised follows from how many rows a person has: no other number goes with it."""
    shutil.copytree(releases[kind], tmp_path / "r.voile")
    with pytest.raises(ReleaseError):
        voile.verify(sealed(tmp_path / "r.voile", people=people))


@pytest.mark.parametrize("rows", [0, -1, 10**9, 1.5, "2"])
def test_no_number_of_rows_is_absurd(rows: Any, releases: dict[str, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(releases["view"], tmp_path / "r.voile"))
    text = (path / "manifest.json").read_text(encoding="utf-8")
    changed = text.replace('"rows_per_person": 2', f'"rows_per_person": {json.dumps(rows)}')
    assert changed != text
    (path / "manifest.json").write_text(changed, encoding="utf-8")
    with pytest.raises(ReleaseError):
        voile.open(path)


def test_version_1_knows_no_people(releases: dict[str, Path], tmp_path: Path) -> None:
    path = Path(shutil.copytree(releases["view"], tmp_path / "r.voile"))
    with pytest.raises(ReleaseError):
        voile.verify(sealed(path, version=1))


# ---------------------------------------------------------------------- from a shell


def test_the_commands_take_people(visits: pd.DataFrame, tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    visits.to_csv(table, index=False)
    out = str(tmp_path / "v.voile")
    found = told([
        "publish", str(table), "--method", "marginals", "--person", "who", "--rows-per-person",
        "2", "--order", "1", "-o", out, "--no-register",
    ])  # fmt: skip
    assert found["people"]["rows_per_person"] == 2
    assert found["people"]["people"] == visits.who.nunique()
    assert told(["describe", out])["people"] == {"column": "who", "rows_per_person": 2}
    planned = told(["plan", str(table), "--prior", "0.02", "--person", "who",
                    "--rows-per-person", "2"])  # fmt: skip
    assert "--person who --rows-per-person 2" in planned["command"]
    refused = run("publish", str(table), "--method", "mondrian", "--person", "who", "--k", "2")
    assert refused.returncode == 2
    assert "--person belongs to" in refused.stderr
