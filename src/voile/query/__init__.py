"""SQL to a Query, and the sums of a query over the public domain."""

from voile.query.domain import DomainSums
from voile.query.parse import Query, parse
from voile.query.predicate import Atom, Predicate

__all__ = ["Atom", "DomainSums", "Predicate", "Query", "parse"]
