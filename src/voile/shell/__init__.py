"""`voile shell`: questions to a release, one after the other, at a prompt or from a pipe."""

from voile.shell.prompt import run

__all__ = ["run"]
