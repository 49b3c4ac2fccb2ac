"""The fitted model: a mixture of product distributions over the public domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voile.arrays import Floats


@dataclass(frozen=True)
class Mixture:
    """The expected count of tuple t is rows · Σ_k mix[k] · Π_j tables[j][k, t_j].

    An attribute that was left out of the model has a table of no columns. It is taken as uniform
    and independent, which no data support: answer what asks for its values from the view alone.
    """

    rows: float
    mix: Floats
    tables: tuple[Floats, ...]

    @property
    def components(self) -> int:
        return len(self.mix)

    @property
    def left_out(self) -> tuple[int, ...]:
        return tuple(j for j, table in enumerate(self.tables) if table.shape[1] == 0)

    def count(self, masks: Mapping[int, Floats]) -> Floats:
        """Expected counts of many selections at once.

        `masks[j][q, v]` is whether query q selects value v of attribute j; attributes without a
        mask are not restricted.
        """
        chance = self.mix[None, :]
        for j, mask in masks.items():
            chance = chance * (mask @ self.tables[j].T)
        return self.rows * np.asarray(chance.sum(axis=1))

    def marginal(self, attributes: Sequence[int]) -> Floats:
        """Expected counts of every cell of a few attributes."""
        operands: list[Any] = [self.mix * self.rows, [0]]
        for axis, j in enumerate(attributes, start=1):
            operands += [self.tables[j], [0, axis]]
        table: Floats = np.einsum(*operands, list(range(1, len(attributes) + 1)), optimize=True)
        return table


def average(mixtures: Sequence[Mixture]) -> Mixture:
    """The mean of several fits is itself a mixture, of all their components."""
    count = len(mixtures)
    return Mixture(
        rows=sum(m.rows for m in mixtures) / count,
        mix=np.concatenate([m.mix for m in mixtures]) / count,
        tables=tuple(
            np.concatenate(tables) for tables in zip(*(m.tables for m in mixtures), strict=True)
        ),
    )
