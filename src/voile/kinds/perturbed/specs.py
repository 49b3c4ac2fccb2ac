"""Between a schema with its perturbing and the spec that clients read."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from voile.client import Column, Grid, Listed, Spec, Texts
from voile.engines.encode import values_at
from voile.errors import UsageError, spelled
from voile.kinds.domain import read_schema
from voile.kinds.perturbed.noise import check_epsilon, noise_for
from voile.kinds.perturbed.options import PerturbOptions, SpecKeywords
from voile.kinds.perturbed.retention import ColumnNoise, Local, Retention, WholeRows
from voile.schema import Attribute, Bins, Domain, Interval, Range, Schema, Values, WholeBins
from voile.schema.attribute import interval, plain


def spec_of(schema: Schema, mechanism: Local, name: str, *, promise: bool = True) -> Spec:
    """What clients need to perturb their rows, with the ε that it promises."""
    if not mechanism.local:
        raise UsageError(
            "nobody can take replacements from others' values alone: identity and swap need the "
            "whole column",
            hint=f"use {spelled('replace', 'uniform')}, or a declared distribution",
        )
    joint = mechanism.retention if isinstance(mechanism, WholeRows) else None
    noise = (
        [ColumnNoise(a.size) for a in schema]
        if isinstance(mechanism, WholeRows)
        else mechanism.columns
    )
    document: dict[str, Any] = {
        "format": "voile-perturbation",
        "version": 1,
        "name": name,
        "columns": [column_of(a, c) for a, c in zip(schema, noise, strict=True)],
        "joint": None if joint is None else {"retention": joint},
    }
    if promise:
        document["promise"] = {"epsilon": mechanism.epsilon()}
    return Spec.from_dict(document)


def column_of(attribute: Attribute, noise: ColumnNoise) -> dict[str, Any]:
    """The entry of a column in a spec."""
    return {
        "name": attribute.name,
        "kind": attribute.kind,
        "domain": domain_of(attribute),
        "null": attribute.null,
        "retention": noise.retention,
        "replace": "uniform" if noise.parts is None else list(noise.parts),
    }


def domain_of(attribute: Attribute) -> dict[str, Any]:
    """The domain of a column as a spec writes it."""
    match attribute.domain:
        case Values(values):
            return {"values": [plain(v) for v in values]}
        case WholeBins():
            raise UsageError(
                f"column {attribute.name!r} has bins of kind {attribute.kind}, which clients do "
                "not have",
                hint="write kind: numeric for bins of numbers in the codebook, or a range",
            )
        case Bins(edges):
            return {"edges": list(edges)}
        case Range(dt.date() as first) as days:
            return {"first": plain(first), "count": days.size}
        case Range() | Interval() as numbers:
            return dataclasses.asdict(numbers.grid)


# ---------------------------------------------------------------------- and back


def schema_of(spec: Spec) -> Schema:
    """The domain of a spec; a spec of another's making may have one that no release can have."""
    schema = Schema(tuple(map(attribute_of, spec.columns)))
    for attribute, column in zip(schema, spec.columns, strict=True):
        ends = np.array([0, attribute.size - 1 - attribute.null])
        ours, theirs = values_at(attribute, ends).to_pylist(), column.decode(ends).tolist()
        if attribute.size != column.size or [*map(str, ours)] != [*map(str, theirs)]:
            raise UsageError(
                f"the numbers of column {column.name!r} are no decimal steps",
                hint="let 'per' be a power of ten",
            )
    return schema


def check_releasable(spec: Spec) -> None:
    """Refuse, before anyone answers, what could not be released afterwards."""
    mechanism_of(spec, schema_of(spec))


def attribute_of(column: Column) -> Attribute:
    """The attribute of a schema that has the values of a column."""
    ordered = column.kind != "categorical"
    return Attribute(column.name, column.kind, schema_domain(column), column.null, ordered=ordered)


def schema_domain(column: Column) -> Domain:
    """The values of a column as a schema has them: only its grids may have any denominator."""
    match column.domain:
        case Bins() as bins:
            return bins
        case Texts(texts):
            return Values(texts)
        case Grid(low, step, per) as grid if column.kind == "numeric":
            return interval(column.name, low / per, grid.high / per, step / per)
        case Grid(_, 1, 1, count):
            first, last = values_of(column, [0, count - 1])
            return Range(first, last)
        case Grid() | Listed() as listed:
            return Values(tuple(values_of(column, range(listed.size))))


def values_of(column: Column, codes: Sequence[int]) -> list[Any]:
    """The values of codes, dates as dates."""
    found: list[Any] = column.decode(codes).tolist()
    return [dt.date.fromisoformat(day) for day in found] if column.kind == "date" else found


def mechanism_of(spec: Spec, schema: Schema) -> Local:
    """The mechanism that a spec describes."""
    if spec.joint is not None:
        return WholeRows(spec.joint, tuple(schema.sizes))
    return Retention(tuple(noise_of(column) for column in spec.columns))


def noise_of(column: Column) -> ColumnNoise:
    """How a column of a spec is perturbed."""
    if column.replace == "uniform":
        return ColumnNoise(column.size, column.retention)
    return ColumnNoise(column.size, column.retention, "declared", tuple(column.replace))


# ---------------------------------------------------------------------- from a codebook


def make_spec(codebook: str | Path | Schema, name: str, **options: Unpack[SpecKeywords]) -> Spec:
    """The spec of a survey, from its codebook and its options (see PerturbOptions)."""
    chosen = PerturbOptions(**options)
    schema = read_schema(codebook)
    if chosen.columns is not None:
        schema = schema.select(chosen.columns)
    if schema.active:
        raise UsageError(
            f"the domain of {schema.active[0]!r} was read off a table (public: active)",
            hint="a survey's domain is declared before anyone answers: write public: declared",
        )
    mechanism = noise_for(schema, chosen)
    check_epsilon(mechanism, schema, chosen)
    if mechanism.ratio() is None and mechanism.local:
        raise UsageError("no column is perturbed", hint=f"give a {spelled('retention')} below 1")
    return spec_of(schema, mechanism, name)
