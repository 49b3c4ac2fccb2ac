"""Plans before publishing: what they foresee comes true, forwards and backwards."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from voile.cli import app
from voile.errors import PromiseError, TableError, UsageError, VoileError
from voile.evaluate import planning
from voile.evaluate.expected import MEAN_OF_ABSOLUTE, affordable_order
from voile.evaluate.planning import plan_table
from voile.evaluate.strongest import halved, round_off
from voile.mechanisms import AlphaBeta
from voile.publishing import publish_table
from voile.schema import TupleIndex

ADULT = "dataset:adult/boundary"
NORMAL_1E_6 = 4.9
"""A normal variable is farther from its mean, in standard deviations, once in a million."""
SD_OF_ABSOLUTE = math.sqrt(1 - 2 / math.pi)


def write_people(folder: Path, rows: int = 600) -> str:
    rng = np.random.default_rng(5)
    path = folder / "people.csv"
    ages = rng.integers(0, 20, rows)
    towns = rng.choice(["north", "south", "west"], rows, p=[0.6, 0.3, 0.1])
    sick = rng.integers(0, 2, rows)
    lines = [f"{a},{t},{s}" for a, t, s in zip(ages, towns, sick, strict=True)]
    path.write_text("\n".join(["age,town,sick", *lines]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_people(tmp_path_factory.mktemp("planning"))


def small(people: str, **options: Any) -> planning.Foresight:
    return plan_table(people, **({"prior": 0.05, "posterior": 0.4} | options))


# ---------------------------------------------------------------------- against the oracle


def test_errors_of_all_selections_are_the_oracles(oracle: dict[str, dict[str, Any]]) -> None:
    check = oracle["fig3.ab_multiset_tight"]
    theory = dict(zip(check["inputs"]["xs"], check["expected"]["normal_theory"], strict=True))
    found = plan_table(ADULT, prior_factor=10, posterior=0.2, retention=0.5)
    wanted = [theory[0], theory[100], theory[1000]]
    assert [line.mean for line in found.errors] == pytest.approx(wanted, rel=1e-9)
    assert [line.numbers for line in found.errors] == [304364, 4944, 546]
    assert found.expected_error == pytest.approx(theory[0], rel=1e-9)
    short = oracle["fig3.theory_multiset"]["expected"]
    assert found.errors[1].mean == pytest.approx(short["100"][0], rel=1e-9)


def test_errors_of_the_set_form_are_the_oracles(oracle: dict[str, dict[str, Any]]) -> None:
    check = oracle["fig3.ab_set_tight"]
    theory = dict(zip(check["inputs"]["xs"], check["expected"]["normal_theory"], strict=True))
    prior = oracle["params.adult"]["expected"]["d"]
    found = plan_table(ADULT, prior=prior, retention=0.5, rows="set", distinct=True)
    wanted = [theory[0], theory[100], theory[1000]]
    assert [line.mean for line in found.errors] == pytest.approx(wanted, rel=1e-9)


def test_the_plan_of_adult(oracle: dict[str, dict[str, Any]]) -> None:
    found = plan_table(ADULT, prior_factor=10, posterior=0.2, source=ADULT).to_dict()
    assert found["prior"] == pytest.approx(oracle["params.adult"]["expected"]["d"], rel=1e-12)
    # docs/mathematics.md, sections 6 and 12: errata's 6.2858, 0.991, and 41 rows for each row.
    assert found["epsilon"] == pytest.approx(6.2858, abs=1e-4)
    assert found["linked_posterior"] == pytest.approx(0.991, abs=5e-4)
    assert found["expected_rows"] / found["rows"] == pytest.approx(41, rel=1e-3)
    assert found["command"] == f"voile publish {ADULT} --prior-factor 10 --posterior 0.2"
    assert found["strongest"] is None
    assert found["limits"] == []
    assert "for the steward" in found["notes"][0]
    assert json.loads(json.dumps(found)) == found


# ---------------------------------------------------------------------- against releases


def test_errors_come_true_when_published_many_times(people: str) -> None:
    """Twenty releases, sixty cells each; a sound plan fails this with probability 10⁻⁶.

    Cells are independent, and their errors nearly normal. A plan that is 25 % off is caught.
    """
    sql = "select age, town, count(*) as c from people group by age, town"
    found = small(people, on=[sql])
    (line,) = found.errors
    assert line.numbers == 60
    counts = true_counts(found)
    errors = []
    for seed in range(20):
        release = publish_table(people, prior=0.05, posterior=0.4, simulate_seed=seed).release
        assert release.mechanism == found.mechanism
        values = [row["c"].value for row in release.query(sql).rows]
        errors += [abs(v - count) for v, count in zip(values, counts, strict=True)]
    spread = NORMAL_1E_6 * SD_OF_ABSOLUTE / MEAN_OF_ABSOLUTE / math.sqrt(len(errors))
    assert line.mean is not None
    assert float(np.mean(errors)) == pytest.approx(line.mean, rel=spread)
    assert spread < 0.125


def true_counts(found: planning.Foresight) -> list[int]:
    """Of every age and town, in the order of the domain."""
    sizes = found.ground.prepared.schema.sizes
    age, town, _ = TupleIndex(sizes).decode(found.ground.prepared.members)
    counts = np.bincount(age.astype(np.int64) * sizes[1] + town, minlength=sizes[0] * sizes[1])
    return [int(count) for count in counts]


@pytest.mark.parametrize(
    "options",
    [{}, {"retention": 0.5}, {"prior_factor": 1.0}, {"adversary": "exclusive"},
     {"columns": ["age", "education", "sex", "native_country"], "prior": 0.01}],
    ids=str,
)  # fmt: skip
def test_sizes_come_true(options: dict[str, Any]) -> None:
    """Bytes within 10 %; rows within five standard deviations."""
    found = plan_table(ADULT, **options)
    manifest = publish_table(ADULT, simulate_seed=1, **options).release.manifest
    size = sum(file.bytes for file in manifest.files if file.path.endswith(".parquet"))
    assert found.size.bytes == pytest.approx(size, rel=0.1)
    spread = math.sqrt(found.mechanism.variance(found.rows, float(found.domain_size)))
    assert abs(manifest.rows - found.size.rows) < 5 * spread * found.mechanism.excess
    assert manifest.parameters.retention == found.mechanism.retention
    assert manifest.parameters.noise == found.mechanism.noise


def test_queries_have_the_exact_standard_errors(people: str) -> None:
    """Σ w² by hand, over the table and over the domain."""
    found = small(
        people,
        on=["select count(*) from p where age < 5 and sick = 1", "select sum(age) from p"],
    )
    schema, members = found.ground.prepared.schema, found.ground.prepared.members
    age, _, sick = TupleIndex(schema.sizes).decode(members)
    mechanism = found.mechanism
    count = mechanism.variance(float(((age < 5) & (sick == 1)).sum()), 5.0 * 3)
    ages = np.arange(20.0)
    total = mechanism.variance(float((age.astype(float) ** 2).sum()), float((ages**2).sum() * 6))
    wanted = [MEAN_OF_ABSOLUTE * math.sqrt(count), MEAN_OF_ABSOLUTE * math.sqrt(total)]
    assert [line.mean for line in found.errors] == pytest.approx(wanted, rel=1e-9)
    assert found.expected_error == max(line.largest or 0 for line in found.errors)


def test_an_average_that_noise_drowns_is_said_to_be_so(people: str) -> None:
    found = small(people, prior=0.395, on=["select town, avg(age) from p group by town"])
    (line,) = found.errors
    assert line.unbounded > 0
    assert found.to_dict()["expected_error"] is None
    assert found.expected_error == math.inf


def test_an_average_of_no_rows_has_no_error(people: str) -> None:
    found = small(people, on=["select avg(age) from p where age < 0"])
    assert (found.errors[0].mean, found.errors[0].unbounded) == (None, 0)
    assert found.to_dict()["expected_error"] is None
    with pytest.raises(UsageError, match="nothing that could be off"):
        small(people, on=["select avg(age) from p where age < 0"], max_error=1.0)


def test_without_noise_nothing_is_off(people: str) -> None:
    found = small(people, on=["select count(*), avg(age), median(age) from p"])
    errors = found.ground.workload.errors(AlphaBeta(1.0, 0.0))
    assert [line.largest for line in errors] == [0, 0, 0]


# ---------------------------------------------------------------------- curves


@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
@pytest.mark.parametrize("more", [{}, {"max_view_ratio": 3.0}, {"rows": "set", "distinct": True}])
def test_a_weaker_promise_has_a_smaller_error(
    people: str, adversary: str, more: dict[str, Any]
) -> None:
    found = small(people, adversary=adversary, posterior=0.6, **more)
    by_posterior = [point.expected_error for point in found.by_posterior]
    by_factor = [point.expected_error for point in found.by_prior_factor]
    assert len(by_posterior) > 10
    assert len(by_factor) > 10
    assert by_posterior == sorted(by_posterior, reverse=True)
    assert by_factor == sorted(by_factor)
    assert found.expected_error in by_posterior
    assert min(by_factor, key=lambda e: abs(e - found.expected_error)) == pytest.approx(
        found.expected_error
    )


# ---------------------------------------------------------------------- backwards


@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
@pytest.mark.parametrize("on", [[], ["select town, count(*) from people group by town"]])
def test_backwards_undoes_forwards(people: str, adversary: str, on: list[str]) -> None:
    """The error of a promise, wished for, gives the promise back: to the digits that are told."""
    options: dict[str, Any] = {"prior_factor": 1.0, "posterior": 0.3, "adversary": adversary}
    options |= {"schema": wide_schema(), "on": on}
    error = plan_table(people, **options).expected_error
    found = plan_table(people, max_error=error * (1 + 1e-9), **options).strongest
    assert found is not None
    assert found.smallest_posterior is not None
    assert found.largest_prior is not None
    assert found.smallest_posterior.promise.posterior == pytest.approx(0.3, rel=2e-3)
    assert found.largest_prior.prior_factor == pytest.approx(1.0, rel=2e-3)
    for best in (found.smallest_posterior, found.largest_prior):
        assert best.expected_error <= error * (1 + 1e-9)
        assert best.expected_error == pytest.approx(error, rel=5e-3)


def wide_schema() -> dict[str, Any]:
    return {
        "attributes": [
            {"name": "age", "kind": "integer", "range": [0, 99]},
            {"name": "town", "kind": "categorical", "values": ["east", "north", "south", "west"]},
            {"name": "sick", "kind": "integer", "range": [0, 9]},
        ]
    }


@pytest.mark.parametrize("wished", [2.0, 5.0, 15.0])
def test_nothing_stronger_allows_the_error(people: str, wished: float) -> None:
    found = plan_table(people, schema=wide_schema(), max_error=wished, prior=0.2, posterior=0.5)
    best, ground = found.strongest, found.ground
    assert best is not None
    if best.smallest_posterior:
        posterior = best.smallest_posterior.promise.posterior
        assert ground.error(0.2, posterior) <= wished
        assert ground.error(0.2, posterior * 0.998) > wished
    if best.largest_prior:
        prior = best.largest_prior.promise.prior
        assert ground.error(prior, 0.5) <= wished
        assert ground.error(prior * 1.002, 0.5) > wished
    assert best.smallest_posterior or best.largest_prior


def test_the_line_that_is_printed_publishes(people: str, tmp_path: Path) -> None:
    found = plan_table(
        people,
        source=people,
        columns=["age", "town"],
        prior_factor=0.02,
        posterior=0.3,
        max_error=40.0,
    )
    best = found.strongest
    assert best is not None
    assert best.smallest_posterior is not None
    line = found.command(best.smallest_posterior.wish)
    target = tmp_path / "made.voile"
    done = run([*shlex.split(line)[1:], "-o", str(target), "--json"])
    assert done.returncode == 0, done.stderr
    parameters = json.loads(done.stdout)["parameters"]
    assert parameters["retention"] == best.smallest_posterior.mechanism.retention
    assert parameters["noise"] == best.smallest_posterior.mechanism.noise


def test_a_command_has_all_that_was_asked(people: str) -> None:
    found = small(
        people, source="a b.csv", rows="set", distinct=True, nulls="drop", retention=0.5,
        adversary="exclusive", columns=["age", "town"], posterior=0.7, null_text=("?", "n a"),
    )  # fmt: skip
    assert found.to_dict()["command"] == (
        "voile publish 'a b.csv' --prior 0.05 --posterior 0.7 --adversary exclusive "
        "--retention 0.5 --columns age,town --rows set --distinct --nulls drop "
        "--null-text '?' --null-text 'n a'"
    )


def test_where_nothing_works_it_says_so_with_the_theorems(people: str) -> None:
    with pytest.raises(PromiseError) as refusal:
        small(people, max_error=1e-6)
    assert "below what αβ can have on this table" in refusal.value.message
    assert "Theorem 2.6" in refusal.value.message
    assert "no constant is known" in refusal.value.message
    nearest = float(refusal.value.hint.split("--max-error ")[1].split(",")[0])
    again = small(people, max_error=nearest).strongest
    assert again is not None
    assert again.smallest_posterior or again.largest_prior


def test_a_promise_beyond_the_boundary_is_named(tmp_path: Path) -> None:
    """Two columns of a million values: priors of 10 % cannot be kept below 20 % by anything."""
    path = tmp_path / "far.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i * 31 % 1000}\n" for i in range(100)))
    whole = [{"name": name, "kind": "integer", "range": [0, 10**5]} for name in "ab"]
    far: dict[str, Any] = {
        "schema": {"attributes": whole},
        "posterior": 0.2,
        "on": ["select count(*) from t"],
    }
    found = plan_table(path, prior=0.04, **far)
    assert found.limits[0].theorem.startswith("VLDB 2007, Theorem 3.3")
    assert plan_table(path, prior=1e-6, **far).limits == ()
    exclusive = plan_table(path, prior=1e-6, adversary="exclusive", **far)
    assert [limit.theorem for limit in exclusive.limits] == ["VLDB 2007, Theorem 6.6"]


def test_arbitrary_correlations_are_refused_with_the_theorem(people: str) -> None:
    with pytest.raises(PromiseError, match=r"Theorem 6\.1"):
        small(people, adversary="arbitrary")


def test_halving_and_rounding() -> None:
    assert halved(0.0, 10.0, lambda x: x >= 3) == pytest.approx(3)
    assert halved(10.0, 0.0, lambda x: x <= 3) == pytest.approx(3)
    assert round_off(0.123456, math.ceil) == 0.1235
    assert round_off(0.123456, math.floor) == 0.1234
    assert round_off(98765.4, math.ceil) == 98770
    assert round_off(2.0, math.floor) == 2.0


def test_orders_that_can_be_counted() -> None:
    for sizes in [(72, 7, 16, 7), (3000, 3000, 3), (10**6, 10**6), (5, 4), (2000, 2000, 2000)]:
        cells = [
            sum(math.prod(s) for k in range(1, order + 1) for s in combinations(sizes, k))
            for order in (1, 2, 3)
        ]
        wanted = max(i + 1 for i, count in enumerate(cells) if count <= 5_000_000)
        assert affordable_order(sizes) == wanted
    with pytest.raises(UsageError, match="too many to foresee"):
        affordable_order((10**9, 2))


# ---------------------------------------------------------------------- the command line


def run(arguments: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "voile.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
    )


def test_what_a_steward_sees(people: str) -> None:
    done = run(["plan", people, "--prior", "0.05", "--posterior", "0.4", "--max-error", "5"])
    assert done.returncode == 0, done.stderr
    for words in ("retention", "expected error", "selections that count 100 or more", "smallest γ"):
        assert words in done.stdout
    assert "for the steward, not for publication" in done.stderr.replace("\n", " ")
    assert done.stdout.splitlines()[-1].startswith("voile publish ")


def test_pictures(people: str, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    from voile.evaluate import boundary_plot, planning_plot
    from voile.evaluate.boundary import boundary_of

    path = tmp_path / "plan.svg"
    sql = "select town, count(*), avg(age) from p group by town"
    found = small(people, on=[sql, sql], max_error=50)
    planning_plot.write(found, path, overwrite=False)
    picture = path.read_text()
    assert picture.startswith("<svg")
    assert "not for publication" in picture
    assert "wished: 50" in picture
    with pytest.raises(UsageError, match="exists already"):
        planning_plot.write(found, path, overwrite=False)
    boundary_plot.write(boundary_of(people), tmp_path / "boundary.html", overwrite=False)
    page = (tmp_path / "boundary.html").read_text()
    assert "excluded: d ≥ γ" in page or "excluded: d \\u2265" in page
    assert 'src="http' not in page


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ({"max_error": 0.0}, UsageError, "max-error 0.0 must be a number above 0"),
        ({"max_error": math.nan}, UsageError, "max-error nan"),
        ({"on": ["select age from p"]}, UsageError, "age"),
        ({"on": ["select count(*) from p where hight > 3"]}, UsageError, "hight"),
        ({"prior_factor": 3.0}, UsageError, "a prior and a prior factor"),
        ({"posterior": 1.5}, UsageError, "posterior γ = 1.5"),
        ({"prior": 0.5}, PromiseError, "prior d = 0.5 is not below posterior"),
        ({"retention": 0.99}, PromiseError, "retention 0.99 is too large"),
        ({"adversary": "nosy"}, UsageError, "adversary 'nosy' is not known"),
        ({"columns": ["age", "hight"]}, UsageError, "no column 'hight'"),
        ({"rows": "set"}, TableError, "repeat another row"),
        ({"noise_prior": "product"}, UsageError, "noise that has a shape"),
        ({"depth": 3}, UsageError, "there is no option 'depth'"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_wishes_are_refused(
    people: str, wrong: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(VoileError) as refusal:
        small(people, **wrong)
    assert words in refusal.value.message
    assert refusal.value.hint
    assert refusal.value.exit_code == (2 if kind is UsageError else 1)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["plan", "nowhere.csv"], 2, "nowhere.csv"),
        (["plan", "PEOPLE", "-o", "plan.bmp"], 2, "ends in .bmp"),
        (["plan", "PEOPLE", "-o", "there/is/none.png"], 2, "there is no folder"),
        (["plan", "PEOPLE", "--nulls", "maybe"], 2, "--nulls 'maybe' is not known"),
        (["plan", "PEOPLE", "--adversary", "arbitrary"], 1, "Theorem 6.1"),
        (["boundary", "PEOPLE", "--columns", "hight"], 2, "no column 'hight'"),
        (["boundary", "PEOPLE", "--posterior", "0"], 2, "posterior γ = 0"),
    ],
    ids=str,
)
def test_wrong_commands_are_refused(
    people: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    arguments: list[str], code: int, words: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VoileError) as refusal:
        app([people if a == "PEOPLE" else a for a in arguments], standalone_mode=False)
    assert refusal.value.exit_code == code
    assert words in refusal.value.message
    assert not list(tmp_path.iterdir())
