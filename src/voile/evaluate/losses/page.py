"""The losses of a release as a report: both axes, all other measures, whom it shows worst."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.evaluate import pages
from voile.evaluate.drawing import BLUE, OWN_SCALES, SOFT, inline_chart, load_altair, theme
from voile.evaluate.losses.measured import Losses
from voile.evaluate.page_pictures import PicturePanel, panels
from voile.evaluate.pages import NextStep, Report, head_cell, number_cell, row, table
from voile.units import counted, percent, rounded

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 300, 130
PAGE_SIZE = (270, 130)
OWN = "this release"
SOURCE = "Made with Voile from the private table: not for publication."


def measures(losses: Losses) -> list[tuple[str, str, str]]:
    """Every measure with its value and what it is, both axes first."""
    return [*main_measures(losses), *other_measures(losses)]


def main_measures(losses: Losses) -> list[tuple[str, str, str]]:
    """The two axes."""
    found = [
        ("P_loss", rounded(losses.p_loss),
         "worst belief about one person against the whole table; "
         f"{rounded(losses.p_loss_revealed)} if all is shown"),
    ]  # fmt: skip
    if losses.p_loss_permitted is not None:
        permitted = rounded(losses.p_loss_permitted)
        found.append(("P_loss permitted", permitted, "the worst that could be shown"))
    if losses.u_loss is None or losses.u_loss_trivial is None:
        return [*found, ("U_loss", "–", f"no population has {losses.min_support:.3g} of the rows")]
    found.append(
        ("U_loss", rounded(losses.u_loss),
         f"mean over {losses.populations:,} populations of {losses.min_support:.3g} of the rows or "
         f"more; {rounded(losses.u_loss_trivial)} if nothing is shown")
    )  # fmt: skip
    return found


def other_measures(losses: Losses) -> list[tuple[str, str, str]]:
    """All other measures."""
    found = []
    if (asked := losses.workload) is not None and asked.relative_error is not None:
        found.append(
            ("relative error", f"{asked.relative_error:.1%}",
             f"of {asked.number:,} counts, {asked.dimension} columns, selectivity "
             f"{asked.selectivity:g}")
        )  # fmt: skip
    if (of := losses.classes) is not None:
        found += [
            ("GenILoss", rounded(of.gen_iloss), "width of ranges: 0 as in the table, 1 suppressed"),
            ("precision", rounded(of.precision), "height of values: 1 as in the table, 0 '*'"),
            ("non-uniform entropy", rounded(of.non_uniform_entropy), "what is open about values"),
            ("KL", rounded(of.kl), "from the table's joint distribution to what is implied"),
            ("discernibility", f"{of.discernibility:,}", "rows that look alike, summed over rows"),
            ("class size", f"{of.average_class_size:,.1f}",
             f"on average; {of.normalised_class_size:.3g} × the smallest"),
        ]  # fmt: skip
    of_rows = losses.accuracy
    by_class = (
        "" if of_rows.class_majority is None else f", {of_rows.class_majority:.1%} by its class"
    )
    found.append(
        ("accuracy", f"{of_rows.release:.1%}",
         f"naive Bayes; {of_rows.table:.1%} from the table{by_class}, {of_rows.majority:.1%} by "
         "the most frequent value")
    )  # fmt: skip
    return found


# ---------------------------------------------------------------------- the picture


def bars(losses: Losses) -> list[tuple[str, str, list[tuple[str, float]]]]:
    """What is drawn: a title, what it means, and a bar for the release and for what bounds it."""
    accuracy = losses.accuracy
    found = [
        ("Privacy lost (P_loss)", "worst belief about one person",
         [(OWN, losses.p_loss),
          *([] if losses.p_loss_permitted is None
            else [("permitted", losses.p_loss_permitted)]),
          ("the table itself", losses.p_loss_revealed)]),
    ]  # fmt: skip
    if losses.u_loss is not None and losses.u_loss_trivial is not None:
        found.append(
            ("Utility lost (U_loss)", f"mean over {losses.populations:,} populations",
             [(OWN, losses.u_loss), ("nothing shown", losses.u_loss_trivial)])
        )  # fmt: skip
    found.append(
        ("Accuracy", "rows whose value naive Bayes predicts",
         [(OWN, accuracy.release), ("the table itself", accuracy.table),
          ("most frequent value", accuracy.majority)])
    )  # fmt: skip
    return found


def panel(values: list[tuple[str, float]]) -> Any:
    """Bars below each other, with their numbers."""
    alt = load_altair()
    rows = [
        {"of": name, "value": value, "text": rounded(value), "own": name == OWN}
        for name, value in values
    ]
    most = max([value for _, value in values] + [1e-12])
    base = inline_chart(rows).encode(
        y=alt.Y("of:N", sort=None, title=None, axis=alt.Axis(grid=False, labelLimit=180)),
        x=alt.X("value:Q", title=None, axis=None, scale=alt.Scale(domain=[0, 1.3 * most])),
    )
    shade = alt.condition("datum.own", alt.value(BLUE), alt.value(SOFT))
    return alt.layer(
        base.mark_bar(cornerRadiusEnd=2).encode(color=shade),
        base.mark_text(align="left", dx=5, fontSize=13).encode(text="text:N", color=shade),
    ).properties(width=WIDTH, height=HEIGHT)


def draw(losses: Losses) -> alt.HConcatChart:
    """The bars beside each other."""
    alt = load_altair()
    drawn = [
        panel(values).properties(title=alt.TitleParams(title, subtitle=note))
        for title, note, values in bars(losses)
    ]
    return theme(
        alt.hconcat(*drawn, spacing=40).resolve_scale(**OWN_SCALES, y="independent"),
        title=title_of(losses),
        subtitle=lead_of(losses),
        caption=SOURCE,
    )


# ---------------------------------------------------------------------- the report


def title_of(losses: Losses) -> str:
    """What the report is about."""
    return f"What {Path(losses.release).name} costs"


def lead_of(losses: Losses) -> str:
    """What was measured."""
    about = f"{losses.sensitive} given {', '.join(losses.qi)}"
    return f"{losses.kind}, {counted(losses.rows, 'row')}: {about}."


def report(losses: Losses, path: str, command: str) -> Report:
    """Both axes, all measures, and whom it shows worst; the release is at `path`.

    `command` measures other releases of the same table.
    """
    drawn = [
        PicturePanel(
            title, panel(values), f"Bar chart: {title}. {spoken(values)}.", note, PAGE_SIZE
        )
        for title, note, values in bars(losses)
    ]
    return Report(
        f"Losses of {Path(losses.release).name}",
        title_of(losses),
        lead_of(losses),
        [
            pages.headline(told(losses)),
            panels(drawn),
            pages.heading("All measures"),
            pages.facts(
                "Measures, each with what it means", measures(losses),
                ["measure", "value", "what it is"],
            ),
            worst_table(losses),
        ],
        [
            NextStep("Measure other releases of the table beside it:", command),
            NextStep("Read what it promises:", shlex.join(["voile", "describe", path])),
        ],
        SOURCE,
    )  # fmt: skip


def spoken(values: list[tuple[str, float]]) -> str:
    """The bars in words."""
    return ", ".join(f"{name}: {rounded(value)}" for name, value in values)


def told(losses: Losses) -> str:
    """Both losses as shares of the largest."""
    part = losses.p_loss / losses.p_loss_revealed if losses.p_loss_revealed else 0.0
    text = f"It gives away {percent(part, rough=True)} of the privacy that the table itself would"
    if losses.u_loss is None or not losses.u_loss_trivial:
        return f"{text}."
    lost = losses.u_loss / losses.u_loss_trivial
    return f"{text}, and loses {percent(lost, rough=True)} of what showing nothing would."


def worst_table(losses: Losses) -> str:
    """The populations that are shown worst."""
    if not losses.worst:
        return ""
    rows = [
        row(head_cell(one.population), number_cell(f"{one.rows:,}"), number_cell(rounded(one.loss)))
        for one in losses.worst
    ]
    heads = ["population", "rows", "loss"]
    return pages.heading("Shown worst") + table("Populations shown worst", heads, rows, {1, 2})
