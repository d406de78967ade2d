# SPDX-License-Identifier: BSD-3-Clause
"""Times of asynchronous records, from begin to completion, with all waiting. The published time must lie between two
known times: it is not less than the routine's own clock and the delays in the records say, and not more than the
put-callback of a client takes."""
import time

import pytest
from tests.harness import paths
from tests.harness.wait import until

COLUMNS = ("CNTS", "MEANS", "P99S", "MAXS", "TIMEOUT_CNTS", "BUSY_TIMES")
EARLY = 5.1  # ms; timers of EPICS may end half a tick early (epicsThreadSleepQuantum)
ROUNDS = 10


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=5000").start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor(watch=[ioc.prefix + n for n in ("DEVICE", "STEPS")]).start()
    m.wait_ioc(ioc)
    return m


def asyncs(monitor):
    rows = zip(monitor.list("ASYNC_TOP_NAMES"), *(monitor.list(f"ASYNC_TOP_{c}") for c in COLUMNS))
    return {r[0]: dict(zip(COLUMNS, r[1:])) for r in rows}


def row_of(monitor, name, count):
    return until(lambda: (lambda r: r if r and r["CNTS"] == count else None)(asyncs(monitor).get(name)), 10,
                 lambda: f"{count} of {name}: {asyncs(monitor)}")


def took(ioc, record):
    """ms that a client waits for the record's completion."""
    begin = time.monotonic()
    ioc.put(f"{record}.PROC", 1)
    return (time.monotonic() - begin) * 1e3


def own_clock(ioc, record):
    return ioc.get(f"{record}.VALA") / 1e3


def delays(total):
    return lambda ioc, record: total


@pytest.mark.parametrize("record, parts, least", [("DEVICE", 1, own_clock), ("STEPS", 2, delays(150)), ("DELAY", 1, delays(80))],
                         ids=["device", "seq", "calcout"])
def test_known_time(ioc, monitor, record, parts, least):
    """The first processing is not timed, because it may have begun before the probes were attached."""
    name = ioc.prefix + record
    took(ioc, record)
    lower = upper = 0
    for _ in range(ROUNDS):
        upper += took(ioc, record)
        lower += least(ioc, record) - (parts * EARLY if least is not own_clock else 0)
    row = row_of(monitor, name, ROUNDS)
    total = row["MEANS"] * ROUNDS
    assert lower <= total <= upper, f"{lower} ms <= {total} ms <= {upper} ms: {row}"
    assert row["MEANS"] <= row["MAXS"] <= upper and row["P99S"] <= row["MAXS"]
    assert row["TIMEOUT_CNTS"] == 0 and row["BUSY_TIMES"] == 0
    monitor.put("CHAIN_HIST_ROOT.VAL$", name)
    edges = monitor.list("CHAIN_HIST_EDGES")

    def in_range():
        return sum(n for n, low, high in zip(monitor.list("ASYNC_HIST"), edges, edges[1:])
                   if high / 1e3 > row["MEANS"] / 2 and low / 1e3 <= row["MAXS"])

    until(lambda: in_range() == ROUNDS == sum(monitor.list("ASYNC_HIST")), 10, lambda: monitor.list("ASYNC_HIST"))


def test_chain_time_is_another(ioc, monitor):
    """CHAIN_TOP times each half of the processing, without the waiting between them."""
    chains = dict(zip(monitor.list("CHAIN_TOP_NAMES"), monitor.list("CHAIN_TOP_MEANS")))
    assert chains[ioc.prefix + "DEVICE"] < 10000 < asyncs(monitor)[ioc.prefix + "DEVICE"]["MEANS"] * 1000


def test_scalars_of_one_record(ioc, monitor):
    name = ioc.prefix + "STEPS"
    row = until(lambda: asyncs(monitor).get(name), 10, "the row")
    monitor.wait(f"{name}:ASYNC_CNT", lambda n: n == row["CNTS"])
    for scalar, column in (("MEAN", "MEANS"), ("P99", "P99S"), ("MAX", "MAXS")):
        assert monitor.get(f"{name}:ASYNC_{scalar}") == pytest.approx(row[column], rel=0.001)
    assert monitor.get("ASYNC_LATENCY_MAX") >= 0


def test_time_outs_are_told_from_slow_answers(ioc, monitor):
    name = ioc.prefix + "DEVICE"
    before = asyncs(monitor)[name]
    ioc.put("DEVICE.B", 1)
    for _ in range(3):
        took(ioc, "DEVICE")
    ioc.put("DEVICE.B", 0)
    took(ioc, "DEVICE")
    row = row_of(monitor, name, before["CNTS"] + 4)
    assert row["TIMEOUT_CNTS"] == before["TIMEOUT_CNTS"] + 3
    monitor.wait("ASYNC_LATENCY_MAX", lambda ms: ms >= row["MEANS"] / 2)


def test_one_that_is_under_way(ioc, monitor):
    name = ioc.prefix + "DELAY"
    count = asyncs(monitor)[name]["CNTS"]
    ioc.put("DELAY.ODLY", 8)
    ioc.put("DELAY.PROC", 1, wait=False)
    row = until(lambda: (lambda r: r if r["BUSY_TIMES"] > 2000 else None)(asyncs(monitor)[name]), 20,
                lambda: asyncs(monitor))
    assert row["CNTS"] == count and row["BUSY_TIMES"] < 9000
    assert monitor.get("ASYNC_BUSY_MAX") >= 2000
    row = row_of(monitor, name, count + 1)
    assert row["MAXS"] == pytest.approx(8000, abs=1000)
    monitor.wait("ASYNC_BUSY_MAX", lambda ms: ms == 0)
    ioc.put("DELAY.ODLY", 0.08)


def test_what_ended_unseen_is_not_timed(ioc, monitor):
    """A processing that begins at level chains and ends at level puts is not timed. The next one, which begins at level
    puts, is not timed either. Later ones are."""
    name = ioc.prefix + "DELAY"
    count, longest = (asyncs(monitor)[name][c] for c in ("CNTS", "MAXS"))
    ioc.put("DELAY.ODLY", 3)
    ioc.put("DELAY.PROC", 1, wait=False)
    monitor.wait("ASYNC_BUSY_MAX", lambda ms: ms > 0)
    monitor.set_filter(LEVEL="puts")
    until(lambda: ioc.get("DELAY.PACT") == 0, 20, "its end")
    ioc.put("DELAY.PROC", 1, wait=False)
    monitor.set_filter(LEVEL="chains")
    until(lambda: ioc.get("DELAY.PACT") == 0, 20, "the end of the second")
    ioc.put("DELAY.ODLY", 0.08)
    monitor.wait("ASYNC_BUSY_MAX", lambda ms: ms == 0)  # and the record is not shown as busy
    took(ioc, "DELAY")
    took(ioc, "DELAY")
    row = until(lambda: (lambda r: r if r["CNTS"] > count else None)(asyncs(monitor)[name]), 20, lambda: asyncs(monitor))
    assert row["MAXS"] == longest and row["CNTS"] <= count + 2
