"""SQL from the tools that speak it: sessions over releases and servers."""

from voile.dbapi.results import Field, ResultSet
from voile.dbapi.session import SqlSession, SqlSource
from voile.dbapi.sources import ChargeError

__all__ = ["ChargeError", "Field", "ResultSet", "SqlSession", "SqlSource"]
