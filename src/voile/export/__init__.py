"""Releases in files of other programs: rows or tables, and descriptions for catalogues.

Every file carries the promise and how to count: within it where its format has a place for words,
else in a README beside it. It is written beside its place, read again, and renamed.
"""

from __future__ import annotations

from voile.export.exporting import DESCRIPTIONS, FORMATS, ExportResult, export

__all__ = ["DESCRIPTIONS", "FORMATS", "ExportResult", "export"]
