"""What people see of plans and of the boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import show, show_lines, table_of
from voile.terminal.progress import is_narrow, whole_numbers
from voile.units import bytes_in_words, chance, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voile.evaluate.planning.boundary import Plane
    from voile.evaluate.planning.comparison import MethodComparison
    from voile.evaluate.planning.expected import ExpectedError
    from voile.evaluate.planning.foresight import CurvePoint, Foresight
    from voile.evaluate.planning.local import Beliefs, ConjunctionError, LocalPlan
    from voile.evaluate.planning.local_measure import MeasuredSet, TableMeasures
    from voile.evaluate.planning.marginals import MarginalForesight
    from voile.evaluate.planning.strongest import PromiseCandidate, StrongestPromises

SHOWN = 7
"""Points of a curve in a terminal."""
TURNED = 100
"""Columns below which curves are listed downwards."""


def show_plan(found: Foresight, *, as_json: bool) -> None:
    """A plan, and the lines that publish it, which are not broken to fit the screen."""
    show(found.to_dict() if as_json else None, lambda: plan_view(found))
    if as_json:
        return
    best = found.strongest
    candidates = [best.smallest_posterior, best.largest_prior] if best else []
    offered = [found.ground.options, *(candidate.options for candidate in candidates if candidate)]
    show_lines([found.command(options) for options in offered])


def comparison_view(found: MethodComparison) -> Any:
    """All methods under one promise, the best first."""
    from rich.console import Group
    from rich.markup import escape

    from voile.evaluate.planning.comparison import headline
    from voile.kinds.choosing import in_per_cent

    def shown(error: float | None) -> str:
        return "" if error is None else in_per_cent(error)

    rows = [
        [
            f"[bold]{one.method}[/bold]" if one.chosen else one.method,
            escape(one.about),
            in_per_cent(one.expected_error),
            "" if one.felt is None else shown(one.felt.one),
            "" if one.felt is None else shown(one.felt.two),
        ]
        for one in found.methods
    ]
    promise = found.promise
    delta = f", δ = {promise['delta']:g}"
    lines = [
        ["table", f"{found.rows:,} rows, {found.columns} columns"],
        ["promise", f"ε = {promise['epsilon']:g}{delta}: {found.in_words}"],
        ["expected", headline(found)],
    ]
    return Group(
        table_of(["", ""], [[a, escape(b)] for a, b in lines], show_header=False),
        table_of(
            ["method", "what is published", "expected error", "one column *", "two columns *"],
            rows,
        ),
        "expected error: of a count that holds exactly 1 % of the rows, from public numbers",
        "* counts of 1 % of the rows or more were off by so much, in the middle, in one release "
        "from a fixed seed: from the private table, for the steward only",
        "" if found.useful else "[red]of no use: over 25 %[/red]",
    )


def show_marginal_plan(found: MarginalForesight, *, as_json: bool) -> None:
    """A plan of noisy marginals, and the lines that publish it."""
    show(found.to_dict() if as_json else None, lambda: marginal_plan_view(found))
    if not as_json:
        show_lines([found.command, *([found.needed.command] if found.needed else [])])


def marginal_plan_view(found: MarginalForesight) -> Any:
    """The promise, the noise of the tables, and what one release from a fixed seed was off by."""
    from rich.console import Group

    from voile.schema.schema import large

    delta = f" and δ = {found.delta:g}" if found.delta else ""
    facts = [
        ["table", f"{found.rows:,} rows, {large(int(found.domain_size))} possible tuples"],
        ["promise", f"ε = {found.epsilon:.4g}{delta} ({found.unit}); ρ = {found.rho:.4g}"],
        ["tables", f"of up to {found.order} columns, {found.measurements:,} measurements, "
                   f"{found.figures:,} figures"],
    ]  # fmt: skip
    if found.needed:
        wanted, epsilon = found.needed.max_error, found.needed.epsilon
        facts.append([f"for an error of {wanted:g}", f"ε = {number(epsilon)} is enough"])
    parts: list[Any] = [
        table_of(["", ""], facts, show_header=False),
        whole_numbers(
            ["columns", "standard error of a count", "of 1 % of the rows"],
            [[str(one.columns), number(one.noise),
              "" if one.relative is None else f"{one.relative:.1%}"] for one in found.noise],
            numeric={0, 1, 2},
        ),
    ]  # fmt: skip
    if found.errors:
        parts.append(whole_numbers(
            ["mean error of", "numbers", "tables alone", "with the model"],
            [[e.of, f"{e.numbers:,}", number(e.tables), number(e.weighed)] for e in found.errors],
            numeric={1, 2, 3},
        ))  # fmt: skip
    if found.questions:
        parts.append(whole_numbers(
            ["largest standard error of", "numbers", "tables alone", "with the model"],
            [[f"{q.column} in {q.sql}", f"{q.numbers:,}", number(q.tables), number(q.weighed)]
             for q in found.questions],
            numeric={1, 2, 3},
        ))  # fmt: skip
    return Group(*parts)


def plan_view(found: Foresight) -> Any:
    """Parameters and size, errors, how they change, and what an error allows."""
    from rich.console import Group
    from rich.markup import escape

    parts: list[Any] = [
        table_of(["", ""], facts(found), show_header=False),
        whole_numbers(
            ["expected error of", "numbers", "mean", "largest", "per cent"],
            list(map(line, found.errors)),
            numeric={1, 2, 3, 4},
        ),
        curve_view("γ", found.by_posterior, found.promise.posterior),
        curve_view("k", found.by_prior_factor, found.prior_factor),
    ]
    if found.strongest:
        parts.append(strongest_view(found.strongest))
    parts += [f"[dim]{escape(f'{limit.theorem}: {limit.says}')}[/dim]" for limit in found.limits]
    return Group(*parts)


def facts(found: Foresight) -> list[list[str]]:
    """The plan's main numbers with their names."""
    from voile.schema.schema import large

    p, m = found.promise, found.mechanism
    add_remove, swap = found.epsilon("add-remove"), found.epsilon("swap")
    disclosed = (
        " (of the view; the release also shows n)" if found.ground.options.tells_rows else ""
    )
    return [
        ["table", f"{found.rows:,} rows, {large(found.domain_size)} possible tuples"],
        ["promise", f"beliefs up to {p.prior:.3g} (k = {found.prior_factor:.4g}) stay below "
                    f"{p.posterior:.3g} ({p.adversary} adversaries, {m.form})"],
        ["parameters", f"retention {m.retention:.6g}, noise {m.noise:.6g}"],
        ["size", f"about {found.size.rows:,.0f} rows, {bytes_in_words(found.size.bytes)}"],
        ["expected error", f"{number(found.expected_error)}, {found.measure}"],
        ["ε", f"{number(add_remove)} to add or remove a record{disclosed}, "
              f"{number(swap)} to exchange one"],
        ["if linked", f"someone who knows that one of a list of records is there: up to "
                      f"{chance(found.linked_posterior)}"],
    ]  # fmt: skip


def line(error: ExpectedError) -> list[str]:
    """A row for one expected error."""
    from rich.markup import escape

    from voile.kinds.choosing import in_per_cent

    of = f"{error.column} in {error.of}" if error.column else error.of
    if error.unbounded:
        of += f" (beyond the range of its values in {error.unbounded:,} of {error.numbers:,})"
    share = error.relative
    of_number = "–" if share is None else in_per_cent(share)
    return [escape(of), f"{error.numbers:,}", number(error.mean), number(error.largest), of_number]


def curve_view(name: str, points: Sequence[CurvePoint], own: float) -> Any:
    """A few points of a curve, with the plan's own among them."""
    places = sorted({round(i * (len(points) - 1) / (SHOWN - 1)) for i in range(SHOWN)})
    chosen = [p for i, p in enumerate(points) if i in places or p.at == own]

    def marked(text: str, point: CurvePoint) -> str:
        return f"[bold]{text}[/bold]" if point.at == own else text

    cells = [[marked(f"{p.at:.4g}", p), marked(number(p.expected_error), p)] for p in chosen]
    if is_narrow(TURNED):
        return whole_numbers([name, "expected error"], cells, numeric={0, 1})
    headings = [name, *(at for at, _ in cells)]
    row = ["expected error", *(error for _, error in cells)]
    return whole_numbers(headings, [row], numeric=range(1, len(headings)))


def strongest_view(strongest: StrongestPromises) -> Any:
    """The two ends that the requested error allows."""
    by_posterior, by_prior = strongest.least_errors
    rows = [
        row("smallest γ", strongest.smallest_posterior, by_posterior),
        row("largest k", strongest.largest_prior, by_prior),
    ]
    title = f"the strongest promise with an expected error of at most {strongest.max_error:g}"
    return table_of(["", "promise", "error"], rows, title=title)


def row(name: str, best: PromiseCandidate | None, least: float) -> list[str]:
    """A row for one of the strongest promises."""
    if best is None:
        return [name, "none", f"at least {number(least)}"]
    promise = f"k = {best.prior_factor:.4g}, γ = {best.promise.posterior:.4g}"
    return [name, promise, number(best.expected_error)]


def boundary_view(plane: Plane) -> Any:
    """Where the table stands, and the regions along a few priors."""
    from rich.console import Group

    from voile.schema.schema import large

    here = plane.to_dict()["position"]
    share = here["error_share"]
    position = f"d = {plane.prior:.3g} ({plane.prior_factor:.4g}·n/m), γ = {plane.posterior:g}: "
    position += f"[bold]{here['region']}[/bold]"
    if share is not None:
        position += f"; αβ's 95 % error of the worst count is {share:.3g}·n"
    headings = [
        "prior d", "possible:\nγ ≥", "error\n10 %:\nγ ≥", "error\n1 %:\nγ ≥", "impos-\nsible:\nγ ≤"
    ]  # fmt: skip
    step = max(1, len(plane.points) // 10)
    rows = [
        [f"{p.prior:.2e}", *(short(x) for x in p.possible_from), short(p.impossible_up_to)]
        for p in plane.points[::step]
    ]
    size = f"n = {plane.boundary.rows:,} rows, m = {large(plane.boundary.domain_size)} tuples"
    return Group(size, plane.boundary.in_words(), position, whole_numbers(headings, rows, range(5)))


def short(value: float | None) -> str:
    """A probability, or a dash."""
    return "–" if value is None else chance(value)


# ------------------------------------------------- what people see of a plan of local perturbation


COLUMNS = (
    "alone: the retention if the column were the only one; 0.1 →: what that belief may become; "
    "±: standard error of a count of one value, or of half of the values, in the worst table"
)
CONDITIONS = (
    "at most, for any conditions on so many columns and any table: those columns that are retained "
    "least"
)


def show_local_plan(found: LocalPlan, *, as_json: bool) -> None:
    """A plan, and the line that would carry it out."""
    show(found.to_dict() if as_json else None, lambda: local_plan_view(found))
    if not as_json and found.command:
        show_lines([found.command])


def local_plan_view(found: LocalPlan) -> Any:
    """The row, its columns, the errors, and what was measured on the table."""
    from rich.console import Group

    parts: list[Any] = [
        table_of(["", ""], local_facts(found), show_header=False),
        columns_view(found),
        errors_view(found),
    ]
    if found.measured:
        parts += measured_views(found.measured)
    return Group(*parts)


def local_facts(found: LocalPlan) -> list[list[str]]:
    """The plan's main numbers with their names."""
    from voile.schema.schema import large

    sent = "any number of rows" if found.rows is None else f"{found.rows:,} rows"
    rows = [
        ["rows", f"{sent}, {len(found.columns)} columns, {large(found.schema.size)} tuples"],
        ["a whole row", f"ε = {number(found.beliefs.epsilon)}: {becomes(found.beliefs)}"],
    ]
    if found.whole_row:
        kept = f"with --whole-rows, retention {found.whole_row:.6g} keeps this"
        rows.append(["whole rows", kept])
    clients = found.clients
    if clients:
        needed = (
            f"for ±{found.options.error:g} of a fraction at {found.options.confidence:g}, any "
            "condition "
            f"on one column: {clients.normal:,} (normal), {clients.hoeffding:,} (Hoeffding), "
            f"{clients.theorem1:,} (Theorem 1 as printed)"
        )
        rows.append(["rows needed", needed])
    return rows


def becomes(beliefs: Beliefs) -> str:
    """What beliefs may become, in words."""
    return "a belief of " + ", of ".join(
        f"{pair['before']:g} may become {chance(pair['after'])}" for pair in beliefs.to_list()
    )


def columns_view(found: LocalPlan) -> Any:
    """The columns with their retentions and errors."""
    from rich.markup import escape

    headings = ["column", "values", "retention", "alone", "ε", "0.1 →", "± value", "± half"]
    rows = [
        [
            escape(column.name),
            f"{column.size:,}",
            chance(column.retention, 4),
            "–" if column.alone is None else chance(column.alone, 4),
            number(column.beliefs.epsilon),
            chance(column.beliefs.after[1]),
            number(column.stderr(1 / column.size)),
            number(column.stderr(0.5)),
        ]
        for column in found.columns
    ]
    kept = [place for place in range(len(headings)) if any(row[place] != "–" for row in rows)]
    return whole_numbers(
        [headings[place] for place in kept],
        [[row[place] for place in kept] for row in rows],
        numeric=range(1, len(kept)),
        caption=COLUMNS,
        caption_justify="left",
    )


def errors_view(found: LocalPlan) -> Any:
    """The errors of conjunctions."""
    headings = ["conditions", "standard error\nof a count", "of the\nfraction"]
    headings.append(f"± at {found.options.confidence:g}")
    if found.options.error is not None:
        headings += [f"rows for\n±{found.options.error:g}", "rows by\nHoeffding"]
    rows = [error_row(error)[: len(headings)] for error in found.errors]
    return whole_numbers(
        headings,
        rows,
        numeric=range(1, len(headings)),
        caption=CONDITIONS,
        caption_justify="left",
    )


def error_row(error: ConjunctionError) -> list[str]:
    """A row for one number of conditions."""
    data = error.to_dict()
    count = len(error.retentions)
    name = "on 1 column" if count == 1 else f"on {count}"
    needed = [whole(error.rows_needed), whole(error.rows_hoeffding)]
    if error.rows is None:
        return [name, f"{error.factor:,.4g}·√n", f"{error.factor:,.4g}/√n", "–", *needed]
    return [name, *(number(data[key]) for key in ("stderr", "share", "margin")), *needed]


def whole(value: int | None) -> str:
    """A whole number, or a dash."""
    return "–" if value is None else f"{value:,}"


def measured_views(measured: TableMeasures) -> list[Any]:
    """Sets of values as one hears of them, then values as the server sees them."""
    from rich.markup import escape

    headings = ["measured\nin the table", "largest\ns", "median\ns", "cell", "before", "after"]
    judged = any(one.exact_retention is not None for one in measured.sets)
    if judged:
        headings.append("retention\nwithout a\nbreach")
    sets = [set_row(one)[: len(headings)] for one in measured.sets]
    numeric = {1, 2, 4, 5, 6}
    values = [
        [escape(", ".join(one.columns)), chance(one.largest), chance(one.mean)]
        for one in measured.values
    ]
    return [
        whole_numbers(headings, sets, numeric=numeric),
        whole_numbers(["if the value itself is seen", "largest", "mean"], values, numeric={1, 2}),
    ]


def set_row(one: MeasuredSet) -> list[str]:
    """A row for one set of columns."""
    from rich.markup import escape

    after = f"[red]{chance(one.after)}[/red]" if one.breached else chance(one.after)
    found = [chance(one.before), after] if one.cell else ["–", "–"]
    return [
        escape(", ".join(one.columns)),
        number(one.largest_relative),
        f"{one.median_relative:.3g}",
        escape(", ".join(one.cell)) or "–",
        *found,
        "–" if one.exact_retention is None else chance(one.exact_retention, 4),
    ]
