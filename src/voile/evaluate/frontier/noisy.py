"""Measuring noisy views and perturbed rows: a release is made, measured, and thrown away.

The release that is measured has simulated coins, since its own are nobody's business; the one that
the command publishes has fresh ones, and losses that differ by chance.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from voile.errors import PromiseError, UsageError
from voile.evaluate.frontier.command import perturbing_command, viewing_command
from voile.evaluate.frontier.point import Point
from voile.evaluate.frontier.portfolio import KINDS, Candidate
from voile.evaluate.frontier.subject import Subject
from voile.evaluate.losses.utility_loss import estimated, mean_divergence
from voile.kinds.blocks import Told
from voile.kinds.domain import choose_schema
from voile.kinds.perturbed.losses import row_posterior, told_by_rows
from voile.kinds.perturbed.perturbing import perturb_table
from voile.kinds.posteriors import Posterior
from voile.kinds.views.losses import told_by_view, view_posterior
from voile.kinds.views.steps import publish_table
from voile.schema import Attribute, Schema

SEED = 0
MOST_COMPARED = 100_000
"""Values of a column that are compared one by one."""
TRIES = 50
"""To remove a folder, in the course of a second."""
READING = threading.Lock()
"""A table is read by one thread at a time."""


@dataclass(frozen=True)
class Noisy:
    """What is measured of a release."""

    promise: str
    rows: int
    told: Told
    posterior: Posterior


def measure_noisy(subject: Subject, candidate: Candidate) -> list[Point]:
    """Raises PromiseError where what is asked cannot be promised."""
    begun = time.perf_counter()
    refuse_classes(candidate)
    with scratch() as folder:
        if candidate.method == "alphabeta":
            found = of_view(subject, candidate, folder / "release")
            command = viewing_command(subject, candidate.options)
        else:
            found = of_rows(subject, candidate, folder / "release")
            command = perturbing_command(subject, candidate.options)
        u_loss = mean_divergence(subject.populations, estimated(found.told, subject.populations))
    point = Point(
        candidate.method, dict(candidate.asked), found.promise, found.posterior.measured, u_loss,
        None, found.rows, time.perf_counter() - begun, command, found.posterior.permitted,
    )  # fmt: skip
    return [point]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a while. It is also removed if the program ends while a thread writes to it."""
    folder = Path(tempfile.mkdtemp(prefix="voile-"))
    at_exit = partial(remove, folder)
    atexit.register(at_exit)
    try:
        yield folder
    finally:
        atexit.unregister(at_exit)
        remove(folder)


def remove(folder: Path) -> None:
    """Again and again: a thread that still writes fails at its next file, and adds no more."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.02)


def refuse_classes(candidate: Candidate) -> None:
    """A requirement on classes that is asked of every release is one that these cannot keep."""
    if lacking := [kind for kind in KINDS if kind in candidate.asked]:
        raise PromiseError(
            f"{candidate.how.about} have no classes, and so no {', '.join(lacking)}",
            hint="leave the method out",
        )


def of_view(subject: Subject, candidate: Candidate, folder: Path) -> Noisy:
    with READING:
        release = publish_table(
            subject.table, to=folder, simulate_seed=SEED, **candidate.options, **shared(subject)
        ).release
    promise = release.promise
    epsilon = release.mechanism.likelihood_ratio().epsilon("add-remove")
    (sensitive,), qi = subject.options.sensitive, subject.options.qi
    people = np.unique(subject.units.codes, axis=1)
    return Noisy(
        f"(d, γ)-privacy with d = {promise.prior:.2g} and γ = {promise.posterior:g}, "
        f"ε = {epsilon:.3g}",
        release.manifest.rows,
        told_by_view(release, qi, sensitive),
        view_posterior(release, people, sensitive, subject.overall),
    )


def of_rows(subject: Subject, candidate: Candidate, folder: Path) -> Noisy:
    if candidate.asked["retention"] == 1:
        raise PromiseError(
            "retention 1 keeps every value, and promises nothing", hint="choose one below 1"
        )
    with READING:
        release = perturb_table(
            subject.table, to=folder, simulate_seed=SEED, **candidate.options, **shared(subject)
        ).release
    (sensitive,), qi = subject.options.sensitive, subject.options.qi
    return Noisy(
        f"local ε = {release.mechanism.epsilon():.3g} for a row",
        release.manifest.rows,
        told_by_rows(release, qi, sensitive),
        row_posterior(release, sensitive, subject.overall),
    )


def shared(subject: Subject) -> dict[str, Any]:
    """The columns and the domain, which must be the one that populations are counted in."""
    options = subject.options
    columns = [*options.qi, *options.sensitive]
    usual, _ = choose_schema(subject.table, columns, options.schema_, options.nulls)
    check_domain(usual, subject.prepared.schema)
    return {"columns": columns, "schema": usual, "nulls": options.nulls}


def check_domain(usual: Schema, grouped: Schema) -> None:
    """Without a codebook, numbers that classes cut finely may be put in bins for noise."""
    for attribute in usual:
        if not alike(attribute, grouped[attribute.name]):
            raise UsageError(
                f"column {attribute.name!r} would have another domain than it has in classes: "
                "declare it with --schema",
                hint="`voile schema` writes a codebook",
            )


def alike(one: Attribute, other: Attribute) -> bool:
    """Whether both have the same values in the same order."""
    if one.size != other.size or one.null != other.null:
        return False
    if one.domain == other.domain:
        return True
    return one.size <= MOST_COMPARED and list(one) == list(other)
