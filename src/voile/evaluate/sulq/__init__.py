"""A Bayesian adversary in front of a server of noisy counts, simulated."""

from voile.evaluate.sulq.simulation import Setup, Simulation, simulate

__all__ = ["Setup", "Simulation", "simulate"]
