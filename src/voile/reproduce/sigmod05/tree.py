"""Section 6.3: a decision tree on Adult from reconstructed counts, the class perturbed as well."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import voile
from voile.mining import ReleaseTree
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import INK, chart, lines
from voile.reproduce.papers import SIGMOD05
from voile.reproduce.sigmod05.study import StudySeries
from voile.reproduce.verdict import Check, Claim, Number, Sample
from voile.schema import Attribute, Range, Schema, Values

LEARNT, TESTED = "dataset:adult/train", "dataset:adult/test"
CLASSES = ("<=50K", ">50K")
COLUMNS = Schema(
    (
        Attribute("age", "integer", Range(17, 90)),
        Attribute("fnlwgt", "integer", Range(10_000, 1_500_000)),
        Attribute("hours_per_week", "integer", Range(1, 99)),
        Attribute("education_num", "integer", Range(1, 16)),
        Attribute("salary", "categorical", Values(CLASSES), ordered=False),
    )
)
STOPPED, INVERSION = "stopped", "inversion"
WORDS = {STOPPED: "first plausible step of EM", INVERSION: "inversion"}

# The paper prints no accuracy. Means of 10 trees, EM, by a program that shares nothing with this
# one; it stops EM and places its splits in other ways, and that moves single trees by 0.005.
KNOWN = {0.2: 0.764, 0.3: 0.785, 0.5: 0.791, 0.8: 0.792, 1.0: 0.7917}
APART = 0.005
MAJORITY = 0.7638


def accuracy(retention: float, method: str, seed: int) -> float:
    """The accuracy of a tree of depth 3, grown from perturbed rows, on true rows."""
    release = voile.perturb(LEARNT, retention, schema=COLUMNS, simulate_seed=seed)
    tree = ReleaseTree("salary", depth=3, method=method).fit(release)
    return tree.score(TESTED)


@lru_cache
def majority() -> float:
    """The accuracy of the most frequent class for everybody."""
    return voile.read(TESTED).count(f"salary = '{CLASSES[0]}'") / tested()


@lru_cache
def tested() -> int:
    """How many rows accuracy is measured on."""
    return len(voile.read(TESTED))


def retentions_of(run: Run) -> tuple[float, ...]:
    """The retentions to study; fewer in a quick run."""
    return (0.2, 0.3, 0.5, 1.0) if run.quick else (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def parts(run: Run) -> list[Part]:
    """A tree for each retention, method and seed."""
    methods = (STOPPED,) if run.quick else (STOPPED, INVERSION)
    return [
        Part(accuracy, {"retention": retention, "method": method, "seed": seed})
        for retention in retentions_of(run)
        for method in methods
        for seed in (run.seeds(full=20, quick=5) if retention < 1 else run.seeds(1, 1))
    ]


def measured(run: Run, results: Sequence[float]) -> StudySeries:
    """The accuracies by retention and method."""
    points = [(part.given["retention"], WORDS[part.given["method"]]) for part in parts(run)]
    return StudySeries.of(("retention", "method"), zip(points, results, strict=True))


def usable(series: StudySeries) -> Claim:
    """Whether trees from perturbed rows are nearly as accurate as from true ones."""
    half, whole = (series.mean(p, WORDS[STOPPED]) for p in (0.5, 1.0))
    return Claim(
        "trees from reconstructed counts",
        "aggregate queries on multiple columns can be used to construct decision trees",
        f"p = 0.5: right about {half:.1%} of new people, {whole:.1%} with nothing perturbed, "
        f"{majority():.1%} by the most frequent class",
        agrees=half > majority() + 0.02 and abs(half - whole) < 0.01,
    )


def numbers(run: Run, series: StudySeries) -> list[Check]:
    """The accuracies beside an independent program's."""
    always = Number(
        "accuracy of the most frequent class for everybody",
        None,
        Sample.of(majority()),
        reading=0.00005,
        right=MAJORITY,
        why="an independent program",
    )
    return [
        always,
        *(
            Number(
                f"accuracy, depth 3, class perturbed, p = {p:g}",
                None,
                series[p, WORDS[STOPPED]],
                reading=APART,
                right=KNOWN[p],
                why="the mean of 10 trees by an independent program",
            )
            for p in retentions_of(run)
            if p in KNOWN
        ),
    ]


def conclude(run: Run, results: Sequence[Any]) -> Finding:
    """Compare trees from perturbed rows with the most frequent class."""
    series = measured(run, results)
    table = series.columns("accuracy")
    half = series.mean(0.5, WORDS[STOPPED])
    return Finding(
        checks=(usable(series), *numbers(run, series)),
        tables={"": table},
        picture=lambda: picture(table),
        title=f"With half of all values replaced, the tree is still right about {half:.1%}",
        subtitle=(
            f"Accuracy on Adult's {tested():,} test rows of trees of depth 3 (salary by four "
            "numbers), grown from perturbed rows alone;",
            "every column and the class are perturbed. The dotted rule is the most frequent class "
            "for everybody.",
        ),
    )


def picture(table: dict[str, list[Any]]) -> Any:
    """Accuracy by retention, a line for each method."""
    curves = lines(
        table,
        "retention",
        "accuracy",
        "method",
        titles=("retention p, alike for all columns and the class", "share of test rows right"),
        formats=("~g", ".1%"),
    )
    always = chart([{"accuracy": majority()}])
    return curves + always.mark_rule(color=INK, strokeDash=[2, 4]).encode(y="accuracy:Q")


TREE = Figure(
    name="sigmod05-tree",
    paper=SIGMOD05,
    what="A decision tree on Adult from perturbed rows, by retention",
    parts=parts,
    conclude=conclude,
)
