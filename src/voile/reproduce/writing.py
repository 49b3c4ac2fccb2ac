"""A page of all that was reproduced in a folder: pictures, verdicts, data."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from voile import __version__
from voile.errors import UsageError
from voile.evaluate.drawing import load_altair, render, theme
from voile.evaluate.pages import NextStep, Report, head_cell, heading, row, table, text_cell
from voile.files import write_whole
from voile.kinds.staging import check_outside
from voile.reproduce.catalogue import FIGURES
from voile.reproduce.figure import Columns, Figure, Finding, Run
from voile.reproduce.verdict import Reproduction, sign

PAGE = "index.html"
SIGNS = {"agrees": "agrees with the print", "differs": "differs, as the print is wrong or unclear",
         "fails": "does not agree, and should",
         "not judged": "a quick run is not judged"}  # fmt: skip

STYLE = """
article { border-top: 1px solid var(--line); padding: 1.5rem 0 1rem; }
article .paper { display: block; margin: 1rem 0; }
.sign { font-size: .85rem; font-weight: 600; } .agrees { color: var(--accent); }
.differs, .unjudged { color: var(--ink); } .fails { color: var(--bad); }
@media (max-width: 40rem) { .paper img { max-width: none; width: 40rem; } }
"""


def write_gallery(folder: Path) -> Path:
    """Write the page that shows every figure of the folder."""
    return write_whole(folder / PAGE, gallery(verdicts(folder)))


def verdicts(folder: Path) -> list[dict[str, Any]]:
    """The verdicts that the folder holds, in the order of the papers."""
    files = (folder / f"{figure.name}.json" for figure in FIGURES)
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]


def gallery(found: Iterable[Mapping[str, Any]]) -> bytes:
    """The whole page as HTML, paper by paper."""
    papers: dict[str, list[Mapping[str, Any]]] = {}
    for entry in found:
        papers.setdefault(entry["paper"], []).append(entry)
    title = "The papers, reproduced"
    every = [entry for several in papers.values() for entry in several]
    parts = []
    for paper, several in papers.items():
        parts += [heading(paper), *map(article, several)]
    return Report(
        title, title, tally(every), parts, steps(every),
        "Made with Voile. A figure is a picture on white paper, with its data beside it.",
        style=STYLE,
    ).page()  # fmt: skip


def steps(found: Sequence[Mapping[str, Any]]) -> list[NextStep]:
    """What to run next: in full what was a quick run, and what else there is."""
    quick = [entry["name"] for entry in found if entry["quick"]]
    again = [NextStep("Make in full what was a quick run:",
                      shlex.join(["voile", "reproduce", *quick]))] if quick else []  # fmt: skip
    return [*again, NextStep("See which figures and tables there are:", "voile reproduce --list")]


def tally(found: Sequence[Mapping[str, Any]]) -> str:
    """A sentence that counts how many figures agree with the print."""
    if not found:
        return "Nothing yet."
    signs = [sign(entry["agrees"], entry["sound"]) for entry in found]
    if signs.count("not judged") == len(signs):
        return f"{len(signs)} figures and tables from quick runs, which are not judged."
    checks = [check["agrees"] for entry in found for check in entry["measured"].values()]
    counted = {"fails": "do not agree and should", "not judged": "are quick runs"}
    others = (f", {signs.count(one)} {words}" for one, words in counted.items() if one in signs)
    return (
        f"{len(signs)} figures and tables: {signs.count('agrees')} are as printed in all that was "
        f"compared, {signs.count('differs')} differ somewhere because the print is wrong or unclear"
        f"{''.join(others)}. Of {len(checks) - checks.count(None)} numbers and sentences of the "
        f"papers {checks.count(True)} hold."
    )


def article(entry: Mapping[str, Any]) -> str:
    """One figure as HTML: its picture, its verdict and its files."""
    name, verdict = escape(entry["name"]), sign(entry["agrees"], entry["sound"])
    rows = [check_row(what, entry) for what in entry["measured"]]
    headings = ("what", "the paper", "measured", "verdict")
    checks = table(f"{entry['what']}: print and measurement", headings, rows)
    files = ", ".join(link(Path(file).name) for file in entry["files"])
    return (
        f'<article id="{name}"><h3>{escape(entry["what"])}</h3>\n'
        f"<code>{name}</code>{made_by(entry)} · "
        f'<span class="sign {style_of(verdict)}">{SIGNS[verdict]}</span>\n'
        f'<a class="paper" href="{name}.svg"><img src="{name}.svg" alt="{escape(entry["title"])}" '
        f'loading="lazy"></a>\n{checks}\n'
        f"<p>{files}</p></article>"
    )


def made_by(entry: Mapping[str, Any]) -> str:
    """Which other version of Voile made a figure; empty for this one."""
    version = entry.get("voile", "of an older version")
    return "" if version == __version__ else f" · made by Voile {escape(version)}"


def link(file: str) -> str:
    """A link to a file of the folder."""
    return f'<a href="{escape(file)}">{escape(file)}</a>'


def check_row(what: str, entry: Mapping[str, Any]) -> str:
    """One check as a row of HTML: the print, the measurement and the verdict."""
    check = entry["measured"][what]
    verdict = sign(check["agrees"], check["sound"])
    shown = "–" if check["agrees"] is None and check["sound"] else verdict
    why = f"<br>{escape(check['why'])}" if check["why"] else ""
    return row(
        head_cell(what),
        text_cell(printed(entry["printed"][what])),
        text_cell(measured(check)),
        f'<td><span class="sign {style_of(verdict)}">{shown}</span>{why}</td>',
    )


def style_of(verdict: str) -> str:
    """The class of a verdict in the page's style sheet."""
    return "unjudged" if verdict == "not judged" else verdict


def printed(value: Any) -> str:
    """What the paper prints, as text."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.4g}"


def measured(check: Mapping[str, Any]) -> str:
    """Mean and deviation, or the claim's words; and the right value if the print is wrong."""
    if "seen" in check:
        return str(check["seen"])
    spread = f" ± {check['sd']:.2g} ({check['runs']} runs)" if check["runs"] > 1 else ""
    right = f", right: {check['right']:.4g}" if check["right"] is not None else ""
    return f"{check['mean']:.4g}{spread}{right}"


# ------------------------------------------------- the files of a finding: data, pictures, verdict


PICTURES = ("png", "svg")


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before any work is done."""
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


def write_finding(figure: Figure, found: Finding, run: Run, folder: Path) -> Reproduction:
    """Write a figure's files, the verdict last, so that it names files that exist."""
    written = [
        write_whole(folder / f"{figure.name}{suffix and '-'}{suffix}.csv", as_csv(columns))
        for suffix, columns in found.tables.items()
    ]
    chart = framed(figure, found, run)
    written += [write_whole(folder / f"{figure.name}.{k}", render(chart, k)) for k in PICTURES]
    verdict = folder / f"{figure.name}.json"
    names = tuple(str(path) for path in [*written, verdict])
    done = Reproduction(figure.name, figure.paper, figure.what, found.title, found.checks, names,
                        judged=not run.quick)  # fmt: skip
    about = {"paper": done.paper, "what": figure.label, "title": done.title, "sound": done.sound}
    entry = done.to_dict() | about | {"quick": run.quick, "seed": run.seed, "voile": __version__}
    entry["files"] = [Path(name).name for name in names]  # a folder may be moved
    write_whole(verdict, as_json(entry, figure.name, indent=1).encode() + b"\n")
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
    """A value as JSON, which refuses what is infinite or not a number."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        raise UsageError(
            f"{whose} gave a value that is infinite or not a number",
            hint="a piece of work returns finite numbers, and None where there is none",
        ) from None


def as_csv(columns: Columns) -> bytes:
    """A table as CSV, with numbers of at most ten digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for values in zip(*columns.values(), strict=True):
        writer.writerow([f"{v:.10g}" if isinstance(v, float) else v for v in values])
    return text.getvalue().encode()
