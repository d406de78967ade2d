# SPDX-License-Identifier: BSD-3-Clause
"""The monitor runs short of memory, threads or disk: it takes no more IOCs before anything fails, says what is short, and its
own server answers. When there is enough again, it goes on. Files: test_hostile.py."""
import os
import resource
from pathlib import Path

import pytest
from tests.harness import db
from tests.harness.wait import until

DB = db.READY + db.record("ao", "AO")
SHORT = 40 << 20  # less than RESERVE_BYTES (watch/targetLife.c)


@pytest.fixture
def new_group():
    """new_group("memory", pid): a control group with this process. The file of that controller in either version."""
    made = []

    def new(controller, pid):
        top = Path("/sys/fs/cgroup")
        top = top / controller if (top / controller).is_dir() else top
        group = top / f"ebpfmon-{os.getpid()}-{pid}"
        try:
            group.mkdir()
            made.append(group)
            (group / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            pytest.skip(f"no control group: {error}")
        if not any((group / f).exists() for f in ("pids.max", "memory.max", "memory.limit_in_bytes")):
            pytest.skip(f"no controller {controller}")
        return group

    yield new
    for group in made:
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


def limit_memory(monitor, how, new_group):
    """Leaves little. Returns what takes the limit away."""
    pid = monitor.process.pid
    if how == "addresses":
        size = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.prlimit(pid, resource.RLIMIT_AS, (size + SHORT, resource.RLIM_INFINITY))
        return lambda: resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    group = new_group("memory", pid)
    limit = next(f for f in (group / "memory.max", group / "memory.limit_in_bytes") if f.exists())
    limit.write_text(str(SHORT))
    return lambda: limit.write_text(str(1 << 30))


@pytest.mark.parametrize("how", ["addresses", "group"])
def test_little_memory(new_ioc, new_monitor, new_group, how):
    monitor = new_monitor().start()
    first = new_ioc(DB).start()
    monitor.wait_ioc(first)
    unlimit = limit_memory(monitor, how, new_group)
    ioc = new_ioc(DB).start()
    # on a busy host something else may be wrong for a moment, such as memory of an IOC that does not answer
    monitor.wait_text("STATE_MSG", lambda t: ioc.name in t and "MemoryMax" in t, 20)
    assert monitor.get("STATE", as_string=True) == "Degraded"
    assert monitor.iocs()[ioc.pid][2:] == (0, "off") and monitor.iocs()[first.pid][3] == "chains"
    first.put("AO", 4)
    until(lambda: "4" in monitor.list("PUT_VALUES"), 10, "the others are watched as before")
    unlimit()
    monitor.wait_ioc(ioc)
    monitor.wait_state("Running")
    ioc.put("AO", 5)
    until(lambda: "5" in monitor.list("PUT_VALUES"), 10, "the put is seen")


def test_few_threads(new_ioc, new_monitor, new_group):
    """No more threads can be made. The one that reads other processes is kept (testForeign), so new IOCs are watched."""
    monitor = new_monitor().start()
    monitor.wait_ioc(new_ioc(DB).start())
    group = new_group("pids", monitor.process.pid)
    (group / "pids.max").write_text((group / "pids.current").read_text())
    ioc = new_ioc(DB).start()
    monitor.wait_ioc(ioc)
    ioc.put("AO", 6)
    until(lambda: "6" in monitor.list("PUT_VALUES"), 10, "the put is seen")
    (group / "pids.max").write_text("max")
    monitor.wait_state("Running", 40)
