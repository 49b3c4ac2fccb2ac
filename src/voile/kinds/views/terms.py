"""What a release must say about itself: written once, and recomputed to verify it."""

from __future__ import annotations

import math

from voile.kinds.manifest import Disclosed, read_off_disclosed
from voile.kinds.views.manifest import Epsilon, Guarantee, NoisePrior, Parameters, SeriesPart
from voile.mechanisms import AlphaBeta, Publishing, Series, Shaped
from voile.privacy import DGamma, LikelihoodRatio
from voile.privacy.planner import promise_everywhere, promise_where_likely
from voile.schema import Schema

ROWS, MARGINALS = "the number of", "how often each value of"
"""How such disclosures begin."""


def promised(requested: DGamma, mechanism: Publishing) -> DGamma:
    """What is promised for every tuple; with shaped noise that is less than was asked for."""
    if not isinstance(mechanism, Shaped):
        return requested
    return promise_everywhere(requested, mechanism.likelihood_ratio())


def parameters_of(
    mechanism: Publishing,
    schema: Schema,
    *,
    distinct: bool,
    learnt: bool,
    series: SeriesPart | None = None,
) -> Parameters:
    """A mechanism's parameters as they are written down."""
    if isinstance(mechanism, Series):
        noise, shape = mechanism.on_unseen.noise, None
    elif isinstance(mechanism, AlphaBeta):
        noise, shape = mechanism.noise, None
    else:
        assert isinstance(mechanism, Shaped)  # noqa: S101
        noise = mechanism.floor / (1 + mechanism.floor)
        listed = zip(schema.names, mechanism.prior.parts, strict=True)
        shape = NoisePrior(
            floor=mechanism.floor,
            strength=mechanism.strength,
            cap=mechanism.cap,
            learnt=learnt,
            parts={name: list(parts) for name, parts in listed if parts is not None},
        )
    return Parameters(
        form=mechanism.form,
        distinct=distinct,
        retention=mechanism.retention,
        noise=noise,
        noise_prior=shape,
        series=series,
    )


def guarantee(
    promise: DGamma, mechanism: Publishing, parameters: Parameters, *, rows_are_public: bool
) -> Guarantee:
    """The promise as it is written down, with what follows from the likelihood ratio.

    Where the number of rows is told exactly, tables that differ by a record are told apart by
    it, and no ε holds between them; nor where the noise follows the table itself.
    """
    ratio = mechanism.likelihood_ratio()
    shape = parameters.noise_prior
    learnt = shape is not None and shape.learnt
    rows_are_public = rows_are_public or (
        parameters.series is not None and parameters.series.rows_told
    )
    return Guarantee(
        prior=promise.prior,
        posterior=promise.posterior,
        adversary=promise.adversary,
        unit=unit(parameters),
        epsilon=Epsilon(
            add_remove=None if rows_are_public or learnt else finite(ratio.epsilon("add-remove")),
            swap=None if learnt else finite(ratio.epsilon("swap")),
        ),
        likely=None if shape is None else likely(promise, mechanism.retention, shape),
    )


def series_part(written: SeriesPart, mechanism: Series, promise: DGamma) -> SeriesPart:
    """What a view says about its series, with what follows from the rest computed."""
    so_far = mechanism.noise.likelihood_ratio(mechanism.view_number)
    return written.model_copy(update={"posterior": reached(promise, so_far)})


def reached(promise: DGamma, ratio: LikelihoodRatio) -> float:
    """The largest belief of an adversary that the promise is about, within these bounds."""
    exclusive = promise.adversary == "exclusive"
    return float((ratio.linked_posterior if exclusive else ratio.posterior)(promise.prior))


def unit(parameters: Parameters) -> str:
    """What the promise is about."""
    multiset, series = parameters.form == "multiset", parameters.series
    if series is not None:
        what = "one record, i.e. one row with its values," if multiset else "one tuple"
        edited = "" if series.changes_at_most == 0 else (
            "; a row that is edited is another record from then on, with a promise of its own"
        )  # fmt: skip
        return (
            f"whether {what} has ever been in the series, at any of its {series.views} views, "
            f"against never; whatever the other rows are and do{edited}"
        )
    if multiset:
        return "one record, i.e. one person with one row, whatever the other rows are"
    return "one tuple of the table, which is a set"


def likely(promise: DGamma, retention: float, shape: NoisePrior) -> str:
    """What shaped noise promises about tuples that its prior takes for likely."""
    factor, most = promise_where_likely(promise, retention, shape.strength, shape.cap)
    text = (
        f"a belief in a tuple t of at most min({factor:.6g}·s(t), {most:.4g}), s(t) its chance "
        "under the noise prior, does not exceed the posterior either"
    )
    if not shape.learnt:
        return text
    return text + (
        "; the noise prior is the table's own marginals, which are told exactly: all of this is "
        "about the view, its noise taken as given, and nothing bounds what the marginals tell"
    )


def finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def disclosed(schema: Schema, parameters: Parameters, *, rows_are_public: bool) -> list[Disclosed]:
    """What the release tells outside its promise, with why.

    That the table lies in its declared domain is what declaring it means, and is not listed.
    """
    found = told_by_series(parameters, rows_are_public=rows_are_public)
    if rows_are_public:
        rows = "different rows" if parameters.distinct else "rows"
        what = f"{ROWS} {rows} of the table"
        why = (
            "the prior, or the size of the view, was asked for relative to it; with --prior and "
            "without --max-view-ratio it is not told"
        )
        found.append(Disclosed(what=what, why=why))
    if parameters.form == "set" and not parameters.distinct:
        why = "the set form was asked for, which refuses tables with repetitions"
        found.append(Disclosed(what="that no row of the table repeats another", why=why))
    if parameters.noise_prior and parameters.noise_prior.learnt:
        why = "the noise follows the table's own marginals; a public noise prior avoids that"
        found += [
            Disclosed(what=f"{MARGINALS} {name} occurs", why=why)
            for name in parameters.noise_prior.parts
        ]
    return found + read_off_disclosed(schema)


def told_by_series(parameters: Parameters, *, rows_are_public: bool) -> list[Disclosed]:
    """What a view tells by being one of several."""
    series = parameters.series
    if series is None or series.view == 1:
        return []
    found = []
    if series.rows_told and not rows_are_public:
        why = "the prior was asked for relative to it; with --prior it is not told"
        found.append(Disclosed(what="the number of rows of the table at the first view", why=why))
    if not series.always_fresh:
        why = "unchanged tables give the identical view again; --always-fresh avoids that"
        what = "that the table has changed since the view before"
        found.append(Disclosed(what=what, why=why))
    if series.changes_at_most:
        what = f"that at most {series.changes_at_most:,} rows came or went between two views"
        found.append(Disclosed(what=what, why="it was declared, and is checked"))
    return found
