# SPDX-License-Identifier: BSD-3-Clause
"""The emulated machines: how to start QEMU, and where their programs and libraries come from."""
import pathlib
import re
import shutil
import subprocess
import typing

from tests.harness import debian, paths


class Unavailable(Exception):
    """A file that the machine needs is not on this host."""


def _run(*command):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=True).stdout


class Kernel(typing.NamedTuple):
    """A kernel of Debian, and how it is booted."""
    name: str
    suite: str
    package: str
    append: str = ""  # more boot parameters


def _kernels(architecture, *suites):
    return [Kernel(s, s, f"linux-image-cloud-{architecture}") for s in suites]


class X86:
    """Debian's amd64 with the programs and libraries of this host."""
    name, debian, has_pva = "x86_64", None, True
    # The cloud kernels up to 6.12 do not preempt a thread in the kernel unless a boot parameter says so (preempt=). From
    # 7.0 on all do: "full", or "lazy", under which only threads of a real-time class preempt at once.
    kernels = _kernels("amd64", "bullseye-security", "bookworm-security", "trixie-security", "trixie-backports") + [
        Kernel("trixie-security-full", "trixie-security", "linux-image-cloud-amd64", "preempt=full"),
        Kernel("trixie-backports-full", "trixie-backports", "linux-image-cloud-amd64", "preempt=full"),
        Kernel("bookworm-rt", "bookworm-security", "linux-image-rt-amd64"),
        Kernel("trixie-rt", "trixie-security", "linux-image-rt-amd64"),
        Kernel("trixie-backports-rt", "trixie-backports", "linux-image-rt-amd64")]
    console, boot_seconds = "ttyS0", 1800
    # Linux tries out its timers when it boots. On a busy host the emulated ones are late, and it would give up.
    append = "no_timer_check"
    # One thread emulates both CPUs. With two threads, one CPU can execute an instruction while the other one changes
    # it, as Linux does for its tracepoints: Linux 6.12 crashed (int3 in __schedule). Without cx16, because some
    # emulated kernels crash with it.
    qemu = "qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "qemu64,-cx16"

    def libraries(self, program):
        """Returns the libraries of a program: path on this host → path in the machine (the same)."""
        out = _run("ldd", program)
        if "not found" in out:
            raise Unavailable(f"{program}: {out}")
        return {p: str(p) for p in map(pathlib.Path, re.findall(r"(?:=> )?(/\S+) \(0x", out))}

    def busybox(self, _cache):
        return shutil.which("busybox")


class Aarch64:
    """Debian's arm64 with the programs that tools/cross.sh built, without PV Access."""
    name, debian, has_pva = "aarch64", "arm64", False
    kernels = _kernels("arm64", "trixie-security")
    console, boot_seconds = "ttyAMA0", 3600
    append = ""
    # This CPU has no signed pointers (pointer authentication), whose emulation takes long.
    qemu = "qemu-system-aarch64", "-machine", "virt", "-accel", "tcg,thread=single", "-cpu", "cortex-a72"
    LOADER = "ld-linux-aarch64.so.1"

    def __init__(self):
        sysroot = paths.CACHE / self.name / "sysroot"
        self.folders = [paths.BUILT / "lib" / paths.ARCH, paths.BASE / "lib" / paths.ARCH,
                        sysroot / "usr/lib/aarch64-linux-gnu", pathlib.Path("/usr/aarch64-linux-gnu/lib")]

    def libraries(self, program):
        """Returns the libraries of a program: path on this host → path where the loader of the machine looks."""
        found, names = {}, {self.LOADER} | self._needed(program)
        while names:
            name = names.pop()
            at = next((f / name for f in self.folders if (f / name).exists()), None)
            if not at:
                raise Unavailable(f"{program} needs {name}, which is in none of {', '.join(map(str, self.folders))}")
            if at not in found:
                found[at] = f"/lib/{name}"
                names |= self._needed(at)
        return found

    @staticmethod
    def _needed(file):
        return set(re.findall(r"\(NEEDED\).*\[(.*)\]", _run("readelf", "-d", file)))

    def busybox(self, cache):
        """Returns the static busybox of Debian's package, which it downloads first."""
        folder = cache / "busybox-arm64"
        places = [folder / "usr/bin/busybox", folder / "bin/busybox"]
        if not any(p.exists() for p in places):
            folder.mkdir(exist_ok=True)
            apt = debian.Apt(debian.CACHE, debian.release(), self.debian)
            apt.update()
            apt.unpack(folder, ["busybox-static"], alone=True)
        return next(p for p in places if p.exists())


MACHINES = {m.name: m for m in (X86, Aarch64)}
