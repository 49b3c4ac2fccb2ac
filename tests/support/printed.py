"""What a page shows of a command's output, beside what the command prints: words, not numbers.

Coins are tossed anew when the pages are run, so that numbers differ; words, and what stands beside
what, do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

FRAMES = re.compile("[─━│┃┏┳┓┡╇┩└┴┘├┼┤▁▂▃▄▅▆▇█]+")
NUMBER = re.compile(r"\b[0-9a-f]{8,}\b|[-+]?\.?\d[\d,.]*(?:e[-+]?\d+)?")
"""Also ids and digests, which are numbers to the base 16."""

LEFT_OUT = "…"


def words(text: str) -> str:
    """Without frames, with # for every number, and with single spaces."""
    return " ".join(NUMBER.sub("#", FRAMES.sub(" ", text)).split())


def not_printed(shown: Sequence[str], printed: str) -> list[str]:
    """The lines shown whose words were not printed; … stands for anything."""
    said = words(printed)
    return [line for line in shown if not re.search(pattern(line), said)]


def pattern(line: str) -> str:
    return ".*".join(re.escape(part.strip()) for part in words(line).split(LEFT_OUT))
