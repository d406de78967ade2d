# SPDX-License-Identifier: BSD-3-Clause
"""Alarms of queries by limits of the template, and the histogram of each row."""
import math

import pytest
from tests.harness import paths
from tests.harness.queries import latency_ioc, start, stop, write
from tests.harness.wait import until

CALLS = 1000
SHORT, LONG = 2000, 60000  # us
TIME = {"source": {"function": "spinFor", "object": "latencyIoc", "when": "duration"}, "keys": ["root"], "interval": 0.5, "budget": 100}
LIMITED = TIME | {"name": "LIMITED", "histogram": "log2"}
FREE = TIME | {"name": "FREE"}
EACH = {"name": "EACH", "source": {"function": "knownCall", "object": "latencyIoc"}, "keys": [{"arg": 2, "as": "text"}],
        "value": {"arg": 1, "as": "int32"}, "histogram": {"from": 0, "to": 10, "steps": 10}, "interval": 0.5, "budget": 100}
PARTS = {"P50S": 0.5, "P90S": 0.9, "P99S": 0.99}
ONE_ROW = EACH | {"name": "ONE_ROW", "keys": [{"arg": 1, "as": "int32"}], "top": 1}
LIMITS = f"MAX_HIHI={LONG},MEAN_HIGH={LONG},RATE_LOLO=1,RATE_LOW=2,UNIT=us"
BARS = 64  # numbers of each row


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return latency_ioc(module_ioc, CALLS)


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, tmp_path_factory):
    before = [f'dbLoadRecords("{paths.DB / "ebpfMonQuery.template"}", "P=$(EBPFMON_P),Q={q}{more}")'
              for q, more in (("LIMITED", "," + LIMITS), ("FREE", ""), ("EACH", ""), ("ONE_ROW", ""))]
    before += [f'dbLoadRecords("{paths.DB / "ebpfMonQueryRows.template"}", "P=$(EBPFMON_P),Q=EACH")',
               f'ebpfMonQueryLoad "{write(tmp_path_factory.mktemp("queries"), "queries.json", [LIMITED, FREE, EACH, ONE_ROW])}"']
    m = module_monitor(before=before).start()
    m.wait_ioc(ioc)
    return m


def severity(monitor, pv):
    return monitor.get(f"{pv}.SEVR", as_string=True)


def wait_severity(monitor, pv, wanted):
    until(lambda: severity(monitor, pv) == wanted, 20, lambda: f"{pv} {wanted}: {severity(monitor, pv)}, {monitor.get(pv)}")


def test_alarms_by_limits(ioc, monitor):
    """A record that is processed ten times a second, first shorter than the limit, then longer, then no more. The mean of
    an interval is at least what the routine takes; its maximum has the width of a bucket."""
    for query in "LIMITED", "FREE":
        start(monitor, query)
    ioc.put("SPIN:BUSY.A", SHORT)
    ioc.put("SPIN.SCAN", ".1 second")
    for pv in "MAX", "MEAN", "RATE":
        wait_severity(monitor, f"LIMITED_{pv}", "NO_ALARM")
    until(lambda: monitor.get("LIMITED_RATE") >= 5 and SHORT <= monitor.get("LIMITED_MEAN") <= monitor.get("LIMITED_MAX"), 20,
          lambda: str([monitor.get(f"LIMITED_{pv}") for pv in ("RATE", "MEAN", "MAX")]))
    ioc.put("SPIN:BUSY.A", LONG)
    wait_severity(monitor, "LIMITED_MAX", "MAJOR")
    wait_severity(monitor, "LIMITED_MEAN", "MINOR")
    assert severity(monitor, "LIMITED_RATE") == "NO_ALARM"
    ioc.put("SPIN:BUSY.A", SHORT)
    wait_severity(monitor, "LIMITED_MAX", "NO_ALARM")  # the alarm ends, though the greatest value of the row stays
    assert monitor.list("LIMITED_MAXS")[0] >= LONG
    ioc.put("SPIN.SCAN", "Passive")
    wait_severity(monitor, "LIMITED_RATE", "MAJOR")
    for pv in "MAX", "MEAN", "RATE", "SUM_RATE":
        assert severity(monitor, f"FREE_{pv}") == "NO_ALARM"
    assert monitor.get("LIMITED_MEAN.EGU") == "us" and monitor.get("LIMITED_SUM_RATE.EGU") == "us/s"
    for query in "LIMITED", "FREE":
        stop(monitor, query)


def test_sum_a_second(ioc, monitor):
    """Of a routine that uses one CPU for 60 ms of each 100 ms."""
    ioc.put("SPIN:BUSY.A", LONG)
    start(monitor, "FREE")
    ioc.put("SPIN.SCAN", ".1 second")
    until(lambda: monitor.get("FREE_SUM_RATE") > 5 * LONG, 20, lambda: str(monitor.get("FREE_SUM_RATE")))
    ioc.put("SPIN.SCAN", "Passive")
    until(lambda: monitor.get("FREE_SUM_RATE") == 0, 20, lambda: str(monitor.get("FREE_SUM_RATE")))
    stop(monitor, "FREE")


def test_histogram_of_each_row(ioc, monitor):
    """Of ten calls each has another number; the even and the odd ones have rows of their own."""
    start(monitor, "EACH")
    ioc.put("KNOWN.PROC", 1)

    def found():
        names, numbers = monitor.list("EACH_KEY1S"), monitor.list("EACH_ROW_HISTS")
        if len(numbers) != 50 * BARS or not all(map(math.isnan, numbers[BARS * len(names):])):  # an image of 50 lines
            return {}
        return {name: numbers[i * BARS:(i + 1) * BARS] for i, name in enumerate(names)}

    until(lambda: sum(n for row in found().values() for n in row if not math.isnan(n)) == CALLS, 20, lambda: str(found()))
    edges = monitor.list("EACH_ROW_HIST_EDGES")
    for name, rest in ("even", 0), ("odd", 1):
        row = found()[name]
        assert {edge: n for edge, n in zip(edges, row) if n > 0} == {n: CALLS / 10 for n in range(rest, 10, 2)}
        assert all(map(math.isnan, row[12:])) and not any(map(math.isnan, row[:12]))  # below, ten steps, above
    stop(monitor, "EACH")


def test_keys_that_no_row_shows(ioc, monitor):
    """Ten keys and one row: what the other nine have is told."""
    start(monitor, "ONE_ROW")
    ioc.put("KNOWN.PROC", 1)
    rest = CALLS * 9 // 10
    until(lambda: monitor.get("ONE_ROW_REST_CNT") == rest, 20, lambda: str(monitor.get("ONE_ROW_REST_CNT")))
    assert len(monitor.list("ONE_ROW_CNTS")) == 1 and monitor.get("ONE_ROW_KEY_CNT") == 10
    said = "\n".join(monitor.command("ebpfMonQueryPrint ONE_ROW"))
    assert f"the first 1 keys; the other 9 have {rest} events" in said, said
    stop(monitor, "ONE_ROW")
    monitor.command("ebpfMonQueryStart ONE_ROW")
    until(lambda: monitor.get("ONE_ROW_REST_CNT") == 0, 20, lambda: str(monitor.get("ONE_ROW_REST_CNT")))
    stop(monitor, "ONE_ROW")


def test_percentiles(ioc, monitor):
    """Against the IOC's own clock: never below the value of this rank, and at most a quarter above it. The query measures some
    us more than the routine itself does."""
    start(monitor, "LIMITED")
    own = []
    for n in range(100):
        ioc.put("SPIN:BUSY.A", 200 * 1.05 ** n, wait=True)  # 0.2 to 25 ms
        ioc.put("SPIN.PROC", 1, wait=True)
        own.append(ioc.get("SPIN:BUSY.VALA"))
    until(lambda: monitor.list("LIMITED_CNTS") == [len(own)], 20, lambda: str(monitor.list("LIMITED_CNTS")))
    own.sort()
    for column, part in PARTS.items():
        found, true = monitor.list(f"LIMITED_{column}")[0], own[math.ceil(part * len(own)) - 1]
        assert true <= found <= 1.25 * (true + 500), (column, true, found)
    stop(monitor, "LIMITED")
    ioc.put("SPIN:BUSY.A", SHORT, wait=True)
