"""Every figure and table of the papers: as data, as a picture, and with a verdict.

One package for each paper. Its modules use what docs/reference/api lists and nothing else.
"""

from __future__ import annotations

from voile.reproduce.catalogue import FIGURES, find
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.running import reproduce
from voile.reproduce.verdict import Check, Claim, Number, Reproduced, Reproduction, Sample

__all__ = [
    "FIGURES", "Check", "Claim", "Figure", "Finding", "Number", "Part", "Reproduced",
    "Reproduction", "Run", "Sample", "find", "reproduce",
]  # fmt: skip
