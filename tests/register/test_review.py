"""What a hostile reader of the register found: totals that were too small, limits that moved."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import voile
from voile.register import Register, SpendingLimit

SMOKERS = pa.table({"smoker": pa.array([True, False] * 20)})


def test_draws_that_come_out_equal_count_each(tmp_path: Path) -> None:
    """Of 8 releases of 1 row, with two possible outcomes, most are equal; none is free."""
    register = Register.open(tmp_path / "r.db")
    one = pa.table({"smoker": pa.array([True])})
    codebook = {"attributes": [{"name": "smoker", "kind": "boolean", "values": [False, True]}]}
    for i in range(8):
        voile.perturb(one, 0.3, schema=codebook, to=tmp_path / f"{i}.voile", register=register)
    (account,) = register.accounts()
    digests = {left.what_is.digest for left in account.left}
    assert len(account.left) == 8 and len(digests) < 8
    alone = voile.open(tmp_path / "0.voile").manifest.guarantee.epsilon  # type: ignore[attr-defined]
    assert account.total["epsilon"] == pytest.approx(8 * alone, rel=1e-9)


def test_what_holds_of_the_view_alone_makes_no_total(tmp_path: Path) -> None:
    """The number of rows is disclosed: someone who knows the others can count."""
    rows = pa.table({"a": list(range(60)) * 40, "b": ["x", "y", "z"] * 800})
    voile.publish(rows, prior=0.05, posterior=0.5, max_view_ratio=5, to=tmp_path / "v.voile",
                  register=tmp_path / "r.db")  # fmt: skip
    (account,) = Register.open(tmp_path / "r.db").accounts()
    assert account.total.get("d_gamma") is None


def test_merging_raises_no_limit(tmp_path: Path) -> None:
    mine, other = (Register.open(tmp_path / name) for name in ("a.db", "b.db"))
    mine.set_limit("people", SpendingLimit(1.0))
    other.set_limit("people", SpendingLimit(100.0))
    other.set_limit("others", SpendingLimit(3.0))
    mine.merge(other)
    limits = {one.data_set: one.limit and one.limit.epsilon for one in mine.accounts()}
    assert limits == {"people": 1.0, "others": 3.0}
    other.merge(mine)
    limits = {one.data_set: one.limit and one.limit.epsilon for one in other.accounts()}
    assert limits["people"] == 1.0
