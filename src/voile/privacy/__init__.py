"""Promises, adversaries and the parameters that keep a promise."""

from voile.privacy.guarantee import ADVERSARIES, Adversary, DGamma, LikelihoodRatio
from voile.privacy.planner import Form, Plan, plan

__all__ = ["ADVERSARIES", "Adversary", "DGamma", "Form", "LikelihoodRatio", "Plan", "plan"]
