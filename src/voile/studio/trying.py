"""Trying a way to publish: a release that is made in a temporary folder, looked at and removed."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import voile
from voile import serve
from voile.progress import Progress
from voile.publishing import published
from voile.studio.calls import CLASS_METHODS, publish_options, server_options
from voile.studio.pages import Visit
from voile.studio.project import Project
from voile.studio.running import declared, located
from voile.studio.state import OpenProject

CHOICES = {"nulls", "person", "rows_per_person", "roles", "codebook", "attributes", "hierarchies"}
"""What a project says of its table, apart from how it is published."""
EPSILON_METHODS = ("auto", "marginals", "full-table")
"""Methods whose promise is ε."""
SERVER_NOISE = "geometric"
"""The noise of servers that are tried: what the comparison of methods reckons with."""
SIGNS = {"epsilon": "ε", "prior_factor": "k", "prior": "d", "posterior": "γ", "k": "k", "l": "ℓ",
         "t": "t", "delta": "δ", "rho": "ρ", "semantic": "s", "retention": "retention"}  # fmt: skip
"""Options that say how strong a promise is, as people write them."""
TITLES = {"auto": "the best method", "marginals": "noisy marginals", "full-table": "full table",
          "alphabeta": "noisy view", "conjuncts": "tables of counts", "mondrian": "classes",
          "anatomy": "Anatomy's buckets", "fulldomain": "classes by levels",
          "suppress": "classes by suppression", "freeshape": "classes of free shape",
          "trivial": "one class"}  # fmt: skip


def described(method: str, options: Mapping[str, Any]) -> str:
    """A way to publish in a few words, such as 'classes, k = 10'."""
    said = [
        f"{sign} = {options[name]:g}"
        for name, sign in SIGNS.items()
        if isinstance(options.get(name), int | float)
    ]
    if method in EPSILON_METHODS and not said:
        said = ["ε = 1"]
    return ", ".join([TITLES.get(method, method), *said])


def table_choices(opened: OpenProject) -> dict[str, Any]:
    """What tasks need to know of a project: another choice is another task."""
    return located(opened).model_dump(mode="json", include=CHOICES)


def task_arguments(visit: Visit) -> dict[str, Any]:
    """The table as the project has it, for a task."""
    return {**visit.open.table_arguments(), "choices": table_choices(visit.open)}


def missing_roles(visit: Visit) -> list[str]:
    """The roles that classes need and no column of the table has."""
    there = set(visit.column_names())
    wanted: dict[Any, str] = {"quasi-identifier": "what others may know of a person",
                              "sensitive": "what nobody is to learn"}  # fmt: skip
    return [
        f"{role} ({about})"
        for role, about in wanted.items()
        if not there & set(visit.project.named(role))
    ]


@dataclass(frozen=True)
class TriedTable:
    """A table and what its project says of it, in a task."""

    table: Any
    project: Project

    @property
    def columns(self) -> list[str]:
        """All columns of the table."""
        return list(self.table.columns)

    @contextlib.contextmanager
    def keywords(self, method: str, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The keywords of `voile.publish`, and the codebook's file for as long as they are used."""
        with declared(self.project, self.columns) as schema:
            yield publish_options(
                self.project, self.columns, method=method, options=options, schema=schema
            )

    @contextlib.contextmanager
    def release(
        self,
        method: str,
        options: Mapping[str, Any],
        progress: Progress,
        *,
        seed: int | None = None,
        questions: Sequence[str] = (),
    ) -> Iterator[Any]:
        """A release in a temporary folder, which nobody's register knows of.

        With a seed its coins are always the same. Classes state no error model: measuring it takes
        longer than grouping.
        """
        with (
            tempfile.TemporaryDirectory(prefix="voile-") as folder,
            self.keywords(method, options) as found,
        ):
            if seed is not None:
                found["simulate_seed"] = seed
            if method in CLASS_METHODS:
                found["error_model"] = False
            if method == "auto" and questions:
                found["on"] = list(questions)
            made = published(
                self.table, to=Path(folder) / "trial.voile", register=False, progress=progress,
                **found,
            )  # fmt: skip
            yield made.release

    @contextlib.contextmanager
    def server(self, *, queries: int, epsilon: float, seed: int) -> Iterator[serve.SimulatedServer]:
        """A server of the table for as long as the block lasts; its coins come from a seed."""
        with declared(self.project, self.columns) as schema:
            options = server_options(self.project, self.columns, schema=schema)
            with serve.simulated(
                self.table, seed=seed, queries=queries, epsilon=epsilon, noise=SERVER_NOISE,
                **options,
            ) as found:  # fmt: skip
                yield found


def tried_table(source: str, reading: Mapping[str, Any], choices: Mapping[str, Any]) -> TriedTable:
    """Read a table anew, in a task."""
    project = Project.model_validate({"source": source, "reading": reading, **choices})
    return TriedTable(voile.read(source, **project.reading), project)
