"""Models of a table from counts alone: decision trees and association rules."""

from voile.mining.counts import Counts, ExactCounts
from voile.mining.estimator import ReleaseTree
from voile.mining.growing import Limits, grow
from voile.mining.rules import RuleLimits, find_rules

__all__ = ["Counts", "ExactCounts", "Limits", "ReleaseTree", "RuleLimits", "find_rules", "grow"]
