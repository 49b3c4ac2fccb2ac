"""Between a schema with its perturbing and the spec that clients read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from voile.client import Column, Domain, Edges, Grid, Listed, Spec, Texts
from voile.engines.encode import values_at
from voile.errors import UsageError, spelled
from voile.kinds.domain import read_schema
from voile.kinds.perturbed.noise import check_epsilon, noise_for
from voile.kinds.perturbed.options import PerturbOptions
from voile.kinds.perturbed.retention import ColumnNoise, Local, Retention, WholeRows
from voile.schema import Attribute, Bins, Interval, Range, Schema, Values
from voile.schema.attribute import plain


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
    """A column as a spec has it."""
    return {
        "name": attribute.name,
        "kind": attribute.kind,
        "domain": domain_of(attribute),
        "null": attribute.null,
        "retention": noise.retention,
        "replace": "uniform" if noise.parts is None else list(noise.parts),
    }


def domain_of(attribute: Attribute) -> dict[str, Any]:
    """A domain as a spec has it."""
    match attribute.domain:
        case Values(values):
            return {"values": [plain(v) for v in values]}
        case Range(int(low)) as domain:
            return {"low": low, "step": 1, "per": 1, "count": domain.size}
        case Range(first) as domain:
            return {"first": plain(first), "count": domain.size}
        case Bins(edges):
            return {"edges": list(edges)}
        case Interval() as domain:
            return {
                "low": domain.first,
                "step": domain.stride,
                "per": domain.per,
                "count": domain.size,
            }


# ---------------------------------------------------------------------- and back


def schema_of(spec: Spec) -> Schema:
    """The domain of a spec; a spec of another's making may have one that no release can have."""
    schema = Schema.from_dict({"attributes": [entry_of(column) for column in spec.columns]})
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


def entry_of(column: Column) -> dict[str, Any]:
    """A spec's column as a schema has it."""
    return {
        "name": column.name,
        "kind": column.kind,
        "null": column.null,
        **listed_domain(column, column.domain),
    }


def listed_domain(column: Column, domain: Domain) -> dict[str, Any]:
    """A spec's domain as a schema has it."""
    match domain:
        case Texts(texts):
            return {"values": list(texts)}
        case Edges(edges):
            return {"bins": list(edges)}
        case Grid(low, step, per, count) if column.kind == "numeric":
            ends = [low / per, (low + (count - 1) * step) / per]
            return {"interval": ends, "step": step / per}
        case Grid(_, 1, 1, count):
            first, last = column.decode([0, count - 1]).tolist()
            return {"range": [first, last]}
        case Grid() | Listed():
            return {"values": column.decode(range(domain.count)).tolist()}


def mechanism_of(spec: Spec, schema: Schema) -> Local:
    """The mechanism that a spec's clients apply."""
    if spec.joint is not None:
        return WholeRows(spec.joint, tuple(schema.sizes))
    return Retention(tuple(noise_of(column) for column in spec.columns))


def noise_of(column: Column) -> ColumnNoise:
    """What a spec's clients do to a column."""
    if column.replace == "uniform":
        return ColumnNoise(column.size, column.retention)
    return ColumnNoise(column.size, column.retention, "declared", tuple(column.replace))


# ---------------------------------------------------------------------- from a codebook


def make_spec(codebook: str | Path | Schema, name: str, **options: Any) -> Spec:
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
