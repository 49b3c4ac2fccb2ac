"""A plan as a picture: the expected error against γ and against k, with the plan's own point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeGuard

from voile.evaluate.drawing import (
    INK,
    METHOD_COLOURS,
    OWN_SCALES,
    SOFT,
    edged_text,
    inline_chart,
    line_scales,
    load_altair,
    logarithmic,
    requested_error,
    theme,
)
from voile.evaluate.planning.expected import ExpectedError
from voile.evaluate.planning.foresight import CurvePoint, Foresight

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 430, 330
LABEL = 60
CAPTION = (
    "Expected errors, computed from the private table before publishing: for the steward, not for "
    "publication. Made with Voile."
)


def draw(found: Foresight) -> alt.HConcatChart:
    """Two panels that share their error axis."""
    alt = load_altair()
    both = alt.hconcat(*panels(found), spacing=46).resolve_scale(y="shared", color="shared")
    framed = alt.vconcat(both).resolve_scale(**OWN_SCALES)
    return theme(
        framed,
        title=title(found),
        subtitle=_subtitle(found),
        caption=_caption(found),
    )


def title(found: Foresight) -> str:
    """What a plan is about."""
    return f"How far off answers about {found.ground.prepared.name} would be"


def panels(found: Foresight) -> list[Any]:
    """The error against γ, and against k; both on one axis of errors."""
    alt = load_altair()
    names = labels(found.errors)
    sides = [
        (found.by_posterior, "posterior γ, at this prior", found.promise.posterior),
        (found.by_prior_factor, "prior factor k, at this posterior", found.prior_factor),
    ]
    return [
        alt.layer(
            _lines(alt, found, points, axis, names), *_marks(alt, found, points, own)
        ).properties(width=WIDTH, height=HEIGHT)
        for points, axis, own in sides
    ]


def error_in_words(error: float) -> str:
    """The error with four digits, or that it is larger than any value."""
    return "beyond the range of the values" if math.isinf(error) else f"{error:,.4g}"


def labels(errors: tuple[ExpectedError, ...]) -> list[str]:
    """A short name for each line, none twice; as many as there are colours."""
    found: list[str] = []
    for line in errors[: len(METHOD_COLOURS)]:
        name = f"{line.column}: {line.of}" if line.column else line.of
        short = name if len(name) <= LABEL else name[: LABEL - 1] + "…"
        while short in found:
            short += "′"
        found.append(short)
    return found


def _subtitle(found: Foresight) -> list[str]:
    size = found.size
    return [
        f"d = {found.promise.prior:.3g}, γ = {found.promise.posterior:g}, "
        f"{found.promise.adversary} adversaries: about {size.rows:,.0f} rows, "
        f"{size.bytes / 1e6:,.3g} MB",
        f"expected error {error_in_words(found.expected_error)} ({found.measure})",
    ]


def _caption(found: Foresight) -> str:
    left_out = len(found.errors) - len(METHOD_COLOURS)
    return CAPTION if left_out <= 0 else f"{left_out} more columns are not drawn. {CAPTION}"


def _lines(
    alt: Any, found: Foresight, points: tuple[CurvePoint, ...], title: str, names: list[str]
) -> Any:
    rows = [
        {"at": point.at, "error": mean, "of": name}
        for point in points
        for name, mean in zip(names, point.means, strict=False)
        if drawn(mean)
    ]
    beside = 1 if found.errors[0].column else len(names)
    legend = alt.Legend(title=None, orient="top", labelLimit=520, columns=beside, symbolSize=300)
    both = (*found.by_posterior, *found.by_prior_factor)
    errors = [mean for point in both for mean in point.means if drawn(mean)]
    colours, dashes = line_scales(names)
    return (
        inline_chart(rows)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("at:Q", **logarithmic([point.at for point in points], title, air=1.0)),
            y=alt.Y("error:Q", **logarithmic(errors, "expected error", air=1.3)),
            color=alt.Color("of:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("of:N", scale=dashes, legend=legend),
            tooltip=[
                alt.Tooltip("of:N", title="of"),
                alt.Tooltip("at:Q", title=title, format=".3~g"),
                alt.Tooltip("error:Q", title="expected error", format=",.3~r"),
            ],
        )
    )


def drawn(mean: float | None) -> TypeGuard[float]:
    """Whether a logarithmic axis has a place for it."""
    return mean is not None and 0 < mean < math.inf


def _marks(alt: Any, found: Foresight, points: tuple[CurvePoint, ...], own: float) -> list[Any]:
    """The plan's own place on every line, and the requested error."""
    means = [mean for point in points if point.at == own for mean in point.means]
    rows = [{"at": own, "error": mean} for mean in means if drawn(mean)]
    here = inline_chart(rows).encode(x="at:Q", y="error:Q")
    number = alt.Text("error:Q", format=",.3~r")
    named = inline_chart(apart(rows)).encode(x="at:Q", y="error:Q", text=number)
    layers = [
        inline_chart([{"at": own}]).mark_rule(color=SOFT, strokeDash=[2, 3]).encode(x="at:Q"),
        here.mark_point(filled=True, size=80, color=INK, opacity=1),
        *edged_text(named, align="left", dx=9, dy=-11, fontSize=13, fontWeight=600, color=INK),
    ]
    if found.strongest:
        requested = found.strongest.max_error
        text = f"requested: {requested:g}"
        layers += requested_error(requested, text, align="left", dx=4, x=0)
    return layers


def apart(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """Those whose numbers do not cover one another, from the largest down."""
    kept: list[dict[str, float]] = []
    for row in sorted(rows, key=lambda row: -row["error"]):
        if not kept or kept[-1]["error"] / row["error"] > 1.4:
            kept.append(row)
    return kept
