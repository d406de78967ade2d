# SPDX-License-Identifier: BSD-3-Clause
"""More files with code of EPICS than the monitor keeps: an IOC with a new build of its libraries is watched all the same."""
import shutil
import struct
import sys

import pytest
from tests.harness import db, loopback, paths
from tests.harness.process import Process

FILES, PROCESSES = 100, 25  # together more than EBPFMON_KNOWN_MAX (code/image.h)
MAPPER = r"""
import mmap, sys
maps = []
for name in sys.argv[1:]:
    with open(name, "rb") as f:
        maps.append(mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print("mapped", flush=True)
sys.stdin.read()
"""


def library(number):
    """A library that has one symbol, pdbbase, and no more."""
    head, section = 64, 64
    symbols = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0) + struct.pack("<IBBHQQ", 1, 0x11, 0, 1, 4096, 8)
    names = b"\0pdbbase\0" + str(number).encode()
    at = head + 3 * section
    sections = [(0,) * 10, (0, 11, 0, 0, at, len(symbols), 2, 0, 0, 24), (0, 3, 0, 0, at + len(symbols), len(names), 0, 0, 0, 0)]
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    return (ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, head, 0, head, 56, 0, section, 3, 0) +
            b"".join(struct.pack("<IIQQQQIIQQ", *s) for s in sections) + symbols + names)


@pytest.fixture
def map_many(tmp_path):
    """Starts processes that map such libraries, each others."""
    made = []

    def start():
        for p in range(PROCESSES):
            files = [tmp_path / f"lib{p}.{n}.so" for n in range(FILES)]
            for number, file in enumerate(files):
                file.write_bytes(library(number))
            made.append(Process([sys.executable, "-c", MAPPER, *files], loopback.client(0)))
        for process in made:
            process.wait_line("mapped")

    yield start
    for process in made:
        process.kill()


def test_new_build_is_watched(tmp_path, map_many, new_ioc, new_monitor):
    """The monitor forgets files whose processes are no IOCs. It watches no IOC of which it knows only some files: the program of
    the second one, which has a pdbbase of its own, is met when there is no room, but its libraries are known."""
    database = db.READY + db.record("ao", "AO")
    iocs = [new_ioc(database, kind="softIocPVA").start()]
    map_many()
    (tmp_path / "dbd").symlink_to(paths.BASE / "dbd")  # softIoc looks for its database definition beside it
    folder = tmp_path / "bin" / paths.ARCH
    folder.mkdir(parents=True)
    iocs.append(new_ioc(database, program=shutil.copy(paths.BASE_BIN / "softIoc", folder)).start())
    monitor = new_monitor().start()
    build = tmp_path / "libdbCore.so"
    shutil.copy(next((paths.BASE / "lib" / paths.ARCH).glob("libdbCore.so.*")), build)
    iocs.append(new_ioc(database, environ={"LD_PRELOAD": str(build)}).start())
    assert str(build) in open(f"/proc/{iocs[-1].pid}/maps").read()
    for ioc in iocs:
        monitor.wait_ioc(ioc, records=2, seconds=40)
        ioc.put("AO", 4.5)
        monitor.wait_text("PUT_LAST", lambda t: f"{ioc.prefix}AO 0 -> 4.5" in t)
    monitor.wait_state("Running")
