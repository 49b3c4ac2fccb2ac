"""The functions of this system; which one it is shows in whether Python has `fcntl`.

The package is imported by its module: `from voile import system` would load all of Voile's names.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("fcntl") is not None:
    from voile.system.posix import (
        CHANGES_SHOW,
        ENDING,
        PIPE_ENCODING,
        arm_alarms,
        cache_folder,
        data_folder,
        end_this_process,
        exchanged,
        fault_of_path,
        flush,
        folder_lock,
        handling_endings,
        inherited_socket,
        is_ours,
        is_private,
        let_go_first,
        limit_files,
        limit_memory,
        lock,
        move,
        open_file,
        place_new,
        read_at,
        replace,
        set_alarms,
        set_rights,
        start_with_socket,
        state_folder,
        sync,
        write_at,
    )
else:
    from voile.system.windows import (
        CHANGES_SHOW,
        ENDING,
        PIPE_ENCODING,
        arm_alarms,
        cache_folder,
        data_folder,
        end_this_process,
        exchanged,
        fault_of_path,
        flush,
        folder_lock,
        handling_endings,
        inherited_socket,
        is_ours,
        is_private,
        let_go_first,
        limit_files,
        limit_memory,
        lock,
        move,
        open_file,
        place_new,
        read_at,
        replace,
        set_alarms,
        set_rights,
        start_with_socket,
        state_folder,
        sync,
        write_at,
    )

__all__ = [
    "BROKEN_PIPE",
    "CHANGES_SHOW",
    "ENDING",
    "PIPE_ENCODING",
    "arm_alarms",
    "cache_folder",
    "data_folder",
    "end_this_process",
    "exchanged",
    "fault_of_path",
    "flush",
    "folder_lock",
    "handling_endings",
    "inherited_socket",
    "is_ours",
    "is_private",
    "let_go_first",
    "limit_files",
    "limit_memory",
    "lock",
    "move",
    "open_file",
    "place_new",
    "read_at",
    "replace",
    "set_alarms",
    "set_rights",
    "start_with_socket",
    "state_folder",
    "sync",
    "write_at",
]

BROKEN_PIPE = 141
"""The exit code of who writes to a pipe that nobody reads: 128 and the number of SIGPIPE, as shells
have it; the same where there is no such signal."""
