# SPDX-License-Identifier: BSD-3-Clause
"""The BPF programs as other compilers make them: finds releases of clang, or unpacks them into the cache, and builds
the BPF objects and the library that embeds them with each. All of it is in the cache; this tree does not change."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing
import zlib

from . import debian, paths

FOLDER = paths.CACHE / "clangs"

# Where a release comes from, if this machine has no command clang-N: a suite of Debian; or the wheel ziglang of PyPI,
# whose program is also the driver of the clang that it contains. No suite of Debian has clang 20.
SUITES = {14: "bookworm", 15: "bookworm", 16: "bookworm", 17: "trixie", 18: "trixie", 19: "trixie", 21: "forky",
          22: "trixie", 23: "sid"}
WHEELS = {20: "ziglang==0.15.2"}
KNOWN = sorted([*SUITES, *WHEELS])


class Clang(typing.NamedTuple):
    number: int
    command: pathlib.Path
    version: str  # 19.1.7


class Failed(Exception):
    """A build failed; the text says where its log is."""


def ask(command, *arguments):
    return subprocess.run([command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def identify(command):
    """The clang that this command is; None: it is none."""
    found = re.search(r"clang version ((\d+)[.\d]+)", ask(command, "--version"))
    return Clang(int(found[2]), pathlib.Path(command), found[1]) if found else None


def installed():
    """The releases that this machine has: number → Clang."""
    commands = [shutil.which(f"clang-{n}") or FOLDER / f"clang-{n}" for n in KNOWN]
    return {c.number: c for c in (identify(p) for p in commands if pathlib.Path(p).exists()) if c}


def _write(number, *words):
    """Makes the command clang-N of the cache, when all that it needs is there."""
    command = FOLDER / f"clang-{number}"
    part = command.with_suffix(".part")
    part.write_text("#!/bin/sh\nexec " + " ".join(f"'{w}'" for w in words) + ' "$@"\n')
    part.chmod(0o755)
    part.rename(command)


def fetch(number):
    """Unpacks a release into the cache. Raises debian.Unavailable."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    root = FOLDER / str(number)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    if number in WHEELS:
        with tempfile.TemporaryDirectory(dir=FOLDER) as tmp:
            if subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp, WHEELS[number]],
                              stdout=subprocess.DEVNULL).returncode:
                raise debian.Unavailable(f"pip has no {WHEELS[number]}")
            shutil.unpack_archive(next(pathlib.Path(tmp).glob("*.whl")), root, "zip")
        (root / "ziglang" / "zig").chmod(0o755)
        _write(number, root / "ziglang" / "zig", "clang", "-resource-dir", root / "ziglang" / "lib")
        return
    machine = ask("dpkg", "--print-architecture").strip()
    apt = debian.Apt(debian.CACHE, SUITES[number], machine)
    apt.update()
    apt.unpack(root, [f"clang-{number}"])
    # It is of another release of Debian, so it runs with the C library that it was built for. Up to Debian 12 the package
    # of this library has it in /lib.
    loader, libc = (next(f for top in (root / "usr", root) for f in top.glob(where))
                    for where in ("lib*/ld-linux-*.so.*", "lib/*/libc.so.6"))
    libraries = ":".join(str(root / d / libc.parent.name) for d in ("lib", "usr/lib"))
    llvm = root / f"usr/lib/llvm-{number}"
    _write(number, loader, "--library-path", f"{libraries}:{llvm}/lib", llvm / "bin/clang", "-resource-dir",
           next((llvm / "lib/clang").glob(f"{number}*")))


def _seed(folder, part):
    """What no compiler of BPF objects makes is taken from this tree, if it is newer there: so only what embeds a BPF
    object is compiled again."""
    for f in (paths.TOP / part / f"O.{paths.ARCH}").iterdir():
        to = folder / f.name
        wanted = f.suffix in (".o", ".d") and not f.name.endswith(".bpf.o")
        if wanted and (not to.exists() or to.stat().st_mtime < f.stat().st_mtime):
            shutil.copy2(f, to)
    for f in folder.glob("*.skel.h"):
        f.unlink()


def build(clang):
    """Builds the BPF objects and the libraries that embed them, and returns the folder of all. Raises Failed."""
    tree = FOLDER / f"tree-{zlib.crc32(str(paths.TOP).encode())}"  # each clone has its own
    name = f"O.clang-{clang.version}"
    subprocess.run([paths.TOP / "tools" / "copyTree.sh", tree, paths.BASE], check=True)
    for part, library in PARTS:
        _make(clang, tree / part / name, part, library)
    for part, library in PARTS[1:]:
        for f in [tree / part / name / library, *(tree / part / name).glob("ebpfMon*Bpf.o.bpf")]:
            shutil.copy2(f, tree / PARTS[0][0] / name)
    return tree / PARTS[0][0] / name


# The libraries that embed BPF objects, of which an other clang makes its own.
PARTS = (("ebpfMonSup", "libebpfMon.so"), ("ebpfMonModules/query", "libebpfMonQuery.so"),
         ("ebpfMonModules/device", "libebpfMonDevice.so"))


def _make(clang, folder, part, library):
    folder.mkdir(exist_ok=True)
    _seed(folder, part)
    log = folder / "log"
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with open(log, "wb") as out:
        made = subprocess.run(["make", "-C", folder, "-f", "../Makefile", f"-j{os.cpu_count()}",
                               f"TOP={os.path.relpath('.', part)}/..", f"T_A={paths.ARCH}", f"CLANG={clang.command}",
                               f"SHRLIB_SEARCH_DIRS={paths.TOP / 'lib' / paths.ARCH} {paths.BASE / 'lib' / paths.ARCH}",
                               library],
                              stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment)
    if made.returncode:
        raise Failed(f"clang {clang.version} does not build ebpfMon: see {log}")
