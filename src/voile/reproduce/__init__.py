"""Every figure and table of the papers: as data, as a picture, and with a verdict.

One room a paper. The papers' modules use what docs/reference/api.md lists and nothing else.
"""

from __future__ import annotations
