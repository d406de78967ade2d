# SPDX-License-Identifier: BSD-3-Clause
"""Other releases of EPICS Base, if this machine has them: the IOCs of test_releases.py.

They are looked for in the folder EBPFMON_RELEASES, or "releases" in the cache: each folder in it is a built Base, or
has at least bin/ARCH/softIoc and dbd, and its name begins with the release: 3.15.9, 7.0.3.1-static, 7.0.8.1-static-clang-O2
(tools/buildRelease.sh builds the last two). The Base that the tests are built with is always one of them. A stripped form of each is made here: of those with shared libraries "stripped", of static
ones "bare", and "symbols", with the symbols in a folder of the site.
"""
import functools
import os
import re
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

from . import paths

# kind: shared, static, stripped, symbols, bare; compiler: "", or "clang-O2" if it is not the one that Base itself takes
Build = namedtuple("Build", "release kind compiler folder")

FOLDER = Path(os.environ.get("EBPFMON_RELEASES") or paths.CACHE / "releases")


def _soft_ioc(folder):
    return folder / "bin" / paths.ARCH / "softIoc"


@functools.cache
def own():
    """The release of our own Base."""
    text = (paths.BASE / "configure" / "CONFIG_BASE_VERSION").read_text()
    found = dict(re.findall(r"^EPICS_(VERSION|REVISION|MODIFICATION|PATCH_LEVEL)\s*=\s*(\d+)", text, re.M))
    parts = [found[part] for part in ("VERSION", "REVISION", "MODIFICATION", "PATCH_LEVEL")]
    return ".".join(parts if parts[3] != "0" else parts[:3])


def find():
    """All builds, the newest release first."""
    builds = [Build(own(), "shared", "", paths.BASE)]
    for folder in FOLDER.iterdir() if FOLDER.is_dir() else ():
        if os.access(_soft_ioc(folder), os.X_OK):
            release, kind, compiler, *_ = folder.name.split("-", 2) + ["", ""]
            builds.append(Build(release, kind or "shared", compiler, folder))
    builds += [b._replace(kind=kind) for b in builds for kind in {"shared": ["stripped"], "static": ["symbols", "bare"]}[b.kind]]
    return sorted(builds, key=lambda b: ([-int(n) for n in b.release.split(".")], b.compiler, b.kind))


def title(build):
    """Its name in the tables, and of its tests: 7.0.8.1-bare, 7.0.8.1-bare-clang-O2."""
    return "-".join(filter(None, [build.release, build.kind, build.compiler]))


def symbols(tmp):
    """The folder of the site with symbols."""
    return tmp / "symbols"


def prepare(build, tmp):
    """The program of this build, and what it needs in its environment."""
    if build.kind in ("symbols", "bare"):
        return _prepare_static(build, tmp), {}
    if build.kind != "stripped":
        return _soft_ioc(build.folder), {}
    copy = tmp / title(build)
    program, libs = _soft_ioc(copy), copy / "lib" / paths.ARCH
    if not copy.exists():
        libs.mkdir(parents=True)
        program.parent.mkdir(parents=True)
        (copy / "dbd").symlink_to(build.folder / "dbd")  # since 7.0 a softIoc looks for it beside itself
        for lib in (build.folder / "lib" / paths.ARCH).glob("*.so*"):
            shutil.copy(lib, libs, follow_symlinks=False)
        shutil.copy(_soft_ioc(build.folder), program)
        files = [f for f in libs.iterdir() if not f.is_symlink()] + [program]
        for f in files:
            f.chmod(0o755)
        subprocess.run(["strip", "--strip-unneeded", *files], check=True)
    return program, {"LD_LIBRARY_PATH": str(libs)}


def _prepare_static(build, tmp):
    copy = tmp / title(build)
    program = _soft_ioc(copy)
    if not copy.exists():
        program.parent.mkdir(parents=True)
        (copy / "dbd").symlink_to(build.folder / "dbd")
        whole = _soft_ioc(copy).with_suffix(".whole")
        # a text is another one, without which nothing is recognised
        data, hidden = _soft_ioc(build.folder).read_bytes(), b"dbtr(DBPROCESS)"
        whole.write_bytes(data.replace(b"dbtr(dbProcess)", hidden) if build.kind == "symbols" else data)
        whole.chmod(0o755)
        if build.kind == "symbols":
            subprocess.run([paths.SYMBOLS, symbols(tmp), whole], check=True)
        subprocess.run(["strip", "-o", program, whole], check=True)
    return program
