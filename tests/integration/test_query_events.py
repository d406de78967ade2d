# SPDX-License-Identifier: BSD-3-Clause
"""Queries can show each event, and keep the stacks of their events."""
import platform
import re
import time
from datetime import datetime

import pytest
from tests.harness import kernel, paths
from tests.harness.queries import rows, start, stop, watch
from tests.harness.wait import until

US = 20000
KNOWN = {"function": "knownCall", "object": "latencyIoc"}
SLOW = {"name": "SLOW", "source": {"function": "spinFor", "when": "duration"}, "keys": ["put", "root"], "events": True,
        "where": [{"field": "duration", "is": ">=", "value": US * 1000}], "budget": 100}
LATE = {"name": "LATE", "source": {"cpuWait": True}, "keys": ["thread", "preempted", "before", "root"], "events": True,
        "where": [{"field": "duration", "is": ">=", "value": 0}], "budget": 100}
CPU_STACKS = {"name": "CPU_STACKS", "source": {"profile": 199}, "keys": ["record"], "stacks": True, "budget": 100}
CALL_STACKS = {"name": "CALL_STACKS", "source": KNOWN, "keys": [{"arg": 2, "as": "text"}], "stacks": True, "budget": 100}
SLEEP_STACKS = {"name": "SLEEP_STACKS", "source": {"syscalls": "duration"}, "keys": ["syscall"], "stacks": True, "events": True,
                "where": [{"field": "syscall", "is": "==", "value": "clock_nanosleep"},
                          {"field": "thread", "is": "==", "value": "CAS-client"}], "budget": 100}
QUERIES = [SLOW, LATE, CPU_STACKS, CALL_STACKS, SLEEP_STACKS]
CALLS = 100


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc",
                      macros=f"US={US},CALLS={CALLS}").start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, tmp_path_factory):
    return watch(module_monitor, ioc, tmp_path_factory, QUERIES)


def stacks(monitor, query):
    """The folded lines of a query: {(parts before the functions and functions): count}."""
    found = (re.fullmatch(r"(ioc\w+(?:;.+)+) (\d+)", line) for line in monitor.command(f"ebpfMonQueryStacks {query}"))
    return {tuple(m[1].split(";")): int(m[2]) for m in found if m}


def in_order(line, *names):
    """True if these functions are in the line, in this order."""
    rest = iter(line)
    return all(name in rest for name in names)


def test_events_with_their_times(ioc, monitor):
    """Each slow call, with thread, duration, put and the time of its end by the wall clock."""
    start(monitor, "SLOW")
    ends = []
    for _ in range(3):
        ioc.put("SPIN.PROC", 1, wait=True)
        ends.append(time.time())
    found = until(lambda: (r := rows(monitor, "SLOW", "EV_TIMES", "EV_THREADS", "EV_VALUES", "EV_KEY1S", "EV_KEY2S"))
                  and len(r) == 3 and r, 20, lambda: str(rows(monitor, "SLOW", "EV_TIMES")))
    for (text, thread, us, put, root), end in zip(found, reversed(ends)):
        assert (thread, put, root) == ("CAS-client", f"{ioc.prefix}SPIN.PROC", f"{ioc.prefix}SPIN")
        assert US <= us < 100 * US
        # the client gets the answer after the end of the call, and soon
        assert end - 5 < datetime.fromisoformat(text[:26]).timestamp() <= end, (text, end)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9}", text)
    said = "\n".join(monitor.command("ebpfMonQueryPrint SLOW"))
    assert found[0][0] in said
    stop(monitor, "SLOW")


def test_waits_for_a_cpu_one_by_one(ioc, monitor):
    start(monitor, "LATE")
    found = until(lambda: [r for r in rows(monitor, "LATE", "EV_THREADS", "EV_CPUS", "EV_VALUES", "EV_KEY1S", "EV_KEY2S",
                                           "EV_KEY3S") if r[0] == "scan-0.1"], 20, "a wait of scan-0.1")
    thread, cpu, us, key, how, before = found[0]
    assert key == thread and cpu >= 0 and us >= 0 and how in ("woken", "preempted") and before
    stop(monitor, "LATE")


def test_stack_of_each_call(ioc, monitor):
    """Each line has the known callers of the function, and every call is counted in one line."""
    start(monitor, "CALL_STACKS")
    ioc.put("KNOWN.PROC", 1)
    found = until(lambda: (s := stacks(monitor, "CALL_STACKS")) and sum(s.values()) >= CALLS and s, 30,
                  lambda: str(stacks(monitor, "CALL_STACKS")))
    assert sum(found.values()) == CALLS
    for key in "even", "odd":
        lines = {line: n for line, n in found.items() if line[:3] == (ioc.name, "CAS-client", key)}
        assert sum(lines.values()) == CALLS / 2
        for line in lines:
            assert line[-1] == "knownCall" and in_order(line, "camsgtask", "dbProcess", "callKnown", "knownCall"), line
    assert monitor.get("CALL_STACKS_DROPPED_CNT") == 0
    calls = kernel.helpers(monitor.process.pid, "ebpfmon_query_entry")
    assert "bpf_ringbuf_reserve" in calls and not [c for c in calls if "get_stack" in c], "a uprobe may be preempted: CVE-2026-89580"
    stop(monitor, "CALL_STACKS")
    assert stacks(monitor, "CALL_STACKS") == found  # the stacks stay


def test_cpu_by_record_as_stacks(ioc, monitor):
    """The samples of a record that uses the CPU are in its own function, below the first function of the thread."""
    start(monitor, "CPU_STACKS")
    ioc.put("SPIN.SCAN", ".1 second")
    front = (ioc.name, "scan-0.1", f"{ioc.prefix}SPIN:BUSY")

    def found():
        return [s for s in stacks(monitor, "CPU_STACKS") if s[:3] == front and in_order(s, "scanList", "dbProcess", "spinFor")]

    until(found, 30, lambda: str(list(stacks(monitor, "CPU_STACKS"))[:20]))
    ioc.put("SPIN.SCAN", "Passive")
    stop(monitor, "CPU_STACKS")


def test_stack_of_a_system_call(ioc, monitor):
    """The stack of the program and that of the kernel, and the events. From Linux 7.0 on, and in real-time kernels, without that
    of the kernel, because it could crash (CVE-2026-89580)."""
    start(monitor, "SLEEP_STACKS")
    for _ in range(2):
        ioc.put("SLEEP.PROC", 1)
    line = until(lambda: next((s for s, n in stacks(monitor, "SLEEP_STACKS").items() if n == 2), None), 30,
                 lambda: str(stacks(monitor, "SLEEP_STACKS")))
    assert line[:3] == (ioc.name, "CAS-client", "clock_nanosleep")
    assert in_order(line, "dbProcess", "sleepFor", "epicsThreadSleep"), line
    message = "stacks are without functions of the kernel" in monitor.text("SLEEP_STACKS_MSG")
    assert message == (int(platform.release().split(".")[0]) >= 7 or "PREEMPT_RT" in platform.version())
    assert line[-1].endswith("_[k]") != message and not [f for f in line if "bpf" in f or "traceiter" in f], line
    assert len(rows(monitor, "SLEEP_STACKS", "EV_THREADS")) == 2
    stop(monitor, "SLEEP_STACKS")
