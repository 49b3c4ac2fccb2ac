"""Refinement: better counts from the same view, by a model of the table fitted to it.

kernels, rows    rows of a view packed for speed, and the compiled loops over them
mixture, em      a mixture of product distributions, fitted by EM through the known noise
choice           how many components, by rows held out
probes, examine  the error of a fit, by halves of the view that examine each other
error            combining the model's count with the plain one
fit, storage     all of it, and its file beside the release
"""

from voile.refine.fit import Refinement, refine
from voile.refine.mixture import ErrorModel, Mixture
from voile.refine.storage import load, save

__all__ = ["ErrorModel", "Mixture", "Refinement", "load", "refine", "save"]
