"""Checks that the machine and the installed wheels fit, before any native library is loaded.

Run it alone with `python -m gymscale.scripts.preflight`: it prints what it found, one line each.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

GLIBC_NEEDED = "2.35"
"""The PhysX wheel is built for manylinux_2_35 (Ubuntu 22.04, Debian 12 and newer)."""

PYTHON_NEEDED = ((3, 10), (3, 14))
"""First version that works, first that does not."""

NATIVE_WHEELS = ("ovphysx", "physx-usd-schemas", "newton-usd-schemas", "usd-core")
"""Requirements of ours that hand data to native code, so that other versions are refused."""


def problems() -> list[str]:
    """Return what this machine lacks, one line each; an empty list when it can run everything."""
    found = [
        platform_problem(platform.system(), platform.machine()),
        python_problem(sys.version_info[:2]),
        glibc_problem(_glibc_version()),
        avx_problem(platform.machine(), _cpu_flags()),
        *(wheel_problem(requirement) for requirement in _pinned_requirements()),
    ]
    return [line for line in found if line is not None]


def platform_problem(system: str, machine: str) -> str | None:
    """Name the platforms that work when this one does not."""
    if system == "Linux" and machine in ("x86_64", "aarch64"):
        return None
    return f"gymscale runs on Linux (x86_64 or aarch64), this is {system} {machine}: on Windows use WSL2"


def python_problem(version: tuple[int, int]) -> str | None:
    """Name the Python versions that work when this one does not."""
    first, after = PYTHON_NEEDED
    if first <= version < after:
        return None
    return (
        f"gymscale needs Python {first[0]}.{first[1]} to {after[0]}.{after[1] - 1}, this is {version[0]}.{version[1]}"
    )


def glibc_problem(version: str | None) -> str | None:
    """Name the C library needed when this one is older; `version` is None on systems without glibc."""
    if version is not None and Version(version) >= Version(GLIBC_NEEDED):
        return None
    found = f"glibc {version}" if version else "no glibc"
    return f"PhysX needs glibc {GLIBC_NEEDED} or newer, this machine has {found}: use Ubuntu 22.04, Debian 12 or newer"


def avx_problem(machine: str, flags: set[str] | None) -> str | None:
    """Say so when an x86 processor has no AVX; `flags` is None when they cannot be read."""
    if machine != "x86_64" or flags is None or "avx" in flags:
        return None
    return "PhysX needs a processor with AVX, this one has none (in a virtual machine: pass the host CPU through)"


def wheel_problem(requirement: Requirement) -> str | None:
    """Compare an installed wheel with the version we were built against."""
    try:
        installed = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is not installed: pip install '{_plain(requirement)}'"
    if requirement.specifier.contains(installed, prereleases=True):
        return None
    return (
        f"{requirement.name} {installed} is installed, gymscale needs {requirement.specifier}: "
        f"pip install '{_plain(requirement)}'"
    )


def _plain(requirement: Requirement) -> str:
    """Return a requirement as pip takes it, without its marker."""
    return f"{requirement.name}{requirement.specifier}"


def _pinned_requirements() -> list[Requirement]:
    """Return the requirements on native wheels: ours, and what ovphysx demands of its companion."""
    ours = [Requirement(line) for line in metadata.requires("gymscale") or []]
    pinned = [r for r in ours if r.name in NATIVE_WHEELS and (r.marker is None or r.marker.evaluate({"extra": ""}))]
    try:
        companions = [Requirement(line) for line in metadata.requires("ovphysx") or []]
    except metadata.PackageNotFoundError:
        companions = []
    return pinned + [r for r in companions if r.name == "ovstage"]


def _glibc_version() -> str | None:
    """Return the version of the C library, or None when it is not glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (AttributeError, ValueError, OSError):
        return None
    return version if name == "glibc" else None


def _cpu_flags() -> set[str] | None:
    """Return the processor's feature flags, or None where the kernel does not list them."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    lines = [line for line in text.splitlines() if line.startswith("flags")]
    return set(lines[0].partition(":")[2].split()) if lines else None


def main() -> int:
    """Print what the machine lacks, or that it lacks nothing; returns the exit code."""
    found = problems()
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    if not found:
        print(
            f"ok: {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
            f"glibc {_glibc_version()}, ovphysx {metadata.version('ovphysx')}"
        )
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
