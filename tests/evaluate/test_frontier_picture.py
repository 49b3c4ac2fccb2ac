"""The frontier's picture: words do not cover points, and every method keeps its colour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rich.console import Console

from voile.evaluate.frontier import CertifiedFrontier, Frontier
from voile.evaluate.frontier.frontier_plot import (
    AROUND,
    MARGIN,
    REGION,
    LossPlane,
    caption,
    curves,
    draw,
    family,
)
from voile.evaluate.frontier.mixture import Certified, LossBound
from voile.evaluate.frontier.page import page
from voile.evaluate.frontier.portfolio import GRIDS, Point, candidates, frontier_methods
from voile.terminal.evaluation import frontier_view


def point(p_loss: float, u_loss: float, method: str = "mondrian", **asked: Any) -> Point:
    """A release with these losses."""
    recode = {"recode": "bucketize"} if frontier_methods()[method].recodes else {}
    return Point(method, {**asked, **recode}, "k = 10", p_loss, u_loss, 5, 100, 0.1, "voile …")


def frontier(*points: Point, steep: float = 1.0) -> Frontier:
    """Nothing is below the line from the trivial loss, 0.04, to 0 at a P_loss of 0.1/steep."""
    line = Certified(0.05, 0.03, LossBound(0.04, 0.4 * steep), 1, 0.1)
    certified = CertifiedFrontier((line,), 0.04)
    return Frontier(
        "people", 100, ("age",), "ill", 0.05, 10, (0.2, 0.4), 0.5, points, (), certified
    )


def texts(found: Frontier) -> list[Any]:
    """All that is written in the plane."""
    layers = draw(found).to_dict()["hconcat"][0]["vconcat"][0]["layer"]
    return [layer["mark"]["text"] for layer in layers if layer["mark"]["type"] == "text"]


def test_pixels_are_those_of_the_scales() -> None:
    plane = LossPlane(0.5, 0.04, 800, 500)
    assert plane.at(0.5, 0) == pytest.approx((800, 500))
    assert plane.at(plane.left, 0.04) == pytest.approx((0, 0))
    assert plane.at(0, 0.01)[1] == pytest.approx(250)  # a quarter of the top, at half the height


def test_a_region_is_as_wide_as_its_border_says() -> None:
    plane = LossPlane(0.5, 0.04, 800, 500)
    width = plane.region_width(lambda p: 0.04 if p <= 0.25 else 0.0, 40)
    assert width == pytest.approx(800 * 0.25 / (0.5 - plane.left), abs=2)
    assert plane.region_width(lambda _: 0.0, 40) == 0


def test_what_is_forbidden_is_said_in_its_region_only_where_that_has_room() -> None:
    best = point(0.2, 0.01, k=10)
    assert REGION in texts(frontier(best, steep=0.5))
    assert REGION not in texts(frontier(best, steep=4))
    assert "no bucketization" in caption(frontier(best))[0]


def test_the_word_about_a_point_covers_as_little_as_can_be() -> None:
    generator = np.random.default_rng(5)
    plane, covered = LossPlane(0.5, 0.04, 800, 500), 0
    for _ in range(200):
        about = (float(generator.uniform(0, 800)), float(generator.uniform(0, 500)))
        others = [(float(x), float(y)) for x, y in generator.uniform(0, (800, 500), (60, 2))]
        words = plane.free(about, others, [], 104, 18)
        left, top, right, bottom = words.box(about, 104, 18)
        assert 0 <= left < right <= 800 and 0 <= top < bottom <= 500
        covered += any(
            left - MARGIN < x < right + MARGIN and top - MARGIN < y < bottom + MARGIN
            for x, y in others
        )
    assert covered <= 2  # any place for itself covers one in every second picture
    assert plane.free((400, 250), [], [], 104, 18) == AROUND[0]
    above = plane.along([(0, 235), (800, 235)])
    assert len(above) >= 800 / MARGIN
    assert plane.free((400, 250), [], above, 104, 18) == AROUND[1]


def test_every_curve_has_a_colour_of_its_own_in_every_picture() -> None:
    assert len(set(curves().values())) == len(curves())
    asked = candidates(list(frontier_methods()), GRIDS["paper"])
    points = [point(0.1, 0.02, c.method, **c.asked) for c in asked]
    assert {family(p) for p in points} == set(curves())
    for some in (points, points[::-7], points[-3:]):
        seen: dict[str, str] = {}
        for layer in draw(frontier(*some)).to_dict()["hconcat"][0]["vconcat"][0]["layer"]:
            if "color" in layer.get("encoding", {}):
                scale = layer["encoding"]["color"]["scale"]
                seen = dict(zip(scale["domain"], scale["range"], strict=True))
        assert seen == {name: curves()[name] for name in seen}
        assert set(seen) == {family(p) for p in some}


def test_a_bound_of_nothing_is_not_told() -> None:
    told = frontier(point(0.05, 0.03, k=10)).in_words()
    assert "no bucketization with that P_loss has a U_loss below 0.02." in told
    assert "below" not in frontier(point(0.2, 0.01, k=10)).in_words()


def test_rounding_is_not_below_the_bound() -> None:
    on_it = point(0.05, 0.02 - 1e-15, k=10)
    below = point(0.04, 0.024 - 1e-7, k=20)
    found = frontier(on_it, below)
    assert found.above(on_it) == 0
    assert found.above(below) == pytest.approx(-1e-7)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(frontier_view(found))
    assert "0.00000" in shown.get() and "-0.00000" not in shown.get()
    assert "-0.00000" not in page(found).decode().split("Efficient releases")[1]
