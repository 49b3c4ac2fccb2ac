"""What a release says of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Roles:
    """Which columns of a release may be quasi-identifiers, and which sensitive."""

    qi: Sequence[str]
    sensitive: Sequence[str]
    stated: bool = False
    """Whether the release itself says so."""
