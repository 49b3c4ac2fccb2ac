"""What the paper leaves open about Mondrian: which of equally wide columns is cut, and in which
order the values of a column stand that have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from voile.evaluate.losses import p_loss, u_loss
from voile.privacy.requirements import K, L, Requirement, Semantic
from voile.recoding import Units, bounding, mondrian, shown
from voile.reproduce import look
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.kdd09 import study
from voile.reproduce.kdd09.study import (
    CLOSENESS,
    GENERALIZED,
    IGNORING,
    K_ANONYMITY,
    L_DIVERSITY,
    LITERAL,
    QI,
    U_TITLE,
    Points,
    as_columns,
    cloud,
    curves_chart,
    mark,
    subject,
    values,
)
from voile.reproduce.papers import KDD09
from voile.reproduce.verdict import Check, Claim, Number, Sample

ORDERED = (QI.index("age"), QI.index("sex"))
"""Numbers have an order, and the order of two values does not matter."""


def readings(seed: int, number: int) -> list[dict[str, Any]]:
    """`number` random readings: what k = 5000, ℓ = 3.5 and δ = 0.99 give in each."""
    coins = np.random.default_rng(seed)
    return [one_reading(coins) for _ in range(number)]


def one_reading(coins: np.random.Generator) -> dict[str, Any]:
    """The losses when columns and unordered values stand in random orders."""
    of = subject()
    orders = [
        np.arange(size, dtype=np.int32)
        if j in ORDERED
        else coins.permutation(size).astype(np.int32)
        for j, size in enumerate(of.units.sizes)
    ]
    places = [np.argsort(order)[codes] for order, codes in zip(orders, of.units.codes, strict=True)]
    units = replace(of.units, codes=np.stack(places).astype(np.int32))
    columns = coins.permutation(len(QI))
    large, diverse, semantic = (
        grouped(units, columns, requirement)
        for requirement in (K(5000), L(3.5), Semantic(0.99))
    )  # fmt: skip
    return {
        "p_loss": p_loss(large),
        "u_loss": u_loss(large, of.populations, orders),
        "diverse_p_loss": p_loss(diverse),
        "semantic_classes": len(semantic.histograms.rows),
    }


def grouped(units: Units, columns: Any, requirement: Requirement) -> Any:
    """Generalized classes; of equally wide columns, the first in `columns` is cut."""
    turned = replace(
        units,
        codes=np.ascontiguousarray(units.codes[columns]),
        sizes=tuple(units.sizes[j] for j in columns),
    )
    found = mondrian(turned, [requirement]).grouping
    return shown(units, bounding(units, found.classes, found.number), "generalize")


# ---------------------------------------- figure 2(a): U_loss against P_loss, of four requirements


PRINTED = (0.086, 0.0288)
"""P_loss and U_loss of k = 5000."""
OURS = (0.0912, 0.0215)
BELOW_ONE = 0.99
LEFTMOST = (0.075, 0.1, 0.15)
REVEALED = 0.692
"""The largest P_loss that there is: that of a person whose rare value is known."""
TOGETHER = 50
"""Readings in one piece of work."""


def parts(run: Run) -> list[Part]:
    """The paper's curves, the trivial release, δ below 1, and readings at random."""
    several = run.seeds(8, 1)
    return [
        *study.curve_parts(),
        Part(study.losses, {"method": "trivial", "options": [{}]}),
        Part(study.losses, {"method": "mondrian", "options": [
            {"semantic": BELOW_ONE, "absent": absent} for absent in ("forbidden", "ignored")
        ]}),
        *(Part(readings, {"seed": seed, "number": TOGETHER}) for seed in several),
    ]  # fmt: skip


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Compare the U_loss of the requirements at equal P_loss."""
    named, small = study.curves(results)
    (trivial,), below_one = results[6], results[7]
    open_ = [reading for part in results[8:] for reading in part]
    general = {name: study.shown_as(points, GENERALIZED) for name, points in named.items()}
    line = [*study.shown_as(small, GENERALIZED), *general[CLOSENESS]]
    checks = [
        *of_k(general[K_ANONYMITY], open_), *of_closeness(general, line, trivial),
        *of_diversity_and_semantic(general, line), *of_classes(general), *of_ranges(general),
        one_class(below_one, open_),
    ]  # fmt: skip
    columns = as_columns(named, ("value", "recode", "classes", "p_loss", "u_loss"))
    return Finding(
        checks=tuple(checks),
        tables={"": columns, "readings": {key: [r[key] for r in open_] for key in open_[0]}},
        picture=lambda: drawn(general, study.shown_as(small, GENERALIZED), open_),
        title="At the same privacy loss, t-closeness loses least utility",
        subtitle=[
            "Adult, Mondrian, generalized classes, eight parameters each; semantic privacy (δ) in "
            "both of its readings.",
            "Hollow: smaller t, ours. Grey: k = 5000 if columns and values stand in other orders, "
            "which the paper leaves open.",
        ],
    )


def of_k(points: Points, open_: Sequence[dict[str, Any]]) -> list[Check]:
    """The losses at k = 5000 beside the printed ones, and how far other orders move them."""
    ours = study.at(points, 5000, GENERALIZED)
    privacy, utility = (
        (min(r[loss] for r in open_), max(r[loss] for r in open_)) for loss in ("p_loss", "u_loss")
    )
    why = (
        "all columns are equally wide at the root, and the order of cutting, which is not said, "
        "decides"
    )
    far = abs(ours["p_loss"] - PRINTED[0]), abs(ours["u_loss"] - PRINTED[1])
    return [
        Number("P_loss at k = 5000", PRINTED[0], Sample.of(ours["p_loss"]), 0.0005, OURS[0], why),
        Number("U_loss at k = 5000", PRINTED[1], Sample.of(ours["u_loss"]), 0.00005, OURS[1], why),
        Claim(
            "k = 5000: other orders move it farther than ours is from the print (ours)",
            "(in which order columns are cut and values stand is not said)",
            f"in {len(open_)} readings P_loss from {privacy[0]:.3f} to {privacy[1]:.3f}, "
            f"U_loss from {utility[0]:.4f} to {utility[1]:.4f}",
            privacy[1] - privacy[0] > far[0] and utility[1] - utility[0] > far[1],
        ),
    ]


def of_closeness(general: dict[str, Points], line: Points, trivial: Any) -> list[Check]:
    """Whether t-closeness is the best, and which release one would publish."""
    others = {name: points for name, points in general.items() if name != CLOSENESS}
    times = [t for points in others.values() for t in study.times_the_line(points, line)]
    above = sum(t > 1 for t in times)
    best = min(
        (point for points in general.values() for point in points),
        key=lambda point: remoteness(point, trivial["u_loss"]),
    )
    return [
        Claim(
            "t-closeness is the best",
            "t-closeness performs better than other privacy requirements",
            f"{above} of {len(times)} releases of the others lie above its line",
            above == len(times),
        ),
        Claim(
            "what one would publish",
            "one of the three left-most points for t-closeness (t = 0.075, 0.1, 0.15)",
            f"nearest to no loss at all, in parts of the worst: {best['value']:g} at "
            f"({best['p_loss']:.3f}, {best['u_loss']:.4f})",
            best in general[CLOSENESS] and best["value"] in LEFTMOST,
        ),
    ]


def remoteness(point: dict[str, Any], trivial: float) -> float:
    """The distance from no loss, with both losses as shares of their largest values."""
    return math.hypot(point["p_loss"] / REVEALED, point["u_loss"] / trivial)


def of_diversity_and_semantic(general: dict[str, Points], line: Points) -> list[Check]:
    """Whether ℓ-diversity and semantic privacy lie above the t-closeness line."""
    said = {L_DIVERSITY: "ℓ-diversity does not perform well",
            LITERAL: "semantic privacy does not perform well either",
            IGNORING: "semantic privacy does not perform well either"}  # fmt: skip
    times = {name: study.times_the_line(general[name], line) for name in said}
    return [
        Claim(
            f"{name}: does not perform well",
            sentence,
            f"at its P_loss {min(times[name]):.2g} to {max(times[name]):.3g} times the U_loss of "
            "t-closeness",
            min(times[name]) > 1,
        )
        for name, sentence in said.items()
    ]


def of_classes(general: dict[str, Points]) -> list[Check]:
    """Whether semantic privacy leaves few classes."""
    classes = {name: [p["classes"] for p in points] for name, points in general.items()}
    fewest = min(classes[CLOSENESS])
    return [
        Claim(
            f"{name}: few classes",
            "the number of equivalence classes is small",
            f"{min(classes[name])} to {max(classes[name]):,}; t-closeness has {fewest:,} or more",
            max(classes[name]) < fewest,
            expected=name == LITERAL,
            why="" if name == LITERAL else "what is absent no longer forbids a cut",
        )
        for name in (LITERAL, IGNORING)
    ]


def of_ranges(general: dict[str, Points]) -> list[Check]:
    """Whether the ranges of P_loss are similar: at least half as wide as the widest."""
    ends = {
        name: (min(p["p_loss"] for p in points), max(p["p_loss"] for p in points))
        for name, points in general.items()
    }
    widest = max(high - low for low, high in ends.values())
    return [
        Claim(
            f"{name}: range of P_loss",
            "they span a similar range on the x-axis, from 0 to 0.6",
            f"{low:.3f} to {high:.3f}",
            high - low >= widest / 2,
            expected=name != LITERAL,
            why="a class that lacks a rare value is forbidden, so that few cuts are possible"
            if name == LITERAL
            else "",
        )
        for name, (low, high) in ends.items()
    ]


def one_class(below_one: Points, open_: Sequence[dict[str, Any]]) -> Check:
    """Whether δ below 1 leaves one class."""
    ours = [point["classes"] for point in study.shown_as(below_one, GENERALIZED)]
    fewest = min(reading["semantic_classes"] for reading in open_)
    return Claim(
        "δ below 1",
        "Mondrian returns one single equivalence class when δ < 1",
        f"at δ = {BELOW_ONE} {ours[0]} classes, {ours[1]} where absent values are ignored; in "
        f"{len(open_)} other orders {fewest} or more",
        all(number == 1 for number in ours),
        expected=False,
        why="cutting ages at their median alone meets δ = 0.6, so that a cut is allowed",
    )


def drawn(general: dict[str, Points], small: Points, open_: Sequence[dict[str, Any]]) -> Any:
    """The curves, smaller t, other readings of k = 5000, and the printed point."""
    alt = look.altair()
    curves = curves_chart(as_columns(general, ("p_loss", "u_loss")), "u_loss", U_TITLE)
    ours = mark(("p_loss", PRINTED[0]), ("u_loss", PRINTED[1]), "printed, k = 5000")
    smaller = (
        look.chart(small)
        .mark_line(color=look.METHOD_COLOURS[2], strokeWidth=1.2, strokeDash=[2, 2],
                   point={"fill": "white", "stroke": look.METHOD_COLOURS[2], "size": 36})
        .encode(x=alt.X("p_loss:Q"), y=alt.Y("u_loss:Q"))
    )  # fmt: skip
    words = [
        values([general[name][end]], "u_loss", letter)
        for name, letter, end in (
            (K_ANONYMITY, "k", 0), (K_ANONYMITY, "k", -1), (L_DIVERSITY, "ℓ", 0),
            (CLOSENESS, "t", 0), (IGNORING, "δ", 0), (IGNORING, "δ", -1),
        )
    ]  # fmt: skip
    return alt.layer(cloud(open_, "p_loss", "u_loss"), smaller, curves, ours, *words)


FIG2A = Figure(
    name="kdd09-fig2a",
    paper=KDD09,
    what="Utility loss against privacy loss, four requirements",
    parts=parts,
    conclude=conclude,
)
