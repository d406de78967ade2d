# SPDX-License-Identifier: BSD-3-Clause
"""The monitor runs short of memory, threads or disk. It watches no more IOCs before something fails, says what is
short, and its own server still answers. When there is enough again, it continues. Files: test_hostile.py."""
import contextlib
import json
import os
import resource
import subprocess
from pathlib import Path

import pytest
from tests.harness import db, queries, rawca
from tests.harness.wait import settled, until

DB = db.READY + db.record("ao", "AO")
SHORT = 40 << 20  # less than RESERVE_BYTES (watch/targetLife.c)


@pytest.fixture
def new_group():
    """new_group("memory", pid) makes a control group with this process. Returns the file of this controller, for either
    version of control groups."""
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
    """Limits the memory so that little is left. Returns a function that removes the limit."""
    pid = monitor.process.pid
    if how == "addresses":
        def read_size():
            return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

        size = settled(read_size, 20, quiet=2)  # also threads that end soon need address space
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

    def refuses(ioc):
        """Waits until it is refused, or watched. On a busy host another message may come for a moment, such as memory of an IOC that
        does not answer."""
        return until(lambda: "refused" if all(w in monitor.text("STATE_MSG") for w in (ioc.name, "MemoryMax")) else
                     monitor.iocs().get(ioc.pid, ("", "", 0, ""))[3] == "chains" and "watched", 20, monitor.process.output) == "refused"

    for _ in range(5 if how == "addresses" else 1):  # it may have needed more when the limit was set than now, because it was reading another IOC of the host
        unlimit = limit_memory(monitor, how, new_group)
        ioc = new_ioc(DB).start()
        if refuses(ioc):
            break
        ioc.kill()
    assert monitor.get("STATE", as_string=True) == "Degraded"
    assert monitor.iocs()[ioc.pid][2:] == (0, "off") and monitor.iocs()[first.pid][3] == "chains"
    first.put("AO", 4)
    until(lambda: "4" in monitor.list("PUT_VALUES"), 10, "the others are watched as before")
    unlimit()
    monitor.wait_ioc(ioc)
    monitor.wait_state("Running")
    ioc.put("AO", 5)
    until(lambda: "5" in monitor.list("PUT_VALUES"), 10, "the put is seen")


def test_few_files(new_ioc, new_monitor):
    """No file is left for the probes of one more IOC: the one that is watched stays so, also when its probes change."""
    monitor = new_monitor().start()
    first = new_ioc(DB + db.counter("C", SCAN=".1 second")).start()
    monitor.wait_ioc(first)
    pid = monitor.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")) + 20, limits[1]))
    ioc = new_ioc(DB).start()
    monitor.wait_text("STATE_MSG", lambda t: ioc.name in t and "LimitNOFILE" in t, 20)
    for level in ("counts", "chains"):
        monitor.set_filter(LEVEL=level)
        monitor.wait_ioc(ioc, level="off", records=0)
        monitor.wait_ioc(first, level="counts")  # chains are more than before
    first.put("AO", 4)
    until(lambda: "4" in monitor.list("PUT_VALUES"), 10, "the put is seen")
    begin, made = first.get("C"), monitor.records(first.name)[first.prefix + "C"].count
    until(lambda: first.get("C") >= begin + 20, 10, "it processes")
    until(lambda: monitor.records(first.name)[first.prefix + "C"].count >= made + 20, 10, "it is counted")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    monitor.wait_ioc(ioc)
    monitor.wait_ioc(first)
    monitor.wait_state("Running")


def test_few_threads(new_ioc, new_monitor, new_group):
    """No more threads can be made. The thread that reads other processes is kept (testForeign), so new IOCs are still
    watched."""
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


def test_little_memory_for_tables(new_ioc, new_monitor, new_group):
    """At its start there is no memory for the tables of the kernel part. The monitor says so, serves its PVs, and starts by a
    command when there is."""
    ring = 256 << 10  # KiB
    holder = subprocess.Popen(["sleep", "infinity"])
    try:
        group = new_group("memory", holder.pid)
        limit = next(f for f in (group / "memory.max", group / "memory.limit_in_bytes") if f.exists())
        limit.write_text(str(ring << 9))
        for _ in range(5):  # on a busy host the kernel sometimes ends the monitor, because a thread needs memory while the ring takes all
            monitor = new_monitor(before=[f"ebpfMonConfigure 200000 8192 {ring}"])  # small tables of records
            with contextlib.suppress(AssertionError):
                monitor.launch(wrap=["sh", "-c", f'echo $$ >"{group}/cgroup.procs"; exec "$@"', "sh"])
                until(lambda m=monitor: not m.process.running or m.get("STATE", as_string=True, timeout=5) == "Failed", 20, "")
            if monitor.process.running:
                break
        monitor.wait_state("Failed")
        assert "MemoryMax" in monitor.text("STATE_MSG") and "ebpfMonStart" in monitor.text("STATE_MSG")
        limit.write_text(str(1 << 30))
        monitor.command("ebpfMonStart")
        monitor.wait_state("Running", 30)
        ioc = new_ioc(DB).start()
        monitor.wait_ioc(ioc)
        ioc.put("AO", 7)
        until(lambda: "7" in monitor.list("PUT_VALUES"), 10, "the put is seen")
    finally:
        holder.kill()
        holder.wait()


def test_few_perf_events(new_ioc, new_monitor, tmp_path):
    """No file is left, so no perf event can be opened for a query: it says why, all else goes on, and it is tried again by a command.
    Whose a put to the monitor is is known without a file."""
    ioc = new_ioc(DB).start()
    faults = {"name": "FAULTS", "source": {"event": "page-faults"}, "keys": ["tid"], "budget": 100}
    monitor = new_monitor(before=queries.load(tmp_path, [faults])).start()
    monitor.wait_ioc(ioc)
    pid = monitor.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)

    monitor.get("FAULTS_RUN")  # connects while there are files
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")), limits[1]))
    monitor.put("FAULTS_RUN", 1)
    queries.wait_state(monitor, "FAULTS", "Failed")
    assert "LimitNOFILE" in monitor.text("FAULTS_MSG")
    ioc.put("AO", 8)
    until(lambda: "8" in monitor.list("PUT_VALUES"), 10, "the put is seen")
    assert monitor.iocs()[ioc.pid][3] == "chains" and monitor.get("STATE", as_string=True) == "Running"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    monitor.put("FAULTS_RUN", 0)
    queries.start(monitor, "FAULTS")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KB. grow() makes it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0755", "none", folder], check=True)
    yield folder, lambda: subprocess.run(["mount", "-o", "remount,size=8m", folder], check=True)
    subprocess.run(["umount", "-l", folder], check=True)


def test_full_disk(small_disk, new_ioc, new_monitor):
    """The disk of a log is full: the monitor says so, and still sees all puts. When there is room again, each put is in
    the log once and in order, or the log says at this place how many puts are missing."""
    folder, grow = small_disk
    path, puts = folder / "puts.json", 2000
    ioc = new_ioc(DB).start()
    monitor = new_monitor(before=[f'ebpfMonJsonLog "{path}" 100 0 2 all']).start()
    monitor.wait_ioc(ioc)
    client = rawca.RawCa(ioc.port)

    def put(value):
        client.put(f"{ioc.prefix}AO", rawca.DOUBLE, [value])

    for value in range(puts):
        put(value)
    until(lambda: monitor.get("LOG_STATE", as_string=True) == "Trouble", 10, lambda: monitor.text("LOG_MSG"))
    assert str(path) in monitor.text("LOG_MSG") and "disk full" in monitor.text("LOG_MSG")
    until(lambda: str(puts - 1) in monitor.list("PUT_VALUES"), 10, "the last put is seen")
    assert path.read_bytes().endswith(b"\n") and monitor.get("STATE", as_string=True) == "Running"
    assert monitor.wait("LOG_LOST_CNT", lambda n: n > 0) and monitor.get("LOG_LOST_CNT.SEVR") == 2  # MAJOR
    cause = until(lambda: monitor.get("LOG_LOST_CNT.AMSG"), 5, "its cause")
    assert monitor.text("LOG_MSG").startswith(cause.removesuffix("...")), cause
    until(lambda: monitor.get("HOST_STATUS") == 2 and "lines of put logs are lost" in monitor.text("HOST_STATUS_MSG"), 5,
          lambda: monitor.text("HOST_STATUS_MSG"))
    grow()
    until(lambda: monitor.get("LOG_STATE", as_string=True) == "Ok", 20, lambda: monitor.text("LOG_MSG"))
    put(puts)
    client.close()

    def rows():
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]  # the last line may not be whole yet

    until(lambda: rows()[-1].get("value") == puts, 10, lambda: rows()[-1])
    expected = 0
    for row in rows():
        if "lost" in row:
            expected += row["lost"]
        else:
            assert row["value"] == expected, f"{row}, not {expected}"
            expected += 1
    assert expected == puts + 1
    assert monitor.get("LOG_LOST_CNT") == sum(row.get("lost", 0) for row in rows()) > 0
    assert monitor.get("HOST_STATUS") == 2 and "disk full" in monitor.text("HOST_STATUS_MSG")  # until somebody has seen it
    monitor.put("LOST_RESET", 1)
    until(lambda: monitor.get("HOST_STATUS") == monitor.get("LOG_LOST_CNT.SEVR") == 0, 5, lambda: monitor.text("HOST_STATUS_MSG"))


def test_many_network_namespaces(new_ioc, new_monitor):
    """Packets are read in 32 network namespaces. If there are more, the monitor says what it does not see. The message
    ends when they fit."""
    monitor = new_monitor().start()
    monitor.wait("PACKET_STATE", lambda state: state == 1)
    iocs = [new_ioc(DB, wrap=["unshare", "--net"]).start(wait=False) for _ in range(32)]
    monitor.wait("PACKET_STATE", lambda state: state == 2, 30)
    cause = "packets of a namespace are not read"
    assert (monitor.get("PACKET_STATE.SEVR"), monitor.get("PACKET_STATE.AMSG")) == (1, cause)
    until(lambda: cause in monitor.text("HOST_STATUS_MSG"), 10, lambda: monitor.text("HOST_STATUS_MSG"))
    assert "more)" not in monitor.text("HOST_STATUS_MSG")
    until(lambda: "In 1 of them no packets are read" in monitor.process.output(200), 10, lambda: monitor.process.output(200))
    iocs[0].kill()
    monitor.wait("PACKET_STATE", lambda state: state == 1, 30)
    assert (monitor.get("PACKET_STATE.SEVR"), monitor.get("PACKET_STATE.AMSG")) == (0, "")
    for ioc in iocs[1:]:
        ioc.kill()
