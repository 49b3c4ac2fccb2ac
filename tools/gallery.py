"""python tools/gallery.py FOLDER: the documentation's gallery, of what `voile reproduce` wrote.

    voile reproduce --all -o out && python tools/gallery.py out

writes docs/gallery.md and docs/images/gallery/.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from voile.reproduce.catalogue import FIGURES
from voile.reproduce.verdict import sign
from voile.reproduce.writing import measured, printed, tally, verdicts

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """\
# Gallery: the papers, reproduced

Every figure and table of the papers that Voile is built on, made again by one command:

```sh
voile reproduce --all -o out
```

{tally} What is printed in the papers stands beside what was
measured, as mean ± standard deviation over runs with different seeds. *agrees*: as printed, within
what can be read and what coins do. *differs*: not as printed, and the reason is known. A dash: the
paper prints no number. How it is judged, and how to make one figure:
[Reproducing](guides/reproduce.md). The errors of the papers: [Errata](mathematics/errata.md).

This page is written by `tools/gallery.py`.
"""


def page(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The page, section by section."""
    yield HEAD.format(tally=tally(found))
    paper = ""
    for figure in found:
        if figure["paper"] != paper:
            paper = figure["paper"]
            yield f"\n## {paper}\n"
        yield section(figure)


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


def main() -> int:
    """Write the page and its images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="what `voile reproduce --all -o FOLDER` wrote")
    folder: Path = parser.parse_args().folder
    found = verdicts(folder)
    missing = {one.name for one in FIGURES} - {figure["name"] for figure in found}
    if missing or any(figure["quick"] for figure in found):
        parser.error(f"a full run of all figures is wanted; missing: {sorted(missing) or 'none'}")
    images = DOCS / "images" / "gallery"
    shutil.rmtree(images, ignore_errors=True)
    images.mkdir(parents=True)
    for figure in found:
        shutil.copy(folder / f"{figure['name']}.svg", images)
    (DOCS / "gallery.md").write_text("".join(page(found)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
