"""A number with its error, and answers made of them; without NumPy, so that it starts fast."""

from voile.estimate.answer import Answer
from voile.estimate.estimate import Bound, Estimate, checked_confidence, finite, number, shown

__all__ = [
    "Answer", "Bound", "Estimate",
    "checked_confidence", "finite", "number", "shown",
]  # fmt: skip
