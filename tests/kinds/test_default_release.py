"""All of `voile.publish` without a method, between neighbours: what may differ is noisy figures.

The noisy figures of a run on one table are handed to a run on its neighbour. Then every byte of
both releases must agree, whatever the one row holds: nothing else of the table is in them. And the
true figures of both runs may differ by no more than the stated promise pays for.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import voile
from tests.support.soak import rounds, some
from voile.evaluate.audit.bounds import certain_ratio
from voile.kinds.automatic import choose_method, options_for
from voile.kinds.marginals import choosing, publishing
from voile.kinds.marginals.measuring import whole_figures
from voile.kinds.marginals.options import MarginalOptions
from voile.kinds.marginals.release import MarginalRelease
from voile.kinds.options import AutomaticOptions
from voile.learning import learner, values
from voile.learning.numbers import NoisyCells
from voile.noise import Key
from voile.noise.gumbel import most_noisy
from voile.progress import Silent

Figures = Mapping[Any, float]


@dataclass
class TrueFigures:
    """A histogram or table before noise, with the scale of its noise."""

    scale: float
    figures: Figures
    listed: bool = False
    """Whether its cells are the values that occur."""


@dataclass
class Tape:
    """Noisy figures of the first run, which the second run gets; and true figures of both."""

    noisy: list[Any] = field(default_factory=list)
    true: list[list[TrueFigures]] = field(default_factory=lambda: [[], []])
    place: int = -1

    def turn(self) -> None:
        """Play what was recorded."""
        self.place = 0

    def heard(self, figures: Any) -> Any:
        if self.place < 0:
            self.noisy.append(figures)
            return figures
        self.place += 1
        return self.noisy[self.place - 1]

    def seen(self, scale: float, figures: Figures, *, listed: bool = False) -> None:
        self.true[self.place >= 0].append(TrueFigures(scale, figures, listed))


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Tape:
    """All places where a true figure gets its noise."""
    tape = Tape()
    rows, reaching, stage = learner._Learner._rows, values.reaching, learner._Learner._stage
    noisy, seed, whole = publishing.noisy, publishing.public_seed, whole_figures
    noisy_places = publishing.noisy_places
    singles, most = choosing._Chooser._singles, most_noisy

    def tape_rows(self: Any) -> Any:
        found = rows(self)
        count = len(self.table) if self.nulls != "drop" else self.table.complete_rows(self.names)
        tape.seen(found[0] or math.inf, {0: count})
        return tape.heard(found)

    def tape_reaching(listed: Sequence[Any], words: Any, counts: Any, *rest: Any) -> Any:
        tape.seen(rest[1], dict(zip(listed, counts.tolist(), strict=True)), listed=True)
        return tape.heard(reaching(listed, words, counts, *rest))

    def tape_stage(self: Any, looks: Any, number: int) -> None:
        for look in looks.values():
            tape.seen(look.scales[number], dict(enumerate(look.counts.tolist())))
        stage(self, looks, number)

    def tape_whole(plan: Any, measurement: Any, counts: Any) -> Any:
        found = whole(plan, measurement, counts)
        tape.seen(measurement.scale, dict(enumerate(found.ravel().tolist())))
        return found

    def tape_noisy(prepared: Any) -> Iterator[Any]:
        return (tape.heard(figure) for figure in noisy(prepared))

    def tape_places(prepared: Any) -> Iterator[Any]:
        for one, sums in zip(prepared.places, prepared.sums, strict=True):
            tape.seen(one.scale, dict(enumerate(sums.tolist())))
        return (tape.heard(figure) for figure in noisy_places(prepared))

    def tape_singles(self: Any) -> Any:
        plan, drawn = singles(self)
        return plan, tape.heard(drawn)

    monkeypatch.setattr(learner._Learner, "_rows", tape_rows)
    monkeypatch.setattr(learner._Learner, "_stage", tape_stage)
    monkeypatch.setattr(values, "reaching", tape_reaching)
    monkeypatch.setattr(
        learner, "NoisyCells", lambda e, c, *s: NoisyCells(e, tape.heard(c), *s), raising=True
    )
    monkeypatch.setattr(publishing, "whole_figures", tape_whole)
    monkeypatch.setattr(publishing, "noisy", tape_noisy)
    monkeypatch.setattr(publishing, "noisy_places", tape_places)
    monkeypatch.setattr(publishing, "public_seed", lambda source: tape.heard(seed(source)))
    monkeypatch.setattr(choosing._Chooser, "_singles", tape_singles)
    monkeypatch.setattr(choosing, "most_noisy", lambda *args: tape.heard(most(*args)))
    # Which rows of a person are kept is decided by coins, the same for both.
    monkeypatch.setattr(Key, "fresh", lambda: Key(bytes(32), simulated=False))
    return tape


def people(rows: int = 2000) -> pa.Table:
    """Columns of each kind, four rows of each person."""
    draw = np.random.default_rng(1)
    days = pa.array(draw.integers(0, 20_000, rows).astype(np.int32)).cast(pa.date32())
    return pa.table(
        {
            "sex": draw.choice(["f", "m"], rows),
            "age": draw.integers(17, 90, rows),
            "dose": draw.choice([0.0, 1.5, 2.5], rows),
            "town": draw.choice(["a", "b", "other"], rows),
            "pay": np.round(draw.lognormal(3, 1, rows), 2),
            "born": days,
            "who": [f"p{i // 4}" for i in range(rows)],
        }
    )


USUAL: dict[str, Any] = {"sex": "f", "age": 30, "dose": 1.5, "town": "a", "pay": 12.5,
         "born": dt.date(1999, 2, 3), "who": "nobody else"}  # fmt: skip
STRANGE: dict[str, Any] = {"sex": "q" * 10_000, "age": 2**60, "dose": -math.inf, "town": "Other",
           "pay": 1e300, "born": dt.date(9999, 12, 31), "who": "nobody else"}  # fmt: skip
MISSING: dict[str, Any] = {**dict.fromkeys(USUAL), "who": "nobody else"}
FEW, ALL = ("sex", "age", "dose"), ("sex", "age", "dose", "town", "pay", "born")
CASES: list[tuple[dict[str, Any], Sequence[str], int, dict[str, Any]]] = [
    (STRANGE, ALL, 1, {}),
    (STRANGE, FEW, 1, {}),
    (USUAL, (*FEW, "who"), 40, {"person": "who", "rows_per_person": 3}),
    (USUAL, ALL, 1, {}),
    (USUAL, FEW, 1, {}),
    (USUAL, ("sex",), 1, {}),
    (MISSING, ALL, 1, {"nulls": "as-value"}),
    (MISSING, ALL, 1, {"nulls": "drop"}),
    (USUAL, (*ALL, "who"), 40, {"person": "who", "rows_per_person": 3}),
    (STRANGE, (*ALL, "who"), 40, {"person": "who"}),
    (USUAL, ("sex", "dose", "town"), 1, {"schema": "active"}),
    (USUAL, FEW, 1, {"on": ["select sex, count(*) from t group by sex"], "name": "t"}),
]


@pytest.mark.parametrize("case", some(CASES, 3))
def test_a_release_is_a_function_of_noisy_figures(tape: Tape, tmp_path: Path, case: Any) -> None:
    row, columns, times, options = case
    table = people().select(columns)
    more = pa.Table.from_pylist([{name: row[name] for name in columns}] * times, table.schema)
    found: list[dict[Path, bytes]] = []
    for name, one in (("without", table), ("with", pa.concat_tables([table, more]))):
        place = tmp_path / name
        if found:
            tape.turn()
        voile.publish(one, to=place, yes=True, **options)
        found.append(
            {f.relative_to(place): f.read_bytes() for f in place.rglob("*") if f.is_file()}
        )
    assert tape.place == len(tape.noisy) >= 3
    assert found[0] == found[1]
    release = voile.open(tmp_path / "with")
    assert isinstance(release, MarginalRelease)
    manifest = json.loads((tmp_path / "with" / "manifest.json").read_text("utf-8"))
    check_moved(tape, manifest, least=0.8 if row is USUAL else 0.0)


def check_moved(tape: Tape, manifest: dict[str, Any], least: float) -> None:
    """What the person moves is within μ, or ε, that is stated; and not far below, where it can."""
    square = rate = 0.0
    for one, other in zip(*tape.true, strict=True):
        assert one.scale == other.scale
        # Values that one table alone has are never listed, except with probability δ.
        cells = set(one.figures) & set(other.figures) if one.listed else set(other.figures)
        moved = [other.figures[cell] - one.figures[cell] for cell in cells]
        square += sum(x * x for x in moved) / one.scale**2
        rate += sum(map(abs, moved)) / one.scale
    stated = manifest["guarantee"]
    assert stated["epsilon"] <= 1 and stated["delta"] <= 1e-9
    if manifest["parameters"]["noise"] == "gaussian":
        assert least * stated["mu"] <= math.sqrt(square) <= stated["mu"]
    else:
        assert least * stated["epsilon"] <= rate <= stated["epsilon"]


def test_an_audit_of_all_that_is_drawn() -> None:
    """The likeliest sign of one row, over whole runs: an ε that is surely above 1 is a breach.

    A false alarm has a probability of 2e-9. With 3,000 runs of each, noise of half the scale shows
    e^1.8 and is found except with a probability below 1e-9.
    """
    runs, hits = rounds(40, 3000), []
    table = pa.table({"sex": ["f"] * 400 + ["m"] * 800})
    for one in (pa.concat_tables([table, table.slice(0, 1)]), table):
        source = voile.read(one)
        hits.append(sum(counted_of(source, "f") > 400 for _ in range(runs)))
    assert certain_ratio(hits[0], hits[1], runs, 1e-9) <= math.e


def counted_of(source: Any, value: str) -> int:
    """The noisy count of a value, as publishing without a method makes it."""
    asked = AutomaticOptions(yes=True)
    chosen = choose_method(source, asked, Silent())
    options = MarginalOptions(**options_for(chosen.choice.chosen, chosen, asked))
    prepared = publishing.prepare(source, options, Silent())
    (figures,) = (f for f in publishing.noisy(prepared) if f.size > 1)
    listed = list(prepared.schema["sex"].domain)
    return int(figures.ravel()[listed.index(value if value in listed else "other")])


@pytest.mark.parametrize("rows", [600, 3000])
@pytest.mark.parametrize("columns", [19, 20])
@pytest.mark.parametrize("most", [1, 2])
def test_with_many_columns_every_way_is_accounted_by_zcdp(
    rows: int, columns: int, most: int
) -> None:
    """One of the ways chooses tables privately: a mixture of accounts is none."""
    draw = np.random.default_rng(rows)
    made = {f"c{i}": draw.integers(0, 2, rows) == 1 for i in range(columns)}
    source = voile.read(pa.table({**made, "who": [f"p{i}" for i in range(rows)]}))
    asked = AutomaticOptions(
        yes=True, columns=list(made), person="who", rows_per_person=most, epsilon=2.0
    )
    chosen = choose_method(source, asked, Silent())
    options = MarginalOptions(**options_for(chosen.choice.chosen, chosen, asked))
    plan = publishing.prepare(source, options, Silent()).chosen.plan
    assert (plan.mu is None) == (columns >= 20)
    assert 1.99 < plan.epsilon_at(1e-9) <= 2
