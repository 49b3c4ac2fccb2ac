"""Two folders that change their names in one step, where the operating system can do that.

Everything here that depends on the system is in `exchanged`. Where it gives False, two renames have
to do, and whoever is interrupted between them has to be cleaned up after (`kinds/staging.py`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Of Linux: paths count from the working folder; both names stay, and change places."""
RENAME_SWAP = 2
"""Of macOS."""
UNABLE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What kernels and file systems say that cannot exchange names."""


def exchanged(one: Path, other: Path) -> bool:
    """Whether both have changed places, in one step; False: the system cannot, and nothing is done.

    Both must exist and lie in one file system. Whatever else is wrong raises OSError.
    """
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    rename = name and getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if not rename:
        return False
    first, second = os.fsencode(one), os.fsencode(other)
    if name == "renameat2":
        failed = rename(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE)
    else:
        failed = rename(first, second, RENAME_SWAP)
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in UNABLE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
