"""A column of a spec's document, read and checked."""

from __future__ import annotations

import itertools
import math
from typing import Any, cast

import numpy as np

from voile.client.column import Column, Replace
from voile.client.domains import LARGEST, Domain, Edges, Grid, Listed, Texts
from voile.client.strict import (
    EXACT,
    a_flag,
    a_list,
    a_number,
    a_text,
    a_whole,
    an_object,
    readable,
)
from voile.client.values import KINDS, Kind, day_number
from voile.errors import UsageError

MOST_LISTED = 1_000_000
"""Longest list of values, edges or replacing chances."""
LAST_DAY = int(day_number("9999-12-31"))

FORMS: dict[str, dict[frozenset[str], str]] = {
    "categorical": {frozenset({"values"}): "values"},
    "boolean": {frozenset({"values"}): "values"},
    "integer": {
        frozenset({"values"}): "values",
        frozenset({"low", "step", "per", "count"}): "grid",
    },
    "numeric": {
        frozenset({"values"}): "values",
        frozenset({"low", "step", "per", "count"}): "grid",
        frozenset({"edges"}): "edges",
    },
    "date": {frozenset({"values"}): "values", frozenset({"first", "count"}): "days"},
}
"""The forms of a domain that each kind of column may have, by their keys."""


def read_column(entry: Any, where: str, *, joint: bool) -> Column:
    """One column; the error names it by its name once that is known."""
    an_object(entry, where, required=("name", "kind", "domain", "null", "retention", "replace"))
    name = a_text(entry["name"], f"{where}: the name", 1000)
    if not name:
        raise UsageError(f"{where}: the name is empty", hint="give the column a name")
    where = f"{where} ({name!r})"
    if entry["kind"] not in KINDS:
        raise UsageError(
            f"{where}: the kind is {readable(entry['kind'])}", hint=f"one of {', '.join(KINDS)}"
        )
    kind = cast(Kind, entry["kind"])
    domain = read_domain(entry["domain"], kind, f"{where}: the domain")
    null = a_flag(entry["null"], f"{where}: 'null'")
    retention = a_number(entry["retention"], f"{where}: the retention")
    if not 0 <= retention <= 1:
        raise UsageError(f"{where}: the retention is {retention:g}", hint="give one from 0 to 1")
    replace = read_replace(entry["replace"], domain.count + null, f"{where}: 'replace'")
    if joint and (retention != 1 or replace != "uniform"):
        raise UsageError(
            f"{where} has its own way of perturbing beside the joint coin",
            hint="with 'joint', every column has retention 1 and replace 'uniform'",
        )
    return Column(name, kind, domain, null, retention, replace)


def read_replace(entry: Any, size: int, where: str) -> Replace:
    if entry == "uniform":
        return "uniform"
    if type(entry) is not list:
        raise UsageError(
            f"{where} is {readable(entry)}", hint='write "uniform" or a list of whole numbers'
        )
    parts = tuple(
        a_whole(part, f"{where}, entry {place}", 1, EXACT)
        for place, part in enumerate(a_list(entry, where, MOST_LISTED))
    )
    if len(parts) != size:
        raise UsageError(
            f"{where} has {len(parts)} entries for {size} values",
            hint="one for each value of the domain, and one for NULL where it is allowed",
        )
    if sum(parts) > EXACT:
        raise UsageError(f"{where} adds up to more than 2⁵³", hint="divide all by the same number")
    return parts


def read_domain(entry: Any, kind: Kind, where: str) -> Domain:
    forms = FORMS[kind]
    form = forms.get(frozenset(entry)) if type(entry) is dict else None
    match form:
        case "values":
            return read_values(
                a_list(entry["values"], f"{where}'s values", MOST_LISTED), kind, where
            )
        case "grid":
            return read_grid(entry, kind, where)
        case "edges":
            return read_edges(a_list(entry["edges"], f"{where}'s edges", MOST_LISTED), where)
        case "days":
            return read_days(entry, where)
    known = " or ".join("{" + ", ".join(sorted(keys)) + "}" for keys in forms)
    raise UsageError(f"{where} is not one of kind {kind}", hint=f"give {known}")


def read_values(values: list[Any], kind: Kind, where: str) -> Domain:
    if kind == "categorical":
        texts = tuple(a_text(v, f"{where}, value {i}", 10_000) for i, v in enumerate(values))
        check_different(texts, where)
        return Texts(texts)
    numbers = tuple(
        read_value(value, kind, f"{where}, value {place}") for place, value in enumerate(values)
    )
    check_different(numbers, where)
    return Listed(numbers)


def read_value(value: Any, kind: Kind, where: str) -> float:
    match kind:
        case "boolean":
            return float(a_flag(value, where))
        case "integer":
            return float(a_whole(value, where, -EXACT, EXACT))
        case "date":
            return float(read_day(value, where))
    return a_number(value, where)


def check_different(values: tuple[Any, ...], where: str) -> None:
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen:
            raise UsageError(
                f"{where} lists value {place} twice: {readable(value)}", hint="list it once"
            )
        seen.add(value)


def read_grid(entry: dict[str, Any], kind: Kind, where: str) -> Grid:
    grid = Grid(
        low=a_whole(entry["low"], f"{where}'s low", -LARGEST, LARGEST),
        step=a_whole(entry["step"], f"{where}'s step", 1, 2 * LARGEST),
        per=a_whole(entry["per"], f"{where}'s per", 1, LARGEST),
        count=a_whole(entry["count"], f"{where}'s count", 1, 2 * LARGEST + 1),
    )
    if grid.high > LARGEST:
        raise UsageError(
            f"{where} ends at low + step·(count − 1) = {grid.high}, which is above 2⁵⁰",
            hint="make the grid coarser or shorter",
        )
    if kind == "integer" and grid.per != 1:
        raise UsageError(f"{where}'s per is {grid.per}", hint="kind integer has per 1")
    return grid


def read_edges(edges: list[Any], where: str) -> Edges:
    numbers = tuple(a_number(edge, f"{where}, edge {i}") for i, edge in enumerate(edges))
    bins = Edges(numbers)
    if bins.count < 1:
        raise UsageError(f"{where} has one edge", hint="give at least two")
    if any(not a < b for a, b in itertools.pairwise(numbers)):
        raise UsageError(f"{where}'s edges do not increase", hint="order them")
    if not np.array_equal(bins.encode(bins.middles), np.arange(bins.count)):
        raise UsageError(
            f"{where} has a bin whose middle is not inside it", hint="make the bins wider"
        )
    return bins


def read_days(entry: dict[str, Any], where: str) -> Grid:
    first = read_day(entry["first"], f"{where}'s first day")
    count = a_whole(entry["count"], f"{where}'s count", 1, LARGEST)
    if first + count - 1 > LAST_DAY:
        raise UsageError(f"{where} ends after 9999-12-31", hint="lower the count")
    return Grid(low=first, step=1, per=1, count=count)


def read_day(value: Any, where: str) -> int:
    number = day_number(value) if type(value) is str else math.nan
    if math.isnan(number):
        raise UsageError(f"{where} is {readable(value)}", hint="write a date as YYYY-MM-DD")
    return int(number)
