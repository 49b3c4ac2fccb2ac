"""Sequences of arrays, cut and joined."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voile.arrays import gathered, in_groups, parts_of_groups

LENGTHS = st.lists(st.integers(0, 9), max_size=8)


@given(lengths=LENGTHS, size=st.integers(1, 12))
def test_groups_are_the_same_sequence_cut_by_count_alone(lengths: list[int], size: int) -> None:
    whole = np.arange(sum(lengths))
    batches = np.split(whole, np.cumsum(lengths)[:-1]) if lengths else []
    groups = list(in_groups(iter(batches), size))
    assert [key for group in groups for key in group.tolist()] == whole.tolist()
    assert [len(group) for group in groups[:-1]] == [size] * (len(groups) - 1)
    assert all(0 < len(group) <= size for group in groups)
    parts = [np.concatenate(parts).tolist() for parts in parts_of_groups(iter(batches), size)]
    assert parts == [group.tolist() for group in groups]


@given(lengths=LENGTHS, room=st.integers(0, 20))
def test_batches_are_gathered_whatever_the_room(lengths: list[int], room: int) -> None:
    batches = [np.arange(length, dtype=np.uint64) + np.uint64(7) for length in lengths]
    found = gathered(iter(batches), room, np.dtype(np.uint64))
    assert found.dtype == np.uint64
    assert found.tolist() == [key for batch in batches for key in batch.tolist()]
