"""What classes of rows promise, as statements that any release can be asked for."""

from __future__ import annotations

from collections.abc import Sequence

from voile.privacy.guarantees.denials import not_kept
from voile.privacy.guarantees.statements import Statement, void
from voile.privacy.requirements.requirement import Requirement
from voile.privacy.requirements.sizes import K

KNOWING = "someone who knows a person's quasi-identifiers and the table's distribution, no more"
SHOWN = "measured on every class that is shown"


def class_statements(
    requirements: Sequence[Requirement],
    sensitive: Sequence[str],
    *,
    bucketized: bool,
    simulated: bool,
) -> list[Statement]:
    """Each requirement, as it was asked for, the ones about values first; no more follows."""
    found = [
        Statement(
            requirement.to_dict(sensitive), "none", KNOWING, SHOWN,
            in_words(requirement, bucketized=bucketized),
        )
        for requirement in sorted(requirements, key=lambda r: r.attribute is None)
    ]  # fmt: skip
    return [void(one) for one in found] if simulated else found


def in_words(requirement: Requirement, *, bucketized: bool) -> str:
    if isinstance(requirement, K) and bucketized:
        return (
            f"Every class has at least {requirement.k} rows. Their quasi-identifiers are shown as "
            "they are: that hides nobody."
        )
    guarantee = requirement.guarantee()
    if guarantee is not None:
        return guarantee.explain()
    return f"In every class of records holds {requirement.spelling}."


def classes_not_promised(*, bucketized: bool) -> list[Statement]:
    """What classes of rows must not be taken to promise."""
    found = [
        not_kept(
            {"kind": "dp", "unit": unit}, "exclusive", "anyone", "does not follow",
            "One row more or less can change every class: no ε holds.",
        )
        for unit in ("add-remove", "swap")
    ]  # fmt: skip
    found.append(not_kept(
        {"kind": "d-gamma"}, "independent", "anyone who knows something else", "does not follow",
        "Someone who can rule out some of the values, or knows what others in the class have, is "
        "left with what remains: beliefs may rise to 1.",
    ))  # fmt: skip
    found.append(not_kept(
        {"kind": "composition"}, "none", "anyone with a second release of these people",
        "Ganta, Kasiviswanathan and Smith, KDD 2008",
        "Classes of two releases can be intersected, and what is left of them has no promise.",
    ))  # fmt: skip
    if bucketized:
        found.append(not_kept(
            {"kind": "presence"}, "none", "anyone", "rows are bucketized",
            "Quasi-identifiers are shown as they are: everybody sees who is in the table.",
        ))  # fmt: skip
    return found
