"""Charts of the screens that choose: specifications of Vega-Lite, from numbers that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voile.studio.points import SliderPoint

Chart = dict[str, Any]
HEIGHT = 240
LARGEST = 10.0
"""Relative errors beyond this are not drawn: they say nothing more."""


def curve_chart(
    points: Sequence[SliderPoint],
    at: int,
    *,
    title: str,
    y: str = "expected error",
    most: float | None = None,
) -> Chart:
    """Errors against the slider's value; a rule that moves with it; what is impossible shaded."""
    rows = [
        {"x": point.x, "y": error, "of": name}
        for point in points
        for name, error in point.series.items()
        if 0 < error <= LARGEST
    ]
    several = {"orient": "top", "labelLimit": 0, "columns": 2}
    scale_x = {"type": "log", "nice": False} if title != "t" else {"zero": False}
    x = {"field": "x", "type": "quantitative", "title": title, "scale": scale_x,
         "axis": {"format": "~g", "tickCount": 6}}  # fmt: skip
    scale_y: dict[str, Any] = {"type": "log", "nice": False}
    field = {"field": "y", "type": "quantitative", "title": y, "scale": scale_y,
             "axis": {"format": "~%", "tickCount": 5}}  # fmt: skip
    lines = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": True, "interpolate": "monotone", "clip": True},
        "encoding": {
            "x": x, "y": field,
            "color": {"field": "of", "type": "nominal", "title": None,
                      "legend": several if len({row["of"] for row in rows}) > 1 else None},
            "tooltip": [{"field": "of", "title": "method"}, {"field": "x", "title": title},
                        {"field": "y", "title": y, "format": ".2~%"}],
        },
    }  # fmt: skip
    here = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [5, 3]},
        "encoding": {"x": {"datum": {"expr": "at"}, "type": "quantitative"}},
    }
    layers = [*impossible(rows, most), lines, here]
    value = points[at].x if points else 1
    return {"width": "container", "height": HEIGHT, "params": [{"name": "at", "value": value}],
            "layer": layers}  # fmt: skip


def impossible(rows: Sequence[Mapping[str, Any]], most: float | None) -> list[Chart]:
    """The region above the error from which on nothing is published."""
    top = max((row["y"] for row in rows), default=0)
    if most is None or top <= most:
        return []
    area = {
        "data": {"values": [{"from": most, "to": top}]},
        "mark": {"type": "rect", "opacity": 0.16, "color": "#c2571a"},
        "encoding": {"y": {"field": "from", "type": "quantitative"}, "y2": {"field": "to"}},
    }
    words = {
        "data": {"values": [{"y": top, "text": "of no use: nothing is published up here"}]},
        "mark": {"type": "text", "align": "left", "baseline": "top", "x": 8, "dy": 8},
        "encoding": {"y": {"field": "y", "type": "quantitative"}, "text": {"field": "text"}},
    }
    return [area, words]


REGIONS = {"possible": "#5b9bb5", "not known": "#d8cfae", "impossible for any method": "#c2571a"}


def plane_chart(plane: Mapping[str, Any]) -> Chart:
    """Which (d, γ) are possible, not known, or impossible; and where the project stands."""
    rows = []
    for point in plane["plane"]:
        d, possible, ruled = point["prior"], point["possible_from"], point["impossible_up_to"]
        floor = max(d, ruled or d)
        start = 1.0 if possible is None else max(possible, floor)
        rows += [
            {"d": d, "low": start, "high": 1.0, "region": "possible"},
            {"d": d, "low": floor, "high": start, "region": "not known"},
            {"d": d, "low": d, "high": floor, "region": "impossible for any method"},
        ]
    here = plane["position"]
    x = {"field": "d", "type": "quantitative", "scale": {"type": "log", "nice": False},
         "title": "d: what may be believed before",
         "axis": {"format": "~g", "tickCount": 5}}  # fmt: skip
    y = {"field": "low", "type": "quantitative", "scale": {"domain": [0, 1]},
         "title": "γ: what may be believed after"}  # fmt: skip
    areas = {
        "data": {"values": rows},
        "mark": {"type": "area", "opacity": 0.45, "clip": True},
        "encoding": {"x": x, "y": y, "y2": {"field": "high"},
                     "color": {"field": "region", "type": "nominal", "title": None,
                               "legend": {"orient": "top", "columns": 1},
                               "scale": {"domain": list(REGIONS),
                                         "range": list(REGIONS.values())}}},
    }  # fmt: skip
    mark = {
        "data": {"values": [{"d": here["prior"], "low": here["posterior"]}]},
        "mark": {"type": "point", "filled": True, "size": 110},
        "encoding": {"x": x, "y": y},
    }
    layers = [areas, mark] if here["prior"] < 1 else [areas]
    return {"width": "container", "height": HEIGHT, "layer": layers}


def frontier_chart(data: Mapping[str, Any]) -> Chart:
    """Every release that was measured, on the two losses; what none can be below."""
    rows = [
        {"point": place, "x": one["p_loss"], "y": one["u_loss"], "method": one["method"],
         "what": one["requirement"], "efficient": "efficient" if one["efficient"] else "beaten"}
        for place, one in enumerate(data["points"])
    ]  # fmt: skip
    x = {"field": "x", "type": "quantitative", "title": "P_loss: what it tells about one person",
         "axis": {"tickCount": 6}}  # fmt: skip
    y = {"field": "y", "type": "quantitative", "title": "U_loss: what is lost about many",
         "scale": {"type": "pow", "exponent": 0.3},  # the best are far below the others
         "axis": {"format": "~g", "tickCount": 5}}  # fmt: skip
    bound = {
        "data": {"values": [{"x": one["p_loss"], "y": one["lower"]} for one in data["certified"]]},
        "mark": {"type": "area", "opacity": 0.16, "color": "#c2571a", "clip": True},
        "encoding": {"x": x, "y": y},
    }
    marks = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 130, "cursor": "pointer"},
        "encoding": {
            "x": x, "y": y, "color": {"field": "method", "type": "nominal", "title": None,
                                      "legend": {"orient": "top"}},
            "opacity": {"field": "efficient", "type": "nominal", "legend": None,
                        "scale": {"domain": ["efficient", "beaten"], "range": [1, 0.35]}},
            "tooltip": [{"field": "what", "title": "promise"}, {"field": "method"},
                        {"field": "x", "title": "P_loss", "format": ".3~g"},
                        {"field": "y", "title": "U_loss", "format": ".3~g"}],
        },
    }  # fmt: skip
    return {"width": "container", "height": 300, "layer": [bound, marks]}


SIDES = ("the table", "the preview")
FEW_VALUES = 18
"""Values of a column of which each is named below its bars."""


def pair_chart(name: str, counts: Sequence[Mapping[str, Any]]) -> Chart:
    """Counts of the values of a column, in the table and in a preview."""
    rows = [
        {"value": one["value"], "of": side, "count": one[key]}
        for one in counts
        for side, key in zip(SIDES, ("truth", "estimate"), strict=True)
    ]
    return {
        "width": "container", "height": 150, "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {"field": "value", "type": "ordinal", "sort": None, "title": None,
                  "axis": {"labelLimit": 110, "labelOverlap": len(counts) > FEW_VALUES,
                           "labelAngle": -40}},
            "xOffset": {"field": "of", "sort": list(SIDES)},
            "y": {"field": "count", "type": "quantitative", "title": None},
            "color": {"field": "of", "type": "nominal", "title": None, "sort": list(SIDES),
                      "legend": {"orient": "top"}},
            "tooltip": [{"field": "value", "title": name}, {"field": "of", "title": "of"},
                        {"field": "count", "format": ",.0f"}],
        },
    }  # fmt: skip


def heat_chart(names: Sequence[str], cells: Sequence[Mapping[str, Any]], key: str) -> Chart:
    """A two-way table of counts as colours: `key` is truth or estimate."""
    rows = [{"a": one["a"], "b": one["b"], "count": one[key]} for one in cells]
    top = max((max(one["truth"], one["estimate"]) for one in cells), default=1)
    axis = {"labelLimit": 110, "labelOverlap": True}
    return {
        "width": "container", "height": 260, "data": {"values": rows}, "mark": {"type": "rect"},
        "encoding": {
            "x": {"field": "a", "type": "ordinal", "sort": None, "title": names[0],
                  "axis": {**axis, "labelAngle": -40}},
            "y": {"field": "b", "type": "ordinal", "sort": None, "title": names[1], "axis": axis},
            "color": {"field": "count", "type": "quantitative", "title": None,
                      "scale": {"domain": [0, top], "type": "sqrt", "interpolate": "rgb"}},
            "tooltip": [{"field": "a", "title": names[0]}, {"field": "b", "title": names[1]},
                        {"field": "count", "format": ",.0f"}],
        },
    }  # fmt: skip


def belief_chart(beliefs: Sequence[Mapping[str, Any]]) -> Chart:
    """Beliefs before and after, as two bars for each."""
    rows = [
        {"what": str(one["what"]), "of": side, "belief": one[key]}
        for one in beliefs
        for side, key in (("before", "prior"), ("after", "posterior"))
    ]
    return {
        "width": "container", "height": {"step": 16}, "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "y": {"field": "what", "type": "ordinal", "sort": None, "title": None,
                  "axis": {"labelLimit": 200}},
            "yOffset": {"field": "of", "sort": ["before", "after"]},
            "x": {"field": "belief", "type": "quantitative", "title": "belief",
                  "scale": {"domain": [0, 1]}, "axis": {"format": "~%", "tickCount": 5}},
            "color": {"field": "of", "type": "nominal", "title": None,
                      "sort": ["before", "after"], "legend": {"orient": "top"}},
            "tooltip": [{"field": "what", "title": "value"}, {"field": "of", "title": "when"},
                        {"field": "belief", "format": ".1%"}],
        },
    }  # fmt: skip
