# SPDX-License-Identifier: BSD-3-Clause
"""At level chains the chains of scan lists are timed in turns, and every processing is still counted. Facts about
chains that are not timed are found in other ways: the writer of a put, the place where a thread hangs, the wait for a
lock, the pass with a slow chain."""
import concurrent.futures

import pytest
from tests.harness import ca, db, rawca
from tests.harness.passes import FAST
from tests.harness.putlog import PutLog
from tests.harness.soak import size, soak
from tests.harness.wait import settled, stays_false, until

from .test_passes import Trial, busy_database, fast, roots_of, row, Puts  # noqa: F401 (fast is a fixture)

CHAINS = "".join(db.chain(f"C{i}_", 3, SCAN=".1 second") for i in range(60))
HANG = 2  # s


def slow(name, us, **fields):
    return db.record("aSub", name, SNAM="sleepFor", FTA="DOUBLE", INPA=us, FTVA="DOUBLE", **fields)


class Turns(Trial):
    """An IOC. Its chains are timed in turns."""

    def __init__(self, new_ioc, new_monitor, text, percent=0, watch=(), before=(), **kind):
        self.ioc = new_ioc(db.READY + text, **kind).start()
        self.monitor = new_monitor(iocs=self.ioc.name, watch=[self.ioc.prefix + w for w in watch], before=before).start()
        self.monitor.wait_ioc(self.ioc)
        self.names = [line.split("$(P)")[1].split('"')[0] for line in text.splitlines() if line.startswith("record(calc")]
        self.wait_way("turns")
        if percent != 5:
            self.monitor.set_filter(TIMED=percent)

    def wait_untimed(self):
        """Waits until no turn is running. With FILTER_TIMED 0 no turn begins."""
        rows = len(roots_of(CHAINS))
        until(lambda: row(self.monitor, self.ioc)[1] < 10 * rows / 4, 60, lambda: f"passes: {row(self.monitor, self.ioc)}")

    def chain_counts(self):
        return dict(zip(self.monitor.list("CHAIN_TOP_NAMES"), self.monitor.list("CHAIN_TOP_CNTS")))


@soak
def test_in_turns(new_ioc, new_monitor):
    """Chains are timed in about FILTER_TIMED percent of the time, CHAIN_TIMED says so, and every count is exact."""
    t = Turns(new_ioc, new_monitor, CHAINS, percent=20)
    roots = roots_of(CHAINS)
    before = t.stop()
    timed = t.chain_counts()
    t.scan()

    def count_timed():
        counts = t.chain_counts()
        return sum(counts.get(t.ioc.prefix + n, 0) - timed.get(t.ioc.prefix + n, 0) for n in roots)

    def is_over():
        """Enough scans, with a turn among them: the pause between two turns is random, 16 s at most."""
        scans = t.ioc.get("C0_2") - before[0]["C0_2"]
        return scans > size(150, 450) and count_timed() > 0.05 * scans * len(roots)

    until(is_over, 120, "scans")
    until(lambda: 12 <= t.monitor.get("CHAIN_TIMED") <= 35, 60, lambda: f"CHAIN_TIMED: {t.monitor.get('CHAIN_TIMED')}")
    after = t.stop()
    assert not t.compare(before, after)
    got = settled(count_timed, 30, quiet=3)
    all_chains = sum(after[0][n] - before[0][n] for n in roots)
    assert 0.04 < got / all_chains < 0.5, (got, all_chains)
    assert t.monitor.list("IOC_TIMED")[0] == t.monitor.get("CHAIN_TIMED")


def test_all_on_demand(new_ioc, new_monitor):
    """FILTER_TIMED 100, a level by command, and a filter for records: with each of them all chains are timed."""
    t = Turns(new_ioc, new_monitor, CHAINS, percent=0)
    t.wait_untimed()

    def wait_timed(isAll):
        until(lambda: (t.monitor.get("CHAIN_TIMED") == 100) == isAll, 30, lambda: f"timed: {t.monitor.get('CHAIN_TIMED')}")

    t.monitor.set_filter(TIMED=100)
    wait_timed(True)
    t.monitor.set_filter(TIMED=5)
    wait_timed(False)
    t.monitor.command(f"ebpfMonLevel {t.ioc.name} chains")
    wait_timed(True)
    t.monitor.command(f"ebpfMonLevel {t.ioc.name} filter")
    wait_timed(False)
    t.monitor.set_filter(RECORD=t.ioc.prefix + "C1_*")
    wait_timed(True)
    t.monitor.set_filter(RECORD="*")
    wait_timed(False)
    t.monitor.put("FILTER_TIMED", 101)
    until(lambda: "measured" in t.monitor.filter_status(), 20, t.monitor.filter_status)
    t.monitor.set_filter(TIMED=10)


def test_all_chains_are_timed(new_ioc, new_monitor, fast):  # noqa: F811
    """With FILTER_TIMED 100 each chain of a scan list has its time, short or long, and a visit to a disabled record has none.
    Meanwhile clients process records of the lists, too."""
    text = "".join(db.chain(f"C{i}_", 3, SCAN=FAST[i % 3]) for i in range(40)) + db.chain("L_", 60, SCAN=FAST[0])
    text += db.counter("D", SCAN=FAST[0], DISV="0") + db.counter("PUT", SCAN=FAST[1])
    t = Turns(new_ioc, new_monitor, text, percent=100, program=fast)
    t.monitor.set_filter(BUDGET=0)  # on a busy host less would be timed
    until(lambda: t.monitor.get("CHAIN_TIMED") == 100, 30, "all timed")
    roots, puts = roots_of(text), Puts(t.ioc, ["PUT"])
    before, timed = t.stop(), settled(t.chain_counts, 30, quiet=3)
    t.scan()

    def is_over():
        puts.some()
        return t.ioc.get("C2_2") > before[0]["C2_2"] + size(60, 400)

    until(is_over, 120, "scans")
    after, counts = t.stop(), settled(t.chain_counts, 30, quiet=3)
    assert not t.compare(before, after)
    got = {n: counts.get(t.ioc.prefix + n, 0) - timed.get(t.ioc.prefix + n, 0) for n in roots}
    assert got == {n: after[0][n] - before[0][n] for n in roots}
    assert row(t.monitor, t.ioc)[0] == "turns"


def test_puts_while_disp_changes(new_ioc, new_monitor):
    """The monitor looks at DISP at the entry of dbPutField(), a moment before the IOC does. If DISP changes in between, the
    monitor notes a lock that the IOC does not take, or takes one that is not noted. Nothing is counted wrongly, and no thread
    seems to hang."""
    t = Turns(new_ioc, new_monitor, CHAINS + db.counter("R"), percent=100, before=[f"var ebpfMonHangLimit {HANG}"])
    before = t.stop()
    t.scan()
    rounds, each = size(200, 2000), 100

    def flood(field, values):
        client = rawca.RawCa(t.ioc.port)
        sid = client.sid(f"{t.ioc.prefix}R.{field}")
        batch = b"".join(rawca.write(sid, rawca.LONG, [v]) for v in values * (each // len(values)))
        for _ in range(rounds):
            client.send(batch)
            client.send(rawca.message(rawca.ECHO))
            client.until(rawca.ECHO)
        return client  # it stays connected, and its thread in the IOC waits

    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(flood, "PROC", [1]), pool.submit(flood, "DISP", [1, 0])]
        clients = [j.result(timeout=300) for j in jobs]
    after = t.stop()
    processed = after[0]["R"] - before[0]["R"]
    assert 0 < processed < rounds * each, "DISP refused none or all of the puts"
    assert not t.compare(before, after)
    assert stays_false(lambda: t.monitor.get("HANG_CNT") != 0, 2 * HANG), t.monitor.lines("HANG_STACKS")
    for client in clients:
        client.close()


@soak
def test_turns_in_the_middle_of_passes(new_ioc, new_monitor):
    """A turn that begins in the middle of a pass does not time the chain that is running. So no published time is too
    long."""
    text = "".join(slow(f"S{i}", 200000, SCAN="1 second", PHAS=2 * i) + db.counter(f"F{i}", SCAN="1 second", PHAS=2 * i + 1) for i in range(4))
    text += "".join(db.counter(f"R{i}", SCAN="1 second", PHAS=9) for i in range(10))
    t = Turns(new_ioc, new_monitor, text, kind="latencyIoc")
    rounds = size(5, 10)
    for _ in range(rounds):
        t.monitor.set_filter(TIMED=50, SLOW=0)  # the first turn begins at once
        start = t.ioc.get("F0")
        until(lambda: t.ioc.get("F0") > start + 1, 30, "two passes")
        t.monitor.set_filter(TIMED=0)

    def rows():
        return {r[0]: r[1:] for r in zip(*(t.monitor.list(f"CHAIN_TOP_{c}") for c in ("NAMES", "CNTS", "MEANS", "MAXS")))}

    settled(rows, 30, quiet=3)
    for i in range(4):
        count, mean, longest = rows()[f"{t.ioc.prefix}S{i}"]
        # a chain timed from the begin of its pass would take 200 ms more for each earlier chain
        assert count >= rounds / 2 and mean >= 200000 and longest < 350000, (i, rows())


def test_put_in_an_untimed_chain(new_ioc, new_monitor):
    """A put by an output link of a chain that is not timed: its line names the root and the scan thread."""
    text = CHAINS + db.counter("R", SCAN=".5 second", FLNK="$(P)R1") + db.counter("R1", FLNK="$(P)O")
    text += db.out_counter("O", OUT="$(P)TARGET PP") + db.record("ao", "TARGET")
    t = Turns(new_ioc, new_monitor, text, percent=0)
    t.wait_untimed()
    want = f"chain of {t.ioc.prefix}R"

    seen = set()

    def several():
        seen.add(t.monitor.text("AUTO_PUT_LAST"))
        return len(seen) > 6

    until(several, 60, lambda: f"puts: {seen}")
    right = [line for line in seen if want in line and ".5 second" in line and "TARGET" in line]
    assert len(right) >= len(seen) - 1, seen  # the first one may be older
    assert row(t.monitor, t.ioc)[0] == "turns"


def test_who_began_a_delayed_put(new_ioc, new_monitor, tmp_path):
    """Puts of asynchronous records, after one delay or two: they tell which chain began the record, also if it was not timed."""
    text = CHAINS + db.record("seq", "ROOT", SCAN=".5 second", DLY1="0.05", DLY2="0.05", LNK1="$(P)A PP", LNK2="$(P)B PP", DO1=1, DO2=1)
    text += db.counter("R", SCAN="1 second", FLNK="$(P)NEXT")
    text += db.record("seq", "NEXT", DLY1="0.05", DLY2="0.05", LNK1="$(P)C PP", LNK2="$(P)D PP", DO1=1, DO2=1)
    text += db.record("calcout", "LATE", SCAN=".2 second", CALC="VAL+1", ODLY="0.05", OUT="$(P)E PP")
    text += "".join(db.record("ao", n) for n in "ABCDE")
    log = PutLog(tmp_path / "puts.json")
    t = Turns(new_ioc, new_monitor, text, percent=0, before=[log.command()])
    t.wait_untimed()

    def find_causes():
        """The causes of the puts to each of them, from now on."""
        found, mark = {}, len(log.of(t.ioc.prefix))

        def have_all():
            found.clear()
            for put in log.of(t.ioc.prefix)[mark + 10:]:  # the first ones may have begun before
                found.setdefault(put["pv"].removeprefix(t.ioc.prefix), []).append(put["cause"])
            return all(len(found.get(n, [])) > 4 for n in "ABCDE")

        until(have_all, 60, lambda: f"puts: {found}")
        return {pv: set(causes) for pv, causes in found.items()}

    untimed = find_causes()
    assert row(t.monitor, t.ioc)[0] == "turns" and t.monitor.get("CHAIN_TIMED") < 100
    t.monitor.set_filter(TIMED=100)
    until(lambda: t.monitor.get("CHAIN_TIMED") == 100, 30, "all timed")
    timed = find_causes()
    assert untimed == timed
    assert all("scan" in cause for causes in untimed.values() for cause in causes), untimed


def test_hang_in_an_untimed_chain(new_ioc, new_monitor):
    """A scan thread hangs in a chain that is not timed: the record is found on its stack."""
    text = CHAINS + slow("H", 0, SCAN="1 second", PHAS=1) + "".join(db.counter(f"P{i}", SCAN="1 second") for i in range(5))
    t = Turns(new_ioc, new_monitor, text, percent=0, kind="latencyIoc", before=[f"var ebpfMonHangLimit {HANG}"])
    t.wait_untimed()
    assert t.monitor.get("HANG_CNT") == 0
    t.ioc.put("H.A", 8e6, wait=False)
    got = t.monitor.wait_text("IOC_EVENT_LAST", lambda x: "hangs since" in x, 30)
    assert f"in record {t.ioc.prefix}H hangs" in got and "scan-1" in got, got
    t.monitor.wait("HANG_CNT", lambda n: n == 0, 30)


def test_lock_wait_for_an_untimed_chain(new_ioc, new_monitor):
    """A client waits for a lock that a chain holds which is not timed. The wait does not make the published time of the
    client's chain longer."""
    text = CHAINS + slow("HOLD", 60000, SCAN=".1 second", INPB="$(P)SHARED NPP") + db.record("calc", "SHARED") + \
        db.record("calc", "WAIT", INPA="$(P)SHARED NPP", CALC="1")
    t = Turns(new_ioc, new_monitor, text, percent=0, kind="latencyIoc")
    t.monitor.set_filter(SLOW=1e6)
    t.wait_untimed()

    def times():
        """Of WAIT, in us: the time of its longest chain, and the sum of all waits for the lock."""
        columns = ("NAMES", "CNTS", "MAXS", "LOCK_WAITS")
        rows = {r[0]: r[1:] for r in zip(*(t.monitor.list(f"CHAIN_TOP_{c}") for c in columns))}
        count, worst, wait = rows.get(t.ioc.prefix + "WAIT", (0, 0, 0))
        return worst, count * wait

    def waited():
        for _ in range(20):  # some come while the lock is held
            t.ioc.put("WAIT.PROC", 1)
        return times()[1] > 300000

    until(waited, 60, lambda: f"chains of WAIT: {times()}")
    assert times()[0] < 35000, times()  # about 50 us, and delays by a busy host


def test_slow_chain_that_is_not_timed(new_ioc, new_monitor):
    """A slow chain that is not timed is counted. Then all chains are timed for a while, so the next slow chain is
    recorded completely."""
    text = CHAINS + slow("S", 0, SCAN="1 second") + "".join(db.counter(f"P{i}", SCAN="1 second") for i in range(5))
    t = Turns(new_ioc, new_monitor, text, percent=0, kind="latencyIoc")
    t.monitor.set_filter(SLOW=200000)  # longer than a busy host stops a pass
    t.wait_untimed()
    before = t.monitor.get("CHAIN_UNTIMED_CNT")
    t.ioc.put("S.A", 600000, wait=False)
    t.monitor.wait("CHAIN_UNTIMED_CNT", lambda n: n > before, 30)
    until(lambda: t.ioc.prefix + "S" in t.monitor.lines("CHAIN_LOG"), 30, lambda: f"the next one: {t.monitor.lines('CHAIN_LOG')}")
    assert t.monitor.get("CHAIN_TIMED") > 0
    assert row(t.monitor, t.ioc)[0] == "turns"


@soak
def test_counts_while_turns_come_and_go(new_ioc, new_monitor, fast):  # noqa: F811
    """Other threads process the records, and turns begin and end in the middle of passes: every count is exact, none is
    marked."""
    text = busy_database()
    t = Turns(new_ioc, new_monitor, text, percent=50, program=fast)
    before = t.stop()
    t.scan()
    puts = Puts(t.ioc, t.names)
    for percent in (50, 0, 30, 100, 50):
        t.monitor.set_filter(TIMED=percent)
        start = t.ioc.get("C2_0")

        def goes_on():
            puts.some()
            return t.ioc.get("C2_0") > start + size(30, 150)

        until(goes_on, 120, "scans")
    after = t.stop()
    assert not t.compare(before, after)


@soak
def test_passes_begin_while_chains_are_timed(new_ioc, new_monitor, fast):  # noqa: F811
    """When passes begin to be watched, all chains are timed. No chain is left to the end of a pass before this end is seen, or
    after it was seen last: every count is exact."""
    text = "".join(db.counter(f"R{i}", SCAN=FAST[0]) for i in range(40))
    t = Turns(new_ioc, new_monitor, text, percent=100, program=fast)
    before = t.stop()
    t.scan()
    for _ in range(size(10, 60)):
        t.monitor.set_filter(LEVEL="trace")
        t.wait_way("lists")
        t.monitor.set_filter(LEVEL="chains")
        t.wait_way("turns")
    after = t.stop()
    assert not t.compare(before, after)


def test_scan_periods_are_always_seen(new_ioc, new_monitor):
    """The table of scan threads needs no timed chains: passes, periods and load of a thread."""
    text = CHAINS + slow("S", 50000, SCAN=".2 second") + "".join(db.counter(f"P{i}", SCAN=".2 second") for i in range(5))
    t = Turns(new_ioc, new_monitor, text, percent=0, kind="latencyIoc")
    t.monitor.set_filter(SLOW=1e6)
    t.wait_untimed()

    def scan():
        columns = ("NAMES", "PERIODS", "PERIOD_MAXS", "LOADS")
        return {str(r[0]): r[1:] for r in zip(*(t.monitor.list(f"SCAN_{c}") for c in columns))}.get(".2 second")

    period, longest, load = until(lambda: scan() if scan() and scan()[2] > 20 else None, 60, lambda: f"the scan thread: {scan()}")
    assert period == pytest.approx(0.2, rel=0.01) and longest >= 0.19
    assert 20 < load < 100  # 50 ms of 200
