"""The files of a finding: data, pictures, verdict."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from voile import __version__
from voile.errors import UsageError
from voile.evaluate.look import load_altair, render, theme
from voile.files import write_whole
from voile.kinds.staging import check_outside
from voile.reproduce.figure import Columns, Figure, Finding, Run
from voile.reproduce.result import Reproduced

PICTURES = ("png", "svg")


def check_folder(folder: Path) -> None:
    """Refuse before any work is done."""
    load_altair()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is a file", hint="name a folder")
    check_outside(folder / "index.html")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the folder {str(folder)!r}: {error.strerror}", hint="name another"
        ) from None


def write_finding(figure: Figure, found: Finding, run: Run, folder: Path) -> Reproduced:
    """Each file whole or not there; the verdict last, so that it tells of files that exist."""
    written = [
        write_whole(folder / f"{figure.name}{suffix and '-'}{suffix}.csv", as_csv(columns))
        for suffix, columns in found.tables.items()
    ]
    chart = framed(figure, found, run)
    written += [write_whole(folder / f"{figure.name}.{k}", render(chart, k)) for k in PICTURES]
    verdict = folder / f"{figure.name}.json"
    names = tuple(str(path) for path in [*written, verdict])
    done = Reproduced(figure.name, figure.paper, figure.what, found.title, found.checks, names)
    about = {"paper": done.paper, "what": figure.label, "title": done.title, "sound": done.sound}
    told = done.to_dict() | about | {"quick": run.quick, "seed": run.seed, "voile": __version__}
    told["files"] = [Path(name).name for name in names]  # a folder may be moved
    write_whole(verdict, as_json(told, figure.name, indent=1).encode() + b"\n")
    return done


def framed(figure: Figure, found: Finding, run: Run) -> Any:
    """The chart with its title, and below it where it comes from."""
    how = f"voile reproduce {figure.name}{' --quick' * run.quick} --seed {run.seed}"
    return theme(
        found.picture(),
        title=found.title,
        subtitle=found.subtitle,
        caption=[f"After {figure.paper}.", how],
    )


def as_json(value: Any, whose: str, indent: int | None = None) -> str:
    """JSON has no word for what is not a number: others could not read it."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        raise UsageError(
            f"{whose} gave a value that is infinite or not a number",
            hint="a piece of work returns finite numbers, and None where there is none",
        ) from None


def as_csv(columns: Columns) -> bytes:
    """Numbers as short as they can be written without loss, at most ten digits of them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([f"{v:.10g}" if isinstance(v, float) else v for v in row])
    return text.getvalue().encode()
