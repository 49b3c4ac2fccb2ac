"""Figures of KDD 2009: their pieces by the oracle, their verdicts on results that are wrong."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.support.paths import TESTS
from voile.evaluate.losses import p_loss
from voile.kinds.blocks import Points
from voile.privacy.requirements import K
from voile.reproduce.figure import Finding, Run
from voile.reproduce.kdd09 import FIGURES, frontier, interpretation, study, table1
from voile.reproduce.kdd09.answers import FIG3A, drawn_queries, errors, regions
from voile.reproduce.kdd09.frontier import FRONTIER
from voile.reproduce.kdd09.interpretation import INTERPRETATION
from voile.reproduce.kdd09.losses import FIG2A, grouped, readings
from voile.reproduce.kdd09.query_size import DIMENSIONS, FIG3B, FIG3C, literal
from voile.reproduce.kdd09.showing import FIG2B
from voile.reproduce.kdd09.study import BUCKETIZED, GENERALIZED, REQUIREMENTS, SMALL_T
from voile.reproduce.verdict import Check

ORACLE = json.loads((TESTS / "oracle" / "frontier.json").read_text())
CURVES = ORACLE["curves"]["R1 edunum"]
FULL, QUICK = Run(), Run(quick=True)


def check(found: Finding, what: str) -> Check:
    (one,) = [c for c in found.checks if c.what == what]
    return one


def unsound(found: Finding) -> list[str]:
    return [c.what for c in found.checks if not c.sound]


# ---------------------------------------------------------------------- pieces


def test_rows_and_values_of_the_table() -> None:
    found = table1.counted()
    assert found["rows"] == ORACLE["data"]["rows"]
    renamed = {"marital": "marital_status"}
    for name, size in ORACLE["data"]["domain_sizes"].items():
        assert found["sizes"][renamed.get(name, name)] == size
    assert not unsound(table1.TABLE1.conclude(FULL, [found]))
    fewer = found | {"rows": 45221, "sizes": found["sizes"] | {"workclass": 8}}
    assert unsound(table1.TABLE1.conclude(FULL, [fewer])) == ["rows", "values of workclass"]


@pytest.mark.parametrize(
    ("key", "options"),
    [
        ("k:5000", {"k": 5000}),
        ("l:3.5", {"l": 3.5}),
        ("t:0.1", {"t": 0.1}),
        ("d:1.5", {"semantic": 1.5, "absent": "forbidden"}),
    ],
)
def test_releases_are_the_oracles(key: str, options: dict[str, Any]) -> None:
    general, bucket = study.losses("mondrian", [options])
    classes, privacy, of_general, of_bucket = CURVES[key]
    assert (general["recode"], bucket["recode"]) == (GENERALIZED, BUCKETIZED)
    assert general["classes"] == bucket["classes"] == classes
    assert general["p_loss"] == pytest.approx(privacy, abs=1e-6)
    assert general["u_loss"] == pytest.approx(of_general, abs=1e-6)
    assert bucket["u_loss"] == pytest.approx(of_bucket, abs=1e-6)


def test_a_reading_in_our_orders_is_ours_and_others_differ() -> None:
    (showing, _) = study.classes_of(json.dumps({"k": 5000}))
    units = study.subject().units
    places = [
        np.argsort(order)[codes] for order, codes in zip(showing.orders, units.codes, strict=True)
    ]
    turned = replace(units, codes=np.stack(places).astype(np.int32))
    ours = grouped(turned, np.arange(6), K(5000))
    assert p_loss(ours) == pytest.approx(CURVES["k:5000"][1], abs=1e-9)
    backwards = grouped(turned, np.arange(6)[::-1], K(5000))
    assert abs(p_loss(backwards) - CURVES["k:5000"][1]) > 0.001
    assert readings(3, 2) == readings(3, 2) != readings(4, 2)


def test_sel_read_literally_names_that_fraction_of_every_attribute() -> None:
    queries, counts = drawn_queries(*literal((4, 0.2)), seed=1, queries=20)
    assert counts.min() > 0
    sizes = study.subject().units.sizes
    named = [sets.sum(axis=1) for sets in queries.qi]
    for size, numbers in zip(sizes, named, strict=True):
        assert set(numbers.tolist()) <= {size, math.ceil(0.2 * size - 1e-9)}
    assert (queries.sensitive.sum(axis=1) == 3).all()


def test_errors_of_queries_by_their_definition() -> None:
    found = errors([{"k": 5000}], 2, 0.1, seed=5, queries=10, recodes=[BUCKETIZED])
    queries, counts = drawn_queries(2, 0.1, 5, 10)
    units, (_, showing) = study.subject().units, study.classes_of(json.dumps({"k": 5000}))
    (blocks,) = showing.told
    assert isinstance(blocks, Points)
    inside = np.all(
        [sets[:, codes] for sets, codes in zip(queries.qi, blocks.codes, strict=True)], axis=0
    )
    estimate = (inside.astype(float) @ blocks.counts * queries.sensitive).sum(axis=1)
    rows = np.all(
        [sets[:, codes] for sets, codes in zip(queries.qi, units.codes, strict=True)], axis=0
    )
    truth = (rows & queries.sensitive[:, units.sensitive[0]]) @ units.weights
    assert truth == pytest.approx(counts)
    expected = 100 * np.mean(np.abs(estimate - truth) / truth)
    assert found["errors"] == [{BUCKETIZED: pytest.approx(expected)}]
    assert found["rows"] == np.median(truth)


def test_what_is_compared_with_a_line() -> None:
    line = [{"p_loss": 0.3, "u_loss": 1.0}, {"p_loss": 0.1, "u_loss": 3.0}]
    points = [{"p_loss": p, "u_loss": 4.0} for p in (0.05, 0.1, 0.2, 0.5)]
    assert study.times_the_line(points, line) == pytest.approx([4 / 3, 2.0, 4.0])


def test_the_certified_border_is_below_what_was_reached() -> None:
    found = frontier.optimum([0.05])
    (point,) = found["points"]
    assert point["lower"] <= point["u_loss"] <= 1.03 * point["lower"]
    assert point["u_loss"] == pytest.approx(0.0037, abs=frontier.READING)
    lower = [value for _, value in found["border"]]
    assert all(after <= before for before, after in pairwise(lower))
    assert frontier.bound(found, 0.0498) == frontier.bound(found, 0.05) <= point["lower"] + 1e-12


def test_shares_and_known_values_are_the_oracles() -> None:
    found = interpretation.shares()
    known = ORACLE["js_revealed_natural_log"]["values"]
    assert found["revealed"] == pytest.approx(known, abs=1e-9)
    assert list(found["share"].values()) == pytest.approx(
        [dict(zip(ORACLE["data"]["occupation_order"], ORACLE["data"]["Q"], strict=True))[name]
         for name in found["share"]]
    )  # fmt: skip
    assert 0.6 < found["mixed"] <= max(known.values()) + 1e-9


# ---------------------------------------------------------------------- verdicts


def of_curve(key: str, values: tuple[float, ...], times: float = 1.0) -> list[dict[str, Any]]:
    """A curve of the oracle as a piece's result, its U_loss so many times."""
    rows = {float(name[2:]): row for name, row in CURVES.items() if name[0] == key}
    found = []
    for value in values:
        classes, privacy, *utility = rows[value]
        for recode, loss in zip((GENERALIZED, BUCKETIZED), utility, strict=True):
            found.append({
                "value": value, "recode": recode, "p_loss": privacy, "u_loss": loss * times,
                "classes": classes,
            })  # fmt: skip
    return found


def by_hand(values: tuple[float, ...], losses: list[tuple[float, float]]) -> list[dict[str, Any]]:
    return [
        {"value": value, "recode": recode, "p_loss": p, "u_loss": u * share, "classes": 2000}
        for value, (p, u) in zip(values, losses, strict=True)
        for recode, share in ((GENERALIZED, 1.0), (BUCKETIZED, 0.9))
    ]


def curve_results() -> list[Any]:
    ignoring = [(0.038 + 0.066 * i, 0.0418 - 0.005 * i) for i in range(8)]
    small = [(t, 0.036 - 0.25 * t) for t in SMALL_T]
    return [
        of_curve("k", study.K), of_curve("l", study.L), of_curve("t", study.T),
        of_curve("d", study.DELTA), by_hand(study.DELTA, ignoring), by_hand(SMALL_T, small),
    ]  # fmt: skip


def loss_results() -> list[Any]:
    trivial = [{"value": None, "recode": GENERALIZED, "p_loss": 0.0, "u_loss": 0.0437,
                "classes": 1}]  # fmt: skip
    several = [{"value": 0.99, "recode": GENERALIZED, "classes": 5}] * 2
    reading = {"p_loss": 0.02, "u_loss": 0.04, "diverse_p_loss": 0.35, "semantic_classes": 1}
    other = {"p_loss": 0.12, "u_loss": 0.015, "diverse_p_loss": 0.52, "semantic_classes": 5}
    return [*curve_results(), trivial, several, [reading, other]]


def test_figure_2a_holds_for_the_oracles_curves_and_fails_for_others() -> None:
    right = FIG2A.conclude(FULL, loss_results())
    assert not unsound(right)
    right.picture().to_dict()
    worse = loss_results()
    worse[2] = of_curve("t", study.T, times=20)
    assert "t-closeness is the best" in unsound(FIG2A.conclude(FULL, worse))
    other = loss_results()
    study.at(other[0], 5000, GENERALIZED)["p_loss"] = 0.086
    assert unsound(FIG2A.conclude(FULL, other)) == ["P_loss at k = 5000"]
    one = loss_results()
    one[7] = [point | {"classes": 1} for point in one[7]]
    assert unsound(FIG2A.conclude(FULL, one)) == ["δ below 1"]


def test_figure_2b_fails_where_generalization_is_better() -> None:
    right = FIG2B.conclude(FULL, curve_results())
    assert not unsound(right)
    swapped = curve_results()
    turned = {GENERALIZED: BUCKETIZED, BUCKETIZED: GENERALIZED}
    swapped[2] = [
        point | {"recode": turned[point["recode"]]}
        for point in sorted(swapped[2], key=lambda p: (p["value"], p["recode"]))
    ]
    assert unsound(FIG2B.conclude(FULL, swapped)) == [
        "bucketization is better", "t-closeness: substantially",
    ]  # fmt: skip


def answer_results(factor: float = 1.0) -> list[Any]:
    """Errors that grow with U_loss; those of the others are so many times as large."""
    curves, found = curve_results(), []
    for i, points in enumerate(curves):
        times = 1.0 if i in (2, 5) else factor
        pairs = zip(points[::2], points[1::2], strict=True)
        found += [{
            "errors": [{GENERALIZED: 9e3 * g["u_loss"] + 1, BUCKETIZED: 100 * b["u_loss"] * times}
                       for g, b in pairs],
            "rows": 2000.0, "queries": 250,
        }]  # fmt: skip
    generalized = [{"errors": [{GENERALIZED: error}], "rows": 2000.0, "queries": 250}
                   for error in (300.0, 340.0, 370.0, 390.0)]  # fmt: skip
    return [*curves, *found, *generalized]


def test_figure_3a_fails_where_others_are_better_than_t_closeness() -> None:
    right = FIG3A.conclude(QUICK, answer_results())
    assert not unsound(right)
    right.picture().to_dict()
    wrong = FIG3A.conclude(QUICK, answer_results(0.01))
    assert "a similar pattern as in Figure 2(a)" in unsound(wrong)
    assert "U_loss tells of queries" in unsound(wrong)


def size_results(levels: list[float], rows: list[float]) -> list[Any]:
    """A quick run: three releases, two seeds; the same errors are met where sel is literal."""
    points = [p for p in of_curve("t", study.T) if p["value"] in (0.075, 0.2, 0.35)]
    told = [
        {"errors": [{BUCKETIZED: level / (i + 1)} for i in range(3)], "rows": met, "queries": 250}
        for level, met in zip(levels, rows, strict=True)
        for _ in range(2)
    ]
    literally = [
        {"errors": [{BUCKETIZED: 60.0}], "rows": met, "queries": 250}
        for met in ([2.0, 9.0] if len(levels) == 2 else [16.0, 4.0, 1.0])
        for _ in range(2)
    ]
    return [points, *told, *literally, [0.07, 0.08, 0.09, 0.14, 0.13]]


def test_figures_3b_and_3c_fail_where_errors_grow() -> None:
    for figure, levels in ((FIG3B, [10.0, 2.0]), (FIG3C, [9.0, 5.0, 3.0])):
        rows = [1000.0 * (i + 1) for i in range(len(levels))]
        assert not unsound(figure.conclude(QUICK, size_results(levels, rows)))
        grown = figure.conclude(QUICK, size_results(levels[::-1], rows[::-1]))
        assert len(unsound(grown)) == 2
    assert len(FIG3C.parts(FULL)) == 2 + 2 * 4 * len(DIMENSIONS)
    wider = [*size_results([9.0, 5.0, 3.0], [1e3, 2e3, 3e3])[:-1], [0.1, 0.2, 0.3, 0.4, 0.5]]
    assert unsound(FIG3C.conclude(QUICK, wider)) == ["a larger region with every further condition"]


def test_regions_are_those_of_the_queries_that_are_drawn() -> None:
    """On average over 2000 queries, within five standard errors."""
    for dimension, share in zip((2, 6), regions((2, 6)), strict=True):
        queries, _ = drawn_queries(dimension, 0.05, 3, 2000)
        named = np.prod([sets.mean(axis=1) for sets in (*queries.qi, queries.sensitive)], axis=0)
        error = named.std() / np.sqrt(named.size)
        assert abs(named.mean() - share) <= 5 * error + 1e-12


def meaning_results() -> list[Any]:
    told = {
        "share": dict(zip(ORACLE["data"]["occupation_order"], ORACLE["data"]["Q"], strict=True)),
        "revealed": ORACLE["js_revealed_natural_log"]["values"],
        "mixed": 0.69,
    }
    results = loss_results()
    return [*results[:7], told, 0.05, results[8]]


def test_the_meaning_of_losses_fails_for_other_shares() -> None:
    right = INTERPRETATION.conclude(FULL, meaning_results())
    assert not unsound(right)
    right.picture().to_dict()
    wrong = deepcopy(meaning_results())
    wrong[7]["share"]["Sales"] = 0.1197
    wrong[7]["revealed"]["Craft-repair"] = 0.4871
    wrong[6][0]["u_loss"] = 0.03
    assert unsound(INTERPRETATION.conclude(FULL, wrong)) == [
        "share of Sales", "P_loss of Craft-repair, known", "P_loss of a known value",
        "U_loss without quasi-identifiers", "better than trivial",
    ]  # fmt: skip


def frontier_results() -> list[Any]:
    def at(places: tuple[float, ...], losses: tuple[float, ...]) -> list[dict[str, Any]]:
        return [{"value": p, "recode": BUCKETIZED, "p_loss": p, "u_loss": u}
                for p, u in zip(places, losses, strict=True)]  # fmt: skip

    certified = [{"p_loss": p, "u_loss": u, "lower": u * 0.98}
                 for p, u in zip(frontier.PLACES, frontier.OPTIMUM, strict=True)]  # fmt: skip
    border = [[0.0, 0.0437], [0.03, 0.0083], [0.05, 0.0036], [0.075, 0.0010], [0.1, 0.0002]]
    noise = [{"value": 0.5, "recode": None, "p_loss": 0.4, "u_loss": 0.003}]
    shapes = at(frontier.PLACES, (0.0171, 0.0089, 0.0039, 0.0015))
    return [
        *curve_results(), at(frontier.PLACES, frontier.MONDRIAN),
        at(frontier.PLACES, frontier.INFORMATION), {"points": certified, "border": border}, noise,
        noise, noise, shapes,
    ]  # fmt: skip


def test_the_frontier_fails_where_something_is_below_it_or_it_is_elsewhere() -> None:
    right = FRONTIER.conclude(FULL, frontier_results())
    assert not unsound(right)
    right.picture().to_dict()
    below = frontier_results()
    below[-1][0]["u_loss"] = 0.004
    assert unsound(FRONTIER.conclude(FULL, below)) == ["nothing is below the certified bound"]
    moved = frontier_results()
    moved[8]["points"][0]["u_loss"] = 0.0086
    moved[7][1]["u_loss"] = 0.0184
    assert unsound(FRONTIER.conclude(FULL, moved)) == [
        "least U_loss at P_loss 0.03", "U_loss of t-closeness, information cuts, t = 0.05",
    ]  # fmt: skip


# ---------------------------------------------------------------------- all of them


def test_pieces_are_plain_and_named_once() -> None:
    assert len({figure.name for figure in FIGURES}) == len(FIGURES) == 8
    for figure in FIGURES:
        assert len(figure.what) < 72
        for run in (FULL, QUICK):
            keys = [part.key for part in figure.parts(run)]
            assert len(set(keys)) == len(keys)
    assert list(REQUIREMENTS)[2] == study.CLOSENESS
