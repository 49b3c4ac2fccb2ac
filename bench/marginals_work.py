"""Noisy marginals published, asked, drawn from, and compared with the truth."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import voile
from voile.answering import evidence
from voile.arrays import Floats, Ints
from voile.engines import connect
from voile.engines.encode import OUTSIDE, codes
from voile.evaluate.workload import Selections, selection_counts
from voile.kinds.marginals.publishing import measure_table
from voile.kinds.marginals.release import MarginalRelease
from voile.schema import Schema

LARGE = 500
"""Counts from here on are averaged on their own."""
EDGES = (0, 1, 5, 20, 100, 500, 2000, math.inf)
"""Counts between which coverage is taken apart."""
CLASSES = ("< 1", "1–5", "5–20", "20–100", "100–500", "500–2000", "≥ 2000")
QUESTIONS = (
    "age = 30 AND sex = 'Male'",
    "education = 'Bachelors' AND salary = '>50K' AND race = 'White'",
    "age BETWEEN 30 AND 39 AND occupation = 'Sales'",
    "age < 40 AND sex = 'Female' AND workclass = 'Private' AND native_country <> 'Mexico'",
)
"""On up to four of Adult's columns, each timed alone."""


# ---------------------------------------------------------------------- tables


def table_of(table: str, names: Sequence[str] | None = None, rows: int | None = None) -> Any:
    """A table by name, or a file of codes as a table of whole numbers."""
    if not table.endswith(".npy"):
        return table
    found = np.load(table)[:rows]
    given = names or [f"c{i}" for i in range(found.shape[1])]
    return pa.table(dict(zip(given, found.T, strict=True)))


def coded_rows(table: Any, schema: Schema) -> Ints:
    """All rows in codes of the schema, (rows, columns); those outside of it are left out."""
    found = connect(table).rows(schema.names, drop_nulls=True)[0].combine_chunks()
    return codes_of(found, schema)


def codes_of(rows: Any, schema: Schema) -> Ints:
    """Arrow rows as codes."""
    columns = [codes(rows.column(a.name).combine_chunks(), a) for a in schema]
    found = np.stack(columns, axis=1)
    return np.asarray(found[(found != OUTSIDE).all(axis=1)])


def export(
    *, table: str, to: str, schema_of: str, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Rows in the codes of a release, for the peers."""
    schema = voile.open(schema_of).schema
    found = coded_rows(table_of(table, names), schema)
    np.save(to, found)
    return {"rows": len(found), "sizes": list(schema.sizes), "names": list(schema.names)}


# ---------------------------------------------------------------------- publishing


def published(
    *, table: str, folder: str, seeds: Sequence[int], names: Sequence[str] | None = None,
    rows: int | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """A release for each seed, with the processor seconds of publishing it."""
    source = table_of(table, names, rows)
    Path(folder).mkdir(exist_ok=True)
    spent = []
    for seed in seeds:
        wall, cpu = time.perf_counter(), time.process_time()
        measure_table(
            source, schema="active", simulate_seed=seed, to=place(folder, seed), **options
        )
        spent.append((time.process_time() - cpu, time.perf_counter() - wall))
    return {"cpu": [one[0] for one in spent], "wall": [one[1] for one in spent]}


def place(folder: str, seed: int) -> Path:
    """Where the release of a seed is."""
    return Path(folder) / f"seed{seed}"


def opened(folder: str, seed: int) -> MarginalRelease:
    """The release of a seed."""
    release = voile.open(place(folder, seed))
    assert isinstance(release, MarginalRelease)
    return release


# ---------------------------------------------------------------------- all counts of a release


def compared(
    *, table: str, folder: str, seeds: Sequence[int], sample: int,
    names: Sequence[str] | None = None, rows: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Errors and coverage of every selection of up to three attributes, means over the seeds."""
    source = table_of(table, names, rows)
    schema = opened(folder, seeds[0]).schema
    true = selection_counts(list(coded_rows(source, schema).T), schema.sizes)
    each = []
    for seed in seeds:
        release = opened(folder, seed)
        answers = all_answers(release, true)
        value, low, high = answers
        model = np.concatenate([release.model.mixture.table(s).ravel() for s in true.subsets])
        each.append(
            {
                **errors(value, true),
                "model": errors(model, true),
                "unbiased": errors(unbiased(release, true), true),
                "products": release.manifest.model.products,
                "order": release.manifest.parameters.order,
                "coverage": covered(true.counts, true.counts, low, high),
                "coverage_by_estimate": covered(value, true.counts, low, high),
                "off": farthest(release, true, answers, sample, seed),
            }
        )
    return {"queries": len(true), "rows": rows_in(true), "sizes": schema.sizes, **means(each)}


def all_answers(release: MarginalRelease, true: Selections) -> tuple[Floats, Floats, Floats]:
    """Estimate and interval of every selection: each table is one query, a group for each cell."""
    usual, evidence.MOST_GROUPS = evidence.MOST_GROUPS, 10**7
    try:
        parts = [grouped(release, subset) for subset in true.subsets]
    finally:
        evidence.MOST_GROUPS = usual
    value, low, high = np.concatenate(parts, axis=1)
    return value, low, high


def grouped(release: MarginalRelease, subset: tuple[int, ...]) -> Floats:
    """(3, cells): estimate, low and high of every cell of a table, in the order of codes."""
    attributes = [release.schema.attributes[i] for i in subset]
    listed = ", ".join(quoted(a.name) for a in attributes)
    answer = release.query(f"SELECT {listed}, count(*) AS answer FROM t GROUP BY {listed}")
    found = answer.to_arrow().combine_chunks()
    at = [codes(found.column(a.name).combine_chunks(), a) for a in attributes]
    shape = [a.size for a in attributes]
    cell = np.ravel_multi_index(at, shape)
    assert len(cell) == math.prod(shape)
    result = np.empty((3, len(cell)))
    for number, name in enumerate(("answer", "answer_low", "answer_high")):
        result[number, cell] = found.column(name).to_numpy()
    return result


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def unbiased(release: MarginalRelease, true: Selections) -> Floats:
    """The same from the tables alone; nothing is known of those that were not measured."""
    measured = release.noisy.plan.variances
    parts = [
        release.noisy.table(s).ravel()
        if s in measured
        else np.full(math.prod(true.sizes[i] for i in s), np.nan)
        for s in true.subsets
    ]
    return np.concatenate(parts)


def errors(value: Floats, true: Selections) -> dict[str, float]:
    """Mean errors of all counts and of large ones, and the total variation of 3-way tables."""
    wrong = np.abs(value - true.counts)
    return {
        "every": float(np.nanmean(wrong)) if np.isfinite(wrong).any() else math.nan,
        "large": mean_where(wrong, true.counts >= LARGE),
        "variation": variation(wrong, true),
    }


def mean_where(values: Floats, where: npt.NDArray[np.bool_]) -> float:
    """The mean of some; NaN where there are none."""
    found = values[where & np.isfinite(values)]
    return float(found.mean()) if len(found) else math.nan


def variation(wrong: Floats, true: Selections) -> float:
    """Half the sum of errors of a table of three columns, as a share of the rows; the mean."""
    cells = [math.prod(true.sizes[i] for i in s) for s in true.subsets]
    starts = np.cumsum([0, *cells])
    found = [
        wrong[starts[i] : starts[i + 1]].sum() / 2
        for i, s in enumerate(true.subsets)
        if len(s) == min(3, len(true.sizes))
    ]
    return float(np.mean(found)) / rows_in(true)


def rows_in(true: Selections) -> int:
    """How many rows there are: the sum of the first table."""
    return int(true.counts[: true.sizes[0]].sum())


def covered(sizes: npt.NDArray[Any], truth: Ints, low: Floats, high: Floats) -> dict[str, Any]:
    """How often the interval has the truth, by size."""
    inside = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    which = np.digitize(sizes, EDGES)
    found = {}
    for i, name in enumerate(CLASSES, 1):
        if (which == i).any():
            found[name] = float(inside[which == i].mean())
    return found


def farthest(
    release: MarginalRelease,
    true: Selections,
    answers: tuple[Floats, Floats, Floats],
    sample: int,
    seed: int,
) -> float:
    """How far single queries are from the same cells of grouped ones: nothing but rounding."""
    rng = np.random.default_rng(seed)
    large = rng.permutation(np.flatnonzero(true.counts >= 20))[: sample // 2]
    some = np.concatenate([large, rng.integers(0, len(true), sample - len(large))])
    off = 0.0
    for index in some:
        condition = " AND ".join(
            f"{quoted(a.name)} = {literal(list(a)[code])}"
            for a, code in ((release.schema.attributes[i], c) for i, c in true.locate(int(index)))
        )
        found = release.query(f"SELECT count(*) AS answer FROM t WHERE {condition}").to_arrow()
        single = [found.column(f"answer{part}")[0].as_py() for part in ("", "_low", "_high")]
        off = max(off, *(abs(s - a[index]) for s, a in zip(single, answers, strict=True)))
    return off


def literal(value: Any) -> str:
    """A value in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else f"{value}"


def means(each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, part by part; and each seed."""
    return {**averaged(each), "seeds": list(each)}


def averaged(each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of every number; of coverages, where a class has counts."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for one in each for name in one):
        values = [one[name] for one in each if name in one]
        found[name] = averaged(values) if isinstance(values[0], dict) else float(np.mean(values))
    return found


# ---------------------------------------------------------------------- questions, one at a time


def asked(*, folder: str, seed: int, times: int) -> dict[str, Any]:
    """Milliseconds of a question on a release that is open: the median; and of the first one."""
    began = time.process_time()
    release = opened(folder, seed)
    release.query(f"SELECT count(*) FROM t WHERE {QUESTIONS[0]}")
    first = time.process_time() - began
    spent = []
    for _ in range(times):
        for condition in QUESTIONS:
            began = time.process_time()
            release.query(f"SELECT count(*) FROM t WHERE {condition}")
            spent.append(time.process_time() - began)
    return {"first": 1000 * first, "median": 1000 * float(np.median(spent))}


# ---------------------------------------------------------------------- rows


def drawn(*, folder: str, seed: int, to: str) -> dict[str, Any]:
    """Synthetic rows of a release as codes, with the processor seconds of drawing them."""
    release = opened(folder, seed)
    cpu = time.process_time()
    rows = release.rows()
    cpu = time.process_time() - cpu
    np.save(to, codes_of(rows.combine_chunks(), release.schema))
    return {"cpu": cpu, "rows": rows.num_rows}


def resampled(*, rows: str, seed: int, to: str) -> dict[str, Any]:
    """A plain bootstrap of the true rows: not private."""
    found = np.load(rows)
    np.save(to, found[np.random.default_rng(seed).integers(0, len(found), len(found))])
    return {"rows": len(found)}


def rows_compared(*, rows: str, truth: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Errors of the counts of synthetic rows."""
    true = selection_counts(list(np.load(truth).T), sizes)
    seen = selection_counts(list(np.load(rows).T), sizes).counts
    return errors(seen.astype(np.float64), true)


# ---------------------------------------------------------------------- wide tables


def wide_table(*, rows: int, columns: int, values: int, to: str, seed: int = 1) -> dict[str, Any]:
    """A Parquet file of correlated columns: cuts of sums of a few normal numbers."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(0, 1, (rows, 8)).astype(np.float32)
    found = {}
    for number in range(columns):
        loads = rng.normal(0, 1, 8) * (rng.random(8) < 0.4)
        score = hidden @ loads.astype(np.float32)
        score += rng.normal(0, 0.7, rows).astype(np.float32)
        cuts = np.quantile(score[:20_000], np.cumsum(rng.dirichlet(np.ones(values)))[:-1])
        place = rng.permutation(values)[np.searchsorted(cuts, score)]
        found[f"c{number:03}"] = place.astype(np.int8)
    pq.write_table(pa.table(found), to)
    return {"rows": rows, "bytes": Path(to).stat().st_size}


def wide_published(*, table: str, to: str, **options: Any) -> dict[str, Any]:
    """A wide table from its file to the release; which tables were chosen."""
    wall, cpu = time.perf_counter(), time.process_time()
    release = measure_table(table, schema="active", simulate_seed=1, to=to, **options).release
    spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    p = release.manifest.parameters
    return {
        **spent,
        "order": p.order,
        "tables": p.tables,
        "measurements": len(p.measurements),
        "products": release.manifest.model.products,
    }


def wide_compared(*, table: str, release: str, sample: int, seed: int = 1) -> dict[str, Any]:
    """Errors of cells with a hundredth of the rows, on one, two and three columns at random."""
    found = voile.open(release)
    assert isinstance(found, MarginalRelease)
    rng = np.random.default_rng(seed)
    result: dict[str, Any] = {}
    for order in (1, 2, 3):
        seen = [
            cells_of(table, found, tuple(sorted(rng.choice(len(found.schema.names), order, False))))
            for _ in range(sample)
        ]
        relative, inside = np.concatenate(seen, axis=1)
        result[f"columns_{order}"] = {
            "median": float(np.median(relative)),
            "covered": float(inside.mean()),
        }
    return result


def cells_of(table: str, release: MarginalRelease, subset: tuple[int, ...]) -> Floats:
    """(2, cells with a hundredth of the rows): the error beside the count, whether covered."""
    attributes = [release.schema.attributes[i] for i in subset]
    rows = pq.read_table(table, columns=[a.name for a in attributes]).combine_chunks()
    at = [codes(rows.column(a.name).combine_chunks(), a) for a in attributes]
    shape = [a.size for a in attributes]
    true = np.bincount(np.ravel_multi_index(at, shape), minlength=math.prod(shape))
    many = true >= 0.01 * rows.num_rows
    value, low, high = grouped(release, subset)[:, many]
    true = true[many]
    return np.stack([np.abs(value - true) / true, (low <= true) & (true <= high)])
