"""The options of commands that group rows into classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

QiOpt = Annotated[
    str | None,
    typer.Option("--qi", help="Quasi-identifiers, what others may know of a person: age,sex,zip."),
]
SensitiveOpt = Annotated[
    str | None, typer.Option("--sensitive", help="Sensitive attributes: disease or a,b.")
]
InsensitiveOpt = Annotated[
    str | None, typer.Option("--insensitive", help="Columns that are shown as they are.")
]
IdentifiersOpt = Annotated[
    str | None, typer.Option("--identifiers", help="Columns that are left out.")
]
RecodeOpt = Annotated[
    str | None,
    typer.Option("--recode", help="generalize: show ranges; bucketize: hide which value is whose."),
]
KOpt = Annotated[int | None, typer.Option("--k", help="Every class has at least k rows.")]
LOpt = Annotated[
    list[str] | None,
    typer.Option("--l", help="ℓ-diversity: a number, or NAME=NUMBER for one attribute."),
]
LMeasureOpt = Annotated[
    str, typer.Option("--l-measure", help="frequency, distinct, entropy or recursive (with --c).")
]
COpt = Annotated[float | None, typer.Option("--c", help="c of recursive (c, ℓ)-diversity.")]
TOpt = Annotated[
    list[str] | None, typer.Option("--t", help="t-closeness: a number, or NAME=NUMBER.")
]
TDistanceOpt = Annotated[
    str,
    typer.Option(
        "--t-distance", help="js, variational, emd-equal, emd-ordered or emd-hierarchical."
    ),
]
SemanticOpt = Annotated[
    list[str] | None, typer.Option("--semantic", help="Semantic privacy's δ, or NAME=NUMBER.")
]
AbsentOpt = Annotated[
    str,
    typer.Option("--absent", help="With --semantic: values that a class lacks are forbidden, or "
                 "ignored."),
]  # fmt: skip
AlphaOpt = Annotated[
    list[str] | None,
    typer.Option("--alpha", help="No sensitive value has a larger share of a class, or NAME=…"),
]
PresenceOpt = Annotated[
    str | None,
    typer.Option("--presence", help="δ-presence: the least and largest share, as 0.01,0.2."),
]
PopulationOpt = Annotated[
    str | None, typer.Option("--population", help="With --presence: a public table of everybody.")
]
CutsOpt = Annotated[
    str | None,
    typer.Option("--cuts", help="mondrian: median, information, certainty or hierarchy."),
]
RelaxedOpt = Annotated[
    bool, typer.Option("--relaxed", help="mondrian: rows with equal values may be divided.")
]
SuppressionOpt = Annotated[
    float,
    typer.Option("--suppression", help="fulldomain, suppress: share of rows that may be left out."),
]
SuppressedOpt = Annotated[
    str | None,
    typer.Option("--suppressed", help="With --suppression: such rows are removed, or shown as *."),
]
LossOpt = Annotated[
    str | None,
    typer.Option("--loss", help="fulldomain: ncp, discernibility, levels or entropy is least."),
]
HierarchyOpt = Annotated[
    list[str] | None,
    typer.Option("--hierarchy", help="COLUMN=FILE.csv: its coarser values; see voile hierarchy."),
]
GroupNullsOpt = Annotated[str, typer.Option(help="error, drop or as-value.")]
GroupSchemaOpt = Annotated[
    Path | None, typer.Option("--schema", help="A codebook that declares the domain.")
]


GROUPING = (
    "qi", "sensitive", "insensitive", "identifiers", "recode", "k", "l", "l_measure", "c", "t",
    "t_distance", "semantic", "absent", "alpha", "presence", "population", "cuts", "relaxed",
    "suppression", "suppressed", "loss", "hierarchy", "nulls",
)  # fmt: skip
"""Options that are about classes, as `publish` and `generalize` call them."""
ALWAYS = ("table", "output", "method", "schema", "nulls", "null_text", "name", "overwrite",
          "simulate_seed", "as_json")  # fmt: skip

INSTEAD = {
    "columns": "of classes, --qi and --sensitive name columns, --identifiers leaves them out"
}


def check_belong(context: typer.Context, method: str) -> tuple[str, ...]:
    """Refuse options that the method knows nothing of; the names of those of grouping."""
    from voile.cli.counting_options import COUNTING
    from voile.errors import UsageError, did_you_mean
    from voile.kinds.classes.wish import GROUPINGS
    from voile.kinds.counts.wish import CONJUNCTS
    from voile.kinds.views.wish import METHODS

    known = [*METHODS, *GROUPINGS, *CONJUNCTS]
    if method not in known:
        raise UsageError(f"method {method!r} is not known", hint=did_you_mean(method, known))
    own = {"mondrian": GROUPING, "conjuncts": COUNTING}
    mine = "mondrian" if method in GROUPINGS else method
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in ALWAYS:
            continue
        owners = [other for other, names in own.items() if name in names] or ["alphabeta"]
        if name == "columns":
            owners = ["alphabeta", "conjuncts"]
        if mine not in owners:
            raise UsageError(
                f"{parameter.opts[0]} belongs to --method {owners[0]}, not to {method}",
                hint=INSTEAD.get(name, f"leave it out, or say --method {owners[0]}"),
            )
    return GROUPING


APPLIED = ("table", "output", "apply", "insensitive", "identifiers", "suppression", "null_text",
           "keep_order", "overwrite", "as_json")  # fmt: skip


def check_applied(context: typer.Context) -> None:
    """A saved recoding says all the rest itself."""
    from voile.errors import UsageError

    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if given and parameter.name not in APPLIED:
            raise UsageError(
                f"{parameter.opts[0]} does not go with --apply: the saved recoding says it",
                hint="leave it out, or fit a recoding anew",
            )


def grouping_wish(**given: Any) -> dict[str, Any]:
    """Options as GroupWish takes them."""
    from voile.cli.common import check_nulls, split_names
    from voile.hierarchies import hierarchy_options

    for name in ("qi", "sensitive", "insensitive", "identifiers"):
        given[name] = split_names(given[name]) or []
    for name in ("l", "t", "semantic", "alpha"):
        given[name] = for_each(given[name], f"--{name}")
    given["presence"] = pair(given["presence"], "--presence")
    given["hierarchies"] = hierarchy_options(given.pop("hierarchy") or [])
    given["nulls"] = check_nulls(given["nulls"])
    return given


def for_each(given: list[str] | None, option: str) -> Any:
    """A number for all sensitive attributes, or numbers by name."""
    from voile.cli.perturbing import by_column, number
    from voile.errors import UsageError

    if not given:
        return None
    found = by_column(given, option, number)
    if None not in found:
        return found
    if len(found) > 1:
        raise UsageError(
            f"{option} is given for all attributes and for {next(n for n in found if n)!r}",
            hint=f"name every attribute: {option} disease=3",
        )
    return found[None]


def pair(given: str | None, option: str) -> tuple[float, float] | None:
    from voile.errors import UsageError

    if given is None:
        return None
    try:
        low, high = (float(part) for part in given.split(","))
    except ValueError:
        raise UsageError(f"{option} {given!r} is not two numbers", hint=f"{option} 0.01,0.2") from (
            None
        )
    return low, high
