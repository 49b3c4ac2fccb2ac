"""SQL to a Query, and the sums of a query over the public domain."""

from voile.query.domain import DomainSums
from voile.query.parse import parse
from voile.query.predicate import Atom, Predicate
from voile.query.query import Query

__all__ = ["Atom", "DomainSums", "Predicate", "Query", "parse"]
