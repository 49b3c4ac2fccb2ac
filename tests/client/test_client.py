"""The client: its vectors, its values, its specs and its refusals."""

from __future__ import annotations

import datetime as dt
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.make_vectors import (
    AGES,
    BORN,
    GRADES,
    HOURS,
    PAY,
    PERSON,
    SEX,
    SMOKES,
    SURVEY,
    TUPLE,
    VISITS,
    column,
    spec_of,
    text_of,
    vectors,
)
from tests.support.make_vectors import TARGET as VECTORS
from tests.support.vector_law import code_of, size, value_of
from voile.client import (
    Column,
    Draws,
    Grid,
    PerturbedRow,
    Spec,
    perturb,
    perturb_batch,
    prior_posterior,
)
from voile.errors import PromiseError, UsageError, VoileError

KNOWN = json.loads(VECTORS.read_text(encoding="utf-8"))
ERRORS = {"spec": UsageError, "row": UsageError, "promise": PromiseError}
HEAVY = (
    "adbc_driver_sqlite", "altair", "cryptography", "duckdb", "numba", "opt_einsum", "pandas",
    "prompt_toolkit", "pyarrow", "pydantic", "rich", "scipy", "sqlglot", "typer", "yaml",
)  # fmt: skip


def first(entry: dict[str, Any]) -> Column:
    return Spec.from_dict(spec_of(entry)).columns[0]


# ---------------------------------------------------------------------- vectors


def test_the_vectors_are_those_that_the_law_gives() -> None:
    assert VECTORS.read_text(encoding="utf-8") == text_of(list(vectors()))
    assert len({vector["name"] for vector in KNOWN}) == len(KNOWN) > 150


@pytest.mark.parametrize("vector", KNOWN, ids=lambda vector: vector["name"])
def test_the_client_agrees_with_every_vector(vector: dict[str, Any]) -> None:
    draws = Draws.fixed(bytes.fromhex(vector.get("random", "")))

    def spec() -> Spec:
        if "text" in vector:
            return Spec.from_bytes(vector["text"].encode())
        return Spec.from_dict(vector["spec"])

    def run() -> PerturbedRow:
        limits = {"at_most": vector.get("at_most"), "public": vector.get("public", ())}
        return perturb(vector["row"], spec(), **limits, _draws=draws)

    if "error" in vector:
        if vector["error"] == "row":
            spec()
        with pytest.raises(VoileError) as refused:
            run()
        assert type(refused.value) is ERRORS[vector["error"]]
        assert refused.value.hint
        return
    assert list(run().values()) == vector["values"]
    with pytest.raises(UsageError, match="0 are left"):
        draws.words(1)
    told = math.inf if vector["epsilon"] is None else vector["epsilon"]
    assert spec().epsilon() == pytest.approx(told, rel=1e-9, abs=0)
    assert vector.get("digest", spec().digest) == spec().digest


def test_a_batch_of_one_row_is_the_row() -> None:
    spec = Spec.from_dict(SURVEY)
    random = next(v["random"] for v in KNOWN if v["name"] == "a whole survey")
    row = perturb(PERSON, spec, public=["born"], _draws=Draws.fixed(bytes.fromhex(random)))
    columns = {name: [value] for name, value in PERSON.items()}
    draws = Draws.fixed(bytes.fromhex(random))
    batch = perturb_batch(columns, spec, public=["born"], _draws=draws)
    assert {name: values.tolist() for name, values in batch.items()} == {
        name: [value] for name, value in row.items()
    }


# ---------------------------------------------------------------------- light


def test_the_client_needs_numpy_alone() -> None:
    code = f"""
import sys
from importlib.abc import MetaPathFinder
class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ImportError("not here: " + name)
sys.meta_path.insert(0, Refuse())
import voile.client as client
loaded = {{name.split(".")[0] for name in sys.modules}}
assert not loaded & set({HEAVY!r}), loaded
own = {{name for name in sys.modules if name.startswith("voile.")}}
assert all(n == "voile.errors" or n.startswith("voile.client") for n in own), own
spec = client.Spec.from_dict({spec_of(AGES)!r})
assert 17 <= client.perturb({{"age": 33}}, spec)["age"] <= 90
try:
    import duckdb
except ImportError:
    print("light")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "light", done.stderr


# ---------------------------------------------------------------------- values and codes


def test_codes_are_those_of_the_law_for_every_kind() -> None:
    for entry in (AGES, SEX, SMOKES, PAY, GRADES, VISITS):
        made = first(entry)
        codes = np.arange(size(entry))
        values = made.decode(codes).tolist()
        assert values == [value_of(entry, code) for code in codes.tolist()]
        assert made.encode(values, exact=True).tolist() == codes.tolist()
        assert [made.encode_one(value) for value in values] == codes.tolist()


whole = st.integers(min_value=-(2**50), max_value=2**50)


@given(whole, whole, st.integers(1, 2**50), st.data())
def test_every_point_of_every_grid_has_its_code_back(
    a: int, b: int, per: int, data: st.DataObject
) -> None:
    low, high = sorted((a, b))
    step = data.draw(st.integers(1, max(1, high - low)))
    grid = Grid(low, step, per, (high - low) // step + 1)
    inside = st.integers(0, grid.count - 1)
    codes = np.array([0, grid.count - 1, *data.draw(st.lists(inside, max_size=20))])
    assert grid.encode(grid.decode(codes)).tolist() == codes.tolist()


def test_the_ends_of_the_largest_grids_have_their_codes_back() -> None:
    rng = np.random.default_rng(4)
    for per in [*range(1, 60), *rng.integers(1, 2**50, 200).tolist(), 2**50 - 1, 2**50]:
        for step in (1, 2, 3, 7):
            grid = Grid(-(2**50), step, per, 2**51 // step + 1)
            near = np.arange(2000)
            codes = np.concatenate([near, grid.count // 2 + near, grid.count - 1 - near])
            assert (grid.encode(grid.decode(codes)) == codes).all()


def test_beyond_the_largest_grid_points_would_lose_their_codes() -> None:
    """The bound of the format is needed: a grid near 2⁵³ confuses neighbours."""
    grid = Grid(2**53 - 3000, 1, 2**53 - 4000, 2000)
    codes = np.arange(2000)
    assert (grid.encode(grid.decode(codes)) != codes).any()


@given(st.floats(0, 100))
def test_a_number_goes_to_the_nearest_point(number: float) -> None:
    made = first(HOURS)
    code = made.encode_one(number)
    assert code == code_of(HOURS, number)
    assert abs(Fraction(code, 10000) - Fraction(number)) <= Fraction(1, 20000) + Fraction(1, 10**15)


def test_arrays_lists_and_scalars_of_numpy_mean_the_same() -> None:
    ages, dates, sexes, smokes = first(AGES), first(BORN), first(SEX), first(SMOKES)
    expected = [0, 16, 73]
    for given_ages in (
        [17, 33, 90], [17.0, 33.0, 90.0], np.array([17, 33, 90]), np.array([17, 33, 90], np.uint8),
        np.array([17, 33, 90], np.float32), [np.int64(17), np.float64(33), 90],
        np.array([17, 33, 90], dtype=object), (17, 33, 90),
    ):  # fmt: skip
        assert ages.encode(given_ages).tolist() == expected
    days = ["1950-01-01", "1950-01-02"]
    for given_days in (
        days, [dt.date.fromisoformat(day) for day in days], np.array(days, "datetime64[D]"),
        np.array(days, "datetime64[ns]"), np.array(days),
    ):  # fmt: skip
        assert dates.encode(given_days).tolist() == [0, 1]
    assert sexes.encode(np.array(["Male", "Female"])).tolist() == [1, 0]
    assert smokes.encode(np.array([True, False])).tolist() == [1, 0]
    assert smokes.encode([None, True, None]).tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    ("entry", "values", "place"),
    [
        (AGES, [33, 34, "35"], 2),
        (AGES, [33, True], 1),
        (AGES, [33, None], 1),
        (AGES, [33, math.nan], 1),
        (AGES, [33, math.inf], 1),
        (AGES, [33, 10**400], 1),
        (AGES, [33, 34.5], 1),
        (AGES, [33, [34]], 1),
        (AGES, [33, {"age": 34}], 1),
        (AGES, np.array([33, 3]), 1),
        (AGES, np.array([33, np.nan]), 1),
        (AGES, np.array([True]), 0),
        (AGES, np.array([33 + 0j]), 0),
        (AGES, np.array([33, -(2**63)]), 1),
        (AGES, np.array([33, 2**64 - 1], dtype=np.uint64), 1),
        (HOURS, [1, 1e308], 1),
        (HOURS, [1, "1"], 1),
        (SEX, ["Male", "\ud800"], 1),
        (SEX, ["Male", b"Male"], 1),
        (SMOKES, [True, None, 1], 2),
        (SMOKES, [None, np.int64(1)], 1),
        (BORN, ["1970-01-01", "1970-1-1"], 1),
        (BORN, ["1970-01-01", "NaT"], 1),
        (BORN, [dt.datetime(1970, 1, 1)], 0),
        (BORN, np.array(["1970-01-01T12:00"], "datetime64[h]"), 0),
        (BORN, np.array(["1970-01-01", "NaT"], "datetime64[D]"), 1),
        (PAY, [0, math.nan], 1),
        (GRADES, [None, 4, 4.000000000000001], 2),
        (VISITS, ["1999-12-31", "2000-01-01"], 1),
    ],
)
def test_a_wrong_value_is_refused_by_its_place(
    entry: dict[str, Any], values: Any, place: int
) -> None:
    name = entry["name"]
    with pytest.raises(UsageError, match=rf"column '{name}', row {place}: the value is not"):
        first(entry).encode(values)


def test_what_clients_send_must_be_a_value_of_the_domain() -> None:
    hours, pay = first(HOURS), first(PAY)
    assert hours.encode([12.34004]).tolist() == hours.encode([12.34], exact=True).tolist()
    for made, value in ((hours, 12.34004), (pay, 1200)):
        with pytest.raises(UsageError):
            made.encode([value], exact=True)
    assert first(AGES).encode([33.0], exact=True).tolist() == [16]


def test_no_error_repeats_the_value() -> None:
    secret = {"age": 12345, "hours": 98765.4321, "sex": "zzyzx", "smokes": "zzyzx",
              "born": "1899-07-31", "pay": -98765.4321}  # fmt: skip
    spec = Spec.from_dict(SURVEY)
    for name, value in secret.items():
        with pytest.raises(UsageError) as refused:
            perturb(PERSON | {name: value}, spec, public=["born"])
        assert f"{value}" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert f"{value}" not in repr(refused.value.__context__)


def test_rows_lack_nothing_and_have_nothing_more() -> None:
    spec = Spec.from_dict(SURVEY)
    with pytest.raises(UsageError, match="no column 'pay'"):
        perturb({k: v for k, v in PERSON.items() if k != "pay"}, spec, public=["born"])
    for more in (PERSON, {k: v for k, v in PERSON.items() if k != "pay"}):
        with pytest.raises(UsageError, match="unknown column 'Pay'") as refused:
            perturb(more | {"Pay": 1}, spec, public=["born"])
        assert "did you mean 'pay'" in refused.value.hint
    uneven = {name: [value] * 2 for name, value in PERSON.items()} | {"age": [33]}
    with pytest.raises(UsageError, match="different lengths"):
        perturb_batch(uneven, spec, public=["born"])
    with pytest.raises(UsageError, match="perturbed before"):
        perturb(perturb(PERSON, spec, public=["born"]), spec, public=["born"])
    empty = perturb_batch({name: [] for name in PERSON}, spec, public=["born"])
    assert {len(values) for values in empty.values()} == {0}


# ---------------------------------------------------------------------- the promise


def test_epsilon_is_that_of_the_formula() -> None:
    spec = Spec.from_dict(SURVEY)
    assert spec.column_epsilons() == {
        "age": pytest.approx(math.log(1 + 0.3 * 74 / 0.7)),
        "hours": pytest.approx(math.log(1 + 1000001)),
        "sex": pytest.approx(math.log(1 + 4)),
        "smokes": pytest.approx(math.log(1 + 0.8 * 3 / 0.2)),
        "born": math.inf,
        "pay": pytest.approx(math.log(1 + 0.4 * 3 / 0.6)),
    }
    finite = [e for e in spec.column_epsilons().values() if e < math.inf]
    assert spec.epsilon() == pytest.approx(sum(finite))
    assert spec.public == ("born",)


def test_epsilon_of_a_joint_coin_on_an_enormous_domain() -> None:
    wide = {"low": 0, "step": 1, "per": 1, "count": 2**50}
    many = [column(f"c{i}", "integer", wide, retention=1) for i in range(40)]
    spec = Spec.from_dict(spec_of(*many, joint={"retention": 0.5}))
    assert spec.epsilon() == pytest.approx(2000 * math.log(2))
    assert Spec.from_dict(TUPLE | {"joint": {"retention": 1}}).public == ("a", "b")


def test_belief_after_seeing_a_row() -> None:
    assert prior_posterior(0.5, math.log(3)) == pytest.approx(0.75)
    assert prior_posterior(0.01, 0) == pytest.approx(0.01)
    assert prior_posterior(0, 5) == 0 and prior_posterior(1, 5) == 1
    assert prior_posterior(0.3, math.inf) == 1 and prior_posterior(0.3, 1e6) == 1
    for prior, epsilon in ((-0.1, 1), (1.1, 1), (math.nan, 1), (0.5, -1), (0.5, math.nan)):
        with pytest.raises(UsageError):
            prior_posterior(prior, epsilon)


def test_the_limit_of_the_caller_is_kept_everywhere() -> None:
    spec = Spec.from_dict(spec_of(AGES, BORN))
    row = {"age": 33, "born": "1970-01-01"}
    batch = {name: [value] for name, value in row.items()}
    for refuse in (
        lambda **limits: perturb(row, spec, **limits),
        lambda **limits: perturb_batch(batch, spec, **limits),
    ):
        for limits in ({}, {"at_most": 100}):
            with pytest.raises(PromiseError, match="'born' is sent as it is") as refused:
                refuse(**limits)
            assert "public=['born']" in refused.value.hint
        with pytest.raises(PromiseError, match=r"has ε = 3\.48781"):
            refuse(at_most=3, public=["born"])
        with pytest.raises(UsageError, match="at_most is nan"):
            refuse(at_most=math.nan)
        refuse(at_most=spec.epsilon(), public=["born"])


# ---------------------------------------------------------------------- specs


def test_a_spec_keeps_the_bytes_it_came_as(tmp_path: Path) -> None:
    made = Spec.from_dict(SURVEY)
    assert made.to_dict() == SURVEY
    (tmp_path / "spec.json").write_bytes(made.raw)
    assert Spec.open(tmp_path / "spec.json") == made
    assert len({made, Spec.from_bytes(made.raw)}) == 1
    spaced = Spec.from_bytes(json.dumps(SURVEY, indent=2).encode())
    assert spaced.digest != made.digest and spaced.columns == made.columns


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "not UTF-8 at byte 0"),
        (b'{"format": 1, "format": 2}', "a key stands twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5000, "too long to read"),
        (b'{"format":"voile-perturbation","version":1e999,"columns":[]}', "not a finite number"),
    ],
)
def test_bytes_that_are_no_spec_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Spec.from_bytes(data)


def test_errors_of_a_spec_name_the_column_and_the_value(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"column 1 \('sex'\): the retention is 1.5") as refused:
        Spec.from_dict(spec_of(AGES, SEX | {"retention": 1.5}))
    assert refused.value.hint
    with pytest.raises(UsageError, match="the columns 'age' and 'Age' differ in case at most"):
        Spec.from_dict(spec_of(AGES, AGES | {"name": "Age"}))
    with pytest.raises(UsageError, match="has 3 entries for 2 values"):
        Spec.from_dict(spec_of(SEX | {"replace": [1, 1, 1]}))
    with pytest.raises(UsageError, match="there is no spec"):
        Spec.open(tmp_path / "none.json")
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        Spec.from_dict(spec_of(AGES | {"retention": math.nan}))
    with pytest.raises(PromiseError, match=r"promises ε ≤ 3 for column 'age', .* give 3.48781"):
        Spec.from_dict(spec_of(AGES, promise={"columns": {"age": 3}}))
