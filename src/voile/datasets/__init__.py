"""The tables shipped with the package, and the views of them that the papers use."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path

from voile.errors import UsageError, did_you_mean

__all__ = ["DATASETS", "Dataset", "find", "hierarchies"]

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Dataset:
    """A named view: `columns` of the rows of `file` that meet the SQL condition `where`."""

    name: str
    file: str
    columns: tuple[str, ...]
    where: str
    about: str

    @property
    def path(self) -> Path:
        """Where the Parquet file is."""
        return FOLDER / self.file


def _complete(*columns: str) -> str:
    return " AND ".join(f"{column} IS NOT NULL" for column in columns)


_ADULT = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "salary",
    "split",
)
_BOUNDARY = (
    "age",
    "workclass",
    "education",
    "marital_status",
    "race",
    "sex",
    "native_country",
    "occupation",
    "salary",
)
_FRONTIER = ("age", "workclass", "education", "marital_status", "race", "sex", "occupation")
_OLAP = ("age", "fnlwgt", "hours_per_week", "education_num")

_HEALTH = (
    "age",
    "sex",
    "family_size",
    "years_of_school",
    "income",
    "share_paid",
    "health",
    "doctor_visits",
    "hospital_stays",
    "spending",
)
_PEOPLE = tuple(column for column in _ADULT if column != "split")

_VIEWS = (
    Dataset(
        "adult",
        "adult.parquet",
        _ADULT,
        "",
        "UCI Adult, both splits, unknown values as NULL: 48,842 rows.",
    ),
    Dataset(
        "adult/boundary",
        "adult.parquet",
        _BOUNDARY,
        f"split = 'train' AND {_complete(*_BOUNDARY)}",
        "The nine attributes of 'The Boundary Between Privacy and Utility in Data Publishing' "
        "(VLDB 2007), complete training rows: 30,162 rows.",
    ),
    Dataset(
        "adult/frontier",
        "adult.parquet",
        _FRONTIER,
        # Complete in every column of Adult, native_country too, though it is not selected:
        # complete in the selected columns alone would be 46,033 rows.
        _complete(*_ADULT),
        "Seven attributes for the privacy/utility frontier, complete rows of both splits: "
        "45,222 rows.",
    ),
    Dataset(
        "adult/olap",
        "adult.parquet",
        _OLAP,
        "split = 'train'",
        "The four numeric attributes of 'Privacy Preserving OLAP', training rows: 32,561 rows.",
    ),
    Dataset(
        "adult/train",
        "adult.parquet",
        _PEOPLE,
        "split = 'train'",
        "UCI Adult, the rows to learn from: 32,561 rows.",
    ),
    Dataset(
        "adult/test",
        "adult.parquet",
        _PEOPLE,
        "split = 'test'",
        "UCI Adult, the rows to test on: 16,281 rows.",
    ),
    Dataset(
        "health",
        "health.parquet",
        _HEALTH,
        "",
        "People in the first year of the RAND Health Insurance Experiment, their doctors' visits "
        "and what these cost: 5,638 rows.",
    ),
    Dataset(
        "scores",
        "scores.parquet",
        ("age", "nationality", "score"),
        "",
        "The test-scores example of 'The Boundary Between Privacy and Utility in Data "
        "Publishing' (VLDB 2007), Table 1: 6 rows.",
    ),
)

DATASETS: dict[str, Dataset] = {view.name: view for view in _VIEWS}
"""What ships with Voile, by the name that stands after `dataset:`."""


def find(name: str) -> Dataset:
    """The dataset of that name; an unknown name is refused with the nearest known one."""
    if name not in DATASETS:
        raise UsageError(f"no dataset named {name!r}", hint=did_you_mean(name, list(DATASETS)))
    return DATASETS[name]


def hierarchies(name: str) -> dict[str, Path]:
    """Files with the hierarchies of a shipped table's columns; empty for any other table.

    `name` is as users write it: 'dataset:adult/frontier'. The views of a table share its files.
    """
    if not name.startswith("dataset:"):
        return {}
    table = name.removeprefix("dataset:").split("/")[0]
    files = (FOLDER / "hierarchies").glob(f"{glob.escape(table)}/*.csv")
    return {path.stem: path for path in sorted(files)}
