"""The noise that the options choose, on the domain of a table."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from voile.errors import PromiseError, UsageError, did_you_mean, spelled
from voile.kinds.chances import from_mapping, read_mapping
from voile.kinds.perturbed.options import WORDS, PerturbOptions
from voile.kinds.perturbed.retention import ColumnNoise, Local, Replace, Retention, WholeRows
from voile.schema import Attribute, Schema
from voile.schema.index import Product


def noise_for(schema: Schema, options: PerturbOptions) -> Local:
    """The mechanism that the options choose, on this domain."""
    given = [*options.retentions, *(options.words if options.distribution is None else ())]
    for name in given:
        if name is not None and name not in schema.names:
            raise UsageError(
                f"there is no column {name!r} to perturb", hint=did_you_mean(name, schema.names)
            )
    if options.whole_rows:
        return WholeRows(float(options.retentions[None]), tuple(schema.sizes))
    parts = declared(schema, options)
    return Retention(
        tuple(
            column_noise(attribute, options, own)
            for attribute, own in zip(schema, parts.parts, strict=True)
        )
    )


def declared(schema: Schema, options: PerturbOptions) -> Product:
    """The replacing distributions that the options declare."""
    given = options.distribution
    if given is None:
        return Product((None,) * len(schema.names))
    where = str(given) if isinstance(given, Path) else "replace"
    found = read_mapping(given) if isinstance(given, Path) else given
    return from_mapping(found, schema, where)


def column_noise(
    attribute: Attribute, options: PerturbOptions, parts: tuple[int, ...] | None
) -> ColumnNoise:
    """What the options mean for one column."""
    name, size = attribute.name, attribute.size
    fallback = options.retentions.get(None, 1.0)
    retention = float(options.retentions.get(name, fallback))
    if parts is not None:
        return ColumnNoise(size, retention, "declared", every_value(attribute, parts))
    word = "uniform"
    if options.distribution is None:
        word = options.words.get(name, options.words.get(None, "uniform"))
    for known in get_args(Replace):
        if word == known:
            return ColumnNoise(size, retention, known)
    raise UsageError(f"{spelled('replace', word)} is not known", hint=f"use {', '.join(WORDS)}")


def every_value(attribute: Attribute, parts: tuple[int, ...]) -> tuple[int, ...]:
    """Every value must be drawn now and then."""
    if min(parts) < 1:
        never = next(v for i, v in enumerate(attribute) if parts[i] < 1)
        raise UsageError(
            f"{attribute.name!r}: the value {never!r} is given no chance",
            hint="a value that is never drawn gives away whoever has it; give it a small chance",
        )
    return parts


def check_epsilon(mechanism: Local, schema: Schema, options: PerturbOptions) -> None:
    """Refuse retentions that disclose more than the options allow.

    A public column must be named as such.
    """
    if options.most_epsilon is None:
        return
    if isinstance(mechanism, Retention):
        for name, column in zip(schema.names, mechanism.columns, strict=True):
            if column.public and column.size > 1 and options.retentions.get(name) != 1:
                raise PromiseError(
                    f"column {name!r} is public, and has no ε",
                    hint=f"say {spelled('retention', {name: 1})}",
                )
    epsilon = mechanism.epsilon() * (options.rows_per_person or 1)
    whom = "a row" if options.person is None else "a person"
    if not epsilon <= options.most_epsilon:
        raise PromiseError(
            f"these retentions have ε = {epsilon:.4g} for {whom}, more than "
            f"{options.most_epsilon:g}",
            hint="`voile plan --local` finds the retentions that keep an ε",
        )
