"""An answer as a page shows it: numbers in words, charts with error bars, a table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from voile.estimate import number, shown

MOST_ROWS = 200
"""Rows of the table on the page; files have all."""
MOST_BARS = 60
MOST_CHARTS = 3
WORD = re.compile(r"\w+|\S|$")


def answer_view(data: Mapping[str, Any]) -> dict[str, Any]:
    """What the template needs of the data of an answer."""
    rows = data["rows"]
    names = list(rows[0]) if rows else list(data["columns"])
    figures = [name for name in names if any(is_estimate(row[name]) for row in rows)]
    keys = [name for name in names if name not in figures]
    single = len(rows) == 1 and not keys
    per_cent = f"{100 * data['confidence']:.6g} %"
    charts = [
        {"name": name, "groups": len(rows),
         "spec": dot_chart(rows[0][name], name) if single else bar_chart(rows, keys, name)}
        for name in figures[:MOST_CHARTS]
        if not single or drawable(rows[0][name])
    ]  # fmt: skip
    return {
        "single": [figure_words(name, rows[0][name], per_cent) for name in figures]
        if single
        else [],
        "charts": charts,
        "unseen": max(0, len(rows) - MOST_BARS),
        "headings": headings(names, figures, data),
        "cells": [cells(row, names, figures, data) for row in rows[:MOST_ROWS]],
        "rows": len(rows),
        "more": max(0, len(rows) - MOST_ROWS),
        "per_cent": per_cent,
        "exact": all(row[name] and row[name]["stderr"] == 0 for row in rows for name in figures),
        "cut": any(outside(row[name]) for row in rows for name in figures if row[name]),
    }


def is_estimate(value: Any) -> bool:
    """Whether a cell is a number with its error."""
    return isinstance(value, Mapping)


def words(value: float | None, error: float | None) -> str:
    """A number beside its error; None is unknown."""
    unknown = math.nan
    return number(unknown if value is None else value, unknown if error is None else error)


def outside(one: Mapping[str, Any]) -> bool:
    """Whether an estimate lies beyond its interval, which was cut to what is possible."""
    value, low, high = one["estimate"], one["low"], one["high"]
    if value is None:
        return False
    return (low is not None and value < low) or (high is not None and value > high)


def figure_words(name: str, one: Mapping[str, Any] | None, per_cent: str) -> dict[str, str]:
    """A number that stands alone: its value, its error and its interval."""
    if not one or one["estimate"] is None:
        return {"name": name, "value": "unknown", "error": "", "interval": "", "certain": ""}
    error = one["stderr"]
    exact = error == 0
    low, high = words(one["low"], error), words(one["high"], error)
    return {
        "name": name,
        "value": words(one["estimate"], error),
        "error": "exact" if exact else "" if error is None else f"± {words(error, error)}",
        "interval": "It has no error."
        if exact
        else ""
        if one["low"] is None and one["high"] is None
        else f"{per_cent} interval from {low} to {high}.",
        "certain": certain_words(one),
    }


def certain_words(one: Mapping[str, Any]) -> str:
    """Bounds that hold for sure, where rows were grouped."""
    if "certain_low" not in one:
        return ""
    low, high = (words(one[f"certain_{end}"], one["stderr"]) for end in ("low", "high"))
    return f"Certainly between {low} and {high}."


def headings(
    names: Sequence[str], figures: Sequence[str], data: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The heads of the table's columns; those of numbers stand right."""
    found = []
    for name in names:
        right = name in figures
        found.append({"text": name, "right": right})
        if right:
            found += [{"text": text, "right": True} for text in ("± error", "from", "to")]
            if "assumption" in data:
                found += [{"text": f"certainly {end}", "right": True} for end in ("from", "to")]
    return found


def cells(
    row: Mapping[str, Any], names: Sequence[str], figures: Sequence[str], data: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One row of the table."""
    ends = ["estimate", "stderr", "low", "high"]
    ends += ["certain_low", "certain_high"] if "assumption" in data else []
    found: list[dict[str, Any]] = []
    for name in names:
        if name not in figures:
            found.append({"text": shown(row[name]), "right": False})
            continue
        one = row[name] or {}
        error = one.get("stderr")
        found += [{"text": words(one.get(end), error), "right": True} for end in ends]
    return found


# ---------------------------------------------------------------------- charts


def drawable(one: Mapping[str, Any] | None) -> bool:
    """Whether there is an interval to draw."""
    return bool(one) and None not in (one["estimate"], one["low"], one["high"]) and one["stderr"]  # type: ignore[index]


def dot_chart(one: Mapping[str, Any], name: str) -> dict[str, Any]:
    """One number with its interval."""
    value = {"value": one["estimate"], "low": one["low"], "high": one["high"]}
    x = {"field": "value", "type": "quantitative", "scale": {"zero": False, "nice": True},
         "title": name, "axis": {"tickCount": 5}}  # fmt: skip
    return {
        "width": "container", "height": 34, "data": {"values": [value]},
        "layer": [
            {"mark": {"type": "rule", "size": 2},
             "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
             "encoding": {"x": x}},
        ],
    }  # fmt: skip


def bar_chart(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], name: str) -> dict[str, Any]:
    """A bar for each group, with its interval; a second key has its own colour.

    What the table says stands in fields that have our own names: those of a table could mean
    something to the library.
    """
    two = len(keys) == 2
    values = [bar(row, keys, name, two=two) for row in rows[:MOST_BARS]]
    y = {"field": "key", "type": "nominal", "sort": None, "title": keys[0] if keys else None,
         "axis": {"labelLimit": 150}}  # fmt: skip
    tooltip = [{"field": "label", "type": "nominal", "title": " · ".join(keys) or name},
               {"field": "words", "type": "nominal", "title": name}]  # fmt: skip
    encoding: dict[str, Any] = {"y": y, "tooltip": tooltip}
    colour: dict[str, Any] = {}
    if two:
        encoding["yOffset"] = {"field": "other", "type": "nominal", "sort": None}
        legend = {"orient": "top", "columns": 3, "labelLimit": 120}
        colour = {"color": {**encoding["yOffset"], "title": keys[1], "legend": legend}}
    x = {"type": "quantitative", "title": name, "axis": {"tickCount": 6}}
    whisker = {"x": {"field": "low", **x}, "x2": {"field": "high"}}
    return {
        "width": "container", "height": {"step": 13 if two else 22}, "data": {"values": values},
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "bar", "opacity": 0.75 if two else 1},
             "encoding": {"x": {"field": "value", **x}, **colour}},
            {"mark": {"type": "rule", "size": 1.5}, "encoding": whisker},
        ],
    }  # fmt: skip


def bar(row: Mapping[str, Any], keys: Sequence[str], name: str, *, two: bool) -> dict[str, Any]:
    """The data of one bar; what is exact has no whisker."""
    one = row[name] or dict.fromkeys(("estimate", "stderr", "low", "high"))
    parts = [shown(row[key]) for key in keys]
    found = {
        "key": parts[0] if two else " · ".join(parts),
        "label": " · ".join(parts),
        "value": one["estimate"],
        "words": f"{words(one['estimate'], one['stderr'])}, from "
        f"{words(one['low'], one['stderr'])} to {words(one['high'], one['stderr'])}",
    }
    if one["stderr"] != 0:
        found |= {"low": one["low"], "high": one["high"]}
    return found | ({"other": parts[1]} if two else {})


def marked(sql: str, start: int | None) -> tuple[str, str, str]:
    """The SQL before, at and after the place that an error is about."""
    if start is None or not 0 <= start <= len(sql):
        return sql, "", ""
    found = WORD.match(sql, start)
    end = found.end() if found else start
    return sql[:start], sql[start:end] or " ", sql[end:]
