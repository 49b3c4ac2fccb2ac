"""Views: from the plan to the noise and the ledger of a series."""

from __future__ import annotations
