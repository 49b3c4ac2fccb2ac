"""The on-disk format of releases: opening, checking, describing and querying them."""

from voile.release.checks import verify
from voile.release.classes import ClassRelease
from voile.release.conjuncts import ConjunctRelease
from voile.release.local import LocalRelease
from voile.release.opened import Release
from voile.release.published import ViewRelease

__all__ = ["ClassRelease", "ConjunctRelease", "LocalRelease", "Release", "ViewRelease", "verify"]
