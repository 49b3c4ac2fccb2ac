"""Where things lie in the picture, in pixels, so that words do not cover points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Place = tuple[float, float]

LEFT = 0.012
"""Of the width: room to the left of no loss at all."""
MARGIN = 7
"""Around words, as a point is not only its middle."""
STEPS = 500
"""At which a border is looked up."""


@dataclass(frozen=True)
class Words:
    """How a text stands to the point that it is about: 'left' is a text that begins there."""

    align: str
    dx: float
    dy: float

    def box(self, at: Place, width: float, height: float) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the text."""
        begin = {"left": 0.0, "center": -width / 2, "right": -width}[self.align]
        left, middle = at[0] + self.dx + begin, at[1] + self.dy
        return left, middle - height / 2, left + width, middle + height / 2


AROUND = tuple(
    Words(align, dx, dy)
    for far in (0, 8, 16, 24, 32)
    for align, dx, dy in (
        ("left", 18, -15 - far), ("left", 18, 15 + far), ("right", -18, -15 - far),
        ("right", -18, 15 + far), ("center", 0, -24 - far), ("center", 0, 24 + far),
    )
)  # fmt: skip
"""Where words about a point may stand, the nearest and most usual first."""


@dataclass(frozen=True)
class Plane:
    """P_loss along, U_loss up by its square root."""

    right: float
    top: float
    width: int
    height: int

    @property
    def left(self) -> float:
        return -LEFT * self.right

    def at(self, p_loss: float, u_loss: float) -> Place:
        along = (p_loss - self.left) / (self.right - self.left)
        up = math.sqrt(min(max(u_loss / self.top, 0.0), 1.0))
        return along * self.width, (1 - up) * self.height

    def region_width(self, lower: Callable[[float], float], height: float) -> float:
        """How wide what lies under a falling border is, so many pixels above the ground."""
        least = self.top * (height / self.height) ** 2
        steps = (self.right * i / STEPS for i in range(STEPS + 1))
        inside = [p_loss for p_loss in steps if lower(p_loss) >= least]
        return self.at(inside[-1], 0)[0] - self.at(0, 0)[0] if inside else 0.0

    def along(self, line: Sequence[Place]) -> list[Place]:
        """Places on a line through these, at most `MARGIN` apart."""
        found: list[Place] = []
        for (x, y), (to_x, to_y) in pairwise(line):
            steps = math.ceil(math.hypot(to_x - x, to_y - y) / MARGIN) or 1
            shares = (i / steps for i in range(steps + 1))
            found += [(x + (to_x - x) * share, y + (to_y - y) * share) for share in shares]
        return found

    def free(
        self, about: Place, points: Sequence[Place], lines: Sequence[Place],
        width: float, height: float,
    ) -> Words:  # fmt: skip
        """Where words of this size cover fewest points, then least of lines, in the picture."""

        def covered(words: Words) -> tuple[int, ...]:
            left, top, right, bottom = words.box(about, width, height)
            out = left < 0 or top < 0 or right > self.width or bottom > self.height
            numbers = (
                sum(
                    left - MARGIN <= x <= right + MARGIN and top - MARGIN <= y <= bottom + MARGIN
                    for x, y in some
                )
                for some in (points, lines)
            )
            return out, *numbers

        return min(AROUND, key=covered)
