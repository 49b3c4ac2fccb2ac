"""manifest.json: all that a release says about itself, as documented, checked data.

The JSON Schema in docs/reference/manifest.schema.json is generated from this class and those that
the built-in kinds make of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from voile.errors import spelled
from voile.files import sha256
from voile.schema import Attribute, Bins, Interval, Range, Schema, Values

if TYPE_CHECKING:
    from voile.learning.account import SchemaAccount

MANIFEST = "manifest.json"
DATA_PACKAGE = "datapackage.json"
README = "README.md"
SIGNATURE = "signature.json"
"""Who vouches for the release, where somebody does; no file of the manifest, which it is about."""
PARTIAL = ".partial-"
"""In the name of a folder that is still being written."""
REPLACED = ".replaced-"
"""In the name of a release that is being replaced, where the system cannot exchange two names."""
FORMAT = "voile-release"
VERSION = 2
"""What is written; 1, which lacks the keys in `Manifest.since_2`, opens as well."""
LaterKeys = Mapping[str, bool | set[str]]
"""Keys, or parts of them, that earlier versions do not have."""


Finite = Annotated[float, Field(allow_inf_nan=False)]


def failing_fast(schema: Any) -> Any:
    """A schema of pydantic whose lists and mappings stop at the first error."""
    if isinstance(schema, dict):
        if schema.get("type") in ("list", "tuple", "dict"):
            schema["fail_fast"] = True
        for part in schema.values():
            failing_fast(part)
    elif isinstance(schema, list):
        for part in schema:
            failing_fast(part)
    return schema


class ManifestPart(BaseModel):
    """Strict data: an unknown key is an error, not something to skip."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """A list with a million wrong entries is refused at the first."""
        return failing_fast(handler(source))


class File(ManifestPart):
    """One file of the release, with what it must hash to."""

    path: str
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    rows: int | None = Field(default=None, ge=0, description="Rows, for Parquet files")


def file_entry(folder: Path, path: Path, rows: int | None = None) -> File:
    """A file of the release as it is on disk."""
    return File(
        path=path.relative_to(folder).as_posix(),
        bytes=path.stat().st_size,
        sha256=sha256(path),
        rows=rows,
    )


class Disclosed(ManifestPart):
    """Something about the table that the release discloses exactly, outside the promise."""

    what: str
    why: str


class Manifest(ManifestPart):
    """A Voile release: what is written down of every kind of them."""

    since_2: ClassVar[LaterKeys] = {"registered": True, "people": True}
    """What a manifest of version 1 does not have."""
    format: Literal["voile-release"] = "voile-release"
    version: Literal[1, 2] = 2
    voile: str = Field(description="Version of Voile that wrote the release")
    name: str = Field(pattern="^[^\\x00-\\x1f\\x7f]{1,200}$", description="The table's name")
    method: str
    parameters: ManifestPart
    guarantee: ManifestPart
    simulated: bool = Field(description="True: made from a chosen seed, promises nothing")
    nulls: Literal["error", "drop", "as-value"] = Field(description="What was done with NULLs")
    disclosed: list[Disclosed]
    public_rows: int | None = Field(description="Rows of the table, where that is disclosed")
    rows: int = Field(ge=0, description="Rows of the view")
    domain_size: str = Field(pattern="^[0-9]+$", description="m, as text: it may be huge")
    attributes: list[dict[str, Any]] = Field(description="The schema: the public domain")
    files: list[File]
    registered: bool | None = Field(
        default=None,
        description="Since version 2: whether the steward's register holds it; null: not known",
    )
    digest: str = Field(default="", description="SHA-256 of this manifest with an empty digest")

    @property
    def schema_(self) -> Schema:
        """The public domain, from the attributes."""
        return Schema.from_dict({"attributes": self.attributes})

    @property
    def schema_account(self) -> SchemaAccount | None:
        """What learning the domain cost, where it was learnt."""
        return None

    def check_learnt(self) -> None:
        """Refuse domains that were learnt from the table without an account that pays for it."""
        account, schema = self.schema_account, self.schema_
        if account is not None:
            account.check(schema)
            return
        learnt = next((a.name for a in schema if a.public == "learnt"), None)
        if learnt is not None:
            raise ValueError(
                f"the domain of {learnt!r} was learnt, and no account says at what cost"
            )

    def check(self) -> None:
        """Construct what the parameters stand for, which refuses them where they are wrong."""

    def weakness(self) -> str:
        """Why the promise says next to nothing, as a clause; empty where it says something."""
        return ""

    def stronger(self) -> str:
        """What to ask for instead of a promise that says next to nothing."""
        return f"ask for ε: {spelled('epsilon', 1)}"

    def sealed(self) -> Self:
        """The same manifest with its digest."""
        return self.model_copy(update={"digest": self._digest()})

    def _digest(self, text: str = "") -> str:
        """`text` is that of this manifest, where it is known already."""
        # Only a key of the manifest itself stands behind a line feed and one space.
        line = f'\n "digest": {json.dumps(self.digest)}'
        blank = (text or self.text()).replace(line, '\n "digest": ""', 1)
        return hashlib.sha256(blank.encode()).hexdigest()

    def is_whole(self, raw: bytes) -> bool:
        """Whether these bytes are this manifest, as it was sealed."""
        try:
            text = self.text()
            return text.encode() == raw and self.digest == self._digest(text)
        except UnicodeEncodeError:  # half a character, which no text that we write has
            return False

    def text(self) -> str:
        """The one spelling of this manifest, so that any changed byte shows."""
        later = dict(self.since_2) if self.version == 1 else None
        data = self.model_dump(mode="json", exclude=later)
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


MEANINGFUL_EPSILON, MEANINGFUL_PRIOR, MEANINGFUL_DELTA = 10.0, 1e-4, 1e-3
"""Beyond these a promise says next to nothing."""


def weak_epsilon(epsilon: float | None) -> str:
    """Why an ε says next to nothing, as a clause; empty where it says something."""
    if epsilon is not None and epsilon <= MEANINGFUL_EPSILON:
        return ""
    stated = "no ε is kept" if epsilon is None else f"ε = {epsilon:.4g}"
    return f"{stated}, so that a belief of 1 % may become near certainty"


def weak_delta(delta: float) -> str:
    """Why a δ leaves next to nothing of ε, as a clause; empty where it is small."""
    if delta <= MEANINGFUL_DELTA:
        return ""
    return f"with a probability of δ = {delta:.2g} nothing is promised about a person"


def read_off_disclosed(schema: Schema) -> list[Disclosed]:
    """What domains that were read off the table disclose about it."""
    return [
        Disclosed(what=what, why="its domain was read off the table; a codebook avoids that")
        for what in map(read_off, schema)
        if what
    ]


CHOSEN = "chosen by the steward, outside the promise"
"""Why a release lists column names, kinds, the treatment of NULL and the columns left out.

The kinds of a text file are read off it: one value can make numbers texts.
"""
NULL_WORDS = {
    "error": "refused, except where the schema has NULL as a value",
    "drop": "rows with one were left out",
    "as-value": "kept, as one more value of their attribute",
}
"""What was done with rows that have NULLs."""


def chosen_disclosed(schema: Schema, nulls: str, account: SchemaAccount | None) -> list[Disclosed]:
    """What the steward chose, where the domain was learnt: it is outside the promise."""
    if account is None or not any(a.public == "learnt" for a in schema):
        return []
    columns = ", ".join(f"{a.name} ({a.kind})" for a in schema)
    found = [f"the columns and their kinds: {columns}", f"NULLs: {NULL_WORDS[nulls]}"]
    if account.left_out:
        found.append(f"columns left out: {', '.join(account.left_out)}")
    return [Disclosed(what=what, why=CHOSEN) for what in found]


def read_off(attribute: Attribute) -> str:
    """What an active domain discloses about the column."""
    if attribute.public != "active":
        return ""
    missing = ", and that some are missing" if attribute.null else ""
    match attribute.domain:
        case Values():
            return f"which values occur in {attribute.name}{missing}"
        case Range():
            return f"the smallest and the largest value of {attribute.name}{missing}"
        case Bins() | Interval():
            return f"about how small and how large values of {attribute.name} get{missing}"


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """The name, or the first of name_1, name_2, … that is not taken."""
    held, found, number = {name.casefold() for name in taken}, wanted, 0
    while found.casefold() in held:
        number += 1
        found = f"{wanted}_{number}"
    return found
