# SPDX-License-Identifier: BSD-3-Clause
"""The kernel of this host takes the eBPF programs also if another clang than that of the build makes them. A build takes much CPU
time, so make soak tries that; make clangs tries all releases on other kernels."""
import os
import subprocess

import pytest

from tests.harness import bpf, clangs, paths, soak

LOADER = paths.TESTS / "kernels" / f"O.{paths.ARCH}" / "loadPrograms"


def needed(folder):
    """The bytes of stack of each program, by the names of the functions."""
    objects = map(bpf.Object, folder.glob("ebpfMon*Bpf.o.bpf"))
    return {" > ".join(names): size for o in objects for size, names in map(o.deepest, o.programs())}


@soak.soak
@pytest.mark.skipif(not soak.IS_LONG, reason="make soak has it")
def test_programs_of_other_clangs():
    own = clangs.identify("clang")
    others = [c for c in clangs.installed().values() if c.number != own.number]
    if not others:
        pytest.skip("this machine has one clang only: apt-get install another one (apt-cache search '^clang-[0-9]')")
    for clang in others:
        folder = clangs.build(clang)
        deep = {names: size for names, size in needed(folder).items() if size > bpf.LIMIT}
        assert not deep, clang.version
        r = subprocess.run([LOADER, paths.TESTS / "kernels" / "queries.json"], stdout=subprocess.PIPE, text=True,
                           env={**os.environ, "LD_LIBRARY_PATH": str(folder)})
        assert r.returncode == 0 and r.stdout.count("yes ") > 10, f"clang {clang.version}: {r.stdout}"
