"""What a trial release promises, loses and answers: run in tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voile.errors import PromiseError, UsageError, VoileError
from voile.evaluate.beside import answers_beside
from voile.evaluate.felt import felt_error
from voile.evaluate.losses import losses
from voile.progress import Progress
from voile.studio.calls import CLASS_METHODS
from voile.studio.trying import TriedTable

LARGE = 0.3
"""Populations of this share of the rows: what is large enough to be looked at quickly."""


@dataclass(frozen=True)
class PartProgress:
    """The work on one of several parts: which part it is, and the step within it."""

    whole: Progress
    part: int
    """From 1."""
    parts: int
    what: str

    def start(self, what: str, total: int) -> None:
        """A step within the part begins; what is done are the parts before."""
        del total
        self.whole.start(f"{self.what} {self.part}: {what}", self.parts)
        self.whole.advance(self.part - 1)

    def advance(self, count: int) -> None:
        """Only whole parts are counted."""


def measured_trial(
    tried: TriedTable,
    method: str,
    options: Mapping[str, Any],
    questions: Sequence[str],
    progress: Progress,
    *,
    seed: int,
    counts: bool = False,
) -> dict[str, Any]:
    """One trial release; where its promise cannot be kept, why.

    `counts` also asks for the counts that matter.
    """
    found: dict[str, Any] = {"options": dict(options), "refused": "", "words": "", "losses": None,
                             "felt": None, "asked": []}  # fmt: skip
    anyway = {"yes": True} if method == "auto" else {}
    try:
        with tried.release(
            method, {**options, **anyway}, progress, seed=seed, questions=questions
        ) as release:
            found["words"] = release.promise_in_short
            found["asked"] = [asked(release, tried.table, sql) for sql in questions]
            if method in CLASS_METHODS:
                found["losses"] = class_losses(tried, release)
            elif (
                counts and method != "alphabeta"
            ):  # of a view every count takes a walk over its domain
                drop = tried.project.nulls == "drop"
                found["felt"] = felt_error(release, tried.table, drop_nulls=drop).to_dict()
    except (PromiseError, UsageError) as error:  # such as an ℓ that is more than there are values
        found["refused"] = error.message
    return found


def served_trial(
    tried: TriedTable, answers: int, epsilon: float, questions: Sequence[str], *, seed: int
) -> dict[str, Any]:
    """What a server of so many answers says to each question; the others find none left."""
    found: dict[str, Any] = {"options": {"answers": answers}, "refused": "", "asked": []}
    try:
        with tried.server(queries=answers, epsilon=epsilon, seed=seed) as server:
            found["asked"] = [asked(server, tried.table, sql) for sql in questions]
    except (PromiseError, UsageError) as error:
        found["refused"] = error.message
    return found


def class_losses(tried: TriedTable, release: Any) -> dict[str, Any]:
    """What grouping loses; the first sensitive column stands for all."""
    sensitive = tried.project.named("sensitive")[0]
    found = losses(tried.table, release, sensitive=sensitive, queries=0, min_support=LARGE)
    return found.to_dict()


def asked(release: Any, table: Any, sql: str) -> dict[str, Any]:
    """How far the numbers of a question are off: the largest."""
    try:
        rows = answers_beside(release, table, sql)
    except VoileError as error:  # such as columns that were not counted together
        return {"sql": sql, "error": error.message, "stderr": None, "relative": None}
    errors = [one.stderr for one in rows if one.stderr is not None]
    shares = [one.relative for one in rows if one.relative is not None]
    return {"sql": sql, "error": "", "stderr": max(errors, default=None),
            "relative": max(shares, default=None)}  # fmt: skip
