"""The public domain: attributes, their values, and the numbering of tuples."""

from voile.schema.attribute import Attribute, Bins, Domain, Kind, Range, Value, Values
from voile.schema.index import Keys, TupleIndex
from voile.schema.schema import Schema

__all__ = [
    "Attribute",
    "Bins",
    "Domain",
    "Keys",
    "Kind",
    "Range",
    "Schema",
    "TupleIndex",
    "Value",
    "Values",
]
