# SPDX-License-Identifier: BSD-3-Clause
"""The architectures of the emulated machine: how QEMU is called, and where programs and their libraries come from."""
import pathlib
import re
import shutil
import subprocess

from tests.harness import debian, paths


class Unavailable(debian.Unavailable):
    """What a machine needs is not here."""


def _run(*command):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=True).stdout


class X86:
    """Debian's amd64: of this host."""
    name, debian, suites = "x86_64", None, ["bullseye-security", "bookworm-security", "trixie-security", "trixie-backports"]
    package, console = "linux-image-cloud-amd64", "ttyS0"
    # One thread emulates both CPUs. With two threads, one CPU can run an instruction while the other one
    # changes it, as Linux does for its tracepoints. Linux 6.12 crashed of that (int3 in __schedule). Some kernels crash in
    # emulation with cx16.
    qemu = "qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "qemu64,-cx16"

    def libraries(self, program):
        """Files of this host → the same places in the machine."""
        out = _run("ldd", program)
        if "not found" in out:
            raise Unavailable(f"{program}: {out}")
        return {p: str(p) for p in map(pathlib.Path, re.findall(r"(?:=> )?(/\S+) \(0x", out))}

    def busybox(self, _cache):
        return shutil.which("busybox")


class Aarch64:
    """Debian's arm64, built by tools/cross.sh."""
    name, debian, suites = "aarch64", "arm64", ["trixie-security"]
    package, console = "linux-image-cloud-arm64", "ttyAMA0"
    # A CPU without signed pointers, which take long in emulation.
    qemu = "qemu-system-aarch64", "-machine", "virt", "-accel", "tcg", "-cpu", "cortex-a72"
    sysroot = paths.CACHE / "aarch64" / "sysroot"
    folders = [paths.TOP / "lib" / paths.ARCH, paths.BASE / "lib" / paths.ARCH, sysroot / "usr/lib/aarch64-linux-gnu",
               pathlib.Path("/usr/aarch64-linux-gnu/lib")]
    LOADER = "ld-linux-aarch64.so.1"

    def libraries(self, program):
        found, names = {}, {self.LOADER} | self._needed(program)
        while names:
            name = names.pop()
            at = next((f / name for f in self.folders if (f / name).exists()), None)
            if not at:
                raise Unavailable(f"{program} needs {name}, which is in none of {', '.join(map(str, self.folders))}")
            if at not in found:
                found[at] = f"/lib/{name}" # where the loader looks
                names |= self._needed(at)
        return found

    @staticmethod
    def _needed(file):
        return set(re.findall(r"\(NEEDED\).*\[(.*)\]", _run("readelf", "-d", file)))

    def busybox(self, cache):
        """Of Debian's package for arm64, from the archive's own release: it is static."""
        folder = cache / "busybox-arm64"
        if not (folder / "usr/bin/busybox").exists() and not (folder / "bin/busybox").exists():
            folder.mkdir(exist_ok=True)
            apt = debian.Apt(debian.CACHE, debian.release(), self.debian)
            apt.update()
            apt.unpack(folder, ["busybox-static"], alone=True)
        return next(p for p in (folder / "usr/bin/busybox", folder / "bin/busybox") if p.exists())


MACHINES = {m.name: m for m in (X86, Aarch64)}
