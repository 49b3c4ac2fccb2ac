"""Classes of rows: Mondrian, full-domain generalization and risk, ours and the peers'."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import voile
from bench.child import peak_so_far
from voile.privacy.requirements import requirements_of
from voile.recoding import Grouping, Units
from voile.recoding.mondrian import mondrian
from voile.recoding.units import units_of_rows

QI = ("age", "workclass", "education", "marital_status", "race", "sex", "native_country")
SENSITIVE = "occupation"
CHANGED = 0.1
"""Rows beyond Adult's are copies in which each value is drawn anew with this chance."""
HERE = "dataset:adult"


def adult(rows: int | None) -> pd.DataFrame:
    """Complete rows of Adult, or as many that are like them."""
    source = voile.read(HERE).rows([*QI, SENSITIVE], drop_nulls=True)[0].to_pandas()
    if rows is None:
        return source
    rng = np.random.default_rng(1)
    found = source.iloc[rng.integers(0, len(source), rows)].reset_index(drop=True)
    for name in QI:
        changed = rng.random(rows) < CHANGED
        found.loc[changed, name] = source[name].to_numpy()[
            rng.integers(0, len(source), int(changed.sum()))
        ]
    return found


def timed(task: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds and seconds of a task, and what it gave."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = task()
    return time.process_time() - cpu, time.perf_counter() - wall, found


# ---------------------------------------------------------------------- ours


def ours(*, rows: int | None, times: int, **requested: Any) -> dict[str, Any]:
    """From a data frame to the generalized table, with a register that knows no other table.

    `before` is the peak of memory with the data frame made, and nothing done with it yet.
    """
    frame = adult(rows)
    before = peak_so_far()
    options: dict[str, Any] = {"qi": list(QI), "sensitive": SENSITIVE, **requested}
    with TemporaryDirectory() as folder:
        options["register"] = f"{folder}/register.db"
        voile.generalize(frame.iloc[:2000], **{**options, "k": 50})  # compiled, and kept on disk
        tries = [timed(lambda: voile.generalize(frame, **options)) for _ in range(times)]
    cpu, wall, made = min(tries, key=lambda found: found[0])
    return {
        "rows": len(frame),
        "cpu": cpu,
        "wall": wall,
        "classes": made.classes,
        "before": before,
    }


def mondrian_alone(
    *, rows: int | None, times: int, cuts: Any = "median", **requested: Any
) -> dict[str, Any]:
    """Mondrian on codes, without reading or writing."""
    frame = adult(rows)
    codes = {name: coded(frame[name]) for name in (*QI, SENSITIVE)}
    units, _ = units_of_rows(
        [codes[name][0] for name in QI],
        [codes[name][1] for name in QI],
        [codes[SENSITIVE][0]],
        [codes[SENSITIVE][1]],
    )
    requested = {name: value for name, value in requested.items() if value is not None}
    requirements = requirements_of([SENSITIVE], [codes[SENSITIVE][1]], **requested)
    mondrian(units, requirements, cuts=cuts)
    cpu, wall, found = min(
        (timed(lambda: mondrian(units, requirements, cuts=cuts)) for _ in range(times)),
        key=lambda t: t[0],
    )
    return {
        "rows": len(frame),
        "cpu": cpu,
        "wall": wall,
        "classes": found.grouping.number,
        "units": len(units.weights),
        "gen_iloss": box_loss(units, found.grouping),
    }


def coded(column: pd.Series) -> tuple[Any, int]:
    """Places of values: numbers from the least to the largest, others by frequency, as ours are."""
    if column.dtype.kind == "i":
        return (column - column.min()).to_numpy(), int(column.max() - column.min()) + 1
    place = {value: number for number, value in enumerate(column.value_counts().index)}
    return column.map(place).to_numpy().astype(np.int64), len(place)


def box_loss(units: Units, grouping: Grouping) -> float:
    """Mean over cells of (high − low)/(size − 1)."""
    rows = grouping.histograms(units).rows
    wide = (grouping.high - grouping.low) / (np.array(units.sizes) - 1)
    return float((wide * rows[:, None]).sum() / rows.sum() / len(units.sizes))


def our_risk(*, rows: int | None, times: int) -> dict[str, Any]:
    """CPU seconds of `risk`."""
    from voile.evaluate.risk import risk

    frame = adult(rows)
    options: dict[str, Any] = {"qi": list(QI), "sensitive": [SENSITIVE], "largest": 1}
    risk(frame.iloc[:2000], **options)
    cpu, wall, found = min(
        (timed(lambda: risk(frame, **options)) for _ in range(times)), key=lambda t: t[0]
    )
    return {"rows": len(frame), "cpu": cpu, "wall": wall, "k": found.to_dict()["k"]}


# ---------------------------------------------------------------------- the peers


def anjana(*, rows: int | None, k: int, l: int | None = None, t: float | None = None) -> dict[str, Any]:  # noqa: E741,E501  # fmt: skip
    """The same request to anjana, with Voile's hierarchies."""
    from anjana.anonymity import k_anonymity, l_diversity, t_closeness

    with warnings.catch_warnings():  # it knows no other texts than objects, as pandas 2 had them
        warnings.simplefilter("ignore")
        pd.set_option("future.infer_string", False)
    frame = adult(rows)
    ladder = hierarchies(frame)
    texts = [name for name in (*QI, SENSITIVE) if frame[name].dtype.kind != "i"]
    frame = frame.astype(dict.fromkeys(texts, object))
    first = [frame, [], list(QI)]

    def run() -> pd.DataFrame:
        if t is not None:
            return t_closeness(*first, SENSITIVE, k, t, 0, ladder)
        if l is not None:
            return l_diversity(*first, SENSITIVE, k, l, 0, ladder)
        return k_anonymity(*first, k, 0, ladder)

    cpu, wall, made = timed(run)
    leaves = {
        name: {label: len(set(frame[name]) & members) for label, members in groups(steps).items()}
        for name, steps in ladder.items()
    }
    loss = gen_iloss(frame, made, lambda name, text: leaves[name][text])
    classes = len(made.groupby(list(QI), observed=True))
    return {"rows": len(frame), "cpu": cpu, "wall": wall, "classes": classes, "gen_iloss": loss}


def hierarchies(frame: pd.DataFrame) -> dict[str, dict[int, Any]]:
    """Voile's hierarchies of Adult, as anjana takes them."""
    from voile.hierarchies import read_hierarchies

    schema = voile.read(frame).infer([*QI], "error")
    levels = read_hierarchies({}, schema, HERE)
    return {
        name: {level: np.array(column, dtype=object) if level else typed(frame[name], column)
               for level, column in enumerate(zip(*levels[name].paths(), strict=True))}
        for name in QI
    }  # fmt: skip


def typed(values: pd.Series, texts: tuple[str, ...]) -> Any:
    """A column's labels in its own type."""
    return np.array([int(t) for t in texts]) if values.dtype.kind == "i" else np.array(texts)


def groups(steps: dict[int, Any]) -> dict[Any, set[Any]]:
    """The leaves below every label of a hierarchy."""
    found: dict[Any, set[Any]] = {}
    for labels in steps.values():
        for leaf, label in zip(steps[0], labels, strict=True):
            found.setdefault(label, set()).add(leaf)
    return found


def anonypy(*, rows: int | None, k: int) -> dict[str, Any]:
    """The same request to anonypy's Mondrian."""
    from anonypy import Preserver

    frame = adult(rows)
    for name in (*QI, SENSITIVE):
        if frame[name].dtype.kind != "i":
            frame[name] = frame[name].astype("category")
    preserver = Preserver(frame, list(QI), SENSITIVE)
    cpu, wall, found = timed(lambda: preserver.anonymize_k_anonymity(k))
    made = pd.DataFrame(found)
    for name in QI:  # it puts each text into a list
        made[name] = made[name].map(lambda texts: ",".join(map(str, texts)))
    made = made.loc[made.index.repeat(made["count"])]
    classes = len(made.groupby(list(QI), observed=True))
    loss = gen_iloss(frame, made, lambda _, text: commas(text))
    return {"rows": len(frame), "cpu": cpu, "wall": wall, "classes": classes, "gen_iloss": loss}


def pycanon(*, rows: int | None) -> dict[str, Any]:
    """k, ℓ and t of pycanon's report, one after the other."""
    from pycanon import anonymity as measure

    frame = adult(rows)
    sides = (frame, list(QI), [SENSITIVE])

    def run() -> int:
        measure.l_diversity(*sides)
        measure.entropy_l_diversity(*sides)
        measure.t_closeness(*sides)
        return int(measure.k_anonymity(frame, list(QI)))

    cpu, wall, k = timed(run)
    return {"rows": len(frame), "cpu": cpu, "wall": wall, "k": k}


# ---------------------------------------------------------------------- the loss of any of them


def gen_iloss(frame: pd.DataFrame, made: pd.DataFrame, count: Callable[[str, Any], int]) -> float:
    """Mean over cells of (values that a cell may stand for − 1)/(values of the column − 1).

    Values of a number are all from the least to the largest; `count` gives a text's.
    """
    lost = []
    for name in QI:
        number = frame[name].dtype.kind == "i"
        size = int(frame[name].max() - frame[name].min() + 1) if number else frame[name].nunique()
        wide = made[name].map(lambda text, name=name: count(name, text))
        if number:
            wide = made[name].map(lambda text, size=size: spread(text, size))
        lost.append(float((wide - 1).mean()) / (size - 1))
    return sum(lost) / len(lost)


def spread(text: Any, size: int) -> int:
    """How many whole numbers a range has."""
    if text == "*":
        return size
    first, _, last = str(text).partition("-")
    return int(last or first) - int(first) + 1


def commas(text: str) -> int:
    """How many different values a list with commas has."""
    return len(set(str(text).split(",")))


# ---------------------------------------------------------------------- the paper's releases


def paper(*, times: int) -> dict[str, Any]:
    """All groupings of Figure 2 of Li and Li, both ways, with both losses, and the reading."""
    from voile.evaluate.frontier.measuring import measure
    from voile.evaluate.frontier.portfolio import GRIDS, candidates
    from voile.evaluate.frontier.subject import read_subject

    tried = [
        candidate
        for candidate in candidates(["mondrian"], GRIDS["paper"])
        if candidate.asked.get("absent") != "ignored"
    ]

    def run() -> int:
        options: dict[str, Any] = {"sensitive": SENSITIVE, "qi": list(QI[:-1]), "min_support": 0.05}
        subject = read_subject("dataset:adult/frontier", **options)
        return sum(len(measure(subject, candidate)) for candidate in tried)

    run()  # compiled, and kept on disk
    cpu, wall, releases = min((timed(run) for _ in range(times)), key=lambda found: found[1])
    return {"cpu": cpu, "wall": wall, "releases": releases}
