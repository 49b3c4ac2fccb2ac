"""Classes of rows: reading, finding, writing."""

from __future__ import annotations
