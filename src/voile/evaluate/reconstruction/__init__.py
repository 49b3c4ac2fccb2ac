"""Dinur and Nissim's attack: a secret column from noisy counts of random subsets of the rows."""

from voile.evaluate.reconstruction.simulating import Attempt, Noise, Reconstruction, simulate

__all__ = ["Attempt", "Noise", "Reconstruction", "simulate"]
