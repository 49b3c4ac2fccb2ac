"""What a class of rows must have before it may be shown: k, ℓ, t, δ and their kin."""

from voile.privacy.requirements.asked import requirement_from_dict, requirements_of
from voile.privacy.requirements.closeness import T
from voile.privacy.requirements.diversity import L
from voile.privacy.requirements.requirement import Histograms, Requirement
from voile.privacy.requirements.semantic import Semantic
from voile.privacy.requirements.sizes import AlphaK, K, Presence

__all__ = [
    "AlphaK", "Histograms", "K", "L", "Presence", "Requirement", "Semantic", "T",
    "requirement_from_dict", "requirements_of",
]  # fmt: skip
