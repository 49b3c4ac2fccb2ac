"""Tables of counts."""

from __future__ import annotations
