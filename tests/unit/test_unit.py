# SPDX-License-Identifier: BSD-3-Clause
"""Each unit test program is one test here, so that they run beside the others. "make runtests" runs the same
programs."""
import subprocess

import pytest

from tests.harness import paths

SOURCES = paths.TESTS / "unit"
BUILT = SOURCES / f"O.{paths.ARCH}"
PROGRAMS = sorted(p.stem for p in SOURCES.glob("test*.c*") if (BUILT / f"{p.stem}.t").exists())


@pytest.mark.parametrize("program", PROGRAMS)
def test_unit(program):
    done = subprocess.run(["perl", paths.BASE_BIN / "epicsProve.pl", "--failures", f"{program}.t"], cwd=BUILT,
                          text=True, errors="replace", timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
