"""Rows that were perturbed one by one."""

from __future__ import annotations
