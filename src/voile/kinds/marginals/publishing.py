"""From rows to a release of noisy marginals: read, plan, count, add noise, fit, write."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from voile import __version__
from voile.arrays import Ints
from voile.engines.table import Table
from voile.errors import PromiseError, QueryError, TableError, UsageError, spelled
from voile.kinds.choosing import in_per_cent
from voile.kinds.domain import (
    ACTIVE,
    check_name,
    check_nulls,
    choose_schema,
    dropped_times,
    learn_domain,
)
from voile.kinds.manifest import File, file_entry
from voile.kinds.marginals.choosing import (
    RESERVED,
    WIDE,
    ChosenTables,
    MeasuringBudget,
    choose,
    workload_weights,
)
from voile.kinds.marginals.counting import MarginalCounter, counter_of
from voile.kinds.marginals.expected import ExpectedNoise
from voile.kinds.marginals.manifest import (
    AT,
    MODEL_FILE,
    MOST_FIGURES,
    GuaranteeKind,
    LawNumbers,
    MarginalManifest,
    MarginalParameters,
    MeasuredMeans,
    MeasuredTable,
    ModelParameters,
    TableChoice,
    guarantee_of,
    marginals_disclosed,
    order_of,
)
from voile.kinds.marginals.measuring import (
    gaussian_plan,
    noise_for,
    place_noise,
    pure_plan,
    rho_for,
    whole_figures,
)
from voile.kinds.marginals.modelling import Model, model_of
from voile.kinds.marginals.options import DELTA, EPSILON, MarginalKeywords, MarginalOptions
from voile.kinds.marginals.places import (
    PlaceBudget,
    PlacedColumn,
    measurable,
    place_sums,
    with_places,
)
from voile.kinds.marginals.release import (
    PART,
    MarginalRelease,
    figure_schema,
    listed_cells,
    model_table,
)
from voile.kinds.marginals.residuals import Columns, balanced
from voile.kinds.parquet import ROW_GROUP
from voile.kinds.people import people_of
from voile.kinds.publishing import PublishResult, WrittenDraft, publish
from voile.kinds.registry import kind_of
from voile.learning import LearningBudget, LearntSchema, SchemaAccount
from voile.noise import Key
from voile.noise.whole import SystemSource, WordSource
from voile.privacy.spent import NOTHING, Spent
from voile.progress import Progress
from voile.schema import Schema
from voile.signing import KeySource
from voile.units import counted

MOST_TABLES = 20_000
"""Sets of columns that are measured."""
SCHEMA_SHARE, SCHEMA_DELTA = 0.1, 0.1
"""The share of the budget, and of δ, that learning the domain takes."""
WORKLOAD_ORDER = 3
"""Columns of a table for questions that read more of them."""
LOST = 1 + 1e-10
"""What multiplying by the rows of a person may lose in floats."""
LOOK = 0.01
"""The share of the budget that a first look at the number of rows takes, where one is needed."""


@dataclass(frozen=True)
class MarginalPublication(PublishResult):
    """Noisy marginals that were published."""

    release: MarginalRelease

    def facts(self) -> list[tuple[str, str]]:
        """Rows, tables, promise and what to expect, by name."""
        manifest = self.release.manifest
        p, model = manifest.parameters, manifest.model
        largest = "1 column" if p.order == 1 else f"{p.order} columns"
        which, number = CHOICES[p.tables], counted(len(p.measurements), "measurement")
        return [
            ("rows", f"{self.rows_in:,} in, {self.rows_in - self.rows_dropped:,} counted"),
            ("tables", f"of up to {largest} ({which}), {number}: "
                       f"{manifest.rows:,} figures"),
            *([("means", f"within the bins of {', '.join(m.column for m in p.means)}")]
              if p.means else []),
            ("promise", self.release.promise_in_short),
            ("model", f"{model.products:,} products, {model.rows:,.0f} rows"),
            *(self._expected() if self.choice is None else ()),
        ]  # fmt: skip

    def _expected(self) -> list[tuple[str, str]]:
        """What the steward will feel: the error of counts that matter."""
        return [
            (
                f"counts of {one.columns} column{'s' if one.columns > 1 else ''}",
                in_words(one),
            )
            for one in self.release.expected()
        ]


def in_words(one: ExpectedNoise) -> str:
    """What a count that matters is off by."""
    alone = f"standard error {one.noise:,.3g} from the tables alone"
    if one.relative is None or one.weighed is None:
        return alone
    share = one.relative * one.weighed / one.noise if one.noise else 0.0
    found = (
        f"standard error {one.weighed:,.3g} where they hold 1 % of the rows: {in_per_cent(share)} "
        "of such a count"
    )
    alike = f"{one.weighed:.3g}" == f"{one.noise:.3g}"
    return found if alike else f"{found} ({one.noise:,.3g} from the tables alone)"


CHOICES: Mapping[TableChoice, str] = {
    "all": "all of them",
    "given": "those that were named",
    "workload": "those of the workload",
    "selected": "a private choice",
}


# ----------------------------------------------------------------------
# reading the table, and choosing what to measure


@dataclass(frozen=True)
class MarginalInput:
    """A table that has been read, and what of it will be measured."""

    name: str
    rows: int
    schema: Schema
    coded: MarginalCounter
    chosen: ChosenTables
    source: WordSource
    notes: tuple[str, ...]
    progress: Progress
    account: SchemaAccount | None = None
    """What learning the domain cost, where it was learnt."""
    places: tuple[PlacedColumn, ...] = ()
    """Columns whose means within bins are measured."""
    sums: tuple[Ints, ...] = ()
    """The true sums of places of these, in steps."""


@dataclass(frozen=True, eq=False)
class MarginalDraft(WrittenDraft):
    """Noisy marginals that are ready to be measured."""

    prepared: MarginalInput
    options: MarginalOptions

    def write(self, folder: Path) -> MarginalManifest:
        """Count, add noise, fit the model, and write both."""
        prepared = self.prepared
        figures, plan = list(noisy(prepared)), prepared.chosen.plan
        sums = list(noisy_places(prepared))
        found = plan.estimated(figures, prepared.chosen.rows_figure)
        seed = public_seed(prepared.source)
        model = model_of(found, noise=plan.noise, seed=seed, progress=prepared.progress)
        files = [write_figures(folder, [*figures, *sums]), write_model(folder, model)]
        return manifest_of(prepared, self.options, model, seed).model_copy(update={"files": files})

    def done(self, release: MarginalRelease) -> MarginalPublication:
        """The release, with notes for the steward."""
        prepared = self.prepared
        dropped = prepared.rows - prepared.coded.rows
        return MarginalPublication(release, prepared.rows, dropped, prepared.notes)


def marginal_draft(
    table: Table, options: MarginalOptions, _target: Path, progress: Progress
) -> MarginalDraft:
    """Read the table and choose the noise."""
    return MarginalDraft(prepare(table, options, progress), options)


def measure_table(
    table: Any,
    *,
    to: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    sign: KeySource | None = None,
    **options: Unpack[MarginalKeywords],
) -> MarginalPublication:
    """Publish noisy marginals, with notes for the steward. `to` names the folder."""
    kind, checked = kind_of("marginals"), MarginalOptions(**options)
    done = publish(kind, table, checked, to=to, overwrite=overwrite, progress=progress, sign=sign)
    return cast("MarginalPublication", done)


def public_seed(source: WordSource) -> int:
    """From which the model begins and synthetic rows are drawn; it is published."""
    return int(source.words(1)[0] >> np.uint64(1))


def prepare(table: Table, options: MarginalOptions, progress: Progress) -> MarginalInput:
    """Read and check the table, and choose the noise."""
    rows, name = len(table), options.name or table.name
    check_name(name)
    if not rows and options.schema_ is None:
        raise TableError(
            "the table has no rows to read a domain off",
            hint=f"declare it with {spelled('schema')}; see `voile inspect TABLE`",
        )
    schema, learnt, notes = published_domain(table, options, progress)
    check_nulls(table, schema, options.nulls)
    progress.start("reading", rows)
    coded = counter_of(table, schema, drop_nulls=options.drop_nulls, progress=progress)
    used = coded.rows
    if options.unit == "exchange" and used < 2:
        raise TableError(
            "one row alone cannot be hidden among others", hint="publish a table with more rows"
        )
    if options.unit == "exchange" and max(schema.sizes) < 2:
        raise TableError(
            "no column has more than one value: rows that are exchanged change nothing",
            hint=f"publish other {spelled('columns')}, or declare what values could be there",
        )
    source = noise_source(options)
    account = learnt.account if learnt is not None else None
    bins = measurable(schema, table) if options.bin_means else (0,) * len(schema.names)
    chosen = chosen_terms(options, coded, schema, source, name, progress, account, bins)
    placed = PlaceBudget(chosen.plan.noise, options.unit, chosen.amount).placed(
        schema, bins, chosen.rows
    )
    sums = place_sums(table, schema.names, placed, drop_nulls=options.drop_nulls)
    most = options.rows_per_person or 1
    plan = replace(with_places(chosen.plan, placed), rows_per_person=most)
    check_size(coded.sizes, [m.columns for m in plan.measurements])
    return MarginalInput(
        name, rows, schema, coded, replace(chosen, plan=plan), source, tuple(notes), progress,
        account, placed, tuple(sums),
    )  # fmt: skip


def published_domain(
    table: Table, options: MarginalOptions, progress: Progress
) -> tuple[Schema, LearntSchema | None, list[str]]:
    """The domain: declared, read off the table where that is asked for, or learnt from it."""
    given = options.schema_
    if isinstance(given, LearntSchema):
        notes = [*given.notes, *dropped_times(table, given.schema.names)]
        return given.schema, given, list(dict.fromkeys(notes))
    if given is not None:
        schema, notes = choose_schema(table, options.columns, given, options.nulls)
        return schema, None, notes
    budget = learning_budget(options)
    key = Key.fresh() if options.simulate_seed is None else Key.from_seed(options.simulate_seed)
    learnt = learn_domain(table, options.columns, options.nulls, budget, key, progress)
    return learnt.schema, learnt, list(learnt.notes)


def learning_budget(options: MarginalOptions) -> LearningBudget:
    """The share of the promise that learning the domain may take."""
    if options.pure:
        raise UsageError(
            f"{spelled('pure', True)} promises ε with δ = 0, and without a codebook the values of "
            "a column are learnt by noisy counts above a threshold, which fails with a probability "
            "above 0",
            hint=f"declare the domain with {spelled('schema', 'codebook.yaml')}, leave out "
            f"{spelled('pure', True)}, or give {spelled('schema', ACTIVE)}, which discloses which "
            "values occur",
        )
    whole, share = budget_of(options), options.schema_share or SCHEMA_SHARE
    delta = options.delta or (AT if options.rho else DELTA)
    return LearningBudget(
        "gaussian",
        min(whole.whole, whole.with_choice) * share,
        delta * SCHEMA_DELTA,
        options.unit,
        options.rows_per_person or 1,
    )


def noise_source(options: MarginalOptions) -> WordSource:
    """Secret bits, or those of a seed in a simulation."""
    if options.simulate_seed is None:
        return SystemSource()
    return Key.from_seed(options.simulate_seed).stream("marginals")


def chosen_terms(
    options: MarginalOptions,
    rows: MarginalCounter,
    schema: Schema,
    source: WordSource,
    name: str,
    progress: Progress,
    account: SchemaAccount | None = None,
    bins: Sequence[int] = (),
) -> ChosenTables:
    """The tables and their noise. Nothing of the table is looked at, except with noise."""
    spent = account.spent() if account is not None else NOTHING
    budget = row_budget(options, spent)
    known = account.rows if account is not None else None
    reserved = reserved_rho(options, len(rows.sizes), budget)
    if reserved:
        budget = replace(budget, whole=budget.with_choice - reserved)
    found = _chosen(options, rows, schema, source, name, progress, budget, known, bins)
    if reserved and not found.plan.selection_rho:
        found = replace(found, plan=replace(found.plan, selection_rho=reserved))
    return replace(found, plan=replace(found.plan, schema=spent)) if account else found


def reserved_rho(options: MarginalOptions, columns: int, budget: MeasuringBudget) -> float:
    """What makes the account zCDP's, where noisy figures decided what is measured; else 0.

    A domain that is handed over was learnt before, and how to publish was chosen by what it shows.
    With many columns one of the ways is to choose tables privately, whose account is zCDP's: then
    a mixture of all ways has no other.
    """
    looked = isinstance(options.schema_, LearntSchema) and columns >= WIDE
    return RESERVED * budget.with_choice if looked and budget.noise == "gaussian" else 0.0


def _chosen(
    options: MarginalOptions,
    rows: MarginalCounter,
    schema: Schema,
    source: WordSource,
    name: str,
    progress: Progress,
    budget: MeasuringBudget,
    known: int | None,
    bins: Sequence[int],
) -> ChosenTables:
    """The same within what the domain has left of the budget."""
    sizes = rows.sizes

    def kept(about: float | None, amount: float) -> float:
        return PlaceBudget(budget.noise, budget.unit, amount).share(bins, about)

    def of(weights: Mapping[Columns, float], how: TableChoice) -> ChosenTables:
        public = rows.rows if known is None and budget.unit == "exchange" else known
        about = None if public is None else float(max(1, public))
        found = planned(sizes, weights, budget.times(1 - kept(about, budget.whole)), how)
        return replace(found, rows=about, amount=budget.whole)

    if options.method == "full-table":
        return of(balanced(sizes, [tuple(range(len(sizes)))]), "given")
    if options.tables is not None:
        return of(balanced(sizes, named(options.tables, schema)), "given")
    if options.workload is not None:
        asked = workload_sets(options.workload, schema, name)
        return of(workload_weights(sizes, asked), "workload")
    if options.order is not None:
        check_number(len(sizes), options.order)
    return choose(
        rows.counts, sizes, rows.rows, budget, source,
        order=options.order, known=known, kept=kept, progress=progress,
    )  # fmt: skip


def planned(
    sizes: Sequence[int],
    weights: Mapping[Columns, float],
    budget: MeasuringBudget,
    how: TableChoice,
) -> ChosenTables:
    """The best noise for tables that were named."""
    check_size(sizes, list(weights))
    if budget.noise == "geometric":
        plan = pure_plan(sizes, weights, epsilon=budget.whole, unit=budget.unit)
    else:
        plan = gaussian_plan(sizes, weights, rho=budget.whole, unit=budget.unit)
    order = max((len(some) for some in weights), default=0)
    return ChosenTables(plan, order, how)


def budget_of(options: MarginalOptions, spent: Spent = NOTHING) -> MeasuringBudget:
    """What the promise leaves to measure with after learning the domain, for a person.

    A choice of tables makes the account zCDP's.
    """
    epsilon = EPSILON if options.epsilon is None else options.epsilon
    if options.geometric:
        return MeasuringBudget("geometric", options.unit, epsilon, epsilon).after(spent)
    if options.rho is not None:
        return MeasuringBudget("gaussian", options.unit, options.rho, options.rho).after(spent)
    delta = (DELTA if options.delta is None else options.delta) - spent.delta
    whole, chosen = rho_for(epsilon, delta), rho_for(epsilon, delta, chosen=True)
    return MeasuringBudget("gaussian", options.unit, whole, chosen).after(spent)


def row_budget(options: MarginalOptions, spent: Spent) -> MeasuringBudget:
    """The same for one row: a person with c rows has c times its ε, and c² times its ρ."""
    found, most = budget_of(options, spent), options.rows_per_person or 1
    if most == 1:
        return found
    times = LOST * (most if found.noise == "geometric" else most**2)
    return replace(found, whole=found.whole / times, with_choice=found.with_choice / times)


def check_number(columns: int, order: int) -> None:
    """Refuse more tables than are measured."""
    found = sum(math.comb(columns, size) for size in range(1, order + 1))
    if found > MOST_TABLES:
        raise PromiseError(
            f"there are {found:,} sets of up to {order} of {columns} columns, more than "
            f"{MOST_TABLES:,}",
            hint=f"use a smaller {spelled('order')}, fewer {spelled('columns')}, or leave "
            f"{spelled('order')} out: tables are then chosen privately",
        )


def named(tables: Sequence[Sequence[str]], schema: Schema) -> list[Columns]:
    """Sets of columns by their places."""
    found = []
    for some in tables:
        places = sorted({schema.names.index(schema[name].name) for name in some})
        if len(places) < len(some):
            raise UsageError(
                f"{spelled('tables')}: {', '.join(some)} names a column twice",
                hint="name each column of a table once",
            )
        found.append(tuple(places))
    return list(dict.fromkeys(found))


def workload_sets(workload: Any, schema: Schema, name: str) -> dict[Columns, float]:
    """The sets of columns that questions read, by how many of them do.

    `workload` is a file with a question on each line, or a sequence of questions. One that reads
    more columns than a table has counts for all tables of the highest order within them.
    """
    questions = read_questions(workload)
    found: dict[Columns, float] = {}
    for place, sql in enumerate(questions, start=1):
        columns = columns_read(sql, schema, name, place)
        parts = [columns]
        if len(columns) > WORKLOAD_ORDER:
            parts = list(combinations(columns, WORKLOAD_ORDER))
        for some in parts:
            found[some] = found.get(some, 0.0) + 1 / len(parts)
    return found


def read_questions(workload: Any) -> list[str]:
    """Lines of SQL, without empty ones and comments."""
    if isinstance(workload, str | Path):
        try:
            lines = Path(workload).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{spelled('workload', str(workload))} cannot be read: {error}",
                hint="name a text file with a question on each line",
            ) from None
    else:
        lines = [str(one) for one in workload]
    found = [line.strip().rstrip(";") for line in lines]
    found = [line for line in found if line and not line.startswith("--")]
    if not found:
        raise UsageError(
            f"{spelled('workload', str(workload))} has no questions",
            hint="write one on each line, as in: select sex, count(*) from people group by sex",
        )
    return found


def columns_read(sql: str, schema: Schema, name: str, place: int) -> Columns:
    """The columns that a question depends on."""
    from voile.query import parse  # noqa: PLC0415  (few give a workload)

    try:
        query = parse(sql, schema, {}, name)
    except QueryError as error:
        raise UsageError(
            f"{spelled('workload')}: question {place}, {sql!r}: {error.message}", hint=error.hint
        ) from None
    parts = [*query.conditions, *query.values, *query.groups]
    return tuple(sorted({schema.names.index(n) for part in parts for n in part.attributes}))


def check_size(sizes: Sequence[int], tables: Sequence[Columns]) -> None:
    """Refuse what would be too much to write."""
    figures = sum(math.prod(sizes[i] for i in some) for some in tables)
    if figures > MOST_FIGURES:
        raise PromiseError(
            f"the tables would have {figures:,} figures, more than {MOST_FIGURES:,}",
            hint=f"declare coarser domains (bins) with {spelled('schema')}, or use a smaller "
            f"{spelled('order')} or fewer {spelled('columns')}",
        )


# ----------------------------------------------------------------------
# counting, adding noise, and writing


def noisy(prepared: MarginalInput) -> Iterator[Ints]:
    """The figures of every measurement, with noise: true counts are seen nowhere else."""
    plan, progress, known = prepared.chosen.plan, prepared.progress, prepared.chosen.figures
    yield from known  # what was measured in order to choose
    rest = plan.measurements[len(known) :]
    progress.start("counting", len(rest))
    noise = noise_for(plan, prepared.source, len(known))
    prepared.coded.expect([measurement.columns for measurement in rest])
    for measurement, drawn in zip(rest, noise, strict=True):
        counts = prepared.coded.counts(measurement.columns)
        yield whole_figures(plan, measurement, counts) + drawn
        progress.advance(1)


def noisy_places(prepared: MarginalInput) -> Iterator[Ints]:
    """The sums of places within bins, with noise: true sums are seen nowhere else."""
    noise = place_noise(prepared.chosen.plan, prepared.source)
    for sums, drawn in zip(prepared.sums, noise, strict=True):
        yield sums + drawn


def write_figures(folder: Path, figures: Sequence[Ints]) -> File:
    """All figures in one file, measurement by measurement."""
    (folder / "data").mkdir()
    number, cell = listed_cells([figure.size for figure in figures])
    columns = [
        pa.array(number.astype(np.int32)),
        pa.array(cell),
        pa.array(np.concatenate([figure.ravel() for figure in figures])),
    ]
    return written(folder, PART, pa.table(columns, schema=figure_schema()))


def write_model(folder: Path, model: Model) -> File:
    """The mixture in one file."""
    (folder / "model").mkdir()
    return written(folder, MODEL_FILE, model_table(model))


def written(folder: Path, name: str, table: Any) -> File:
    """A Parquet file of the release."""
    path = folder / name
    pq.write_table(
        table, path,
        compression="zstd", store_schema=False, write_statistics=False, row_group_size=ROW_GROUP,
    )  # fmt: skip
    return file_entry(folder, path, table.num_rows)


def manifest_of(
    prepared: MarginalInput, options: MarginalOptions, model: Model, seed: int
) -> MarginalManifest:
    """What the release says about itself, but for the files that are still to be written."""
    schema, chosen = prepared.schema, prepared.chosen
    plan = chosen.plan
    names = schema.names
    kind: GuaranteeKind = "approximate-dp"
    if not plan.schema.delta:
        kind = "dp" if options.geometric else "zcdp" if options.rho else kind
    at = options.delta or (AT if options.rho else DELTA)
    return MarginalManifest(
        voile=__version__,
        method=options.method,
        name=prepared.name,
        parameters=MarginalParameters(
            noise=plan.noise,
            unit=plan.unit,
            order=order_of(plan, chosen.how),
            tables=chosen.how,
            rows_scale=plan.rows_scale,
            rows_figure=chosen.rows_figure,
            selection_rho=plan.selection_rho,
            selection_epsilon=plan.selection_epsilon,
            measurements=[
                MeasuredTable(columns=[names[i] for i in m.columns], scale=m.scale)
                for m in plan.measurements
            ],
            means=[
                MeasuredMeans(
                    column=one.name,
                    low=one.places.edges[0],
                    high=one.places.edges[-1],
                    scale=one.scale,
                )
                for one in prepared.places
            ],
            schema_account=prepared.account,
        ),
        guarantee=guarantee_of(plan, kind, at),
        model=ModelParameters(
            products=len(model.mixture.weights),
            rows=model.mixture.rows,
            seed=seed,
            law=LawNumbers(**asdict(model.law)),
        ),
        people=people_of(options),
        simulated=options.simulate_seed is not None,
        nulls=options.nulls,
        disclosed=marginals_disclosed(schema, options.nulls, plan.unit, prepared.account),
        public_rows=prepared.coded.rows if plan.unit == "exchange" else None,
        rows=plan.figures,
        domain_size=str(schema.size),
        attributes=schema.to_dict()["attributes"],
        files=[],
    )
