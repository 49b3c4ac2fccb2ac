"""Rows that were perturbed one by one, and what is reconstructed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Floats
from voile.errors import ReleaseError, UsageError, spelled
from voile.kinds.people import about_people
from voile.kinds.perturbed.manifest import (
    LocalManifest,
    columns_of,
    local_guarantee,
    locally_disclosed,
)
from voile.kinds.perturbed.retention import OWN_VALUES, ColumnNoise, Local, WholeRows
from voile.kinds.release import QueryOptions, Release
from voile.privacy.local import local_statements, locally_not_promised
from voile.schema import Interval

if TYPE_CHECKING:
    from voile.answering.explanation import Explanation
    from voile.engines.rows import ReleaseRows
    from voile.estimate import Answer
    from voile.kinds.evaluation import CountedSelections, LossEvidence, Truth
    from voile.kinds.perturbed.axes import AxisNoise, LocalSource, Method
    from voile.kinds.perturbed.joint import JointCounts
    from voile.privacy.guarantees.statements import Statement
    from voile.query.query import Query

FINE = 10_000
"""Steps of an interval from which on no remark says how fine they are."""
METHODS: tuple[Method, ...] = ("inversion", "em")
"""How answers are reconstructed, the usual way first."""


class LocalRelease(Release):
    """A table of which every row was perturbed on its own."""

    kind = "a table perturbed row by row"
    has_losses = True
    rows_are = (
        "perturbed rows: any value may have been replaced by chance, and counts of these rows are "
        "no estimates"
    )
    ways = METHODS
    instead = (
        "`voile exposure` measures what its rows tell; `voile query --method em` constrains counts"
    )
    manifest: LocalManifest

    @cached_property
    def mechanism(self) -> Local:
        """The mechanism that perturbed the rows, from its public parameters."""
        return self.manifest.mechanism

    @property
    def rows(self) -> int:
        """How many rows there are, as many as the table had."""
        return self.manifest.rows

    def column_noise(self) -> dict[str, ColumnNoise] | None:
        """How each column was perturbed; None where whole rows were."""
        if isinstance(self.mechanism, WholeRows):
            return None
        return dict(zip(self.schema.names, self.mechanism.columns, strict=True))

    def column_ratios(self) -> dict[str, Fraction | None]:
        """How much a value of each column can change the chance of what is seen of it."""
        if isinstance(self.mechanism, WholeRows):
            return {}
        columns = zip(self.schema.names, self.mechanism.columns, strict=True)
        return {name: column.ratio() for name, column in columns}

    def person_ratio(self) -> Fraction | None:
        """e^ε exactly of whom the promise is about: a row, or all rows of a person."""
        ratio = self.mechanism.ratio()
        return None if ratio is None else ratio**self.manifest.rows_per_person

    def promised(self) -> list[Statement]:
        """What the release keeps, as statements that can be compared and converted."""
        found = local_statements(self.person_ratio(), simulated=self.manifest.simulated)
        return about_people(found, self.manifest.people)

    def not_promised(self) -> list[Statement]:
        """What it must not be taken to keep."""
        return locally_not_promised(self.person_ratio(), self.column_ratios())

    @property
    def promise_in_short(self) -> str:
        """What it promises, in a line."""
        epsilon = self.manifest.rows_per_person * self.mechanism.epsilon()
        return f"local ε = {epsilon:.3g} for {'a row' if self.protects == 'record' else 'a person'}"

    # ------------------------------------------------------------------ measuring it

    def loss_evidence(self, truth: Truth) -> LossEvidence:
        """What its rows show about people, to be compared with the truth."""
        from voile.kinds.perturbed.losses import row_evidence

        return row_evidence(self, truth)

    def estimate_selections(
        self,
        count: Callable[[Sequence[npt.NDArray[Any]]], CountedSelections],
        *,
        refine: bool = False,  # noqa: ARG002  (a view is refined)
    ) -> Floats:
        """Estimates of all selections at once, where whole rows were kept or replaced."""
        kept = self.manifest.parameters.joint
        if kept is None:
            raise UsageError(
                "selections are estimated at once from rows that were perturbed as a whole",
                hint="perturb with whole_rows=True, or ask them one by one with release.query",
            )
        counted = count(self.codes())
        by_chance = (1 - kept) * self.rows * counted.domain / float(self.schema.size)
        estimate: Floats = (counted.counts - by_chance) / kept
        return estimate

    # ------------------------------------------------------------------ checking it

    def check_terms(self) -> None:
        """Recompute, from the parameters as they are written down, all that is promised."""
        manifest, mechanism = self.manifest, self.mechanism
        terms = manifest.parameters
        if terms.collected and not mechanism.local:
            raise ReleaseError("manifest.json: nobody can swap values alone")
        if terms.columns != columns_of(mechanism, self.schema):
            raise ReleaseError("manifest.json: the parameters contradict each other")
        if manifest.guarantee != local_guarantee(
            mechanism, self.schema, collected=terms.collected, people=manifest.people
        ):
            raise ReleaseError("manifest.json: the guarantee does not follow from the parameters")
        if manifest.disclosed != locally_disclosed(self.schema, terms, mechanism, manifest.nulls):
            raise ReleaseError("manifest.json does not say all that the release discloses")
        if manifest.public_rows != manifest.rows:
            raise ReleaseError("manifest.json: a perturbed table has as many rows as it had")

    def check_plausible(self) -> bool:
        """Look for the values that replacing leaves; collected rows are what clients sent."""
        from voile.kinds.looks import count_there, lie_far
        from voile.kinds.perturbed.plausibility import check_perturbed
        from voile.kinds.plausibility import DomainCells

        def count(cells: Sequence[DomainCells]) -> None:
            if lie_far(self):
                count_there(self, cells, None)
                return
            for codes in self._rows_here.coded():
                for some in cells:
                    some.add(codes)

        return not self.manifest.parameters.collected and check_perturbed(self, count)

    @property
    def unseen(self) -> str:
        """Why rows are not looked at: they are what clients sent, or nothing was replaced."""
        if self.manifest.parameters.collected:
            why = "it is stated that each was sent by whom it is about, who may have sent anything"
        else:
            why = "no column has values that were replaced by public ones, often enough to be seen"
        return f"the rows were not looked at because {why}"

    @property
    def unprotected(self) -> list[str]:
        """Columns that no coin has touched."""
        noise = self.column_noise() or {}
        return [name for name, column in noise.items() if column.public and column.size > 1]

    def columns_of(self, path: str) -> Any:
        """The Arrow schema that one of its Parquet files must have."""
        columns, key = super().columns_of(path), self.manifest.parameters.row_key
        return columns if key is None else columns.insert(0, pa.field(key, pa.string()))

    def stays(self, path: str) -> bool:
        """Whether a file is counted by an engine alone: the rows are."""
        return path.startswith("data/")

    # ------------------------------------------------------------------ counting from it

    def _check_options(self, options: QueryOptions) -> None:
        if options.refine:
            raise UsageError(
                "a table perturbed row by row is not refined",
                hint=f"try {spelled('method', 'em')} instead",
            )
        checked_method(options.method)

    def _answer(self, query: Query, view: ReleaseRows, options: QueryOptions) -> Answer:
        from voile.kinds.perturbed.answering import answer_local

        return answer_local(
            query,
            self._source(view, options),
            options.confidence,
            simultaneous=options.simultaneous,
        )

    def _explain(self, query: Query, view: ReleaseRows, options: QueryOptions) -> Explanation:
        from voile.kinds.perturbed.explanation import explain_local

        return explain_local(query, self._source(view, options))

    def _source(self, view: ReleaseRows, options: QueryOptions) -> LocalSource:
        from voile.kinds.perturbed.axes import LocalSource

        mechanism = self.mechanism
        joint = mechanism.retention if isinstance(mechanism, WholeRows) else None
        return LocalSource(
            engine=view,
            domain=self._sums(view, options.memory, exact=True),
            schema=self.schema,
            rows=self.manifest.rows,
            noise=self._noise,
            joint=joint,
            method=checked_method(options.method),
            remarks=self._remarks,
        )

    @cached_property
    def _remarks(self) -> dict[str, str]:
        """What was done to columns before, which no answer can undo."""
        least, parts = self.manifest.parameters.suppressed_below, self.manifest.parameters.columns
        found = {
            name: f"values of {name} that fewer than {least} rows have are NULL, and not counted"
            for name, part in parts.items()
            if least is not None and part.replace in OWN_VALUES and part.retention < 1
        }
        coarse = (a for a in self.schema if isinstance(a.domain, Interval) and a.size < FINE)
        return found | {
            a.name: f"{a.name} is known in steps of {a.domain.step:g}"
            for a in coarse
            if isinstance(a.domain, Interval)
        }

    @cached_property
    def _noise(self) -> dict[str, AxisNoise]:
        if isinstance(self.mechanism, WholeRows):
            return {}
        return {
            name: noise_of(column)
            for name, column in zip(self.schema.names, self.mechanism.columns, strict=True)
        }

    def joint_counts(
        self, cells: Mapping[str, npt.NDArray[np.int64]], method: str = "em"
    ) -> JointCounts:
        """Estimated counts over the product of classes of columns, and how far they may be off.

        cells[name][code] is the class (0, 1, …) of each value of that column's domain. Method
        'stopped' is EM ended where it fits as well as the truth would: see reconstruct/maximum.py.
        """
        from voile.kinds.perturbed.joint import joint_counts

        how = "stopped" if method == "stopped" else checked_method(method)
        for name in cells:
            self.schema[name]  # refused where there is no such attribute
        joint = self.mechanism.retention if isinstance(self.mechanism, WholeRows) else None
        return joint_counts(self._codes, cells, self._noise, self.rows, how, joint)

    @cached_property
    def _codes(self) -> dict[str, npt.NDArray[Any]]:
        return dict(zip(self.schema.names, self.codes(), strict=True))

    def codes(self) -> list[npt.NDArray[Any]]:
        """Every row's place in each attribute's domain, a column at a time."""
        view: ReleaseRows = self._view
        return view.codes()

    @property
    def files(self) -> list[Path]:
        """The Parquet files with its rows."""
        return self._parts


def noise_of(column: ColumnNoise) -> AxisNoise:
    """A column's noise, as answering reads it."""
    from voile.kinds.perturbed.axes import AxisNoise

    own = not column.local
    masses = None if column.parts is None else column.masses()
    return AxisNoise(column.retention, masses, own=own, permuted=column.replace == "swap")


def checked_method(method: str | None) -> Method:
    """The method of reconstruction with this name; inversion where none is named."""
    for known in METHODS:
        if method == known:
            return known
    if method is None:
        return "inversion"
    raise UsageError(f"method {method!r} is not known", hint=f"use {' or '.join(METHODS)}")
