"""Plans and the boundary as reports: the numbers beside their pictures, and the line to type."""

from __future__ import annotations

from collections.abc import Iterator

from voile.evaluate import pages
from voile.evaluate.page_pictures import PANEL, PicturePanel, panels
from voile.evaluate.pages import NextStep, Report, head_cell, number_cell, row, table, text_cell
from voile.evaluate.planning import boundary as plane_plot
from voile.evaluate.planning import comparison_plot, local_plot, plot
from voile.evaluate.planning.boundary import Plane
from voile.evaluate.planning.comparison import MethodComparison, headline
from voile.evaluate.planning.expected import ExpectedError
from voile.evaluate.planning.foresight import FOR_THE_STEWARD, CurvePoint, Foresight
from voile.evaluate.planning.local import ColumnPlan, LocalPlan
from voile.kinds.choosing import USEFUL, in_per_cent
from voile.schema.schema import large
from voile.units import bytes_in_words, chance, counted, number, percent

STEWARD = "Made with Voile from the private table: for the steward, not for publication."
SHOWN = 9
"""Points of a curve that are listed."""
RATHER_SURE = 0.5
"""A belief above which somebody is rather sure."""


# ---------------------------------------------------------------------- the plan of a noisy view


def plan_report(found: Foresight) -> Report:
    """The parameters, the errors, how they change, and the line that publishes it."""
    drawn = [
        PicturePanel(
            f"By {name}",
            chart,
            f"Line chart: the expected error falls as {axis} {way}. Its points are in the table "
            f"of {name}.",
        )
        for (name, axis, way), chart in zip(AXES, plot.panels(found), strict=True)
    ]
    p = found.promise
    lead = (
        f"{counted(found.rows, 'row')}, {large(found.domain_size)} possible tuples. Beliefs up to "
        f"{p.prior:.3g} stay below {p.posterior:.3g}, against {p.adversary} adversaries."
    )
    error = plot.error_in_words(found.expected_error)
    return Report(
        f"Plan of {found.ground.prepared.name}",
        plot.title(found),
        lead,
        [
            pages.headline(f"The expected error is {error} ({found.measure})."),
            pages.figures(plan_figures(found)),
            pages.heading("How the error changes"),
            panels(
                drawn,
                curve_table("the posterior γ", "γ", found.by_posterior, p.posterior)
                + curve_table("the prior factor k", "k", found.by_prior_factor, found.prior_factor),
            ),
            errors_table(found),
            strongest_table(found),
            pages.heading("The plan"),
            pages.facts("Parameters and what they promise", plan_facts(found)),
            "".join(
                pages.paragraph(f"{limit.theorem}: {limit.says}", "small") for limit in found.limits
            ),
            pages.notes(note for note in found.notes if note != FOR_THE_STEWARD),
        ],
        list(plan_steps(found)),
        STEWARD,
    )


AXES = (
    ("the posterior γ", "the posterior γ", "grows, at this prior"),
    ("the prior factor k", "the prior factor k", "falls, at this posterior"),
)


def plan_figures(found: Foresight) -> list[tuple[str, str, bool]]:
    """The plan's main numbers."""
    linked = found.linked_posterior
    return [
        (number(found.expected_error), "expected error", False),
        (f"{found.mechanism.retention:.4g}", "retention of a record", False),
        (number(found.epsilon("add-remove")), "ε to add or remove a record", False),
        (f"{found.size.rows:,.0f}", "rows of the release, about", False),
        (bytes_in_words(found.size.bytes), "size of the release, about", False),
        (chance(linked), "belief of someone who knows that one of a list of records is there",
         linked > RATHER_SURE),
    ]  # fmt: skip


def plan_facts(found: Foresight) -> list[tuple[str, str]]:
    """All of the plan's numbers with their names."""
    p, m = found.promise, found.mechanism
    return [
        ("rows of the table", f"{found.rows:,}"),
        ("possible tuples", large(found.domain_size)),
        ("prior d", f"{p.prior:.6g}"),
        ("prior factor k", f"{found.prior_factor:.6g}"),
        ("posterior γ", f"{p.posterior:.6g}"),
        ("adversaries", p.adversary),
        ("rows", m.form),
        ("retention", f"{m.retention:.6g}"),
        ("noise", f"{m.noise:.6g}"),
        ("ε to add or remove a record", number(found.epsilon("add-remove"))),
        ("ε to exchange a record", number(found.epsilon("swap"))),
        ("belief of someone who knows that one of a list of records is there",
         chance(found.linked_posterior)),
        ("expected rows", f"{found.size.rows:,.0f}"),
        ("expected size", bytes_in_words(found.size.bytes)),
    ]  # fmt: skip


def errors_table(found: Foresight) -> str:
    """What each kind of answer is off by."""
    rows = [
        row(head_cell(of_words(e)), number_cell(f"{e.numbers:,}"), number_cell(number(e.mean)),
            number_cell(number(e.largest)), number_cell(share_in_words(e.relative)))
        for e in found.errors
    ]  # fmt: skip
    headings = ["error of", "numbers", "mean", "largest", "of the number itself"]
    return table("Expected errors under this promise", headings, rows, {1, 2, 3, 4})


def share_in_words(share: float | None) -> str:
    """A mean error as a share of what is asked."""
    return "–" if share is None else in_per_cent(share)


def of_words(error: ExpectedError) -> str:
    """What an error is of."""
    of = f"{error.column} in {error.of}" if error.column else error.of
    if not error.unbounded:
        return of
    return f"{of} (beyond the range of its values in {error.unbounded:,} of {error.numbers:,})"


def curve_table(words: str, name: str, points: tuple[CurvePoint, ...], own: float) -> str:
    """Some points of a curve, with the plan's own among them."""
    places = {round(i * (len(points) - 1) / (SHOWN - 1)) for i in range(SHOWN)}
    rows = [
        row(number_cell(f"{p.at:.4g}"), number_cell(number(p.expected_error)), chosen=p.at == own)
        for i, p in enumerate(points)
        if i in places or p.at == own
    ]
    caption = f"Expected error by {words}; the plan's own stands out"
    return table(caption, [name, "expected error"], rows, {0, 1})


def strongest_table(found: Foresight) -> str:
    """The two strongest promises that the requested error allows."""
    best = found.strongest
    if best is None:
        return ""
    ends = zip(
        ("smallest γ", "largest k"), (best.smallest_posterior, best.largest_prior),
        best.least_errors, strict=True,
    )  # fmt: skip
    rows = [
        row(head_cell(name), text_cell("none"), number_cell(f"at least {number(least)}"))
        if one is None
        else row(
            head_cell(name),
            text_cell(f"k = {one.prior_factor:.4g}, γ = {one.promise.posterior:.4g}"),
            number_cell(number(one.expected_error)),
        )
        for name, one, least in ends
    ]
    caption = f"The strongest promises with an expected error of at most {best.max_error:g}"
    return table(caption, ["which", "promise", "error"], rows, {2})


def plan_steps(found: Foresight) -> Iterator[NextStep]:
    """The lines that publish it."""
    yield NextStep("Publish it as planned:", found.command(found.ground.options))
    best = found.strongest
    for one in (best.smallest_posterior, best.largest_prior) if best else ():
        if one is not None:
            words = f"k = {one.prior_factor:.4g} and γ = {one.promise.posterior:.4g}"
            yield NextStep(f"Or with {words}:", found.command(one.options))


# ---------------------------------------------------------------------- all methods compared


def comparison_report(found: MethodComparison, command: str) -> Report:
    """All methods under one promise; `command` publishes what was chosen."""
    drawn = PicturePanel(
        "The error by ε",
        comparison_plot.panel(found),
        "Line chart: the error of each method falls as ε grows. Its points are in the table of ε.",
        "Dotted: the ε of this plan. Orange: errors above it make a release of no use.",
    )
    promise = found.promise
    lead = (
        f"{counted(found.rows, 'row')}, {counted(found.columns, 'column')}. "
        f"ε = {promise['epsilon']:g}, δ = {promise['delta']:.3g}: {found.in_words}"
    )
    return Report(
        f"Plan of {found.name}",
        comparison_plot.title(found),
        lead,
        [
            pages.headline(sentence(headline(found)), warning=not found.useful),
            "" if found.useful else pages.paragraph(f"Of no use: over {100 * USEFUL:g} %."),
            panels([drawn], beside=by_epsilon(found)),
            pages.heading("Methods"),
            methods_table(found),
            pages.paragraph(
                "Expected: of a count that holds exactly 1 % of the rows, from public numbers. "
                "Measured: counts of 1 % of the rows or more were off by so much, in the middle, "
                "in one release from a fixed seed that was thrown away.",
                "small",
            ),
            pages.paragraph(sentence(found.why)),
            pages.notes(note for note in found.notes if note != FOR_THE_STEWARD),
        ],
        [NextStep(f"Publish it by {found.method}, which errs least:", command)],
        STEWARD,
    )


def sentence(text: str) -> str:
    """A text that begins with a capital letter and ends in a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def methods_table(found: MethodComparison) -> str:
    """All methods, the best first."""
    rows = [
        row(
            head_cell(one.method), text_cell(one.about),
            number_cell(in_per_cent(one.expected_error)),
            *(number_cell("–" if error is None else in_per_cent(error))
              for error in ((None, None) if one.felt is None else (one.felt.one, one.felt.two))),
            chosen=one.chosen,
        )
        for one in found.methods
    ]  # fmt: skip
    headings = ["method", "what is published", "expected error", "measured, one column",
                "measured, two columns"]  # fmt: skip
    return table("Methods under this promise, the chosen one marked", headings, rows, {2, 3, 4})


def by_epsilon(found: MethodComparison) -> str:
    """The expected errors at other ε."""
    names = [one.method for one in found.methods]
    rows = [
        row(
            number_cell(f"{at.epsilon:g}"),
            *(number_cell(in_per_cent(at.errors[m]) if m in at.errors else "–") for m in names),
            chosen=at.epsilon == found.promise["epsilon"],
        )
        for at in found.by_epsilon
    ]
    caption = "Error of a count of 1 % of the rows, by ε"
    return table(caption, ["ε", *names], rows, range(len(names) + 1))


# ---------------------------------------------------------------------- rows perturbed at clients


def local_report(found: LocalPlan) -> Report:
    """Retentions, what they promise, what errors they leave, and the line that sends a row."""
    beliefs, errors = local_plot.panels(found, PANEL[0])
    drawn = [
        PicturePanel("What an attacker gains", beliefs,
              f"Line chart: what a belief of {local_plot.BELIEF:.0%} may become, which grows with "
              "the retention. The plan's own points are in the table of columns.",
              "For any attacker, whatever they know"),
        PicturePanel("What an analyst loses", errors,
              "Line chart: the error of a fraction, which falls as the retention grows. The "
              "plan's own errors are in the table of conditions.",
              "At most, for any conditions and any table"),
    ]  # fmt: skip
    sent = "Any number of rows" if found.rows is None else f"{found.rows:,} rows"
    size = f"{counted(len(found.columns), 'column')}, {large(found.schema.size)} possible tuples"
    after = found.beliefs.to_list()[1]
    told = (
        f"A row tells at most ε = {number(found.beliefs.epsilon)}: a belief of "
        f"{percent(after['before'])} may become {percent(after['after'])}."
    )
    steps = [NextStep("Perturb rows so:", found.command)] if found.command else []
    return Report(
        "Plan of rows that are perturbed before they are sent",
        local_plot.TITLE,
        f"{sent}, {size}.",
        [
            pages.headline(told, warning=after["after"] > RATHER_SURE),
            panels(drawn),
            columns_table(found),
            conditions_table(found),
            clients(found),
            pages.notes(note for note in found.notes if note != FOR_THE_STEWARD),
        ],
        steps,
        STEWARD if found.measured else "Made with Voile from the public domain.",
    )


def columns_table(found: LocalPlan) -> str:
    """The columns with their retentions and errors."""
    headings = ["column", "values", "retention", "ε", "a belief of 10 % may become",
                "± of one value", "± of half of the values"]  # fmt: skip
    caption = (
        "Columns; ±: standard error of a count of one value, or of half of the values, in the "
        "worst table"
    )
    return table(caption, headings, map(column_row, found.columns), range(1, len(headings)))


def column_row(column: ColumnPlan) -> str:
    """One column as a row."""
    cells = [
        f"{column.size:,}", chance(column.retention, 4), number(column.beliefs.epsilon),
        percent(column.beliefs.after[1]), number(column.stderr(1 / column.size)),
        number(column.stderr(0.5)),
    ]  # fmt: skip
    return row(head_cell(column.name), *map(number_cell, cells))


def conditions_table(found: LocalPlan) -> str:
    """The errors of conjunctions."""
    headings = ["conditions on", "standard error of a count", "of the fraction",
                f"± at {found.options.confidence:g}"]  # fmt: skip
    rows = []
    for error in found.errors:
        data, count = error.to_dict(), len(error.retentions)
        cells = (
            [f"{error.factor:,.4g}·√n", f"{error.factor:,.4g}/√n", "–"]
            if error.rows is None
            else [number(data[key]) for key in ("stderr", "share", "margin")]
        )
        rows.append(row(head_cell(counted(count, "column")), *map(number_cell, cells)))
    caption = "Errors at most, for any conditions on the columns that are retained least"
    return table(caption, headings, rows, {1, 2, 3})


def clients(found: LocalPlan) -> str:
    """How many rows the requested error needs."""
    needed = found.clients
    if needed is None:
        return ""
    caption = (
        f"Rows needed for ±{found.options.error:g} of a fraction at {found.options.confidence:g}"
    )
    return pages.facts(caption, [
        ("if the error is normal", f"{needed.normal:,}"),
        ("by Hoeffding's bound", f"{needed.hoeffding:,}"),
        ("by Theorem 1 as printed", f"{needed.theorem1:,}"),
    ], ["how it is reckoned", "rows"])  # fmt: skip


# ---------------------------------------------------------------------- the plane of promises


def boundary_report(plane: Plane, command: str) -> Report:
    """Where the table stands, the regions along priors; `command` plans there."""
    here = plane.to_dict()["position"]
    drawn = PicturePanel(
        "The plane of promises",
        plane_plot.panel(plane, brief=True),
        "Area chart: which posteriors γ are possible, unknown, impossible or excluded at each "
        f"prior d. This table is at d = {plane.prior:.3g}, γ = {plane.posterior:g}: "
        f"{here['region']}. The borders are in the table of priors.",
        plane_plot.CAPTION.removesuffix(" Made with Voile."),
        (PANEL[0], 340),
    )
    share = here["error_share"]
    error = "" if share is None else f"; αβ's error of the worst count is {share:.3g}·n"
    return Report(
        f"Boundary of {plane.name}",
        plane_plot.title(plane),
        f"{plane_plot.size_in_words(plane)}. {plane.boundary.in_words()}",
        [
            pages.headline(
                f"A prior of d = {plane.prior:.3g} and a posterior of γ = {plane.posterior:g}: "
                f"{here['region']}{error}.",
                warning=here["region"] != "possible",
            ),
            panels([drawn], beside=position_table(plane, here)),
            regions_table(plane),
            pages.notes(plane.notes),
        ],
        [NextStep("See what that promise would cost:", command)],
        "Made with Voile from the number of rows and the domain of the table.",
    )


def position_table(plane: Plane, here: dict[str, object]) -> str:
    """Where the table stands."""
    least = plane.boundary.least_forbidden_prior(plane.posterior)
    share = here["error_share"]
    return pages.facts("Where this table stands", [
        ("rows n", f"{plane.boundary.rows:,}"),
        ("possible tuples m", large(plane.boundary.domain_size)),
        ("density n/m", f"{float(plane.boundary.density):.4g}"),
        ("prior d", f"{plane.prior:.4g}"),
        ("prior factor k = d·m/n", f"{plane.prior_factor:.4g}"),
        ("posterior γ", f"{plane.posterior:g}"),
        ("region", str(here["region"])),
        ("αβ's 95 % error of the worst count",
         f"{share:.4g}·n" if isinstance(share, float) else "–"),
        ("least prior that is impossible at this γ", "–" if least is None else f"{least:.4g}"),
    ])  # fmt: skip


def regions_table(plane: Plane) -> str:
    """The regions along some priors."""
    step = max(1, len(plane.points) // 12)
    rows = [
        row(
            number_cell(f"{p.prior:.2e}"),
            *(number_cell("–" if x is None else chance(x))
              for x in (*p.possible_from, p.impossible_up_to)),
        )
        for p in plane.points[::step]
    ]  # fmt: skip
    headings = ["prior d", "possible from γ", "error of 10 % from γ", "error of 1 % from γ",
                "impossible up to γ"]  # fmt: skip
    return table("Posteriors γ at each prior d", headings, rows, range(5))
