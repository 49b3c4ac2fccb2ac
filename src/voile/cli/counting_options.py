"""Options of `publish --method conjuncts`: tables of counts."""

from __future__ import annotations

from typing import Annotated

import typer

COUNTING = ("arity", "subsets", "direct", "delta", "eta", "rho", "noise")
"""As `publish` calls them."""

ArityOpt = Annotated[
    int, typer.Option(help="conjuncts: a table for every set of so many columns (d).")
]
SubsetsOpt = Annotated[
    int | None,
    typer.Option(help="conjuncts: of so many random halves of the rows (t; what errs least)."),
]
DirectOpt = Annotated[
    bool, typer.Option("--direct", help="conjuncts: of all rows, without halves.")
]
DeltaOpt = Annotated[
    float | None,
    typer.Option(help="conjuncts: δ, by which log-odds of a belief may rise (1 if not given)."),
]
EtaOpt = Annotated[float, typer.Option(help="conjuncts: η, the chance that they rise by more.")]
RhoOpt = Annotated[
    float | None, typer.Option(help="conjuncts: ρ of zCDP over all tables, instead of δ.")
]
NoiseOpt = Annotated[str, typer.Option(help="conjuncts: binomial or gaussian.")]
