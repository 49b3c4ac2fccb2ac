"""From a private table to a release: read, plan, perturb, verify, put in place."""

from voile.kinds.classes.generalizing import Generalized, generalize
from voile.kinds.classes.grouping import Grouped, group_table
from voile.kinds.perturbed.perturbing import Perturbation, perturb, perturb_table
from voile.kinds.views.steps import Publication, publish, publish_table
from voile.progress import Progress

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
