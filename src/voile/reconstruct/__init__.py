"""Reconstruction: from counts of perturbed rows back to counts of true ones.

- axes, kernels: how a column moves rows between classes, how much errors grow on the way back, and
  the compiled loops along its axis;
- linear: what is expected to be seen, and its inverse, for histograms and for functions; the
  nearest non-negative counts;
- maximum: the likelihood of what was seen: plain EM, maximum likelihood with a bound on what is
  missing, and EM that stops where counts fit as well as the truth would;
- baskets: the same for select-a-size;
- ecological: who has which record, where only those of whole groups are known; how values are
  spread that are known to lie in intervals.

All of it works on tensors of counts: nothing here sees a row.
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
