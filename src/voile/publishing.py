"""From a private table to a release: read, plan, perturb, verify, put in place."""

from voile.progress import Progress
from voile.publishing.classes.generalizing import Generalized, generalize
from voile.publishing.classes.grouping import Grouped, group_table
from voile.publishing.local.perturbing import Perturbation, perturb, perturb_table
from voile.publishing.views.steps import Publication, publish, publish_table

__all__ = [
    "Generalized",
    "Grouped",
    "Perturbation",
    "Progress",
    "Publication",
    "generalize",
    "group_table",
    "perturb",
    "perturb_table",
    "publish",
    "publish_table",
]
