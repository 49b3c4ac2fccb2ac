"""PostgreSQL's own catalogues, as its clients ask for them: tables in memory, and their words."""

from voile.wire.catalogue.answers import Catalogue

__all__ = ["Catalogue"]
