"""A project: all that a steward chose, as one file, and never a row or a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from voile.errors import UsageError
from voile.files import write_whole
from voile.foreign import ENDINGS
from voile.options.reading import ReadingOptions

ENDING = ".voile-project"
FORMAT: Literal[1] = 1
MOST_BYTES = 4 * 2**20
"""Of a project file: what is larger was not written by the studio."""

Role = Literal["identifier", "quasi-identifier", "sensitive", "other"]
ROLES: dict[Role, str] = {
    "identifier": "Names a person, or is of no use. It is left out.",
    "quasi-identifier": "Others may know it of a person, and find their row by it.",
    "sensitive": "Nobody is to learn it of a person.",
    "other": "Published, and neither known to others nor secret.",
}
SENSITIVE_NAME = re.compile(
    r"diagnos|disease|disorder|illness|medic|drug|hiv|cancer|income|salar|wage|debt|religio|"
    r"belief|ethnic|crime|offence|convict|pregnan|disab|sexual|vote|party|krank|einkommen|gehalt|"
    r"maladie|salaire|revenu",
    re.IGNORECASE,
)
"""What columns are called that hold what people do not want to be known."""
Codebook = Literal["learnt", "table", "declared"]
CODEBOOKS: dict[Codebook, str] = {
    "learnt": "Learnt from the table with noise, within the promise.",
    "table": "Read off the table: it discloses which values occur.",
    "declared": "Declared by you, from what is public.",
}


NOT_OPTIONS = {
    "method", "to", "output", "overwrite", "progress", "sign", "register", "no_register", "person",
    "rows_per_person", "columns", "schema", "nulls", "qi", "sensitive", "insensitive",
    "identifiers", "hierarchies", "population", "series", "name",
}  # fmt: skip
"""What a project says elsewhere, or must not say: options are those of a promise alone."""


def check_address(address: str) -> None:
    """Refuse a secret in an address before it is written or shown anywhere."""
    if "://" not in address:
        return
    try:
        found = urlsplit(address.partition("::")[0])
        named = {name.lower() for name, _ in parse_qsl(found.query, keep_blank_values=True)}
        secret = found.password or any("password" in name or "passwd" in name for name in named)
    except ValueError:
        raise UsageError(
            "the address cannot be read", hint="such as postgresql://host/database::people"
        ) from None
    if secret:
        raise UsageError(
            "the address has a password, and a project file holds no secret",
            hint="leave it out, and set PGPASSWORD or a ~/.pgpass file",
        )


def checked_options(given: dict[str, Any]) -> dict[str, Any]:
    """Options of a promise; a file that slips in anything else is refused."""
    if wrong := sorted(NOT_OPTIONS & set(given)):
        raise ValueError(f"{wrong[0]!r} is no option of a promise")
    plain = bool | int | float | str | None
    for name, value in given.items():
        if not isinstance(value, plain) and not (
            isinstance(value, list) and all(isinstance(one, plain) for one in value)
        ):
            raise ValueError(f"the option {name!r} is no number or text")
    return given


def checked_moment(given: str) -> str:
    """A moment as the studio writes it."""
    datetime.fromisoformat(given)
    return given


PromiseOptions = Annotated[dict[str, Any], AfterValidator(checked_options)]
Moment = Annotated[str, AfterValidator(checked_moment)]


class Stored(BaseModel):
    """Strict data: a file that says more than it may is refused."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class KeptCandidate(Stored):
    """A way to publish that is kept to be compared."""

    name: str
    method: str
    options: PromiseOptions = {}
    after_looking: bool = False
    """Whether it was chosen when its steward had seen what it does to the private table."""
    at: Moment | None = None
    """When it was marked so; projects of earlier versions do not say."""


class Look(Stored):
    """A look at the private table that a choice may have followed."""

    at: Moment
    what: str


class PublishedRelease(Stored):
    """A release that left."""

    at: Moment
    place: str
    method: str
    digest: str = ""


class Project(Stored):
    """The choices, in the order of the screens."""

    format: Literal[1] = 1
    source: str
    reading: dict[str, Any] = {}
    nulls: Literal["error", "drop", "as-value"] = "error"
    kept: list[str] = []
    """Findings of the first look that stay as they are, each as WHAT:COLUMN."""
    person: str | None = None
    unit: Literal["person", "household"] = "person"
    """Whose rows the column `person` says."""
    rows_per_person: int | None = Field(default=None, ge=1)
    roles: dict[str, Role] = {}
    codebook: Codebook = "learnt"
    attributes: list[dict[str, Any]] = []
    """What is declared of columns, as a codebook file says it."""
    hierarchies: dict[str, str] = {}
    """By column, the file of its coarser values."""
    need: int = Field(default=0, ge=0, le=6)
    """Which of the questions about the method is the first that is true; 0: none was answered."""
    planned: float = Field(default=1.0, gt=0, le=100)
    """The ε at which methods were compared."""
    answers: int = Field(default=100, ge=1, le=2**53)
    """How many answers a server would give, where nothing else may leave."""
    max_error: float | None = Field(default=None, gt=0)
    """How far counts may be off, where that was asked."""
    method: str = "auto"
    options: PromiseOptions = {}
    """Options of the method, as keywords of `voile.publish`."""
    questions: list[str] = []
    candidates: list[KeptCandidate] = []
    looks: list[Look] = []
    output: str = ""
    sign: str = ""
    """The file of a key; a passphrase is never kept."""
    published: list[PublishedRelease] = []
    tutorial: bool = True

    @field_validator("source")
    @classmethod
    def _no_password(cls, given: str) -> str:
        check_address(given)
        return given

    @field_validator("attributes")
    @classmethod
    def _named_attributes(cls, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for one in given:
            if not isinstance(one.get("name"), str) or not isinstance(one.get("kind"), str):
                raise ValueError("an attribute has no name or kind")
        return given

    @field_validator("reading")
    @classmethod
    def _known_reading(cls, given: dict[str, Any]) -> dict[str, Any]:
        return plain_reading(ReadingOptions(**given))

    # ------------------------------------------------------------------ what is published

    def columns(self, known: Sequence[str]) -> list[str]:
        """The columns that are published, of those that the table has."""
        left_out = {name for name, role in self.roles.items() if role == "identifier"}
        return [name for name in known if name not in left_out and name != self.person]

    def named(self, role: Role) -> list[str]:
        """The columns with a role."""
        return [name for name, found in self.roles.items() if found == role]


def suggested_role(column: Mapping[str, Any]) -> Role:
    """The role that fits what a column looks like."""
    empty = not column["distinct"] and column["nulls"]
    if column["identifier"] or column["kind"] == "unsupported" or empty:
        return "identifier"
    if SENSITIVE_NAME.search(column["name"]):
        return "sensitive"
    return "identifier" if column["repeated_identifier"] else "quasi-identifier"


def plain_reading(reading: ReadingOptions) -> dict[str, Any]:
    """What was chosen about reading, as JSON has it."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in reading.given_keywords().items()
    }


def now() -> str:
    """The moment in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---------------------------------------------------------------------- files


def name_for(source: str) -> str:
    """A short name for the project of a table."""
    last = re.split(r"[/\\:]", source.rstrip("/"))[-1]
    plain = "csv|tsv|txt|parquet|arrow|feather|duckdb|db|sqlite|gz"
    endings = "|".join([plain, *(ending[1:] for ending in ENDINGS)])
    stem = re.sub(rf"(\.({endings}))+$", "", last)
    return re.sub(r"[^\w.-]+", "-", stem).strip(".-") or "table"


def read_project(path: Path) -> Project:
    """The project of a file, checked: it may come from anywhere."""
    hint = "`voile studio TABLE` begins a new one"
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}", hint=hint) from None
    if len(content) > MOST_BYTES:
        raise UsageError(f"{str(path)!r} is too large for a project file", hint=hint)
    try:
        return Project.model_validate(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{str(path)!r} is not a project file: {reason(error)}", hint=hint
        ) from None


def reason(error: Exception) -> str:
    """Where a file is wrong, and how, in one line."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return f"{place}: {first['msg']}" if place else str(first["msg"])
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def write_project(path: Path, project: Project) -> None:
    """Put the file in its place in one step."""
    data = project.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps({"format": FORMAT, **data}, indent=2, ensure_ascii=False)
    write_whole(path, f"{text}\n".encode())
