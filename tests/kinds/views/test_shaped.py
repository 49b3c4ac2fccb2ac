"""Noise shaped by a prior: its law, its promise by enumeration, its estimates, its refusals."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import voile
from tests.support.sampling import assert_fits, fits, proportion_at_least
from tests.support.soak import rounds
from voile.errors import ReleaseError, SchemaError, UsageError, VoileError
from voile.mechanisms import Shaped
from voile.noise import Key
from voile.noise.poisson import choice, even, exponentials, geometric, poisson
from voile.privacy import DGamma
from voile.privacy.planner import (
    plan_shaped,
    promise_everywhere,
    promise_where_likely,
    protected_priors,
)
from voile.publishing import publish_table
from voile.release import ViewRelease
from voile.schema import Schema, TupleIndex
from voile.schema.index import PARTS, Product, whole_parts

SIZES = (3, 4, 2)
PRIOR = Product((whole_parts([5, 1, 0]), whole_parts([1, 2, 3, 4]), None))
SHAPED = Shaped(0.5, 0.05, 6.0, 0.4, PRIOR, SIZES)
INDEX = TupleIndex(SIZES)
SCHEMA = {
    "attributes": [
        {"name": "a", "kind": "categorical", "values": ["x", "y", "z"]},
        {"name": "b", "kind": "integer", "range": [1, 4]},
        {"name": "c", "kind": "boolean"},
    ]
}
CHANCES = {"a": {"x": 5, "y": 1}, "b": [1, 2, 3, 4]}


@cache
def codes() -> list[npt.NDArray[np.int64]]:
    """Every tuple; not decoded before a test asks, since that loads the compiled kernels."""
    return INDEX.decode(np.arange(24, dtype=np.uint64))


def means(mechanism: Shaped = SHAPED) -> list[float]:
    """μ of every tuple, from the definition."""
    p = [[5 / 6, 1 / 6, 0], [0.1, 0.2, 0.3, 0.4], [0.5, 0.5]]
    return [
        mechanism.floor + min(mechanism.strength * a * b * c, mechanism.cap)
        for a, b, c in product(*p)
    ]


# ---------------------------------------------------------------------- the distribution


def test_parts_add_up_and_are_near() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        weights = rng.random(int(rng.integers(1, 200))) ** 8
        parts = whole_parts(weights.tolist())
        assert sum(parts) == PARTS
        assert np.abs(np.array(parts) / PARTS - weights / weights.sum()).max() <= 1 / PARTS


def test_tuples_above_a_chance_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        sizes = tuple(int(s) for s in rng.integers(1, 6, 3))
        prior = Product(
            tuple(whole_parts((rng.random(s) ** 3).tolist()) if rng.random() < 0.8 else None
                  for s in sizes)
        )  # fmt: skip
        least = float(rng.random() ** 4)
        every = np.stack([g.ravel() for g in np.indices(sizes)])
        chance = np.ones(every.shape[1])
        for code, p, size in zip(every, prior.chances(sizes), sizes, strict=True):
            chance *= np.broadcast_to(p, (size,))[code]
        found = prior.above(sizes, least, 1000)
        assert found is not None
        ordered = np.stack(found)[:, np.lexsort(found[::-1])]
        assert ordered.tolist() == every[:, chance > least].tolist()
        count = int((chance > least).sum())
        assert not count or prior.above(sizes, least, count - 1) is None


def test_mean_noise_is_the_definition() -> None:
    assert SHAPED.noise_mean(codes()) == pytest.approx(means(), rel=1e-9)
    assert SHAPED.expected_noise(24) == pytest.approx(sum(means()), rel=1e-9)
    variance = sum(m * (1 + m) for m in means())
    assert SHAPED.noise_deviation(24) == pytest.approx(math.sqrt(variance), rel=1e-9)


# ---------------------------------------------------------------------- sampling


def test_numbers_follow_their_laws() -> None:
    stream = Key.from_seed(3).stream("test")
    counts = np.bincount([poisson(stream, 2.5) for _ in range(20_000)], minlength=20)
    law = [math.exp(-2.5) * 2.5**k / math.factorial(k) for k in range(20)]
    assert_fits(counts, law)
    assert not fits(counts, [math.exp(-2.6) * 2.6**k / math.factorial(k) for k in range(20)])
    copies = np.bincount(geometric(stream, np.full(50_000, 0.3)), minlength=30)[:30]
    assert_fits(copies, [0.7 * 0.3**k for k in range(30)])
    drawn = np.bincount(choice(stream, [1, 0, 5, 2], 40_000), minlength=4)
    assert drawn[1] == 0
    assert_fits(drawn[[0, 2, 3]], [1 / 8, 5 / 8, 2 / 8])
    assert_fits(np.bincount(even(stream, 7, 40_000), minlength=7), [1 / 7] * 7)
    assert poisson(stream, 0.0) == 0
    tail = exponentials(stream, 3_000_000)
    rare = int((tail > 12).sum())  # 18.4 on average; none or 50 would have a chance below 10⁻⁷
    assert 0 < rare < 50
    assert_fits(np.bincount(tail.astype(int), minlength=12)[:12],
                [math.exp(-k) - math.exp(-k - 1) for k in range(12)])  # fmt: skip
    big = poisson(stream, 3e6)
    assert abs(big - 3e6) < 6 * math.sqrt(3e6)


def test_every_tuple_gets_geometric_noise_of_its_mean() -> None:
    """Also where the domain is cut into ranges, and where the cap is in force."""
    runs = rounds(2_000, 6_000)
    cuts = SHAPED.cuts(INDEX, 3)
    assert len(cuts) > 2
    seen = np.zeros((24, 12), dtype=int)
    for seed in range(runs):
        key = Key.from_seed(seed)
        rows = np.concatenate(
            [SHAPED.noise_rows(INDEX, key, i, a, b)
             for i, (a, b) in enumerate(pairwise(cuts))]
        )  # fmt: skip
        assert (np.diff(rows.astype(np.int64)) >= 0).all()
        copies = np.bincount(rows.astype(np.int64), minlength=24)
        seen[np.arange(24), np.minimum(copies, 11)] += 1
    for place, mean in enumerate(means()):
        q = mean / (1 + mean)
        assert_fits(seen[place, :11], [(1 - q) * q**j for j in range(11)])
    heavy = int(np.argmax(means()))
    wrong = means()[heavy] * (1 + 0.15 * math.sqrt(6_000 / runs))
    q = wrong / (1 + wrong)
    assert not fits(seen[heavy, :11], [(1 - q) * q**j for j in range(11)])


# ---------------------------------------------------------------------- the promise


def law(mean: Fraction, a: Fraction, records: int, seen: int) -> Fraction:
    """P(seen copies | so many records), from the definition."""
    q = mean / (1 + mean)
    return sum(
        (math.comb(records, k) * a**k * (1 - a) ** (records - k) * (1 - q) * q ** (seen - k)
         for k in range(min(records, seen) + 1)),
        Fraction(0),
    )  # fmt: skip


def test_one_more_record_changes_little_whatever_the_others() -> None:
    a = Fraction(1, 2)
    for mean in {Fraction(m) for m in means()}:
        ratios = [law(mean, a, x + 1, y) / law(mean, a, x, y) for x in range(4) for y in range(9)]
        assert min(ratios) == 1 - a
        assert max(ratios) == 1 + a / mean
    bounds = SHAPED.likelihood_ratio()
    least = Fraction(SHAPED.floor)  # the prior gives z no chance
    assert (bounds.low, bounds.high) == (1 - a, 1 + a / least)


def test_log_likelihood_is_the_laws() -> None:
    counts = np.arange(24) % 5
    for records in range(4):
        expected = [
            float(law(Fraction(m), Fraction(1, 2), records, int(y)))
            for m, y in zip(means(), counts, strict=True)
        ]
        found = np.exp(SHAPED.log_likelihood(counts, records, codes()))
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
def test_beliefs_up_to_the_protected_prior_end_at_the_posterior(adversary: Any) -> None:
    """By enumeration: min(K·s(t), c) is protected, c is attained, a tenth less noise breaks it."""
    wished = DGamma(0.01, 0.3, adversary)
    planned = plan_shaped(wished, 0.01 * 24, PRIOR, SIZES, floor_share=0.2)
    a = Fraction(planned.retention)
    factor, most = promise_where_likely(wished, planned.retention, planned.strength, planned.cap)
    assert factor == pytest.approx(0.24, rel=1e-5)
    for s in (1e-4, 0.01, 0.1, 0.5 * most / factor, most / factor, 0.9):
        shaped = Fraction(min(planned.strength * s, planned.cap))
        d = Fraction(min(factor * s, most))
        for share in (1, Fraction(9, 10)):
            mean = share * shaped  # the floor comes on top
            absent = law(mean, a, 1, 0) / law(mean, a, 0, 0)
            seen = max(law(mean, a, 1, y) / law(mean, a, 0, y) for y in range(6))
            # The other candidate of an exclusive adversary is not seen, whatever its noise.
            other = absent if adversary == "exclusive" else Fraction(1)
            posterior = d * seen / (d * seen + (1 - d) * other)
            if share == 1:
                assert posterior <= Fraction(wished.posterior)
            elif d == Fraction(most):
                assert posterior > Fraction(wished.posterior)
        if d == Fraction(most):
            reached = protected_priors(wished, planned.retention, np.array([float(shaped)]))
            assert reached[0] == pytest.approx(most, rel=1e-6)


def test_a_plan_protects_a_share_of_the_prior_everywhere() -> None:
    wished = DGamma(1e-4, 0.2)
    size = (100, 50, 100)
    unlikely = Product((None, whole_parts([1] * 49 + [0]), None))
    planned = plan_shaped(wished, 50.0, unlikely, size, floor_share=0.1)
    mechanism = Shaped(planned.retention, planned.floor, planned.strength, planned.cap,
                       unlikely, size)  # fmt: skip
    everywhere = promise_everywhere(wished, mechanism.likelihood_ratio())
    assert everywhere.kept_by(mechanism.likelihood_ratio())
    assert everywhere.prior == pytest.approx(0.1 * wished.prior, rel=1e-6)
    stronger = DGamma(everywhere.prior * 1.0001, wished.posterior)
    assert not stronger.kept_by(mechanism.likelihood_ratio())


def test_wide_even_attributes_are_not_listed() -> None:
    """Domains of 10¹⁷ values: planning, cutting and drawing look at what is likely only."""
    sizes = (10**17, 4, 10**6)
    prior = Product((None, whole_parts([97, 1, 1, 1]), None))
    planned = plan_shaped(DGamma(1e-20, 0.2), 4e3, prior, sizes, floor_share=0.1)
    mechanism = Shaped(
        planned.retention, planned.floor, planned.strength, planned.cap, prior, sizes
    )
    assert len(mechanism.above_cap[0]) == 0
    index = TupleIndex(sizes)
    cuts = mechanism.cuts(index, 1000)
    assert len(cuts) > 3
    rows = mechanism.noise_rows(index, Key.from_seed(1), 0, cuts[0], cuts[1])
    expected = mechanism.expected_noise(math.prod(sizes)) / (len(cuts) - 1)
    assert abs(len(rows) - expected) < 6 * math.sqrt(expected)


# ---------------------------------------------------------------------- estimates


def table(rows: int = 60) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "a": np.array(["x", "y", "z"])[rng.choice(3, rows, p=[0.7, 0.2, 0.1])],
            "b": rng.integers(1, 5, rows),
            "c": rng.random(rows) < 0.5,
        }
    )


def published(seed: int | None = None, **options: Any) -> ViewRelease:
    wish: dict[str, Any] = {
        "prior": 0.35, "posterior": 0.5, "schema": SCHEMA, "noise_prior": CHANCES, "name": "t",
    }  # fmt: skip
    release: ViewRelease = voile.publish(table(), simulate_seed=seed, **(wish | options))
    return release


def test_sums_over_the_domain_are_those_of_brute_force() -> None:
    release = published(1)
    mechanism = release.mechanism
    assert isinstance(mechanism, Shaped)
    assert len(mechanism.above_cap[0])  # the cap is in force
    rows = release.to_pandas()
    mean = mechanism.noise_mean(codes())
    a, b, c = codes()
    for condition, holds, in_rows in [
        ("b >= 2", b + 1 >= 2, rows.b >= 2),
        ("a = 'x' and not c", (a == 0) & (c == 0), (rows.a == "x") & ~rows.c),
        ("a = 'x' or b = 3", (a == 0) | (b == 2), (rows.a == "x") | (rows.b == 3)),
        ("a = 'z'", a == 2, rows.a == "z"),
    ]:
        found = release.query(f"select count(*) from t where {condition}").scalar
        keep = mechanism.retention
        assert found.value == pytest.approx((in_rows.sum() - mean[holds].sum()) / keep)
        noise = (mean[holds] * (1 + mean[holds])).sum()
        variance = (max(found.value, 0) * keep * (1 - keep) + noise) / keep**2
        assert found.stderr == pytest.approx(math.sqrt(variance))


def test_estimates_are_unbiased_and_their_errors_honest() -> None:
    """Counts, sums, groups and medians over many releases; fixed seeds, false alarms ≤ 10⁻⁴."""
    truth = table().to_pandas()
    runs = rounds(16, 150)
    asked = {
        "select count(*) from t where b >= 3": float((truth.b >= 3).sum()),
        "select sum(b) from t where a = 'x'": float(truth.b[truth.a == "x"].sum()),
        "select avg(b) from t": float(truth.b.mean()),
        "select median(b) from t": float(truth.b.quantile(0.5)),
    }
    values: dict[str, list[float]] = {sql: [] for sql in asked}
    errors: dict[str, list[float]] = {sql: [] for sql in asked}
    covered = dict.fromkeys(asked, 0)
    for seed in range(runs):
        release = published(seed)
        for sql, right in asked.items():
            found = release.query(sql).scalar
            values[sql].append(found.value)
            errors[sql].append(found.stderr)
            low, high = found.interval()
            covered[sql] += bool(low <= right <= high)
    for sql, right in asked.items():
        assert proportion_at_least(covered[sql], runs, 0.95), sql
        if "count" in sql or "sum" in sql:
            spread = np.std(values[sql])
            assert abs(np.mean(values[sql]) - right) < 4.5 * spread / math.sqrt(runs)
            assert np.sqrt(np.mean(np.square(errors[sql]))) == pytest.approx(
                spread, rel=0.2 * math.sqrt(150 / runs)
            )


def test_a_domain_beyond_one_word(tmp_path: Path) -> None:
    attributes = [{"name": f"k{i}", "kind": "integer", "range": [0, 999]} for i in range(9)]
    rng = np.random.default_rng(6)
    rows = pa.table({f"k{i}": (rng.random(200) ** 4 * 1000).astype(int) for i in range(9)})
    release = voile.publish(
        rows, prior=2e-24, schema={"attributes": attributes}, noise_prior="product", name="wide",
        simulate_seed=1,
    )  # fmt: skip
    voile.verify(release.save(tmp_path / "wide.voile"))
    found = release.query("select count(*) from wide where k0 < 100").scalar
    assert abs(found.value - int((rows["k0"].to_numpy() < 100).sum())) < 6 * found.stderr


# ---------------------------------------------------------------------- what the release says


def test_a_learnt_prior_is_disclosed_and_claims_no_epsilon() -> None:
    learnt, declared = published(noise_prior="product"), published()
    told = [d.what for d in learnt.manifest.disclosed]
    assert "how often each value of a occurs" in told
    assert not any("how often" in d.what for d in declared.manifest.disclosed)
    assert learnt.manifest.guarantee.epsilon.swap is None
    assert declared.manifest.guarantee.epsilon.swap is not None
    assert declared.manifest.guarantee.epsilon.add_remove is not None
    assert "own marginals" in str(learnt.manifest.guarantee.likely)
    assert "noise prior" in declared.describe()
    assert declared.manifest.promise.prior < 0.35


def test_a_public_table_or_a_file_gives_the_prior(tmp_path: Path) -> None:
    import pyarrow.csv as pacsv

    pacsv.write_csv(table(300), tmp_path / "public.csv")
    (tmp_path / "prior.yaml").write_text(
        "a: {x: 5, y: 1}\nb: [1, 2, 3, 4]\nc: {true: 1, false: 1}\n"
    )
    (tmp_path / "prior.json").write_text(json.dumps({"a": {"x": 5, "y": 1}, "b": {"1": 1, "4": 3}}))
    public = published(noise_prior=str(tmp_path / "public.csv"))
    assert public.manifest.parameters.noise_prior is not None
    assert not public.manifest.parameters.noise_prior.learnt
    yaml = published(noise_prior=tmp_path / "prior.yaml").manifest.parameters.noise_prior
    assert yaml is not None
    assert yaml.parts["a"] == list(whole_parts([5, 1, 0]))
    assert yaml.parts["c"] == [PARTS // 2] * 2
    json_ = published(noise_prior=tmp_path / "prior.json").manifest.parameters.noise_prior
    assert json_ is not None
    assert json_.parts["b"] == list(whole_parts([1, 0, 0, 3]))
    assert "c" not in json_.parts


def test_the_tables_own_marginals_are_known_by_whatever_way_they_come(tmp_path: Path) -> None:
    import pyarrow.csv as pacsv

    pacsv.write_csv(table(), tmp_path / "same.csv")
    for given in (tmp_path / "same.csv", table(), table().to_pandas()):
        release = published(noise_prior=given)
        assert release.manifest.parameters.noise_prior is not None
        assert release.manifest.parameters.noise_prior.learnt
        assert release.manifest.public_rows == 60  # follows from the marginals
    other = published(noise_prior=table(61)).manifest.parameters.noise_prior
    assert other is not None
    assert not other.learnt


def test_a_domain_is_not_sampled() -> None:
    with pytest.raises(VoileError, match="do not come apart"):
        attributes = [{"name": f"k{i}", "kind": "integer", "range": [0, 23]} for i in range(9)]
        rows = pa.table({f"k{i}": [1, 2, 3] for i in range(9)})
        chances = [90, *[1] * 23]
        release = voile.publish(
            rows, prior=1e-9, schema={"attributes": attributes}, name="wide", simulate_seed=1,
            noise_prior={f"k{i}": chances for i in range(9)},
        )  # fmt: skip
        mixed = " + ".join(f"k{i} * k{8 - i} * {i + 1}" for i in range(9))
        release.query(f"select count(*) from wide where ({mixed}) % 101 < 52", memory="16MB")


def test_weakened_noise_does_not_verify(tmp_path: Path) -> None:
    release = published().save(tmp_path / "t.voile")
    prior = release.manifest.parameters.noise_prior
    assert prior is not None
    for change in ({"floor": prior.floor * 0.7}, {"cap": prior.floor * 0.1, "floor": 1e-9},
                   {"learnt": True}, {"strength": 1e300}, {"cap": math.inf},
                   {"strength": math.inf}, {"floor": math.nan}):  # fmt: skip
        parameters = release.manifest.parameters.model_copy(
            update={"noise_prior": prior.model_copy(update=change)}
        )
        forged = release.manifest.model_copy(update={"parameters": parameters}).sealed()
        (release.path / "manifest.json").write_text(forged.text(), encoding="utf-8")
        with pytest.raises(ReleaseError):
            voile.verify(release.path)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"rows": "set"}, UsageError, "rows='multiset'"),
        ({"max_view_ratio": 5.0}, UsageError, "max_view_ratio="),
        ({"noise_floor": 0.0}, UsageError, "noise-floor 0.0"),
        ({"noise_floor": 1.5}, UsageError, "noise-floor 1.5"),
        ({"noise_prior": None, "noise_floor": 0.1}, UsageError, "belongs to noise_prior="),
        ({"noise_prior": {"A": {"x": 1}}}, UsageError, "no attribute 'A'"),
        ({"noise_prior": {"a": {"w": 1}}}, UsageError, "no value 'w'"),
        ({"noise_prior": {"a": {"x": -1}}}, UsageError, "-1"),
        ({"noise_prior": {"a": {"x": "often"}}}, UsageError, "'often' is not a number"),
        ({"noise_prior": {"a": {"x": 0}}}, UsageError, "all 0"),
        ({"noise_prior": {"b": [1, 2, 3]}}, UsageError, "4 values, not 3"),
        ({"noise_prior": {"b": 3}}, UsageError, "'b' is 3"),
        ({"noise_prior": {}}, UsageError, "names no attribute"),
        ({"noise_prior": "nowhere.yaml"}, UsageError, "nowhere.yaml"),
        ({"noise_prior": "nowhere.csv"}, VoileError, "nowhere.csv"),
        ({"retention": 0.999999, "prior": 0.1}, VoileError, "retention 0.999999"),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        published(**options)
    assert says in str(caught.value)


def test_refusals_of_files(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- a\n")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.csv").write_text("a,b,c\nw,1,true\n")
    (tmp_path / "less.csv").write_text("a,b\nx,1\n")
    for name, error in [("list.yaml", UsageError), ("broken.json", UsageError),
                        ("other.csv", SchemaError), ("less.csv", UsageError)]:  # fmt: skip
        with pytest.raises(error, match=name.split(".")[0]):
            published(noise_prior=tmp_path / name)


def test_no_more_is_promised_than_was_wished_for_and_less_is_said() -> None:
    """Where the likeliest noise is more than enough everywhere, and where it is not."""
    small = pa.table({"a": ["x", "y"] * 75})
    wish: dict[str, Any] = {"prior": 0.01, "posterior": 0.2, "noise_prior": "product"}
    done = publish_table(small, **wish)
    assert done.release.promise.prior == 0.01
    assert not any("asked for" in note for note in done.notes)
    less = publish_table(table(), schema=SCHEMA, noise_prior=CHANCES, prior=0.01, name="t")
    assert less.release.promise.prior < 0.01
    assert any("asked for d = 0.01" in note for note in less.notes)


def test_too_much_to_draw_is_refused_before_it_is_begun() -> None:
    attributes = [{"name": f"k{i}", "kind": "integer", "range": [0, 99]} for i in range(5)]
    rows = pa.table({f"k{i}": [1] * 50 for i in range(5)})
    with pytest.raises(VoileError, match="draws"):
        voile.publish(rows, prior=0.01, schema={"attributes": attributes}, noise_prior="product")


def test_a_public_table_has_its_nulls_as_the_table_has(tmp_path: Path) -> None:
    (tmp_path / "public.csv").write_text("a,b\nx,1\nx,\ny,2\n")
    schema = {"attributes": [
        {"name": "a", "kind": "categorical", "values": ["x", "y"]},
        {"name": "b", "kind": "integer", "range": [1, 2], "null": True},
    ]}  # fmt: skip
    own = pa.table({"a": ["x", "y"], "b": [1, None]})
    release = voile.publish(own, schema=schema, prior=0.05, posterior=0.5,
                            noise_prior=tmp_path / "public.csv")  # fmt: skip
    prior = release.manifest.parameters.noise_prior
    assert prior is not None
    assert prior.parts["b"] == list(whole_parts([1, 1, 1]))


def test_refining_is_refused() -> None:
    with pytest.raises(UsageError, match="shaped noise cannot be refined"):
        published(1).query("select count(*) from t", refine=True)


def test_the_same_seed_gives_the_same_view() -> None:
    assert published(7).to_arrow().equals(published(7).to_arrow())
    assert not published(7).to_arrow().equals(published(8).to_arrow())


def test_the_schema_of_the_tests_is_the_domain() -> None:
    assert Schema.from_dict(SCHEMA).sizes == list(SIZES)
    assert publish_table(table(), schema=SCHEMA, noise_prior=CHANCES, prior=0.05,
                         posterior=0.4).release.schema.size == 24  # fmt: skip


def test_an_attack_knows_what_is_protected_where(tmp_path: Path) -> None:
    """A belief of d(t) is covered and does not leak, though it is above the release's d."""
    from voile.evaluate.attack.carry_out import attack

    release = published(3)
    mechanism = release.mechanism
    assert isinstance(mechanism, Shaped)
    most = release.protected_priors(codes())
    assert most.max() > 2 * release.promise.prior
    lines = ["a,b,c,prior"]
    lines += [
        f"{'xyz'[a]},{b + 1},{bool(c)},{d!r}"
        for a, b, c, d in zip(*(code.tolist() for code in codes()), most.tolist(), strict=True)
    ]
    (tmp_path / "targets.csv").write_text("\n".join(lines) + "\n")
    found = attack(release, tmp_path / "targets.csv")
    assert all(belief.covered and not belief.positive_leak for belief in found.beliefs)
    reached = max(belief.posterior for belief in found.beliefs)
    assert reached == pytest.approx(release.promise.posterior, rel=1e-6)
