# SPDX-License-Identifier: BSD-3-Clause
"""What we build has the usual protection against overwritten memory."""
import subprocess

import pytest
from tests.harness import paths

BUILT = [paths.MONITOR, paths.TOP / "lib" / paths.ARCH / "libebpfMon.so"]


def elf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("path", BUILT, ids=lambda p: p.name)
def test_hardening(path):
    dynamic, segments, symbols = elf("-d", path), elf("-l", path), elf("--dyn-syms", path)
    assert "BIND_NOW" in dynamic or "NOW" in dynamic  # the tables of functions are written once …
    assert "GNU_RELRO" in segments                    # … and are read-only then
    assert "__stack_chk_fail" in symbols
    assert "Type: DYN" in elf("-h", path).replace("  ", "") or "DYN (" in elf("-h", path)


def test_fortified():
    assert "_chk@" in elf("--dyn-syms", BUILT[1])
