"""From a table to its schema, privately: what is looked at, with which share of the budget.

A row has one cell in each histogram of each column, or none where it is NULL. So one row more or
less moves each histogram by 1, and the costs of the histograms add up over all columns: ρ of
Gaussian noise, ε of geometric noise. Column names, kinds, the treatment of NULL and which columns
are left out are the steward's choices; truth values need no look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from voile.arrays import Floats
from voile.arrow import numpy_array
from voile.engines.column_jobs import CellsOfNumbers, ValueCounts, histogram, numbers_of
from voile.engines.jobs import TypedJob
from voile.engines.table import Nulls, Table
from voile.errors import TableError, spelled
from voile.learning.account import LearntColumn, SchemaAccount
from voile.learning.budget import LearningBudget, drawn, threshold_for
from voile.learning.coins import key_of
from voile.learning.grids import grid_of
from voile.learning.numbers import (
    NOTHING,
    STAGES,
    NoisyCells,
    NumberDomain,
    bounded,
    domain_of_cells,
    refined,
    shows_numbers,
)
from voile.learning.values import (
    ColumnStreams,
    NumberCounter,
    OrderedCounter,
    TextCounter,
    ValueCounter,
    covering_numbers,
    text_attribute,
)
from voile.noise.geometric import geometric_variance
from voile.noise.keyed import Key
from voile.noise.normal import rounded_variance
from voile.noise.whole import WordSource
from voile.progress import Progress, Silent
from voile.schema import Attribute, Kind, Schema, Values

ROWS_SHARE = 0.05
"""Of the budget: the look at the number of rows, where columns are learnt as well."""
ATOMS_SHARE = 0.25
"""Of a numeric column's share: the look for numbers that many rows have."""
WANTED = 1 / 40
"""Of the rows: the deviation of the last histogram's noise that a budget which may grow aims at."""
LARGEST_FIGURE = 2**62


@dataclass(frozen=True)
class LearntSchema:
    """A schema, what learning it cost, and the noisy number of rows."""

    schema: Schema
    account: SchemaAccount
    rows: int
    notes: tuple[str, ...] = ()


def learn_schema(
    table: Table,
    names: Sequence[str],
    budget: LearningBudget,
    source: WordSource | Key,
    *,
    declared: Schema | None = None,
    nulls: Nulls = "error",
    progress: Progress | None = None,
) -> LearntSchema:
    """The domains of these columns, within the budget; those that are declared cost nothing.

    `source` is the release's key, or where to take one from. With all columns declared only the
    number of rows is looked at, with the whole budget.
    """
    known = {a.name: a for a in declared} if declared is not None else {}
    table.check_meaning([name for name in names if name not in known])
    learner = _Learner(table, list(names), known, budget, key_of(source), nulls, progress)
    return learner.learnt()


def column_kinds(table: Table, names: Sequence[str]) -> dict[str, Kind]:
    """The kind of each column; a column of none is refused."""
    found: dict[str, Kind] = {}
    for name in names:
        kind = table.kind(name)
        if kind is None:
            raise TableError(
                f"column {name!r} of type {table.columns[name]} holds values of which no domain "
                "can be made",
                hint=f"leave it out: name the columns to publish with {spelled('columns')}",
            )
        found[name] = kind
    return found


@dataclass
class _NumberLook:
    """What was found of a column of numbers or dates so far."""

    kind: Kind
    scales: tuple[float, ...]
    edges: tuple[float, ...]
    cells: NoisyCells | None = None
    atoms: tuple[float, ...] = ()
    sure: bool = False
    """Whether some histogram shows where the numbers are."""
    counts: Floats = field(default_factory=lambda: np.empty(0))


class _Learner:
    """One run over a table; each pass reads all rows once."""

    def __init__(
        self, table: Table, names: list[str], known: Mapping[str, Attribute],
        budget: LearningBudget, key: Key, nulls: Nulls, progress: Progress | None,
    ) -> None:  # fmt: skip
        self.table, self.names, self.known = table, names, known
        self.budget, self.key, self.nulls = budget, key, nulls
        self.progress = progress or Silent()
        self.kinds = column_kinds(table, [n for n in names if n not in known])
        self.texts = [n for n, kind in self.kinds.items() if kind == "categorical"]
        self.numbers = [n for n, k in self.kinds.items() if k in ("integer", "numeric", "date")]
        self.columns: dict[str, LearntColumn] = {}
        self.grown = 1.0

    # ------------------------------------------------------------------ shares

    @property
    def _learnt(self) -> int:
        return len(self.texts) + len(self.numbers)

    def _share(self, part: float = 1.0) -> LearningBudget:
        """Of one column, or a part of that."""
        return self.budget.part(self.grown * (1 - ROWS_SHARE) / self._learnt * part)

    def _grow(self, rows: int) -> None:
        """More for the columns where noise would drown so few rows, as far as the budget goes.

        It follows from the noisy number of rows alone.
        """
        amount, most = self.budget.amount, self.budget.most
        if not self._learnt or most <= amount:
            return
        deviation = self.deviation(self._share(STAGES[-1]).scale)
        room = (most - ROWS_SHARE * amount) / ((1 - ROWS_SHARE) * amount)
        self.grown = min(room * (1 - 1e-12), self.budget.times(deviation, WANTED * rows))

    @property
    def _thresholds(self) -> int:
        """Columns whose values are listed."""
        return len(self.texts) + sum(self.kinds[n] == "numeric" for n in self.numbers)

    def _threshold(self, scale: float) -> int:
        b = self.budget
        # 1e-9 less, for the account rounds up
        delta = b.delta * (1 - 1e-9) / self._thresholds
        return threshold_for(b.noise, scale, delta, b.rows_per_person)

    def deviation(self, scale: float) -> float:
        """The standard deviation of the noise that is drawn."""
        gaussian = self.budget.noise == "gaussian"
        return float(np.sqrt((rounded_variance if gaussian else geometric_variance)(scale)))

    # ------------------------------------------------------------------ passes

    def learnt(self) -> LearntSchema:
        """All passes, and what follows from them."""
        scale, figure = self._rows()
        rows = max(1, figure)
        self._grow(rows)
        found = self._first_pass(rows)
        attributes = [self._attribute(name, found, rows) for name in self.names]
        b = self.budget
        account = SchemaAccount(
            noise=b.noise, unit=b.unit, rows_per_person=b.rows_per_person, rows_scale=scale,
            rows_figure=figure, columns=[self.columns[n] for n in self.names if n in self.columns],
            left_out=[name for name in self.table.columns if name not in self.names],
        )  # fmt: skip
        account = account.model_copy(update={"delta": account.spent().delta})
        notes = tuple(unlisted(a) for a in attributes if lost(a))
        return LearntSchema(Schema(tuple(attributes)), account, rows, notes)

    def _rows(self) -> tuple[float | None, int]:
        """The number of rows with noise; public where rows are exchanged."""
        count = self.table.complete_rows(self.names) if self.nulls == "drop" else len(self.table)
        if self.budget.unit == "exchange":
            return None, count
        scale = self.budget.part(ROWS_SHARE if self._learnt else 1.0).scale
        noise = int(drawn(self.budget.noise, scale, 1, self.key.stream("schema rows"))[0])
        return scale, max(-LARGEST_FIGURE, min(LARGEST_FIGURE, count + noise))

    def _first_pass(self, rows: int) -> dict[str, Attribute | _NumberLook]:
        """Values that many rows have, and the coarse cells of numbers; then finer cells."""
        looks = {name: self._look(name) for name in self.numbers}
        atoms = [name for name, look in looks.items() if look.kind == "numeric"]
        count = self._count_here if self.table.at_hand else self._count_there
        found: dict[str, Attribute | _NumberLook] = {**count(looks, atoms, rows)}
        for stage in range(len(STAGES)):
            self._stage(looks, stage)
        return found | looks

    def _count_here(
        self, looks: Mapping[str, _NumberLook], atoms: Sequence[str], rows: int
    ) -> dict[str, Attribute]:
        """The first pass over rows at hand: texts, numbers and cells at once."""
        texts = {name: TextCounter() for name in self.texts}
        numbers = {name: NumberCounter() for name in atoms}
        for batch in self._batches([*texts, *looks]):
            for name, counter in texts.items():
                counter.add(batch.column(name))
            for name, look in looks.items():
                here = numbers_of(batch.column(name), look.kind)
                look.counts = look.counts + histogram(look.edges, here)
                if name in numbers:
                    numbers[name].add(here)
        for name, number_counter in numbers.items():
            self._atoms(name, looks[name], number_counter, rows)
        return {name: self._text(name, counter) for name, counter in texts.items()}

    def _count_there(
        self, looks: Mapping[str, _NumberLook], atoms: Sequence[str], rows: int
    ) -> dict[str, Attribute]:
        """The first pass where the rows lie: a pass for texts, one for numbers, one for cells."""
        found = {n: self._text(n, c) for n, c in self._values_there(self.texts, numbers=False)}
        for name, counter in self._values_there(atoms, numbers=True):
            self._atoms(name, looks[name], counter, rows)
        self._cells_there(looks)
        return found

    def _values_there(
        self, names: Sequence[str], *, numbers: bool
    ) -> Iterator[tuple[str, OrderedCounter]]:
        """How many rows each value of some columns has, counted and sorted where the rows lie."""
        if not names:
            return
        job = ValueCounts(tuple(names), numbers)
        drop = self.nulls == "drop"
        read = self.names if drop else names
        streams = ColumnStreams(self.table.ordered_typed_sums(read, job, drop_nulls=drop))
        for place, name in enumerate(names):
            yield name, OrderedCounter(streams.of(place))

    def _cells_there(self, looks: Mapping[str, _NumberLook]) -> None:
        """The cells of all looks, counted where the rows lie."""
        if not looks:
            return
        job = CellsOfNumbers(tuple((n, look.kind, look.edges) for n, look in looks.items()))
        found = self._summed(list(looks), job)
        column, cell, rows = (numpy_array(found.column(i)) for i in range(3))
        for place, look in enumerate(looks.values()):
            here = column == place
            look.counts = look.counts + np.bincount(
                cell[here], rows[here], minlength=len(look.edges) - 1
            )

    def _summed(self, names: list[str], job: TypedJob) -> pa.Table:
        drop = self.nulls == "drop"
        return self.table.typed_sums(self.names if drop else names, job, drop_nulls=drop)

    def _batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns that are looked at; rows with a NULL in any column are left out if wanted."""
        if not names:
            return
        drop = self.nulls == "drop"
        self.progress.start("learning the domain", len(self.table))
        for batch in self.table.typed(self.names if drop else list(names), drop_nulls=drop):
            yield batch
            self.progress.advance(batch.num_rows)

    # ------------------------------------------------------------------ columns

    def _text(self, name: str, counter: ValueCounter) -> Attribute:
        scale = self._share().scale
        threshold = self._threshold(scale)
        listed = counter.listed(self.budget.noise, scale, threshold, self.key, name)
        self.columns[name] = LearntColumn(name=name, scales=[scale], threshold=threshold)
        return text_attribute(name, listed, null=self.nulls == "as-value")

    def _look(self, name: str) -> _NumberLook:
        kind = self.kinds[name]
        left = 1 - ATOMS_SHARE if kind == "numeric" else 1.0
        scales = tuple(self._share(left * part).scale for part in STAGES)
        edges = tuple(grid_of(kind).coarse())
        return _NumberLook(kind, scales, edges, counts=np.zeros(len(edges) - 1))

    def _atoms(self, name: str, look: _NumberLook, counter: ValueCounter, rows: int) -> None:
        """Numbers that many rows have, where these are nearly all rows."""
        scale = self._share(ATOMS_SHARE).scale
        threshold = self._threshold(scale)
        listed = counter.listed(self.budget.noise, scale, threshold, self.key, name)
        look.atoms = covering_numbers(listed, rows)
        self.columns[name] = LearntColumn(
            name=name, scales=[scale, *look.scales], threshold=threshold
        )

    def _stage(self, looks: Mapping[str, _NumberLook], stage: int) -> None:
        """Noise for the cells that were counted, and the count of those that follow."""
        for name, look in looks.items():
            scale = look.scales[stage]
            stream = self.key.stream(f"schema {name}/cells", stage)
            noise = drawn(self.budget.noise, scale, len(look.counts), stream)
            heavy = self.budget.noise == "geometric"
            look.cells = NoisyCells(look.edges, look.counts + noise, self.deviation(scale), heavy)
            look.sure = look.sure or shows_numbers(look.cells, ends=stage == 0)
            if stage + 1 < len(STAGES):
                finer = self.deviation(look.scales[stage + 1])
                kept = bounded(look.cells) if stage == 0 else look.cells
                look.edges = refined(kept, grid_of(look.kind), finer)
                look.counts = np.zeros(len(look.edges) - 1)
            self.columns.setdefault(name, LearntColumn(name=name, scales=list(look.scales)))
        if stage + 1 == len(STAGES):
            return
        if not self.table.at_hand:
            self._cells_there(looks)
            return
        for batch in self._batches(list(looks)):
            for name, look in looks.items():
                numbers = numbers_of(batch.column(name), look.kind)
                look.counts = look.counts + histogram(look.edges, numbers)

    def _attribute(
        self, name: str, found: Mapping[str, Attribute | _NumberLook], rows: int
    ) -> Attribute:
        """The attribute of a column: declared, of truth values, or learnt."""
        if name in self.known:
            return self.known[name]
        null = self.nulls == "as-value"
        learnt = found.get(name)
        if learnt is None:
            return Attribute(name, "boolean", Values((False, True)), null=null)
        if isinstance(learnt, Attribute):
            return learnt
        numbers = self._numbers(learnt, rows)
        if numbers.open:
            self.columns[name] = self.columns[name].model_copy(update={"open": True})
        return Attribute(name, learnt.kind, numbers.domain, null=null, public="learnt", clamp=True)

    def _numbers(self, look: _NumberLook, rows: int) -> NumberDomain:
        """What the looks say of a column of numbers or dates."""
        assert look.cells is not None  # noqa: S101
        if look.atoms:
            return NumberDomain(Values(look.atoms))
        if not look.sure:
            return NumberDomain(NOTHING[look.kind], open=True)
        return domain_of_cells(look.kind, look.cells, rows)


def lost(attribute: Attribute) -> bool:
    """Whether one value is all that is left of a learnt column, besides NULL."""
    return attribute.public == "learnt" and attribute.size - attribute.null == 1


def unlisted(attribute: Attribute) -> str:
    """What is said of such a column."""
    if attribute.other is None:
        return (
            f"too few rows to tell which numbers {attribute.name!r} has: all are in one bin; a "
            f"codebook ({spelled('schema')}) with its bounds costs nothing"
        )
    return (
        f"no value of {attribute.name!r} has enough rows to be listed: all are "
        f"{attribute.other!r}; a codebook ({spelled('schema')}) would list them at no cost"
    )
