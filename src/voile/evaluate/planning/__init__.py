"""What a release would be like, and what is possible, before anything is published."""

from voile.evaluate.planning.boundary import Plane, boundary_of
from voile.evaluate.planning.boundary import draw as draw_boundary
from voile.evaluate.planning.comparison import MethodComparison, compare_methods
from voile.evaluate.planning.foresight import Foresight, plan_table
from voile.evaluate.planning.marginals import MarginalForesight, plan_marginals
from voile.evaluate.planning.plot import draw as draw_plan

__all__ = [
    "Foresight", "MarginalForesight", "MethodComparison", "Plane", "boundary_of",
    "compare_methods", "draw_boundary", "draw_plan", "plan_marginals", "plan_table",
]  # fmt: skip
