"""A bound of a process's memory on Windows, as kernel32 takes it."""

from __future__ import annotations

import ctypes
from typing import Any


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_set", ctypes.c_size_t),
        ("most_set", ctypes.c_size_t),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", BasicLimits),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process", ctypes.c_size_t),
        ("peak_job", ctypes.c_size_t),
    )


class MemoryCounters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("faults", ctypes.c_uint32),
        ("peak_set", ctypes.c_size_t),
        ("set", ctypes.c_size_t),
        ("pools", ctypes.c_size_t * 4),
        ("committed", ctypes.c_size_t),
        ("peak_committed", ctypes.c_size_t),
    )


EXTENDED_LIMITS = 9
"""The kind of limits that has one of memory."""
OF_PROCESS_MEMORY = 0x00000100


def limit_more(system: Any, more: int) -> None:
    """Let this process have so many bytes more than it uses now: in a job object of its own."""
    for name in ("GetCurrentProcess", "CreateJobObjectW"):
        getattr(system, name).restype = ctypes.c_void_p
    this, job = system.GetCurrentProcess(), system.CreateJobObjectW(None, None)
    used = MemoryCounters(size=ctypes.sizeof(MemoryCounters))
    system.K32GetProcessMemoryInfo(ctypes.c_void_p(this), ctypes.byref(used), used.size)
    limits = ExtendedLimits(process_memory=used.committed + more)
    limits.basic.flags = OF_PROCESS_MEMORY
    system.SetInformationJobObject(
        ctypes.c_void_p(job), EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
    )
    system.AssignProcessToJobObject(ctypes.c_void_p(job), ctypes.c_void_p(this))
