"""A schema that is learnt from a table: what is listed, what it costs, and what it ignores."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import voile
from voile.learning import LearningBudget, learn_schema
from voile.noise import Key
from voile.schema import Range, Values, WholeBins

BUDGET = LearningBudget("gaussian", 0.01, 1e-10)


def people(rows: int = 4000) -> pa.Table:
    """A few kinds of columns."""
    draw = np.random.default_rng(1)
    return pa.table(
        {
            "town": draw.choice(["Ulm", "Bonn", "Kiel", "Jena"], rows, p=[0.5, 0.3, 0.15, 0.05]),
            "age": draw.integers(18, 66, rows),
            "pay": np.round(draw.lognormal(7.5, 0.6, rows), 2),
            "member": draw.random(rows) < 0.3,
        }
    )


def test_the_domain_is_learnt_within_the_budget() -> None:
    table = voile.read(people())
    found = learn_schema(table, list(table.columns), BUDGET, Key.from_seed(1))
    assert set(found.schema["town"].domain) == {"Ulm", "Bonn", "Kiel", "Jena", "other"} - (
        set() if "Jena" in tuple(found.schema["town"].domain) else {"Jena"}
    )
    assert found.schema["town"].other == "other"
    assert isinstance(found.schema["age"].domain, Range | WholeBins)
    assert found.schema["member"].domain == Values((False, True))
    assert found.schema["member"].public == "declared"
    spent = found.account.spent()
    assert spent.mu**2 / 2 == pytest.approx(BUDGET.amount, rel=1e-9)
    assert spent.mu**2 / 2 <= BUDGET.amount * (1 + 1e-11)
    assert spent.delta <= BUDGET.delta
    assert abs(found.rows - 4000) < 200
    found.account.check(found.schema)


def test_order_and_partition_of_rows_change_nothing() -> None:
    rows = people()
    shuffled = rows.take(pa.array(np.random.default_rng(2).permutation(rows.num_rows)))
    one, other = (
        learn_schema(voile.read(t), t.column_names, BUDGET, Key.from_seed(7))
        for t in (rows, shuffled)
    )
    assert one == other


def test_what_is_declared_costs_nothing() -> None:
    table = voile.read(people())
    declared = table.infer(["town", "age", "pay", "member"], "error")
    found = learn_schema(table, declared.names, BUDGET, Key.from_seed(1), declared=declared)
    assert found.schema == declared
    assert found.account.columns == []
    assert found.account.spent().mu ** 2 / 2 == pytest.approx(BUDGET.amount, rel=1e-9)
