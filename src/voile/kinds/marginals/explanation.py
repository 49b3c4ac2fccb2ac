"""How an answer from noisy marginals comes about: what the tables say, what the model says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from voile.answering.columns import EstimatedColumn, terms_of
from voile.answering.explanation import (
    ExplainedColumn,
    Explanation,
    Section,
    SectionLine,
    conditions_of,
    describe,
    estimated_columns,
    explain_from,
    first,
    groups_of,
    name_values,
)
from voile.answering.quantiles import has_quantile
from voile.answering.walk import AnswerWalk
from voile.estimate import finite
from voile.kinds.marginals.answering import (
    MarginalEstimator,
    MarginalEvidence,
    MarginalSource,
    mean_square,
)
from voile.query.aggregate import Formula
from voile.query.query import Query
from voile.records import Record


@dataclass(frozen=True)
class ExplainedTotal(Record):
    """A total: from the tables, from the model, and from both."""

    of: str
    estimate: float
    stderr: float | None
    tables: float | None
    """From the unbiased tables; None where the columns were not measured together."""
    tables_stderr: float | None
    model: float | None
    model_stderr: float | None

    def lines(self) -> list[str]:
        """For reading."""
        found = [f"{self.of}: {self.estimate:,.6g} ± {self.stderr or 0:,.4g}"]
        if self.tables is not None:
            found.append(f"  from the tables {self.tables:,.6g} ± {self.tables_stderr or 0:,.4g}")
        if self.model is not None:
            found.append(f"  from the model {self.model:,.6g} ± {self.model_stderr or 0:,.4g}")
        return found


@dataclass(frozen=True)
class WeighedTotals(Record):
    """What a formula of totals is made of."""

    columns: tuple[str, ...]
    """The columns that it depends on."""
    measured: bool
    """Whether the release has a table of them."""
    weight: float
    """That of the tables; the model has the rest."""
    totals: tuple[ExplainedTotal, ...]

    def lines(self) -> list[str]:
        """For reading."""
        read = ", ".join(self.columns) or "no column"
        if not self.measured:
            how = f"of {read}, which no table has together: by the model alone"
        else:
            rest = 1 - self.weight
            how = f"of {read}: {self.weight:.0%} from the tables, {rest:.0%} from the model"
        return [how, *(line for total in self.totals for line in total.lines())]


@dataclass(frozen=True, kw_only=True)
class MarginalColumn(ExplainedColumn):
    """A column, and what it is weighed from; of quantiles this is not listed."""

    source: WeighedTotals | None
    json_keys: ClassVar[tuple[str, ...]] = ("name", "estimate", "stderr", "covers")

    def to_dict(self) -> dict[str, Any]:
        """What it is made of stands beside the estimate."""
        return super().to_dict() | (self.source.to_dict() if self.source else {})


@dataclass(frozen=True, kw_only=True)
class MarginalExplanation(Explanation):
    """How an answer from noisy marginals comes about."""

    columns: tuple[MarginalColumn, ...]
    rows: float
    json_keys: ClassVar[tuple[str, ...]] = (
        "name", "rows", "estimate", "stderr", "atoms", "groups", "columns",
    )  # fmt: skip

    def own_sections(self) -> list[Section]:
        """The number of rows, and what each column is weighed from, for reading."""
        found: list[Section] = [name_values({"rows": f"{self.rows:,.6g}"})]
        for column in self.columns:
            found.append(SectionLine(column.name, "bold"))
            lines = column.source.lines() if column.source else []
            found += [SectionLine(f"  {line}") for line in lines]
        return found


def explain_marginals(query: Query, source: MarginalSource) -> Explanation:
    """The figures behind a query; with GROUP BY, those of all groups together."""
    return explain_from(MarginalEvidence, _explanation, query, source)


def _explanation(query: Query, walk: AnswerWalk[MarginalEvidence]) -> MarginalExplanation:
    evidence = walk.evidence
    return MarginalExplanation(
        atoms=conditions_of(query),
        groups=groups_of(query),
        columns=tuple(_column(evidence, *each) for each in estimated_columns(walk)),
        rows=float(evidence.source.noisy.residuals[()]),
    )


def _column(
    evidence: MarginalEvidence, name: str, formula: Formula, found: EstimatedColumn
) -> MarginalColumn:
    estimate, stderr = first(found)
    weighed = not has_quantile(formula) and bool(terms_of(formula))
    return MarginalColumn(
        name=name,
        estimate=estimate,
        stderr=stderr,
        covers=found.covers,
        source=_weighed(evidence, formula) if weighed else None,
    )


def _weighed(evidence: MarginalEvidence, formula: Formula) -> WeighedTotals:
    estimator = evidence.estimator_of(formula)
    names = evidence.source.schema.names
    return WeighedTotals(
        columns=tuple(names[i] for i in estimator.totals.read.columns),
        measured=estimator.totals.unbiased is not None,
        weight=float(estimator.weights[0]),
        totals=tuple(_total(estimator, i) for i in range(len(estimator.terms))),
    )


def _total(estimator: MarginalEstimator, place: int) -> ExplainedTotal:
    totals = estimator.totals
    slope = np.zeros_like(estimator.estimates)
    slope[:, place] = 1.0
    tables, modelled = totals.unbiased, totals.modelled
    nothing = np.zeros(totals.cells.groups)  # of the tables: the model alone
    return ExplainedTotal(
        of=describe(estimator.terms[place]),
        estimate=float(estimator.estimates[0, place]),
        stderr=finite(float(np.sqrt(estimator.errors(slope)[0]))),
        tables=None if tables is None else float(tables[0, place]),
        tables_stderr=None if tables is None else float(np.sqrt(totals.noise(slope)[0])),
        model=None if modelled is None else float(modelled[0, place]),
        model_stderr=(
            None if modelled is None else float(np.sqrt(mean_square(totals, slope, nothing)[0]))
        ),
    )
