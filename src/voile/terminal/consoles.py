"""Rich's console, with every text escaped: apart from escaping.py, for Rich is slow to load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from voile.terminal.escaping import escaped


class EscapingConsole(Console):
    """Escapes strings before they are measured, and what comes as anything else when it is drawn.

    Rich's own movements and colours are no texts: they pass.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as Rich shows it, with a width that counts what is escaped."""
        return super().render_str(escaped(text), **options)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            part if part.control else Segment(escaped(part.text), part.style) for part in buffer
        )
