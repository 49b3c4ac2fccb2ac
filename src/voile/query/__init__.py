"""SQL to a Query, and the count of a query on the public domain."""

from voile.query.domain_count import domain_count
from voile.query.parse import Query, parse
from voile.query.predicate import Atom, Predicate

__all__ = ["Atom", "Predicate", "Query", "domain_count", "parse"]
