"""A recoding that was found once, kept to be applied to new rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from voile import __version__
from voile.errors import UsageError, spelled
from voile.kinds.classes.finding import FoundGrouping, places
from voile.kinds.classes.options import ClassOptions
from voile.kinds.classes.reading import ClassInput
from voile.privacy.requirements import Requirement, requirement_from_dict
from voile.recoding.growing import CutTree
from voile.recoding.labels import labels
from voile.recoding.mondrian import located
from voile.schema import Schema

Codes = npt.NDArray[Any]
Texts = dict[str, tuple[tuple[str, ...], Codes]]
"""What is shown of a column: texts, and which of them each row has."""


class RecodingPart(BaseModel):
    """Strict data: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Cell(RecodingPart):
    """What one quasi-identifier shows: texts, and which of them each class or value has."""

    texts: list[str]
    shows: list[int]
    """By class (mondrian), or by value (fulldomain)."""


class CutLists(RecodingPart):
    """A tree of cuts: see voile.recoding.growing.CutTree."""

    column: list[int]
    cut: list[int]
    child: list[int]


class RecodingFile(RecodingPart):
    """As it is written down."""

    format: Literal["voile-recoding"] = "voile-recoding"
    version: Literal[1] = 1
    voile: str
    qi: list[str]
    sensitive: list[str]
    insensitive: list[str]
    identifiers: list[str]
    attributes: list[dict[str, Any]]
    """Of the quasi-identifiers and the sensitive attributes."""
    nulls: Literal["error", "drop", "as-value"]
    orders: dict[str, list[int]]
    tree: CutLists | None
    """None where each column is shown at one level of its hierarchy."""
    cells: dict[str, Cell]
    requirements: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Recoding:
    """Where a row belongs, and what is shown of it there."""

    file: RecodingFile

    @property
    def schema(self) -> Schema:
        """The domain of the quasi-identifiers and the sensitive attributes."""
        return Schema.from_dict({"attributes": self.file.attributes})

    @property
    def requirements(self) -> list[Requirement]:
        """What every class must meet."""
        return [requirement_from_dict(entry) for entry in self.file.requirements]

    def places(self, codes: Mapping[str, Codes]) -> Codes | None:
        """The leaf of each row in the tree of cuts; None where there is no tree."""
        if self.file.tree is None:
            return None
        tree = CutTree(*(np.array(part, np.int32) for part in self.file.tree.model_dump().values()))
        stacked = [places(self.order(name), codes[name]) for name in self.file.qi]
        return located(tree, np.ascontiguousarray(stacked, dtype=np.int32))

    def applied(self, codes: Mapping[str, Codes]) -> tuple[Codes, Texts]:
        """The class of each row, without those that no row is in; and what is shown of it."""
        leaves = self.places(codes)
        texts = {
            name: (tuple(cell.texts), self.shows(name, codes[name] if leaves is None else leaves))
            for name, cell in self.file.cells.items()
        }
        if leaves is None:
            shown = np.stack([which for _, which in texts.values()])
            _, classes = np.unique(shown, axis=1, return_inverse=True)
        else:
            _, classes = np.unique(leaves, return_inverse=True)
        return classes.astype(np.int32), texts

    def shows(self, name: str, by: Codes) -> Codes:
        """Which text of a column each row has, by its class or its value."""
        return np.array(self.file.cells[name].shows, dtype=np.int32)[by]

    def order(self, name: str) -> Codes | None:
        """The codes of a column in the order in which it was cut; None for the domain's order."""
        listed = self.file.orders.get(name)
        return None if listed is None else np.array(listed, dtype=np.int32)

    @property
    def content(self) -> bytes:
        """The file, as bytes."""
        text = json.dumps(self.file.model_dump(mode="json"), ensure_ascii=False)
        return text.encode() + b"\n"


def read_recoding(path: str | Path) -> Recoding:
    """Read a saved recoding; an error says what is wrong with it."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"{str(path)!r} cannot be read: {error.strerror}", hint="voile generalize --save FILE"
        ) from None
    try:
        found = Recoding(RecodingFile.model_validate_json(raw))
        _ = found.schema, found.requirements
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "it"
        raise UsageError(
            f"{str(path)!r} is not a saved recoding: {where}: {first['msg']}",
            hint="voile generalize --save FILE writes one",
        ) from None
    return found


def recoding_of(prepared: ClassInput, found: FoundGrouping, options: ClassOptions) -> Recoding:
    """What was found, in a form that new rows can be given to."""
    if options.relaxed or (found.partition is None and found.chosen is None):
        how = (
            spelled("cuts", "boxes")
            if options.cuts == "boxes"
            else spelled("method", options.method)
        )
        how = "relaxed cuts" if options.relaxed else how
        raise UsageError(
            f"{how} cannot be applied to new rows: which class a row is in does not follow from "
            "its values",
            hint=f"use strict cuts ({spelled('cuts', 'certainty')}), or "
            f"{spelled('method', 'fulldomain')}",
        )
    if found.shown is not None and prepared.schema.active:
        raise UsageError(
            "the saved recoding would list values that only rows that were left out have",
            hint=f"declare the domain of {', '.join(prepared.schema.active)} with "
            f"{spelled('schema')}",
        )
    listed = [*options.qi, *options.sensitive]
    file = RecodingFile(
        voile=__version__,
        qi=list(options.qi),
        sensitive=list(options.sensitive),
        insensitive=list(options.insensitive),
        identifiers=list(options.identifiers),
        attributes=prepared.schema.select(listed).to_dict()["attributes"],
        nulls=options.nulls,
        orders={name: order.tolist() for name, order in prepared.orders.items()},
        tree=None if found.partition is None else cuts_of(found.partition.known_tree),
        cells=cells_of(prepared, found, options),
        requirements=[requirement.to_dict() for requirement in prepared.requirements],
    )
    return Recoding(file)


def cuts_of(tree: CutTree) -> CutLists:
    """A tree of cuts as lists."""
    return CutLists(**{name: getattr(tree, name).tolist() for name in CutTree._fields})


def cells_of(prepared: ClassInput, found: FoundGrouping, options: ClassOptions) -> dict[str, Cell]:
    """By the regions between cuts, which every row of the domain lies in; or by hierarchy."""
    if found.partition is None:
        assert found.chosen is not None  # noqa: S101
        return {name: level_cell(prepared, name, level) for name, level in found.chosen.items()}
    regions = found.partition.regions
    cells = {}
    for j, name in enumerate(options.qi):
        shown = labels(
            prepared.schema[name],
            prepared.levels.get(name),
            prepared.orders.get(name),
            regions.low[:, j],
            regions.high[:, j],
        )
        cells[name] = Cell(texts=list(shown.texts), shows=shown.of_class.tolist())
    return cells


def level_cell(prepared: ClassInput, name: str, level: int) -> Cell:
    """What a column shows at one level of its hierarchy."""
    levels = prepared.levels[name]
    return Cell(texts=list(levels.labels[level]), shows=levels.nodes[level].tolist())
