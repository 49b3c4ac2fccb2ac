"""`voile shell`: questions to a release, one after the other, at a prompt or from a pipe."""

from voile.shell.run import run

__all__ = ["run"]
