"""Which kinds of releases there are: Voile's own, and those of installed packages.

A kind is found by a method's name and loaded only then. A package registers one by an entry point
of the group `voile.kinds` for each of its methods, called like the method, that leads to a subclass
of `Kind`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Union

from voile.errors import UsageError, did_you_mean, spelled

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

    from voile.kinds.kind import Kind

GROUP = "voile.kinds"


@dataclass(frozen=True)
class BuiltInKind:
    """A kind that comes with Voile: its methods, and where it is."""

    home: str
    methods: tuple[str, ...]
    command: str = "publish"
    """The command that makes such releases."""


BUILT_IN = (
    BuiltInKind("voile.kinds.views.kind:Views", ("alphabeta",)),
    BuiltInKind("voile.kinds.perturbed.kind:PerturbedRows", ("retention", "frapp"), "perturb"),
    BuiltInKind(
        "voile.kinds.classes.kind:Classes",
        ("mondrian", "anatomy", "fulldomain", "suppress", "freeshape", "trivial"),
    ),
    BuiltInKind("voile.kinds.counts.kind:CountTables", ("conjuncts",)),
    BuiltInKind("voile.kinds.marginals.kind:Marginals", ("marginals", "full-table")),
)
HOMES = {method: kind.home for kind in BUILT_IN for method in kind.methods}


class KindError(UsageError):
    """A package's kind that cannot be used, and the method that it is for."""

    def __init__(self, method: str, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.method = method


def methods() -> list[str]:
    """Every method by which a release can have been made."""
    return [*HOMES, *foreign_methods()]


def publishing_methods() -> list[str]:
    """The methods of `voile publish`."""
    own = [method for kind in BUILT_IN if kind.command == "publish" for method in kind.methods]
    return [*own, *foreign_methods()]


def publishing_kind(method: str) -> Kind[Any]:
    """The kind that a method publishes; refused where it is none of `voile publish`."""
    known = publishing_methods()
    if method not in known:
        raise UsageError(
            f"{spelled('method', method)} is not known", hint=did_you_mean(method, known)
        )
    return kind_of(method)


def foreign_kinds() -> list[Kind[Any]]:
    """Those of packages that can be used; `load_failures` says why others cannot."""
    return list({type(kind): kind for kind in tried() if not isinstance(kind, KindError)}.values())


def load_failures() -> dict[str, KindError]:
    """Why methods of installed packages cannot be used, by method."""
    return {kind.method: kind for kind in tried() if isinstance(kind, KindError)}


def tried() -> list[Kind[Any] | KindError]:
    """The kind of each method of a package, or why it cannot be used."""
    try:
        points = foreign_methods()
    except KindError as error:
        return [error]
    return [loaded_or_failure(point) for point in points.values()]


def loaded_or_failure(point: EntryPoint) -> Kind[Any] | KindError:
    """The kind of a package, or why it cannot be used."""
    try:
        return loaded(point)
    except KindError as error:
        return error


def kind_of(method: str) -> Kind[Any]:
    """The kind of a method's releases; refused where no such method is known."""
    if method in HOMES:
        return built_in(HOMES[method])
    foreign = foreign_methods()
    if method not in foreign:
        raise UsageError(
            f"method {method!r} is not known",
            hint=did_you_mean(method, methods()) or "install the package that it is from",
        )
    return loaded(foreign[method])


def built_in_kinds() -> list[Kind[Any]]:
    """Those that come with Voile."""
    return [built_in(kind.home) for kind in BUILT_IN]


def kinds() -> list[Kind[Any]]:
    """All that can be used, each once."""
    return [*built_in_kinds(), *foreign_kinds()]


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema of the manifests of all built-in kinds."""
    from pydantic import TypeAdapter  # noqa: PLC0415  (for the documentation alone)

    every: Any = Union[tuple(kind.manifest for kind in built_in_kinds())]  # noqa: UP007
    return TypeAdapter(every).json_schema()


@cache
def built_in(home: str) -> Kind[Any]:
    """A kind that comes with Voile, by its module and class."""
    module, _, name = home.partition(":")
    found: Kind[Any] = getattr(importlib.import_module(module), name)()
    return found


def entry_points(group: str) -> EntryPoints:
    """What installed packages register in a group."""
    from importlib import metadata  # noqa: PLC0415  (only where a method is not one of ours)

    return metadata.entry_points(group=group)


def foreign_methods() -> Mapping[str, EntryPoint]:
    """Methods of installed packages; refused where two claim one name."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        owner = "Voile itself" if point.name in HOMES else None
        if point.name in found and found[point.name].value != point.value:
            owner = f"the package {package_of(found[point.name])!r}"
        if owner is not None:
            raise KindError(
                point.name,
                f"the package {package_of(point)!r} brings a method {point.name!r}, which {owner} "
                "has already",
                hint=f"uninstall {package_of(point)}, or ask its authors to choose another name",
            )
        found[point.name] = point
    return found


def loaded(point: EntryPoint) -> Kind[Any]:
    """The kind of a package; refused where it cannot be loaded, or is none."""
    from voile.kinds.kind import Kind  # noqa: PLC0415  (not needed to look methods up)

    try:
        made = point.load()
        kind = made() if isinstance(made, type) else made
    except Exception as error:
        raise KindError(
            point.name,
            f"the method {point.name!r} of the package {package_of(point)!r} cannot be loaded: "
            f"{type(error).__name__}: {error}",
            hint=f"install another version of {package_of(point)}, or uninstall it",
        ) from error
    if not isinstance(kind, Kind) or point.name not in kind.methods:
        raise KindError(
            point.name,
            f"{point.value} of the package {package_of(point)!r} is not a kind of release with a "
            f"method {point.name!r}",
            hint="an entry point of voile.kinds is called like a method of the Kind it leads to",
        )
    return kind


def package_of(point: EntryPoint) -> str:
    """The package that an entry point is from; its module where that is unknown."""
    return point.value.partition(":")[0] if point.dist is None else point.dist.name
