"""What is shipped to executors runs with NumPy, Arrow and cryptography alone, and gives the same.

Everything that this module imports must be importable there.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import voile.engines
from tests.support.paths import ROOT
from voile.arrow import arrow_array
from voile.engines.encode import clamped, codes
from voile.kinds.parquet import write_part
from voile.kinds.perturbed.retention import ColumnNoise, WholeRows
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.shaped import Shaped
from voile.noise import Key
from voile.register.gathering import ColumnSet, GatherRows, SketchSearch
from voile.schema import Attribute, Bins, Interval, Range, Schema, TupleIndex, Values
from voile.schema.index import FEW, Product, code_type, whole_parts

ABSENT = (
    "adbc_driver_sqlite", "annotated_types", "bcrypt", "duckdb", "numba", "opt_einsum", "pandas",
    "polars", "prompt_toolkit", "pydantic", "pydantic_core", "rich", "scipy", "sklearn", "sqlglot",
    "typer", "yaml",
)  # fmt: skip
"""What executors need not have."""

WITHOUT = f"""
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Absent)
"""
"""Makes them absent. None in sys.modules would do, were it not that Arrow takes it for pandas."""

SCHEMA = Schema(
    (
        Attribute("age", "integer", Range(17, 90), null=True),
        Attribute("sex", "categorical", Values(("Female", "Male", "O'Hara"))),
        Attribute("income", "numeric", Bins((0.0, 10.0, 50.0, 1000.0))),
        Attribute("member", "boolean", Values((False, True)), null=True),
        Attribute("day", "date", Range(dt.date(2024, 1, 1), dt.date(2024, 12, 30))),
        Attribute("share", "numeric", Interval(0.0, 1.0, 0.01)),
    )
)
INDEX = TupleIndex(SCHEMA.sizes)
KEY = Key.from_seed(3)


def members(count: int) -> Any:
    """Some records, as sorted keys without repetitions."""
    rng = np.random.default_rng(3)
    return np.unique(INDEX.encode([rng.integers(0, a.size, count) for a in SCHEMA]))


def prior() -> Product:
    """Likely and unlikely values in two columns, all alike in the others."""
    listed = {"sex", "income"}
    return Product(
        tuple(whole_parts(range(1, a.size + 1)) if a.name in listed else None for a in SCHEMA)
    )


def written_view(folder: Path, mechanism: AlphaBeta | Shaped) -> bytes:
    """A view whose ranges are perturbed one by one, as the bytes of its file."""
    path, keys, batches = folder / "part.parquet", members(3000), list[Any]()
    cuts = mechanism.cuts(INDEX, 30_000)
    for number, (first, last) in enumerate(pairwise(cuts)):
        noise = mechanism.noise_rows(INDEX, KEY, number, first, last)
        inside = keys[(keys >= np.uint64(first)) & (keys < np.uint64(last))]
        batches += mechanism.view(inside, noise, KEY, number)
    assert write_part(path, SCHEMA, batches) > FEW  # so that compiled loops decode them
    return path.read_bytes()


def perturbed(noise: ColumnNoise) -> bytes:
    """A perturbed column."""
    column = np.random.default_rng(5).integers(0, noise.size, 50_000).astype(code_type(noise.size))
    return noise.perturb(column, KEY.stream("column")).tobytes()


def whole_rows() -> bytes:
    """Rows that are kept or replaced as a whole."""
    sizes, rng = (5, 300, 2**28 + 1), np.random.default_rng(5)
    columns = [rng.integers(0, size, 50_000).astype(code_type(size)) for size in sizes]
    found = WholeRows(0.4, sizes).perturb(columns, KEY.stream("rows"))
    return b"".join(column.tobytes() for column in found)


def encoded() -> bytes:
    """Columns of every kind as codes, with values outside and NULLs."""
    day = dt.date(2024, 1, 1)
    columns = {
        "age": pa.array([3, 17, None, 99], pa.int64()),
        "sex": pa.array(["Male", "Female", "?", "O'Hara"]),
        "income": arrow_array(np.array([-5.0, 10.0, 49.9, 1e9])),
        "member": pa.array([True, None, False, True]),
        "day": pa.array([day, day - dt.timedelta(1), dt.date(2030, 1, 1), day], pa.date32()),
        "share": arrow_array(np.array([0.123, 1.5, -1.0, 0.5])),
    }
    found = [codes(clamped(columns[a.name], a), a) for a in SCHEMA]
    assert all((code >= 0).sum() >= 3 for code in found)
    return np.stack(found).tobytes()


def fingerprint() -> bytes:
    """What the register's fingerprint gathers of rows of several types."""
    rng = np.random.default_rng(7)
    table = pa.table({
        "age": arrow_array(rng.integers(0, 99, 9000)), "income": arrow_array(rng.random(9000)),
        "town": pa.array([f"Town {i % 700}" for i in range(9000)]),
    })  # fmt: skip
    columns = np.array([3, 5, 7], np.uint64)
    search = SketchSearch(
        np.array([1, 2], np.uint64), np.uint64(3), columns, [ColumnSet((0, 1, 2))]
    )
    return GatherRows()([table], search.secrets())


def results(folder: Path) -> dict[str, str]:
    """The hash of what each piece of work gives."""
    declared = ColumnNoise(4, 0.3, "declared", (1, 2, 3, 2**40))
    works: dict[str, Callable[[], bytes]] = {
        "even set": lambda: written_view(folder, AlphaBeta(0.5, 0.004, "set")),
        "even multiset": lambda: written_view(folder, AlphaBeta(0.5, 0.004)),
        "shaped": lambda: written_view(folder, Shaped(0.5, 0.002, 5e4, 0.05, prior(), INDEX.sizes)),
        "uniform column": lambda: perturbed(ColumnNoise(7, 0.4)),
        "wide column": lambda: perturbed(ColumnNoise(2**28 + 1, 0.4)),
        "declared column": lambda: perturbed(declared),
        "column with its own values": lambda: perturbed(ColumnNoise(7, 0.4, "identity")),
        "whole rows": whole_rows,
        "encoded": encoded,
        "fingerprint": fingerprint,
    }
    assert voile.engines.__all__
    return {name: hashlib.sha256(work()).hexdigest() for name, work in works.items()}


def test_executors_need_few_packages_and_give_the_same(tmp_path: Path) -> None:
    code = (
        f"{WITHOUT}from pathlib import Path; from tests.engines.test_executors import results;"
        "import json; print(json.dumps(results(Path(sys.argv[1]))))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
        check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == results(tmp_path)
