"""The release: what leaves the house, how it is written, opened and checked."""

from voile.release.opened import Release
from voile.release.checks import verify

__all__ = ["Release", "verify"]
