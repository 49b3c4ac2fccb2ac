"""Guarantees as people write them: d-gamma(d=4.65e-4, gamma=0.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from voile.errors import UsageError, VoileError, did_you_mean
from voile.privacy.guarantees.kinds import KINDS, Guarantee, Kind
from voile.privacy.guarantees.parameters import Number, Value
from voile.privacy.wording import chance


@dataclass(frozen=True)
class Wish:
    """A kind with some of its parameters: what a conversion may lead to."""

    kind: Kind
    fixed: dict[str, Value]

    @property
    def labels(self) -> list[str]:
        """What it may be, with the words that it leaves open, the default first."""
        option = self.kind.option
        if option is None or option not in self.fixed:
            return self.kind.labels
        return [f"{self.kind.name}[{self.fixed[option]}]"]


def parse_guarantee(text: str) -> Guarantee:
    """The guarantee that a text means; every wrong part is named with its place."""
    wish = parse_wish(text)
    kind = wish.kind
    missing = [
        name for name in kind.parameters if name not in wish.fixed and name not in kind.defaults
    ]
    if missing:
        raise UsageError(
            f"{kind.name} lacks {' and '.join(missing)} in {text!r}", hint=f"write {example(kind)}"
        )
    try:
        return kind.make(**wish.fixed)
    except VoileError as error:
        raise type(error)(f"{error.message}, in {text!r}", hint=error.hint) from None


def parse_wish(text: str) -> Wish:
    """A kind, with whatever parameters are given."""
    found = re.fullmatch(r"\s*([^\s(),=]+)\s*(?:\((.*)\)\s*)?", text, re.DOTALL)
    if not found:
        raise UsageError(
            f"{text!r} is not a guarantee: it is not written NAME or NAME(parameter=value, …)",
            hint=f"e.g. {example(KINDS['d-gamma'])}",
        )
    name = found[1]
    if name not in KINDS:
        raise UsageError(
            f"guarantee {name!r} is not known{_place(text, found.start(1))}",
            hint=did_you_mean(name, list(KINDS)),
        )
    kind = KINDS[name]
    inside, start = found[2] or "", found.start(2)
    return Wish(kind, dict(_read(kind, inside, lambda at: _place(text, start + at))))


def _read(kind: Kind, inside: str, place: Callable[[int], str]) -> Iterator[tuple[str, Value]]:
    """Each parameter with its value; `place` tells where in the whole text a character is."""
    if not inside.strip():
        return
    seen: set[str] = set()
    at = 0
    for part in inside.split(","):
        found = re.fullmatch(r"(\s*)([^=]*?)(\s*=\s*)(.*?)\s*", part, re.DOTALL)
        if not found or not found[2] or not found[4]:
            raise UsageError(
                f"{part.strip()!r} is not parameter=value{place(at)}",
                hint=f"write {example(kind)}",
            )
        name, where = found[2], place(at + found.start(2))
        if name not in kind.parameters:
            raise UsageError(
                f"{kind.name} has no parameter {name!r}{where}",
                hint=did_you_mean(name, list(kind.parameters)),
            )
        if name in seen:
            raise UsageError(f"{name!r} is given twice{where}", hint="give each parameter once")
        seen.add(name)
        yield name, kind.parameters[name].read(name, found[4], place(at + found.start(4)))
        at += len(part) + 1


def _place(text: str, at: int) -> str:
    return f" (character {at + 1} of {text!r})"


def example(kind: Kind) -> str:
    """How a guarantee of this kind is written, without what may be left out."""
    names = [f"{name}=…" for name in kind.parameters if name not in kind.defaults]
    return f"{kind.name}({', '.join(names)})"


def spelled(guarantee: Guarantee, digits: int | None = None) -> str:
    """The text of a guarantee, such that reading it gives the same; shorter with `digits`."""
    kind = KINDS[guarantee.kind]
    parts = []
    for name, value in list(guarantee.to_dict().items())[1:]:
        if value is None:
            parameter = kind.parameters[name]
            shown = parameter.word if isinstance(parameter, Number) else None
        else:
            shown = chance(value, digits) if digits and isinstance(value, float) else plain(value)
        parts.append(f"{name}={shown}")
    return f"{guarantee.kind}({', '.join(parts)})"


def plain(value: Value) -> str:
    """All digits, without the .0 of a whole number."""
    return str(value).removesuffix(".0")
