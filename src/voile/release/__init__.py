"""The release: what leaves the house, how it is written, opened and checked."""

from voile.release.checks import verify
from voile.release.opened import Release

__all__ = ["Release", "verify"]
