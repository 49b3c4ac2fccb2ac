"""What is typed after `voile attack reconstruct`, read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from voile.errors import UsageError, spelled
from voile.evaluate.drawing import check_picture
from voile.evaluate.reconstruction.server import (
    Answerer,
    Guesses,
    attack_server,
    known_truth,
)
from voile.evaluate.reconstruction.simulating import Noise, Reconstruction
from voile.progress import Progress

__all__ = ["attack", "check_picture", "draw", "read_noises", "read_questions"]

ROOTS, VARIANCE, SETTING = "0.25,0.5,1,2", "T", "1,1e-6"
"""Noise that is tried where none is named."""
ROWS, PER_ROW = 1_000, 4
"""Rows that are attacked, and questions for each, where their numbers are not named."""
ALL = "all"
"""As many questions as a server's budget allows."""


def attack(
    server: Answerer,
    condition: str,
    questions: str,
    *,
    method: str,
    table: str | None,
    ids: Path | None,
    null_text: Sequence[str] = (),
    progress: Progress | None = None,
) -> Guesses:
    """Ask a server so many questions, or all that its budget allows; known answers are free."""
    about = server.about()
    truth = known_truth(about, condition, table=table, ids=ids, null_text=null_text)
    most = max(2, int(about["queries"])) if questions == ALL else one_number(questions)
    return attack_server(server, condition, truth, questions=most, method=method, progress=progress)


def draw(found: Reconstruction, path: Path, *, overwrite: bool) -> None:
    """Draw what came back into a file of the kind that its name says."""
    from voile.evaluate.pages import write_report  # noqa: PLC0415  (an extra)
    from voile.evaluate.reconstruction import plot  # noqa: PLC0415

    write_report(path, lambda: plot.report(found), lambda: plot.draw(found), overwrite=overwrite)


def read_noises(roots: str | None, variance: str | None, setting: str | None) -> list[Noise]:
    """All sizes that were named, in the order of the three options."""
    if roots is None and variance is None and setting is None:
        roots, variance, setting = ROOTS, VARIANCE, SETTING
    found = [Noise(f"{size:g}√n", roots=size) for size in numbers(roots, "noise", 0)]
    found += [read_variance(text) for text in parts(variance)]
    if setting is not None:
        found.append(read_setting(setting))
    return found


def read_variance(text: str) -> Noise:
    """A number, or T for the number of questions, or as 2T a multiple of it."""
    if not text.endswith(("T", "t")):
        value = number(text, "variance", 0)
        return Noise(f"V = {value:g}", variance=value)
    times = number(text[:-1], "variance", 0) if len(text) > 1 else 1.0
    return Noise(f"V = {'' if times == 1 else f'{times:g}'}T", per_question=times)


def read_setting(text: str) -> Noise:
    """A server's δ and η."""
    found = numbers(text, "setting", 0)
    if len(found) != 2:
        raise UsageError(f"{spelled('setting', text)} is not δ,η", hint=spelled("setting", SETTING))
    name = f"δ = {found[0]:g}, η = {found[1]:g}".replace("e-0", "e-")
    noise = Noise(name, setting=(found[0], found[1]))
    noise.size(1, 1)  # refuses what is no setting
    return noise


def read_questions(text: str | None, rows: int) -> list[int]:
    """How many questions are asked; by default PER_ROW for each row."""
    if text is None:
        return [PER_ROW * rows]
    return [whole(part, "questions") for part in parts(text)]


def one_number(text: str) -> int:
    """How many questions a server is asked at most."""
    found = [whole(part, "questions") for part in parts(text)]
    if len(found) != 1:
        raise UsageError(
            f"{spelled('questions', text)} is not one number", hint="a server is attacked once"
        )
    return found[0]


def numbers(text: str | None, option: str, least: float) -> list[float]:
    """The numbers of an option."""
    return [number(part, option, least) for part in parts(text)]


def parts(text: str | None) -> list[str]:
    """What stands between commas."""
    return [] if text is None else [part.strip() for part in text.split(",")]


def number(text: str, option: str, least: float) -> float:
    """A number that is large enough."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= least):
        raise UsageError(
            f"{spelled(option)}: {text!r} is not a number of at least {least:g}",
            hint="numbers apart at commas, such as 0.25,0.5,1",
        )
    return found


def whole(text: str, option: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"{spelled(option)}: {text!r} is not a whole number", hint="such as 4000, or 4000,32000"
        ) from None
