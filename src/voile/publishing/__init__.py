"""From a private table to a release: read, plan, perturb, verify, put in place."""

from voile.publishing.progress import Progress
from voile.publishing.steps import Publication, publish, publish_table

__all__ = ["Progress", "Publication", "publish", "publish_table"]
