# SPDX-License-Identifier: BSD-3-Clause
"""Examples of other tools, written as queries (peers.json), give right results for programs that make known calls."""
import json
import os
import platform
import re
import sys

import pytest
from tests.harness import paths
from tests.harness.process import Process
from tests.harness.queries import load, rows, start, stop, wait_state
from tests.harness.wait import until

# Reads numbers from its input and makes each call so often, in a thread with the name ruby.
CALLER = """
import ctypes, mmap, os, sys
ctypes.CDLL(None).prctl(15, b"ruby", 0, 0, 0)
page = mmap.mmap(-1, 1 << 16)
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | (os.O_DIRECT if sys.argv[2] == "direct" else 0))
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        os.getrandom(16)
        pid = ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0)  # clone, as fork does it
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        os.pwritev(file, [page], 0)
        os.pread(file, 16 << 12, 0) if sys.argv[2] != "direct" else os.preadv(file, [page], 0)
        os.fsync(file)
        ctypes.CDLL(None).sync()
    print("done", flush=True)
"""
CALLS = 7
BLOCK = 1 << 16
NAMES = {"RANDOM", "CLONES", "SYNCS", "READS", "DISK_SIZES", "DISK_WAITS", "ENVIRONMENT", "TASK_SWITCHES"}
OF_CALLER = {"RANDOM", "CLONES", "SYNCS", "READS", "DISK_WAITS", "TASK_SWITCHES"}  # the others have no process
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of clone is that of x86-64")


def shipped(file="peers"):
    """The queries of a file, by name, as the monitor reads them: without comments."""
    text = (paths.MONITOR_BOOT / "queries" / f"{file}.json").read_text()
    return {q["name"]: q for q in json.loads(re.sub(r"^ *//.*$", "", text, flags=re.M))["queries"]}


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """A file on a disk, and whether it can be written without the cache."""
    path = tmp_path_factory.mktemp("disk") / "block"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError:
        return path, False
    return path, os.path.exists(f"/sys/dev/block/{os.major(path.stat().st_dev)}:{os.minor(path.stat().st_dev)}")


@pytest.fixture(scope="module")
def caller(on_disk):
    process = Process([sys.executable, "-c", CALLER, str(on_disk[0]), "direct" if on_disk[1] else "cached"], None)
    process.wait_line("ready", 60)
    yield process
    process.close()


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=2000").start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, caller, tmp_path_factory):
    queries = shipped()
    assert set(queries) == NAMES
    for name, query in queries.items():
        query |= {"budget": 100, "interval": 0.5}
        if name in OF_CALLER:  # of all processes of the host, the test knows this one
            query.setdefault("where", []).append({"field": "pid", "is": "==", "value": caller.pid})
    monitor = module_monitor(before=load(tmp_path_factory.mktemp("queries"), list(queries.values()))).start()
    monitor.wait_ioc(ioc)
    return monitor


def run(monitor, names):
    for name in names:
        monitor.put(f"{name}_RUN", 1)
        wait_state(monitor, name, "Running")


def call(caller):
    """The first line ends a read that began before the queries started, and a wait for it."""
    for calls in CALLS, 0:
        caller.send(str(calls))
        caller.wait_line("done", 60)


def wait_rows(monitor, query, columns, wanted):
    until(lambda: sorted(rows(monitor, query, *columns)) == sorted(wanted), 20,
          lambda: f"{sorted(wanted)}, not {sorted(rows(monitor, query, *columns))}")


def test_the_page_names_the_examples():
    """Each example is in the table of the page, and comes with the queries."""
    text = (paths.TOP / "documentation" / "use" / "queries.md").read_text()
    assert NAMES == set(shipped("peers")) and NAMES <= set(re.findall(r"`(\w+)`", text))


def test_system_calls(monitor, caller):
    names = ["RANDOM", "CLONES", "READS", "SYNCS"]
    run(monitor, names)
    call(caller)
    wait_rows(monitor, "CLONES", ("KEY1S", "CNTS"), [("ruby", CALLS)])
    wait_rows(monitor, "SYNCS", ("KEY1S", "CNTS"), [("ruby", CALLS)])
    wait_rows(monitor, "RANDOM", ("KEY1S", "KEY2S", "KEY3S", "CNTS"), [("ruby", str(caller.pid), "16", CALLS)])
    for query in "RANDOM", "SYNCS":
        assert rows(monitor, query, "EV_THREADS") == [("ruby",)] * CALLS
    (thread, count, least), = until(lambda: rows(monitor, "READS", "KEY1S", "CNTS", "MINS"), 20, "a read")
    assert thread == "ruby" and count >= 1 and least > 0
    for name in names:
        stop(monitor, name)


def test_disks(monitor, caller, on_disk):
    """Blocks of 64 KiB: other programs use the disk, too."""
    path, is_direct = on_disk
    run(monitor, ["DISK_SIZES", "DISK_WAITS"])
    call(caller)
    shown = str(path) if len(str(path)) <= 39 else "..." + str(path)[-36:]

    def waits():
        return {call: n for thread, call, file, n in rows(monitor, "DISK_WAITS", "KEY1S", "KEY2S", "KEY3S", "CNTS")
                if thread == "ruby" and file == shown}

    until(lambda: waits().get("fsync") == CALLS, 20, lambda: str(rows(monitor, "DISK_WAITS", "KEY1S", "KEY2S", "KEY3S", "CNTS")))
    if not is_direct:
        pytest.skip("no disk that can be written without the cache: DISK_SIZES was not compared")

    def of_this_size():
        return sum(n for edge, n in zip(monitor.list("DISK_SIZES_HIST_EDGES"), monitor.list("DISK_SIZES_HIST")) if edge == BLOCK)

    until(lambda: of_this_size() >= 2 * CALLS, 20, lambda: f"{of_this_size()} of {2 * CALLS}")
    assert monitor.text("DISK_SIZES_UNIT") == "B"
    for name in "DISK_SIZES", "DISK_WAITS":
        stop(monitor, name)


def test_calls_of_a_library_by_text(ioc, monitor):
    start(monitor, "ENVIRONMENT")
    for n in range(CALLS):
        ioc.command(f"epicsEnvSet EBPFMON_{'ODD' if n % 2 else 'EVEN'} {n}")
    until(lambda: {(ioc.name, "EBPFMON_EVEN", (CALLS + 1) // 2), (ioc.name, "EBPFMON_ODD", CALLS // 2)} <=
          set(rows(monitor, "ENVIRONMENT", "KEY1S", "KEY2S", "CNTS")), 20,
          lambda: str(rows(monitor, "ENVIRONMENT", "KEY1S", "KEY2S", "CNTS")))
    stop(monitor, "ENVIRONMENT")


def switches(pid):
    """How often this process left a CPU, and so got one."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


def test_task_switches(monitor, caller):
    """Each switch is counted, or in DROPPED_CNT: on a busy host some switches have no event, in the kernel's own tracer, too.
    (DROPPED_CNT has the waits of all threads of the host.)"""
    run(monitor, ["TASK_SWITCHES"])
    before = switches(caller.pid)
    call(caller)

    def counted():
        return sum(n for _, thread, n in rows(monitor, "TASK_SWITCHES", "KEY1S", "KEY2S", "CNTS") if thread == "ruby")

    def dropped():
        return monitor.get("TASK_SWITCHES_DROPPED_CNT")

    until(lambda: CALLS <= counted() <= switches(caller.pid) - before <= counted() + dropped(), 20,
          lambda: f"{counted()}, not {switches(caller.pid) - before}; " + ", ".join(
              f"{name} {monitor.get('TASK_SWITCHES_' + name)}" for name in ("EVENT_CNT", "DROPPED_CNT", "KEY_CNT")))
    stop(monitor, "TASK_SWITCHES")
