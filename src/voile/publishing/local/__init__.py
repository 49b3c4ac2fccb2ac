"""Rows that are perturbed one by one, and put together again."""

from __future__ import annotations
