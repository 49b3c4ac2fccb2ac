"""Classes of rows at 45 thousand, 500 thousand and 5 million rows, beside the peers."""

from __future__ import annotations

from typing import Any

from bench.child import Outcome, TaskError, run
from bench.result import Result

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
ARX = {
    None: {"k = 10": 4.12, "k = 10, ℓ = 3": 4.19, "k = 10, t = 0.2": 45.5},
    500_000: {"k = 10": 0.98, "k = 10, ℓ = 3": 2.38, "k = 10, t = 0.2": 43.5},
}
"""GenILoss of ARX's local recoding in per cent, stated: measured elsewhere, on the same rows. Which
measure of ℓ it was is not known; ARX has none by shares, so it is set beside distinct values."""
DISTINCT = {"k = 10, ℓ = 3": {"l_measure": "distinct"}}
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
    alone = run("groupings_work:mondrian_alone", rows=rows, times=times, **requested)
    plain = {key: value for key, value in requested.items() if key in ("k", "l", "t")}
    loss = [("median", alone)]
    if rows != SIZES[-1]:
        for cuts in ("certainty", "boxes"):
            options = {"rows": rows, "times": times, "cuts": cuts, **requested}
            loss.append((cuts, run("groupings_work:mondrian_alone", **options)))
    arx = beside_arx(rows, name, requested, loss[-1][1], count_of(whole, name), times)
    peers = {}
    if rows != SIZES[-1]:  # it was stopped there after eight minutes
        peers["anjana"] = ("groupings_work:anjana", {"rows": rows, **plain})
    if rows is None and requested == REQUESTS["k = 10"] and not quick:
        peers["anonypy"] = ("groupings_work:anonypy", {"rows": rows, "k": 10})
    count = count_of(whole, name)
    aim = AIMS[rows] if name == "k = 10" else None
    found = [
        Result(
            name=NAME, what=f"Mondrian alone, {count} ({alone.value['classes']:,} classes), CPU",
            unit="s", ours=alone.value["cpu"], peak_memory=alone.peak, others=alone.others,
            details=alone.value,
        )
    ]  # fmt: skip
    for peer, (task, options) in peers.items():
        try:
            theirs = run(task, **options)
        except TaskError:
            found.append(line(whole, None, f"{peer} failed", f"generalize, {count}, CPU", aim))
            continue
        found.append(line(whole, theirs, peer, f"generalize, {count}, CPU", aim))
        found += [loss_line(of, theirs, peer, f"{count}, {cuts} cuts") for cuts, of in loss]
        aim = None
    if not peers:
        found.append(line(whole, None, "", f"generalize, {count}, CPU", aim))
    return found + arx


def beside_arx(
    rows: int | None, name: str, requested: dict[str, Any], boxes: Outcome, count: str, times: int
) -> list[Result]:
    """The loss of boxes beside ARX's, which is stated."""
    if rows not in ARX:
        return []
    stated = ARX[rows][name]
    lines = [stated_line(boxes, stated, f"{count}, boxes")]
    if name in DISTINCT:
        options = {"rows": rows, "times": times, "cuts": "boxes", **requested, **DISTINCT[name]}
        distinct = run("groupings_work:mondrian_alone", **options)
        lines.append(stated_line(distinct, stated, f"{count}, boxes, distinct values"))
    return lines


def count_of(whole: Outcome, name: str) -> str:
    """How many rows, and what is asked."""
    return f"{whole.value['rows']:,} rows, {name}"


def stated_line(alone: Outcome, stated: float, count: str) -> Result:
    """The information loss of ours beside a figure that was measured elsewhere."""
    ours = 100 * alone.value["gen_iloss"]
    return Result(
        name=NAME, what=f"GenILoss, {count}", unit="%", ours=ours, peer=stated,
        peer_name="ARX's local recoding (stated, measured elsewhere)", aim="≤ 1 ×",
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


def loss_line(alone: Outcome, peer: Outcome, name: str, count: str) -> Result:
    """The information loss of ours beside a peer's."""
    return Result(
        name=NAME,
        what=f"GenILoss, {count}",
        unit="%",
        ours=100 * alone.value["gen_iloss"],
        peer=100 * peer.value["gen_iloss"],
        peer_name=f"{name} ({peer.value['classes']:,} classes)",
        aim="≤ 1 ×",
        met=alone.value["gen_iloss"] <= peer.value["gen_iloss"],
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
