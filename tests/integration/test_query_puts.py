# SPDX-License-Identifier: BSD-3-Clause
"""Queries about whole puts: the distribution of what each put had in all, and the put to which dbPut() itself belongs."""
import getpass
import socket

from tests.harness.queries import known_calls, rows, start, stop
from tests.harness.wait import until

ME = f"{getpass.getuser()[:15]}@{socket.gethostname()[:19]}"
QUICK = {"interval": 0.5, "budget": 100}
EACH = QUICK | {"settle": 1}
CALL = {"source": {"function": "knownCall", "object": "latencyIoc"}}
CALLS = CALL | EACH | {"name": "CALLS", "keys": ["put"], "perPut": "count", "histogram": {"from": 0, "to": 100, "steps": 10}}
ALL = CALL | EACH | {"name": "ALL", "perPut": "count", "histogram": "log2"}
FEW = CALL | EACH | {"name": "FEW", "perPut": "count", "maxKeys": 1, "settle": 3600}
COMPLETES = EACH | {"name": "COMPLETES", "source": {"function": "completeAfter"}, "keys": ["put", "author"], "perPut": "count"}
SLEEPS = EACH | {"name": "SLEEPS", "source": {"syscalls": "duration"}, "keys": ["put", "syscall"], "perPut": "sum",
                 "histogram": {"from": 0, "to": 100000, "steps": 10},
                 "where": [{"field": "syscall", "is": "==", "value": "clock_nanosleep"}]}
PUTS = QUICK | {"name": "PUTS", "source": {"function": "dbPut", "when": "duration"}, "keys": ["put", "author"],
                "where": [{"field": "author", "is": "==", "value": ME}]}
QUERIES = [CALLS, ALL, FEW, COMPLETES, SLEEPS, PUTS]
VALUES = ["CNTS", "SUMS", "MINS", "MAXS", "MEANS"]


ioc, monitor = known_calls(100, QUERIES)


def wait_row(monitor, query, key, columns, wanted):
    """The row with this first key has these values."""
    def found():
        return [row[1:] for row in rows(monitor, query, "KEY1S", *columns) if row[0] == key]

    until(lambda: found() == [wanted], 20, lambda: f"{key} {wanted}, not {rows(monitor, query, 'KEY1S', *columns)}")


def bars(monitor, query):
    return {edge: n for edge, n in zip(monitor.list(f"{query}_HIST_EDGES"), monitor.list(f"{query}_HIST"), strict=True) if n}


def test_calls_in_each_put(ioc, monitor):
    """Four puts that call a function 10, 20, 20 and 70 times. A scan that calls it is no put. Without keys there is one row."""
    calls = [10, 20, 20, 70]
    for query in "CALLS", "ALL":
        start(monitor, query)
    ioc.put("KNOWN.SCAN", ".1 second")
    for n in calls:
        ioc.put("KNOWN:CALLS.A", n, wait=True)
    ioc.put("KNOWN.SCAN", "Passive", wait=True)
    for n in calls:
        ioc.put("KNOWN:CALLS.A", n, wait=True)
        ioc.put("KNOWN.PROC", 1, wait=True)
    known = (4, 120, 10, 70, 30)
    wait_row(monitor, "CALLS", f"{ioc.prefix}KNOWN.PROC", VALUES, known)
    found = {key for key, in rows(monitor, "CALLS", "KEY1S")}
    assert found <= {f"{ioc.prefix}KNOWN.PROC", f"{ioc.prefix}KNOWN:CALLS.A"}, found
    puts = sum(n for n, in rows(monitor, "CALLS", "CNTS"))
    assert bars(monitor, "CALLS") == {10: puts / 4, 20: puts / 2, 70: puts / 4}
    until(lambda: rows(monitor, "ALL", "CNTS", "MINS", "MAXS", "P50S") == [(puts, 10, 70, 24)], 10,
          lambda: str(rows(monitor, "ALL", "CNTS", "MINS", "MAXS", "P50S")))
    assert [monitor.get(f"{q}_DROPPED_CNT") for q in ("CALLS", "ALL")] == [0, 0]
    for query in "CALLS", "ALL":
        stop(monitor, query)


def test_put_that_completes_in_another_thread(ioc, monitor):
    """completeAfter is called by the client's thread, and then by the callback thread: two events of one put."""
    start(monitor, "COMPLETES")
    for n in range(3):
        done = ioc.get("ASYN:END")
        ioc.put("ASYN.PROC", 1)
        until(lambda done=done: ioc.get("ASYN:END") > done, 10, f"completion {n}")
    wait_row(monitor, "COMPLETES", f"{ioc.prefix}ASYN.PROC", ["KEY2S", *VALUES], (ME, 3, 6, 2, 2, 2))
    stop(monitor, "COMPLETES")


def test_time_of_system_calls_in_each_put(ioc, monitor):
    """Puts that sleep 5 and 35 ms: the sum of the system call in each."""
    start(monitor, "SLEEPS")
    for ms in 5, 5, 35:
        ioc.put("SLEEP:BUSY.A", 1000 * ms, wait=True)
        ioc.put("SLEEP.PROC", 1, wait=True)
    ioc.put("SLEEP:BUSY.A", 2000, wait=True)
    put = f"{ioc.prefix}SLEEP.PROC"
    wait_row(monitor, "SLEEPS", put, ["KEY2S", "CNTS"], ("clock_nanosleep", 3))
    (least, most, total), = [row[1:] for row in rows(monitor, "SLEEPS", "KEY1S", "MINS", "MAXS", "SUMS") if row[0] == put]
    assert least >= 5000 and most >= 35000 and total >= 45000, (least, most, total)
    assert monitor.text("SLEEPS_UNIT") == "us"
    stop(monitor, "SLEEPS")


def test_puts_for_which_there_is_no_room(ioc, monitor):
    """One put at a time is kept. The events of the others are counted as dropped."""
    start(monitor, "FEW")
    for _ in range(3):
        ioc.put("KNOWN.PROC", 1, wait=True)
    calls = int(ioc.get("KNOWN:CALLS.A"))
    until(lambda: monitor.get("FEW_DROPPED_CNT") == 2 * calls, 10, lambda: f"{monitor.get('FEW_DROPPED_CNT')} of {calls} each")
    assert monitor.get("FEW_EVENT_CNT") == 3 * calls and rows(monitor, "FEW", "CNTS") == []
    stop(monitor, "FEW")


def test_put_of_dbPut_itself(ioc, monitor):
    """The duration of dbPut() belongs to the put that it is, and so do those of the puts that its chain makes."""
    start(monitor, "PUTS")
    for _ in range(5):
        ioc.put("KNOWN.PROC", 1, wait=True)
    wait_row(monitor, "PUTS", f"{ioc.prefix}KNOWN.PROC", ["KEY2S", "CNTS"], (ME, 5))
    stop(monitor, "PUTS")
