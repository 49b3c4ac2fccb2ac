"""How a text file is written, where that does not show for certain: options of every table."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from pydantic import Field, field_validator, model_validator

from voile.errors import UsageError, spelled
from voile.options import Flag, Names, Options, Reader

Decimal: TypeAlias = Literal[".", ","]
Thousands: TypeAlias = Literal[",", ".", " ", "'"]
DateOrder: TypeAlias = Literal["dmy", "mdy", "ymd", "text"]
HeaderRow: TypeAlias = Literal["yes", "no"]
BadRows: TypeAlias = Literal["error", "drop"]

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "space": " "}
"""Separators that are easier to say than to type."""
SAID = {sign: word for word, sign in SEPARATORS.items() if word.isalpha() and sign in "\t "}
"""Separators that are hard to type, in words."""
TEXTS = Reader(list[str], lambda _, given: given)


class ReadingOptions(Options):
    """How a text file is written. Each is found by itself where the file leaves no doubt."""

    null_text: Annotated[Names, Flag("Text that means NULL, e.g. '?'.", reads=TEXTS)] = ()
    na: Annotated[
        bool | None,
        Flag("NA, N/A, null, ? and the like are NULL, or are texts; see inspect.", negated=True),
    ] = None
    decimal: Annotated[
        Decimal | None, Flag("What begins a number's decimals: . or ,", hint="use . or ,")
    ] = None
    thousands: Annotated[
        Thousands | None,
        Flag(
            "What stands between thousands: , or . or ' or a space.",
            hint="use , or . or ' or a space in quotes",
        ),
    ] = None
    separator: Annotated[
        str | None, Flag("What stands between cells: ; or tab, or any other character.")
    ] = None
    encoding: Annotated[
        str | None, Flag("How letters are written, e.g. cp1252, latin-1 or utf-16.")
    ] = None
    dates: Annotated[
        DateOrder | None,
        Flag("Order of dates: dmy (31/12/2020), mdy or ymd; text leaves them as they are."),
    ] = None
    header: Annotated[
        HeaderRow | None, Flag("Whether the first line holds the names of the columns: yes or no.")
    ] = None
    skip: Annotated[
        int, Flag("Lines to leave out before the header.", hint="0 leaves none out"), Field(ge=0)
    ] = 0
    bad_rows: Annotated[
        BadRows, Flag("Lines with too few or too many cells: error, or drop them.")
    ] = "error"

    @field_validator("separator")
    @classmethod
    def _one_character(cls, given: str | None) -> str | None:
        found = SEPARATORS.get((given or "").lower(), given)
        if found is not None and (len(found) != 1 or found in '"\n\r'):
            raise UsageError(
                f"{spelled('separator', given)} is not one character",
                hint=f"e.g. {spelled('separator', ';')}, or {spelled('separator', 'tab')}",
            )
        return found

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, given: str | None) -> str | None:
        try:
            return given if given is None else codecs.lookup(given).name
        except LookupError:
            hint = f"e.g. {spelled('encoding', 'cp1252')}, or {spelled('encoding', 'utf-16')}"
            raise UsageError(f"{spelled('encoding', given)} is not known", hint=hint) from None

    @model_validator(mode="after")
    def _two_marks(self) -> ReadingOptions:
        if self.decimal is not None and self.decimal == self.thousands:
            other = "," if self.decimal == "." else "."
            raise UsageError(
                f"{spelled('decimal', self.decimal)} and {spelled('thousands', self.thousands)} "
                "are the same character",
                hint=f"e.g. {spelled('decimal', self.decimal)} {spelled('thousands', other)}",
            )
        return self

    def given_keywords(self) -> dict[str, Any]:
        """What was chosen, as keywords of `voile.read`."""
        return {name: getattr(self, name) for name in self.given(*type(self).model_fields)}

    def words(self) -> list[str]:
        """The same as flags of a command."""
        found: list[str] = []
        for name, value in self.given_keywords().items():
            if name == "na":
                found.append("--na" if value else "--no-na")
            else:
                flag = f"--{name.replace('_', '-')}"
                shown = [SAID.get(str(each), str(each)) if name == "separator" else str(each)
                         for each in (value if isinstance(value, tuple) else (value,))]  # fmt: skip
                # What begins with a dash would be taken for a flag.
                for each in shown:
                    found += [f"{flag}={each}"] if each.startswith("-") else [flag, each]
        return found

    def flags(self) -> str:
        """The same as a shell takes it, with a space in front; empty where nothing was chosen."""
        return "".join(f" {shlex.quote(word)}" for word in self.words())


class ReadingKeywords(TypedDict, total=False):
    """The same options as keyword arguments."""

    null_text: str | Sequence[str]
    na: bool | None
    decimal: Decimal | None
    thousands: Thousands | None
    separator: str | None
    encoding: str | None
    dates: DateOrder | None
    header: HeaderRow | None
    skip: int
    bad_rows: BadRows
