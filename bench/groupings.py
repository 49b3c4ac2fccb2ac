"""Classes of rows at 45 thousand, 500 thousand and 5 million rows, beside the peers."""

from __future__ import annotations

from typing import Any

from bench.child import Outcome, TaskError, run
from bench.result import Result, memory_limit

NAME = "groupings"
SIZES: tuple[int | None, ...] = (None, 500_000, 5_000_000)
"""None: the complete rows of Adult."""
REQUESTS: dict[str, dict[str, Any]] = {
    "k = 10": {"k": 10},
    "k = 10, ℓ = 3": {"k": 10, "l": 3},
    "k = 10, t = 0.2": {"k": 10, "t": 0.2, "t_distance": "emd-equal"},
}
AIMS = {None: 0.09, 500_000: 0.6, 5_000_000: 5.0}
"""CPU seconds for k = 10."""
MEMORY = 2 * 10**9
"""Bytes at the largest size, of a process that has the data frame as well."""
CUTS = ("median", "certainty", "boxes")
"""The last one is the default."""
DEARER = 2.0
"""How many times the CPU seconds of medians the default may take."""
ARX = {
    None: {"k = 10": 4.12, "k = 10, ℓ = 3": 4.19, "k = 10, t = 0.2": 45.5},
    500_000: {"k = 10": 0.98, "k = 10, ℓ = 3": 2.38, "k = 10, t = 0.2": 43.5},
}
"""GenILoss of ARX's local recoding in per cent, stated: measured elsewhere, on the same rows. Which
measure of ℓ it was is not stated; ARX has distinct values and entropy, and none by shares."""
MEASURES = {
    "k = 10, ℓ = 3": {
        "ℓ by shares, which ARX does not have": {},
        "ℓ by entropy": {"l_measure": "entropy"},
        "ℓ by distinct values": {"l_measure": "distinct"},
    }
}
"""Ours: shares (none above 1/ℓ) is the default."""
RISK_AIMS = {None: 0.045, 500_000: 0.3, 5_000_000: 4.35}


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """CPU seconds and losses at every size."""
    sizes = SIZES[:1] if quick else SIZES
    times = 1 if quick else rounds
    found = []
    for rows in sizes:
        for name, requested in REQUESTS.items():
            found += grouped(rows, name, requested, times=times, quick=quick)
        found += risked(rows, times=times, quick=quick)
    found.append(frontier(times=times))
    return found


def grouped(
    rows: int | None, name: str, requested: dict[str, Any], *, times: int, quick: bool
) -> list[Result]:
    """Classes for one request beside the peers' classes."""
    whole = run("groupings_work:ours", rows=rows, times=times, **requested)
    plain = {key: value for key, value in requested.items() if key in ("k", "l", "t")}
    cuts = CUTS[:1] if rows == SIZES[-1] else CUTS
    alone = {cut: alone_with(cut, rows, requested, times) for cut in cuts}
    peers = {}
    if rows != SIZES[-1]:  # it was stopped there after eight minutes
        peers["anjana"] = ("groupings_work:anjana", {"rows": rows, **plain})
    if rows is None and requested == REQUESTS["k = 10"] and not quick:
        peers["anonypy"] = ("groupings_work:anonypy", {"rows": rows, "k": 10})
    count = count_of(whole, name)
    aim = AIMS[rows] if name == "k = 10" else None
    found = [alone_line(one, alone["median"], cut, count) for cut, one in alone.items()]
    for peer, (task, options) in peers.items():
        try:
            theirs = run(task, **options)
        except TaskError:
            found.append(line(whole, None, f"{peer} failed", f"generalize, {count}, CPU", aim))
            continue
        found.append(line(whole, theirs, peer, f"generalize, {count}, CPU", aim))
        found += [
            loss_line(of, theirs, peer, f"{count}, {cut} cuts", judged=cut == CUTS[-1])
            for cut, of in alone.items()
        ]
        aim = None
    if not peers:
        found.append(line(whole, None, "", f"generalize, {count}, CPU", aim))
    if rows == SIZES[-1]:
        what = f"generalize, {count}: peak memory, the data frame included"
        found.append(memory_limit(NAME, what, whole.peak, MEMORY))
    if rows != SIZES[-1] or name == "k = 10":
        found.append(beside_medians(whole, rows, requested, count, times))
    return found + (beside_arx(rows, name, requested, alone[CUTS[-1]], count, times) if rows in ARX
                    else [])  # fmt: skip


def alone_with(cuts: str, rows: int | None, requested: dict[str, Any], times: int) -> Outcome:
    """The grouping alone, with such cuts."""
    return run("groupings_work:mondrian_alone", rows=rows, times=times, cuts=cuts, **requested)


def alone_line(alone: Outcome, medians: Outcome, cuts: str, count: str) -> Result:
    """CPU seconds of the grouping alone, beside those of medians."""
    other = cuts != "median"
    return Result(
        name=NAME, what=f"Mondrian alone, {count}, {cuts} cuts ({alone.value['classes']:,} "
        "classes), CPU", unit="s", ours=alone.value["cpu"],
        peer=medians.value["cpu"] if other else None, peer_name="median cuts" if other else "",
        peak_memory=alone.peak, others=alone.others, details=alone.value,
    )  # fmt: skip


def beside_medians(
    whole: Outcome, rows: int | None, requested: dict[str, Any], count: str, times: int
) -> Result:
    """What the default cuts cost, from a data frame to the table."""
    medians = run("groupings_work:ours", rows=rows, times=times, cuts="median", **requested)
    ours, peer = whole.value["cpu"], medians.value["cpu"]
    return Result(
        name=NAME, what=f"generalize, {count}, CPU: boxes, the default", unit="s", ours=ours,
        peer=peer, peer_name="median cuts", aim=f"≤ {DEARER:g} ×", met=ours <= DEARER * peer,
        others=max(whole.others, medians.others), details={"median": medians.value},
    )  # fmt: skip


def beside_arx(
    rows: int | None, name: str, requested: dict[str, Any], boxes: Outcome, count: str, times: int
) -> list[Result]:
    """The loss of boxes beside ARX's, which is stated; under ℓ with each measure of ours."""
    stated, lines = ARX[rows][name], []
    for measure, options in MEASURES.get(name, {"": {}}).items():
        alone = alone_with("boxes", rows, requested | options, times) if options else boxes
        lines.append(stated_line(alone, stated, ", ".join(filter(None, (count, "boxes", measure)))))
    return lines


def count_of(whole: Outcome, name: str) -> str:
    """How many rows, and what is asked."""
    return f"{whole.value['rows']:,} rows, {name}"


def stated_line(alone: Outcome, stated: float, count: str) -> Result:
    """The information loss of ours beside a figure that was measured elsewhere."""
    ours = 100 * alone.value["gen_iloss"]
    return Result(
        name=NAME, what=f"GenILoss, {count}", unit="%", ours=ours, peer=stated,
        peer_name="ARX's local recoding (stated; which ℓ is not)" if "ℓ" in count
        else "ARX's local recoding (stated)", aim="≤ 1 ×",
        met=ours <= stated, others=alone.others, details=alone.value,
    )  # fmt: skip


def line(ours: Outcome, peer: Outcome | None, name: str, what: str, aim: float | None) -> Result:
    """CPU seconds of ours beside a peer's."""
    return Result(
        name=NAME,
        what=what,
        unit="s",
        ours=ours.value["cpu"],
        peer=None if peer is None else peer.value["cpu"],
        peer_name=name,
        aim="" if aim is None else f"≤ {aim:g} s",
        met=None if aim is None else ours.value["cpu"] <= aim,
        peak_memory=ours.peak,
        others=ours.others,
        details={"ours": ours.value, "peer": None if peer is None else
                 peer.value | {"peak": peer.peak}},
    )  # fmt: skip


def loss_line(alone: Outcome, peer: Outcome, name: str, count: str, *, judged: bool) -> Result:
    """The information loss of ours beside a peer's; the default is judged."""
    ours, theirs = alone.value["gen_iloss"], peer.value["gen_iloss"]
    return Result(
        name=NAME,
        what=f"GenILoss, {count}",
        unit="%",
        ours=100 * ours,
        peer=100 * theirs,
        peer_name=f"{name} ({peer.value['classes']:,} classes)",
        aim="≤ 1 ×" if judged else "",
        met=ours <= theirs if judged else None,
        others=alone.others,
    )


def risked(rows: int | None, *, times: int, quick: bool) -> list[Result]:
    """CPU seconds of measuring k, ℓ and t."""
    ours = run("groupings_work:our_risk", rows=rows, times=times)
    beside = rows is None and not quick
    peer = run("groupings_work:pycanon", rows=rows) if beside else None
    what = f"k, ℓ and t of {ours.value['rows']:,} rows, CPU"
    return [line(ours, peer, "pycanon" if beside else "", what, RISK_AIMS[rows])]


def frontier(*, times: int) -> Result:
    """Seconds of the paper's whole figure."""
    ours = run("groupings_work:paper", times=times)
    return Result(
        name=NAME, what="the paper's 64 releases of Adult with both losses", unit="s",
        ours=ours.value["wall"], peer=10.0, peer_name="the limit", aim="≤ 1 ×",
        met=ours.value["wall"] <= 10, peak_memory=ours.peak, others=ours.others,
        details=ours.value,
    )  # fmt: skip
