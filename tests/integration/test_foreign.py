# SPDX-License-Identifier: BSD-3-Clause
"""An IOC of another architecture, run by an emulator: it is listed, and the monitor says why it cannot look inside.
Under QEMU 7.2 softIoc does not reach its shell, so the test sends it nothing. Its program and libraries are mapped as
an emulator maps them."""
import shutil

import pytest
from tests.harness import db, paths
from tests.harness.wait import until

ARM = paths.CACHE / "aarch64"
COMPILER_LIBRARIES = "/usr/aarch64-linux-gnu/lib"


@pytest.fixture
def wrap():
    """The command in front of the program, and the program."""
    programs = [p for p in ARM.glob("*/bin/linux-aarch64/softIoc") if p.exists()]
    if not programs or not shutil.which("qemu-aarch64"):
        pytest.skip("no softIoc for aarch64 in the cache, or no qemu-aarch64 (package qemu-user)")
    path = ":".join([str(programs[0].parents[2] / "lib" / "linux-aarch64"), COMPILER_LIBRARIES])
    return ["qemu-aarch64", "-L", str(ARM / "sysroot"), "-E", f"LD_LIBRARY_PATH={path}"], programs[0]


def test_an_emulated_ioc_is_declined(new_ioc, module_monitor, wrap):
    monitor = module_monitor()
    monitor.start()
    ioc = new_ioc(db.READY, wrap=wrap[0], program=wrap[1])
    ioc.start(wait=False)
    row = monitor.wait_ioc(ioc, level="off", records=0, seconds=60)
    assert row[1].startswith("7."), row

    def note():
        return dict(zip(map(int, monitor.list("IOC_PIDS")), monitor.list("IOC_NOTES"))).get(ioc.pid) or ""

    until(lambda: note().startswith("a program for aarch64"), 30, note)  # the table cuts the text
    monitor.wait_text("STATE_MSG", lambda text: "for aarch64, which an emulator runs here" in text)
    monitor.wait_state("Degraded")
    assert monitor.records(ioc.name) == {}
    monitor.stop()
    assert ioc.running
    ioc.kill()
