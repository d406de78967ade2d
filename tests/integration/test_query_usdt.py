# SPDX-License-Identifier: BSD-3-Clause
"""USDT probes of an IOC as sources of queries: their places, and their arguments in registers, in memory, in variables
and in tables, which differ from place to place. All values are known."""
import os
import platform
import subprocess

import pytest
from tests.harness.queries import known_calls, rows, start, stop
from tests.harness.wait import until

CALLS = 1000  # calls of passProbes in each processing of KNOWN
PROBE = {"usdt": "latency:known", "object": "latencyIoc"}

VALUES = {"name": "VALUES", "source": PROBE, "budget": 100, "value": {"arg": 4, "as": "int16"},
          "keys": [{"arg": 1, "as": "int32"}, {"arg": 2, "as": "text"}, {"arg": 3, "as": "record"}, {"arg": 6}]}
CONSTANT = {"name": "CONSTANT", "source": PROBE, "budget": 100, "keys": [{"arg": 5}],
            "where": [{"field": {"arg": 1}, "is": ">=", "value": 3}]}
NAMES = {"name": "NAMES", "source": {"usdt": "latency:*"}, "budget": 100, "keys": ["function", "root", "record"]}
WATCHED = {"name": "WATCHED", "source": {"usdt": "latency:watched"}, "budget": 100, "keys": [{"arg": 1}]}
REFUSED = {name: {"name": name, "source": {"usdt": probe}, "keys": keys, "budget": 100} for name, probe, keys in [
    ("FLOAT", "latency:odd", [{"arg": 2}]), ("THREAD", "latency:odd", [{"arg": 3}]), ("HALF", "latency:odd", [{"arg": 4}]),
    ("NOWHERE", "latency:odd", [{"arg": 5}]), ("SIZELESS", "latency:odd", [{"arg": 6}]),
    ("SEVENTH", "latency:watched", [{"arg": 2}]), ("ABSENT", "latency:absent", [])]}
WHY = {"FLOAT": 'latency:odd: argument 2 is "8f@%xmm0": it is a floating-point number',
       "THREAD": 'latency:odd: argument 3 is "8@%fs:16": eBPF cannot read that register',
       "HALF": 'latency:odd: argument 4 is "1@%ah": eBPF cannot read that register',
       "NOWHERE": "is behind the variable nowhere, which is not among the global symbols",
       "SIZELESS": 'argument 6 is "%rax": it does not say how large it is',
       "SEVENTH": "latency:watched: it has 1 argument",
       "ABSENT": 'no file like "*" has a USDT probe latency:absent'}
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the texts of the arguments are those of x86-64")


ioc, monitor = known_calls(CALLS, [VALUES, CONSTANT, NAMES, WATCHED, *REFUSED.values()])


def wait_rows(monitor, query, columns, wanted):
    until(lambda: sorted(rows(monitor, query, *columns)) == sorted(wanted), 60, lambda: str(rows(monitor, query, *columns)))


def test_arguments_of_two_places(ioc, monitor):
    """Odd numbers pass the probe at one place, even numbers at another. Argument 4 is argument 1 minus 5. Argument 6 is
    a number out of a table, or a variable that never changes."""
    start(monitor, "VALUES")
    ioc.put("KNOWN.PROC", 1)
    each = CALLS / 10
    wait_rows(monitor, "VALUES", ["KEY1S", "KEY2S", "KEY3S", "KEY4S", "CNTS", "SUMS"], [
        (str(n), "odd" if n % 2 else "even", f"{ioc.prefix}KNOWN:CALLS", "1000" if n % 2 else str(10 * n), each, each * (n - 5))
        for n in range(10)])
    assert monitor.get("VALUES_DROPPED_CNT") == 0 and monitor.get("VALUES_COST") >= 0
    stop(monitor, "VALUES")


def test_constants_and_conditions(ioc, monitor):
    """A constant of one byte: signed at one place, unsigned at another."""
    start(monitor, "CONSTANT")
    ioc.put("KNOWN.PROC", 1)
    wait_rows(monitor, "CONSTANT", ["KEY1S", "CNTS"], [("253", 4 * CALLS / 10), ("-3", 3 * CALLS / 10)])
    stop(monitor, "CONSTANT")


def semaphore(ioc):
    """The semaphore of the probe "watched": how many tools use it."""
    program = os.path.realpath(f"/proc/{ioc.pid}/exe")
    vaddr = next(int(line.split()[0], 16) for line in subprocess.check_output(["nm", program], text=True).splitlines() if line.endswith(" watched"))
    with open(f"/proc/{ioc.pid}/maps") as maps:
        base = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(program))
    with open(f"/proc/{ioc.pid}/mem", "rb") as memory:
        memory.seek(base + vaddr)
        return int.from_bytes(memory.read(2), "little")


def test_probe_that_is_passed_if_somebody_looks(ioc, monitor):
    """The semaphore of the probe is incremented while the query runs, and decremented afterwards."""
    assert semaphore(ioc) == 0
    start(monitor, "WATCHED")
    assert semaphore(ioc) == 1
    ioc.put("KNOWN.PROC", 1)
    wait_rows(monitor, "WATCHED", ["KEY1S", "CNTS"], [(str(n), CALLS / 10) for n in range(10)])
    stop(monitor, "WATCHED")
    until(lambda: semaphore(ioc) == 0, 60, "its semaphore is 0 again")


def test_all_probes_of_a_provider(ioc, monitor):
    start(monitor, "NAMES")
    ioc.put("KNOWN.PROC", 1)
    chain = f"{ioc.prefix}KNOWN", f"{ioc.prefix}KNOWN:CALLS"
    wait_rows(monitor, "NAMES", ["KEY1S", "KEY2S", "KEY3S", "CNTS"],
              [(f"latency:{name}", *chain, CALLS) for name in ("known", "odd", "watched")])
    stop(monitor, "NAMES")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_had_is_said(monitor, name):
    """A query that would give a wrong value is refused with the reason. It counts no events."""
    monitor.put(f"{name}_RUN", 1)
    until(lambda: WHY[name] in monitor.text(f"{name}_MSG"), 60, lambda: monitor.text(f"{name}_MSG"))
    assert monitor.get(f"{name}_EVENT_CNT") == 0
    stop(monitor, name)
