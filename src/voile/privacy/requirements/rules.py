"""Requirements as arrays of numbers, which compiled code can check at every candidate cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.privacy.requirements.kernels import (
    AT_LEAST_ROWS,
    DISTINCT,
    EMD_HIERARCHICAL,
    EMD_ORDERED,
    ENTROPY,
    FREQUENCY,
    JENSEN_SHANNON,
    LIMITED_SHARES,
    PRESENCE,
    RECURSIVE,
    SEMANTIC_FORBIDDEN,
    SEMANTIC_IGNORED,
    VARIATIONAL,
)
from voile.privacy.requirements.requirement import SLACK, AlphaK, Counts, K, Presence, Requirement
from voile.privacy.requirements.sensitive import L, Semantic, T, Tree, overall_shares

MEASURE_CODES = {
    "frequency": FREQUENCY,
    "distinct": DISTINCT,
    "entropy": ENTROPY,
    "recursive": RECURSIVE,
}
DISTANCE_CODES = {
    "js": JENSEN_SHANNON,
    "variational": VARIATIONAL,
    "emd-equal": VARIATIONAL,
    "emd-ordered": EMD_ORDERED,
    "emd-hierarchical": EMD_HIERARCHICAL,
}


class Rules(NamedTuple):
    """What `meets` reads. It writes to `scratch`: threads must not share one."""

    starts: Counts
    """Where each sensitive attribute's counts start in a class's histogram, and its end."""
    shares: Floats
    """The whole table's shares, as the histogram is laid out."""
    codes: Counts
    """(rules,): what is checked, the cheapest first."""
    attributes: Counts
    """(rules,): the sensitive attribute, −1 for none."""
    bounds: Floats
    """(rules,): the bound, with its slack."""
    seconds: Floats
    """(rules,): the second parameter, where there is one."""
    limited: npt.NDArray[np.bool_]
    """(rules, values): of (α,k), the values whose share is limited."""
    trees: npt.NDArray[np.int32]
    """(levels of all trees, values): the node of each value."""
    tree_starts: Counts
    """(rules + 1,): which of those levels are the rule's."""
    scratch: Floats


@dataclass(frozen=True)
class RequirementRule:
    """One check; a requirement may be two."""

    code: int
    bound: float
    second: float = 0.0
    attribute: int = -1
    values: tuple[int, ...] | None = None
    tree: Tree = ()


def rules_of(requirements: Sequence[Requirement], overall: Sequence[Counts]) -> Rules:
    """The requirements for classes of a table whose sensitive values have these counts."""
    whole = [overall_shares(counts) for counts in overall]
    found = [rule for r in requirements for rule in _rules(r, whole)]
    found.sort(key=lambda rule: rule.code)
    sizes = [len(counts) for counts in overall]
    widest = max([1, *sizes])
    limited = np.zeros((len(found), widest), dtype=np.bool_)
    for row, rule in zip(limited, found, strict=True):
        row[slice(None) if rule.values is None else list(rule.values)] = True
    levels = [nodes for rule in found for nodes in rule.tree]
    trees = np.zeros((len(levels), widest), dtype=np.int32)
    for line, nodes in zip(trees, levels, strict=True):
        line[: len(nodes)] = nodes
    return Rules(
        starts=np.cumsum([0, *sizes], dtype=np.int64),
        shares=np.concatenate([*whole, np.empty(0)]),
        codes=np.array([rule.code for rule in found], dtype=np.int64),
        attributes=np.array([rule.attribute for rule in found], dtype=np.int64),
        bounds=np.array([rule.bound for rule in found], dtype=np.float64),
        seconds=np.array([rule.second for rule in found], dtype=np.float64),
        limited=limited,
        trees=trees,
        tree_starts=np.cumsum([0, *(len(rule.tree) for rule in found)], dtype=np.int64),
        scratch=np.zeros(widest),
    )


def _rules(requirement: Requirement, whole: Sequence[Floats]) -> list[RequirementRule]:
    match requirement:
        case K(k):
            return [RequirementRule(AT_LEAST_ROWS, k)]
        case Presence(low, high):
            return [RequirementRule(PRESENCE, low - SLACK, high + SLACK)]
        case AlphaK(alpha, k, attribute, values):
            shares = RequirementRule(
                LIMITED_SHARES, alpha + SLACK, attribute=attribute, values=values
            )
            return [RequirementRule(AT_LEAST_ROWS, k), shares]
        case L():
            return [_diversity(requirement)]
        case T(t, distance, attribute, tree):
            own = whole[attribute]
            entropy = float((own * np.log(np.where(own > 0, own, 1))).sum())
            return [
                RequirementRule(
                    DISTANCE_CODES[distance], t + SLACK, entropy, attribute, tree=tree or ()
                )
            ]
        case Semantic(delta, absent, attribute):
            code = SEMANTIC_FORBIDDEN if absent == "forbidden" else SEMANTIC_IGNORED
            return [
                RequirementRule(code, float(np.exp(min(delta + SLACK, 700.0))), attribute=attribute)
            ]
    raise NotImplementedError(f"{type(requirement).__name__} has no compiled form")


def _diversity(requirement: L) -> RequirementRule:
    code, attribute = MEASURE_CODES[requirement.measure], requirement.attribute
    if requirement.measure == "frequency":
        return RequirementRule(code, (1 + SLACK) / requirement.l, attribute=attribute)
    if requirement.measure == "entropy":
        return RequirementRule(code, float(np.log(requirement.l)) - SLACK, attribute=attribute)
    strictly = float(requirement.c or 0) * (1 - SLACK)
    return RequirementRule(code, requirement.l, strictly, attribute)
