"""Promises, adversaries and the parameters that keep a promise."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from voile.privacy.guarantee import ADVERSARIES, Adversary, DGamma, Guarantee, LikelihoodRatio

if TYPE_CHECKING:
    from voile.privacy.guarantees import (
        KINDS,
        Target,
        parse_guarantee,
        parse_target,
        parse_wish,
        spelled,
    )
    from voile.privacy.guarantees.conversions import Conversion, consequences, convert
    from voile.privacy.guarantees.statements import (
        Disclosures,
        Statement,
        Told,
        not_promised,
        statements,
    )
    from voile.privacy.planner import Form, Plan, plan

__all__ = [
    "ADVERSARIES", "KINDS", "Adversary", "Conversion", "DGamma", "Disclosures", "Form",
    "Guarantee", "LikelihoodRatio", "Plan", "Statement", "Target", "Told", "consequences",
    "convert", "not_promised", "parse_guarantee", "parse_target", "parse_wish", "plan", "spelled",
    "statements",
]  # fmt: skip

_HOMES = {
    "guarantees": ("KINDS", "Target", "parse_guarantee", "parse_target", "parse_wish", "spelled"),
    "guarantees.conversions": ("Conversion", "consequences", "convert"),
    "guarantees.statements": ("Disclosures", "Statement", "Told", "not_promised", "statements"),
    "planner": ("Form", "Plan", "plan"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:  # loaded on first use: to answer a query takes no theorem and no plan
            return getattr(importlib.import_module(f"voile.privacy.{home}"), name)
    raise AttributeError(f"module 'voile.privacy' has no attribute {name!r}")
