# SPDX-License-Identifier: BSD-3-Clause
"""Queries with known results: a function of an IOC with known calls, arguments, results and durations, and counted
system calls. The results are read by CA."""
import itertools
import json
import math
import re
from pathlib import Path

import pytest
from tests.harness import loopback, paths
from tests.harness.queries import known_calls, load, rows, start, stop, wait_state, write
from tests.harness.wait import until

SHIPPED = paths.MONITOR_BOOT / "queries"
CALLS = 1000  # calls of knownCall in each processing of KNOWN

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
IN_HAND = {"name": "IN_HAND", "source": {"syscalls": "entry"}, "keys": ["root", "record", "syscall"], "budget": 100,
           "where": [{"field": "syscall", "is": "==", "value": "clock_nanosleep"}], "of": {"record": "*SLEEP*"}}
WAITS = {"name": "WAITS", "source": {"cpuWait": True}, "keys": ["thread"], "histogram": "log2", "budget": 100}
WAITED = {"name": "WAITED", "source": {"cpuWait": True}, "keys": ["tid"], "of": {"thread": "CAS-client"}, "budget": 100}
SWITCHES = {"name": "SWITCHES", "source": {"tracepoint": "sched_switch"}, "keys": ["thread"], "budget": 100}
WAKEUPS = {"name": "WAKEUPS", "source": {"tracepoint": "sched_wakeup"}, "keys": ["thread"], "of": {"host": True}, "budget": 100}
EACH_WAIT = {"name": "EACH_WAIT", "source": {"cpuWait": True}, "budget": 100}
TOO_MANY = WAKEUPS | {"name": "TOO_MANY", "keys": [{"arg": 2}]}
DOUBLES = {"name": "DOUBLES", "source": {"function": "knownCall", "object": "latencyIoc"},
           "keys": [{"arg": 3, "at": [40], "as": "double"}, {"arg": 3, "at": [48], "as": "float"}],
           "where": [{"field": {"arg": 3, "at": [40], "as": "double"}, "is": ">=", "value": -0.5},
                     {"field": {"arg": 3, "at": [48], "as": "float"}, "is": "<", "value": 1}],
           "value": {"arg": 3, "at": [40], "as": "double"}, "histogram": {"from": -1, "to": 1, "steps": 8}, "budget": 100}
GLOB = {"name": "GLOB", "source": {"function": "dbPut*", "object": "*dbCore*"}, "keys": ["function", "thread"], "budget": 100}
GLOB_TIME = {"name": "GLOB_TIME", "source": {"function": "*For", "object": "latencyIoc", "when": "duration"},
             "keys": ["function"], "budget": 100}
# These queries read a number as the address of a text. So the key of each call that fulfils the conditions cannot be
# read.
UNMEANT = {"name": "UNMEANT", "source": {"function": "knownCall", "object": "latencyIoc"}, "keys": [{"arg": 1, "as": "text"}],
           "where": [{"field": {"arg": 1, "as": "int32"}, "is": ">", "value": 7},
                     {"field": {"arg": 2, "as": "text"}, "is": "==", "value": "odd"}], "budget": 100}
UNMEANT_END = {"name": "UNMEANT_END", "source": {"function": "knownCall", "object": "latencyIoc", "when": "duration"},
               "keys": [{"arg": 1, "as": "text"}], "where": [{"field": {"return": "int32"}, "is": "<", "value": 0}], "budget": 100}
ARG_OF_CALL = {"name": "ARG_OF_CALL", "source": {"function": "knownCall", "object": "latencyIoc", "when": "duration"},
               "keys": [{"return": "int32"}], "value": {"arg": 1, "as": "int32"}, "budget": 100,
               "where": [{"any": [{"field": {"return": "int32"}, "is": ">", "value": 0},
                                  {"field": {"arg": 1, "as": "int32"}, "is": "==", "value": 0}]}]}
SAMPLED = {"name": "SAMPLED", "source": {"function": "knownCall", "object": "latencyIoc"}, "sample": 10, "budget": 100,
           "value": {"arg": 1, "as": "int32"}}
NESTED = {"name": "NESTED", "source": {"function": "dbProcess", "when": "duration"}, "of": {"record": "*SPIN*"},
          "keys": [{"arg": 1, "as": "record"}], "sort": "max", "budget": 100}
SEVERAL = {"name": "SEVERAL", "source": {"function": "_fini"}}
QUERIES = [SAMPLED, NESTED, UNMEANT, UNMEANT_END, ARG_OF_CALL, GLOB, GLOB_TIME, DOUBLES, BY_ARGS, BY_PLACE, RETURNS, TOOK, SYSCALLS, IN_HAND, PROFILE, WAITS, WAITED, EACH_WAIT, SWITCHES, WAKEUPS, TOO_MANY]


ioc, monitor = known_calls(CALLS, QUERIES)


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


def test_function_that_several_files_have(ioc, new_monitor, tmp_path):
    """In a monitor of its own: that of this module has as many queries as it can have."""
    monitor = new_monitor(before=load(tmp_path, [SEVERAL])).start()
    monitor.wait_ioc(ioc)
    start(monitor, "SEVERAL")
    until(lambda: "files have _fini: set \"object\"" in monitor.text("SEVERAL_MSG"), 20, lambda: monitor.text("SEVERAL_MSG"))
    stop(monitor, "SEVERAL")


def test_pointers_and_conditions(ioc, monitor):
    start(monitor, "BY_PLACE")
    ioc.put("KNOWN.PROC", 1)
    monitor.wait("BY_PLACE_EVENT_CNT", lambda n: n >= 2 * CALLS / 10)  # two of ten: 1 and 9 are odd, and below 3 or 9
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


def test_doubles(ioc, monitor):
    """Doubles as keys, in conditions, and as values. In ten calls the number increases from -1 in steps of 0.25."""
    start(monitor, "DOUBLES")
    ioc.put("KNOWN.PROC", 1)
    monitor.wait("DOUBLES_EVENT_CNT", lambda n: n >= CALLS * 6 / 10)
    each = CALLS / 10
    assert sorted(rows(monitor, "DOUBLES", "KEY1S", "KEY2S", "CNTS", "SUMS", "MINS", "MAXS"), key=lambda r: float(r[0])) == \
        [(f"{n / 4:g}", f"{n / 4:g}", each, each * n / 4, n / 4, n / 4) for n in range(-2, 4)]
    assert monitor.list("DOUBLES_HIST") == [0, 0, 0, *[each] * 6, 0]
    stop(monitor, "DOUBLES")


@pytest.mark.parametrize("name, meant", [("UNMEANT", CALLS / 10), ("UNMEANT_END", CALLS * 4 / 10)])
def test_conditions_before_keys(ioc, monitor, name, meant):
    """Events with unreadable keys are counted only if they fulfil the conditions."""
    start(monitor, name)
    ioc.put("KNOWN.PROC", 1)
    monitor.wait(f"{name}_DROPPED_CNT", lambda n: n >= meant)
    assert monitor.get(f"{name}_DROPPED_CNT") == meant and monitor.get(f"{name}_EVENT_CNT") == 0
    stop(monitor, name)


def test_argument_of_a_call_that_is_measured(ioc, monitor):
    """The argument is read at the begin of the call, and the call is counted at its end. One half of the condition is
    known at the begin, the other at the end."""
    start(monitor, "ARG_OF_CALL")
    ioc.put("KNOWN.PROC", 1)
    each = CALLS / 10
    wanted = [("-1", each, 0), ("1", 3 * each, (2 + 5 + 8) * each)]  # knownCall returns arg % 3 - 1
    until(lambda: sorted(rows(monitor, "ARG_OF_CALL", "KEY1S", "CNTS", "SUMS")) == wanted, 20,
          lambda: str(rows(monitor, "ARG_OF_CALL", "KEY1S", "CNTS", "SUMS")))
    stop(monitor, "ARG_OF_CALL")


def test_functions_of_a_pattern(ioc, monitor):
    """Counts the functions dbPut* of Base by name, and measures the two functions *For."""
    start(monitor, "GLOB")
    start(monitor, "GLOB_TIME")
    for _ in range(3):
        ioc.put("SPIN.PROC", 1)
    ioc.put("SLEEP.PROC", 1)

    def found():
        return {key: n for key, thread, n in rows(monitor, "GLOB", "KEY1S", "KEY2S", "CNTS") if thread == "CAS-client"}

    wanted = {"dbPut": 4, "dbPutLink": 4 * 21}  # an aSub record has 21 outputs
    until(lambda: found() == wanted, 20, lambda: str(found()))
    until(lambda: len(rows(monitor, "GLOB_TIME", "KEY1S")) == 2, 20, lambda: str(rows(monitor, "GLOB_TIME", "KEY1S")))
    took = {key: (n, least) for key, n, least in rows(monitor, "GLOB_TIME", "KEY1S", "CNTS", "MINS")}
    assert {key: n for key, (n, _) in took.items()} == {"spinFor": 3, "sleepFor": 1}
    assert all(least >= 2000 for _, least in took.values())
    stop(monitor, "GLOB")
    stop(monitor, "GLOB_TIME")


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
    assert own <= row[3] < own + times * 500  # us; for the trap and for waits for a CPU
    assert 2000 <= row[4] <= row[5] <= row[6] <= row[7]
    assert sum(monitor.list("TOOK_HIST")) == times
    # other records are not counted, because "of" is *SPIN*
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


def test_record_in_hand(ioc, monitor):
    """The query names the record in the middle of a chain that sleeps, not the root, and not the records before and
    after it."""
    start(monitor, "IN_HAND")
    for _ in range(5):
        ioc.put("SLEEP.PROC", 1)
    wanted = [(f"{ioc.prefix}SLEEP", f"{ioc.prefix}SLEEP:BUSY", "clock_nanosleep", 5)]
    until(lambda: rows(monitor, "IN_HAND", "KEY1S", "KEY2S", "KEY3S", "CNTS") == wanted, 10,
          lambda: str(rows(monitor, "IN_HAND", "KEY1S", "KEY2S", "KEY3S", "CNTS")))
    stop(monitor, "IN_HAND")


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


def test_waits_are_those_that_the_kernel_counts(ioc, monitor):
    """How often a thread waited for a CPU, and how long. It is also woken while it runs, which is no wait."""
    def truth():
        tasks = [t for t in Path(f"/proc/{ioc.pid}/task").iterdir() if (t / "comm").read_text() == "CAS-client\n"]
        return {t.name: [int(n) for n in (t / "schedstat").read_text().split()[1:]] for t in tasks}  # ns, times

    start(monitor, "WAITED")
    ioc.put("NAPS.DESC", "connected")
    before = truth()
    ioc.put("NAPS.PROC", 1, wait=True)
    after = truth()
    tid = max(after, key=lambda t: after[t][1] - before[t][1])
    ns, times = (a - b for a, b in zip(after[tid], before[tid]))
    assert times >= 200

    def found():
        return next((r[1:] for r in rows(monitor, "WAITED", "KEY1S", "CNTS", "SUMS") if r[0] == tid), (0, 0))

    until(lambda: found()[0] >= 0.97 * times, 10, lambda: f"{times} {found()}")  # some switches of a busy host have no event
    count, us = found()
    # The kernel counts less of each wait: after a wake-up it does not read its clock again when it switches (wakeup_preempt).
    assert count <= times + 10 and 0.9 * ns / 1000 <= us <= 1.1 * ns / 1000 + 100 * count, (times, ns, count, us)
    stop(monitor, "WAITED")


def test_waits_that_were_missed_are_dropped(ioc, monitor):
    """On a busy host some switches have no event. Each time that a thread of the IOC got a CPU is counted, or in DROPPED_CNT. The
    truth are the counters of the threads, which are read one after the other."""
    def truth():
        status = [(t / "status").read_text() for t in Path(f"/proc/{ioc.pid}/task").iterdir()]
        return len(status), sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", "".join(status))))

    def told():
        return monitor.get("EACH_WAIT_EVENT_CNT") + monitor.get("EACH_WAIT_DROPPED_CNT")

    start(monitor, "EACH_WAIT")
    ioc.put("NAPS.DESC", "connected")
    (_, before), begin = truth(), told()  # what the interval before the next look has is told later
    for _ in range(5):
        ioc.put("NAPS.PROC", 1, wait=True)
    threads, after = truth()
    assert after - before >= 1000
    until(lambda: told() - begin >= after - before - threads, 10, lambda: f"{told() - begin}, truly {after - before}")
    assert told() - begin <= truth()[1] - before + threads + 500, (told() - begin, after - before)
    stop(monitor, "EACH_WAIT")


def test_tracepoint_with_few_arguments(monitor):
    """sched_wakeup has one argument. A query that reads no arguments of a tracepoint works. A query that reads one too
    many is refused."""
    monitor.put("WAKEUPS_RUN", 1)
    monitor.wait("WAKEUPS_EVENT_CNT", lambda n: n >= 1)
    stop(monitor, "WAKEUPS")
    monitor.put("TOO_MANY_RUN", 1)
    wait_state(monitor, "TOO_MANY", "Failed")
    assert "tracepoint sched_wakeup has fewer arguments on this kernel" in monitor.text("TOO_MANY_MSG")


def states(monitor):
    """name → state, of the command ebpfMonQueries."""
    lines = [line.split() for line in monitor.command("ebpfMonQueries")]
    return {words[0]: words[1] for words in lines if len(words) > 2 and words[0] not in ("query", "epics>")}


def wait_states(monitor, names, state):
    until(lambda: all(states(monitor).get(n) == state for n in names), 20, lambda: "\n".join(monitor.command("ebpfMonQueries")))


@pytest.mark.parametrize("file", sorted(p.name for p in SHIPPED.glob("*.json")))
def test_shipped_queries_run(monitor, file):
    """The kernel accepts the programs of each query that comes with ebpfMon."""
    names = re.findall(r'"name": "(\w+)"', (SHIPPED / file).read_text())
    monitor.command(f'ebpfMonQueryLoad "{SHIPPED / file}"')
    for name in names:
        monitor.command(f"ebpfMonQueryStart {name}")
    wait_states(monitor, names, "running")
    for name in names:
        monitor.command(f"ebpfMonQueryStop {name}")
        assert f"{name}: " in "\n".join(monitor.command(f"ebpfMonQueryPrint {name}"))
    wait_states(monitor, names, "off")


def test_file_is_loaded_whole_or_refused_whole(monitor, tmp_path):
    """If the file has a mistake, the loaded queries stay. If a query is not in the new file, it is removed."""
    one, two = {"name": "ONE", "source": {"profile": 9}, "start": True}, {"name": "TWO", "source": {"profile": 9}}
    path = write(tmp_path, "some.json", [one, two])
    assert "2 queries of" in "\n".join(monitor.command(f'ebpfMonQueryLoad "{path}"'))
    wait_states(monitor, ["ONE"], "running")
    write(tmp_path, "some.json", [two, {"name": "THREE", "source": {"profile": 0}}])
    said = "\n".join(monitor.command(f'ebpfMonQueryLoad "{path}"'))
    assert re.search(r'some\.json:12:\d+: "profile" is a whole number from 1 to 1000', said), said
    assert states(monitor)["ONE"] == "running" and "THREE" not in states(monitor)
    write(tmp_path, "some.json", [two])
    monitor.command(f'ebpfMonQueryLoad "{path}"')
    until(lambda: "ONE" not in states(monitor), 10, lambda: str(states(monitor)))
    assert states(monitor)["TWO"] == "off"
    other = write(tmp_path, "other.json", [two])
    assert "query TWO is in" in "\n".join(monitor.command(f'ebpfMonQueryLoad "{other}"'))


def test_what_does_not_fit_is_counted(ioc, monitor, tmp_path):
    """There is room for four keys, and ten come. The events of the other six are counted as dropped."""
    monitor.command('ebpfMonQueryLoad "%s"' % write(tmp_path, "few.json", [BY_ARGS | {"name": "FEW", "maxKeys": 4}]))
    until(lambda: "looks at 1 IOC" in "\n".join(monitor.command("ebpfMonQueryPrint FEW")), 20, "FEW runs")
    ioc.put("KNOWN.PROC", 1)

    def counts():
        said = "\n".join(monitor.command("ebpfMonQueryPrint FEW"))
        return tuple(map(int, re.search(r"(\d+) events, (\d+) dropped, (\d+) keys", said).groups()))

    until(lambda: counts()[0] == CALLS, 10, lambda: str(counts()))
    events, dropped, keys = counts()
    assert keys == 4 and dropped == CALLS - 4 * CALLS / 10
    shown = re.findall(rf"^{ioc.name} +\d +(?:odd|even) +\S+ +(\d+) ", "\n".join(monitor.command("ebpfMonQueryPrint FEW")), re.M)
    assert list(map(int, shown)) == [CALLS / 10] * 4  # with what was dropped: all calls
    monitor.command("ebpfMonQueryStop FEW")


def test_dear_query_is_stopped(ioc, monitor, tmp_path):
    """The query is stopped when it was above its budget three times, not earlier."""
    monitor.command('ebpfMonQueryLoad "%s"' % write(tmp_path, "dear.json", [
        BY_ARGS | {"name": "DEAR", "budget": 0.01}, BY_ARGS | {"name": "CHEAP"}]))
    ioc.put("KNOWN.SCAN", ".1 second")  # 10,000 calls per second
    wait_states(monitor, ["DEAR"], "failed")
    assert "its \"budget\" is 0.01" in "\n".join(monitor.command("ebpfMonQueryPrint DEAR"))
    assert states(monitor)["CHEAP"] == "running"
    ioc.put("KNOWN.SCAN", "Passive")
    monitor.command("ebpfMonQueryStop CHEAP")


def test_query_stops_by_itself(ioc, monitor, tmp_path):
    """The results of a query stay after it has stopped."""
    monitor.command('ebpfMonQueryLoad "%s"' % write(tmp_path, "ends.json", [
        BY_ARGS | {"name": "ENDS", "stopAfter": {"count": CALLS}}]))
    until(lambda: "looks at 1 IOC" in "\n".join(monitor.command("ebpfMonQueryPrint ENDS")), 20, "ENDS runs")
    ioc.put("KNOWN.PROC", 1)
    wait_states(monitor, ["ENDS"], "done")
    assert f"{CALLS} events" in "\n".join(monitor.command("ebpfMonQueryPrint ENDS"))


def test_query_follows_iocs(ioc, monitor, new_ioc, tmp_path):
    """An IOC that starts later gets a row of its own. The row of an IOC that ended stays."""
    monitor.command('ebpfMonQueryLoad "%s"' % write(tmp_path, "follows.json", [
        {"name": "FOLLOWS", "source": {"function": "knownCall", "object": "latencyIoc"}, "keys": ["ioc"], "budget": 100,
         "start": True}]))
    other = new_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros=f"US=2000,CALLS={CALLS}").start()
    monitor.wait_ioc(other)

    def text():
        return "\n".join(monitor.command("ebpfMonQueryPrint FOLLOWS"))

    until(lambda: "looks at 2 IOCs" in text(), 20, text)
    ioc.put("KNOWN.PROC", 1)
    other.put("KNOWN.PROC", 1)
    until(lambda: all(re.search(rf"^{i.name} +{CALLS} ", text(), re.M) for i in (ioc, other)), 10, text)
    other.kill()
    until(lambda: "looks at 1 IOC;" in text() or "looks at 1 IOC" in text(), 20, text)
    assert re.search(rf"^{other.name} +{CALLS} ", text(), re.M), text()
    monitor.command("ebpfMonQueryStop FOLLOWS")


def test_table_by_pva(monitor):
    """QSRV serves the columns in their order, with their labels."""
    with loopback.pva_context(monitor.port, nt=False) as context:
        table = context.get(f"{monitor.prefix}BY_ARGS_TABLE", timeout=60)
    assert list(table.labels)[:5] == ["Key 1", "Key 2", "Key 3", "Key 4", "Count"]
    assert table.value.keys()[:5] == ["key1", "key2", "key3", "key4", "count"]
    assert len(table.labels) == len(table.value.keys())
    assert list(table.value.count) == monitor.list("BY_ARGS_CNTS")


def test_cells_that_are_not_known_are_empty(ioc, monitor):
    """Percentiles of a query without a log2 histogram: NaN in the waveform, an empty cell in the table. With one: the number."""
    for query in "TOOK", "BY_ARGS":
        start(monitor, query)
    ioc.put("SPIN.PROC", 1, wait=True)
    ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: monitor.list("TOOK_P99S") and monitor.list("BY_ARGS_P99S"), 20, "rows of both")
    for query in "TOOK", "BY_ARGS":
        stop(monitor, query)
    with loopback.pva_context(monitor.port, nt=False) as context:
        for query in "TOOK", "BY_ARGS":
            table = context.get(f"{monitor.prefix}{query}_TABLE", timeout=60)
            for column in "p50", "p90", "p99":
                numbers = monitor.list(f"{query}_{column.upper()}S")
                assert all(map(math.isnan, numbers)) == (query == "BY_ARGS"), numbers
                assert list(table.value[column]) == ["" if math.isnan(n) else f"{n:.3f}" for n in numbers]


def test_sampling(ioc, monitor):
    """One call in ten, by chance: counts and sums are those of all calls within five standard deviations."""
    calls, sigma = 20 * CALLS, 10 * (20 * CALLS / 10 * 0.9) ** 0.5
    start(monitor, "SAMPLED")
    for _ in range(20):
        ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: [n for n, in rows(monitor, "SAMPLED", "CNTS") if abs(n - calls) < 5 * sigma], 20, lambda: str(rows(monitor, "SAMPLED", "CNTS")))
    (count, total, mean), = rows(monitor, "SAMPLED", "CNTS", "SUMS", "MEANS")
    assert count != calls and count % 10 == 0 and total == pytest.approx(count * mean) and abs(mean - 4.5) < 5 * 2.9 / (calls / 10) ** 0.5
    stop(monitor, "SAMPLED")


def test_nested_calls(ioc, monitor):
    """dbProcess() of each record of a chain is called within that of the record before. Each call has its own duration, and the row of the
    longest comes first."""
    chain = [f"{ioc.prefix}SPIN{part}" for part in ("", ":BUSY", ":TOOK", ":SUM", ":END")]
    start(monitor, "NESTED")
    for _ in range(5):
        ioc.put("SPIN.PROC", 1, wait=True)
    until(lambda: dict(rows(monitor, "NESTED", "KEY1S", "CNTS")) == dict.fromkeys(chain, 5), 20,
          lambda: str(rows(monitor, "NESTED", "KEY1S", "CNTS")))
    sums = {name: total for name, total in rows(monitor, "NESTED", "KEY1S", "SUMS")}
    assert all(sums[outer] > sums[inner] > 0 for outer, inner in itertools.pairwise(chain)), sums
    assert sums[chain[1]] >= 5 * 2000 and [name for name, in rows(monitor, "NESTED", "KEY1S")] == \
        sorted(chain, key=dict(rows(monitor, "NESTED", "KEY1S", "MAXS")).get, reverse=True)
    assert monitor.get("NESTED_DROPPED_CNT") == 0
    stop(monitor, "NESTED")


def test_schema_has_all_keys():
    """The JSON Schema and the parser accept the same keys of a query."""
    schema = json.loads((paths.TOP / "documentation" / "use" / "queries.schema.json").read_text())
    source = (paths.TOP / "ebpfMonModules" / "query" / "queryParse.c").read_text()
    keys = "".join(re.findall(r'"([^"]*)"', re.search(r"#define QUERY_KEYS((?:.*\\\n)*.*)", source)[1])).split(", ")
    assert sorted(schema["$defs"]["query"]["properties"]) == sorted(keys)
