"""What Windows takes for something else than a file: drives, devices, and signs that it keeps."""

from __future__ import annotations

import re
from pathlib import PureWindowsPath

DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}
    | {f"{name}{digit}" for name in ("COM", "LPT") for digit in "123456789¹²³"}
)
"""Names that are devices in every folder, whatever ending they have."""
SIGNS = re.compile(r'[<>:"|?*\x00-\x1f]')


def fault_of_name(name: str) -> str:
    """Why Windows has no file or folder of this name; empty if it can."""
    if name.partition(".")[0].rstrip(" ").upper() in DEVICES:
        return f"{name!r} is the name of a device"
    if found := SIGNS.search(name):
        return f"a name cannot have {found.group()!r}"
    if name.endswith((".", " ")):
        return f"{name!r} ends in a {'point' if name.endswith('.') else 'space'}"
    return ""


def fault_of_path(path: str) -> str:
    """Why Windows has no place for this path; empty if it has one."""
    found = PureWindowsPath(path)
    parts = [part for part in found.parts if part not in (found.anchor, ".", "..")]
    return next(filter(None, map(fault_of_name, parts)), "")
