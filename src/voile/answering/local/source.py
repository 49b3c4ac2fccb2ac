"""What an answer from perturbed rows is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from voile.answering.local.axes import AxisNoise
from voile.engines.rows import ReleaseRows
from voile.query.domain import DomainSums
from voile.schema import Schema

Method = Literal["inversion", "em"]


@dataclass(frozen=True)
class LocalSource:
    """The rows, and how they were perturbed: their columns one by one, or as a whole."""

    engine: ReleaseRows
    domain: DomainSums
    schema: Schema
    rows: int
    noise: Mapping[str, AxisNoise] = field(default_factory=dict)
    joint: float | None = None
    """The chance that a whole row was kept, where rows were perturbed as a whole."""
    method: Method = "inversion"
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What an analyst should know about a column."""
