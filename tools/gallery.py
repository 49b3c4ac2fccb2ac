"""python tools/gallery.py FOLDER: the documentation's gallery, of what `voile reproduce` wrote.

    voile reproduce --all -o out && python tools/gallery.py out

writes docs/gallery.md, docs/images/gallery/ and docs/images/then-and-now.png.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from voile.evaluate import drawing
from voile.reproduce.catalogue import FIGURES
from voile.reproduce.verdict import sign
from voile.reproduce.vldb07.adult import FRAPP, MARGINALS, MARGINALS_1, TIGHT
from voile.reproduce.writing import measured, printed, tally, verdicts

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """\
# Gallery: the papers, reproduced

Every figure and table of the papers that Voile is built on, made again by one command:

```sh
voile reproduce --all -o out
```

{about}

This page is written by `tools/gallery.py`.
"""
ABOUT = """\
{tally} What is printed in the papers stands beside what was measured, as mean ± standard deviation
over runs with different seeds. A number that chance decides and that the paper prints is the mean
of twenty runs or more. *agrees*: as printed, within what can be read and what chance does.
*differs*: not as printed, and the reason is known. A dash: the paper prints no number. How it is
judged, and how to make one figure: [Reproducing](guides/reproduce.md). The errors of the papers:
[Errata](mathematics/errata.md). Made by version {voile}, in a full run with the seed {seed}.
"""
WIDTH = 100
RUNS = 20
"""A number that is printed and that chance decides is the mean of so many runs at least."""


def page(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The page, section by section."""
    run = {key: one_of(key, found) for key in ("voile", "seed")}
    about = " ".join(ABOUT.format(tally=tally(found), **run).split())
    yield HEAD.format(about=textwrap.fill(about, WIDTH, break_on_hyphens=False))
    paper = ""
    for figure in found:
        if figure["paper"] != paper:
            paper = figure["paper"]
            yield f"\n## {paper}\n"
        yield section(figure)


def one_of(key: str, found: Sequence[Mapping[str, Any]]) -> str:
    """What all figures have in common: the version or the seed of one run."""
    values = {str(figure[key]) for figure in found}
    if len(values) != 1:
        raise ValueError(f"figures of several runs: {key} is {', '.join(sorted(values))}")
    return values.pop()


def few_runs(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Printed numbers that chance decides and that rest on too few runs to be judged."""
    return [
        f"{figure['name']}: {what}"
        for figure in found
        for what, check in figure["measured"].items()
        if figure["printed"][what] is not None and check.get("sd") and check["runs"] < RUNS
    ]


def section(figure: Mapping[str, Any]) -> str:
    """One figure with its table of printed and measured numbers."""
    rows = "\n".join(row(what, figure) for what in figure["measured"])
    return (
        f"\n### {figure['what']}\n\n"
        f"`voile reproduce {figure['name']}` · {sign(figure['agrees'], figure['sound'])}\n\n"
        f"![{figure['title']}](images/gallery/{figure['name']}.svg)\n\n"
        f"| | the paper | measured | |\n|---|---|---|---|\n{rows}\n"
    )


def row(what: str, figure: Mapping[str, Any]) -> str:
    """One number of a figure: what is printed, what was measured, the verdict."""
    check = figure["measured"][what]
    verdict = sign(check["agrees"], check["sound"])
    shown = "–" if check["agrees"] is None and check["sound"] else verdict
    why = f"{shown}: {check['why']}" if check["why"] else shown
    cells = (what, printed(figure["printed"][what]), measured(check), why)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


THEN_AND_NOW = {
    FRAPP: ("FRAPP, 2005", drawing.SOFT),
    TIGHT: ("αβ, VLDB 2007", drawing.VERMILION),
    MARGINALS: ("noisy marginals with a model, 2026", drawing.BLUE),
    MARGINALS_1: ("noisy marginals at ε = 1, a stronger promise", "#56B4E9"),
}
FROM = 50
"""Counts below are drowned by any noise; the paper's figure begins here too."""


def then_and_now(folder: Path) -> bytes:
    """What 2026 adds to 2005 and 2007, of the data of Figure 3, as a picture."""
    alt = drawing.load_altair()
    with (folder / "vldb07-fig3.csv").open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = [
            {"name": THEN_AND_NOW[line["method"]][0], "count": int(line["threshold"]),
             "error": float(line["mean_error"])}
            for line in csv.DictReader(file)
            if line["method"] in THEN_AND_NOW and int(line["threshold"]) >= FROM
        ]  # fmt: skip
    names, colours = zip(*THEN_AND_NOW.values(), strict=True)
    at = {str(line["name"]): float(line["error"]) for line in rows if line["count"] == 500}

    def log(low: int, high: int) -> Any:
        return alt.Scale(type="log", domain=[low, high], nice=False)

    base = drawing.inline_chart(rows).encode(
        x=alt.X("count:Q", title="counts of at least so many people",
                scale=log(45, 5600), axis=alt.Axis(format=",d")),
        y=alt.Y("error:Q", title="mean error, in people",
                scale=log(1, 2000), axis=alt.Axis(format=",d")),
        color=alt.Color("name:N", scale=alt.Scale(domain=names, range=colours), legend=None),
    )  # fmt: skip
    words = (
        drawing.inline_chart([line for line in rows if line["count"] == 100])
        .mark_text(align="left", dy=20, fontSize=15, fontWeight="bold")
        .encode(x="count:Q", y="error:Q", text="name:N", color=base.encoding.color)
    )
    layers = alt.layer(base.mark_line(strokeWidth=3), base.mark_point(filled=True, size=50), words)
    chart = drawing.theme(
        layers.properties(width=760, height=420),
        title=f"One table, one promise: {at[names[0]] / at[names[2]]:.0f} times less error",
        subtitle="Counts of one to three columns of the Adult census table, 30,162 people",
        caption=[
            "voile reproduce vldb07-fig3: (d, γ)-privacy with d = 10·n/m, γ = 0.2; for marginals",
            "except with a chance of one in a billion, for FRAPP as the paper of 2007 reads it.",
        ],
    )
    return drawing.render(chart, "png")


def main() -> int:
    """Write the page and its images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="what `voile reproduce --all -o FOLDER` wrote")
    folder: Path = parser.parse_args().folder
    found = verdicts(folder)
    missing = {one.name for one in FIGURES} - {figure["name"] for figure in found}
    if missing or any(figure["quick"] for figure in found):
        parser.error(f"a full run of all figures is wanted; missing: {sorted(missing) or 'none'}")
    if few := few_runs(found):
        parser.error(f"fewer than {RUNS} runs: {', '.join(few)}")
    images = DOCS / "images" / "gallery"
    shutil.rmtree(images, ignore_errors=True)
    images.mkdir(parents=True)
    for figure in found:
        shutil.copy(folder / f"{figure['name']}.svg", images)
    (DOCS / "images" / "then-and-now.png").write_bytes(then_and_now(folder))
    (DOCS / "gallery.md").write_text("".join(page(found)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
