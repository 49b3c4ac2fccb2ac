"""Promises, adversaries and the parameters that keep a promise."""

from voile.privacy.guarantee import ADVERSARIES, Adversary, DGamma, LikelihoodRatio
from voile.privacy.guarantees import KINDS, Guarantee, parse_guarantee, parse_wish, spelled
from voile.privacy.guarantees.conversions import Conversion, consequences, convert
from voile.privacy.guarantees.statements import Statement, Told, not_promised, statements
from voile.privacy.planner import Form, Plan, plan

__all__ = [
    "ADVERSARIES", "KINDS", "Adversary", "Conversion", "DGamma", "Form", "Guarantee",
    "LikelihoodRatio", "Plan", "Statement", "Told", "consequences", "convert", "not_promised",
    "parse_guarantee", "parse_wish", "plan", "spelled", "statements",
]  # fmt: skip
