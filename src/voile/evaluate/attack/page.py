"""A page about an attack, in one file that loads nothing from elsewhere."""

from __future__ import annotations

import html
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from voile.evaluate.attack.beliefs import Attack, Belief, Person, Tally
from voile.evaluate.drawing import BAND_INK, BLUE, INK, SOFT, VERMILION, load_altair, render, theme
from voile.privacy import DGamma
from voile.privacy.guarantee import chance

if TYPE_CHECKING:
    import altair as alt


# ----------------------------------------------------------------------
# a picture of an attack: what was believed before against what is believed after


SORTS = ("within the promise's bounds", "positive leak", "negative leak", "prior above d")
COLOURS = [BLUE, VERMILION, "#CC79A7", "#7B8794"]
SHAPES = ["circle", "triangle-up", "triangle-down", "square"]
WIDTH, HEIGHT = 620, 430


def sort_of(belief: Belief) -> str:
    if belief.positive_leak:
        return SORTS[1]
    if belief.negative_leak:
        return SORTS[2]
    return SORTS[0] if belief.covered else SORTS[3]


def picture(attack: Attack) -> bytes:
    """An SVG that needs nothing from elsewhere."""
    return render(draw(attack), "svg")


def draw(attack: Attack) -> alt.HConcatChart:
    alt = load_altair()
    points = counted(attack)
    low = 0.4 * min([attack.promise.prior, *(min(p["prior"], p["posterior"]) for p in points)])
    chart = alt.layer(*bounds(attack, low), dots(points, low)).properties(
        width=WIDTH, height=HEIGHT
    )
    return theme(
        chart,
        title="Each mark is a tuple",
        subtitle="Larger marks are several tuples at one place. Brown: the bounds of the promise.",
        caption="Both axes are logarithmic. Beliefs of 0 are not drawn.",
        heading={"fontSize": 15, "subtitleFontSize": 13, "offset": 14},
    )


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
    alt = load_altair()
    kind = alt.X if field == "prior" else alt.Y
    scale = alt.Scale(type="log", domain=[low, 1.0], nice=False)
    ticks = [10.0**k for k in range(math.ceil(math.log10(low)), 1)]
    return kind(f"{field}:Q", scale=scale, axis=alt.Axis(title=title, values=ticks, format="~g"))


def bounds(attack: Attack, low: float) -> list[Any]:
    """The promise: γ above and (d/γ)·prior below, for priors up to d; and nothing learned."""
    alt = load_altair()
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
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(color=BAND_INK, strokeWidth=2, clip=True)
        .encode(x=x, y=y, detail="line:N")
    )
    same = (
        alt.Chart(alt.InlineData(values=[{"prior": v, "posterior": v} for v in (low, 1.0)]))
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
    alt = load_altair()
    at = alt.Chart(alt.InlineData(values=[{"prior": prior, "posterior": posterior}]))
    return at.mark_text(text=text, align="left", dx=dx, dy=dy, fontSize=13, color=INK).encode(
        x="prior:Q", y="posterior:Q"
    )


def dots(points: list[dict[str, Any]], low: float) -> Any:
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
        alt.Chart(alt.InlineData(values=points))
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

STYLE = """
body { font: 16px/1.5 Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif; color: #1F2933;
       max-width: 60rem; margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
.lead { color: #5F6C7B; margin: 0 0 1.6rem; }
.first { background: #E8ECF0; border-left: 4px solid #5F6C7B; padding: .6rem 1rem; }
.warning { background: #FBE9E1; border-left: 4px solid #D55E00; padding: .6rem 1rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0; }
.figure { flex: 1 1 7rem; border: 1px solid #E8ECF0; border-radius: 8px; padding: .8rem 1rem; }
.figure b { display: block; font-size: 1.7rem; line-height: 1.2; }
.figure span { color: #5F6C7B; font-size: .88rem; } .bad b { color: #D55E00; }
svg { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .4rem .7rem; border-bottom: 1px solid #E8ECF0;
         vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: #5F6C7B; font-weight: 500; } td.n, th.n { text-align: right; white-space: nowrap; }
.tag { border-radius: 4px; padding: .1rem .45rem; font-size: .8rem; white-space: nowrap; }
.positive { background: #D55E00; color: white; } .negative { background: #CC79A7; color: white; }
.outside { background: #E8ECF0; color: #5F6C7B; } small { color: #5F6C7B; }
"""


def page(attack: Attack) -> bytes:
    """HTML with what was promised, who attacks, a picture, and the worst targets."""
    name = html.escape(attack.release.name)
    parts = [
        f"<h1>What an adversary learns from {name}</h1>",
        f'<p class="{"warning" if attack.exposures.exposed else "first"}">'
        f"<strong>{html.escape(attack.exposures.headline())}</strong></p>",
        f'<p class="lead">{html.escape(who(attack))}</p>',
        warnings(attack),
        figures(attack),
        f"<p>{html.escape(verdict(attack))}</p>",
        "<h2>What was promised</h2>",
        f"<p>{html.escape(attack.promise.explain())}</p>",
        "<h2>Before and after</h2>",
        picture(attack).decode(),
        people_table(attack.people),
        "<h2>Worst first</h2>",
        belief_table(attack.beliefs[:SHOWN]),
        left_off(attack),
        "<p><small>Posteriors are exact: Bayes' rule with the mechanism's own law. Made with Voile "
        "from the release and the adversary's beliefs. Names and values of targets stand on this "
        "page: treat it as you treat those.</small></p>",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Attack on {name}</title>"
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body>{body}</body></html>\n"
    ).encode()


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
    if not tally.uncovered:
        return ""
    return (
        f"It says nothing about those whose prior was above d = {promise.prior:.3g} "
        f"({tally.uncovered:,}); {tally.uncovered_above:,} of them are now above "
        f"γ = {chance(promise.posterior)}."
    )


def warnings(attack: Attack) -> str:
    found = []
    if attack.release.manifest.simulated:
        found.append("The release was made from a chosen seed. It protects nobody.")
    if not attack.publishable:
        found.append(
            "Not for publication if the adversary's model is a private table: its counts shaped "
            "the numbers on this page."
        )
    return "".join(f'<p class="warning">{text}</p>' for text in found)


def figures(attack: Attack) -> str:
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
    shown = "".join(
        f'<div class="figure{" bad" if bad else ""}"><b>{value}</b><span>{label}</span></div>'
        for value, label, bad in cells
    )
    return f'<div class="figures">{shown}</div>'


def people_table(people: Sequence[Person]) -> str:
    if not people:
        return ""
    rows = [
        [text(p.name), number(f"{p.candidates:,}"), text(guess_words(p)),
         number(percent(p.best.prior)), number(percent(p.best.posterior)),
         number(f"× {p.best.gain:,.3g}")]
        for p in people[:SHOWN]
    ]  # fmt: skip
    headings = ["who", "candidates", "best guess of what was unknown", "before", "after", "gain"]
    return "<h2>People of whom not all is known</h2>" + table(headings, rows, numeric={1, 3, 4, 5})


def guess_words(person: Person) -> str:
    return (
        ", ".join(
            f"{g.attribute} {g.words} ({percent(g.prior)} → {percent(g.posterior)})"
            for g in person.guesses
        )
        or person.best.words
    )


def belief_table(beliefs: Iterable[Belief]) -> str:
    rows = [
        [text(b.name), text(b.words), number(seen_words(b)), number(percent(b.prior)),
         number(percent(b.posterior)), f"<td>{tags(b)}</td>"]
        for b in beliefs
    ]  # fmt: skip
    return table(["who", "tuple", "seen", "before", "after", ""], rows, numeric={2, 3, 4})


def seen_words(belief: Belief) -> str:
    """How often the view shows it; of a series view after view."""
    return " ".join(map(str, belief.seen)) if isinstance(belief.seen, list) else str(belief.seen)


def tags(belief: Belief) -> str:
    found = [
        (belief.positive_leak, "positive", "positive leak"),
        (belief.negative_leak, "negative", "negative leak"),
        (not belief.covered, "outside", "prior above d"),
    ]
    return " ".join(f'<span class="tag {kind}">{label}</span>' for on, kind, label in found if on)


def left_off(attack: Attack) -> str:
    rest = attack.tally.tuples - min(SHOWN, len(attack.beliefs))
    return f"<p><small>{rest:,} more tuples are not listed.</small></p>" if rest > 0 else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numeric: set[int]) -> str:
    head = "".join(
        f'<th class="n">{h}</th>' if i in numeric else f"<th>{h}</th>"
        for i, h in enumerate(headings)
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def text(value: str) -> str:
    return f"<td>{html.escape(value)}</td>"


def number(value: str) -> str:
    return f'<td class="n">{html.escape(value)}</td>'


def percent(chance: float) -> str:
    """A chance as people read it: 20 %, 0.0465 %, 99.9996 %; only what is sure is 100 %."""
    if chance < 0.999 or chance == 1:
        return f"{100 * chance:.3g} %"
    digits = min(12, 1 - math.floor(math.log10(1 - chance) + 2))
    return f"{100 * chance:.{digits}f} %"
