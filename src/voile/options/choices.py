"""The words that options may have, in a module of their own so that listing them loads nothing."""

from __future__ import annotations

from typing import Literal

Nulls = Literal["error", "drop", "as-value"]
Adversary = Literal["independent", "exclusive"]
Form = Literal["multiset", "set"]
"""Whether a table holds repetitions."""
Measure = Literal["frequency", "distinct", "entropy", "recursive"]
"""How diversity is measured."""
Distance = Literal["js", "variational", "emd-equal", "emd-ordered", "emd-hierarchical"]
"""How closeness is measured."""
Absent = Literal["forbidden", "ignored"]
"""What semantic privacy makes of values that a class lacks."""
Method = Literal["mondrian", "anatomy", "fulldomain", "suppress", "freeshape", "trivial"]
"""How rows are grouped into classes."""
Recode = Literal["generalize", "bucketize"]
Cuts = Literal["median", "information", "certainty", "boxes", "hierarchy"]
Suppressed = Literal["removed", "shown"]
Loss = Literal["ncp", "discernibility", "levels", "entropy"]
Noise = Literal["binomial", "gaussian"]
MarginalNoise = Literal["gaussian", "geometric"]
Share = Literal["epsilon", "retention"]
"""What columns have in common when they share a row's ε."""
Unit = Literal["add-remove", "exchange"]
"""Between which tables a promise of differential privacy holds."""
MOST_ROWS_PER_PERSON = 10_000
"""Rows of one person that may be kept."""
