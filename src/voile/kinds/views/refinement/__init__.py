"""Refinement: better counts from the same view, by a model of the table fitted to it.

mixture      a mixture of product distributions; its count combined with the plain one
em, kernels  rows of a view packed for speed, and EM through the known noise over them
examine      the error of a fit, by halves of the view that examine each other
fit          how many components, by rows held out; the whole refinement
storage      its file beside the release
"""

from __future__ import annotations

from voile.kinds.views.refinement.fit import Refinement, refine
from voile.kinds.views.refinement.mixture import ErrorModel, Mixture
from voile.kinds.views.refinement.storage import load, save

__all__ = ["ErrorModel", "Mixture", "Refinement", "load", "refine", "save"]
