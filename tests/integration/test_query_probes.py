# SPDX-License-Identifier: BSD-3-Clause
"""The probes of a query neither change the data of an IOC nor count as what the IOC does.

From Linux 6.18 on the kernel writes a call over a nop of 5 bytes that has a probe, and overwrites the red zone of a leaf
function (probe/childTrial.h): no query gets such a place there. On other kernels all of them do. From 6.11 on a function with a
return probe returns by a system call of the kernel's own, uretprobe, which is none of the IOC."""
import platform
import re
import subprocess

import pytest
from tests.harness import paths
from tests.harness.preload import preload
from tests.harness.queries import load, rows, start, stop
from tests.harness.wait import until

CALLS = 200          # a probe that does harm changes each call but the first one
HARM_SINCE = 6, 18
CALLS_SINCE = 6, 11
PLACES = ["IN_FUNCTION", "IN_FILE", "MIXED", "ALL"]
KNOWN_CALLS = 1000   # in each processing of KNOWN
OF_PROBES = ["system call 335", "system call 336", "uretprobe", "uprobe"]
OF_IOC = {"of": {"thread": "CAS-client"}, "budget": 100}
ENTRIES = {"name": "ENTRIES", "source": {"syscalls": "entry"}, "keys": ["syscall"]} | OF_IOC
TIMES = {"name": "TIMES", "source": {"syscalls": "duration"}, "keys": ["syscall"]} | OF_IOC
RAW = {"name": "RAW", "source": {"tracepoint": "sys_enter"}, "keys": [{"arg": 2}]} | OF_IOC
RETURNS = {"name": "RETURNS", "source": {"function": "knownCall", "object": "latencyIoc", "when": "return"}} | OF_IOC
SAFE = {"name": "SAFE", "source": {"usdt": "redZone:safe", "object": "redZone*"}, "budget": 100}
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="nops of 5 bytes are those of x86-64")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The environment that loads the library, and what it counts."""
    tmp = tmp_path_factory.mktemp("redZone")
    counts = tmp / "counts"
    counts.write_bytes(bytes(4096))
    return preload(tmp, "redZone") | {"RED_ZONE": str(counts)}


@pytest.fixture(scope="module")
def place(library):
    """The nop of 5 bytes: its offset in leafNop5, in the file, and as "nm" shows it."""
    path = library["LD_PRELOAD"]
    symbols = {name: int(at, 16) for at, _, name in (line.split() for line in subprocess.run(
        ["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout.splitlines())}
    at = symbols["placeNop5"]
    for line in subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout.splitlines():
        part = line.split()
        if part[:1] == ["LOAD"] and int(part[2], 16) <= at < int(part[2], 16) + int(part[4], 16):
            return at - symbols["leafNop5"], at - int(part[2], 16) + int(part[1], 16), at
    raise AssertionError("no segment has placeNop5")


@pytest.fixture(scope="module")
def ioc(module_ioc, library):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros=f"US=1000,CALLS={KNOWN_CALLS}", environ=library).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, place, tmp_path_factory):
    own = [{"name": name, "source": source | {"object": "redZone*"}, "budget": 100} for name, source in (
        ("IN_FUNCTION", {"function": "leafNop5", "offset": place[0]}), ("IN_FILE", {"offset": place[1]}),
        ("MIXED", {"usdt": "redZone:mixed"}), ("ALL", {"usdt": "redZone:*"}))]
    m = module_monitor(before=load(tmp_path_factory.mktemp("queries"), [*own, SAFE, ENTRIES, TIMES, RAW, RETURNS])).start()
    m.wait_ioc(ioc)
    return m


def counts(library):
    with open(library["RED_ZONE"], "rb") as file:
        return [int.from_bytes(file.read(8), "little") for _ in range(2)]


def passes(library):
    """Waits until the places were passed often enough since now."""
    before = counts(library)[0]
    until(lambda: counts(library)[0] > before + CALLS, 60, "the leaf functions are called")


@pytest.mark.parametrize("name", PLACES)
def test_no_probe_changes_data(library, place, monitor, name):
    """Among several places of a USDT probe it is one. It gets no probe, and then the others get none, which the message
    says: it names the place."""
    monitor.put(f"{name}_RUN", 1)
    until(lambda: "nop of 5 bytes" in monitor.text(f"{name}_MSG") or monitor.get(f"{name}_EVENT_CNT") > 0, 60,
          lambda: monitor.text(f"{name}_MSG"))
    passes(library)
    message = monitor.text(f"{name}_MSG")
    if "nop of 5 bytes" in message:
        assert tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups())) >= HARM_SINCE
        assert f"{place[1] if name == 'IN_FILE' else place[2]:#x} is a nop of 5 bytes" in message
        assert message.endswith("Take another place or kernel (queries.md)"), message
        assert monitor.get(f"{name}_EVENT_CNT") == 0
    assert counts(library)[1] == 0
    stop(monitor, name)


def test_nop_of_one_byte(library, monitor):
    """A place beside it is probed as ever."""
    start(monitor, "SAFE")
    passes(library)
    until(lambda: monitor.get("SAFE_EVENT_CNT") >= CALLS, 60, "they are counted")
    stop(monitor, "SAFE")
    assert counts(library)[1] == 0


def test_system_calls_of_probes_do_not_count(ioc, monitor):
    """A thousand functions return by a system call that the IOC would not make without us. The raw tracepoint shows it,
    on kernels that have it; queries on system calls do not."""
    names = ["ENTRIES", "TIMES", "RAW", "RETURNS"]
    for name in names:
        start(monitor, name)
    ioc.put("KNOWN.PROC", 1)
    until(lambda: monitor.get("RETURNS_EVENT_CNT") == KNOWN_CALLS, 60, "the returns are counted")
    until(lambda: monitor.get("ENTRIES_EVENT_CNT") and monitor.get("TIMES_EVENT_CNT"), 60, "system calls are counted")
    if tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups())) >= CALLS_SINCE:
        until(lambda: dict(rows(monitor, "RAW", "KEY1S", "CNTS")).get("335", 0) >= KNOWN_CALLS, 60,
              lambda: str(rows(monitor, "RAW", "KEY1S", "CNTS")))
    for name in names:
        stop(monitor, name)
    for name in "ENTRIES", "TIMES":
        assert not [row for row in rows(monitor, name, "KEY1S", "CNTS") if row[0] in OF_PROBES]
