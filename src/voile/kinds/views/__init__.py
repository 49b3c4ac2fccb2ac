"""Noisy views of a table."""

from __future__ import annotations
