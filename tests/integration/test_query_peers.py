# SPDX-License-Identifier: BSD-3-Clause
"""Examples of other tools, as documentation/queries.md has them as queries, against programs whose calls are known; and
system calls beside strace in the same run."""
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness import paths
from tests.harness.process import Process
from tests.harness.queries import load, rows, start, stop, wait_state
from tests.harness.wait import until

# Does so many of each call as it reads from its input, as a thread of this name.
CALLER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, b"ruby", 0, 0, 0)
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        os.getrandom(16)
        pid = ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0)  # clone, as fork does it
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    print("done", flush=True)
"""
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of clone is that of x86-64")
STRACED = {"name": "STRACED", "source": {"syscalls": "duration"}, "keys": ["tid", "syscall"], "budget": 100, "top": 100}


def documented():
    """The queries of the chapter, by name."""
    text = (paths.TOP / "documentation" / "queries.md").read_text()
    chapter = text[text.index("\n## Beside bpftrace"):text.index("\n## What is exact")]
    found = [json.loads(q) for q in re.findall(r"^```\n(\{.*?\})\n```", chapter, re.S | re.M)]
    return {q["name"]: q | {"budget": 100, "interval": 0.5} for q in found}


@pytest.fixture(scope="module")
def caller():
    process = Process([sys.executable, "-c", CALLER], None)
    process.wait_line("ready", 60)
    yield process
    process.close()


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=2000").start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, caller, tmp_path_factory):
    queries = documented()
    assert set(queries) == {"RANDOM", "CLONES", "SYNCS", "READS"}
    queries["RANDOM"]["where"][-1]["value"] = caller.pid
    for name in "CLONES", "READS":  # of all processes of the host, only this one's are known
        queries[name]["where"].append({"field": "pid", "is": "==", "value": caller.pid})
    monitor = module_monitor(before=load(tmp_path_factory.mktemp("queries"), [*queries.values(), STRACED])).start()
    monitor.wait_ioc(ioc)
    return monitor


def test_examples_of_bpfql_and_bcc(monitor, caller):
    names = ["RANDOM", "CLONES", "READS", "SYNCS"]
    for name in names:
        monitor.put(f"{name}_RUN", 1)
        wait_state(monitor, name, "Running")
    caller.send("7")
    caller.wait_line("done", 60)
    until(lambda: rows(monitor, "CLONES", "KEY1S", "CNTS") == [("ruby", 7)], 20, lambda: str(rows(monitor, "CLONES", "KEY1S", "CNTS")))
    assert rows(monitor, "RANDOM", "KEY1S", "KEY2S", "KEY3S", "CNTS") == [("ruby", str(caller.pid), "16", 7)]
    assert rows(monitor, "RANDOM", "EV_THREADS") == [("ruby",)] * 7
    (thread, count, least), = rows(monitor, "READS", "KEY1S", "CNTS", "MINS")
    assert thread == "ruby" and count >= 1 and least > 0
    for name in names:
        stop(monitor, name)


def test_system_calls_beside_strace(ioc, monitor, tmp_path):
    """The same counts of the calls of one thread. What waits as strace comes and goes may be one off."""
    ioc.put("SLEEP.PROC", 1)  # the thread of this client is there
    tid = next(int(t.name) for t in Path(f"/proc/{ioc.pid}/task").iterdir()
               if (t / "comm").read_text().strip() == "CAS-client")
    start(monitor, "STRACED")
    out = tmp_path / "strace"
    strace = subprocess.Popen(["strace", "-c", "-p", str(tid), "-o", out], stderr=subprocess.PIPE, text=True)
    assert "attached" in strace.stderr.readline()
    for _ in range(20):
        ioc.put("SLEEP.PROC", 1, wait=True)
    strace.send_signal(2)
    strace.wait(30)
    lines = re.finditer(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", out.read_text(), re.M)
    theirs = {m[2]: int(m[1]) for m in lines if m[2] != "total"}
    assert theirs["clock_nanosleep"] == 20

    def ours():
        return {call: n for who, call, n in rows(monitor, "STRACED", "KEY1S", "KEY2S", "CNTS") if who == str(tid)}

    until(lambda: ours().get("clock_nanosleep", 0) >= 20, 20, lambda: str(ours()))
    assert {c for c, n in theirs.items() if abs(ours().get(c, 0) - n) > 1} == set(), (theirs, ours())
    stop(monitor, "STRACED")
