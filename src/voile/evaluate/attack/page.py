"""A page about an attack, in one file that loads nothing from elsewhere."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from voile.evaluate import pages
from voile.evaluate.attack.beliefs import Attack, Belief, Person, Tally
from voile.evaluate.drawing import (
    BAND_INK,
    BLUE,
    INK,
    SOFT,
    VERMILION,
    inline_chart,
    load_altair,
    log_ticks,
    theme,
)
from voile.evaluate.page_pictures import PANEL, PicturePanel, panels
from voile.evaluate.pages import NextStep, Report, number_cell, text_cell
from voile.kinds.beliefs import BeliefBounds
from voile.privacy import DGamma
from voile.units import chance, percent

if TYPE_CHECKING:
    import altair as alt


# ----------------------------------------------------------------------
# a picture of an attack: what was believed before against what is believed after


SORTS = ("within the promise's bounds", "positive leak", "negative leak", "prior above d")
COLOURS = [BLUE, VERMILION, "#CC79A7", "#7B8794"]
SHAPES = ["circle", "triangle-up", "triangle-down", "square"]
WIDTH, HEIGHT = 620, 430


def sort_of(belief: Belief) -> str:
    """Which of SORTS a belief is."""
    if belief.positive_leak:
        return SORTS[1]
    if belief.negative_leak:
        return SORTS[2]
    return SORTS[0] if belief.covered else SORTS[3]


def draw(attack: Attack) -> alt.HConcatChart:
    """The picture with its title."""
    return theme(
        plane(attack),
        title=f"What an adversary learns from {attack.release.name}",
        subtitle="Each mark is a tuple; larger marks are several at one place. Brown: the bounds "
        "of the promise.",
        caption="Both axes are logarithmic. Beliefs of 0 are not drawn. Made with Voile.",
        heading={"fontSize": 18, "subtitleFontSize": 13, "offset": 14},
    )


def plane(attack: Attack) -> Any:
    """Beliefs before along, beliefs after up, with the bounds of the promise."""
    points = counted(attack)
    low = 0.4 * min([attack.promise.prior, *(min(p["prior"], p["posterior"]) for p in points)])
    layers = load_altair().layer(*bounds(attack, low), dots(points, low))
    return layers.properties(width=WIDTH, height=HEIGHT)


def counted(attack: Attack) -> list[dict[str, Any]]:
    """Beliefs at one place, to three digits, as one mark."""
    places = Counter(
        (float(f"{b.prior:.3g}"), float(f"{b.posterior:.3g}"), sort_of(b))
        for b in attack.beliefs
        if b.prior > 0 and b.posterior > 0
    )
    return [
        {"prior": prior, "posterior": posterior, "sort": sort, "tuples": count}
        for (prior, posterior, sort), count in places.items()
    ]


def axis(field: str, title: str, low: float) -> Any:
    """A logarithmic axis of beliefs, from the lowest that is drawn to 1."""
    alt = load_altair()
    kind = alt.X if field == "prior" else alt.Y
    scale = alt.Scale(type="log", domain=[low, 1.0], nice=False)
    ticks = log_ticks(low, 1.0, (1,))
    return kind(f"{field}:Q", scale=scale, axis=alt.Axis(title=title, values=ticks, format="~g"))


def bounds(attack: Attack, low: float) -> list[Any]:
    """The promise: γ above and (d/γ)·prior below, for priors up to d; and nothing learned."""
    d, gamma = attack.promise.prior, attack.promise.posterior
    x, y = axis("prior", "believed before", low), axis("posterior", "believed after", low)
    start = min(d, low * gamma / d)  # where the lower bound enters the picture
    lines = {
        "upper": [(low, gamma), (d, gamma)],
        "lower": [(start, start * d / gamma), (d, d * d / gamma)],
        "prior": [(d, max(low, d * d / gamma)), (d, gamma)],
    }
    rows = [
        {"line": name, "prior": px, "posterior": py}
        for name, ends in lines.items()
        for px, py in ends
    ]
    promise = (
        inline_chart(rows)
        .mark_line(color=BAND_INK, strokeWidth=2, clip=True)
        .encode(x=x, y=y, detail="line:N")
    )
    same = (
        inline_chart([{"prior": v, "posterior": v} for v in (low, 1.0)])
        .mark_line(color=SOFT, strokeDash=[4, 4], clip=True)
        .encode(x=x, y=y)
    )
    return [
        same,
        promise,
        note(low, gamma, f"γ = {gamma:.3g}", dx=8, dy=-9),
        note(d, gamma, f"d = {d:.3g}", dx=16, dy=4),
        note(math.sqrt(low), math.sqrt(low), "nothing learned", dx=10, dy=12),
    ]


def note(prior: float, posterior: float, text: str, *, dx: int, dy: int) -> Any:
    """A text beside a place."""
    at = inline_chart([{"prior": prior, "posterior": posterior}])
    return at.mark_text(text=text, align="left", dx=dx, dy=dy, fontSize=13, color=INK).encode(
        x="prior:Q", y="posterior:Q"
    )


def dots(points: list[dict[str, Any]], low: float) -> Any:
    """The beliefs as marks, by what they are."""
    alt = load_altair()
    there = {p["sort"] for p in points}
    kept = [i for i, sort in enumerate(SORTS) if sort in there]
    names = [SORTS[i] for i in kept]
    legend = alt.Legend(title=None, orient="top", symbolSize=120, columns=4, labelLimit=300)
    colours = alt.Scale(domain=names, range=[COLOURS[i] for i in kept])
    shapes = alt.Scale(domain=names, range=[SHAPES[i] for i in kept])
    most = max([p["tuples"] for p in points], default=1)
    sizes = alt.Scale(type="sqrt", domain=[1, max(2, most)], range=[70, 420 if most > 1 else 71])
    return (
        inline_chart(points)
        .mark_point(filled=True, opacity=0.75, stroke="white", strokeWidth=0.8)
        .encode(
            x=axis("prior", "believed before", low),
            y=axis("posterior", "believed after", low),
            color=alt.Color("sort:N", scale=colours, legend=legend),
            shape=alt.Shape("sort:N", scale=shapes, legend=None),
            size=alt.Size("tuples:Q", scale=sizes, legend=None),
        )
    )


# ----------------------------------------------------------------------
# a page about an attack, in one file that loads nothing from elsewhere


SHOWN = 40


def report(attack: Attack, targets: str) -> Report:
    """What was promised, who attacks, a picture, and the worst targets, who are in that file."""
    name, path = attack.release.name, str(attack.release.path)
    return Report(
        f"Attack on {name}",
        f"What an adversary learns from {name}",
        who(attack),
        [
            pages.headline(attack.exposures.headline(), warning=attack.exposures.exposed > 0),
            warnings(attack),
            figures(attack),
            pages.paragraph(verdict(attack)),
            pages.heading("Before and after"),
            panels([before_and_after(attack)], beside=sorts_table(attack)),
            people_table(attack.people),
            pages.heading("Worst first"),
            belief_table(attack.beliefs[:SHOWN]),
            left_off(attack),
            pages.heading("What was promised"),
            pages.paragraph(attack.promise.explain()),
        ],
        [
            NextStep(
                "Attack with what the promise allows an adversary to believe beforehand:",
                shlex.join(["voile", "attack", path, "--targets", targets, "--prior", "promise"]),
            ),
            NextStep(
                "Check that the release is what it says:", shlex.join(["voile", "verify", path])
            ),
        ],
        "Posteriors are exact: Bayes' rule with the mechanism's own law. Made with Voile from the "
        "release and the adversary's beliefs. Names and values of targets stand on this page: "
        "treat it as you treat those.",
    )  # fmt: skip


def before_and_after(attack: Attack) -> PicturePanel:
    """The picture, with its words."""
    return PicturePanel(
        "Each mark is a tuple",
        plane(attack),
        "Scatter plot: what was believed of each tuple before, and after the release. How many "
        "marks are of which kind is in the table beside it.",
        "Larger marks are several tuples at one place. Brown: the bounds of the promise. Both "
        "axes are logarithmic; beliefs of 0 are not drawn.",
        (PANEL[0], 340),
    )


def sorts_table(attack: Attack) -> str:
    """The attack's tally, as numbers beside the picture."""
    tally, promise = attack.tally, attack.promise
    return pages.facts("Tuples that were judged", [
        ("all", f"{tally.tuples:,}"),
        (f"covered: prior at most d = {promise.prior:.3g}", f"{tally.covered:,}"),
        ("of these, positive leaks", f"{tally.positive_leaks:,}"),
        ("of these, negative leaks", f"{tally.negative_leaks:,}"),
        ("not covered: prior above d", f"{tally.uncovered:,}"),
        (f"of these, now above γ = {chance(promise.posterior)}", f"{tally.uncovered_above:,}"),
        ("all that are now above γ", f"{tally.above_posterior:,}"),
        ("beliefs that break the promise", f"{tally.promise_broken:,}"),
    ], ["which", "tuples"])  # fmt: skip


def who(attack: Attack) -> str:
    """The adversary in a sentence."""
    kinds = " and ".join(attack.adversaries)
    others = f"; {attack.others:,} other records have the same values" if attack.others else ""
    text = f"Adversary: {kinds}. It believed beforehand: {attack.prior}{others}."
    if attack.since is None:
        return text
    return (
        f"{text} It sees all views of the series, and takes it that a record which is in the table "
        f"has been there unchanged since view {attack.since}."
    )


def verdict(attack: Attack) -> str:
    """What the leaks mean for the promise."""
    tally, promise = attack.tally, attack.promise
    if attack.release.manifest.simulated:
        return "The release is a simulation and promises nothing."
    if tally.promise_broken:
        return (
            f"{tally.promise_broken:,} beliefs break the promise. A sound release cannot do that: "
            f"check it with `voile verify {shlex.quote(str(attack.release.path))}`."
        )
    return " ".join(filter(None, (of_covered(attack), of_uncovered(tally, promise))))


def of_covered(attack: Attack) -> str:
    """What became of the beliefs that the promise covers."""
    tally, promise = attack.tally, attack.promise
    leaked = tally.positive_leaks + tally.negative_leaks
    if not tally.covered:
        return "The promise covers none of these beliefs."
    if not leaked:
        return f"Of the beliefs that the promise covers ({tally.covered:,}) none leaked."
    only = " and, of exclusive ones, against positive leaks only"
    return (
        f"{leaked:,} leaks, none of which the promise rules out: it is against "
        f"{promise.adversary} adversaries{only * (promise.adversary == 'exclusive')}."
    )


def of_uncovered(tally: Tally, promise: DGamma) -> str:
    """What became of the beliefs whose prior is above the promise's."""
    if not tally.uncovered:
        return ""
    return (
        f"It says nothing about those whose prior was above d = {promise.prior:.3g} "
        f"({tally.uncovered:,}); {tally.uncovered_above:,} of them are now above "
        f"γ = {chance(promise.posterior)}."
    )


def warnings(attack: Attack) -> str:
    """What must be known before the numbers are read."""
    found = []
    if attack.release.manifest.simulated:
        found.append("The release was made from a chosen seed. It protects nobody.")
    if not attack.publishable:
        found.append(
            "Not for publication if the adversary's model is a private table: its counts shaped "
            "the numbers on this page."
        )
    return "".join(pages.paragraph(text, "warning") for text in found)


def figures(attack: Attack) -> str:
    """The attack's main numbers."""
    tally = attack.tally
    largest = max((b.posterior for b in attack.beliefs), default=0.0)
    gamma, d = chance(attack.promise.posterior), chance(attack.promise.prior)
    covered = f"of the {tally.covered:,} covered: "
    cells = [
        (f"{attack.exposures.exposed:,} of {attack.exposures.people:,}",
         "people of whom it is now all but sure", attack.exposures.exposed > 0),
        (percent(largest), "strongest belief", False),
        (f"{tally.positive_leaks:,}", f"{covered}rose above γ = {gamma}", tally.positive_leaks > 0),
        (f"{tally.negative_leaks:,}", f"{covered}fell below d/γ of what they were",
         tally.negative_leaks > 0),
        (f"{tally.uncovered_above:,}", f"of the {tally.uncovered:,} not covered (prior above "
         f"d = {d}): now above γ", tally.uncovered_above > 0),
        (f"{tally.tuples:,}", "tuples judged", False),
    ]  # fmt: skip
    return pages.figures(cells)


def people_table(people: Sequence[Person]) -> str:
    """The people of whom some values are unknown, with the best guess of each."""
    if not people:
        return ""
    rows = [
        pages.row(
            pages.head_cell(p.name), number_cell(f"{p.candidates:,}"), text_cell(guess_words(p)),
            number_cell(percent(p.best.prior)), number_cell(percent(p.best.posterior)),
            number_cell(f"× {p.best.gain:,.3g}"),
        )
        for p in people[:SHOWN]
    ]  # fmt: skip
    headings = ["who", "candidates", "best guess of what was unknown", "before", "after", "gain"]
    caption = "People of whom not all is known, with the best guess of each"
    return pages.heading("People") + pages.table(caption, headings, rows, {1, 3, 4, 5})


def guess_words(person: Person) -> str:
    """The best guess of each unknown value, with its belief before and after."""
    return (
        ", ".join(
            f"{g.attribute} {g.words} ({percent(g.prior)} → {percent(g.posterior)})"
            for g in person.guesses
        )
        or person.best.words
    )


def belief_table(beliefs: Iterable[Belief]) -> str:
    """One row for each tuple that was judged."""
    rows = [
        pages.row(
            pages.head_cell(b.name), text_cell(b.words), number_cell(seen_words(b)),
            number_cell(percent(b.prior)), number_cell(percent(b.posterior)),
            f"<td>{tags(b)}</td>",
        )
        for b in beliefs
    ]  # fmt: skip
    headings = ["who", "tuple", "seen", "before", "after", "marks"]
    return pages.table("Tuples, the worst first", headings, rows, {2, 3, 4})


def seen_words(belief: Belief) -> str:
    """How often the view shows it; of a series view after view."""
    return " ".join(map(str, belief.seen)) if isinstance(belief.seen, list) else str(belief.seen)


def tags(belief: Belief) -> str:
    """What a belief is marked with: its leaks, and that the promise does not cover it."""
    found = [
        (belief.positive_leak, "tag bad", "positive leak"),
        (belief.negative_leak, "tag bad", "negative leak"),
        (not belief.covered, "tag", "prior above d"),
    ]
    return " ".join(f'<span class="{kind}">{label}</span>' for on, kind, label in found if on)


def left_off(attack: Attack) -> str:
    """How many tuples the page does not list, if any."""
    rest = attack.tally.tuples - min(SHOWN, len(attack.beliefs))
    return pages.paragraph(f"{rest:,} more tuples are not listed.", "small") if rest > 0 else ""


# ----------------------------------------------------------------------
# releases whose promise bounds everybody's belief: nobody has to be named


def beliefs_report(found: BeliefBounds, path: str) -> Report:
    """What anyone can come to believe of one row, by what they believed before."""
    posterior = {(one.prior, one.eta): one.posterior for one in found.bounds}
    rows = [
        pages.row(
            number_cell(f"{prior:g}"),
            *(number_cell(f"{posterior[prior, eta]:.4g}") for eta in found.chances),
        )
        for prior in found.priors
    ]
    heads = ["before", *(f"but for {eta:g}" if eta else "always" for eta in found.chances)]
    caption = "What a belief may become, at most"
    return Report(
        f"Beliefs about {found.release}",
        f"What anyone can come to believe from {found.release}",
        f"Of one row, by someone who knows every other row ({found.unit}).",
        [
            pages.table(caption, heads, rows, range(len(heads))),
            pages.paragraph(found.about),
        ],
        [
            NextStep(
                "Check that the release is what it says:", shlex.join(["voile", "verify", path])
            )
        ],
        "Made with Voile from the release alone: it may be published.",
    )
