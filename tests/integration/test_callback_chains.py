# SPDX-License-Identifier: BSD-3-Clause
"""Chains of threads for callbacks: the list of an I/O interrupt, and the completion of an asynchronous record. Each has its time."""
import threading

from tests.harness import ca, db
from tests.harness.passes import row
from tests.harness.soak import size, soak
from tests.harness.wait import settled, until


def database():
    text = db.record("ai", "A", DTYP="roads", SCAN="I/O Intr", FLNK="$(P)A1") + db.counter("A1")
    text += db.record("ai", "B", DTYP="roads", SCAN="I/O Intr", FLNK="$(P)B1") + db.counter("B1")
    text += "".join(db.out_counter(f"D{i}", ODLY="0.001", FLNK=f"$(P)E{i}") + db.counter(f"E{i}") for i in range(4))
    return db.READY + text


def chain_counts(monitor, ioc):
    return {n.removeprefix(ioc.prefix): c for n, c in zip(monitor.list("CHAIN_TOP_NAMES"), monitor.list("CHAIN_TOP_CNTS"))}


@soak
def test_each_has_its_time(new_ioc, new_monitor):
    """Interrupts as fast as the driver can, and puts to asynchronous records. The rings of the callbacks are empty and fill again all
    the time, so some callbacks come while their thread looks."""
    ioc = new_ioc(database(), kind="roadsIoc").start()
    monitor = new_monitor(iocs=ioc.name).start()
    monitor.set_filter(BUDGET=0)
    monitor.wait_ioc(ioc, level="chains")
    until(lambda: row(monitor, ioc)[0] == "lists", 30, lambda: f"chains are watched: {row(monitor, ioc)}")
    pvs = ca.pvs(f"{ioc.prefix}D{i}.PROC" for i in range(4))
    counters = ["A1", "B1", *(f"E{i}" for i in range(4))]

    def truth():
        return {n: ioc.get(n) for n in counters}

    def both():
        return settled(lambda: (truth(), chain_counts(monitor, ioc)), 30, quiet=3)

    for pv in pvs:
        pv.put(1, wait=True, timeout=20)
    before = both()
    rounds = size(300, 3000)

    def put(pv):
        for _ in range(rounds):
            pv.put(1, wait=False)

    threads = [threading.Thread(target=put, args=(pv,)) for pv in pvs]
    for thread in threads:
        thread.start()
    for i in range(rounds):
        ioc.command(f"roadsInterrupt {i}")
    for thread in threads:
        thread.join()
    for pv in pvs:
        pv.put(1, wait=True, timeout=20)
    after = both()
    made = {n: after[0][n] - before[0][n] for n in counters}
    got = {n: after[1].get(n, 0) - before[1].get(n, 0) for n in ("A", "B", "D0", "D1", "D2", "D3")}
    assert made["A1"] >= rounds / 2 and min(made.values()) > 10, made
    assert got == {"A": made["A1"], "B": made["B1"], **{f"D{i}": made[f"E{i}"] for i in range(4)}}
