"""bcrypt_pbkdf, by which OpenSSH makes the key of an encrypted key file from its passphrase.

The package `cryptography` leaves it to another package, which Voile does not require. It is
Blowfish with an expensive key schedule (Provos and Mazières 1999), between two applications of
SHA-512, as in OpenBSD's lib/libutil/bcrypt_pbkdf.c. Blowfish's tables are the first digits of π
after the point.
"""

from __future__ import annotations

import functools
import hashlib

import numpy as np
import numpy.typing as npt

from voile.compiled import compiled

Words = npt.NDArray[np.uint32]
TABLES = 18 + 4 * 256
"""Words of Blowfish's state: the round keys, and four S-boxes."""
TEXT = b"OxychromaticBlowfishSwatDynamite"
BLOCK = 32


def derived_key(passphrase: bytes, salt: bytes, rounds: int, length: int) -> bytes:
    """So many bytes of key material."""
    stride = -(-length // BLOCK)
    used = -(-length // stride)
    key = bytearray(length)
    secret = hashlib.sha512(passphrase).digest()
    for place in range(stride):
        salted = hashlib.sha512(salt + (place + 1).to_bytes(4, "big")).digest()
        block = last = hashed(secret, salted)
        for _ in range(rounds - 1):
            last = hashed(secret, hashlib.sha512(last).digest())
            block = bytes(a ^ b for a, b in zip(block, last, strict=True))
        part = key[place::stride]
        key[place::stride] = block[: min(used, len(part))]
    return bytes(key)


def hashed(secret: bytes, salt: bytes) -> bytes:
    """bcrypt of 64 bytes with a salt of 64 bytes."""
    text = words(TEXT)
    scramble(initial_state().copy(), words(secret), words(salt), text)
    return text.astype("<u4").tobytes()


def words(data: bytes) -> Words:
    """Bytes as words of 32 bits, the highest byte first."""
    return np.frombuffer(data, ">u4").astype(np.uint32)


@functools.cache
def initial_state() -> Words:
    """The fraction of π in words of 32 bits, by Machin's formula in whole numbers."""
    guard = 64
    one = 1 << (32 * TABLES + guard)
    pi = 4 * (4 * inverse_tangent(5, one) - inverse_tangent(239, one))
    fraction = (pi - 3 * one) >> guard
    return words(fraction.to_bytes(4 * TABLES, "big"))


def inverse_tangent(whole: int, one: int) -> int:
    """arctan(1/whole), times `one`."""
    term = one // whole
    total, divisor = term, 1
    while term:
        term //= -whole * whole
        divisor += 2
        total += term // divisor
    return total


@compiled
def scramble(state: Words, secret: Words, salt: Words, text: Words) -> None:
    """The expensive key schedule; then the text is encrypted 64 times."""
    nothing = np.zeros(16, np.uint32)
    expand(state, secret, salt)
    for _ in range(64):
        expand(state, salt, nothing)
        expand(state, secret, nothing)
    for _ in range(64):
        for place in range(0, len(text), 2):
            text[place], text[place + 1] = encrypted(state, text[place], text[place + 1])


@compiled
def expand(state: Words, key: Words, salt: Words) -> None:
    """Mix a key into the round keys, then replace the state by encryptions of the salt."""
    for place in range(18):
        state[place] ^= key[place % len(key)]
    left = right = np.uint32(0)
    used = 0
    for place in range(0, len(state), 2):
        left ^= salt[used % len(salt)]
        right ^= salt[(used + 1) % len(salt)]
        used += 2
        left, right = encrypted(state, left, right)
        state[place], state[place + 1] = left, right


@compiled
def encrypted(state: Words, left: np.uint32, right: np.uint32) -> tuple[np.uint32, np.uint32]:
    """One block by Blowfish, whose S-boxes stand behind the round keys."""
    left = np.uint32(left ^ state[0])
    for place in range(1, 17):
        mixed = np.uint32(state[18 + (left >> 24)] + state[274 + ((left >> 16) & 255)])
        mixed = np.uint32(mixed ^ state[530 + ((left >> 8) & 255)])
        mixed = np.uint32(mixed + state[786 + (left & 255)])
        left, right = np.uint32(right ^ mixed ^ state[place]), left
    return np.uint32(right ^ state[17]), left
