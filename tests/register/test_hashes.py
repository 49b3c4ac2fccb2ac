"""Keyed hashes: SipHash as published, the same with and without Numba, and of each value alone."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from voile.register import hashes
from voile.register.gathering import ColumnSet, Gathered, GatherRows, Looking, SketchSearch
from voile.register.hashes import Hashes, HashKeys, sip_hashes, sip_hashes_in_numpy, value_hashes
from voile.register.keys import FingerprintKey

KEYS = np.frombuffer(bytes(range(16)), np.uint64)
VECTORS = [
    "310e0edd47db6f72",
    "fd67dc93c539f874",
    "5a4fa9d909806c0d",
    "2d7efbd796666785",
    "b7877127e09427cf",
    "8da699cd64557618",
    "cee3fe586e46c9cb",
    "37d1018bf50002ab",
    "6224939a79f5f593",
    "b0e4a90bdf82009e",
    "f3b9dd94c5bb5d7a",
    "a7ad6b22462fb3f4",
    "fbe50e86bc8f1e75",
    "903d84c02756ea14",
    "eef27a8e90ca23f7",
    "e545be4961ca29a1",
]
"""SipHash-2-4 of the bytes 0, 1, …, n − 1 under the key 0, 1, …, 15: the authors' `vectors.h`."""
BOTH: dict[str, Callable[..., None]] = {"compiled": sip_hashes, "NumPy": sip_hashes_in_numpy}


def hashed(kernel: Callable[..., None], texts: list[bytes], keys: Hashes = KEYS) -> Hashes:
    data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    found = np.empty(len(texts), np.uint64)
    kernel(data, np.cumsum([0, *map(len, texts)]), keys, found)
    return found


@pytest.mark.parametrize("kernel", BOTH)
def test_the_published_vectors(kernel: str) -> None:
    texts = [bytes(range(length)) for length in range(len(VECTORS))]
    found = hashed(BOTH[kernel], texts)
    assert [one.tobytes().hex() for one in found.astype("<u8")] == VECTORS


def test_numpy_gives_what_machine_code_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of all lengths in any order, more than are hashed at once."""
    monkeypatch.setattr(hashes, "TEXTS_AT_ONCE", 100)
    rng = np.random.default_rng(1)
    lengths = [*range(80), 255, 256, 257, 5000, *rng.integers(0, 40, 1000).tolist()]
    texts = [rng.bytes(length) for length in rng.permutation(lengths)]
    keys = rng.integers(0, 2**64, 2, np.uint64)
    one, other = (hashed(kernel, texts, keys) for kernel in BOTH.values())
    assert np.array_equal(one, other)
    assert len(np.unique(one)) == len(set(texts))
    assert not np.array_equal(one, hashed(sip_hashes_in_numpy, texts, KEYS))
    assert len(hashed(sip_hashes_in_numpy, [])) == 0


# ---------------------------------------------------------------------- values


def of(values: list[Any], kind: pa.DataType) -> list[int]:
    found = value_hashes(pa.chunked_array([pa.array(values, kind)]), KEYS)
    assert found is not None
    return [int(each) for each in found]


COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "few texts": ([" Ulm", "ulm", None, "", "É", "é "] * 40, pa.string()),
    "different texts": ([f"x{i}" for i in range(240)], pa.string_view()),
    "numbers": ([1, 1, None, 7] * 60, pa.int64()),
    "floats": ([0.0, -0.0, 0.1, float("nan"), None] * 48, pa.float32()),
    "truths": ([True, False, None] * 80, pa.bool_()),
    "bytes": ([b"a", b"A ", b"\xff", None] * 60, pa.binary()),
    "different bytes": ([bytes([i]) for i in range(240)], pa.binary()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_value_has_its_hash_whatever_stands_beside_it(name: str) -> None:
    values, kind = COLUMNS[name]
    assert of(values, kind) == [of([value], kind)[0] for value in values]


def test_what_counts_as_the_same_value() -> None:
    assert of([" Ulm", "ULM"], pa.string()) == of(["ulm"], pa.string()) * 2
    assert of([0.0, -0.0], pa.float64()) == of([0.0], pa.float64()) * 2
    assert of([None, ""], pa.string()) == of([None], pa.int64()) * 2
    assert of([12], pa.int16()) == of([12], pa.int64()) == of(["12"], pa.large_string())
    moment = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
    zones = [of([moment], pa.timestamp(unit, zone))
             for unit in ("s", "us", "ns") for zone in ("UTC", "+02:00")]  # fmt: skip
    assert all(one == zones[0] for one in zones)
    assert of([moment.replace(tzinfo=None)], pa.timestamp("ms")) == zones[0]
    assert len({*of(["a", "b", "a b", "1", "1.0", None], pa.string())}) == 6


# ---------------------------------------------------------------------- parts


def test_parts_in_any_order_come_to_the_whole() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"a": rng.integers(0, 90, 5000), "b": rng.integers(0, 90, 5000)})
    keys = HashKeys.of(FingerprintKey(b"k" * 32))
    names = np.array([5, 9], np.uint64)
    whole = hashes_of(table, keys, names)
    wanted = np.sort(np.concatenate([whole[::50], rng.integers(0, 2**64, 50, np.uint64)]))
    sets = [ColumnSet((0, 1), np.unique(wanted)), ColumnSet((1,), np.unique(wanted))]
    secrets, job = SketchSearch.of(keys, names, sets).secrets(), GatherRows()
    known = job([table], secrets)
    cuts = [0, 1, 1, 700, 701, 4000, 5000]
    parts = [job([table.slice(a, b - a)], secrets) for a, b in itertools.pairwise(cuts)]
    parts.append(job([], secrets))
    for order in (parts, parts[::-1]):
        assert job.merged(order) == known
    assert job.merged(parts[:-2]) != known
    found = Gathered.unpack(known)
    assert found.rows == 5000 and found.ends == [(0, 89), (0, 89)]
    assert found.seen[0].tolist() == np.isin(sets[0].wanted, whole).tolist()
    assert found.seen[0].any() and not found.seen[0].all() and not found.seen[1].any()
    smallest, counts = np.unique(whole, return_counts=True)
    assert np.array_equal(found.samples[0].hashes, smallest[:1024])
    assert np.array_equal(found.samples[0].counts, counts[:1024])


def hashes_of(table: pa.Table, keys: HashKeys, names: Hashes) -> Hashes:
    """The hash of each row, one row at a time."""
    found = []
    for row in range(table.num_rows):
        looking = Looking(SketchSearch.of(keys, names, [ColumnSet((0, 1))]))
        looking.look(table.slice(row, 1))
        found.append(looking.found.samples[0].hashes)
    return np.concatenate(found)
