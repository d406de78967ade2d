# SPDX-License-Identifier: BSD-3-Clause
"""Queries while their file, their IOCs and their functions change under them, and queries that ask for too much."""
import json
import re
import time

import pytest
from tests.harness.queries import known_calls, rows, start, stop, wait_state, write
from tests.harness.wait import until

CALLS = 1000
KNOWN = {"source": {"function": "knownCall", "object": "latencyIoc"}, "keys": ["ioc"], "interval": 0.5, "budget": 100}
ONE = {"name": "ONE"} | KNOWN
TWO = {"name": "TWO"} | KNOWN
TIMED = {"name": "TIMED"} | KNOWN | {"source": KNOWN["source"] | {"when": "duration"}}
FEW_SECONDS = {"name": "FEW_SECONDS"} | KNOWN | {"stopAfter": {"seconds": 3}}
FEW_EVENTS = {"name": "FEW_EVENTS"} | KNOWN | {"stopAfter": {"count": 10 * CALLS}}
ALL = {"name": "ALL", "source": {"function": "*"}, "keys": ["function"], "budget": 100}
SELF = {"name": "SELF", "source": {"syscalls": "duration"}, "of": {"host": True}, "keys": ["pid"], "events": True, "interval": 0.5, "budget": 100}


ioc, monitor = known_calls(CALLS, [ONE, TWO, TIMED, FEW_SECONDS, FEW_EVENTS, ALL, SELF])


def counted(monitor, query):
    return sum(row[0] for row in rows(monitor, query, "CNTS"))


def test_three_queries_at_one_function(ioc, monitor):
    """Each counts all calls. One that stops takes nothing from the others."""
    names = "ONE", "TWO", "TIMED"
    for name in names:
        start(monitor, name)
    ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: all(counted(monitor, name) == CALLS for name in names), 10, lambda: str([counted(monitor, n) for n in names]))
    stop(monitor, "TWO")
    ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: counted(monitor, "ONE") == counted(monitor, "TIMED") == 2 * CALLS, 10,
          lambda: str([counted(monitor, n) for n in names]))
    for name in "ONE", "TIMED":
        stop(monitor, name)


def test_its_file_is_loaded_again_and_again(ioc, monitor, tmp_path):
    """Each load begins the counts anew. The last one counts all that is called after it has begun."""
    path = write(tmp_path, "again.json", [{"name": "AGAIN", "start": True} | KNOWN])
    ioc.put("KNOWN.SCAN", ".1 second")
    for _ in range(20):
        monitor.command(f'ebpfMonQueryLoad "{path}"')
    ioc.put("KNOWN.SCAN", "Passive")
    monitor.command(f'ebpfMonQueryLoad "{path}"')

    def text():
        return "\n".join(monitor.command("ebpfMonQueryPrint AGAIN"))

    until(lambda: "looks at 1 IOC" in text() and "\n0 events" in text(), 20, text)
    ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: f"\n{CALLS} events, 0 dropped" in text(), 10, text)
    monitor.command("ebpfMonQueryStop AGAIN")


def test_the_ioc_ends_and_comes_back(monitor, new_ioc, ioc, tmp_path):
    """Killed while its function is called, again and again. The last life is counted whole, in a row of its own."""
    start(monitor, "ONE")
    other = new_ioc(files=ioc.files, kind="latencyIoc", macros=f"US=2000,CALLS={CALLS}").start()
    for _ in range(4):
        monitor.wait_ioc(other)
        other.put("KNOWN.SCAN", ".1 second")
        other.kill()
        other.start()
    monitor.wait_ioc(other)
    until(lambda: "looks at 2 IOC" in monitor.text("ONE_MSG"), 20, lambda: monitor.text("ONE_MSG"))
    other.put("KNOWN.PROC", 1, wait=True)
    until(lambda: [n for name, n in rows(monitor, "ONE", "KEY1S", "CNTS") if name == other.name and n == CALLS], 20,
          lambda: str(rows(monitor, "ONE", "KEY1S", "CNTS")))
    assert monitor.get("ONE_STATE", as_string=True) == "Running"
    stop(monitor, "ONE")


def test_all_functions_are_too_many(monitor):
    """It says so, and nothing is probed."""
    monitor.put("ALL_RUN", 1)
    until(lambda: "256" in monitor.text("ALL_MSG"), 60, lambda: monitor.text("ALL_MSG"))
    assert monitor.get("ALL_EVENT_CNT") == 0 and monitor.get("ALL_COST") == 0
    stop(monitor, "ALL")


def test_it_stops_when_it_is_said(ioc, monitor):
    """After 3 s, and not an interval later; after 10 rounds, which end within one interval."""
    monitor.put("FEW_SECONDS_RUN", 1)
    wait_state(monitor, "FEW_SECONDS", "Running")
    begin = time.monotonic()
    wait_state(monitor, "FEW_SECONDS", "Done")
    assert 2 < time.monotonic() - begin < 3 + 0.5 + 2
    start(monitor, "FEW_EVENTS")
    for _ in range(9):
        ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: counted(monitor, "FEW_EVENTS") == 9 * CALLS, 10, lambda: str(counted(monitor, "FEW_EVENTS")))
    assert monitor.get("FEW_EVENTS_STATE", as_string=True) == "Running"
    ioc.put("KNOWN.PROC", 1, wait=True)
    wait_state(monitor, "FEW_EVENTS", "Done")
    assert counted(monitor, "FEW_EVENTS") == monitor.get("FEW_EVENTS_EVENT_CNT") == 10 * CALLS


def test_the_monitor_looks_at_itself(monitor):
    """Its own system calls, one by one: to show them makes new ones, but not more and more."""
    monitor.put("SELF_RUN", 1)
    wait_state(monitor, "SELF", "Running")
    pid = str(monitor.process.pid)

    def own():
        return next((n for key, n in rows(monitor, "SELF", "KEY1S", "RATES") if key == pid), 0)

    until(lambda: own() > 0, 20, lambda: str(rows(monitor, "SELF", "KEY1S", "RATES")))
    first = own()
    for _ in range(6):
        until(lambda: own() != first, 20, "the next look")
        first = own()
    assert first < 20000 and monitor.get("SELF_STATE", as_string=True) == "Running"
    stop(monitor, "SELF")


@pytest.mark.parametrize("odd", ["*", "", "[", "a[b", "\\", "%s%n%x", "$(P)", "'\";--", "ä€", "\x1b[31m", "a\nb", "x" * 80, "(", "a|b", "?" * 60])
def test_odd_patterns(monitor, tmp_path, odd):
    """A pattern of anything is taken or refused with line and column. What is shown of it is harmless."""
    name = "ODD"
    path = write(tmp_path, "odd.json", [{"name": name, "title": odd, "source": {"profile": 9}, "start": True,
                                         "of": {"ioc": odd, "record": odd}}])
    said = "\n".join(monitor.command(f'ebpfMonQueryLoad "{path}"'))
    assert "\x1b" not in said
    if "1 queries of" in said:
        until(lambda: re.search(r"looks at \d+ IOC", "\n".join(monitor.command(f"ebpfMonQueryPrint {name}"))), 20, said)
        assert "\x1b" not in "\n".join(monitor.command(f"ebpfMonQueryPrint {name}"))
    else:
        assert re.search(r"odd\.json:\d+:\d+: ", said), said
    path.write_text(json.dumps({"queries": []}))
    monitor.command(f'ebpfMonQueryLoad "{path}"')


def test_forty_queries_at_one_function(ioc, monitor, tmp_path):
    """40 queries at one function: each counts all calls, once."""
    names = [f"MANY{n}" for n in range(40)]
    path = write(tmp_path, "many.json", [{"name": name, "start": True} | KNOWN | {"interval": 5} for name in names])
    assert f"{len(names)} queries of" in "\n".join(monitor.command(f'ebpfMonQueryLoad "{path}"'))

    def texts():
        return {name: "\n".join(monitor.command(f"ebpfMonQueryPrint {name}")) for name in names}

    until(lambda: all("looks at 1 IOC" in text for text in texts().values()), 60, lambda: str(texts()))
    ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: all(f"\n{CALLS} events, 0 dropped" in text for text in texts().values()), 60,
          lambda: str({name: text for name, text in texts().items() if f"\n{CALLS} events, 0 dropped" not in text}))
    write(tmp_path, "many.json", [{"name": names[0]} | KNOWN])
    monitor.command(f'ebpfMonQueryLoad "{path}"')
    ioc.put("KNOWN.PROC", 1, wait=True)
    assert ioc.running and monitor.get("STATE", as_string=True) == "Running"


def test_events_and_puts_while_the_file_is_loaded_again(ioc, monitor, tmp_path):
    """Four keys, events one by one, stacks, and a value for each put, of a function that is called all the time, while they start and stop
    anew. Then all of a known number of calls count."""
    keys = ["ioc", {"arg": 1, "as": "int32"}, {"arg": 2, "as": "text"}, {"arg": 4, "as": "record"}]
    base = KNOWN | {"start": True}
    queries = [base | {"name": "FLY_EVENTS", "keys": keys, "events": True, "histogram": "log2", "value": {"arg": 1}},
               base | {"name": "FLY_STACKS", "keys": ["site"], "stacks": True},
               base | {"name": "FLY_PUTS", "keys": ["put"], "perPut": "count", "settle": 0.5},
               base | {"name": "FLY_TIMES", "keys": ["put", "author", "client", "record"],
                       "source": KNOWN["source"] | {"when": "duration"}}]
    path = write(tmp_path, "fly.json", queries)
    ioc.put("KNOWN.SCAN", ".1 second")
    for _ in range(8):
        assert "4 queries of" in "\n".join(monitor.command(f'ebpfMonQueryLoad "{path}"'))
        ioc.put("KNOWN.PROC", 1, wait=True)
    ioc.put("KNOWN.SCAN", "Passive", wait=True)
    monitor.command(f'ebpfMonQueryLoad "{path}"')

    def text(name):
        return "\n".join(monitor.command(f"ebpfMonQueryPrint {name}"))

    names = [q["name"] for q in queries]
    until(lambda: all("looks at 1 IOC" in text(n) and "\n0 events" in text(n) for n in names), 60, lambda: "\n".join(map(text, names)))
    ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: all(f"\n{CALLS} events, 0 dropped" in text(n) for n in names if n != "FLY_STACKS") and
          f"\n{CALLS} events, " in text("FLY_STACKS"), 60, lambda: "\n".join(map(text, names)))
    until(lambda: re.search(rf"KNOWN\.PROC +1 +\S+ +{CALLS} ", text("FLY_PUTS")), 20, lambda: text("FLY_PUTS"))
    for name in names:
        monitor.command(f"ebpfMonQueryStop {name}")


def test_names_of_queries_that_are_gone_are_free(ioc, monitor, tmp_path):
    """Files with other names, one after the other, more than there can be at a time; some of a file that is refused, too."""
    path = tmp_path / "names.json"
    for n in range(8):
        write(tmp_path, path.name, [{"name": f"N{n}_{i}", "start": True} | KNOWN for i in range(20)])
        said = "\n".join(monitor.command(f'ebpfMonQueryLoad "{path}"'))
        assert "20 queries of" in said, said
        too_many = write(tmp_path, "too.json", [{"name": f"T{n}_{i}"} | KNOWN for i in range(128)])
        assert "there are 128 names" in "\n".join(monitor.command(f'ebpfMonQueryLoad "{too_many}"'))
    last = "\n".join(monitor.command("ebpfMonQueryPrint N7_19"))
    until(lambda: "looks at 1 IOC" in "\n".join(monitor.command("ebpfMonQueryPrint N7_19")), 20, last)
    ioc.put("KNOWN.PROC", 1, wait=True)
    until(lambda: f"\n{CALLS} events, 0 dropped" in "\n".join(monitor.command("ebpfMonQueryPrint N7_19")), 20,
          lambda: "\n".join(monitor.command("ebpfMonQueryPrint N7_19")))
    write(tmp_path, path.name, [{"name": "N7_19"} | KNOWN])
    monitor.command(f'ebpfMonQueryLoad "{path}"')
    assert monitor.get("STATE", as_string=True) == "Running"
