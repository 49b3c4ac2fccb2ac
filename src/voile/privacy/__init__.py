"""Promises, adversaries and the parameters that keep a promise."""

from voile.privacy.guarantee import ADVERSARIES, Adversary, DGamma, LikelihoodRatio
from voile.privacy.guarantees.conversions import Conversion, consequences, convert
from voile.privacy.guarantees.denials import not_promised
from voile.privacy.guarantees.kinds import KINDS, Guarantee
from voile.privacy.guarantees.spelling import parse_guarantee, parse_wish, spelled
from voile.privacy.guarantees.statements import Statement, Told, statements
from voile.privacy.planner import Form, Plan, plan

__all__ = [
    "ADVERSARIES", "KINDS", "Adversary", "Conversion", "DGamma", "Form", "Guarantee",
    "LikelihoodRatio", "Plan", "Statement", "Told", "consequences", "convert", "not_promised",
    "parse_guarantee", "parse_wish", "plan", "spelled", "statements",
]  # fmt: skip
