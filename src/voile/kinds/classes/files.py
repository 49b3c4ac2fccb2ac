"""The files of a release of classes: which columns each has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.kinds.classes.manifest import ClassManifest
from voile.kinds.parquet import arrow_schema
from voile.schema import Attribute, Schema, Values

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Ranges:
    """What one generalized column shows of each class."""

    texts: tuple[str, ...]
    text: Codes
    """(classes,): the number of the class's text."""
    low: Codes
    high: Codes


def class_columns(manifest: ClassManifest) -> Any:
    """The columns of classes/."""
    fields = [pa.field(manifest.rows_column, pa.int64(), nullable=False)]
    if manifest.parameters.population:
        fields.append(pa.field(manifest.population_column, pa.int64(), nullable=False))
    for name in manifest.generalized:
        fields.append(pa.field(name, pa.string(), nullable=False))
        fields += [pa.field(end, pa.int32(), nullable=False) for end in manifest.end_columns(name)]
    return pa.schema([*arrow_schema(Schema((manifest.class_attribute,))), *fields])


def shown_schema(manifest: ClassManifest, texts: Mapping[str, tuple[str, ...]]) -> Schema:
    """The columns that data/ has: ranges are texts."""
    schema, p = manifest.schema_, manifest.parameters
    names = [*p.qi, *p.insensitive, *(p.sensitive if p.recode == "generalize" else ())]
    shown = [
        Attribute(name, "categorical", Values(texts[name])) if name in texts else schema[name]
        for name in names
    ]
    return Schema((manifest.class_attribute, *shown))
