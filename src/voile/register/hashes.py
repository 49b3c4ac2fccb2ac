"""Keyed hashes of names, values and rows, by which rows are recognised.

They are computed where the rows lie: also on machines that have NumPy and Arrow alone. The hash of
a value depends on the value and the key, and on nothing that stands beside it.
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrow import numpy_array
from voile.compiled import compiled

if TYPE_CHECKING:
    from voile.register.keys import FingerprintKey

Hashes = npt.NDArray[np.uint64]
Shorts = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]

MISSING, ZERO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0)
TEXTS_AT_ONCE = 2**13
"""Texts that NumPy hashes at once: so many stay in the processor's cache."""
LOOKED_AT = 2**10
"""Values of a batch that tell whether values repeat."""


# ---------------------------------------------------------------------- SipHash


def sip_start(keys: Hashes) -> list[int]:
    """The four words that every hash begins with."""
    first, second = (int(key) for key in keys)
    return [
        first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261, second ^ 0x7465646279746573,
    ]  # fmt: skip


def rotate(words: Hashes, by: int) -> None:
    """Turn the bits of words to the left, in place."""
    low = words >> np.uint64(64 - by)
    words <<= np.uint64(by)
    words |= low


def sip_rounds(state: Sequence[Hashes], rounds: int) -> None:
    """SipHash's rounds on many states at once, in place."""
    v0, v1, v2, v3 = state
    for _ in range(rounds):
        v0 += v1
        v2 += v3
        rotate(v1, 13)
        rotate(v3, 16)
        v1 ^= v0
        v3 ^= v2
        rotate(v0, 32)
        v2 += v1
        v0 += v3
        rotate(v1, 17)
        rotate(v3, 21)
        v1 ^= v2
        v3 ^= v0
        rotate(v2, 32)


def sip_hashes_in_numpy(
    data: npt.NDArray[np.uint8], offsets: Counts, keys: Hashes, found: Hashes
) -> None:
    """`sip_hashes` where there is no Numba: the longest texts first, many at once."""
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    # Eight bytes from any place on, as a word.
    words_at = np.ndarray((len(data) + 1,), np.dtype("<u8"), padded, strides=(1,))
    lengths = offsets[1:] - offsets[:-1]
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), TEXTS_AT_ONCE):
        some = order[start : start + TEXTS_AT_ONCE]
        found[some] = sip_of_some(words_at, offsets[some], lengths[some], keys)


def sip_of_some(words_at: Hashes, starts: Counts, lengths: Counts, keys: Hashes) -> Hashes:
    """The hashes of some texts, of which none is longer than the one before."""
    words = lengths // 8
    state = [np.full(len(starts), word, np.uint64) for word in sip_start(keys)]
    rest = (np.uint64(1) << (np.uint64(8) * (lengths % 8).astype(np.uint64))) - np.uint64(1)
    last = (lengths & 255).astype(np.uint64) << np.uint64(56)
    for w in range(int(words[0]) + 1):
        more, here = np.searchsorted(-words, -w, "left"), np.searchsorted(-words, -w, "right")
        word = words_at[starts[:here] + 8 * w].astype(np.uint64)
        word[more:] &= rest[more:here]
        word[more:] |= last[more:here]
        living = [part[:here] for part in state]
        living[3] ^= word
        sip_rounds(living, 2)
        living[0] ^= word
    state[2] ^= np.uint64(255)
    sip_rounds(state, 4)
    found: Hashes = np.bitwise_xor.reduce(state)
    return found


@compiled(instead=sip_hashes_in_numpy)
def sip_hashes(data: npt.NDArray[np.uint8], offsets: Counts, keys: Hashes, found: Hashes) -> None:
    """SipHash-2-4 of every text: text i is data[offsets[i]:offsets[i + 1]]."""
    u13, u16, u17 = np.uint64(13), np.uint64(16), np.uint64(17)
    u21, u32, u8 = np.uint64(21), np.uint64(32), np.uint64(8)
    for i in range(len(found)):
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        v0 = keys[0] ^ np.uint64(0x736F6D6570736575)
        v1 = keys[1] ^ np.uint64(0x646F72616E646F6D)
        v2 = keys[0] ^ np.uint64(0x6C7967656E657261)
        v3 = keys[1] ^ np.uint64(0x7465646279746573)
        words = length // 8
        for w in range(words + 3):
            if w <= words:
                m = np.uint64(0)
                last = 8 if w < words else length - 8 * words
                for b in range(last):
                    m |= np.uint64(data[start + 8 * w + b]) << (u8 * np.uint64(b))
                if w == words:
                    m |= np.uint64(length & 255) << np.uint64(56)
                v3 ^= m
            elif w == words + 1:
                v2 ^= np.uint64(255)
            for _ in range(2):  # four more rounds in the end, in two turns
                v0 += v1
                v1 = (v1 << u13) | (v1 >> np.uint64(51))
                v1 ^= v0
                v0 = (v0 << u32) | (v0 >> u32)
                v2 += v3
                v3 = (v3 << u16) | (v3 >> np.uint64(48))
                v3 ^= v2
                v0 += v3
                v3 = (v3 << u21) | (v3 >> np.uint64(43))
                v3 ^= v0
                v2 += v1
                v1 = (v1 << u17) | (v1 >> np.uint64(47))
                v1 ^= v2
                v2 = (v2 << u32) | (v2 >> u32)
            if w <= words:
                v0 ^= m
        found[i] = v0 ^ v1 ^ v2 ^ v3


# ---------------------------------------------------------------------- names, values, rows


def folded(name: str) -> str:
    """The name of a column without what changes when a table is written again."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def folded_names(names: Sequence[str]) -> list[str]:
    """Names of columns without their case, unless two of them are the same then."""
    found = [folded(name) for name in names]
    return [
        one if found.count(one) == 1 else f"{one}\0{name}"
        for one, name in zip(found, names, strict=True)
    ]


def text_hashes(texts: pa.Array, keys: Hashes) -> Hashes:
    """The keyed hash of each text; NULL and no text at all have one of their own."""
    plain = texts.cast(pa.large_string())
    _, offsets, data = plain.buffers()
    found = np.empty(len(plain), np.uint64)
    at = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    content = np.zeros(1, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    sip_hashes(content, at, keys, found)
    found[at[1:] == at[:-1]] = MISSING
    if plain.null_count:
        found[numpy_array(plain.is_null())] = MISSING
    return found


def value_hashes(column: pa.ChunkedArray, keys: Hashes) -> Hashes | None:
    """The keyed hash of each value as text, so that its type does not matter; None for lists."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if pa.types.is_dictionary(whole.type) and 2 * len(whole.dictionary) > len(whole):
        whole = whole.cast(whole.type.value_type)
    try:
        if pa.types.is_dictionary(whole.type):
            of_words = text_hashes(as_texts(straightened(whole.dictionary)), keys)
            places: Counts = numpy_array(whole.indices, len(of_words))
            return np.append(of_words, MISSING)[places]
        plain = straightened(whole)
        if not repeats(plain):
            return text_hashes(as_texts(plain), keys)
        listed = plain.dictionary_encode("encode")
        places = numpy_array(listed.indices)
        return text_hashes(as_texts(listed.dictionary), keys)[places]
    except pa.ArrowException:
        return None


def straightened(column: pa.Array) -> pa.Array:
    """Values without what depends on who read them: two zeros, time zones, units of time."""
    if pa.types.is_floating(column.type):
        return pc.add(column, 0.0)  # one zero of the two that floats have
    if pa.types.is_timestamp(column.type):
        moments = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit))
        whole = pc.CastOptions(pa.timestamp("us"), allow_time_truncate=True)
        return moments.cast(options=whole)
    return column


def repeats(column: pa.Array) -> bool:
    """Whether it pays to hash different values once: most columns have few."""
    few = min(len(column), LOOKED_AT)
    return few > 1 and len(column.slice(0, few).unique()) <= few // 2


def as_texts(column: pa.Array) -> pa.Array:
    """Values as texts; of texts without their case and the spaces around them."""
    if pa.types.is_primitive(column.type):
        return column.cast(pa.large_string())
    try:
        return pc.utf8_lower(pc.utf8_trim_whitespace(column.cast(pa.large_string())))
    except pa.ArrowInvalid:
        # Bytes that are no text: each value for itself, so that its neighbours do not matter.
        raw = column.cast(pa.large_binary()).to_pylist()
        read = [None if one is None else one.decode(errors="replace") for one in raw]
        return pc.utf8_lower(pc.utf8_trim_whitespace(pa.array(read, pa.large_string())))


def mixed(values: Hashes) -> Hashes:
    """Every bit spread over all bits."""
    found = values * np.uint64(0xFF51AFD7ED558CCD)
    found ^= found >> np.uint64(32)
    found *= np.uint64(0xC4CEB9FE1A85EC53)
    found ^= found >> np.uint64(29)
    return found


def column_part(values: Shorts, name: np.uint64) -> Hashes:
    """What a column of this name adds to the hashes of rows.

    The hash of a row is a sum, so that a column is left out by subtracting its part.
    """
    return mixed(values.astype(np.uint64) ^ name)


def row_hashes(parts: Sequence[Hashes], seed: np.uint64) -> Hashes:
    """One hash of the parts of several columns, in any order."""
    total: Hashes = np.full(len(parts[0]) if parts else 0, seed, np.uint64)
    for part in parts:
        total += part
    return mixed(total)


@dataclass(frozen=True)
class HashKeys:
    """What a key gives for hashing values, names of columns, and rows."""

    values: Hashes
    names: Hashes
    rows: np.uint64

    @classmethod
    def of(cls, key: FingerprintKey) -> HashKeys:
        """The hash keys of a register's key."""
        values, names = (
            np.frombuffer(key.derive(purpose)[:16], np.uint64) for purpose in ("values", "columns")
        )
        return cls(values, names, np.uint64(struct.unpack("<Q", key.derive("rows")[:8])[0]))
