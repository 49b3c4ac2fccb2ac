"""What a paper prints beside what we measure, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from scipy.special import stdtrit

from voile.records import Record

FALSE_ALARM = 0.001
"""How often a right number is rejected; a run of everything judges about a hundred by chance."""


@dataclass(frozen=True)
class Sample:
    """The values of runs with different seeds; a single value where nothing is random."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: float | Iterable[float]) -> Sample:
        """A sample of one value or of several."""
        several = (values,) if isinstance(values, (int, float)) else tuple(values)
        return cls(tuple(map(float, several)))

    @property
    def mean(self) -> float:
        """The mean over the runs."""
        return fmean(self.values)

    @property
    def sd(self) -> float:
        """The standard deviation over the runs; 0 where there is only one."""
        return stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.values)

    @property
    def allowance(self) -> float:
        """How far the mean of these runs may be from the mean of all runs.

        Student's law: whatever the number of runs, the true mean is further off at most once in a
        thousand times, if runs are normal.
        """
        return self._beyond / math.sqrt(self.runs)

    def centred_on(self, value: float, reading: float) -> bool:
        """Whether runs give `value` on average, which is known up to `reading`."""
        return abs(self.mean - value) <= reading + self.allowance

    def near(self, value: float, reading: float) -> bool:
        """Whether one more run may have given `value`, which is known up to `reading`.

        A right value is rejected as rarely as by `centred_on`. An average is known better than the
        next run: `centred_on` finds errors that this does not.
        """
        return abs(self.mean - value) <= reading + self._beyond * math.sqrt(1 + 1 / self.runs)

    @property
    def _beyond(self) -> float:
        """How far a run may be from the mean of all; 0 where there is one."""
        if self.runs == 1:
            return 0.0
        return float(stdtrit(self.runs - 1, 1 - FALSE_ALARM / 2)) * self.sd


@dataclass(frozen=True)
class Number(Record):
    """A number that the paper prints, beside the measured one.

    `reading` is how exactly the print can be read: half of its last digit, or the precision of
    reading a curve. Where the print is wrong, `right` is what it should be, and `why` says so.
    The print agrees if the mean of all runs may be what is printed, and `right` is no further off.
    `average` says that `right` is what runs give on average, by a formula or by many more runs, and
    not what one run gave.
    """

    what: str
    printed: float | None
    measured: Sample
    reading: float = 0.0
    right: float | None = None
    why: str = ""
    average: bool = False

    json_keys = (
        "mean=measured.mean", "sd=measured.sd", "runs=measured.runs", "right", "agrees",
        "sound", "why=reason",
    )  # fmt: skip

    @property
    def agrees(self) -> bool | None:
        """Whether it agrees with the print; None where the paper prints no number."""
        if self.printed is None:
            return None
        allowed = self.reading + self.measured.allowance
        right = self.printed if self.right is None else self.right
        return self.measured.centred_on(self.printed, self.reading) and (
            abs(right - self.printed) <= allowed
        )

    @property
    def sound(self) -> bool:
        """Whether it is what it should be: the print, or what is right where the print is not."""
        if self.right is not None and self.average:
            return self.measured.centred_on(self.right, self.reading)
        expected = self.printed if self.right is None else self.right
        return expected is None or self.measured.near(expected, self.reading)

    @property
    def reason(self) -> str:
        """Why it does not agree; also where all that is known is how far single runs scatter."""
        if self.why or self.agrees is not False or not self.sound:
            return self.why
        return (
            f"not what runs give on average; a single run may, as they scatter by "
            f"{self.measured.sd:.2g}"
        )


@dataclass(frozen=True)
class Claim(Record):
    """A sentence of the paper, what was measured, and whether it holds.

    `expected` is False where the print is known to be wrong, as `why` says.
    """

    what: str
    printed: str
    measured: str
    agrees: bool
    expected: bool = True
    why: str = ""

    json_keys = ("seen=measured", "agrees", "sound", "why")

    @property
    def sound(self) -> bool:
        """Whether the claim holds where it should, and fails where the print is wrong."""
        return self.agrees == self.expected

    @property
    def reason(self) -> str:
        """Why it does not agree."""
        return self.why


Check = Number | Claim
"""What a verdict is made of: a number beside the printed one, or a claim that holds or not."""


def sign(agrees: bool | None, sound: bool | None) -> str:
    """The verdict: 'agrees', 'differs' (the print is wrong or unclear), 'fails' or 'not judged'."""
    if sound is None:
        return "not judged"
    if not sound:
        return "fails"
    return "differs" if agrees is False else "agrees"


@dataclass(frozen=True)
class Reproduction(Record):
    """A figure made again: what was checked, and its files (the CSV, pictures, and JSON).

    A quick run is not `judged`: it shows that everything works, and has too few runs for more.
    """

    name: str
    paper: str
    what: str
    title: str
    checks: tuple[Check, ...]
    files: tuple[str, ...]
    judged: bool = True

    json_keys = ("name", "printed", "measured", "agrees", "why", "files")

    @property
    def printed(self) -> dict[str, float | str | None]:
        """What the paper prints, by check."""
        return {check.what: check.printed for check in self.checks}

    @property
    def measured(self) -> dict[str, dict[str, Any]]:
        """The checks as data, by what each is about."""
        if self.judged:
            return {check.what: check.to_dict() for check in self.checks}
        unjudged = {"agrees": None, "sound": None}
        return {c.what: c.to_dict() | unjudged | {"why": c.why} for c in self.checks}

    @property
    def agrees(self) -> bool | None:
        """Whether all that the paper says of it is as printed; None where it is not judged."""
        return all(check.agrees is not False for check in self.checks) if self.judged else None

    @property
    def sound(self) -> bool | None:
        """Whether all is as it should be: as printed, or as it is right where the print is not."""
        return all(check.sound for check in self.checks) if self.judged else None

    @property
    def why(self) -> str:
        """What does not agree with the print, and why."""
        differs = [check for check in self.checks if self.judged and check.agrees is False]
        return "; ".join(f"{c.what}: {c.reason or 'not explained'}" for c in differs)


Reproduced = Reproduction
"""The name that programs import; the same class."""
