"""A client of a server of noisy counts; its code is in `voile.remote`."""

from voile.remote.client import (
    VARIABLE,
    Cost,
    Reply,
    Server,
    connect,
    read_subset,
)
from voile.remote.connection import ServerError

__all__ = ["VARIABLE", "Cost", "Reply", "Server", "ServerError", "connect", "read_subset"]
