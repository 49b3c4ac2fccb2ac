"""The on-disk format of releases: opening, checking, describing and querying them."""

from voile.kinds.classes.release import ClassRelease
from voile.kinds.counts.release import ConjunctRelease
from voile.kinds.perturbed.release import LocalRelease
from voile.kinds.release import Release
from voile.kinds.verification import verify
from voile.kinds.views.release import ViewRelease

__all__ = ["ClassRelease", "ConjunctRelease", "LocalRelease", "Release", "ViewRelease", "verify"]
