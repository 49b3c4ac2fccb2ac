"""What a guarantee's parameter may be, said once for the parser, the classes and the messages."""

from __future__ import annotations

import math
from dataclasses import dataclass

from voile.errors import UsageError, did_you_mean

Value = float | int | str | None


@dataclass(frozen=True)
class Number:
    """A number between two ends; an end belongs to the range only where it says so."""

    low: float
    high: float = math.inf
    with_low: bool = False
    with_high: bool = False
    whole: bool = False
    word: str | None = None
    """A word that may stand for 'no limit', such as any; its value is None."""

    def check(self, name: str, value: Value, where: str = "") -> None:
        if value is None and self.word:
            return
        if not isinstance(value, int | float) or not self._holds(value):
            shown = f"{value:g}" if isinstance(value, float) else repr(value)
            raise UsageError(f"{name} = {shown} {self.words}{where}", hint=self.hint(name))

    def _holds(self, value: float) -> bool:
        if not math.isfinite(value) or (self.whole and value != int(value)):
            return False
        above = value >= self.low if self.with_low else value > self.low
        return above and (value <= self.high if self.with_high else value < self.high)

    @property
    def words(self) -> str:
        number = "must be a whole number" if self.whole else "must be a number"
        least = "at least" if self.with_low else "above"
        if math.isinf(self.high):
            return f"{number} {least} {self.low:g}"
        most = "at most" if self.with_high else "below"
        return f"{number} {least} {self.low:g} and {most} {self.high:g}"

    def hint(self, name: str) -> str:
        inside = self.low + 1 if self.high > self.low + 1 else (self.low + self.high) / 2
        example = f"e.g. {name}={inside:g}"
        return f"{example}, or {name}={self.word}" if self.word else example

    def read(self, name: str, text: str, where: str) -> Value:
        """The value that a text means; `where` is its place, for the message."""
        if text == self.word:
            return None
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            raise UsageError(
                f"{name} = {text!r} {self.words}{where}", hint=self.hint(name)
            ) from None
        self.check(name, value, where)
        return value


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]

    def check(self, name: str, value: Value, where: str = "") -> None:
        if value not in self.options:
            raise UsageError(
                f"{name} = {value!r} is not known{where}",
                hint=did_you_mean(str(value), list(self.options)),
            )

    def read(self, name: str, text: str, where: str) -> Value:
        self.check(name, text, where)
        return text


Parameter = Number | Choice

PROBABILITY = Number(0, 1)
LARGEST_EPSILON = 10_000.0
LOG_RATIO = Number(0, LARGEST_EPSILON, with_low=True, with_high=True)
"""ε and δ: logarithms of a ratio. Beyond the largest nothing is promised that could be felt."""
