"""The public domain: attributes, their values, and the numbering of tuples."""

from voile.client.domains import Bins, Kind, Value, Values
from voile.schema.attribute import Attribute, Domain, Interval, Range
from voile.schema.index import Keys, TupleIndex
from voile.schema.schema import Schema

__all__ = [
    "Attribute",
    "Bins",
    "Domain",
    "Interval",
    "Keys",
    "Kind",
    "Range",
    "Schema",
    "TupleIndex",
    "Value",
    "Values",
]
