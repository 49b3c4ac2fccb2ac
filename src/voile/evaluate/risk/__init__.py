"""What can be found out about people from a table as it is; what it says is not publishable."""

from voile.evaluate.risk.assess import risk
from voile.evaluate.risk.found import Risk
from voile.evaluate.risk.people import ExposedRow, most_exposed

__all__ = ["ExposedRow", "Risk", "most_exposed", "risk"]
