"""The machine that was measured on: what its numbers can be compared with."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("voile", "duckdb", "pyarrow", "numpy", "scipy", "numba", "cryptography")

MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)


def machine() -> dict[str, Any]:
    """What the numbers depend on: processor, memory, system and versions."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": memory(),
        "system": system(),
        "python": platform.python_version(),
    } | {name: version(name) for name in PACKAGES}


def processor() -> str:
    """Its model as it names itself; where nobody says, at least its kind."""
    with suppress(OSError):
        if found := MODEL.search(Path("/proc/cpuinfo").read_text()):
            return found[1].strip()
    with suppress(OSError, subprocess.CalledProcessError):
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    return platform.processor() or platform.machine()


def memory() -> int:
    """Bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def system() -> str:
    """The operating system and its kernel."""
    release = ".".join(platform.release().split(".")[:2])  # the rest names who built it
    kernel = f"{platform.system()} {release} {platform.machine()}"
    with suppress(OSError):
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    return kernel


def described(found: dict[str, Any]) -> str:
    """A sentence's worth: the processor, its cores, the memory, the system, the versions."""
    versions = ", ".join(f"{name} {found[name]}" for name in ("python", *PACKAGES))
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory'] / 2**30:,.1f} GiB of "
        f"memory, {found['system']}; {versions}"
    )
