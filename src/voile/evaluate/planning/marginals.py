"""What noisy marginals would be like, before they are published.

The noise of the tables is computed: it depends on the promise, the columns and their domains, not
on the rows. What the model makes of small counts is measured on one release from a fixed seed,
which is thrown away. Both are for the steward.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.engines import connect
from voile.engines.table import Table
from voile.errors import UsageError, spelled
from voile.evaluate.planning.expected import finite
from voile.evaluate.planning.foresight import CHOSEN_BY_ERROR, FOR_THE_STEWARD
from voile.kinds.domain import columns_option
from voile.kinds.marginals.counting import CodeCounter
from voile.kinds.marginals.expected import ExpectedNoise
from voile.kinds.marginals.measuring import MeasurementPlan
from voile.kinds.marginals.options import MarginalOptions
from voile.kinds.marginals.publishing import measure_table
from voile.kinds.marginals.release import MarginalRelease
from voile.noise.normal import LARGEST_SCALE
from voile.options.choices import Unit
from voile.options.reading import ReadingOptions
from voile.records import Record

SEED = 0
"""The coins of a release that is thrown away; always the same, so that plans are repeatable."""
CLASSES = ((0, "all counts"), (100, "counts of 100 or more"), (1000, "counts of 1,000 or more"))
MOST_CELLS = 20_000_000
"""Cells of tables whose errors are measured."""
ABSOLUTE = math.sqrt(2 / math.pi)
"""E|Z| of a normal Z of variance 1."""


@dataclass(frozen=True)
class MeasuredError(Record):
    """How far counts of one release from a fixed seed are off, on average."""

    of: str
    numbers: int
    tables: float | None
    """From the unbiased tables alone."""
    weighed: float | None
    """From tables and model."""


@dataclass(frozen=True)
class QuestionError(Record):
    """The standard errors of a question's numbers, the largest of each column."""

    sql: str
    column: str
    numbers: int
    tables: float | None
    weighed: float | None


@dataclass(frozen=True)
class NeededPromise(Record):
    """The strongest promise whose error is at most what was asked for."""

    max_error: float
    epsilon: float | None
    rho: float | None
    command: str


@dataclass(frozen=True)
class MarginalForesight(Record):
    """What `voile plan --method marginals` shows."""

    rows: int
    domain_size: str
    unit: Unit
    epsilon: float
    delta: float
    rho: float
    order: int
    measurements: int
    figures: int
    noise: tuple[ExpectedNoise, ...]
    errors: tuple[MeasuredError, ...]
    questions: tuple[QuestionError, ...]
    needed: NeededPromise | None
    command: str
    notes: tuple[str, ...]


def plan_marginals(
    table: Any,
    *,
    source: str = "TABLE",
    on: Sequence[str] = (),
    max_error: float | None = None,
    null_text: Sequence[str] = (),
    **options: Any,
) -> MarginalForesight:
    """Foresee noisy marginals of a table. Nothing is published."""
    if max_error is not None and not 0 < max_error < math.inf:
        raise UsageError(f"{spelled('max_error', max_error)} is not above 0", hint="give 100")
    asked = MarginalOptions(**options)
    read = connect(table, null_text=tuple(null_text))
    done = measure_table(read, **{**options, "simulate_seed": SEED})
    release = done.release
    questions = tuple(error for sql in on for error in question_errors(release, sql))
    manifest, g = release.manifest, release.manifest.guarantee
    command = command_of(source, read.reading, options)
    needed = None
    if max_error is not None:
        needed = strongest(release, questions, max_error, source, read.reading, options)
    notes = [*done.notes, FOR_THE_STEWARD]
    if max_error is not None:
        notes.append(CHOSEN_BY_ERROR)
    return MarginalForesight(
        rows=done.rows_in - done.rows_dropped,
        domain_size=manifest.domain_size,
        unit=g.unit, epsilon=g.epsilon, delta=g.delta, rho=g.rho,
        order=manifest.parameters.order,
        measurements=len(manifest.parameters.measurements),
        figures=manifest.rows,
        noise=tuple(release.expected()),
        errors=tuple(measured_errors(release, read, asked)),
        questions=questions,
        needed=needed,
        command=command,
        notes=tuple(notes),
    )  # fmt: skip


# ----------------------------------------------------------------------
# errors of one release that is thrown away


def measured_errors(
    release: MarginalRelease, table: Table, options: MarginalOptions
) -> list[MeasuredError]:
    """Of every cell of every measured table, by the size of the true count."""
    sizes, tables = release.manifest.plan.sizes, [c for c in release.noisy.plan.components if c]
    if sum(math.prod(sizes[i] for i in c) for c in tables) > MOST_CELLS:
        return []
    codes, _ = table.columns_of_codes(release.schema, drop_nulls=options.drop_nulls)
    coded = CodeCounter(codes, sizes, len(codes[0]))
    true, off_tables, off_weighed = [], [], []
    for c in tables:
        counts = coded.counts(c).ravel().astype(np.float64)
        unbiased = release.noisy.table(c).ravel()
        modelled = release.model.mixture.table(c).ravel()
        variance = np.full(unbiased.shape, release.noisy.cell_variance(c))
        weighed, _ = release.model.law.weighed(unbiased, modelled, variance, single=len(c) == 1)
        true.append(counts)
        off_tables.append(np.abs(unbiased - counts))
        off_weighed.append(np.abs(np.maximum(weighed, 0.0) - counts))
    if not true:
        return []
    x, a, b = (np.concatenate(parts) for parts in (true, off_tables, off_weighed))
    return [of_class(name, x >= least, a, b) for least, name in CLASSES]


def of_class(name: str, some: Any, tables: Floats, weighed: Floats) -> MeasuredError:
    """The means over some counts."""
    if not some.any():
        return MeasuredError(name, 0, None, None)
    found = float(tables[some].mean()), float(weighed[some].mean())
    return MeasuredError(name, int(some.sum()), *found)


def question_errors(release: MarginalRelease, sql: str) -> list[QuestionError]:
    """The largest standard error of each column of an answer."""
    weighed = release.query(sql)
    try:
        tables = release.query(sql, refine=False)
    except UsageError:  # columns that were not measured together
        tables = None
    frame = weighed.to_arrow()
    plain = None if tables is None else tables.to_arrow()
    names = [n.removesuffix("_stderr") for n in frame.column_names if n.endswith("_stderr")]
    return [
        QuestionError(sql, name, frame.num_rows, largest(plain, name), largest(frame, name))
        for name in names
    ]


def largest(frame: Any, name: str) -> float | None:
    """Of the standard errors of a column."""
    if frame is None:
        return None
    found = np.asarray(frame.column(f"{name}_stderr"), np.float64)
    known = found[np.isfinite(found)]
    return finite(float(known.max())) if len(known) else None


# ----------------------------------------------------------------------
# backwards: from an error to a promise


def strongest(
    release: MarginalRelease,
    questions: Sequence[QuestionError],
    max_error: float,
    source: str,
    reading: ReadingOptions,
    options: Mapping[str, Any],
) -> NeededPromise:
    """The noise that makes the standard errors of the tables so small."""
    known = [q.tables for q in questions if q.tables is not None]
    if questions and not known:
        raise UsageError(
            "the questions read columns that are not measured together: their error is the "
            "model's, which no noise makes as small as one wants",
            hint=f"give {spelled('order')} as many columns as they read, or ask for fewer",
        )
    now = max(known) if known else release.expected()[-1].noise
    share = (max_error / (ABSOLUTE * now)) ** 2
    plan = enough(release.manifest.plan, share)
    if plan.schema.mu:  # the domain takes the same share of another promise
        schema = replace(plan.schema, mu=plan.schema.mu / math.sqrt(share))
        plan = replace(plan, schema=schema)
    pure = plan.pure_epsilon
    epsilon = plan.epsilon_at(release.manifest.guarantee.delta) if pure is None else pure
    told = rounded_up(epsilon)
    changed: dict[str, Any] = {**options, "epsilon": told}
    changed.pop("rho", None)
    return NeededPromise(max_error, told, plan.rho, command_of(source, reading, changed))


def enough(plan: MeasurementPlan, share: float) -> MeasurementPlan:
    """The same tables, with variances that are at most this share of what they are."""

    def ratio(found: MeasurementPlan) -> float:
        pairs = zip(found.measurements, plan.measurements, strict=True)
        return max(found.figure_variance(a) / plan.figure_variance(b) for a, b in pairs if b.scale)

    scales = [m.scale for m in plan.measurements] + [p.scale for p in plan.places]
    low, high = 1e-6, min(1e6, LARGEST_SCALE / max(scales))
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if ratio(scaled(plan, middle)) <= share else (low, middle)
    return scaled(plan, low)


def scaled(plan: MeasurementPlan, times: float) -> MeasurementPlan:
    """The same tables with noise so many times as wide."""
    found = tuple(replace(m, scale=m.scale * times) for m in plan.measurements)
    places = tuple(replace(p, scale=p.scale * times) for p in plan.places)
    return replace(plan, measurements=found, places=places)


def rounded_up(epsilon: float) -> float:
    """To two digits, never below."""
    if epsilon <= 0:
        return epsilon
    step = 10.0 ** (math.floor(math.log10(epsilon)) - 1)
    return float(f"{math.ceil(epsilon / step - 1e-9) * step:.3g}")


def command_of(source: str, reading: ReadingOptions, options: Mapping[str, Any]) -> str:
    """The line that publishes it."""
    words = ["voile", "publish", source, "--method", "marginals"]
    for name, value in options.items():
        if value is None or value is False or name == "simulate_seed":
            continue
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif name == "tables":
            words += [flag, ";".join(",".join(some) for some in value)]
        elif name == "columns":
            words += [flag, columns_option(value)]
        else:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join([*words, *reading.words()])
