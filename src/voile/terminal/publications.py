"""Tables before they are published, and releases when they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voile.terminal import table_of
from voile.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voile.engines.findings import ColumnFinding
    from voile.evaluate.exposure import Exposure
    from voile.inspection import Inspection
    from voile.kinds.choosing import MethodChoice
    from voile.kinds.classes.column_hierarchy import ColumnHierarchy
    from voile.kinds.classes.generalizing import Generalized
    from voile.kinds.manifest import Disclosed
    from voile.kinds.perturbed.combining import Combination
    from voile.kinds.perturbed.manifest import LocalManifest
    from voile.kinds.perturbed.publishing import Perturbation
    from voile.kinds.publishing import PublishResult
    from voile.kinds.signatures import SignatureReport, SignedRelease
    from voile.kinds.verification import Verification
    from voile.schema.infer import ColumnProfile


MOST_ATTRIBUTES, MOST_FINDINGS, LONGEST = 12, 3, 16
"""What fits a screen of 24 lines, and how much of a value is shown."""


def inspection_view(found: Inspection, *, everything: bool = False) -> Any:
    """The columns of a table, what to decide about it, and what can be promised."""
    from rich.console import Group
    from rich.markup import escape

    from voile.inspection import bars, example
    from voile.terminal.progress import is_narrow

    rows = [
        [
            escape(p.name),
            identifier_mark(p) or p.kind or f"[red]{escape(p.sql_type)}[/red]",
            values_text(p.distinct, size) if everything else f"{p.distinct:,}",
            f"{p.nulls:,}" if p.nulls else "",
            escape(shortened(example(p))),
            bars(p.histogram),
        ]
        for p, size in zip(found.profiles, found.sizes, strict=True)
    ]
    fitting = len(rows) if everything or len(rows) <= MOST_ATTRIBUTES else MOST_ATTRIBUTES - 1
    headings = ["attribute", "kind", "values", "NULLs", "most frequent", ""]
    shown = len(headings) - is_narrow()  # names before pictures, where there is no room for both
    table = table_of(headings[:shown], [row[:shown] for row in rows[:fitting]])
    for column in table.columns:
        column.overflow = "fold"
        column.no_wrap = column.header in ("kind", "")  # a picture cannot go on in the next line
    more = [f"… and {len(rows) - fitting:,} more columns: add --all"] if fitting < len(rows) else []
    return Group(table, *more, *facts(found, everything=everything))


def identifier_mark(profile: ColumnProfile) -> str:
    """What is said instead of the kind of a column that names people."""
    if profile.looks_like_identifier:
        return "[red]identifier?[/red]"
    return "[red]repeated id?[/red]" if profile.looks_like_repeated_identifier else ""


def shortened(value: Any) -> str:
    """A value, cut off where it is long."""
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def values_text(distinct: int, size: int | None) -> str:
    """How many values occur, and how many the domain has where that differs."""
    if size is None or size == distinct:
        return f"{distinct:,}"
    return f"{distinct:,} of {size:,}" if size > distinct else f"{distinct:,} in {size:,} bins"


def facts(found: Inspection, *, everything: bool) -> list[str]:
    """What an inspection found, in sentences."""
    from rich.markup import escape

    lines = [
        f"{escape(found.name)}: n = {counted(found.rows, 'row')}, {found.duplicates:,} of them "
        "repeat another row"
        + (f"; {found.complete_rows:,} are without NULLs" * (found.complete_rows < found.rows)),
    ]
    if found.identifiers:
        lines.append(
            f"[yellow]leave out {escape(', '.join(found.identifiers))}[/yellow]: nearly every row "
            "has its own value"
        )
    lines += [
        f"[yellow]leave out {escape(name)}[/yellow]: it seems to say whose a row is; or keep a "
        f"promise to each person: --person {escape(name)}"
        for name in found.repeated_identifiers
    ]
    lines += [
        f"[yellow]leave out {escape(p.name)}[/yellow]: values of type {escape(p.sql_type)} are not "
        "published; make it a number or a text in the table, as the hour is of a time of day"
        for p in found.unpublishable
    ]
    lines += [
        f"[yellow]column {escape(repr(name))} holds {escape(repr(text))} in 1 row[/yellow]: if "
        "that is a line of totals, delete it from the file"
        for name, text in found.totals
    ]
    said = findings_lines(found.findings, everything=everything)
    shown = len(said) if everything else MOST_FINDINGS
    lines += said[:shown]
    if len(said) > shown:
        lines.append(f"… and {counted(len(said) - shown, 'other finding')}: add --all")
    return [*lines, *(promises(found) if everything else ())]


def findings_lines(findings: Sequence[ColumnFinding], *, everything: bool) -> list[str]:
    """A line for each finding, those that have to be decided first; one for several alike."""
    from rich.markup import escape

    alike: dict[tuple[Any, ...], list[ColumnFinding]] = {}
    for each in sorted(findings, key=lambda each: not each.stops):
        key = (each.column,) if everything else (each.what, tuple(each.flags), each.stops)
        alike.setdefault(key, []).append(each)
    lines = []
    for first, *others in alike.values():
        named = [f"{each.column} ({each.rows:,})" for each in others[:3]]
        more = f", so do {', '.join(named)}" if others else ""
        more += f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        lines.append(
            f"[yellow]{escape(first.message())}[/yellow]{escape(f'{more}: {first.hint()}')}"
        )
    return lines


def promises(found: Inspection) -> list[str]:
    """What the papers' promise would take."""
    from rich.markup import escape

    from voile.schema.schema import large

    data = found.to_dict()
    feasible = data["feasible"]
    lines = [
        f"m = {large(found.domain_size)} possible tuples, n/m = {data['density']:.3g}; of the "
        f"publishable columns {large(found.publishable_size)}, and "
        f"{counted(found.publishable_duplicates, 'row', 'repeat')} another"
    ]
    if "boundary" in feasible:
        lines.append(found.boundary.in_words())
    if feasible["possible"]:
        lines.append(
            f"feasible: --prior-factor 10 --posterior 0.2 (d = {feasible['prior']:.3g}) takes "
            f"about {feasible['expected_rows']:,.0f} rows; standard error of a count at most "
            f"{feasible['largest_stderr']:,.0f}; any prior factor below "
            f"{feasible['largest_prior_factor']:.4g}"
        )
    else:
        lines.append(
            f"[red]not feasible[/red]: {escape(feasible['why'])} ({escape(feasible['hint'])})"
        )
    return lines


MOST_NAMED = 8
"""Columns that one line about what is disclosed names."""


LISTED = "as your choice: the columns, their kinds, how NULLs are treated, columns left out"
"""What stands in a release whose domain was learnt, and is no part of its promise."""


def disclosed_lines(disclosed: Sequence[Disclosed]) -> list[str]:
    """What is disclosed, a line for all columns of which the same is; JSON has each by itself.

    What the steward chose is known to them, and has a line; the release lists it.
    """
    from voile.kinds.manifest import CHOSEN

    alike: dict[str, list[str]] = {}
    for one in disclosed:
        if one.why == CHOSEN:
            alike.setdefault(LISTED, []).append("")
            continue
        what, _, column = one.what.rpartition(" in ")
        alike.setdefault(what or one.what, []).append(column if what else "")
    lines = []
    for what, columns in alike.items():
        more = len(columns) - MOST_NAMED
        named = ", ".join(filter(None, columns[:MOST_NAMED]))
        rest = f" and {more:,} more columns (--json lists all)" if more > 0 else ""
        lines.append(f"{what} in {named}{rest}" if named else what)
    return lines


ONE_ROW = "taken to have one row each; if some have several, add --person COLUMN"
"""What a promise about rows says about people."""


def published_view(done: PublishResult) -> Any:
    """What the steward is shown of a release of any kind."""
    from rich.markup import escape

    manifest = done.release.manifest
    rows = [
        ["release", escape(done.place)],
        *([] if done.choice is None else choice_rows(done.choice)),
        *([] if done.choice is None or done.people is not None else [["people", ONE_ROW]]),
        *[[escape(name), escape(text)] for name, text in (*done.facts(), *done.people_facts())],
        *[["disclosed", escape(line)] for line in disclosed_lines(manifest.disclosed)],
        *[["note", escape(note)] for note in done.notes],
    ]
    if manifest.simulated:
        rows.append(["[red]simulated[/red]", "made from a chosen seed: protects nobody"])
    return table_of(["", ""], rows, show_header=False)


def choice_rows(choice: MethodChoice) -> list[list[str]]:
    """The method that was chosen, why, and the promise in beliefs."""
    from rich.markup import escape

    from voile.kinds.choosing import in_per_cent

    error = in_per_cent(choice.chosen.expected_error)
    return [
        ["method", escape(f"{choice.chosen.method}: {choice.why}")],
        ["expected error", f"{error} of a count that holds 1 % of the rows"],
        ["in beliefs", escape(choice.promise.in_words())],
    ]


def refinement_view(data: dict[str, Any]) -> Any:
    """What was fitted, and how the size of the model was chosen."""
    from rich.console import Group

    rows = [
        [str(t["components"]), f"{t['held_out']:.5f}", f"{t['gain']:+.5f} ± {t['gain_error']:.5f}"]
        for t in data["trials"]
    ]
    summary = f"{data['components']} components, fitted in {data['seconds']:.0f} s"
    summary += f", kept in {data['path']}" if data["path"] else ""
    return Group(table_of(["components", "held-out log density", "gain"], rows), summary)


# ----------------------------------------------------------------------
# what a steward is shown of a table with coarser values


def generalized_view(done: Generalized, output: str) -> Any:
    """What became of a table whose values were made coarser."""
    from rich.markup import escape

    rows = [
        ["table", escape(output)],
        ["rows", f"{done.rows_in:,} in, {done.table.num_rows:,} out"],
        ["classes", f"{done.classes:,}"],
        *[["promise", f"{escape(name)}: the worst class has {value:.4g}"]
          for name, value in done.requirements.items()],
        *[["note", escape(note)] for note in done.to_dict()["notes"]],
    ]  # fmt: skip
    return table_of(["", ""], rows, show_header=False)


# ----------------------------------------------------------------------
# what people see of rows that were perturbed one by one


MOST_COLUMNS = 30


def perturbation_view(done: Perturbation) -> Any:
    """A release of perturbed rows, with its columns."""
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of

    manifest = done.release.manifest
    rows = [
        ["release", escape(done.place)],
        ["rows", f"{manifest.rows:,}"
                 + (f" ({done.rows_dropped:,} left out)" if done.rows_dropped else "")],
        ["promise", promise_line(manifest)],
        *[[name, text] for name, text in done.people_facts()],
        *[["disclosed", escape(line)] for line in disclosed_lines(manifest.disclosed)],
        *[["note", escape(note)] for note in done.notes],
    ]  # fmt: skip
    if manifest.simulated:
        rows.append(["[red]simulated[/red]", "made from a chosen seed: protects nobody"])
    return Group(table_of(["", ""], rows, show_header=False), columns_view(manifest))


def promise_line(manifest: LocalManifest) -> str:
    """The promise of perturbed rows in a line."""
    epsilon = manifest.guarantee.epsilon
    if epsilon is None:
        return "no local ε: see voile describe"
    whom = "a row" if manifest.people is None else manifest.people.one
    what = f"the perturbed columns of {whom}" if manifest.mechanism.tells_columns else whom
    return f"local ε = {epsilon:.4g} for {what}"


def columns_view(manifest: LocalManifest) -> Any:
    """How each column was perturbed."""
    from rich.markup import escape

    from voile.terminal import table_of

    parts = manifest.parameters.columns
    if not parts:
        return f"whole rows are kept with chance {manifest.parameters.joint:g}"
    shown = [
        [
            escape(name),
            kept_text(part.retention),
            "" if part.retention == 1 else part.replace,
            epsilon_text(manifest.guarantee.columns[name], public=part.retention == 1),
        ]
        for name, part in list(parts.items())[:MOST_COLUMNS]
    ]
    return table_of(["column", "kept", "replaced by", "local ε"], shown)


def kept_text(retention: float) -> str:
    """A retention, or that the column is public."""
    return "public" if retention == 1 else f"{retention:.12g}"


def epsilon_text(epsilon: float | None, *, public: bool) -> str:
    """A column's ε; nothing for a public one."""
    if public:
        return ""
    return "none" if epsilon is None else f"{epsilon:.3g}"


def spec_view(data: dict[str, Any]) -> Any:
    """A specification for clients, with its columns."""
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of

    head = [
        ["spec", escape(data["spec"])],
        ["digest", data["digest"]],
        ["promise", f"local ε = {data['epsilon']:.4g} for a row"],
        *([["whole rows", f"kept with chance {data['joint']:.12g}"]] if data["joint"] else []),
    ]
    if data["joint"]:
        return table_of(["", ""], head, show_header=False)
    columns = [
        [escape(name), kept_text(entry["retention"]),
         epsilon_text(entry["epsilon"], public=entry["retention"] == 1)]
        for name, entry in list(data["columns"].items())[:MOST_COLUMNS]
    ]  # fmt: skip
    return Group(
        table_of(["", ""], head, show_header=False),
        table_of(["column", "kept", "local ε"], columns),
    )


def combination_view(done: Combination) -> Any:
    """A release made of others."""
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of

    manifest = done.release.manifest
    how = f"joined by {done.joined_by}" if done.joined_by else "stacked"
    rows = [
        ["release", escape(str(done.release.path))],
        ["parts", f"{len(done.rows_in)}, {escape(how)}"],
        ["rows", f"{' + '.join(f'{n:,}' for n in done.rows_in)} in, {manifest.rows:,} out"],
        ["promise", promise_line(manifest)],
        *[["note", escape(note)] for note in done.notes],
    ]
    return Group(table_of(["", ""], rows, show_header=False), columns_view(manifest))


def exposure_view(found: Exposure) -> Any:
    """What seeing a cell or a value tells, from the release alone."""
    from rich.console import Group
    from rich.markup import escape

    from voile.terminal import table_of
    from voile.terminal.planning import set_row
    from voile.terminal.progress import whole_numbers

    judged = any(one.exact_retention is not None for one in found.sets)
    headings = ["columns", "largest\ns", "median\ns", "cell", "before", "after"]
    headings += ["largest\nretention"] if judged else []
    sets = [set_row(one)[: len(headings)] for one in found.sets]
    parts: list[Any] = [whole_numbers(headings, sets, numeric={1, 2, 4, 5, 6})]
    if found.values:
        values = [
            [escape(one.column), escape(one.value), f"{one.before:.3g}", f"{one.after:.3g}"]
            for one in found.values
        ]
        parts.append(table_of(["column", "telling value", "before", "where it is seen"], values))
    if found.left_out:
        parts.append(f"[dim]nothing is promised about {escape(', '.join(found.left_out))}[/dim]")
    return Group(*parts)


# ---------------------------------------------------------------------- a hierarchy as a tree


MOST_CHILDREN = 60
"""Of one node; the rest are counted."""
MOST_LINES = 200
"""Levels that would make the tree longer are not shown."""


def hierarchy_view(found: ColumnHierarchy) -> Any:
    """The groups from the top down, each with its rows."""
    from rich.console import Group
    from rich.text import Text
    from rich.tree import Tree

    levels = found.levels
    top = Tree(line(levels.labels[-1][0], int(found.counts.sum()), name=found.attribute.name))
    add_children(top, found, levels.height, 0, lowest_shown(found))
    sizes = " → ".join(f"{len(labels):,}" for labels in levels.labels)
    note = f"{found.way.removeprefix('--')}: {sizes} groups; rows beside each"
    return Group(top, Text(note, style="dim"))


def lowest_shown(found: ColumnHierarchy) -> int:
    """The finest level that fits the screen with all above it, at least the one under '*'."""
    sizes = [len(labels) for labels in found.levels.labels]
    fitting = [level for level in range(len(sizes)) if sum(sizes[level:]) <= MOST_LINES]
    return min([*fitting, found.levels.height - 1])


def add_children(tree: Any, found: ColumnHierarchy, level: int, node: int, lowest: int) -> None:
    """The nodes of the level below that lie in this node, and what lies in them."""
    from rich.text import Text

    if level <= lowest:
        return
    levels, below = found.levels, level - 1
    in_order = levels.nodes[below][levels.leaves]
    inside = in_order[levels.nodes[level][levels.leaves] == node]
    children = list(dict.fromkeys(inside.tolist()))
    if [levels.labels[below][child] for child in children] == [levels.labels[level][node]]:
        add_children(tree, found, below, children[0], lowest)  # said already
        return
    rows, values = found.rows(below), found.values(below)
    for child in children[:MOST_CHILDREN]:
        hidden = int(values[child]) if below == lowest > 0 else 0
        here = tree.add(line(levels.labels[below][child], int(rows[child]), hidden=hidden))
        add_children(here, found, below, child, lowest)
    if len(children) > MOST_CHILDREN:
        tree.add(Text(f"… {len(children) - MOST_CHILDREN:,} more", style="dim"))


def line(label: str, rows: int, *, name: str = "", hidden: int = 0) -> Any:
    """A group with its rows."""
    from rich.text import Text

    text = Text(f"{name} " if name else "", style="bold")
    text.append(label or "''", style="not bold")
    values = f" of {hidden:,} values" if hidden > 1 else ""
    return text.append(f"  {rows:,}{values}", style="dim not bold")


# ----------------------------------------------------------------------
# what was seen of a release


MADE = (
    "How a release was made cannot be seen from it; a signature says who vouches for it "
    "(`voile verify --signer`)."
)
VOUCHED = "How a release was made cannot be seen from it: for that you have the signer's word."


def verification_view(found: Verification) -> Any:
    """A line for each thing that was looked at, and what is wrong."""
    from rich.console import Group
    from rich.text import Text

    lines = [
        seen(found.whole, f"files whole: {size_in_words(found)}", "files not whole"),
        seen(found.terms, "terms recomputed: they follow from what is stated", "terms do not hold"),
        seen(
            found.rows_plausible,
            "rows plausible under the stated mechanism",
            "rows not plausible under the stated mechanism",
        ),
    ]
    parts = [Text.from_markup(line) for line in lines if line]
    if found.rows_unseen:
        parts.append(Text(f"– {found.rows_unseen}"))
    parts += map(signature_line, found.signatures)
    # The first problem is the command's error, which stands below.
    parts += [Text(f"  {problem}") for problem in found.problems[1:]]
    if found.ok:
        if found.simulated:
            parts.append(Text("simulated: it promises nothing", style="yellow"))
        if found.unprotected:
            listed = ", ".join(found.unprotected)
            parts.append(Text(f"shown as they are, and not protected: {listed}"))
        vouched = any(one.trusted for one in found.signatures)
        parts.append(Text(VOUCHED if vouched else MADE, style="dim"))
    return Group(*parts)


def signature_line(one: SignatureReport) -> Any:
    """Who has signed, and whether that says anything."""
    from rich.text import Text

    who = f"{one.name} ({one.fingerprint})" if one.name else one.fingerprint
    if not one.valid:
        return Text.assemble(("✗", "red"), f" signature of {who} is broken")
    if one.revoked:
        return Text.assemble(("✗", "red"), f" signed by {who}, whose key is revoked")
    if one.trusted:
        return Text.assemble(("✓", "green"), f" signed by {who}, a key that you trust")
    unknown = "not one of those that you trust" if one.trusted is False else UNTRUSTED
    called = f", which calls itself {one.name!r}" if one.name else ""
    return Text(f"- signed by {one.fingerprint}{called}: {unknown}")


UNTRUSTED = "nobody has said that this key is trusted; check the fingerprint, and pass --signer"


def signed_view(done: SignedRelease) -> Any:
    """Whose signature a release has now."""
    from rich.markup import escape

    rows = [
        ["release", escape(str(done.release.path))],
        ["digest", done.release.manifest.digest],
        ["signed by", escape(f"{done.name} ({done.signed_by})" if done.name else done.signed_by)],
        ["when", f"{done.when}, by your clock"],
        ["signatures", f"{done.signatures}"],
    ]
    found = table_of(["", ""], rows, show_header=False)
    found.columns[1].overflow = "fold"
    return found


def key_view(data: dict[str, Any]) -> Any:
    """A key that was made."""
    from rich.markup import escape

    rows = [
        ["key", escape(f"{data['key']}: keep it secret, and keep a copy")],
        ["public key", escape(f"{data['public_key']}: publish it where readers know you")],
        ["fingerprint", data["fingerprint"]],
    ]
    return table_of(["", ""], rows, show_header=False)


def seen(outcome: bool | None, good: str, bad: str) -> str:
    """A line with its mark; nothing where it was not looked at."""
    if outcome is None:
        return ""
    return f"[green]✓[/green] {good}" if outcome else f"[red]✗[/red] {bad}"


def size_in_words(found: Verification) -> str:
    """How many files and rows there are."""
    return f"{counted(found.files or 0, 'file')}, {counted(found.rows or 0, 'row')}"
