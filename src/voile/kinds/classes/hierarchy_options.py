"""The options of building a hierarchy for a column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import model_validator

from voile.errors import UsageError
from voile.options import NUMBERS, WHOLE_NUMBERS, Flag, Options

WAYS = ("equal_width", "equal_depth", "multiples", "dates", "mask", "prefixes", "mapping",
        "suggest_by", "file")  # fmt: skip
JOINING = ("equal_width", "equal_depth", "suggest_by")


class HierarchyOptions(Options):
    """At most one way to build it; none means the shipped or the usual one."""

    equal_width: Annotated[
        int | None, Flag("So many ranges that are equally wide, then joined.")
    ] = None
    equal_depth: Annotated[
        int | None, Flag("So many ranges with equally many rows, then joined.")
    ] = None
    multiples: Annotated[
        Sequence[float] | None, Flag("Ranges that begin at multiples: 5,10,20.", reads=NUMBERS)
    ] = None
    dates: Annotated[bool, Flag("day → month → quarter → year.")] = False
    mask: Annotated[str | None, Flag("Hide one character after the other, from right or left.")] = (
        None
    )
    prefixes: Annotated[
        Sequence[int] | None,
        Flag("Keep the first so many characters: 3,2,1.", reads=WHOLE_NUMBERS),
    ] = None
    mapping: Annotated[
        str | Path | None,
        Flag("YAML or JSON: the values of each group, or the group of each value."),
    ] = None
    suggest_by: Annotated[
        str | None, Flag("Join values whose rows are alike in this sensitive column.")
    ] = None
    file: Annotated[str | Path | None, Flag("A hierarchy in ARX's CSV form.", name="--from")] = None
    fanout: Annotated[int | None, Flag("How many groups are joined into one (2 if not given).")] = (
        None
    )

    @model_validator(mode="after")
    def _check(self) -> HierarchyOptions:
        asked = self.given(*WAYS)
        if len(asked) > 1:
            raise UsageError(
                f"{' and '.join(map(self.spelled, asked))} are two ways to build one hierarchy",
                hint="give one",
            )
        if self.fanout is not None and not {*asked} & {*JOINING}:
            raise UsageError(
                f"{self.spelled('fanout')} says how many groups are joined into one",
                hint=f"it goes with {', '.join(map(self.spelled, JOINING[:-1]))} or "
                f"{self.spelled(JOINING[-1])}",
            )
        return self

    @property
    def way(self) -> str:
        """The one way that is asked for, as its flag is called; empty for none."""
        asked = self.given(*WAYS)
        return {"file": "--from"}.get(asked[0], f"--{asked[0].replace('_', '-')}") if asked else ""
