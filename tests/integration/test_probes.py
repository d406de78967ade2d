# SPDX-License-Identifier: BSD-3-Clause
"""Chains cost few traps: at the calls of dbScanLock and dbScanUnlock, and once for each chain of a scan list."""
import random
import time

from tests.harness import ca, db, rawca
from tests.harness.wait import settled, until

from tests.harness.passes import cold, row

LISTS = [f"{s} second" for s in (".1", ".2", ".5")]


def test_one_trap_for_a_chain_of_a_scan_list(new_ioc, new_monitor):
    """100 chains of 3 records at 10 Hz cost 1000 traps per second if all are timed, two more for each pass, and hardly any
    others."""
    text = db.READY + "".join(db.chain(f"C{i}_", 3, SCAN=".1 second") for i in range(100))
    ioc = new_ioc(text).start()
    monitor = new_monitor(iocs=ioc.name).start()
    monitor.set_filter(TIMED=100)
    monitor.wait_ioc(ioc)
    until(lambda: row(monitor, ioc)[0] == "turns" and 950 < row(monitor, ioc)[1] < 1150, 60,
          lambda: f"one trap for a chain: {row(monitor, ioc)}")


def test_reads_make_no_trap(new_ioc, new_monitor):
    ioc = new_ioc(db.READY + db.counter("R")).start()
    monitor = new_monitor(iocs=ioc.name).start()
    monitor.wait_ioc(ioc)
    pv, traps = ca.pv(ioc.prefix + "R"), []
    until(lambda: row(monitor, ioc)[1] == 0, 30, "nothing is trapped in an idle IOC")
    for _ in range(5):
        for _ in range(500):
            pv.get(use_monitor=False)
        traps.append(row(monitor, ioc)[1])
    assert max(traps) < 20, traps
    ioc.put("R.PROC", 1)
    until(lambda: monitor.records(ioc.name)[ioc.prefix + "R"].count == 1, 10, "what processes is counted")


def test_traps_after_a_pause(new_ioc, new_monitor):
    """The first trap after a pause finds the CPU cold, and the next ones half cold. COST counts that, so a put costs as much as
    two cold traps; but not if the next put follows at once."""
    ioc = new_ioc(db.READY + db.record("ao", "AO")).start()
    monitor = new_monitor(iocs=ioc.name).start().at_level("puts", ioc)
    client = rawca.RawCa(ioc.port)

    def put_slowly():
        for i in range(8):
            client.put(ioc.prefix + "AO", rawca.DOUBLE, [i])
            time.sleep(0.25)  # the pace of the puts
        return 4 * 1.4 < cold(monitor, ioc) < 4 * 2.2 and 4 * 3 <= row(monitor, ioc)[1] <= 4 * 6

    def put_fast():
        for i in range(2000):
            client.put(ioc.prefix + "AO", rawca.DOUBLE, [i])
        return row(monitor, ioc)[1] > 500 and cold(monitor, ioc) < 0.1 * row(monitor, ioc)[1]

    until(put_slowly, 30, lambda: f"four puts a second: {row(monitor, ioc)} traps, {cold(monitor, ioc)} of them cold")
    until(put_fast, 30, lambda: f"many puts: {row(monitor, ioc)} traps, {cold(monitor, ioc)} of them cold")
    client.close()


def test_scan_lists_that_change_while_they_run(new_ioc, new_monitor):
    """Records go from one list to another while the lists run, so the next record is not the expected one. Each count
    is exact, and no thread seems to hold a lock set for ever."""
    names = [f"L{i}" for i in range(60)]
    ioc = new_ioc(db.READY + "".join(db.counter(n, SCAN=LISTS[i % 3]) for i, n in enumerate(names))).start()
    monitor = new_monitor(iocs=ioc.name, before=["var ebpfMonHangLimit 2"]).start()
    monitor.wait_ioc(ioc)
    monitor.set_filter(LEVEL="trace")  # passes are not watched
    until(lambda: row(monitor, ioc)[0] == "lists", 60, lambda: f"lists: {row(monitor, ioc)}")
    choice = random.Random(1)

    def truth():
        return {n: int(ca.get(ioc.prefix + n)) for n in names}

    def counts():
        records = monitor.records(ioc.name)
        return {n: records[ioc.prefix + n].count for n in names}

    def stop():
        for n in names:
            ioc.put(f"{n}.SCAN", "Passive")
        return settled(lambda: (truth(), counts()), 30, quiet=1.5)

    before = stop()
    for n in names:
        ioc.put(f"{n}.SCAN", choice.choice(LISTS))
    for _ in range(600):
        ioc.put(f"{choice.choice(names)}.SCAN", choice.choice([*LISTS, "Passive"]), wait=False)
    for n in names:
        ioc.put(f"{n}.SCAN", ".1 second")
    until(lambda: truth()[names[-1]] > before[0][names[-1]] + 30, 30, "scans")
    after = stop()
    for n in names:
        assert after[1][n] - before[1][n] == after[0][n] - before[0][n], n
    assert not [line for line in monitor.process.lines if "hangs" in line]
