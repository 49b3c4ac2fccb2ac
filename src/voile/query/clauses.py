"""Which clauses a SELECT may have, and what to write instead of the others."""

from __future__ import annotations

from sqlglot import exp

from voile.query.text import (
    ASK,
    first_token,
    place,
    refusal,
)

CLAUSES = {
    "with_": ("WITH", "with"), "laterals": ("LATERAL", "lateral"),
    "qualify": ("QUALIFY", "qualify"),
    "windows": ("WINDOW", "window"), "distinct": ("DISTINCT", "distinct"),
    "locks": ("FOR UPDATE", "for"), "sample": ("a sample", "sample"), "pivots": ("PIVOT", "pivot"),
    "into": ("INTO", "into"), "columns": ("renaming columns", ""),
    "rollup": ("ROLLUP", "rollup"), "cube": ("CUBE", "cube"),
    "grouping_sets": ("GROUPING SETS", "grouping"),
}  # fmt: skip
INSTEAD = {
    "distinct": "GROUP BY the columns instead",
    "with_": "ask one SELECT; your own tables come with --with name=file.csv",
    "rollup": "ask once for each grouping", "cube": "ask once for each grouping",
    "grouping_sets": "ask once for each grouping", "qualify": "use HAVING",
}  # fmt: skip


def only(sql: str, node: exp.Expr, known: set[str]) -> None:
    """Refuse every clause that is not known: one that is passed over would be answered wrongly."""
    for key, value in node.args.items():
        if value and key not in known:
            called = key.strip("_").replace("_", " ")
            clause, word = CLAUSES.get(key, (called.upper(), called))
            nodes = value if isinstance(value, list) else [value]
            trees = [n for n in nodes if isinstance(n, exp.Expr)]
            named = first_token(sql, word)
            raise refusal(
                sql,
                f"{clause} is not answered from a release",
                place(sql, trees) if named is None else named,
                INSTEAD.get(key, ASK),
            )
