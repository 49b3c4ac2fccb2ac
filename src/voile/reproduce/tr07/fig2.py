"""Figure 2: estimates against true counts at α = 0.5, β = 9.5·10⁻⁴; the case study's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voile.privacy import DGamma, plan
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import altair, chart
from voile.reproduce.papers import TR07
from voile.reproduce.verdict import Check, Claim, Number, Sample
from voile.reproduce.vldb07.adult import BAND, REPORT, REPORT_BETA, adult, measured, promise
from voile.reproduce.vldb07.fig2 import FAR, LARGEST, MEANINGFUL, cells_of, cloud

MISPRINT = "n/m is 4.65·10⁻⁵: the exponent is a misprint"


def case_study() -> dict[str, Any]:
    """What follows from n, m, k and γ."""
    table, schema = adult()
    rows, size, promised = len(table), schema.size, promise()
    return {
        "share": rows / size,
        "prior": promised.prior,
        "least_beta": plan(promised, "set", retention=0.5).noise,
        "view": 0.5 + REPORT_BETA * (size - rows) / rows,
    }


def parts(run: Run) -> list[Part]:
    """What follows from the parameters, and one run of the method for each seed."""
    seen = [Part(measured, {"method": REPORT, "seed": seed}) for seed in run.seeds(20, 4)]
    return [Part(case_study), *seen]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001  (the same for all runs)
    """Compare estimates with true counts at the report's α and β."""
    known, *runs = results
    columns = cells_of({REPORT: runs[0]})
    share = Sample.of(one["in_band_large"] for one in runs)
    return Finding(
        checks=checks(known, runs),
        tables={"": columns},
        picture=lambda: drawn(columns, runs[0]),
        title=f"Of counts of 1000 and more, {share.mean:.0%} lie in a band of width 1000",
        subtitle=[
            f"All {sum(runs[0]['queries']):,} selections of up to three attributes of Adult, "
            f"α = 0.5 and β = {REPORT_BETA:g};",
            "dashed: 500 above and below the truth.",
        ],
    )


def checks(known: Any, runs: Sequence[Any]) -> tuple[Check, ...]:
    """The case study's numbers, and how estimates lie around the truth."""
    band, large = (Sample.of(one[name] for one in runs) for name in ("in_band", "in_band_large"))
    first, printed = runs[0], 4.65e-3
    needed = plan(DGamma(0.00465, 0.2), "set", retention=0.5).noise
    return (
        Number("n/m", printed, Sample.of(known["share"]), 0.005e-5, right=4.65e-5, why=MISPRINT),
        Number("d = 10·n/m", 0.00465, Sample.of(known["prior"]), 0.000005, right=0.000465,
               why=MISPRINT),
        Claim("β = 9.5·10⁻⁴ keeps (d, γ)", "to ensure (10n/m, 0.2)-privacy",
              f"Theorem 4.1 needs β ≥ {known['least_beta']:.3g}",
              known["least_beta"] <= REPORT_BETA),
        Claim("β fits d as printed", "d = 0.465 % and β = 9.5·10⁻⁴",
              f"with that d, β ≥ {needed:.2g} would be needed", needed <= REPORT_BETA,
              expected=False, why=MISPRINT),
        Number("rows of the view / n", 10, Sample.of(known["view"]), 0.05, right=20.9,
               why="α + β·m/n with the printed α and β; a factor of 10 would need β = 4.4·10⁻⁴"),
        # By an independent simulation, 8 seeds.
        Number("share within the band", None, band, 0.0001, right=0.99976),
        Number("share within it, Q(I) ≥ 1000", None, large, 0.005, right=0.943),
        Claim("the band", "most of the values lie in a band of width 1000 around y = x",
              f"{band.mean:.2%} of all, {large.mean:.0%} of those of 1000 and more",
              band.mean > 0.5 and large.mean > 0.5),
        Claim("small counts", "for small Q(I) the estimated values are far off (even negative)",
              f"median |error|/Q(I) {first['off_small']:.1f} below 100; "
              f"{first['negative_small']:.0%} negative",
              first["off_small"] > 1 and first["negative_small"] > 0.1),
        Claim("large counts", "for large Q(I) the estimations are much better and meaningful",
              f"median |error|/Q(I) {first['off_large']:.1%} from 5000 on",
              first["off_large"] < min(MEANINGFUL, first["off_small"] / FAR)),
    )  # fmt: skip


def drawn(columns: Any, found: Any) -> Any:
    """Estimates against true counts, with the band of width 1000."""
    alt = altair()
    ends = [
        {"at": at, "value": at + side, "side": side}
        for side in (-BAND, BAND)
        for at in (0, LARGEST)
    ]
    rules = (
        chart(ends)
        .mark_line(strokeDash=[5, 4], strokeWidth=1.2, color="#555555")
        .encode(x="at:Q", y="value:Q", detail="side:N")
    )
    shown = cloud(columns, REPORT, found, side=560)
    return alt.layer(rules, shown)


FIGURE = Figure(
    "tr07-fig2", TR07, "Estimates against true counts of all selections", parts, conclude
)
