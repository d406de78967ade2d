# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that change what a program does, without a change of the program: tests/harness/*.c."""
import subprocess

from . import paths


def preload(folder, name, *options):
    """Builds the library in the folder. "options" of the compiler. Returns the environment of programs into which it is loaded."""
    library = folder / f"{name}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, paths.TESTS / "harness" / f"{name}.c", "-ldl", *options], check=True)
    return {"LD_PRELOAD": str(library)}


def preload_asyn(folder):
    """asynLocks.c, against the asyn that tools/modules.sh has built."""
    asyn = paths.ASYN
    return preload(folder, "asynLocks", *(f"-I{paths.BASE}/include{more}" for more in ("", "/os/Linux", "/compiler/gcc")), f"-I{asyn}/include",
                   f"-L{paths.BASE}/lib/{paths.ARCH}", f"-L{asyn}/lib/{paths.ARCH}", "-ldbCore", "-lCom", "-lasyn", "-DUSE_TYPED_RSET")
