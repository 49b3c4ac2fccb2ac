"""Attacks on releases: looked up, believed and judged as a slow, obvious way would."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import voile
from voile.cli import app
from voile.errors import ReleaseError, UsageError
from voile.evaluate.attack.beliefs import reason
from voile.evaluate.attack.carry_out import attack, different, read_groups
from voile.evaluate.attack.page import report
from voile.evaluate.attack.priors import choose_prior, uniform
from voile.evaluate.attack.targets import (
    UNKNOWN,
    SpelledValues,
    read_targets,
    tuples_of,
    value_words,
)
from voile.kinds.views.series import Series
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma
from voile.publishing import publish_table
from voile.release import ViewRelease
from voile.schema import Schema
from voile.units import percent

ATTRIBUTES = [
    {"name": "age", "kind": "integer", "range": [20, 23]},
    {"name": "zip", "kind": "categorical", "values": ["01", "02"]},
    {"name": "ill", "kind": "boolean"},
    {"name": "weight", "kind": "numeric", "bins": [40, 60, 80, 100], "null": True},
    {"name": "since", "kind": "date", "range": ["2020-01-01", "2020-01-02"]},
]
SCHEMA = Schema.from_dict({"attributes": ATTRIBUTES})
ROWS = {
    "age": [20, 20, 21, 22, 23, 20],
    "zip": ["01", "01", "02", "01", "02", "01"],
    "ill": [True, True, False, False, True, True],
    "weight": [45.0, 45.0, None, 99.5, 61.0, 45.0],
    "since": ["2020-01-01", "2020-01-01", "2020-01-02", "2020-01-01", "2020-01-02", "2020-01-01"],
}
JOE = "20,01,true,45,2020-01-01"
HEADER = "age,zip,ill,weight,since"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> ViewRelease:
    import pandas as pd

    to = tmp_path_factory.mktemp("attack") / "six.voile"
    frame = pd.DataFrame(ROWS)
    done = publish_table(
        frame, to=to, schema=SCHEMA, prior=0.05, posterior=0.4, retention=0.5, simulate_seed=16
    )
    return done.release


def written(folder: Path, text: str, name: str = "targets.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def shown(release: ViewRelease) -> dict[tuple[Any, ...], int]:
    """How often the view shows each tuple, by looking at its rows one after the other."""
    found: dict[tuple[Any, ...], int] = {}
    for row in release.to_arrow().to_pylist():
        key = tuple(row.values())
        found[key] = found.get(key, 0) + 1
    return found


def plain(release: ViewRelease) -> AlphaBeta:
    assert isinstance(release.mechanism, AlphaBeta)
    return release.mechanism


def chance(copies: int, records: int, release: ViewRelease) -> Fraction:
    mechanism = plain(release)
    a, q = Fraction(mechanism.retention), Fraction(mechanism.noise)
    terms = (
        math.comb(records, i) * a**i * (1 - a) ** (records - i) * (1 - q) * q ** (copies - i)
        for i in range(min(copies, records) + 1)
    )
    return sum(terms, start=Fraction(0))


# ---------------------------------------------------------------------- looking tuples up


def test_every_tuple_of_the_domain_is_found_as_often_as_the_view_shows_it(
    release: ViewRelease,
) -> None:
    codes = np.unravel_index(np.arange(SCHEMA.size), SCHEMA.sizes)
    seen = release.seen(codes)
    values = [list(attribute) for attribute in SCHEMA]
    wanted = shown(release)
    for i, key in enumerate(itertools.product(*values)):
        assert seen[i] == wanted.get(key, 0)
    assert seen.sum() == release.manifest.rows
    twice = [np.concatenate([c, c]) for c in codes]
    assert (release.seen(twice) == np.concatenate([seen, seen])).all()


def test_evidence_is_the_mechanisms_law_of_what_is_seen(release: ViewRelease) -> None:
    codes = np.unravel_index(np.arange(SCHEMA.size), SCHEMA.sizes)
    seen = release.seen(codes)
    evidence = release.evidence(codes)
    for records in (0, 1, 3):
        wanted = [float(chance(int(j), records, release)) for j in seen]
        assert np.exp(evidence(records)) == pytest.approx(wanted, rel=1e-10)


# ---------------------------------------------------------------------- reading targets


def test_targets_are_read_as_their_kinds_say(tmp_path: Path) -> None:
    text = f"who,{HEADER},prior\nJoe,{JOE},0.01\n,,02,FALSE,NULL,,\nJim,23,,,60,2020-01-02,\n"
    found = read_targets(written(tmp_path, text), SCHEMA, name="who")
    assert found.names == ("Joe", "row 2", "Jim")
    columns = [column.tolist() for column in found.codes]
    assert columns == [
        [0, UNKNOWN, 3],
        [0, 1, UNKNOWN],
        [1, 0, UNKNOWN],
        [0, 3, 1],
        [0, UNKNOWN, 1],
    ]
    assert found.is_complete().tolist() == [True, False, False]
    assert found.priors is not None
    assert found.priors[0] == 0.01 and np.isnan(found.priors[1:]).all()


def test_targets_as_excel_writes_them(tmp_path: Path) -> None:
    """Semicolons, a byte order mark, and another encoding, which is named with its line."""
    text = "\ufeffname;age;zip\r\nMüller;22;02\r\n"
    found = read_targets(written(tmp_path, text), SCHEMA)
    assert found.names == ("Müller",)
    assert [int(c[0]) for c in found.codes[:2]] == [2, 1]
    path = tmp_path / "my targets.csv"
    path.write_bytes("name;age\nMüller;22\n".encode("cp1252"))
    with pytest.raises(UsageError, match="line 2, is not UTF-8") as refused:
        read_targets(path, SCHEMA)
    assert f"'{path}'" in refused.value.hint  # quoted, to be pasted
    with pytest.raises(UsageError) as other:
        read_targets(written(tmp_path, "the person,age\nJoe,22\n"), SCHEMA)
    assert "name='the person'" in other.value.hint


def test_values_are_shown_as_people_read_them(release: ViewRelease, tmp_path: Path) -> None:
    rows = "Joe,20,01,true,NULL,2020-01-01\nJim,20,01,true,61,2020-01-01\nEve,20,01,true,100,\n"
    found = attack(release, written(tmp_path, f"name,{HEADER}\n{rows}Sue,20,01,true,,2020-01-01\n"))
    words = {belief.name: belief.words for belief in found.beliefs}
    assert words["Joe"] == "20, 01, True, NULL, 2020-01-01"
    assert words["Jim"] == "20, 01, True, 60 to 80, 2020-01-01"
    intervals = {"40 to 60", "60 to 80", "80 to 100", "NULL"}
    sue = {belief.words for belief in found.beliefs if belief.name == "Sue"}
    assert sue == {f"weight {interval}" for interval in intervals}
    guess = next(p for p in found.people if p.name == "Sue").guesses[0]
    assert guess.words in intervals and guess.value in (50.0, 70.0, 90.0, None)


def test_values_that_were_looked_up_before_stay_the_same() -> None:
    """`SpelledValues` remembers; what it spells is what each tuple by itself is spelt as."""
    rng = np.random.default_rng(3)
    spelt = SpelledValues(SCHEMA)
    for _ in range(20):
        codes = [rng.integers(0, a.size, 5) for a in SCHEMA]
        found = spelt.tuples(codes)
        assert [values for values, _ in found] == tuples_of(SCHEMA, codes)
        for values, words in found:
            assert words == {a.name: value_words(a, values[a.name]) for a in SCHEMA}


@pytest.mark.parametrize("codes", [[5, 3, 3, 9], [7], [0, 10**6, 10**6, 4], [2, 2]])
def test_different_codes_are_found_in_their_order(codes: list[int]) -> None:
    values, where = different(np.array(codes))
    assert values[where].tolist() == codes
    assert (np.diff(values) > 0).all() and len(values) <= 4 * len(codes) + 1


def test_targets_from_a_data_frame_and_from_parquet(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"name": ["Joe"], "age": [22], "zip": ["02"]})
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    for source in (frame, path):
        found = read_targets(source, SCHEMA)
        assert found.names == ("Joe",)
        assert [int(c[0]) for c in found.codes] == [2, 1, UNKNOWN, UNKNOWN, UNKNOWN]


def test_candidates_are_all_tuples_that_agree(tmp_path: Path) -> None:
    found = read_targets(written(tmp_path, f"{HEADER}\n,01,true,,2020-01-01\n"), SCHEMA)
    rows = tuples_of(SCHEMA, found.candidates(0))
    wanted = [(age, weight) for age in range(20, 24) for weight in (50.0, 70.0, 90.0, None)]
    assert [(row["age"], row["weight"]) for row in rows] == wanted
    assert {(row["zip"], row["ill"], row["since"]) for row in rows} == {("01", True, "2020-01-01")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{HEADER}\n30,01,true,45,2020-01-01\n", "row 1, column 'age': '30' is not in the domain"),
        (f"{HEADER}\n20,1,true,45,2020-01-01\n", "column 'zip': '1'"),
        (f"{HEADER}\n20,01,perhaps,45,2020-01-01\n", "'perhaps'"),
        (f"{HEADER}\n20,01,true,heavy,2020-01-01\n", "'heavy'"),
        (f"{HEADER}\n20,01,true,101,2020-01-01\n", "'101'"),
        (f"{HEADER}\n20,01,true,45,yesterday\n", "'yesterday'"),
        (f"{HEADER}\n20,01,true,45,2020-13-45\n", "column 'since'"),
        (f"{HEADER}\nNULL,01,true,45,2020-01-01\n", "'NULL'"),
        ("agee,zip\n20,01\n", "no attribute of the release"),
        ("name\nJoe\n", "no attribute of the release"),
        (f"{HEADER}\n", "no rows"),
        (f"{HEADER},prior\n{JOE},1.5\n", "'1.5' is no probability"),
        (f"{HEADER},prior\n{JOE},likely\n", "'likely' is no probability"),
        ("age,age\n20,21\n", "twice"),
    ],
)
def test_wrong_targets_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        read_targets(written(tmp_path, text), SCHEMA)


def test_too_many_candidates_are_refused_with_what_to_do(tmp_path: Path) -> None:
    wide = Schema.from_dict(
        {
            "attributes": [
                {"name": "x", "kind": "integer", "range": [1, 2000]},
                {"name": "y", "kind": "integer", "range": [1, 1000]},
            ]
        }
    )
    found = read_targets(written(tmp_path, "x,y\n,\n"), wide)
    with pytest.raises(UsageError, match="2,000,000 tuples") as refused:
        found.candidates(0)
    assert "x has the most values" in refused.value.hint


# ---------------------------------------------------------------------- posteriors


def exact(release: ViewRelease, values: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """P(what is seen of the tuple) with and without the record."""
    key = tuple(values[name] for name in SCHEMA.names)
    seen = {
        tuple(v.isoformat() if hasattr(v, "isoformat") else v for v in k): n
        for k, n in shown(release).items()
    }
    copies = seen.get(key, 0)
    return chance(copies, 1, release), chance(copies, 0, release)


def test_every_independent_posterior_is_bayes_rule(release: ViewRelease, tmp_path: Path) -> None:
    """All tuples of the domain, each with a prior of its own, against exact fractions."""
    cells = [["NULL" if v is None else str(v) for v in attribute] for attribute in SCHEMA]
    lines = [
        f"{','.join(row)},{0.001 * (1 + i % 40):.3f}"
        for i, row in enumerate(itertools.product(*cells))
    ]
    found = attack(release, written(tmp_path, "\n".join([f"{HEADER},prior", *lines])))
    assert found.tally.tuples == len(found.beliefs) == SCHEMA.size
    for belief in found.beliefs:
        with_it, without = exact(release, belief.values)
        prior = Fraction(belief.prior)
        wanted = prior * with_it / (prior * with_it + (1 - prior) * without)
        assert belief.posterior == pytest.approx(float(wanted), rel=1e-10)


def test_exclusive_posteriors_and_guesses_are_sums_over_candidates(
    release: ViewRelease, tmp_path: Path
) -> None:
    found = attack(release, written(tmp_path, f"name,{HEADER}\nJoe,20,01,true,,\n"))
    (joe,) = found.people
    assert joe.candidates == 8
    values = [
        dict(zip(SCHEMA.names, (20, "01", True, w, s), strict=True))
        for w in (50.0, 70.0, 90.0, None)
        for s in ("2020-01-01", "2020-01-02")
    ]
    weight = [Fraction(*exact(release, v)) for v in values]
    share = [w / sum(weight) for w in weight]
    best = max(range(8), key=lambda i: share[i])
    assert joe.best.values == values[best]
    assert joe.best.prior == pytest.approx(1 / 8)
    assert joe.best.posterior == pytest.approx(float(share[best]), rel=1e-10)
    days = {s: sum(p for p, v in zip(share, values, strict=True) if v["since"] == s)
            for s in ("2020-01-01", "2020-01-02")}  # fmt: skip
    guess = next(g for g in joe.guesses if g.attribute == "since")
    assert guess.posterior == pytest.approx(float(max(days.values())), rel=1e-10)
    assert guess.prior == pytest.approx(0.5)
    assert found.to_dict()["people"][0]["gain"] == pytest.approx(8 * float(share[best]), rel=1e-9)


def test_rows_of_one_name_are_alternatives_with_weights(
    release: ViewRelease, tmp_path: Path
) -> None:
    text = f"name,{HEADER},prior\nJoe,{JOE},0.75\nJoe,21,,false,45,2020-01-01,0.25\n"
    found = attack(release, written(tmp_path, text))
    (joe,) = found.people
    assert joe.candidates == 3
    weights = {True: Fraction(3, 4), False: Fraction(1, 8)}
    scores = []
    for belief in found.beliefs:
        with_it, without = exact(release, belief.values)
        scores.append(weights[belief.values["ill"]] * with_it / without)
        assert belief.prior == pytest.approx(float(weights[belief.values["ill"]]))
    for belief, score in zip(found.beliefs, scores, strict=True):
        assert belief.posterior == pytest.approx(float(score / sum(scores)), rel=1e-10)


@pytest.mark.parametrize(
    ("rows", "adversary", "complaint"),
    [
        ("Joe,21,,,,,0.1\n", None, "Joe has a prior and unknown values, in one row"),
        (f"Joe,{JOE},0.5\nJoe,21,,,,,\n", None, "some rows of Joe have a prior"),
        ("Joe,21,,,,,0.1\n", "independent", "Joe has a prior and unknown values"),
        (f"Joe,{JOE},\nJoe,20,,,,,\n", None, "two rows of Joe allow the same tuple"),
    ],
)
def test_rows_that_contradict_each_other_are_refused(
    release: ViewRelease, tmp_path: Path, rows: str, adversary: str | None, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        attack(release, written(tmp_path, f"name,{HEADER},prior\n{rows}"), adversary=adversary)


def test_correlated_targets_are_summed_over_outcomes(release: ViewRelease, tmp_path: Path) -> None:
    """Joe and Jim have the same values; Sue is somebody else and correlated with neither."""
    text = f"name,{HEADER}\nJoe,{JOE}\nJim,{JOE}\nSue,23,02,true,61,2020-01-02\n"
    joint = {"brothers": [{"in": ["Joe", "Jim"], "chance": 0.02}, {"in": ["Joe"], "chance": 0.01}]}
    path = written(tmp_path, yaml.safe_dump(joint), "joint.yaml")
    found = attack(release, written(tmp_path, text), joint=path, prior=0.05)
    by_name = {belief.name: belief for belief in found.beliefs}
    copies = by_name["Joe"].seen
    law = [chance(copies, k, release) for k in range(3)]
    both, one = Fraction(0.02) * law[2], Fraction(0.01) * law[1]
    none = (1 - Fraction(0.02) - Fraction(0.01)) * law[0]
    total = both + one + none
    assert by_name["Joe"].prior == pytest.approx(0.03)
    assert by_name["Joe"].posterior == pytest.approx(float((both + one) / total), rel=1e-9)
    assert by_name["Jim"].posterior == pytest.approx(float(both / total), rel=1e-9)
    assert by_name["Sue"].adversary == "independent"
    assert found.adversaries == ("independent", "correlated")


@pytest.mark.parametrize(
    ("joint", "complaint"),
    [
        ([1], "not groups by name"),
        ({"g": {}}, "not a list of beliefs"),
        ({"g": [{"in": ["Joe"]}]}, "keys in and chance"),
        ({"g": [{"in": "Joe", "chance": 0.1}]}, "not a list of names"),
        ({"g": [{"in": ["Jo"], "chance": 0.1}]}, "not among the targets"),
        ({"g": [{"in": ["Joe"], "chance": "1e-3"}]}, "no probability"),
        ({"g": [{"in": ["Joe"], "chance": 0.7}, {"in": [], "chance": 0.7}]}, "add up to 1.4"),
        ({"g": [{"in": ["Joe"], "chance": 0.1}, {"in": ["Joe"], "chance": 0.1}]}, "two chances"),
        ({"g": [{"in": ["Joe"], "chance": 0.1}], "h": [{"in": ["Joe"], "chance": 0.1}]}, "in two"),
    ],
)
def test_wrong_joint_beliefs_are_named(tmp_path: Path, joint: Any, complaint: str) -> None:
    path = written(tmp_path, yaml.safe_dump(joint), "joint.yaml")
    with pytest.raises(UsageError, match=complaint):
        read_groups(path, ["Joe", "Jim"])


# ---------------------------------------------------------------------- priors


def test_priors_by_word_number_and_file(release: ViewRelease, tmp_path: Path) -> None:
    codes = [np.array([0, 3])] + [np.array([0, 0])] * 4
    rows = release.likely_rows
    drawn = 1 - (1 - Fraction(1, SCHEMA.size)) ** rows
    assert choose_prior("uniform", release).chances(codes) == pytest.approx(float(drawn))
    assert choose_prior("promise", release).chances(codes).tolist() == [0.05, 0.05]
    assert choose_prior("0.25", release).chances(codes).tolist() == [0.25, 0.25]
    assert choose_prior(0.25, release, bounded=True).chances(codes).tolist() == [0.05, 0.05]
    text = f"{HEADER},probability\n20,01,false,45,2020-01-01,0.125\n23,01,false,45,2020-01-01,0.5\n"
    listed = choose_prior(str(written(tmp_path, text, "p.csv")), release)
    assert listed.chances(codes).tolist() == [0.125, 0.5]
    other = [np.array([1])] + [np.array([0])] * 4
    assert listed.log_weights(other).tolist() == [-math.inf]
    with pytest.raises(UsageError, match=re.escape("no row for 21, 01, False, 50.0")):
        listed.chances(other)


def test_a_uniform_prior_is_sure_of_nothing_in_a_crowded_domain() -> None:
    """More rows than tuples: a tuple may still be missing, unless rows are distinct."""
    for rows, size in ((5, 3), (3, 3), (1, 7)):
        tables = list(itertools.product(range(size), repeat=rows))
        wanted = sum(0 in table for table in tables) / len(tables)
        assert uniform(rows, size, distinct=False).chance == pytest.approx(wanted, rel=1e-12)
        assert uniform(min(rows, size), size, distinct=True).chance == min(rows, size) / size
    assert uniform(4, 1, distinct=False).chance == 1


def test_priors_of_a_model_are_those_of_its_table(release: ViewRelease) -> None:
    """Product: by hand from the counts; tree: closer to the table than the product is."""
    import pandas as pd

    rng = np.random.default_rng(4)
    age = rng.integers(20, 24, 4000)
    frame = pd.DataFrame(
        {
            "age": age,
            "zip": np.where(age + rng.integers(0, 2, 4000) > 22, "02", "01"),
            "ill": rng.random(4000) < 0.2,
            "weight": rng.choice([45.0, 65.0, 85.0], 4000),
            "since": "2020-01-01",
        }
    )
    codes = np.unravel_index(np.arange(SCHEMA.size), SCHEMA.sizes)
    apart = choose_prior("product", release, model=frame).log_weights(codes)
    assert np.exp(apart).sum() == pytest.approx(1)
    where = [int(np.flatnonzero(np.all(np.stack(codes).T == [0, 0, 0, 0, 0], axis=1))[0])]
    share = [
        (np.count_nonzero(frame[c] == v) + 1 / size) / 4001
        for c, v, size in zip(
            SCHEMA.names, [20, "01", False, 45.0, "2020-01-01"], SCHEMA.sizes, strict=True
        )
    ]
    assert np.exp(apart[where[0]]) == pytest.approx(math.prod(share), rel=1e-9)
    together = choose_prior("tree", release, model=frame).log_weights(codes)
    made = attack(release, read_targets(frame.head(3), SCHEMA), prior="product", model=frame)
    assert (
        not made.publishable
        and "Not for publication" in report(made, "targets.csv").page().decode()
    )
    impossible = (codes[0] == 0) & (codes[1] == 1)  # nobody of 20 lives in 02
    assert np.exp(apart[impossible]).sum() > 0.05
    assert np.exp(together[impossible]).sum() < 1e-3


def test_a_release_may_be_the_model(release: ViewRelease, tmp_path: Path) -> None:
    copy = release.save(tmp_path / "copy.voile")
    found = attack(copy, written(tmp_path, f"{HEADER}\n20,01,true,,\n"), prior="tree",
                   model=copy.path)  # fmt: skip
    assert found.people[0].candidates == 8
    assert 0 < found.people[0].best.prior < 1
    assert found.publishable


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"prior": "likely"}, "neither a known word"),
        ({"prior": "1.5"}, "no probability"),
        ({"prior": "tree"}, "needs what the adversary knows"),
        ({"model": "dataset:adult"}, "a model was given"),
        ({"adversary": "wicked"}, "'wicked' is not known"),
        ({"adversary": "correlated"}, "beliefs about people together"),
        ({"adversary": "independent", "joint": {}}, "joint beliefs were given"),
        ({"adversary": "exclusive"}, "only one candidate"),
        ({"others": -1}, "negative"),
        ({"since": 1}, "one view, not a series"),
        ({"prior": "tree", "model": "dataset:adult"}, "no column"),
        ({"name": "who"}, "no column 'who'"),
    ],
)
def test_wrong_wishes_are_named(
    release: ViewRelease, tmp_path: Path, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        attack(release, written(tmp_path, f"{HEADER}\n{JOE}\n"), **options)


# ---------------------------------------------------------------------- leaks


def test_a_sound_release_never_breaks_its_promise(release: ViewRelease, tmp_path: Path) -> None:
    """Every tuple, at priors up to d: no leak. Exclusive adversaries are not promised against."""
    everyone = written(tmp_path, "zip\n01\n02\n")
    for prior in ("uniform", "promise", 1e-9):
        tally = attack(release, everyone, adversary="independent", prior=prior).tally
        assert tally.positive_leaks == tally.negative_leaks == tally.promise_broken == 0
        if tally.covered:  # what is γ up to the rounding of floats is not above it
            assert tally.above_posterior == 0
    assert release.mechanism.likelihood_ratio().posterior(0.05) <= Fraction(0.4)


def test_too_little_noise_is_flagged(release: ViewRelease, tmp_path: Path) -> None:
    weak = ViewRelease(release.path, release.manifest)
    weak.mechanism = AlphaBeta(plain(release).retention, 0.7 * plain(release).noise)
    everyone = written(tmp_path, "zip\n01\n02\n")
    found = attack(weak, everyone, adversary="independent", prior="promise")
    assert found.tally.promise_broken == found.tally.positive_leaks > 0
    assert found.beliefs[0].positive_leak
    assert found.beliefs[0].posterior > 0.4
    unseen = ViewRelease(release.path, release.manifest)
    unseen.mechanism = AlphaBeta(0.9, plain(release).noise)
    lost = attack(unseen, everyone, adversary="independent", prior=0.01).tally
    assert lost.negative_leaks > 0 and lost.promise_broken >= lost.negative_leaks


def test_what_the_mechanism_cannot_have_published_is_refused(
    release: ViewRelease, tmp_path: Path
) -> None:
    wrong = ViewRelease(release.path, release.manifest)
    wrong.mechanism = AlphaBeta(1.0, 0.0)
    with pytest.raises(ReleaseError, match="impossible"):
        attack(wrong, written(tmp_path, "zip\n01\n02\n"), prior=0.5, adversary="independent")


def test_the_worst_come_first(release: ViewRelease, tmp_path: Path) -> None:
    weak = ViewRelease(release.path, release.manifest)
    weak.mechanism = AlphaBeta(0.95, 0.5 * plain(release).noise)
    text = "\n".join([HEADER, *(f"{age},01,true,45,2020-01-01" for age in range(20, 24))])
    found = attack(weak, written(tmp_path, text), prior="promise")
    ranks = [belief.rank for belief in found.beliefs]
    assert ranks == sorted(ranks)
    kinds = [(b.positive_leak, b.negative_leak) for b in found.beliefs]
    assert kinds[0] == (True, False) and (False, True) in kinds


# ---------------------------------------------------------------------- series


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> ViewRelease:
    """Two views of a table that stays; the later release holds both."""
    import pandas as pd

    folder = tmp_path_factory.mktemp("series")
    for number in (1, 2):
        done = publish_table(
            pd.DataFrame(ROWS).assign(age=[20 + number] * 6), to=folder / f"{number}.voile",
            schema=SCHEMA, prior=0.05, posterior=0.4, simulate_seed=5 + number, series="six",
            views=2, ledger=folder / "six.series",
        )  # fmt: skip
    return done.release


def test_all_views_of_a_series_are_evidence_from_one_of_them_on(
    series: ViewRelease, tmp_path: Path
) -> None:
    """Bayes' rule with the laws of both views; before the record came, the view is noise."""
    cells = [["NULL" if v is None else str(v) for v in attribute] for attribute in SCHEMA]
    lines = [",".join(row) for row in itertools.product(*cells)]
    targets = written(tmp_path, "\n".join([HEADER, *lines]))
    assert isinstance(series.mechanism, Series)
    noise, a = series.mechanism.noise, series.mechanism.retention
    differ = 0
    for since in (1, 2):
        found = attack(series, targets, prior=0.01, since=since)
        assert found.since == since and found.to_dict()["since"] == since
        assert f"since view {since}" in report(found, "targets.csv").page().decode()
        for belief in found.beliefs:
            first, second = belief.seen
            again = noise.seen if first else noise.unseen[1]
            laws = [AlphaBeta(a, noise.unseen[0]), AlphaBeta(a, again)]
            ratio = 0.0
            for number, (law, copies) in enumerate(zip(laws, (first, second), strict=True), 1):
                if number >= since:
                    one, none = (law.log_likelihood(np.array([copies]), k, [])[0] for k in (1, 0))
                    ratio += one - none
            wanted = 0.01 * math.exp(ratio) / (0.01 * math.exp(ratio) + 0.99)
            assert belief.posterior == pytest.approx(wanted, rel=1e-9)
            differ += first > 0
        assert found.tally.promise_broken == 0
    assert differ
    with pytest.raises(UsageError, match="no view of this series"):
        attack(series, targets, since=3)


# ---------------------------------------------------------------------- who is exposed


def honest(release: ViewRelease) -> ViewRelease:
    """The same release as if its coins had been the operating system's."""
    return ViewRelease(release.path, release.manifest.model_copy(update={"simulated": False}))


EXPOSED = f"name,{HEADER},prior\nJoe,{JOE},0.9\nJim,{JOE},0.01\nSue,{JOE},0.999\n"


def test_the_exposed_are_counted_whether_the_promise_covers_them_or_not(
    release: ViewRelease, tmp_path: Path
) -> None:
    found = attack(honest(release), written(tmp_path, EXPOSED))
    after = {belief.name: belief.posterior for belief in found.beliefs}
    assert after["Joe"] > 0.95 and after["Sue"] > 0.95 and after["Jim"] <= 0.4
    summary = found.to_dict()["summary"]
    assert summary["people"] == 3
    assert summary["people_exposed"] == 1  # Sue's was known before
    assert summary["tuples_above_posterior"] == 2
    assert summary["positive_leaks"] == summary["promise_broken"] == 0
    assert found.exposures.headline() == (
        "1 of 3 people: the adversary ends up all but sure (≥ 95 %) of what it did not know; the "
        "promise does not cover them (their prior was above d = 0.05)."
    )
    made = report(found, "targets.csv").page().decode()
    assert made.index("1 of 3 people") < made.index("<table")
    assert "of the 1 covered: rose above γ" in made
    assert "of the 2 not covered (prior above d = 0.05): now above γ" in made


def test_why_the_promise_did_not_prevent_it(release: ViewRelease, tmp_path: Path) -> None:
    """Broken, for another adversary, about a part of a record, or allowed by a large γ."""
    weak = honest(release)
    weak.mechanism = AlphaBeta(0.99, 1e-6)
    joe = written(tmp_path, f"name,{HEADER}\nJoe,{JOE}\n")
    found = attack(weak, joe, prior="promise")
    assert found.exposures.reasons == {"Joe": "the promise is broken"}
    linked = replace(found.beliefs[0], adversary="exclusive")
    assert reason(found.promise, linked) == "the promise is not against exclusive adversaries"
    allowed = DGamma(0.05, 0.98, "exclusive")
    best = replace(found.beliefs[0], posterior=0.97, positive_leak=False, adversary="exclusive")
    assert "allows beliefs up to γ = 0.98" in reason(allowed, best)
    part = replace(best, posterior=0.5)
    assert "about whole records" in reason(allowed, part)


def test_nobody_exposed_is_said_plainly(release: ViewRelease, tmp_path: Path) -> None:
    found = attack(honest(release), written(tmp_path, f"name,{HEADER}\nJoe,{JOE}\n"), prior=0.01)
    assert found.exposures.headline().startswith("0 of 1 person: of nobody")
    simulated = attack(release, written(tmp_path, EXPOSED))
    assert "a simulation and promises nothing" in simulated.exposures.headline()


def test_the_header_says_what_is_believed_of_whom(release: ViewRelease, tmp_path: Path) -> None:
    alone = attack(release, written(tmp_path, f"name,{HEADER}\nEve,20,,,45,\n"))
    assert alone.prior == "of people with unknown values each of their candidates alike"
    both = attack(release, written(tmp_path, f"name,{HEADER}\nJoe,{JOE}\nEve,20,,,45,\n"))
    assert both.prior.startswith("every tuple alike") and alone.prior in both.prior


# ---------------------------------------------------------------------- what people see


def test_the_page_stands_alone_and_escapes_names(release: ViewRelease, tmp_path: Path) -> None:
    text = f'name,{HEADER}\n"<script>alert(1)</script>",{JOE}\nEve,20,,,45,\n'
    made = report(attack(release, written(tmp_path, text)), "targets.csv").page().decode()
    assert "<script" not in made
    assert "&lt;script&gt;" in made
    assert "<svg" in made
    assert not re.search(r"(src|href)=\"(https?:)?//", made)
    assert "protects nobody" in made  # the release is a simulation
    assert "occupation" not in made and "since" in made


def test_the_command_writes_a_page_and_json(release: ViewRelease, tmp_path: Path) -> None:
    targets = written(tmp_path, f"name,{HEADER}\nJoe,{JOE}\nEve,20,,,45,\n")
    out = tmp_path / "report.html"
    line = ["attack", str(release.path), "--targets", str(targets), "-o", str(out), "--json"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert {"tuple", "prior", "posterior", "positive_leak", "negative_leak"} <= set(
        data["targets"][0]
    )
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = CliRunner().invoke(app, line)
    assert isinstance(again.exception, UsageError) and "exists already" in str(again.exception)
    shown_line = CliRunner().invoke(app, line[:4])
    assert shown_line.exit_code == 0 and "tuples" in shown_line.stdout


@pytest.mark.parametrize("columns", [60, 80])
def test_a_narrow_terminal_cuts_no_number(
    release: ViewRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    targets = written(tmp_path, f"name,{HEADER},prior\nJoe,{JOE},0.0001234\nEve,20,,,45,,\n")
    done = CliRunner().invoke(app, ["attack", str(release.path), "--targets", str(targets)])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].startswith("0 of 2 people")
    assert "…" not in done.stdout and max(map(len, done.stdout.splitlines())) <= columns
    found = attack(release, targets)
    for belief in found.beliefs:
        assert percent(belief.prior) in done.stdout and percent(belief.posterior) in done.stdout


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (["-o", "report.doc"], "ends in .doc"),
        (["--targets", "nobody.csv"], "no file"),
        (["--prior", "2"], "no probability"),
    ],
)
def test_wrong_lines_are_refused(
    release: ViewRelease, tmp_path: Path, change: list[str], complaint: str
) -> None:
    targets = written(tmp_path, f"{HEADER}\n{JOE}\n")
    line = ["attack", str(release.path), "--targets", str(targets), *change]
    done = CliRunner().invoke(app, line)
    assert isinstance(done.exception, voile.VoileError)
    assert complaint in str(done.exception)


def test_a_table_of_a_hundred_columns_is_attacked_too(tmp_path: Path) -> None:
    """NumPy's arrays have at most 64 axes."""
    import pyarrow as pa

    rng = np.random.default_rng(100)
    table = pa.table({f"c{i}": rng.integers(0, 2, 40) for i in range(100)})
    release = voile.publish(table, prior_factor=10, posterior=0.2, simulate_seed=1)
    row = [str(column[0].as_py()) for column in table.columns]
    half = ["" if i % 50 == 7 else cell for i, cell in enumerate(row)]
    lines = [",".join(table.column_names), ",".join(row), ",".join(half)]
    (tmp_path / "who.csv").write_text("\n".join(lines) + "\n")
    targets = read_targets(tmp_path / "who.csv", release.schema)
    assert [len(targets.candidates(i)[0]) for i in range(2)] == [1, 4]
    found = {tuple(int(c[k]) for c in targets.candidates(1)) for k in range(4)}
    assert len(found) == 4
    assert tuple(map(int, row)) in found
