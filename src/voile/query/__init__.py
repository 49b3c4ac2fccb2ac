"""SQL to a Query, and the count of a query on the public domain."""

from voile.query.domain_count import domain_count
from voile.query.parse import Condition, Query, parse

__all__ = ["Condition", "Query", "domain_count", "parse"]
