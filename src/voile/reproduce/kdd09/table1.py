"""Table 1: the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import voile
from voile.reproduce import look
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.kdd09.study import QI, SENSITIVE, TABLE
from voile.reproduce.papers import KDD09
from voile.reproduce.verdict import Number, Sample

ROWS = 45222
PRINTED = {"age": 74, "workclass": 8, "education": 16, "marital_status": 7, "race": 5, "sex": 2,
           "occupation": 14}  # fmt: skip
KINDS = {"age": "numeric", SENSITIVE: "sensitive"}
WORKCLASS = 7
WHY = "the eighth, Never-worked, is only in rows with an unknown occupation, which are left out"


def counted() -> dict[str, Any]:
    """The numbers of rows and of different values; for workclass, also over incomplete rows."""
    table, whole = voile.read(TABLE), voile.read("dataset:adult")
    columns = ", ".join(f"count(distinct {name})" for name in PRINTED)
    (row,) = table.run(f"select count(*), {columns} from adult")
    (every,) = whole.run("select count(distinct workclass) from adult")
    sizes = dict(zip(PRINTED, map(int, row[1:]), strict=True))
    return {"rows": int(row[0]), "sizes": sizes, "workclass_of_all_rows": int(every[0])}


def parts(run: Run) -> list[Part]:  # noqa: ARG001  (nothing is left out of a quick run)
    """One count of rows and values."""
    return [Part(counted)]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Compare the table's sizes with the printed ones."""
    found = results[0]
    sizes = found["sizes"]
    checks = [
        Number("rows", ROWS, Sample.of(found["rows"])),
        *(
            Number(f"values of {name}", printed, Sample.of(sizes[name]),
                   right=WORKCLASS if name == "workclass" else None,
                   why=WHY if name == "workclass" else "")
            for name, printed in PRINTED.items()
        ),
        Number("values of workclass in all 48,842 rows", 8,
               Sample.of(found["workclass_of_all_rows"])),
    ]  # fmt: skip
    columns: dict[str, list[Any]] = {
        "attribute": [*PRINTED],
        "role": [*("quasi-identifier" for _ in QI), "sensitive"],
        "printed": [*PRINTED.values()],
        "measured": [sizes[name] for name in PRINTED],
    }
    return Finding(
        checks=tuple(checks),
        tables={"": columns},
        picture=lambda: drawn(sizes),
        title=f"{found['rows']:,} people, seven attributes, one of them sensitive",
        subtitle="Complete rows of Adult, training and test; how many values each attribute has",
    )


def drawn(sizes: dict[str, int]) -> Any:
    """The attributes as a table, with differences marked."""
    rows = [
        [name, KINDS.get(name, "categorical"), str(printed), str(sizes[name])]
        for name, printed in PRINTED.items()
    ]
    marks = {
        (i, 3): look.VERMILION for i, name in enumerate(PRINTED) if sizes[name] != PRINTED[name]
    }
    return look.table(
        ["attribute", "type", "values, printed", "values, measured"],
        rows,
        widths=[190, 150, 160, 160],
        marks=marks,
    )


TABLE1 = Figure(
    name="kdd09-table1",
    paper=KDD09,
    what="Adult as it is used, 45,222 rows and seven attributes",
    parts=parts,
    conclude=conclude,
)
