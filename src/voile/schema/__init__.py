"""The public domain: attributes, their values, and the numbering of tuples."""

from voile.client.domains import Bins, Kind, Value, Values
from voile.schema.attribute import Attribute, DayBins, Domain, Interval, Range, WholeBins
from voile.schema.index import Keys, TupleIndex
from voile.schema.schema import Schema

__all__ = [
    "Attribute",
    "Bins",
    "DayBins",
    "Domain",
    "Interval",
    "Keys",
    "Kind",
    "Range",
    "Schema",
    "TupleIndex",
    "Value",
    "Values",
    "WholeBins",
]
