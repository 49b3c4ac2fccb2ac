"""What a class of rows must have before it may be shown: k, ℓ, t, δ and their kin."""

from voile.privacy.requirements.requirement import Histograms, Requirement

__all__ = ["Histograms", "Requirement"]
