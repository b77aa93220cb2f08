"""What machine and versions a number comes from, without saying whose machine it is. Torch-free."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.canonical import digest
from benchmarks.records import Environment


@lru_cache
def library_version(name: str) -> str:
    """Version of an installed distribution, or "absent"."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


@lru_cache
def cpu_model() -> str:
    """The processor's name as the system states it, with its widest vector extension."""
    name, extension = platform.processor() or platform.machine(), ""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            field, _, value = line.partition(":")
            if field.strip() == "model name":
                name = value.strip()
            elif field.strip() == "flags":
                flags = value.split()
                extension = next((f for f in ("avx512f", "avx2", "avx") if f in flags), "")
                break
    return f"{name} ({extension})" if extension else name


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache
def memory_gib() -> float:
    """Installed memory in GiB, to one decimal."""
    import psutil

    return round(psutil.virtual_memory().total / 2**30, 1)


def machine_fingerprint() -> str:
    """Short hash of what decides time, memory and energy: processor, cores, memory, system."""
    return digest(
        [cpu_model(), usable_cores(), round(memory_gib()), platform.system(), platform.machine()],
        length=16,
    )


def describe(
    libraries: Iterable[str], *, threads: int, load_before: float | None = None
) -> Environment:
    """The environment of one record.

    Args:
        libraries: distributions whose version mattered.
        threads: torch threads of the process that measured.
        load_before: the machine's load average when measuring began.
    """
    return Environment(
        python=platform.python_version(),
        libraries={name: library_version(name) for name in sorted(libraries)},
        os=f"{platform.system()} {platform.machine()}",
        cpu=cpu_model(),
        cores=usable_cores(),
        memory_gib=memory_gib(),
        threads=threads,
        load_before=load_before,
        load_after=load_average(),
    )


def load_average() -> float | None:
    """The machine's one-minute load average, where the system has one."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
