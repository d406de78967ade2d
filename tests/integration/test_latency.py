# SPDX-License-Identifier: BSD-3-Clause
"""Published latencies are right: they are compared with routines that measure their own time."""
import pytest
from tests.harness import db, paths
from tests.harness.soak import size, soak
from tests.harness.wait import settled, until

US = 5000
ROUNDS = size(30, 60)


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros=f"US={US}",
                      realtime=True).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor(watch=[ioc.prefix + "SPIN", ioc.prefix + "SLEEP", ioc.prefix + "WAIT"]).start()
    m.wait_ioc(ioc)
    return m


def chains(monitor):
    columns = ("CNTS", "MEANS", "P99S", "MAXS", "LOCK_WAITS")
    rows = zip(monitor.list("CHAIN_TOP_NAMES"), *(monitor.list(f"CHAIN_TOP_{c}") for c in columns))
    return {r[0]: dict(zip(columns, r[1:])) for r in rows}


def by_scan(ioc, root):
    """A scan thread of the IOC starts the chain."""
    ioc.put(f"{root}.SCAN", ".1 second")
    start = ioc.get(root)
    until(lambda: ioc.get(root) >= start + ROUNDS, 30, "enough scans")
    ioc.put(f"{root}.SCAN", "Passive")


def by_put(ioc, root):
    """A client's put starts the chain: the monitor also sees the put, during the chain."""
    for _ in range(ROUNDS):
        ioc.put(f"{root}.PROC", 1)


@soak
@pytest.mark.parametrize("drive", [by_scan, by_put])
@pytest.mark.parametrize("root", ["SPIN", "SLEEP"])
def test_known_routine(ioc, monitor, root, drive):
    """The mean is within 10 % of the routine's own time, because the chain may wait for a CPU before and after the
    routine. The sum of the histogram is the count."""
    name = ioc.prefix + root

    def published():
        return chains(monitor).get(name, {"CNTS": 0, "MEANS": 0})

    # chains are published once a second
    until(lambda: published()["CNTS"] == ioc.get(root), 10, lambda: f"{ioc.get(root)} chains of {name}: {published()}")
    before = settled(published, 10)
    sum_before, ticks = ioc.get(f"{root}:SUM"), ioc.get(root)
    drive(ioc, root)
    count = before["CNTS"] + settled(lambda: ioc.get(root), 5) - ticks
    expected = (ioc.get(f"{root}:SUM") - sum_before) / (count - before["CNTS"])
    assert expected >= US
    until(lambda: chains(monitor).get(name, {}).get("CNTS") == count, 15,
          lambda: f"{count} chains of {name}: {chains(monitor).get(name)}")
    row = chains(monitor)[name]
    mean = (row["MEANS"] * count - before["MEANS"] * before["CNTS"]) / (count - before["CNTS"])
    assert mean == pytest.approx(expected, rel=0.1)
    assert row["MAXS"] >= expected
    assert expected * 0.8 < row["P99S"] <= row["MAXS"] * 1.2
    assert monitor.get(f"{name}:LAT_MEAN") == pytest.approx(row["MEANS"], rel=0.001)
    assert monitor.get(f"{name}:LAT_MAX") == pytest.approx(row["MAXS"], rel=0.001)

    monitor.put("CHAIN_HIST_ROOT.VAL$", name)

    def histogram():
        hist, edges = monitor.list("CHAIN_HIST"), monitor.list("CHAIN_HIST_EDGES")
        return (hist, edges) if sum(hist) == count else None

    hist, edges = until(histogram, 10, lambda: f"a histogram of {count}: {monitor.list('CHAIN_HIST')}")
    n = min(len(hist), len(edges))
    in_range = sum(hist[i] for i in range(n - 1) if edges[i + 1] > US and edges[i] <= row["MAXS"])
    assert in_range == count, list(zip(edges, hist))
    assert list(edges[:n]) == sorted(edges[:n])


def test_slow_chain_in_log(ioc, monitor):
    """CHAIN_LOG has all records of a chain that is slower than the limit, in their order."""
    monitor.set_filter(SLOW=1000)
    ioc.put("SPIN.PROC", 1)
    order = [ioc.prefix + n for n in ("SPIN", "SPIN:BUSY", "SPIN:TOOK", "SPIN:END")]
    text = ""

    def shown():
        nonlocal text
        text = monitor.lines("CHAIN_LOG")
        return all(n in text for n in order)

    until(shown, 15, lambda: f"the chain in CHAIN_LOG:\n{text}\n{monitor.get('CHAIN_LOG_CNT')} chains so far, "
          f"{monitor.filter_status()}, {chains(monitor).get(order[0])}, lost {monitor.losses()}, {monitor.iocs()}")
    end = text.index(order[3])
    places = [text.rindex(n, 0, end) for n in order[:3]]
    names = [line for line in text[:end].splitlines() if any(n in line for n in order[1:3])]
    assert places[1] < places[2] < end, text
    assert order[1] in names[-2] and order[2] in names[-1], text


def test_lock_wait(ioc, monitor):
    """HOLD holds its lock set for 30 ms in the shell's thread. WAIT is in the same lock set and waits for it."""
    name = ioc.prefix + "WAIT"
    ioc.put("HOLD:BUSY.SNAM", "sleepFor")  # a busy loop would take longer on a busy host
    count = 0

    def waited():
        nonlocal count
        ioc.process.send(f'dbpf "{ioc.prefix}HOLD.PROC" 1')
        ioc.put("WAIT.PROC", 1)
        count += 1
        ioc.get("HOLD")  # returns when the lock set is free
        row = chains(monitor).get(name)
        return row if count >= 20 and row and row["CNTS"] >= 20 and row["LOCK_WAITS"] > 1000 else None

    row = until(waited, 30, lambda: f"a wait for the lock: {chains(monitor).get(name)}")
    assert row["LOCK_WAITS"] < 40000
    assert row["MEANS"] < 3000, f"the wait is part of the latency: {row}"


def test_wait_for_several_locks(new_ioc, watch_only):
    """Who holds several lock sets at once, as an atomic put to a group of QSRV does, makes others wait, too."""
    held = new_ioc(db.READY + db.counter("WAIT") +
                   'record(aSub, "$(P)MANY") { field(SNAM, "holdMany") field(FTA, "STRING") field(INPA, ["$(P)WAIT"]) }\n',
                   kind="latencyIoc").start()
    monitor = watch_only(held)
    name = held.prefix + "WAIT"

    def waited():
        held.process.send(f'dbpf "{held.prefix}MANY.PROC" 1')
        held.put("WAIT.PROC", 1)
        held.get("MANY")  # returns when the lock sets are free
        row = chains(monitor).get(name)
        return row if row and row["CNTS"] >= 20 and row["LOCK_WAITS"] > 1000 else None

    row = until(waited, 30, lambda: f"a wait for the lock: {chains(monitor).get(name)}")
    assert row["LOCK_WAITS"] < 40000
    assert row["MEANS"] < 3000, f"the wait is part of the latency: {row}"


def test_locks_that_the_chain_has(new_ioc, watch_only):
    """A routine takes and releases the lock set in which it is itself. Then the chain has not waited, and goes on."""
    held = new_ioc(db.READY + db.counter("ROOT", FLNK="$(P)MANY") + db.counter("END") +
                   'record(aSub, "$(P)MANY") { field(SNAM, "holdMany") field(FTA, "STRING") field(INPA, ["$(P)END"]) '
                   'field(FLNK, "$(P)END") }\n', kind="latencyIoc").start()
    monitor = watch_only(held)

    def processed():
        held.put("ROOT.PROC", 1)
        row = chains(monitor).get(held.prefix + "ROOT")
        return row if row and row["CNTS"] >= 5 else None

    row = until(processed, 30, lambda: f"chains: {chains(monitor)}")
    assert row["MEANS"] >= 30000 and row["LOCK_WAITS"] == 0, row


def test_asynchronous_chain(ioc, monitor):
    """The chain ends when the device has got the request, not when the device has answered."""
    for _ in range(20):
        ioc.put("ASYN.PROC", 1)
    assert ioc.get("ASYN:END") >= 20
    name = ioc.prefix + "ASYN"
    row = until(lambda: chains(monitor).get(name), 10, lambda: f"{name} in {chains(monitor)}")
    assert row["MEANS"] < 5000


def test_slowest_first(ioc, monitor):
    means = [r["MEANS"] for r in chains(monitor).values()]
    assert len(means) >= 3
    assert max(means) in means[:2] or means == sorted(means, reverse=True), means
