"""What a class of rows must have before it may be shown: k, ℓ, t, δ and their kin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Unpack, cast

from voile.errors import SchemaError, UsageError, did_you_mean, spelled
from voile.options.requirements import ForEach, RequirementKeywords, RequirementOptions
from voile.privacy.requirements.requirement import AlphaK, Histograms, K, Presence, Requirement
from voile.privacy.requirements.sensitive import L, Semantic, T, tree_of
from voile.schema.hierarchy import Levels

__all__ = [
    "AlphaK", "Histograms", "K", "L", "Presence", "Requirement", "Semantic", "T",
    "requirement_from_dict", "requirements_of",
]  # fmt: skip


# ----------------------------------------------------------------------
# The requirements that a user's numbers mean, and those that a manifest holds.


KINDS: Mapping[str, type[Requirement]] = {
    kind.kind: kind for kind in (K, AlphaK, L, T, Semantic, Presence)
}


@dataclass(frozen=True)
class SensitiveAttributes:
    """The sensitive attributes by name, with how many values each has."""

    names: Sequence[str]
    sizes: Sequence[int]

    def each(self, what: str, given: ForEach | None) -> Iterator[tuple[int, float]]:
        """The number of each attribute that has a requirement, and the required value."""
        if given is None:
            return
        if not self.names:
            raise UsageError(
                f"{what} is about a sensitive attribute, and none is named",
                hint=f"name one with {spelled('sensitive')}",
            )
        if not isinstance(given, Mapping):
            yield from ((number, given) for number in range(len(self.names)))
            return
        for name, value in given.items():
            yield self.number(name, what), value

    def number(self, name: str, what: str) -> int:
        """The number of the attribute that has this name; other names are refused."""
        if name not in self.names:
            raise UsageError(
                f"{what} is required of {name!r}, which is no sensitive attribute",
                hint=did_you_mean(name, list(self.names)),
            )
        return list(self.names).index(name)


def requirements_of(
    sensitive: Sequence[str],
    sizes: Sequence[int],
    *,
    levels: Mapping[str, Levels] | None = None,
    **options: Unpack[RequirementKeywords],
) -> list[Requirement]:
    """The list of requirements; each of ℓ, t, δ and α for all sensitive attributes or by name.

    `levels` are hierarchies of sensitive attributes, for the hierarchical distance.
    """
    among, required = SensitiveAttributes(sensitive, sizes), RequirementOptions(**options)
    found: list[Requirement] = [] if required.k is None else [K(required.k)]
    found += [
        AlphaK(share, required.k or 1, number) for number, share in among.each("α", required.alpha)
    ]
    for number, value in among.each("ℓ", required.l):
        _check_diversity(among, number, value)
        found.append(L(value, required.l_measure, required.c, number))
    for number, bound in among.each("t", required.t):
        tree = None
        if required.t_distance == "emd-hierarchical":
            tree = tree_of(_levels(levels or {}, among.names[number]))
        found.append(T(bound, required.t_distance, number, tree))
    found += [
        Semantic(delta, required.absent, number)
        for number, delta in among.each("δ", required.semantic)
    ]
    if required.presence is not None:
        found.append(Presence(*required.presence))
    return found


def _check_diversity(among: SensitiveAttributes, number: int, l: float) -> None:  # noqa: E741
    """No class has more different values than there are."""
    if l > among.sizes[number]:
        raise UsageError(
            f"ℓ = {l:g} cannot be: {among.names[number]!r} has {among.sizes[number]} values",
            hint=f"require ℓ of at most {among.sizes[number]}",
        )


def _levels(levels: Mapping[str, Levels], name: str) -> Levels:
    if name not in levels:
        raise UsageError(
            f"the hierarchical distance needs a hierarchy of {name!r}, and there is none",
            hint="give one, or take another distance",
        )
    return levels[name]


def requirement_from_dict(data: Mapping[str, Any], names: Sequence[str] = ()) -> Requirement:
    """The requirement that `to_dict` wrote; `names` are the sensitive attributes."""
    given = dict(data)
    kind = given.pop("kind", None)
    if kind not in KINDS:
        raise SchemaError(
            f"requirement kind {kind!r} is not known", hint=did_you_mean(str(kind), list(KINDS))
        )
    made = KINDS[kind]
    for key in given:
        if key not in {field.name for field in fields(cast(Any, made))}:
            raise SchemaError(f"requirement {kind!r} has no {key!r}", hint="correct its spelling")
    if isinstance(given.get("attribute"), str):
        given["attribute"] = SensitiveAttributes(names, ()).number(given["attribute"], kind)
    try:
        return made(**{key: _as_tuple(value) for key, value in given.items()})
    except TypeError as error:
        raise SchemaError(f"requirement {kind!r} lacks a part: {error}", hint="add it") from None


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(part) for part in value) if isinstance(value, list) else value
