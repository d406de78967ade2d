# SPDX-License-Identifier: BSD-3-Clause
"""IOCs and the monitor start, end and crash. Neither disturbs the other."""
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tests.harness import db, loopback, paths
from tests.harness.kernel import changed_code, held, in_kernel, nothing_left, remove_elements, resident
from tests.harness.monitor import Monitor
from tests.harness.process import Process
from tests.harness.soak import size, soak
from tests.harness.wait import until

DB = db.READY + db.chain("C", 10) + db.record("ao", "AO")


def counted(monitor, ioc, times=5):
    """Makes the chain C process some times, and waits until the monitor has counted this."""
    name = ioc.prefix + "C9"
    before = monitor.records(ioc.name)[name].count
    for _ in range(times):
        ioc.put("C0.PROC", 1)
    until(lambda: monitor.records(ioc.name)[name].count == before + times, 10,
          lambda: f"{times} more than {before}: {monitor.records(ioc.name)[name]}")


@pytest.fixture
def monitor(new_monitor):
    return new_monitor().start()


def test_ioc_started_after_the_monitor(new_ioc, monitor):
    ioc = new_ioc(DB).start()
    name, version, records, level = monitor.wait_ioc(ioc, records=12)
    assert (name, version, records, level) == (ioc.name, "7.0.8.1", 12, "chains")
    assert monitor.get("IOC_CNT") >= 1
    counted(monitor, ioc)


def test_ioc_that_nobody_watches(new_ioc, new_monitor):
    """At level off only its records are known, after a while. As soon as a level is asked for, they are counted."""
    ioc = new_ioc(DB).start()
    monitor = new_monitor(iocs="none").start()
    monitor.wait_ioc(ioc, level="off", records=12)

    def row():
        return next(line for line in monitor.command(f'ebpfMonRecords "{ioc.name}" "*C9"') if line.startswith(ioc.prefix))

    assert row().endswith("not counted"), row()
    monitor.set_filter(IOC=ioc.name)
    monitor.wait_ioc(ioc)
    counted(monitor, ioc)


def test_ioc_stop_and_start(new_ioc, monitor):
    ioc = new_ioc(DB).start()
    monitor.wait_ioc(ioc)
    pid = ioc.pid
    ioc.stop()
    monitor.wait_gone(pid)
    ioc.start()
    assert ioc.pid != pid
    monitor.wait_ioc(ioc)
    counted(monitor, ioc)
    monitor.wait_state("Running")


def test_ioc_killed(new_ioc, monitor):
    ioc, other = new_ioc(DB).start(), new_ioc(DB).start()
    monitor.wait_ioc(ioc)
    monitor.wait_ioc(other)
    pid = ioc.pid
    ioc.kill()
    monitor.wait_gone(pid)
    counted(monitor, other)
    ioc.start()
    monitor.wait_ioc(ioc)
    counted(monitor, ioc)


def test_exec_of_another_program(new_ioc, monitor):
    """A process is an IOC, then another program, then an IOC with other records. Its pid stays the same."""
    a, b = new_ioc(DB), new_ioc(db.READY + db.chain("OTHER", 5))
    # exec: the shell becomes the IOC, with the same pid
    script = " ".join(["exec", *map(str, a.argv())])
    a.process = Process(["/bin/sh", "-c", script], loopback.server(a.port, IOC=a.name), cwd=a.tmp)
    a.wait_ready()
    monitor.wait_ioc(a)
    counted(monitor, a)
    pid = a.pid
    a.stop()
    monitor.wait_gone(pid)

    # A process that the monitor knows, and that is no IOC, becomes an IOC by exec.
    b.process = Process(["/bin/sh", "-c", "read go; exec " + " ".join(map(str, b.argv()))],
                        loopback.server(b.port, IOC=b.name), cwd=b.tmp)
    assert b.pid not in monitor.iocs()
    b.process.send("go")
    b.wait_ready()
    monitor.wait_ioc(b, records=6)
    assert f"{b.prefix}OTHER4" in monitor.records(b.name)

    # An IOC becomes another program by exec.
    c = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "exec_ioc.py"]).start(ready="AO")
    monitor.wait_ioc(c)
    c.process.send("exec")
    monitor.wait_gone(c.pid)
    assert c.running, "the process still runs, but it is no IOC"
    monitor.wait_state("Running")


def test_plain_program_of_an_unwatched_ioc(new_ioc, new_monitor):
    """The kernel does not tell the starts of programs that are known as plain; but it does if the process was an IOC."""
    monitor = new_monitor(iocs="none").start()
    for _ in range(20):  # twelve that end at once are enough: then /bin/cat is known as plain
        subprocess.run(["/bin/cat"], stdin=subprocess.DEVNULL, check=True)
    ioc = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "exec_ioc.py"]).start(ready="AO")
    monitor.wait_ioc(ioc, level="off", records=0)
    ioc.process.send("exec")
    monitor.wait_gone(ioc.pid)
    assert ioc.running, "the process still runs, but it is no IOC"


def test_exec_that_no_event_told(new_ioc, monitor):
    """The monitor sees it by the addresses of the program, once a second."""
    for _ in range(20):  # then /bin/cat is known as plain
        subprocess.run(["/bin/cat"], stdin=subprocess.DEVNULL, check=True)
    ioc = new_ioc(kind="pythonSoftIOC", files=[paths.PROGRAMS / "exec_ioc.py"]).start(ready="AO")
    monitor.wait_ioc(ioc)
    # now the kernel part does not know that it is an IOC, and does not tell its start of /bin/cat: as if the event was lost
    assert remove_elements(monitor.process.pid, "found", lambda key: int.from_bytes(key, sys.byteorder) == ioc.pid) == 1
    ioc.process.send("exec")
    monitor.wait_gone(ioc.pid)
    assert ioc.running, "the process still runs, but it is no IOC"


def test_two_iocs_with_the_same_records(new_ioc, monitor):
    a = new_ioc(DB, prefix="SAME:").start()
    b = new_ioc(DB, prefix="SAME:").start()
    monitor.wait_ioc(a)
    monitor.wait_ioc(b)
    start = {i.name: monitor.records(i.name)["SAME:C9"].count for i in (a, b)}
    for ioc, number in ((a, 7), (b, 3)):
        for _ in range(number):
            assert ioc.run("caput", "-c", "SAME:C0.PROC", 1).returncode == 0
    for ioc, number in ((a, 7), (b, 3)):
        until(lambda i=ioc, n=number: monitor.records(i.name)["SAME:C9"].count - start[i.name] == n, 10,
              lambda i=ioc: f"{i.name}: {monitor.records(i.name)['SAME:C9']} from {start}")
    for ioc in (a, b):
        ioc.run("caput", "-c", "SAME:C0.SCAN", ".1 second")
    # in lists the name of the IOC is added
    until(lambda: {f"SAME:C0@{a.name}", f"SAME:C0@{b.name}"} <= set(monitor.list("PROC_TOP_NAMES")), 10,
          lambda: str(monitor.list("PROC_TOP_NAMES")))


def test_name_of_a_restarted_ioc(new_ioc, new_monitor):
    """It keeps its name also if it is back before the monitor has seen that it had ended, and is watched by this name."""
    ioc = new_ioc(DB).start()
    monitor = new_monitor(iocs="none").start()
    for _ in range(5):
        monitor.wait_ioc(ioc, level="off", records=0)
        ioc.kill()
        ioc.start()
        until(lambda: ioc.pid in monitor.iocs(), 10, lambda: str(monitor.iocs()))
        assert monitor.iocs()[ioc.pid][0] == ioc.name
    monitor.set_filter(IOC=ioc.name)
    monitor.wait_ioc(ioc)
    counted(monitor, ioc)


def test_second_ioc_with_the_name(new_ioc, new_monitor):
    """Who takes the name of an IOC first does not make the true one unwatched."""
    first = new_ioc(DB).start()
    monitor = new_monitor(iocs=first.name).start()
    monitor.wait_ioc(first)
    second = new_ioc(DB, name=first.name).start()
    until(lambda: monitor.iocs().get(second.pid, [None] * 4)[3] == "chains", 10, lambda: str(monitor.iocs()))
    assert monitor.iocs()[second.pid][0] == f"{first.name}#{second.pid}"
    assert monitor.iocs()[first.pid][0] == first.name


def costs(monitor):
    """pid → what the monitor takes from the IOC (percent)."""
    def read():
        pids, columns = monitor.list("IOC_PIDS"), monitor.list("IOC_COSTS")
        return dict(zip(map(int, pids), columns)) if len(pids) == len(columns) else None

    return until(read, 10, "a cost for each IOC")


def test_each_ioc_has_its_own_cost(new_ioc, monitor):
    """A busy IOC, an idle one, and a third that comes when the busy one has ended."""
    monitor.set_filter(BUDGET=0, TIMED=100)  # each chain of the busy IOC is a trap
    busy = new_ioc(db.READY + "".join(db.counter(f"B{i}", SCAN=".1 second") for i in range(300))).start()
    idle = new_ioc(db.READY).start()
    for ioc in busy, idle:
        monitor.wait_ioc(ioc)

    def is_cheap(pid):
        return costs(monitor).get(pid, 9) < most / 3

    most = until(lambda: max(0, costs(monitor).get(busy.pid, 0) - 0.1), 20, "the busy IOC costs something") + 0.1
    until(lambda: is_cheap(idle.pid), 20, lambda: f"{idle.pid} costs little: {costs(monitor)}")
    busy.kill()
    later = new_ioc(db.READY).start()
    monitor.wait_ioc(later)
    for ioc in idle, later:
        until(lambda: is_cheap(ioc.pid), 20, lambda: f"{ioc.pid} costs little: {costs(monitor)}")


@soak
def test_many_quick_restarts(new_ioc, monitor):
    """The IOC ends before, while and after the monitor reads its records."""
    stay = new_ioc(DB).start()
    monitor.wait_ioc(stay)
    ioc = new_ioc(DB)
    for i in range(size(6, 36)):
        ioc.start(wait=i % 3 != 0)
        if i % 3 == 2:
            ioc.run("caput", ioc.prefix + "C0.PROC", 1)
        ioc.kill()
    ioc.start()
    monitor.wait_ioc(ioc, records=12)
    counted(monitor, ioc)
    counted(monitor, stay)
    until(lambda: {p for p, row in monitor.iocs().items() if row[3] != "off"} == {stay.pid, ioc.pid}, 10,
          lambda: str(monitor.iocs()))
    monitor.wait_state("Running")


@soak
def test_bounded_memory_over_restarts(new_ioc, monitor):
    """The catalogue of this IOC takes about 4 MB of the monitor's memory. Three restarts of the IOC (six in the long
    form) take less memory than those of as many restarts. Other IOCs of the host take some, too."""
    lives = size(3, 6)
    text = db.READY + "".join(db.counter(f"C{i}") for i in range(30000))
    ioc, other = new_ioc(text), new_ioc(text)
    # An IOC that ended is kept for 3 s, in which the next one may be read or not: memory for two is used before it is measured.
    for i in (ioc, other):
        i.start()
    for i in (ioc, other):
        monitor.wait_ioc(i)
    for i in (ioc, other):
        i.kill()
        monitor.wait_gone(i.pid)
    sizes = []
    for i in range(2 * lives + 1):
        ioc.start()
        monitor.wait_ioc(ioc)
        ioc.kill()
        monitor.wait_gone(ioc.pid)
        if i % lives == 0:
            sizes.append(resident(monitor.process.pid))
    print(sizes)
    assert sizes[2] - sizes[1] < 8 << 20, sizes  # if the catalogue stayed: 12 MB, 24 MB; some come and go


@pytest.mark.parametrize("how", ["exit", "SIGTERM", "SIGKILL"])
def test_monitor_end_leaves_nothing(new_ioc, new_monitor, how):
    ioc = new_ioc(DB).start()
    monitor = new_monitor().start()
    monitor.wait_ioc(ioc)
    counted(monitor, ioc)
    ours = held(monitor.process.pid)
    assert {kind for kind, _ in ours} == {"prog", "map", "link"} and ours <= in_kernel(), "BPF objects of the monitor"
    if how == "exit":
        monitor.process.send("exit")
    else:
        monitor.process.signal(getattr(signal, how))
    monitor.process.wait(15)
    nothing_left(ours)
    assert ioc.running
    ioc.put("C0.PROC", 1)
    # a new monitor finds the IOC again
    again = Monitor(monitor.tmp, prefix=monitor.prefix)
    try:
        again.start()
        again.wait_ioc(ioc)
        counted(again, ioc)
    finally:
        again.discard()


@soak
@pytest.mark.parametrize("rights", ["all", "service"])
def test_killed_while_it_ends(new_ioc, new_monitor, monkeypatch, rights):
    """SIGKILL at random moments of its exit: no probe of ours stays in any IOC. With the rights of the service it has no folder for
    its probes (probe/linkFolder.h), and the kernel closes each of them."""
    monkeypatch.setenv("EBPFMON_RIGHTS", rights)
    iocs = [new_ioc(DB).start() for _ in range(size(2, 6))]
    takes = 0
    for n in range(size(3, 40)):
        monitor = new_monitor().start()
        for ioc in iocs:
            monitor.wait_ioc(ioc)
        assert all(changed_code(ioc.pid) for ioc in iocs)
        monitor.process.send("exit")
        begin = time.monotonic()
        if n:  # the moment is what is tested
            time.sleep(random.random() * takes)
            monitor.process.signal(signal.SIGKILL)
        monitor.process.wait(30)
        takes = takes or time.monotonic() - begin
        until(lambda: not any(changed_code(ioc.pid) for ioc in iocs), 10, lambda: [changed_code(ioc.pid) for ioc in iocs])
        monitor.discard()  # its port is free again


def test_two_monitors(new_ioc, new_monitor):
    """Both monitors watch the IOC and each other. Neither watches itself."""
    ioc = new_ioc(DB).start()
    ours = f"???{os.getpid()}x*"  # the names of our IOCs and monitors
    a, b = new_monitor(iocs=ours).start(), new_monitor(iocs=ours).start()
    for m, other in ((a, b), (b, a)):
        m.wait_ioc(ioc)
        counted(m, ioc)
        until(lambda: m.iocs().get(other.process.pid, ("", "", 0, ""))[3] == "chains", 10, lambda: str(m.iocs()))
        assert m.process.pid not in m.iocs()


@pytest.mark.skipif(subprocess.run(["setpriv", "--version"], capture_output=True).returncode != 0,
                    reason="no setpriv")
@pytest.mark.parametrize("wrap", [
    ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"],
    ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"],
], ids=["no-capabilities", "not-root"])
def test_start_without_privileges(new_ioc, new_monitor, wrap, tmp_path):
    """The monitor does not exit, and STATE_MSG says what to do."""
    if "--reuid" in wrap:
        reach = subprocess.run([*wrap, "test", "-x", str(paths.MONITOR), "-a", "-r", str(paths.BASE_BIN / "softIoc")],
                               cwd="/", check=False).returncode
        if reach:
            pytest.skip("the tree or Base lies where other users cannot read it")
    ioc = new_ioc(DB).start()
    monitor = new_monitor()
    monitor.launch(wrap)
    monitor.wait_state("Failed", 20)
    message = monitor.text("STATE_MSG")
    assert any(word in message for word in ("root", "CAP_BPF", "privilege")), message
    assert monitor.get("STATE.SEVR", as_string=True) == "MAJOR"
    assert monitor.process.running
    assert ioc.running
    assert monitor.get("IOC_CNT") >= 0


@pytest.mark.skipif(subprocess.run(["setpriv", "--version"], capture_output=True).returncode != 0,
                    reason="no setpriv")
def test_start_without_sys_ptrace(new_ioc, new_monitor):
    """The monitor runs and sees no IOC. STATE_MSG says why."""
    new_ioc(DB).start()
    monitor = new_monitor()
    monitor.launch(["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace"])
    monitor.wait_state("Degraded", 20)
    assert "CAP_SYS_PTRACE" in monitor.text("STATE_MSG")
    assert monitor.get("STATE.SEVR", as_string=True) == "MINOR" and monitor.text("STATE_MSG").startswith(monitor.get("STATE.AMSG")[:34] or "?")
    monitor.stop()
    monitor.start()
    assert (monitor.get("STATE.SEVR", as_string=True), monitor.get("STATE.AMSG")) == ("NO_ALARM", "")


@pytest.mark.skipif(subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0,
                    reason="no mount namespaces")
def test_start_again(new_ioc, new_monitor):
    """ebpfMonStart tries again after a failed start, with the filter that was set before."""
    ioc, other = new_ioc(DB).start(), new_ioc(DB, name="other").start()
    monitor = new_monitor()
    monitor.launch(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf; exec "$@"', "sh"])
    monitor.wait_state("Failed", 20)
    assert monitor.get("STATE.SEVR", as_string=True) == "MAJOR"
    assert "BTF" in monitor.text("STATE_MSG")
    assert "ebpfMonStart" in "\n".join(monitor.command("ebpfMonIocs"))
    assert "accepted" in monitor.text("FILTER_STATUS")
    assert any("did not start" in line for line in monitor.command("ebpfMonStart"))
    subprocess.run(["nsenter", "--mount", "--target", str(monitor.process.pid), "umount", "/sys/kernel/btf"],
                   check=True)
    assert any("ebpfMon runs" in line for line in monitor.command("ebpfMonStart"))
    monitor.wait_state("Running")
    assert monitor.get("STATE.SEVR", as_string=True) == "NO_ALARM"
    monitor.wait_ioc(ioc)
    monitor.wait_ioc(other, level="off")
    counted(monitor, ioc)
    monitor.wait_text("FILTER_STATUS", lambda t: t.startswith("in force"))
    assert any("runs already" in line for line in monitor.command("ebpfMonStart"))


# No CAP_SYS_RESOURCE and no CAP_SYS_ADMIN: with either of them the limit of threads has no effect.
NEEDED = "+bpf,+perfmon,+sys_ptrace,+net_raw,+net_admin,+dac_read_search"


def count_threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def limit_threads(pid, user, number):
    """Sets the limit of threads of this process: it counts all threads of the user. prlimit runs as this user, because
    root may lack CAP_SYS_RESOURCE."""
    subprocess.run(["setpriv", "--reuid", user, "--regid", user, "--clear-groups",
                    "prlimit", "--pid", str(pid), f"--nproc={number}:"], check=True)


@soak
@pytest.mark.skipif(subprocess.run(["unshare", "--mount", "setpriv", "--inh-caps", NEEDED, "--ambient-caps", NEEDED,
                                    "prlimit", "--version"], capture_output=True).returncode != 0,
                    reason="no mount namespaces, no setpriv or no prlimit")
def test_start_that_runs_out_of_threads(new_ioc, new_monitor):
    """The start fails at its first thread, then at its second and so on (in the short form at every fifth). Each time
    it leaves no thread and no BPF object. When the limit allows all threads, the start succeeds."""
    ioc = new_ioc(DB).start()
    monitor = new_monitor()
    user = str(600000 + os.getpid())  # a user without other threads, because the limit counts all threads of a user
    monitor.launch(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf; exec "$@"', "sh",
                    "setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps", NEEDED,
                    "--ambient-caps", NEEDED])
    pid = monitor.process.pid
    monitor.wait_state("Failed", 20)  # fails without BTF; so its own IOC has already started all its threads
    subprocess.run(["nsenter", "--mount", "--target", str(pid), "umount", "/sys/kernel/btf"], check=True)
    threads = count_threads(pid)
    for more in range(0, 30, size(5, 1)):
        limit_threads(pid, user, threads + more)
        answer = "\n".join(monitor.command("ebpfMonStart"))
        if "ebpfMon runs" in answer:
            break
        assert "did not start" in answer, answer
        assert "out of memory or threads" in monitor.text("STATE_MSG")
        # one thread that reads foreign memory is kept as a reserve (host/foreign.c)
        until(lambda: count_threads(pid) in (threads, threads + 1), 10,
              lambda: f"{threads} threads after a failed start: {count_threads(pid)}")
        assert not held(pid)
    # the threads for names of users, traces to print, follower, events, packets, publisher
    assert more >= 6 and threads + 6 <= count_threads(pid) <= threads + more
    limit_threads(pid, user, threads + 100)
    monitor.wait_state("Running")
    monitor.wait_ioc(ioc)
    counted(monitor, ioc)


def test_end_is_published_at_once(new_ioc, monitor):
    """When an IOC ends, the list of IOCs is published at once, not with the next second. A zombie, which is a process
    for which its parent has not waited yet, has also ended."""
    ioc = new_ioc(DB).start()
    monitor.wait_ioc(ioc)
    delays = []
    for _ in range(5):
        pid = ioc.pid
        killed = time.time()
        ioc.process.signal(signal.SIGKILL)
        monitor.wait_gone(pid)
        delays.append(monitor.time_stamp("IOC_PIDS") - killed)
        ioc.process.wait()
        ioc.start()
        monitor.wait_ioc(ioc)
    assert min(delays) > 0 and sorted(delays)[2] < 0.4, delays


def overwrite(pid, old, new):
    """Overwrites each copy of a text in the heap of a process."""
    assert len(old) == len(new)
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in maps:
            if "[heap]" not in line:
                continue
            begin, end = (int(n, 16) for n in line.split()[0].split("-"))
            memory.seek(begin)
            data, at = memory.read(end - begin), -1
            while (at := data.find(old, at + 1)) >= 0:
                memory.seek(begin + at)
                memory.write(new)


def test_read_while_it_loads(new_monitor, tmp_path):
    """The monitor reads a database while it is loaded, and meets the name of a record half made. It reads the database once more when
    the IOC runs, although no record was added since."""
    monitor, name = new_monitor().start(), f"ioc{os.getpid()}xloads"
    right, half = b"LOADED:SLOWLY:NAME", b">\xba\xa3Y\x05D:SLOWLY:NAME"
    ioc = Process([paths.BASE_BIN / "softIoc"], loopback.server(loopback.take_port(), IOC=name), cwd=tmp_path)
    try:
        until(lambda: ioc.pid in monitor.iocs(), 10, "the IOC is found")
        monitor.process.halt()
        (tmp_path / "one.db").write_text(f'record(calc, "{right.decode()}") {{}}\n')
        ioc.command(f'dbLoadRecords("{tmp_path}/one.db")')
        overwrite(ioc.pid, right, half)
        monitor.process.go_on()
        until(lambda: monitor.iocs().get(ioc.pid, ("", "", 0))[2] == 1, 20, lambda: f"its record: {monitor.iocs()}")
        overwrite(ioc.pid, half, right)
        ioc.command("iocInit")
        until(lambda: monitor.iocs()[ioc.pid][3] == "chains", 20, lambda: f"it is watched: {monitor.iocs()}")
        until(lambda: [*monitor.records(name)] == [right.decode()], 20, lambda: monitor.command(f'ebpfMonRecords "{name}" "*"'))
    finally:
        ioc.close()


def test_watched_ioc_is_not_disturbed(new_ioc, monitor):
    """The IOC is not traced, its shell works, and it prints no error."""
    ioc = new_ioc(DB)
    ioc.start()
    monitor.wait_ioc(ioc)
    counted(monitor, ioc)
    assert ioc.command("epicsThreadShowAll")
    with open(f"/proc/{ioc.pid}/status") as f:
        assert "TracerPid:\t0" in f.read()
    assert not [l for l in ioc.process.lines if "rror" in l]


def test_without_a_pva_server(new_monitor):
    """pvAccessCPP starts no server where lo is the only interface, unless it gets its address."""
    monitor = new_monitor(environ={"EPICS_PVAS_INTF_ADDR_LIST": ""}).launch()
    monitor.wait_text("STATE_MSG", lambda t: t.startswith("no tables: the PVA server does not run"), 20)
    assert monitor.get("STATE", as_string=True) == "Degraded" and monitor.get("STATE.SEVR") == 1
    assert "PVA server" in monitor.text("HOST_STATUS_MSG")
