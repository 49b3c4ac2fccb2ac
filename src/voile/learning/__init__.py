"""The public domain of a table learnt from it privately, within a budget."""

from voile.learning.account import LearntColumn, SchemaAccount
from voile.learning.budget import LearningBudget
from voile.learning.learner import LearntSchema, learn_schema

__all__ = ["LearningBudget", "LearntColumn", "LearntSchema", "SchemaAccount", "learn_schema"]
