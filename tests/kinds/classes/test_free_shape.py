"""Buckets of free shape: better than Mondrian, and every requirement met."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.grouped import adult
from tests.support.random_units import (
    REQUIREMENTS,
    WAYS,
    feasible,
    meets_all,
    random_units,
)
from voile.evaluate.losses.queries import u_loss
from voile.privacy.divergence import jensen_shannon
from voile.privacy.requirements import K, T
from voile.recoding.free_shape import BucketScorer, Questions, free_shape, paired, values_and_pairs
from voile.recoding.grouping import bounding, shown
from voile.recoding.mondrian import mondrian
from voile.recoding.populations import populations
from voile.recoding.units import Units


def adult_questions() -> tuple[Units, Questions, Callable[[npt.NDArray[np.int32]], float]]:
    """Adult's 1,780 populations, and U_loss of a bucketization as the losses room has it."""
    units, levels, orders = adult()
    codes = np.stack([order[of] for order, of in zip(orders, units.codes, strict=True)])
    sensitive = np.eye(units.sensitive_sizes[0], dtype=np.int64)[units.sensitive[0]]
    found = populations(codes, levels, int(np.ceil(0.05 * units.rows)), sensitive)

    def loss(classes: npt.NDArray[np.int32]) -> float:
        grouping = bounding(units, classes, int(classes.max()) + 1)
        return u_loss(shown(units, grouping, "bucketize"), found, orders)

    return units, Questions(found.atoms_of(codes), found.starts, found.members), loss


def test_free_shapes_lie_below_every_mondrian() -> None:
    """The errata's numbers at t = 0.05: .0230 at medians, .0182 by information, .0112 free."""
    units, questions, loss = adult_questions()
    losses = {way: loss(mondrian(units, [T(0.05)], cuts=way).grouping.classes) for way in WAYS}
    assert losses["median"] == pytest.approx(0.0230, abs=5e-5)
    assert losses["information"] == pytest.approx(0.0182, abs=5e-5)
    grouping = free_shape(units, [T(0.05)], questions, rounds=60)
    assert loss(grouping.classes) < 0.0112 < min(losses.values())
    assert T(0.05).met(grouping.histograms(units)).all()


def test_the_search_minimises_what_the_losses_room_measures() -> None:
    units, questions, loss = adult_questions()
    classes = mondrian(units, [K(1000)]).grouping.classes
    scoring = BucketScorer(questions, units.sensitive[0].astype(np.int64), int(classes.max()) + 1)
    assert scoring.buckets(classes.astype(np.int64)).loss == pytest.approx(loss(classes), abs=1e-12)


def test_slopes_are_derivatives() -> None:
    """To first order the loss changes by slope·(p_C − p_B) when a row is told p_C, not p_B."""
    units = random_units(2)
    scoring = BucketScorer(values_and_pairs(units), units.sensitive[0].astype(np.int64), 3)
    found = scoring.buckets(np.arange(len(units.weights)) % 3)
    step, slope = 1e-6, scoring.slope(found)
    questions = scoring.questions
    for atom in range(int(questions.atom.max()) + 1):
        told = np.zeros((slope.shape[0], slope.shape[1]))
        told[atom] = step * (found.shares[1] - found.shares[0])
        moved = found.estimated + questions.incidence @ told / scoring.sizes
        change = jensen_shannon(scoring.true, moved).mean() - found.loss
        assert change == pytest.approx(float((slope * told).sum()), rel=1e-3, abs=1e-13)


def test_free_shapes_meet_requirements_and_never_lose() -> None:
    for requirements in REQUIREMENTS:
        for seed in range(4):
            units = random_units(seed)
            if not feasible(units, requirements):
                continue
            start = mondrian(units, requirements, cuts="certainty").grouping
            found = free_shape(units, requirements, rounds=20)
            classes = [np.flatnonzero(found.classes == c).tolist() for c in range(found.number)]
            assert all(meets_all(units, of, requirements) for of in classes)
            again = free_shape(units, requirements, rounds=20)
            assert (again.classes == found.classes).all(), "nothing is random"
            scoring = BucketScorer(
                values_and_pairs(units), units.sensitive[0].astype(np.int64), start.number
            )
            losses = [scoring.buckets(g.classes.astype(np.int64)).loss for g in (found, start)]
            assert losses[0] <= losses[1]


@pytest.mark.parametrize("number", [2, 3, 6, 9])
def test_in_a_tournament_all_buckets_meet(number: int) -> None:
    met = set()
    for turn in range(number + number % 2 - 1):
        partner = paired(number, turn)
        for bucket, other in enumerate(partner.tolist()):
            assert other == -1 or partner[other] == bucket != other
            met.add((bucket, other))
    assert {(a, b) for a in range(number) for b in range(number) if a != b} <= met
