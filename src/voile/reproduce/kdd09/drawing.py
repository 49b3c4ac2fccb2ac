"""What all pictures of this paper share: curves on two axes, and what is printed beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voile.reproduce import look
from voile.reproduce.figure import Columns
from voile.reproduce.kdd09.study import Points

P_TITLE = "P_loss: how far a belief about one person moves"
U_TITLE = "U_loss: how wrong large populations are told"


def as_columns(curves: Mapping[str, Points], names: Sequence[str]) -> dict[str, list[Any]]:
    """Points of all curves, one below the other, as a table with these columns."""
    rows = [(curve, point) for curve, points in curves.items() for point in points]
    return {
        "curve": [curve for curve, _ in rows],
        **{name: [point[name] for _, point in rows] for name in names},
    }


def curves_chart(columns: Columns, y: str, title: str, **options: Any) -> Any:
    """A line a curve, P_loss along."""
    usual: dict[str, Any] = {
        "width": 760, "height": 420, "domains": ((0, 0.6), ()), "ticks": (7, 6),
        "formats": ("~g", "~g"),
    }  # fmt: skip
    return look.lines(columns, "p_loss", y, "curve", titles=(P_TITLE, title), **(usual | options))


def mark(x: tuple[str, float], y: tuple[str, float], text: str, **place: Any) -> Any:
    """A hollow point with words: what the paper prints."""
    alt = look.altair()
    base = alt.Chart(alt.Data(values=[{x[0]: x[1], y[0]: y[1]}])).encode(
        x=alt.X(f"{x[0]}:Q"), y=alt.Y(f"{y[0]}:Q")
    )
    words = {"align": "left", "dx": 10, "dy": 0, "fontSize": 13, "color": look.INK} | place
    return alt.layer(
        base.mark_point(filled=False, size=110, color=look.INK, strokeWidth=2, opacity=1),
        base.mark_text(text=text, **words),
    )


def values(points: Points, y: str, letter: str, **place: Any) -> Any:
    """The parameters of releases, beside their points."""
    alt = look.altair()
    rows = [{"p_loss": p["p_loss"], y: p[y], "text": f"{letter} = {p['value']:g}"} for p in points]
    words = {"align": "left", "dx": 7, "dy": -9, "fontSize": 12, "color": look.SOFT} | place
    base = alt.Chart(alt.Data(values=rows)).mark_text(**words)
    return base.encode(x=alt.X("p_loss:Q"), y=alt.Y(f"{y}:Q"), text="text:N")


def cloud(points: Sequence[Mapping[str, float]], x: str, y: str) -> Any:
    """Many pale points, behind the others."""
    alt = look.altair()
    return (
        alt.Chart(alt.Data(values=[{x: p[x], y: p[y]} for p in points]))
        .mark_circle(size=22, color=look.SOFT, opacity=0.28)
        .encode(x=alt.X(f"{x}:Q"), y=alt.Y(f"{y}:Q"))
    )
