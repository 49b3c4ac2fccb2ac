"""The public domain D = D₁ × … × D_l, and its codebook file."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voile.client.domains import Bins
from voile.errors import SchemaError, UsageError, did_you_mean
from voile.files import write_whole
from voile.schema.attribute import (
    Attribute,
    DayBins,
    Interval,
    Range,
    attribute_from_dict,
    day_of,
    plain,
)

HEADER = """\
# Codebook: the public domain of each column. Edit it, then pass it with --schema.
#   values: [a, b]      the values, in order          range: [low, high]   all integers or days
#   bins: [0, 10, 20]   intervals [0,10), [10,20]; a value is published as the middle of its bin
#   interval: [0, 100]  any number in between, kept in decimal steps (step: 0.01)
#   null: true          NULL is one more value        ordered: true        the order means something
#   public: declared    known without the table (a codebook, a law, common sense)
#   other: others       the listed text that stands for all texts which are not listed
#   clamp: true         numbers and dates outside count as the nearest value or bin
#   public: learnt      learnt from the table with noise, within the promise
#   public: active      read off the private table: publishing it discloses which values occur
"""


def read_codebook(path: Path) -> dict[str, Any]:
    """The data of a codebook file."""
    try:
        return codebook_data(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"there is no schema file {str(path)!r}", hint="`voile schema TABLE -o FILE` makes one"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(error) from None


def codebook_data(text: str) -> dict[str, Any]:
    """The data of a codebook's text."""
    import yaml  # noqa: PLC0415  (a release needs no codebook)

    try:
        data = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise unreadable(error) from None
    if not isinstance(data, dict):
        raise SchemaError(
            "a codebook is a mapping with a list 'attributes'",
            hint="`voile schema TABLE -o FILE` makes one",
        )
    return data


def unreadable(error: Exception) -> SchemaError:
    """The complaint about a text that is no codebook."""
    return SchemaError(
        f"not a readable codebook: {_reason(error)}",
        hint="a codebook is a YAML file; `voile schema TABLE -o FILE` makes one",
    )


def _reason(error: Exception) -> str:
    """What is wrong and on which line, in one line."""
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "strerror", None) or str(error).splitlines()[0]
    problem = getattr(error, "problem", None) or said
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})" if mark else problem


def codebook_text(data: dict[str, Any], labels: Mapping[str, str] | None = None) -> str:
    """A codebook with its explanations on top; `labels` say what attributes are about."""
    import yaml  # noqa: PLC0415

    text = yaml.dump(data, allow_unicode=True, sort_keys=False, default_flow_style=None, width=100)
    if not labels:
        return HEADER + text
    names = iter(entry["name"] for entry in data["attributes"])
    lines = []
    for line in text.splitlines(keepends=True):
        # Only an entry of the list begins so: what belongs to it is indented.
        if line.startswith("- ") and (label := labels.get(next(names))):
            lines.append(f"# {' '.join(label.split())}\n")
        lines.append(line)
    return HEADER + "".join(lines)


# ---------------------------------------------------------------------- schema


@dataclass(frozen=True)
class Schema:
    """The attributes of a table and, through them, every tuple that could be in it.

    >>> from voile.schema import Values
    >>> answer = Attribute("answer", "categorical", Values(("yes", "no")))
    >>> Schema((answer, Attribute("age", "integer", Range(20, 39)))).size
    40
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if not self.attributes:
            raise SchemaError("a schema needs at least one attribute")
        seen: dict[str, str] = {}
        for name in self.names:
            if (other := seen.get(name.casefold())) is not None:
                raise SchemaError(
                    f"attributes {other!r} and {name!r} have the same name in SQL",
                    hint="rename one of them: SQL does not tell upper case from lower case",
                )
            seen[name.casefold()] = name

    @property
    def names(self) -> list[str]:
        """The attributes' names, in their order."""
        return [attribute.name for attribute in self.attributes]

    @property
    def sizes(self) -> list[int]:
        """How many values each attribute may have, NULL counted."""
        return [attribute.size for attribute in self.attributes]

    @property
    def size(self) -> int:
        """m, the number of tuples of D: exact, however large."""
        return math.prod(self.sizes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise UsageError(f"there is no attribute {name!r}", hint=did_you_mean(name, self.names))

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of these attributes alone, in this order."""
        return Schema(tuple(self[name] for name in names))

    @property
    def active(self) -> list[str]:
        """The attributes whose domain was read off the private table."""
        return [attribute.name for attribute in self.attributes if attribute.public == "active"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a codebook holds it."""
        return {"attributes": [attribute.to_dict() for attribute in self.attributes]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """A schema from a codebook's data; refused where it contradicts itself."""
        entries = data.get("attributes")
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise SchemaError("a schema has a list 'attributes'", hint="see `voile schema TABLE`")
        return cls(tuple(attribute_from_dict(entry) for entry in entries))

    def save(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Write the codebook as YAML, to be read and edited by people.

        `labels` say what attributes are about; they stand in comments.
        """
        write_whole(Path(path), self.to_yaml(labels).encode(), overwrite=overwrite)

    def to_yaml(self, labels: Mapping[str, str] | None = None) -> str:
        """The codebook as `save` writes it."""
        return codebook_text(self.to_dict(), labels)

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        """A schema from the text of a codebook."""
        return cls.from_dict(codebook_data(text))

    @classmethod
    def open(cls, path: str | Path) -> Schema:
        """Read a codebook that `save` or `voile schema` wrote."""
        try:
            return cls.from_dict(read_codebook(Path(path)))
        except SchemaError as error:
            where = "" if error.message.startswith(str(path)) else f"{path}: "
            raise SchemaError(where + error.message, hint=error.hint) from None

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(a.name)}</td><td>{a.kind}</td><td>{a.size:,}</td>"
            f"<td>{html.escape(summary(a))}</td><td>{a.public}</td></tr>"
            for a in self.attributes
        )
        return (
            f"<table><caption>{len(self.attributes)} attributes, {large(self.size)} possible tuples"
            "</caption><tr><th>attribute</th><th>kind</th><th>size</th><th>domain</th>"
            f"<th>public</th></tr>{rows}</table>"
        )

    def __rich__(self) -> Any:
        from rich.markup import escape  # noqa: PLC0415  (only when printed)
        from rich.table import Table  # noqa: PLC0415

        table = Table(
            title=f"{len(self.attributes)} attributes, {large(self.size)} possible tuples"
        )
        for heading in ("attribute", "kind", "size", "domain", "public"):
            table.add_column(heading, justify="right" if heading == "size" else "left")
        for a in self.attributes:
            table.add_row(escape(a.name), a.kind, f"{a.size:,}", escape(summary(a)), a.public)
        return table


def large(count: int) -> str:
    """A whole number for reading, however large."""
    if count < 10**15:
        return f"{count:,}"
    digits = count.bit_length() * 0.30103  # str() of a very large number is refused
    return f"about 10^{digits:.0f}" if digits > 300 else f"{float(count):.3g}"


def summary(attribute: Attribute, width: int = 48) -> str:
    """The domain in a few words."""
    match attribute.domain:
        case Range(low, high):
            text = f"{low} … {high}"
        case DayBins(edges):
            text = f"{day_of(edges[0])} … {day_of(edges[-1])} in {len(edges) - 1} bins"
        case Bins(edges):
            text = f"{edges[0]:g} … {edges[-1]:g} in {len(edges) - 1} bins"
        case Interval(low, high, step):
            text = f"{low:g} … {high:g} in steps of {step:g}"
        case values:
            text = ", ".join(str(plain(v)) for _, v in zip(range(12), values, strict=False))
            if len(text) > width or values.size > 12:
                text = text[: width - 2].rstrip(", ") + " …"
    return text + (" or NULL" if attribute.null else "")
