"""What people see of plans and of the boundary."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from voile.terminal import show, show_lines, table_of
from voile.terminal.narrow import is_narrow, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voile.evaluate.planning.boundary import Plane
    from voile.evaluate.planning.expected import ExpectedError
    from voile.evaluate.planning.foresight import CurvePoint, Foresight
    from voile.evaluate.planning.strongest import Candidate, Strongest

SHOWN = 7
"""Points of a curve in a terminal."""
UNIT = 1000
TURNED = 100
"""Columns below which curves are listed downwards."""


def show_plan(found: Foresight, *, as_json: bool) -> None:
    """A plan, and the lines that publish it, which are not broken to fit the screen."""
    show(found.to_dict() if as_json else None, lambda: plan_view(found))
    if as_json:
        return
    best = found.strongest
    candidates = [best.smallest_posterior, best.largest_prior] if best else []
    told = [found.ground.options, *(candidate.options for candidate in candidates if candidate)]
    show_lines([found.command(options) for options in told])


def plan_view(found: Foresight) -> Any:
    """Parameters and size, errors, how they change, and what an error allows."""
    from rich.console import Group
    from rich.markup import escape

    parts: list[Any] = [
        table_of(["", ""], facts(found), show_header=False),
        whole_numbers(
            ["expected error of", "numbers", "mean", "largest"],
            list(map(line, found.errors)),
            numeric={1, 2, 3},
        ),
        curve_view("γ", found.by_posterior, found.promise.posterior),
        curve_view("k", found.by_prior_factor, found.prior_factor),
    ]
    if found.strongest:
        parts.append(strongest_view(found.strongest))
    parts += [f"[dim]{escape(f'{limit.theorem}: {limit.says}')}[/dim]" for limit in found.limits]
    return Group(*parts)


def facts(found: Foresight) -> list[list[str]]:
    from voile.privacy.guarantee import chance
    from voile.schema.schema import large

    p, m = found.promise, found.mechanism
    add_remove, swap = found.epsilon("add-remove"), found.epsilon("swap")
    told = " (of the view; the release also tells n)" if found.ground.options.tells_rows else ""
    return [
        ["table", f"{found.rows:,} rows, {large(found.domain_size)} possible tuples"],
        ["promise", f"beliefs up to {p.prior:.3g} (k = {found.prior_factor:.4g}) stay below "
                    f"{p.posterior:.3g} ({p.adversary} adversaries, {m.form})"],
        ["parameters", f"retention {m.retention:.6g}, noise {m.noise:.6g}"],
        ["size", f"about {found.size.rows:,.0f} rows, {bytes_in_words(found.size.bytes)}"],
        ["expected error", f"{number(found.expected_error)}, {found.measure}"],
        ["ε", f"{number(add_remove)} to add or remove a record{told}, "
              f"{number(swap)} to exchange one"],
        ["if linked", f"someone who knows that one of a list of records is there: up to "
                      f"{chance(found.linked_posterior)}"],
    ]  # fmt: skip


def line(error: ExpectedError) -> list[str]:
    from rich.markup import escape

    of = f"{error.column} in {error.of}" if error.column else error.of
    if error.unbounded:
        of += f" (beyond the range of its values in {error.unbounded:,} of {error.numbers:,})"
    return [escape(of), f"{error.numbers:,}", number(error.mean), number(error.largest)]


def number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.4g}" if value < UNIT or math.isinf(value) else f"{value:,.0f}"


def bytes_in_words(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < UNIT:
            return f"{size:,.3g} {unit}"
        size /= UNIT
    return f"{size:,.3g} TB"


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


def strongest_view(strongest: Strongest) -> Any:
    """The two ends that the requested error allows."""
    by_posterior, by_prior = strongest.least_errors
    rows = [
        row("smallest γ", strongest.smallest_posterior, by_posterior),
        row("largest k", strongest.largest_prior, by_prior),
    ]
    title = f"the strongest promise with an expected error of at most {strongest.max_error:g}"
    return table_of(["", "promise", "error"], rows, title=title)


def row(name: str, best: Candidate | None, least: float) -> list[str]:
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
    told = f"d = {plane.prior:.3g} ({plane.prior_factor:.4g}·n/m), γ = {plane.posterior:g}: "
    told += f"[bold]{here['region']}[/bold]"
    if share is not None:
        told += f"; αβ's 95 % error of the worst count is {share:.3g}·n"
    headings = [
        "prior d", "possible:\nγ ≥", "error\n10 %:\nγ ≥", "error\n1 %:\nγ ≥", "impos-\nsible:\nγ ≤"
    ]  # fmt: skip
    step = max(1, len(plane.points) // 10)
    rows = [
        [f"{p.prior:.2e}", *(short(x) for x in p.possible_from), short(p.impossible_up_to)]
        for p in plane.points[::step]
    ]
    size = f"n = {plane.boundary.rows:,} rows, m = {large(plane.boundary.domain_size)} tuples"
    return Group(size, plane.boundary.in_words(), told, whole_numbers(headings, rows, range(5)))


def short(value: float | None) -> str:
    from voile.privacy.guarantee import chance

    return "–" if value is None else chance(value)
