# SPDX-License-Identifier: BSD-3-Clause
"""Examples of other tools that documentation/queries.md writes as queries, tried with programs that make known
calls."""
import json
import platform
import re
import sys

import pytest
from tests.harness import paths
from tests.harness.process import Process
from tests.harness.queries import load, rows, stop, wait_state
from tests.harness.wait import until

# Reads numbers from its input and makes each call so often, in a thread with the name ruby.
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
    for name in "CLONES", "READS":  # of all processes of the host, the test knows this one
        queries[name]["where"].append({"field": "pid", "is": "==", "value": caller.pid})
    monitor = module_monitor(before=load(tmp_path_factory.mktemp("queries"), list(queries.values()))).start()
    monitor.wait_ioc(ioc)
    return monitor


def test_examples_of_bpfql_and_bcc(monitor, caller):
    names = ["RANDOM", "CLONES", "READS", "SYNCS"]
    for name in names:
        monitor.put(f"{name}_RUN", 1)
        wait_state(monitor, name, "Running")
    for calls in 7, 0:  # the first line ends a read that began before the query started
        caller.send(str(calls))
        caller.wait_line("done", 60)
    until(lambda: rows(monitor, "CLONES", "KEY1S", "CNTS") == [("ruby", 7)], 20, lambda: str(rows(monitor, "CLONES", "KEY1S", "CNTS")))
    wanted = [("ruby", str(caller.pid), "16", 7)]
    until(lambda: rows(monitor, "RANDOM", "KEY1S", "KEY2S", "KEY3S", "CNTS") == wanted, 20,
          lambda: str(rows(monitor, "RANDOM", "KEY1S", "KEY2S", "KEY3S", "CNTS")))
    assert rows(monitor, "RANDOM", "EV_THREADS") == [("ruby",)] * 7
    (thread, count, least), = until(lambda: rows(monitor, "READS", "KEY1S", "CNTS", "MINS"), 20, "a read")
    assert thread == "ruby" and count >= 1 and least > 0
    for name in names:
        stop(monitor, name)
