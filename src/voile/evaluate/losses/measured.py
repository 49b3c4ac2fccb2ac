"""What is measured of a release, and how it is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ClassMeasures:
    """Measures of classes; there are none of other releases."""

    gen_iloss: float
    discernibility: int
    average_class_size: float
    normalised_class_size: float
    precision: float
    non_uniform_entropy: float
    kl: float


@dataclass(frozen=True)
class Workload:
    """Which queries were asked, and how wrong they were answered on average."""

    number: int
    dimension: int
    selectivity: float
    relative_error: float | None
    """None where no query is met by any row."""


@dataclass(frozen=True)
class Accuracy:
    """Shares of rows whose sensitive value is told rightly."""

    release: float
    """By naive Bayes that was trained on what the release tells."""
    table: float
    """By naive Bayes that was trained on the table."""
    majority: float
    """By always telling the most frequent value."""
    class_majority: float | None
    """By the most frequent value among the other rows of the class."""


@dataclass(frozen=True)
class WorstPopulation:
    """A large population whose sensitive values are told worst."""

    population: str
    rows: int
    loss: float


@dataclass(frozen=True)
class Losses:
    """All that is measured. Computed from the private table, and not for publishing."""

    release: str
    kind: str
    rows: int
    qi: tuple[str, ...]
    sensitive: str
    p_loss: float
    p_loss_permitted: float | None
    """The worst that the mechanism could ever show; None for classes, whose classes are shown."""
    p_loss_revealed: float
    """P_loss of the table itself."""
    u_loss: float | None
    """None where no population is large."""
    u_loss_trivial: float | None
    """U_loss of telling the whole table's distribution and no more."""
    min_support: float
    populations: int
    worst: tuple[WorstPopulation, ...]
    classes: ClassMeasures | None
    workload: Workload | None
    accuracy: Accuracy

    def to_dict(self) -> dict[str, Any]:
        """Flat, with the names that are in use; null where a measure does not apply."""
        names = ("gen_iloss", "discernibility", "average_class_size", "normalised_class_size",
                 "precision", "non_uniform_entropy", "kl")  # fmt: skip
        asked = self.workload
        return {
            "release": self.release,
            "kind": self.kind,
            "rows": self.rows,
            "qi": list(self.qi),
            "sensitive": self.sensitive,
            "p_loss": self.p_loss,
            "p_loss_permitted": self.p_loss_permitted,
            "p_loss_revealed": self.p_loss_revealed,
            "u_loss": self.u_loss,
            "u_loss_trivial": self.u_loss_trivial,
            "min_support": self.min_support,
            "populations": self.populations,
            "worst": [asdict(one) for one in self.worst],
            **{name: getattr(self.classes, name, None) for name in names},
            "relative_error": asked.relative_error if asked else None,
            "queries": None
            if asked is None
            else {"number": asked.number, "dimension": asked.dimension,
                  "selectivity": asked.selectivity},
            "accuracy": asdict(self.accuracy),
            "publishable": False,
        }  # fmt: skip
