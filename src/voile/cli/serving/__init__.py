"""Commands of a server of noisy counts: begin it, let people in, run it, look after it."""

from voile.cli.serving import analysts, beginning, ledger, running, self_audit
from voile.cli.serving.common import serve

__all__ = ["analysts", "beginning", "ledger", "running", "self_audit", "serve"]
