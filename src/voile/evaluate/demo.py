"""The demonstration: Adult published, questions asked, all answers drawn against the truth.

Holds true counts beside estimates: what it writes shows how Voile works and is not publishable.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from voile.engines import connect
from voile.engines.table import Table
from voile.estimate import Answer, Estimate, number
from voile.evaluate import answer_plot, plots
from voile.evaluate.drawing import load_altair
from voile.evaluate.felt import FeltError, felt_error
from voile.evaluate.frontier import Frontier, find_frontier
from voile.evaluate.frontier.page import write_frontier
from voile.evaluate.selecting import selection_estimates, true_selections
from voile.evaluate.workload import Selections, cumulative_error
from voile.kinds.automatic import publish_best
from voile.kinds.choosing import MethodChoice, in_per_cent, rounded
from voile.kinds.perturbed.publishing import perturb_table
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.views.publishing import publish_table
from voile.kinds.views.release import ViewRelease
from voile.privacy.local import equal_shares
from voile.progress import Progress
from voile.schema.attribute import plain

TABLE = "dataset:adult/boundary"
FRONTIER = "dataset:adult/frontier"
QUESTIONS = (
    "education = 'Bachelors'",
    "age between 25 and 45 and sex = 'Female'",
    "(education in ('Masters', 'Doctorate') or occupation like 'Prof%') and salary = '>50K'",
    "case when sex = 'Male' then age >= 65 else age >= 60 end and workclass = 'Private'",
    "(age < 25 and education = 'Some-college' or age > 60 and not workclass = 'Private') "
    "and native_country = 'United-States'",
)
GROUPED = (
    "select sex, avg(age), median(age), 100.0 * count(*) filter (where salary = '>50K') / count(*) "
    "as rich from adult where education = 'Bachelors' group by sex order by sex"
)
DECADES = "select floor(age / 10) * 10 as decade, sex, count(*) from adult group by all"


@dataclass(frozen=True)
class DemoAnswer:
    """One question with its answer and the truth."""

    where: str
    truth: int
    estimate: Estimate
    perturbed: Estimate
    """From rows that were perturbed one by one, with nobody trusted."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "where": self.where,
            "truth": self.truth,
            **self.estimate.to_dict(),
            "perturbed": self.perturbed.to_dict(),
        }


@dataclass(frozen=True)
class DemoGroups:
    """A query with groups, and the truth in the same rows and columns."""

    sql: str
    answer: Answer
    truth: tuple[tuple[Any, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "sql": self.sql,
            **self.answer.to_dict(),
            "truth": [list(row) for row in self.truth],
        }

    def __rich__(self) -> Any:
        from rich import box  # noqa: PLC0415  (only when printed)
        from rich.table import Table as View  # noqa: PLC0415

        view = View(box=box.SIMPLE_HEAD, padding=(0, 1))
        for name in self.answer.rows[0]:
            view.add_column(name, justify="right", no_wrap=True)
        for row, truth in zip(self.answer.rows, self.truth, strict=True):
            view.add_row(*map(beside, row.values(), truth))
        return view


def beside(value: Any, truth: Any) -> str:
    """An estimate with its interval, green where that covers the truth, and the truth."""
    if not isinstance(value, Estimate):
        return str(value)
    low, high = value.interval()
    hit = "green" if low <= truth <= high else "red"
    return (
        f"[bold]{number(value.value)}[/bold], truth {number(truth)}\n"
        f"[{hit}]{number(low)} … {number(high)}[/{hit}]"
    )


@dataclass(frozen=True)
class DefaultRelease:
    """What `voile publish TABLE` makes without any option, and how far off its counts are."""

    path: Path
    choice: MethodChoice
    felt: FeltError

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "release": str(self.path),
            "method": self.choice.chosen.method,
            "why": self.choice.why,
            "expected_error": rounded(self.choice.chosen.expected_error),
            "promise": self.choice.promise.to_dict(),
            "felt": self.felt.to_dict(),
        }

    def lines(self) -> list[str]:
        """The same in words."""
        felt, off = self.felt, in_per_cent(self.felt.both or 0.0)
        covered = f"{100 * (felt.coverage or 0.0):.1f} %"
        promise = self.choice.promise
        return [
            f"[bold]voile publish adult.csv[/bold], without any option: ε = {promise.epsilon:g}. "
            f"That is, {promise.in_words()}.",
            f"Chosen: {self.choice.why}.",
            f"Of {felt.counts:,} counts of one and two columns that hold 1 % of the rows or more, "
            f"the middle one is off by [bold]{off}[/bold], and {covered} lie in their 95 % "
            "interval.",
            "",
            "The same table as the papers publish it, a noisy view:",
        ]


@dataclass(frozen=True)
class Demonstration:
    """All that the demonstration made and measured."""

    first: DefaultRelease
    release: ViewRelease
    asked: tuple[DemoAnswer, ...]
    grouped: DemoGroups
    mean_errors: dict[str, float]
    files: tuple[Path, ...]
    seconds: float
    epsilon: float
    """Of exchanging a record, in the release and in the rows perturbed one by one."""
    frontier: Frontier
    """Classes of rows: many releases on the same axes."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return {
            "first": self.first.to_dict(),
            "release": str(self.release.path),
            "questions": [a.to_dict() for a in self.asked],
            "grouped": self.grouped.to_dict(),
            "mean_error_of_counts_over_500": self.mean_errors,
            "files": [str(f) for f in self.files],
            "epsilon": self.epsilon,
            "frontier": self.frontier.in_words(),
            "seconds": self.seconds,
        }

    def __rich__(self) -> Any:
        from rich import box  # noqa: PLC0415  (only when printed)
        from rich.console import Group  # noqa: PLC0415
        from rich.markup import escape  # noqa: PLC0415
        from rich.table import Table as View  # noqa: PLC0415

        view = View(box=box.SIMPLE_HEAD, padding=(0, 1))
        for heading in (
            "",
            "truth",
            "estimate",
            "± error",
            "95 % interval",
            "trusting nobody",
            "± error",
        ):
            view.add_column(heading, justify="right", no_wrap=True)
        for i, asked in enumerate(self.asked, start=1):
            low, high = asked.estimate.interval()
            hit = "green" if low <= asked.truth <= high else "red"
            view.add_row(
                f"{i}",
                number(asked.truth),
                f"[bold]{number(asked.estimate.value)}[/bold]",
                number(asked.estimate.stderr),
                f"[{hit}]{number(low)} … {number(high)}[/{hit}]",
                number(asked.perturbed.value),
                number(asked.perturbed.stderr),
            )
        errors = "; ".join(f"{name}: {error:,.0f}" for name, error in self.mean_errors.items())
        manifest = self.release.manifest
        return Group(
            *self.first.lines(),
            f"{manifest.public_rows:,} people, published as {manifest.rows:,} rows, records and "
            "noise mixed. Five questions, select count(*) from adult where …",
            *(f"[bold]{i}[/bold]  {escape(a.where)}" for i, a in enumerate(self.asked, start=1)),
            view,
            "[dim]Trusting nobody: rows perturbed one by one, and the counts reconstructed, at the "
            f"same ε = {self.epsilon:.3g} for exchanging one record.[/dim]",
            f"One with groups: {escape(self.grouped.sql)}",
            self.grouped,
            f"Mean error of all selections of up to three attributes that count 500 or more: "
            f"{errors}.",
            f"Or as classes of rows: {len(self.frontier.points)} releases of the seven columns of "
            f"{FRONTIER}, measured. {escape(self.frontier.in_words())}",
            *(f"[bold]{file}[/bold]" for file in self.files),
            f"[dim]Intervals in green cover the truth; one in twenty may miss it. "
            f"{self.seconds:.1f} s.[/dim]",
        )


def run(output: Path, progress: Progress) -> Demonstration:
    """Publish Adult twice (the planner's retention, the paper's), ask, and draw."""
    load_altair()  # refuses before any work is done
    began = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    table = connect(TABLE)
    first = default_release(table, output / "first.voile", progress)
    release = publish_table(
        table, to=output / "adult.voile", overwrite=True, progress=progress
    ).release
    paper = publish_table(table, retention=0.5, progress=progress).release
    rows = perturbed_alike(table, release, progress)
    asked = tuple(ask(where, table, release, rows) for where in QUESTIONS)
    truth, ours, theirs = workload(table, release, paper)
    methods = {"αβ, planner's retention": ours, "αβ, the paper's retention ½": theirs}
    bound = asked[0].estimate.bound
    assert bound is not None  # noqa: S101
    chart = plots.estimates(
        truth.counts,
        ours,
        bound.error,
        labels=lambda i: label(release, truth, i),
        title="What can be counted from Adult when every record is hidden in noise",
        subtitle=subtitle(release),
        method="αβ, planner's retention",
        others={"αβ, the paper's retention ½": theirs},
    )
    files = plots.save(chart, output / "estimates")
    decades = release.query(DECADES)
    files = [*files, answer_plot.save(decades, DECADES, output / "decades.png")]
    grouped = DemoGroups(GROUPED, release.query(GROUPED), tuple(table.run(GROUPED)))
    errors = {
        name: float(cumulative_error(truth.counts, estimate, [500])[0])
        for name, estimate in methods.items()
    }
    frontier = frontier_of_classes(progress)
    (output / "frontier").mkdir(exist_ok=True)
    files = [*files, *write_frontier(frontier, output / "frontier")]
    seconds = time.monotonic() - began
    epsilon = release.mechanism.likelihood_ratio().epsilon("swap")
    return Demonstration(
        first, release, asked, grouped, errors, tuple(files), seconds, epsilon, frontier
    )


def default_release(table: Table, to: Path, progress: Progress) -> DefaultRelease:
    """Publish without any option, and compare counts with the table."""
    done = publish_best(table, to=to, overwrite=True, progress=progress)
    assert done.choice is not None  # noqa: S101
    return DefaultRelease(to, done.choice, felt_error(done.release, table))


def frontier_of_classes(progress: Progress) -> Frontier:
    """What generalizing and bucketizing can do, and what no bucketization can."""
    *qi, sensitive = connect(FRONTIER).columns
    return find_frontier(
        FRONTIER,
        sensitive=sensitive,
        qi=qi,
        methods=["mondrian", "information", "trivial"],
        grid="quick",
        progress=progress,
    )


def perturbed_alike(table: Table, release: ViewRelease, progress: Progress) -> LocalRelease:
    """Rows perturbed one by one, with the same ε for exchanging a record as the release has."""
    ratio = release.mechanism.likelihood_ratio()
    assert ratio.high is not None  # noqa: S101  (there is noise)
    masses = [Fraction(1, size) for size in release.schema.sizes]
    retentions = equal_shares(ratio.high / ratio.low, masses)
    requested = dict(zip(release.schema.names, retentions, strict=True))
    return perturb_table(table, retention=requested, progress=progress).release


def ask(where: str, table: Table, release: ViewRelease, rows: LocalRelease) -> DemoAnswer:
    """A count with both releases' estimates and the truth."""
    sql = f"select count(*) from adult where {where}"
    return DemoAnswer(where, table.count(where), release.query(sql).scalar, rows.query(sql).scalar)


def workload(table: Table, *releases: ViewRelease) -> tuple[Any, ...]:
    """True counts of every selection of up to three attributes, and each release's estimates."""
    truth = true_selections(table, releases[0].schema)
    return truth, *(selection_estimates(release) for release in releases)


def label(release: ViewRelease, selections: Selections, number_: int) -> str:
    """A selection in words."""
    parts = []
    for attribute, code in selections.locate(number_):
        found = release.schema.attributes[attribute]
        parts.append(f"{found.name} = {plain(list(found)[code])}")
    return " and ".join(parts)


def subtitle(release: ViewRelease) -> str:
    """What the picture says below its title."""
    g = release.manifest.guarantee
    return (
        f"{release.manifest.public_rows:,} people, nine attributes, published so that a belief of "
        f"at most {g.prior:.2g} about a person never grows beyond {g.posterior:g}"
    )
