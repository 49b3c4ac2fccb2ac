"""Rows that were grouped into classes."""

from __future__ import annotations
