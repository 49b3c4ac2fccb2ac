"""Python runs this before anything else, where this folder is on its path."""

from tests.support.windows import become_windows

become_windows()
