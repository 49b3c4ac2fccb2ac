"""Pictures to files whose names say their kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.evaluate.look import FORMATS, load_altair, render
from voile.files import write_whole
from voile.kinds.staging import check_outside


def check_picture(path: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done."""
    kind_of(path)
    load_altair()
    check_outside(path)
    if not path.resolve().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.parent)!r} for {path.name!r}", hint="make it first"
        )
    if path.exists() and not overwrite:
        raise UsageError(
            f"{str(path)!r} exists already", hint="choose another name, or pass --overwrite"
        )


def kind_of(path: Path) -> str:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise UsageError(
            f"{str(path)!r} ends in {path.suffix or 'nothing'}",
            hint=f"name it .{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}",
        )
    return kind


def save(draw: Callable[[], Any], path: Path, *, overwrite: bool) -> Path:
    """Draw, and put the file in its place in one step."""
    return write_whole(path, render(draw(), kind_of(path)), overwrite=overwrite)
