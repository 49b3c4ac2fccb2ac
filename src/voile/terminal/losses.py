"""What people see of the losses of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of
from voile.units import counted

if TYPE_CHECKING:
    from voile.evaluate.losses.measured import Losses


def loss_view(losses: Losses) -> Any:
    """Both axes, then all other measures with what each means, then who is told worst."""
    from rich.console import Group
    from rich.markup import escape

    about = f"{losses.sensitive} given {', '.join(losses.qi)}"
    parts: list[Any] = [
        f"[bold]{escape(losses.release)}[/bold] ({losses.kind}, {counted(losses.rows, 'row')}): "
        f"{escape(about)}",
        table_of(["measure", "value", "what it is"], [*main_rows(losses), *other_rows(losses)]),
    ]
    if losses.worst:
        rows = [[escape(one.population), f"{one.rows:,}", number(one.loss)] for one in losses.worst]
        parts.append(table_of(["told worst", "rows", "loss"], rows))
    return Group(*parts)


def main_rows(losses: Losses) -> list[list[str]]:
    found = [
        ["P_loss", number(losses.p_loss),
         f"worst belief about one person against the whole table; {number(losses.p_loss_revealed)} "
         "if all is told"],
    ]  # fmt: skip
    if losses.p_loss_permitted is not None:
        found.append(
            ["P_loss permitted", number(losses.p_loss_permitted), "the worst that could be shown"]
        )
    if losses.u_loss is None or losses.u_loss_trivial is None:
        return [*found, ["U_loss", "–", f"no population has {losses.min_support:.3g} of the rows"]]
    found.append(
        ["U_loss", number(losses.u_loss),
         f"mean over {losses.populations:,} populations of {losses.min_support:.3g} of the rows or "
         f"more; {number(losses.u_loss_trivial)} if nothing is told"]
    )  # fmt: skip
    return found


def other_rows(losses: Losses) -> list[list[str]]:
    found = []
    if (asked := losses.workload) is not None and asked.relative_error is not None:
        found.append(
            ["relative error", f"{asked.relative_error:.1%}",
             f"of {asked.number:,} counts, {asked.dimension} columns, selectivity "
             f"{asked.selectivity:g}"]
        )  # fmt: skip
    if (of := losses.classes) is not None:
        found += [
            ["GenILoss", number(of.gen_iloss), "width of ranges: 0 as in the table, 1 suppressed"],
            ["precision", number(of.precision), "height of values: 1 as in the table, 0 '*'"],
            ["non-uniform entropy", number(of.non_uniform_entropy), "what is open about values"],
            ["KL", number(of.kl), "from the table's joint distribution to what is implied"],
            ["discernibility", f"{of.discernibility:,}", "rows that look alike, summed over rows"],
            ["class size", f"{of.average_class_size:,.1f}",
             f"on average; {of.normalised_class_size:.3g} × the smallest"],
        ]  # fmt: skip
    of_rows = losses.accuracy
    told = "" if of_rows.class_majority is None else f", {of_rows.class_majority:.1%} by its class"
    found.append(
        ["accuracy", f"{of_rows.release:.1%}",
         f"naive Bayes; {of_rows.table:.1%} from the table{told}, {of_rows.majority:.1%} by the "
         "most frequent value"]
    )  # fmt: skip
    return found


def number(value: float) -> str:
    return f"{value:.4g}"
