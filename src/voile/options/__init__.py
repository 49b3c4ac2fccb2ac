"""Options of a method as one typed model, from which flags, keywords and documentation come.

A field holds an option's type, default and bounds, a line of help, what to do when it is wrong, and
how the text of a flag is read. A wrong value raises a `UsageError` that names the field as the
caller writes it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from voile.errors import UsageError, did_you_mean, spelled

SomeOptions = TypeVar("SomeOptions", bound="Options")


@dataclass(frozen=True)
class Reader:
    """How the text of a flag becomes a field's value."""

    kind: Any
    """What the command line collects: str, or list[str] for a flag that may be repeated."""
    read: Callable[[str, Any], Any]
    """From the flag's name and what was collected."""


@dataclass(frozen=True)
class Flag:
    """The flag of a field: its help, its name, and how its text is read."""

    help: str
    hint: str = ""
    """What to do about a value that is out of bounds."""
    name: str = ""
    """The flag, where it is not the field's name with dashes."""
    reads: Reader | None = None
    negated: bool = False
    """Whether --no-NAME is a flag too, and leaving both out is a third answer."""


class Options(BaseModel):
    """The options of one method: frozen, complete, and checked when they are made."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise refusal(type(self), error.errors()[0]) from None

    def but(self: SomeOptions, **changes: Any) -> SomeOptions:
        """A copy with some options changed, checked again."""
        given = {field.alias or name: getattr(self, name)
                 for name, field in type(self).model_fields.items()
                 if name in self.model_fields_set}  # fmt: skip
        return type(self)(**given | changes)

    @classmethod
    def keywords(cls) -> dict[str, FieldInfo]:
        """The fields by the names that callers give them."""
        return {field.alias or name: field for name, field in cls.model_fields.items()}

    @classmethod
    def spelled(cls, name: str, *value: Any) -> str:
        """A field as the caller writes it."""
        return spelled(name, *value, flag=flag_of(cls.keywords()[name]).name)

    @classmethod
    def instead(cls, name: str) -> str:  # noqa: ARG003  (models have their own)
        """What to do instead of an option that only other models have; empty where unknown."""
        return ""

    def given(self, *names: str) -> list[str]:
        """The fields among these that differ from their defaults."""
        return [n for n in names if getattr(self, n) != type(self).model_fields[n].default]


def flag_of(field: FieldInfo) -> Flag:
    """The flag of a field; an empty one if it has none."""
    return next((each for each in field.metadata if isinstance(each, Flag)), Flag(""))


# ---------------------------------------------------------------------- what is wrong


def refusal(model: type[Options], error: ErrorDetails) -> UsageError:
    """A pydantic error as ours: it names the field, the value, and what to do."""
    name, kind, value = str(error["loc"][0]), error["type"], error["input"]
    if kind == "extra_forbidden":
        known = list(model.keywords())
        hint = model.instead(name) or did_you_mean(name, known)
        return UsageError(f"there is no option {name!r}", hint=hint)
    flag = flag_of(model.keywords()[name])
    if kind == "missing":
        return UsageError(f"{model.spelled(name)} is missing", hint=flag.help)
    shown = model.spelled(name, value)
    if len(error["loc"]) > 1 and isinstance(error["loc"][-1], str) and error["loc"][-1] != value:
        shown = f"{model.spelled(name)} {value!r}"
    if kind == "literal_error":
        return UsageError(f"{shown} is not known", hint=flag.hint or known_words(model, name))
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        return UsageError(f"{shown} must {bounds(model.keywords()[name])}", hint=advice(flag))
    wrong = WRONG.get(kind.partition("_")[0])
    what = f"is not {wrong}" if wrong else f"is refused: {error['msg']}"
    return UsageError(f"{shown} {what}", hint=advice(flag))


WRONG = {
    "float": "a number",
    "finite": "a finite number",
    "int": "a whole number",
    "string": "text",
    "bool": "True or False",
    "path": "a path",
    "tuple": "a pair",
    "too": "a pair",
}
"""What a value should have been, by how pydantic's name of the error begins."""


def advice(flag: Flag) -> str:
    """What to do about a wrong value: the flag's hint, or its help."""
    return flag.hint or flag.help


def known_words(model: type[Options], name: str) -> str:
    """The words that a field may have."""
    words = list(dict.fromkeys(words_of(model.keywords()[name].annotation)))
    return f"use {' or '.join([', '.join(words[:-1]), words[-1]] if words[1:] else words)}"


def words_of(annotation: Any) -> Iterable[str]:
    """The words that an annotation allows, also inside unions."""
    for part in get_args(annotation):
        if isinstance(part, str):
            yield part
        else:
            yield from words_of(part)


def bounds(field: FieldInfo) -> str:
    """The numbers that a field may have, in words."""
    low = next((m for m in field.metadata if isinstance(m, Gt | Ge)), None)
    high = next((m for m in field.metadata if isinstance(m, Lt | Le)), None)
    if low is not None and high is not None:
        opened = f"({low.gt}" if isinstance(low, Gt) else f"[{low.ge}"
        closed = f"{high.lt})" if isinstance(high, Lt) else f"{high.le}]"
        return f"lie in {opened}, {closed}"
    if low is not None:
        return f"be above {low.gt}" if isinstance(low, Gt) else f"be at least {low.ge}"
    assert high is not None  # noqa: S101
    return f"be below {high.lt}" if isinstance(high, Lt) else f"be at most {high.le}"


# ---------------------------------------------------------------------- reading flags


def split_names(text: str) -> list[str]:
    """Names separated by commas; a name with a comma goes in double quotes, as in CSV."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def by_name(flag: str, given: Sequence[str], read: Callable[[str], Any]) -> dict[str | None, Any]:
    """VALUE for all, NAME=VALUE for one; None stands for the others."""
    found: dict[str | None, Any] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        key = name if equals else None
        if equals and not name:
            raise UsageError(f"{flag} {text!r} names no column", hint=f"{flag} age=…")
        if key in found:
            raise UsageError(
                f"{flag} is given twice for {key or 'all columns'}", hint="give it once"
            )
        try:
            found[key] = read(value)
        except ValueError:
            raise UsageError(
                f"{flag} {text!r} is not a number", hint=f"{flag} 0.3, or {flag} age=0.5"
            ) from None
    return found


def number_or_by_name(flag: str, given: Sequence[str]) -> Any:
    """A number for all attributes, or numbers by name."""
    found = by_name(flag, given, float)
    if None not in found:
        return found
    if len(found) > 1:
        raise UsageError(
            f"{flag} is given for all attributes and for {next(n for n in found if n)!r}",
            hint=f"name every attribute: {flag} disease=3",
        )
    return found[None]


def two_numbers(flag: str, text: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{flag} {text!r} is not two numbers", hint=f"{flag} 0.01,0.2") from None
    return low, high


def numbers(flag: str, text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in split_names(text)]
    except ValueError:
        raise UsageError(
            f"{flag} {text!r} is not numbers with commas between them", hint=f"{flag} 3,2,1"
        ) from None


def whole_numbers(flag: str, text: str) -> list[int]:
    """Whole numbers with commas between them."""
    found = numbers(flag, text)
    for number in found:
        if not number.is_integer():
            raise UsageError(f"{flag}: {number:g} is not whole", hint=f"{flag} 3,2,1")
    return [int(number) for number in found]


NAMES = Reader(str, lambda _, text: split_names(text))
BY_NAME = Reader(list[str], number_or_by_name)
BY_COLUMN = Reader(list[str], lambda flag, given: by_name(flag, given, float))
PAIR = Reader(str, two_numbers)
NUMBERS = Reader(str, numbers)
WHOLE_NUMBERS = Reader(str, whole_numbers)


# ---------------------------------------------------------------------- types of fields


def listed(value: Any) -> Any:
    """A sequence as a tuple; a single name as a tuple of one."""
    if value is None or isinstance(value, Mapping) or not isinstance(value, Iterable):
        return value
    return (value,) if isinstance(value, str) else tuple(value)


Names = Annotated[Sequence[str], BeforeValidator(listed)]
"""Names of columns; one may stand alone."""
MaybeNames = Annotated[Sequence[str] | None, BeforeValidator(listed)]
