"""A figure that was reproduced: the verdict, and where its files are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voile.reproduce.verdict import Check


@dataclass(frozen=True)
class Reproduced:
    """`files` are the CSV, the pictures and this verdict as JSON."""

    name: str
    paper: str
    what: str
    title: str
    checks: tuple[Check, ...]
    files: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether all that the paper says of it is as printed."""
        return all(check.agrees is not False for check in self.checks)

    @property
    def sound(self) -> bool:
        """Whether all is as it should be: as printed, or as it is right where the print is not."""
        return all(check.sound for check in self.checks)

    @property
    def why(self) -> str:
        """What does not agree with the print, and why."""
        differs = [check for check in self.checks if check.agrees is False]
        return "; ".join(f"{c.what}: {c.why or 'not explained'}" for c in differs)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "printed": {check.what: check.printed for check in self.checks},
            "measured": {check.what: check.to_dict() for check in self.checks},
            "agrees": self.agrees,
            "why": self.why,
            "files": list(self.files),
        }
