"""Amounts as people write them."""

from __future__ import annotations

from voile.errors import UsageError

UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def byte_count(amount: str | int) -> int:
    """500MB, 4GB, or a number of bytes."""
    text = str(amount).upper().strip()
    number = text.rstrip("KMGTB")
    try:
        return int(float(number) * UNITS[text[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise UsageError(
            f"{amount!r} is not an amount of memory", hint="write 500MB or 4GB"
        ) from None
