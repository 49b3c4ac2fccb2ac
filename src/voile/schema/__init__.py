"""The public domain: attributes, their values, and the numbering of tuples."""

from voile.schema.attribute import Attribute, Bins, Domain, Interval, Kind, Range, Value, Values
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
