# SPDX-License-Identifier: BSD-3-Clause
"""Queries against what is known: a function of an IOC whose calls, arguments, results and durations are known, and system
calls that are counted. The results are read by CA."""
import json

import pytest
from tests.harness import paths
from tests.harness.wait import until

CALLS = 1000  # of knownCall in each processing of KNOWN

BY_ARGS = {
    "name": "BY_ARGS", "source": {"function": "knownCall", "object": "latencyIoc"},
    "keys": ["ioc", {"arg": 1, "as": "int32"}, {"arg": 2, "as": "text"}, {"arg": 4, "as": "record"}],
    "value": {"arg": 1, "as": "int32"}, "histogram": {"from": 0, "to": 10, "steps": 10}, "budget": 100, "start": True,
}
BY_PLACE = {
    "name": "BY_PLACE", "source": {"function": "knownCall", "object": "latencyIoc"},
    "keys": ["root", {"arg": 3, "at": [4], "as": "int32"}, {"arg": 3, "at": [8, 8], "as": "int64"},
             {"arg": 3, "at": [16], "as": "text"}],
    "where": [{"any": [{"field": {"arg": 1, "as": "int32"}, "is": "<", "value": 3},
                       {"field": {"arg": 1, "as": "int32"}, "is": "==", "value": 9}]},
              {"field": {"arg": 2, "as": "text"}, "is": "begins", "value": "od"}],
    "budget": 100,
}
RETURNS = {
    "name": "RETURNS", "source": {"function": "knownCall", "object": "latencyIoc", "when": "return"},
    "keys": ["thread", {"return": "int32"}], "value": {"return": "int64"}, "budget": 100,
}
TOOK = {
    "name": "TOOK", "title": "How long the spinning record takes",
    "source": {"function": "spinFor", "when": "duration"}, "of": {"record": "*SPIN*"},
    "keys": ["root", {"arg": 1, "as": "record"}], "histogram": "log2", "budget": 100,
}
SYSCALLS = {
    "name": "SYSCALLS", "source": {"syscalls": "duration"}, "keys": ["root", "syscall"], "histogram": "log2",
    "where": [{"field": "syscall", "is": "==", "value": "clock_nanosleep"}], "budget": 100,
}
PROFILE = {"name": "PROFILE", "source": {"profile": 199}, "keys": ["root", "thread"], "budget": 100}
WAITS = {"name": "WAITS", "source": {"cpuWait": True}, "keys": ["thread"], "histogram": "log2", "budget": 100}
SWITCHES = {"name": "SWITCHES", "source": {"tracepoint": "sched_switch"}, "keys": ["thread"], "budget": 100}
QUERIES = [BY_ARGS, BY_PLACE, RETURNS, TOOK, SYSCALLS, PROFILE, WAITS, SWITCHES]


def write(tmp, name, queries):
    path = tmp / name
    path.write_text(json.dumps({"queries": queries}, indent=1))
    return path


def rows(monitor, query, *columns):
    """The rows of a query: a list of tuples, read until no look comes in between."""
    def read():
        table = [monitor.list(f"{query}_{c}") for c in columns]
        return table if len({len(c) for c in table}) == 1 and table == [monitor.list(f"{query}_{c}") for c in columns] \
            else None

    return list(zip(*until(read, 10, f"columns of {query} of one look")))


def wait_state(monitor, query, state):
    until(lambda: monitor.get(f"{query}_STATE", as_string=True) == state, 20,
          lambda: f"{query} {state}: {monitor.get(query + '_STATE', as_string=True)} {monitor.text(query + '_MSG')}")


def start(monitor, query, iocs=1):
    monitor.put(f"{query}_RUN", 1)
    wait_state(monitor, query, "Running")
    until(lambda: f"looks at {iocs} IOC" in monitor.text(f"{query}_MSG"), 20,
          lambda: f"{query}: {monitor.text(query + '_MSG')}")


def stop(monitor, query):
    monitor.put(f"{query}_RUN", 0)
    wait_state(monitor, query, "Off")


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc",
                      macros=f"US=2000,CALLS={CALLS}").start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, tmp_path_factory):
    file = write(tmp_path_factory.mktemp("queries"), "queries.json", QUERIES)
    template = paths.DB / "ebpfMonQuery.template"
    before = [f'dbLoadRecords("{template}", "P=$(EBPFMON_P),Q={q["name"]}")' for q in QUERIES]
    monitor = module_monitor(before=[*before, f'ebpfMonQueryLoad "{file}"']).start()
    monitor.wait_ioc(ioc)
    return monitor


def known(ioc, monitor, query, times):
    """Has knownCall called CALLS times, so often. Waits until the query has seen that many more events than before."""
    for _ in range(times):
        ioc.put("KNOWN.PROC", 1)


def test_counts_by_arguments(ioc, monitor):
    wait_state(monitor, "BY_ARGS", "Running")
    until(lambda: "looks at 1 IOC" in monitor.text("BY_ARGS_MSG"), 20, lambda: monitor.text("BY_ARGS_MSG"))
    for _ in range(3):
        ioc.put("KNOWN.PROC", 1)
    monitor.wait("BY_ARGS_EVENT_CNT", lambda n: n >= 3 * CALLS)
    found = rows(monitor, "BY_ARGS", "KEY1S", "KEY2S", "KEY3S", "KEY4S", "CNTS", "SUMS", "MINS", "MAXS")
    each = 3 * CALLS / 10
    assert sorted(found) == [(ioc.name, str(n), "odd" if n % 2 else "even", f"{ioc.prefix}KNOWN:CALLS", each, each * n, n, n)
                             for n in range(10)]
    assert monitor.get("BY_ARGS_EVENT_CNT") == 3 * CALLS and monitor.get("BY_ARGS_DROPPED_CNT") == 0
    assert monitor.list("BY_ARGS_HIST") == [0, *[each] * 10, 0]
    assert monitor.list("BY_ARGS_HIST_EDGES") == list(range(-1, 11))
    assert monitor.get("BY_ARGS_KEY_CNT") == 10
    stop(monitor, "BY_ARGS")


def test_pointers_and_conditions(ioc, monitor):
    start(monitor, "BY_PLACE")
    ioc.put("KNOWN.PROC", 1)
    monitor.wait("BY_PLACE_EVENT_CNT", lambda n: n >= 2 * CALLS / 10)  # 1 and 9 are odd and below 3, or 9
    assert rows(monitor, "BY_PLACE", "KEY1S", "KEY2S", "KEY3S", "KEY4S", "CNTS") == \
        [(f"{ioc.prefix}KNOWN", "-7", str(1 << 40), "in place", 2 * CALLS / 10)]
    stop(monitor, "BY_PLACE")


def test_returned_values(ioc, monitor):
    start(monitor, "RETURNS")
    ioc.put("KNOWN.PROC", 1)
    monitor.wait("RETURNS_EVENT_CNT", lambda n: n >= CALLS)
    found = {key: (count, total) for key, count, total in rows(monitor, "RETURNS", "KEY2S", "CNTS", "SUMS")}
    assert found == {"-1": (CALLS * 4 / 10, -CALLS * 4 / 10), "0": (CALLS * 3 / 10, 0), "1": (CALLS * 3 / 10, CALLS * 3 / 10)}
    assert {t for t, in rows(monitor, "RETURNS", "KEY1S")} == {"CAS-client"}
    stop(monitor, "RETURNS")


def test_durations_against_own_clock(ioc, monitor):
    start(monitor, "TOOK")
    before, times = ioc.get("SPIN:SUM"), 20
    for _ in range(times):
        ioc.put("SPIN.PROC", 1)
    monitor.wait("TOOK_EVENT_CNT", lambda n: n >= times)
    until(lambda: monitor.list("TOOK_CNTS") == [times], 10, lambda: str(monitor.list("TOOK_CNTS")))
    own = ioc.get("SPIN:SUM") - before
    row, = rows(monitor, "TOOK", "KEY1S", "KEY2S", "CNTS", "SUMS", "MINS", "P50S", "P99S", "MAXS")
    assert row[:3] == (f"{ioc.prefix}SPIN", f"{ioc.prefix}SPIN:BUSY", times)
    assert own <= row[3] < own + times * 500  # us; the trap, and whoever has the CPU at the end
    assert 2000 <= row[4] <= row[5] <= row[6] <= row[7]
    assert sum(monitor.list("TOOK_HIST")) == times
    # another record has no part in it: "of" wants *SPIN*
    stop(monitor, "TOOK")


def test_system_calls_by_root(ioc, monitor):
    start(monitor, "SYSCALLS")
    for _ in range(7):
        ioc.put("SLEEP.PROC", 1)
    root = f"{ioc.prefix}SLEEP"

    def slept():
        return next((r for r in rows(monitor, "SYSCALLS", "KEY1S", "KEY2S", "CNTS", "MINS") if r[0] == root), None)

    row = until(lambda: (r := slept()) and r[2] >= 7 and r, 10, lambda: str(slept()))
    assert row[1:3] == ("clock_nanosleep", 7)
    assert row[3] >= 2000
    stop(monitor, "SYSCALLS")


def test_profile_finds_the_root(ioc, monitor):
    start(monitor, "PROFILE")
    ioc.put("SPIN.SCAN", ".1 second")
    root = f"{ioc.prefix}SPIN"
    until(lambda: (root, "scan-0.1") in rows(monitor, "PROFILE", "KEY1S", "KEY2S"), 30,
          lambda: str(rows(monitor, "PROFILE", "KEY1S", "KEY2S", "CNTS")))
    ioc.put("SPIN.SCAN", "Passive")
    stop(monitor, "PROFILE")


def test_waits_for_a_cpu_and_switches(ioc, monitor):
    start(monitor, "WAITS")
    start(monitor, "SWITCHES")
    until(lambda: ("scan-0.1",) in rows(monitor, "WAITS", "KEY1S"), 20, lambda: str(rows(monitor, "WAITS", "KEY1S")))
    until(lambda: ("scan-0.1",) in rows(monitor, "SWITCHES", "KEY1S"), 20, lambda: str(rows(monitor, "SWITCHES", "KEY1S")))
    stop(monitor, "WAITS")
    stop(monitor, "SWITCHES")
