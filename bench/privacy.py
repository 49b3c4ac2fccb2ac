"""What the privacy side takes: no peer has it, so beside plain publishing, or a limit."""

from __future__ import annotations

from bench.child import best, highest_peak, run_rounds
from bench.result import Result

NAME = "privacy"
KNOWN = ["age", "workclass", "sex"]
LIMITS = {"plan": 5.0, "attack": 10.0, "people": 20.0, "audit": 5.0}
"""Seconds that someone waits without wondering."""
PEOPLE = 50_000


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Seconds of publishing, planning, attacking and auditing."""
    times = 1 if quick else 3
    people = PEOPLE // 20 if quick else PEOPLE
    done = run_rounds(
        {
            "even": ("privacy_work:publishing", {"times": times}),
            "shaped": ("privacy_work:publishing", {"times": times, "noise_prior": "product"}),
            "series": ("privacy_work:series", {"times": 1}),
            "plan": ("privacy_work:plan", {"times": times}),
            "attack": ("privacy_work:attacking", {"times": times, "known": KNOWN}),
            "people": ("privacy_work:attacking_people", {"count": people}),
            "audit": ("privacy_work:audit", {"times": times, "runs": 50_000}),
        },
        rounds,
    )
    found = {name: best(outcomes) for name, outcomes in done.items()}
    what = {
        "shaped": f"publishing Adult with shaped noise ({found['shaped'].value['rows']:,} rows)",
        "series": f"publishing a second view of Adult ({found['series'].value['rows']:,} rows)",
        "plan": "planning Adult: 304,364 expected errors, and two curves",
        "attack": f"attacking one person with {found['attack'].value['found']:,} candidates",
        "people": f"attacking {people:,} people, two values unknown of each",
        "audit": "auditing αβ, 2 × 50,000 runs",
    }
    return [
        Result(
            name=NAME,
            what=words,
            unit="s",
            ours=found[name].value["seconds"],
            peer=LIMITS.get(name, found["even"].value["seconds"]),
            peer_name="the limit" if name in LIMITS else "even noise, one release",
            aim="≤ 1 ×" if name in LIMITS else "",
            met=found[name].value["seconds"] <= LIMITS[name] if name in LIMITS else None,
            peak_memory=highest_peak(done[name]),
            others=found[name].others,
        )
        for name, words in what.items()
    ]
