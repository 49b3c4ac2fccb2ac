"""Methods under one promise as a picture: the expected error against ε."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from voile.evaluate import drawing
from voile.evaluate.planning.comparison import MethodComparison, headline
from voile.kinds.choosing import USEFUL

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 560, 340
EPSILON_AXIS = "ε (smaller promises more)"
ERROR_AXIS = "error of a count of 1 % of the rows, in %"
LINE = 84
"""Letters of a line below the title."""
CAPTION = (
    "From public numbers: the domain, a noisy number of rows, and the promise. Made with Voile."
)


def draw(found: MethodComparison) -> alt.VConcatChart:
    """The picture with its title, and below it where the numbers come from."""
    own = found.promise["epsilon"]
    return drawing.theme(
        drawing.load_altair().vconcat(panel(found)).resolve_scale(**drawing.OWN_SCALES),
        title=title(found),
        subtitle=[headline(found), *wrap(f"ε = {own:g}: {found.in_words}", LINE)],
        caption=CAPTION,
    )


def title(found: MethodComparison) -> str:
    """What a comparison is about."""
    return f"What {found.name} could be published with"


def panel(found: MethodComparison) -> Any:
    """A line for each method, the promise's own ε, and where a release is of no use."""
    alt = drawing.load_altair()
    names = [one.method for one in found.methods]
    rows: list[dict[str, Any]] = [
        {"epsilon": point.epsilon, "error": 100 * error, "method": method}
        for point in found.by_epsilon
        for method, error in point.errors.items()
    ]
    colours, dashes = drawing.line_scales(names)
    legend = alt.Legend(title=None, orient="top", symbolSize=300)
    epsilons, errors = [r["epsilon"] for r in rows], [r["error"] for r in rows]
    errors.append(100 * USEFUL)  # its line and its name are within the picture
    lines = (
        drawing.inline_chart(rows)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("epsilon:Q", **drawing.logarithmic(epsilons, EPSILON_AXIS, air=1.0)),
            y=alt.Y("error:Q", **drawing.logarithmic(errors, ERROR_AXIS, air=1.3)),
            color=alt.Color("method:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("method:N", scale=dashes, legend=legend),
            tooltip=[
                alt.Tooltip("method:N"),
                alt.Tooltip("epsilon:Q", title="ε", format=".3~g"),
                alt.Tooltip("error:Q", title="error, %", format=",.3~r"),
            ],
        )
    )  # fmt: skip
    own = found.promise["epsilon"]
    here = [{"epsilon": own, "error": 100 * found.expected_error}]
    layers = [
        lines,
        drawing.inline_chart([{"epsilon": own}]).mark_rule(color=drawing.SOFT, strokeDash=[2, 3])
        .encode(x="epsilon:Q"),
        drawing.inline_chart(here).mark_point(filled=True, size=90, color=drawing.INK, opacity=1)
        .encode(x="epsilon:Q", y="error:Q"),
        *drawing.requested_error(
            100 * USEFUL, f"of use below {100 * USEFUL:g} %", align="left", dx=4, x=0
        ),
    ]  # fmt: skip
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
