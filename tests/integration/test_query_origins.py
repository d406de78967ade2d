# SPDX-License-Identifier: BSD-3-Clause
"""Queries can use keys that only ebpfMon knows: the put during which something happens, its author, the client that is
served."""
import getpass
import socket

from tests.harness import ca
from tests.harness.queries import known_calls, rows, start, stop
from tests.harness.wait import until

ME = f"{getpass.getuser()[:15]}@{socket.gethostname()[:19]}"
ORIGIN = ["put", "author", "client", "thread"]
SLEEPS = {"name": "SLEEPS", "source": {"syscalls": "entry"}, "keys": ORIGIN, "budget": 100,
          "where": [{"field": "syscall", "is": "==", "value": "clock_nanosleep"},
                    {"any": [{"field": "thread", "is": "==", "value": "CAS-client"},
                             {"field": "thread", "is": "==", "value": "scan-0.1"}]}]}
COMPLETES = {"name": "COMPLETES", "source": {"function": "completeAfter"}, "keys": ["put", "author", "thread"], "budget": 100}
OF_TESTER = {"name": "OF_TESTER", "source": {"function": "knownCall", "object": "latencyIoc"}, "keys": ["author", "client"],
             "where": [{"field": "author", "is": "==", "value": "tester@testhost"}], "budget": 100}
OF_TEST = OF_TESTER | {"name": "OF_TEST", "where": [{"field": "client", "is": "begins", "value": "test"}]}
IN_PUTS = {"name": "IN_PUTS", "source": {"function": "knownCall", "object": "latencyIoc"}, "keys": ["put"], "budget": 100}
PUTS = {"name": "PUTS", "source": {"function": "dbPut", "when": "duration"}, "budget": 100,
        "keys": [{"arg": 1, "at": [0], "as": "record"}]}
EACH_PUT = IN_PUTS | {"name": "EACH_PUT", "keys": ["put", {"arg": 3, "at": [56], "as": "int64"}]}  # the number of the processing
QUERIES = [SLEEPS, COMPLETES, OF_TESTER, OF_TEST, IN_PUTS, PUTS, EACH_PUT]
CALLS = 100


ioc, monitor = known_calls(CALLS, QUERIES)


def wait_rows(monitor, query, columns, wanted):
    until(lambda: sorted(rows(monitor, query, *columns)) == sorted(wanted), 20,
          lambda: f"{sorted(wanted)}, not {sorted(rows(monitor, query, *columns))}")


def test_put_and_author_of_what_happens(ioc, monitor):
    """The chain of a put sleeps in the client's thread. The same chain, when its scan starts it, has no author."""
    start(monitor, "SLEEPS")
    for _ in range(5):
        ioc.put("SLEEP.PROC", 1)
    put = (f"{ioc.prefix}SLEEP.PROC", ME, ME, "CAS-client", 5)
    wait_rows(monitor, "SLEEPS", ("KEY1S", "KEY2S", "KEY3S", "KEY4S", "CNTS"), [put])
    ioc.put("SLEEP.SCAN", ".1 second")
    until(lambda: len(rows(monitor, "SLEEPS", "KEY1S")) > 1, 20, "the scan thread sleeps")
    ioc.put("SLEEP.SCAN", "Passive")
    found = rows(monitor, "SLEEPS", "KEY1S", "KEY2S", "KEY3S", "KEY4S", "CNTS")
    assert put in found and [r[:4] for r in found if r != put] == [("-", "-", "-", "scan-0.1")]
    stop(monitor, "SLEEPS")


def test_completion_belongs_to_the_put_that_began_it(ioc, monitor):
    """completeAfter is called twice for each put: by the client's thread, and by the callback thread."""
    start(monitor, "COMPLETES")
    for n in range(3):
        done = ioc.get("ASYN:END")
        ioc.put("ASYN.PROC", 1)
        until(lambda done=done: ioc.get("ASYN:END") > done, 10, f"completion {n}")
    put = f"{ioc.prefix}ASYN.PROC"
    wait_rows(monitor, "COMPLETES", ("KEY1S", "KEY2S", "KEY3S", "CNTS"), [(put, ME, "CAS-client", 3), (put, ME, "cbLow", 3)])
    stop(monitor, "COMPLETES")


def test_conditions_on_author_and_client(ioc, monitor):
    """Two clients do the same. The query selects one of them."""
    for query in "OF_TESTER", "OF_TEST":
        start(monitor, query)
    ioc.put("KNOWN.PROC", 1)
    for _ in range(2):
        ca.raw_put(ioc, f"{ioc.prefix}KNOWN.PROC", 1, callback=True)
    for query in "OF_TESTER", "OF_TEST":
        wait_rows(monitor, query, ("KEY1S", "KEY2S", "CNTS"), [("tester@testhost", "tester@testhost", 2 * CALLS)])
        stop(monitor, query)


def test_how_often_in_each_put(ioc, monitor):
    """Calls by put, and puts, give the mean number of calls of a put. An argument that is another one in each put gives the
    number of each."""
    for query in "IN_PUTS", "PUTS", "EACH_PUT":
        start(monitor, query)
    calls = [10, 20, 20, 70]
    for n in calls:
        ioc.put("KNOWN:CALLS.A", n, wait=True)
        ioc.put("KNOWN.PROC", 1, wait=True)
    put = f"{ioc.prefix}KNOWN.PROC"
    wait_rows(monitor, "IN_PUTS", ("KEY1S", "CNTS"), [(put, sum(calls))])
    until(lambda: (f"{ioc.prefix}KNOWN", len(calls)) in rows(monitor, "PUTS", "KEY1S", "CNTS"), 20,
          lambda: str(rows(monitor, "PUTS", "KEY1S", "CNTS")))
    until(lambda: sorted(n for p, n in rows(monitor, "EACH_PUT", "KEY1S", "CNTS") if p == put) == calls, 20,
          lambda: str(rows(monitor, "EACH_PUT", "KEY1S", "KEY2S", "CNTS")))
    ioc.put("KNOWN:CALLS.A", CALLS, wait=True)
    for query in "IN_PUTS", "PUTS", "EACH_PUT":
        stop(monitor, query)


def test_level_that_is_too_low(ioc, monitor):
    """Below level chains the put and its author are not known where the client is, and the query says so."""
    monitor.at_level("counts", ioc)
    start(monitor, "OF_TEST")
    until(lambda: "1 below level chains" in monitor.text("OF_TEST_MSG"), 20, lambda: monitor.text("OF_TEST_MSG"))
    monitor.set_filter(LEVEL="chains")
    until(lambda: "below" not in monitor.text("OF_TEST_MSG"), 20, lambda: monitor.text("OF_TEST_MSG"))
    stop(monitor, "OF_TEST")
