"""What people see of a plan of local perturbation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import show, show_lines, table_of
from voile.terminal.narrow import whole_numbers
from voile.terminal.planning import number

if TYPE_CHECKING:
    from voile.evaluate.planning.local_measure import Measured, MeasuredSet
    from voile.evaluate.planning.local_plan import Beliefs, ConjunctionError, LocalPlan


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
        table_of(["", ""], facts(found), show_header=False),
        columns_view(found),
        errors_view(found),
    ]
    if found.measured:
        parts += measured_views(found.measured)
    return Group(*parts)


def facts(found: LocalPlan) -> list[list[str]]:
    from voile.schema.schema import large

    sent = "any number of rows" if found.rows is None else f"{found.rows:,} rows"
    rows = [
        ["rows", f"{sent}, {len(found.columns)} columns, {large(found.schema.size)} tuples"],
        ["a whole row", f"ε = {number(found.beliefs.epsilon)}: {becomes(found.beliefs)}"],
    ]
    if found.whole_row:
        kept = f"retention {found.whole_row:.6g} keeps this"
        rows.append(["one coin", f"for the whole row instead: {kept}"])
    clients = found.clients
    if clients:
        told = (
            f"for ±{found.options.error:g} of a fraction at {found.options.confidence:g}, any "
            "condition "
            f"on one column: {clients.normal:,} (normal), {clients.hoeffding:,} (Hoeffding), "
            f"{clients.theorem1:,} (Theorem 1 as printed)"
        )
        rows.append(["rows needed", told])
    return rows


def becomes(beliefs: Beliefs) -> str:
    from voile.privacy.guarantee import chance

    return "a belief of " + ", of ".join(
        f"{pair['before']:g} may become {chance(pair['after'])}" for pair in beliefs.to_list()
    )


def columns_view(found: LocalPlan) -> Any:
    from rich.markup import escape

    from voile.privacy.guarantee import chance

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
    data = error.to_dict()
    count = len(error.retentions)
    name = "on 1 column" if count == 1 else f"on {count}"
    needed = [whole(error.rows_needed), whole(error.rows_hoeffding)]
    if error.rows is None:
        return [name, f"{error.factor:,.4g}·√n", f"{error.factor:,.4g}/√n", "–", *needed]
    return [name, *(number(data[key]) for key in ("stderr", "share", "margin")), *needed]


def whole(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def measured_views(measured: Measured) -> list[Any]:
    """Sets of values as one hears of them, then values as the server sees them."""
    from rich.markup import escape

    from voile.privacy.guarantee import chance

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
    from rich.markup import escape

    from voile.privacy.guarantee import chance

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
