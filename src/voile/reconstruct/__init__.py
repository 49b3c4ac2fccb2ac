"""Reconstruction: from counts of perturbed rows back to counts of true ones.

axes, kernels    how a column moves rows between classes, and the compiled loops along its axis
linear           what is expected to be seen, and its inverse, for histograms and for functions
condition        how much errors grow on the way back
likelihood       the likelihood of what was seen, and plain EM
maximum          the most likely true counts, with a bound on what is missing
stopped          counts that fit what was seen as well as the truth would
simplex          the nearest non-negative counts
censored         how values are spread that are known to lie in intervals
ecological       who has which record, where only those of whole groups are known
"""

from voile.reconstruct.axes import Axis, Dense, Transition, condition_number
from voile.reconstruct.linear import expectation, expected, invert, project, unbiased
from voile.reconstruct.maximum import Fit, em_steps, em_until, maximum_likelihood, stopped_em

__all__ = [
    "Axis",
    "Dense",
    "Fit",
    "Transition",
    "condition_number",
    "em_steps",
    "em_until",
    "expectation",
    "expected",
    "invert",
    "maximum_likelihood",
    "project",
    "stopped_em",
    "unbiased",
]
