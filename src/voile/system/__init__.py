"""What the operating system does, in one way for all: locks, signals, names, rights, limits.

`posix` is for Linux and macOS, `windows` for Windows, with the same functions; nobody else asks
which system it is, or names what only one of them has. `names` is what every system says of a name.
Which one it is shows in what Python has: `fcntl` is there, or it is not.
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
