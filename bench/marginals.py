"""Noisy marginals with their model beside MST, AIM and a bootstrap of the rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.child import Outcome, TaskError, highest_peak, run, run_by
from bench.result import Result, memory_limit

NAME = "marginals"
SEEDS = (1, 2, 3)
BOUNDARY, FRONTIER = "dataset:adult/boundary", "dataset:adult/frontier"
HELD_OUT = "dataset:adult/test"
EPSILON, DELTA = 6.2858, 1e-9
SECONDS, MEMORY = 15.0, 300 * 10**6
"""CPU seconds and bytes of publishing Adult."""
WIDE_SECONDS, WIDE_MEMORY = 600.0, 2 * 10**9
COVERED = (0.93, 0.99)
"""Between which the share of true counts within their 0.95 interval should be, at every size."""
PEERS = {"AIM": ("dpmm", "marginals_peers_work:aim"), "MST": ("mbi", "marginals_peers_work:mst")}
"""The environment of each, and its task."""
BEFORE = "measured before"


@dataclass(frozen=True)
class Case:
    """A table and a promise, with what its mean errors should be."""

    table: str
    what: str
    epsilon: float
    every: float | None = None
    large: float | None = None
    pure: bool = False
    before: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Errors of others that were measured before, and are not run here."""

    @property
    def options(self) -> dict[str, Any]:
        """Of publishing."""
        promise = {"pure": True} if self.pure else {"delta": DELTA}
        return {"epsilon": self.epsilon, **promise}

    @property
    def title(self) -> str:
        """The table and the promise."""
        return f"{self.what}, ε {self.epsilon:g}{' pure' if self.pure else ''}"


ADULT = "Adult, 9"
CASES = (
    Case(BOUNDARY, ADULT, EPSILON, 0.65, 6.5),
    Case(BOUNDARY, ADULT, 1.0, 1.35, 27),
    Case(BOUNDARY, ADULT, EPSILON, 0.90, 12, pure=True, before={"αβ refined": (0.975, 28.6)}),
    Case(FRONTIER, "Adult, 7", EPSILON, 0.97, 5, before={"αβ refined": (0.967, 10.4)}),
    Case("flights.npy", "flights, 8", EPSILON, 2.2, 6.2),
    Case("flights.npy", "flights, 8", 1.0, 8.4, 33),
    Case("randhie.npy", "randhie, 10", EPSILON, 2.5, 5.7,
         before={"αβ refined": (3.05, 14.8)}),
)  # fmt: skip
QUICK: dict[str, Any] = {"columns": ["sex", "race", "salary", "workclass"]}


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Once, with several seeds, however many rounds: errors do not depend on the machine."""
    with tempfile.TemporaryDirectory(prefix="voile-marginals-") as folder:
        bench = Bench(Path(folder), peers_folder(), SEEDS[:1] if quick else SEEDS, quick=quick)
        return list(bench.results())


def peers_folder() -> Path | None:
    """The folder with the environments of the peers; README.md says how to make them."""
    named = os.environ.get("VOILE_BENCH_PEERS")
    return Path(named).absolute() if named else None


@dataclass(frozen=True)
class Bench:
    """Where it works, and which peers there are."""

    folder: Path
    peers: Path | None
    seeds: Sequence[int]
    quick: bool

    def results(self) -> Iterator[Result]:
        """Counts, rows, and a wide table."""
        tables = self.public_tables()
        cases = CASES[:1] if self.quick else CASES
        for number, case in enumerate(cases):
            if not case.table.endswith(".npy"):
                yield from self.counted(case, number)
            elif names := tables.get(case.table):
                placed = replace(case, table=str(self.folder / case.table))
                yield from self.counted(placed, number, names=names)
        yield from self.rows()
        yield from self.wide()

    def interpreter(self, environment: str) -> Path | None:
        """The Python of an environment of the peers, where there is one."""
        found = self.peers and self.peers / environment / "bin" / "python"
        return found if found and found.exists() else None

    def public_tables(self) -> dict[str, list[str]]:
        """The columns of flights and randhie, by file, where the environment mbi has them."""
        python = self.interpreter("mbi")
        if python is None or self.quick:
            return {}
        done = run_by(python, "marginals_peers_work:public_tables", folder=str(self.folder))
        return {f"{name}.npy": columns for name, columns in done.value.items()}

    # ------------------------------------------------------------------ counts

    def counted(self, case: Case, number: int, **table: Any) -> Iterator[Result]:
        """One table: our errors beside the peers', coverage, time and memory."""
        place = str(self.folder / f"case{number}")
        given = {"table": case.table, "folder": place, "seeds": self.seeds, **table}
        options = {**case.options, **(QUICK if self.quick else {})}
        made = [
            run("marginals_work:published", **given | {"seeds": [seed]}, **options)
            for seed in self.seeds
        ]
        ours = run("marginals_work:compared", **given, sample=20 if self.quick else 200)
        yield from mean_errors(case, ours, self.peer_errors(case, place, **table))
        yield from coverage(case, ours)
        yield from spent(case, made)
        if number == 0 and not self.quick:
            yield self.question(place)

    def peer_errors(self, case: Case, release: str, **names: Any) -> dict[str, dict[str, Any]]:
        """Errors of the rows of each peer for the same table and promise."""
        found: dict[str, dict[str, Any]] = {}
        if not case.pure and not self.quick:
            truth, sizes = self.exported(case.table, release, **names)
            for name in PEERS:
                if made := self.peer_rows(name, truth, sizes, case.epsilon):
                    rows, outcome = made
                    task = "marginals_work:rows_compared"
                    value = run(task, rows=rows, truth=truth, sizes=sizes).value
                    found[name] = {**value, **outcome.value, "peak": outcome.peak}
        for name, (every, large) in case.before.items():
            found[f"{name} ({BEFORE})"] = {"every": every, "large": large}
        return found

    def exported(self, table: str, release: str, **names: Any) -> tuple[str, list[int]]:
        """The true rows in codes, for the peers."""
        to, schema = f"{release}-truth.npy", f"{release}/seed{self.seeds[0]}"
        done = run("marginals_work:export", table=table, to=to, schema_of=schema, **names)
        return to, done.value["sizes"]

    def peer_rows(
        self, name: str, truth: str, sizes: list[int], epsilon: float
    ) -> tuple[str, Outcome] | None:
        """The file of a peer's rows; None where it is not there or did not end well."""
        environment, task = PEERS[name]
        python = self.interpreter(environment)
        if python is None:
            return None
        to = f"{truth.removesuffix('.npy')}-{name}.npy"
        try:
            done = run_by(
                python, task, rows=truth, sizes=sizes, epsilon=epsilon, delta=DELTA, seed=1, to=to
            )
        except TaskError:
            return None
        return to, done

    def question(self, place: str) -> Result:
        """Milliseconds of a count, processor time."""
        done = run("marginals_work:asked", folder=place, seed=self.seeds[0], times=10)
        return Result(
            name=NAME, what="Adult, 9: a count, CPU, median", unit="ms",
            ours=done.value["median"], others=done.others, peak_memory=done.peak,
            details=done.value,
        )  # fmt: skip

    # ------------------------------------------------------------------ rows

    def rows(self) -> Iterator[Result]:
        """Synthetic rows of Adult at ε = 1: the tables they make, and what is learnt from them."""
        place = str(self.folder / "case0")
        if not self.quick:
            place = str(self.folder / "case1")
        truth, sizes = self.exported(BOUNDARY, place)
        files = {"ours": f"{place}-ours.npy", "bootstrap": f"{place}-bootstrap.npy"}
        run("marginals_work:drawn", folder=place, seed=self.seeds[0], to=files["ours"])
        run("marginals_work:resampled", rows=truth, seed=1, to=files["bootstrap"])
        for name in PEERS:
            to = f"{truth.removesuffix('.npy')}-{name}.npy"
            if Path(to).exists():
                files[name] = to
        task = "marginals_work:rows_compared"
        found = {n: run(task, rows=f, truth=truth, sizes=sizes).value for n, f in files.items()}
        for name in files:
            if name != "ours":
                yield rows_line("variation of 3-way tables", found, name, "variation")
        python = self.interpreter("mbi")
        if python is not None and not self.quick:
            yield from self.learnt(python, truth, files)

    def learnt(self, python: Path, truth: str, files: dict[str, str]) -> Iterator[Result]:
        """A classifier of the salary from each kind of rows, tried on rows that were held out."""
        test = str(self.folder / "held-out.npy")
        schema = truth.removesuffix("-truth.npy") + f"/seed{self.seeds[0]}"
        names = run("marginals_work:export", table=HELD_OUT, to=test, schema_of=schema).value[
            "names"
        ]
        done = run_by(
            python, "marginals_peers_work:classify",
            train={**files, "the true rows": truth}, test=test,
            target=names.index("salary"), ordered=[names.index("age")],
        )  # fmt: skip
        found = done.value["found"]
        for name in found:
            if name != "ours":
                yield rows_line("accuracy of a classifier", found, name, "accuracy")
        for name in found:
            if name != "ours":
                yield rows_line("its area under ROC", found, name, "auc")

    # ------------------------------------------------------------------ wide tables

    def wide(self) -> Iterator[Result]:
        """A hundred columns of ten values."""
        columns, rows = (8, 2000) if self.quick else (100, 1_000_000)
        table, to = str(self.folder / "wide.parquet"), str(self.folder / "wide")
        run("marginals_work:wide_table", rows=rows, columns=columns, values=10, to=table)
        done = run("marginals_work:wide_published", table=table, to=to, epsilon=1.0, delta=DELTA)
        errors = run("marginals_work:wide_compared", table=table, release=to, sample=5)
        what = f"{columns} × {rows:,}, ε 1"
        cpu = done.value["cpu"]
        yield Result(
            name=NAME, what=f"{what}: publishing, CPU", unit="s", ours=cpu, peer=WIDE_SECONDS,
            peer_name="the limit", aim="≤ 1 ×", met=cpu <= WIDE_SECONDS, peak_memory=done.peak,
            others=done.others, details={**done.value, "errors": errors.value},
        )  # fmt: skip
        yield memory_limit(NAME, what, done.peak, WIDE_MEMORY)
        for order in (1, 2, 3):
            yield Result(
                name=NAME, unit="%", ours=100 * errors.value[f"columns_{order}"]["median"],
                what=f"{what}: median error, cells ≥ 1 %, order {order}",
                details=errors.value[f"columns_{order}"],
            )  # fmt: skip


# ---------------------------------------------------------------------- lines


def mean_errors(
    case: Case, ours: Outcome, peers: Mapping[str, Mapping[str, Any]]
) -> Iterator[Result]:
    """Mean errors over all selections and over large counts, and the total variation."""
    value = ours.value
    beside = list(peers.items()) or [("", {})]
    measures = (
        ("every", f"mean error, {value['queries']:,} counts", case.every),
        ("large", "mean error, counts ≥ 500", case.large),
        ("variation", "variation of 3-way tables", None),
    )
    for number, (name, peer) in enumerate(beside):
        for measure, what, aim in measures:
            percent = 100 if measure == "variation" else 1
            stated = None if number else aim
            theirs = peer.get(measure)
            if number and theirs is None:
                continue
            yield Result(
                name=NAME,
                what=f"{case.title}: {what}",
                unit="%" if measure == "variation" else "rows",
                ours=percent * value[measure],
                peer=None if theirs is None else percent * theirs,
                peer_name=name if theirs is not None else "",
                aim="" if stated is None else f"≤ {stated:g} rows",
                met=None if stated is None else value[measure] <= stated,
                others=ours.others,
                details=details(value, peer) if measure == "every" else {},
            )


def details(value: Mapping[str, Any], peer: Mapping[str, Any]) -> dict[str, Any]:
    """What is behind a mean error."""
    kept = ("rows", "sizes", "model", "unbiased", "products", "order", "off", "coverage",
            "coverage_by_estimate")  # fmt: skip
    return {name: value[name] for name in kept} | {"peer": dict(peer)}


def coverage(case: Case, ours: Outcome) -> Iterator[Result]:
    """The least and the largest share of true counts in their intervals, over sizes."""
    for key, of in (("coverage", "true count"), ("coverage_by_estimate", "estimate")):
        found: dict[str, float] = ours.value[key]
        low, high = COVERED
        for name, share, met, aim in (
            (*least(found), min(found.values()) >= low, f"≥ {low:.0%}"),
            (*most(found), max(found.values()) <= high, f"≤ {high:.0%}"),
        ):
            yield Result(
                name=NAME, what=f"{case.title}: 0.95 covers, {of} {name}", unit="%",
                ours=100 * share, peer=95.0, peer_name="stated", aim=aim, met=met, details=found,
            )  # fmt: skip


def least(found: Mapping[str, float]) -> tuple[str, float]:
    """The class of sizes with the least coverage."""
    return min(found.items(), key=lambda one: one[1])


def most(found: Mapping[str, float]) -> tuple[str, float]:
    """The class of sizes with the largest."""
    return max(found.items(), key=lambda one: one[1])


def spent(case: Case, made: Sequence[Outcome]) -> Iterator[Result]:
    """CPU seconds and memory of publishing, each in a process of its own; Adult has limits."""
    cpu = [one.value["cpu"][0] for one in made]
    peak = highest_peak(list(made))
    limited = case.table == BOUNDARY
    yield Result(
        name=NAME, what=f"{case.title}: publishing, CPU", unit="s", ours=min(cpu),
        peer=SECONDS if limited else None, peer_name="the limit" if limited else "",
        aim="≤ 1 ×" if limited else "", met=min(cpu) <= SECONDS if limited else None,
        peak_memory=peak, others=max(one.others for one in made), details={"cpu": cpu},
    )  # fmt: skip
    if limited:
        yield memory_limit(NAME, f"{case.title}: publishing", peak, MEMORY)


def rows_line(what: str, found: Mapping[str, Mapping[str, float]], name: str, key: str) -> Result:
    """Our rows beside others, at ε = 1."""
    return Result(
        name=NAME, what=f"rows of Adult, ε 1: {what}", unit="%",
        ours=100 * found["ours"][key], peer=100 * found[name][key],
        peer_name=f"{name} (not private)" if name in ("bootstrap", "the true rows") else name,
    )  # fmt: skip
