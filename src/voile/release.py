"""The on-disk format of releases: opening, checking, describing and querying them."""

from voile.release.checks import verify
from voile.release.classes.release import ClassRelease
from voile.release.conjuncts.release import ConjunctRelease
from voile.release.local.release import LocalRelease
from voile.release.opened import Release
from voile.release.views.release import ViewRelease

__all__ = ["ClassRelease", "ConjunctRelease", "LocalRelease", "Release", "ViewRelease", "verify"]
