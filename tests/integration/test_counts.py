# SPDX-License-Identifier: BSD-3-Clause
"""The monitor counts each processing of a record once. The records count themselves, and the counts must be equal."""
import os
import random
import threading

import pytest
from tests.harness import ca, db, loopback, paths
from tests.harness.wait import settled, until

ROOTS = {"LONG0": ".1 second", "MID0": ".2 second", "SLOW0": ".5 second", "TREE": ".1 second",
         "PULL0": ".2 second", "PUSH0": ".2 second", "DELAY": ".2 second", "SEQ": ".5 second",
         "DEV": ".2 second", "DIA": ".1 second", "RAND0": ".1 second", "RAND1": ".2 second"}


def forest(rng, number=150):
    """Makes random trees below two roots. Exactly one earlier record makes each record process, by one kind of link."""
    free = {i: ["FLNK"] for i in range(number)}
    fields = {i: {} for i in range(number)}
    reached = {0, 1}
    for child in range(2, number):
        # forward and output links: any record that has a free one; input links: any record
        parent = rng.choice([p for p in sorted(reached) if free[p]])
        link = free[parent].pop(0)
        if link == "FLNK":
            fields[parent]["FLNK"] = f"$(P)RAND{child}"
            free[parent] = ["PULL", "PUSH"]
            rng.shuffle(free[parent])
        elif link == "PULL":
            fields[parent]["INPB"] = f"$(P)RAND{child} PP"
        else:
            fields[parent]["OUT"] = f"$(P)RAND{child}.PROC PP"
        reached.add(child)
    return "".join(db.out_counter(f"RAND{i}", **fields[i]) for i in range(number))


def database():
    text = db.READY
    text += db.chain("LONG", 200) + db.chain("MID", 100) + db.chain("SLOW", 50) + db.chain("PUTS", 200)
    # a fanout of fanouts
    text += db.counter("TREE", FLNK="$(P)FAN")
    text += db.record("fanout", "FAN", **{f"LNK{i}": f"$(P)FAN{i}" for i in range(1, 9)})
    for i in range(1, 9):
        text += db.record("fanout", f"FAN{i}", **{f"LNK{j}": f"$(P)LEAF{i}_{j}" for j in range(1, 9)})
        text += "".join(db.counter(f"LEAF{i}_{j}") for j in range(1, 9))
    # processed by input links that read it, and by output links that write to it
    for i in range(20):
        more = {"INPA": f"$(P)PULL{i + 1} PP"} if i < 19 else {}
        text += db.counter(f"PULL{i}", **more)
        more = {"OUT": f"$(P)PUSH{i + 1}.PROC PP"} if i < 19 else {}
        text += db.out_counter(f"PUSH{i}", **more)
    # asynchronous: a delayed output, a sequence with delays, a slow device
    text += db.counter("DELAY", FLNK="$(P)DELAY:OUT")
    text += db.out_counter("DELAY:OUT", ODLY="0.05", OUT="$(P)DELAY:TO.PROC PP", FLNK="$(P)DELAY:END")
    text += db.chain("DELAY:T", 3).replace("DELAY:T0", "DELAY:TO") + db.counter("DELAY:END")
    text += db.counter("SEQ", FLNK="$(P)SEQ:DO")
    text += db.record("seq", "SEQ:DO", DLY1="0.02", LNK1="$(P)SEQ:A.PROC PP", DO1="1",
                      DLY2="0.03", LNK2="$(P)SEQ:B.PROC PP", DO2="1", FLNK="$(P)SEQ:END")
    text += db.counter("SEQ:A") + db.counter("SEQ:B") + db.counter("SEQ:END")
    text += db.counter("DEV", FLNK="$(P)DEV:ASYN")
    text += db.record("aSub", "DEV:ASYN", SNAM="completeAfter", FTA="DOUBLE", INPA="20000", FTVA="DOUBLE",
                      FLNK="$(P)DEV:END")
    text += db.counter("DEV:END")
    # a diamond: two ways to DIA:D, and a link from there
    text += db.counter("DIA", FLNK="$(P)DIA:F")
    text += db.record("fanout", "DIA:F", LNK1="$(P)DIA:L", LNK2="$(P)DIA:R")
    text += db.counter("DIA:L", FLNK="$(P)DIA:D") + db.counter("DIA:R", FLNK="$(P)DIA:D")
    text += db.counter("DIA:D", FLNK="$(P)DIA:E") + db.counter("DIA:E")
    # a loop with a CA link
    text += db.counter("LOOP", FLNK="$(P)LOOP:BACK", DISA="1")
    text += db.out_counter("LOOP:BACK", ODLY="0.02", OUT="$(P)LOOP.PROC CA")
    # links that change while the records process
    text += db.counter("CHG", SCAN="Passive", FLNK="$(P)CHG:A")
    text += "".join(db.counter(f"CHG:{c}") for c in "ABC")
    text += forest(random.Random(3))
    return text


class Watched:
    """The IOC with this database, the monitor, and the counts of both at two times when nothing processes."""

    def __init__(self, ioc, monitor, names):
        self.ioc, self.monitor, self.names = ioc, monitor, names

    def scan(self, on):
        for root, rate in ROOTS.items():
            self.ioc.put(f"{root}.SCAN", rate if on else "Passive")
        self.ioc.put("LOOP.DISA", 0 if on else 1)
        if on:
            self.ioc.put("LOOP.PROC", 1)

    def own(self):
        return ca.get_integers(self.ioc.prefix + n for n in self.names)

    def counts(self):
        return self.monitor.records(self.ioc.name)

    def rest(self):
        """Stops all scans. Returns the IOC's own counts, then the monitor's."""
        return settled(lambda: (self.own(), self.counts()), 30, quiet=1.5)


@pytest.fixture(scope="module")
def watched(module_ioc, module_monitor):
    text = database()
    names = [line.split('$(P)')[1].split('"')[0] for line in text.splitlines()
             if line.startswith(("record(calc", "record(calcout"))]
    names = [n for n in names if n != "READY"]
    ioc = module_ioc(text, kind="latencyIoc").start()
    watch = [ioc.prefix + n for n in ("LONG0", "LONG199", "DELAY:END", "LOOP")]
    monitor = module_monitor(watch=watch).start()
    monitor.wait_ioc(ioc, records=len(names))
    return Watched(ioc, monitor, names)


def compare(watched, before, after, exactly_known):
    own0, mon0 = before
    own1, mon1 = after
    wrong = []
    for name in own1:
        expected = own1[name] - own0[name]
        got = mon1[name].count - mon0[name].count
        if "atleast" in mon1[name].flags:
            if name in exactly_known or got > expected:
                wrong.append(f"{name}: {got}, marked at least, the IOC says {expected}")
        elif got != expected:
            wrong.append(f"{name}: {got}, the IOC says {expected}")
    assert not wrong, f"{len(wrong)} of {len(own1)} wrong:\n" + "\n".join(wrong[:25])
    return sum(own1.values()) - sum(own0.values())


def plain(watched):
    """Records that must have an exact count: chains reach them by one way only, and no link that made them process was
    changed."""
    p = watched.ioc.prefix
    return {p + n for n in watched.names if not n.startswith(("DIA:D", "DIA:E", "CHG"))}


def test_counts_equal_the_iocs_own(watched):
    """Scans, puts, asynchronous records and a loop with a CA link. In between: reads, and puts that make no record
    process."""
    ioc = watched.ioc
    before = watched.rest()
    watched.scan(True)
    stop = threading.Event()

    def readers():  # reads, and puts that make no record process, must not count
        import epics
        epics.ca.use_initial_context()
        channels = [epics.get_pv(ioc.prefix + n) for n in ("LONG0", "LONG100", "TREE", "RAND5")]
        plain_puts = [epics.get_pv(ioc.prefix + n) for n in ("LONG0.DESC", "LONG100.DESC", "SLOW0.HIGH")]
        i = 0
        while not stop.is_set():
            i += 1
            for c in channels:
                c.get(use_monitor=False, timeout=60)
            for c in plain_puts:
                c.put(str(i) if c.pvname.endswith("DESC") else i, wait=True, timeout=60)

    reader = threading.Thread(target=readers)
    reader.start()
    try:
        proc = ca.pv(ioc.prefix + "PUTS0.PROC")
        for i in range(300):
            proc.put(1, wait=i % 10 == 9)
        ioc.put("PUTS0.PROC", 1)
        until(lambda: ioc.get("LONG0") - before[0][ioc.prefix + "LONG0"] >= 80 and
              ioc.get("SLOW0") - before[0][ioc.prefix + "SLOW0"] >= 12, 60, "enough scans")
    finally:
        stop.set()
        reader.join()
    watched.scan(False)
    after = watched.rest()
    total = compare(watched, before, after, plain(watched))
    assert total > 60000, f"only {total} processings: not much of a test"
    assert after[0][ioc.prefix + "PUTS199"] - before[0][ioc.prefix + "PUTS199"] == 301
    assert watched.monitor.losses() == {}


def test_counts_of_the_watch_pvs(watched):
    _, counts = watched.rest()
    p, ioc = watched.monitor, watched.ioc
    for name in ("LONG0", "LONG199", "DELAY:END", "LOOP"):
        p.wait(f"{ioc.prefix}{name}:PROC_CNT", lambda v, n=name: v == counts[ioc.prefix + n].count)


def test_links_changed_while_running(watched):
    """Counts are exact. A count is a lower bound, and marked, if CHG processed before the monitor had read its new
    link."""
    ioc = watched.ioc
    before = watched.rest()
    ioc.put("CHG.SCAN", ".1 second")

    def more(name, n):
        start = ioc.get(name)
        until(lambda: ioc.get(name) >= start + n, 20, f"{name} processing")

    for link, then in (("CHG:B", "CHG:B"), ("CHG:C", "CHG:C"), ("", "CHG"), ("CHG:A", "CHG:A")):
        ioc.put("CHG.FLNK", ioc.prefix + link if link else "")
        more(then, 5)
    ioc.put("CHG:A.FLNK", ioc.prefix + "CHG:B")  # and the records behind the first one
    more("CHG:B", 5)
    ioc.put("CHG:A.FLNK", "")
    ioc.put("CHG.SCAN", "Passive")
    own, mon = watched.rest()
    wrong = []
    for n in ("CHG", "CHG:A", "CHG:B", "CHG:C"):
        n = ioc.prefix + n
        expected, got = own[n] - before[0][n], mon[n].count - before[1][n].count
        if got != expected and not ("atleast" in mon[n].flags and got < expected):
            wrong.append(f"{n}: {got}, the IOC says {expected}")
    assert not wrong, wrong


def test_snapshot_equals_the_trap(watched):
    """The counts of a trap at dbProcess are the reference."""
    ioc, monitor = watched.ioc, watched.monitor
    watched.rest()
    monitor.command(f'ebpfMonReference "{ioc.name}" 1')
    before = watched.rest()
    watched.scan(True)
    start = ioc.get("LONG0")
    until(lambda: ioc.get("LONG0") >= start + 40, 30, "enough scans")
    watched.scan(False)
    after = watched.rest()
    monitor.command(f'ebpfMonReference "{ioc.name}" 0')
    total = compare(watched, before, after, plain(watched))
    assert total > 8000
    # For some records dbProcess is called more often than they process: twice for asynchronous records, or while they
    # are busy; for LOOP when it is disabled at the end. The counts of DIA:D and DIA:E may be lower bounds.
    apart = ("DELAY:OUT", "SEQ:DO", "DEV:ASYN", "LOOP", "LOOP:BACK", "DIA:D", "DIA:E")
    wrong, compared = [], 0
    for name, now in after[1].items():
        then = before[1][name]
        count, entered = now.count - then.count, now.entered - then.entered
        if name.removeprefix(ioc.prefix) in apart:
            continue
        compared += count
        if count != entered:
            wrong.append(f"{name}: snapshot {count}, trap {entered}")
    assert not wrong, "\n".join(wrong[:25])
    assert compared > 8000, "the reference counted too few to compare"


def test_lower_bounds_are_the_exception(watched):
    marked = {n for n, c in watched.counts().items() if "atleast" in c.flags}
    assert not marked & plain(watched), sorted(marked)[:20]


def test_record_without_a_moving_time_stamp(new_ioc, watch_only):
    """TSE = -2 (the device sets the time) and TSEL: the time stamp does not show a processing, but the count is
    right."""
    text = db.READY + db.counter("SET", TSE="-2", FLNK="$(P)SET:1") + db.counter("SET:1", TSE="-2")
    text += db.counter("SRC", FLNK="$(P)SEL") + db.counter("SEL", TSEL="$(P)READY.TIME", FLNK="$(P)SEL:1")
    text += db.counter("SEL:1", TSEL="$(P)READY.TIME")
    ioc = new_ioc(text).start()
    monitor = watch_only(ioc, records=6)
    names = ["SET", "SET:1", "SRC", "SEL", "SEL:1"]
    before = settled(lambda: monitor.records(ioc.name), 20)
    for _ in range(200):
        ioc.put("SET.PROC", 1, wait=False)
        ioc.put("SRC.PROC", 1, wait=False)
    ioc.put("SRC.PROC", 1)
    assert ioc.get("SRC") == 201 and ioc.get("SET:1") == 200
    after = settled(lambda: monitor.records(ioc.name), 20, quiet=1.5)
    for n in names:
        n = ioc.prefix + n
        got = after[n].count - before[n].count
        assert got == ca.get(n) or ("atleast" in after[n].flags and got <= ca.get(n)), n


def test_busiest_records_and_rates(watched):
    """PROC_TOP_* are the records that process most often, with the rates of their scans."""
    monitor, ioc = watched.monitor, watched.ioc
    watched.scan(True)
    try:
        def named():
            top = dict(zip(monitor.list("PROC_TOP_NAMES"), monitor.list("PROC_TOP_RATES")))
            rates = [top[n] for n in top if n.startswith(ioc.prefix + "LONG")]
            return rates and all(9 < r < 11 for r in rates)

        until(named, 30, lambda: str(list(zip(monitor.list("PROC_TOP_NAMES"), monitor.list("PROC_TOP_RATES")))))
        cnts = monitor.list("PROC_TOP_CNTS")
        assert len(cnts) == len(monitor.list("PROC_TOP_NAMES"))
        monitor.wait("PROC_RATE", lambda r: r > 3000)
    finally:
        watched.scan(False)


def test_no_disturbance(watched):
    """The IOC still runs, and it printed no error message."""
    assert watched.ioc.running
    assert os.readlink(f"/proc/{watched.ioc.pid}/exe").endswith(paths.LATENCY_IOC.name)
    assert not [l for l in watched.ioc.process.lines if "rror" in l or "WARN" in l]


def test_group_of_a_record_without_time(new_ioc, watch_only):
    """An atomic put to a group of QSRV locks all its records, and unlocks them at once. One of them has a time stamp that tells
    nothing (TSE -2); the record behind it is counted all the same."""
    group = db.READY + db.record("ao", "G", TSE="-2", FLNK="$(P)Y") + db.counter("Y")
    group += 'record(ao, "$(P)G") { info(Q:group, {"$(P)GRP": {"a": {+channel: "VAL", +putorder: 1}}}) }\n'
    ioc = new_ioc(group, kind="softIocPVA").start()
    monitor = watch_only(ioc, "counts")
    with loopback.pva_context(ioc.port) as client:
        for i in range(10):
            client.put(ioc.prefix + "GRP", {"a.value": i}, timeout=60)
    assert ioc.get("Y") == 10
    until(lambda: monitor.records(ioc.name)[ioc.prefix + "Y"].count == 10, 10, lambda: monitor.records(ioc.name)[ioc.prefix + "Y"])


@pytest.mark.parametrize("level", ["counts", "chains"])
def test_group_with_its_readback(new_ioc, watch_only, level):
    """QSRV locks the readback before the set-point, because members without +putorder come first. So the end of the chain is looked
    at before its begin."""
    group = db.READY + db.counter("RB") + db.record("calc", "MID", INPA="$(P)MID", CALC="A+1", FLNK="$(P)RB") + db.record("ao", "SP", FLNK="$(P)MID")
    group += 'record(calc, "$(P)RB") { info(Q:group, {"$(P)GRP": {"rb": {+channel: "VAL"}}}) }\n'
    group += 'record(ao, "$(P)SP") { info(Q:group, {"$(P)GRP": {"sp": {+channel: "VAL", +putorder: 1}}}) }\n'
    ioc = new_ioc(group, kind="softIocPVA").start()
    monitor = watch_only(ioc, level)
    names = [ioc.prefix + n for n in ("SP", "MID", "RB")]

    def counts():
        records = monitor.records(ioc.name)
        return [records[n].count for n in names]

    def put_each(name, field, value):
        for i in range(10):
            client.put(ioc.prefix + name, {field: value + i}, timeout=60)

    with loopback.pva_context(ioc.port) as client:
        put_each("GRP", "sp.value", 0)
        until(lambda: counts() == [10, 10, 10], 10, counts)
        for i in range(10):  # the whole chain, and the readback alone
            ioc.put("SP", i)
            ioc.put("RB.PROC", 1)
        put_each("GRP", "sp.value", 20)
        until(lambda: counts() == [30, 30, 40], 10, counts)
    assert ioc.get("RB") == 40


@pytest.mark.parametrize("level", ["counts", "chains"])
@pytest.mark.parametrize("sets", [1, 8], ids=["chains", "passes"])
def test_async_soft_channel_in_its_own_lock_set(new_ioc, watch_only, sets, level):
    """The device support processes the record that its INP names while it is processed itself. The chain has processed that record
    before."""
    text = "".join(db.record("fanout", f"ROOT{i}", SCAN=".1 second", LNK1=f"$(P)T{i}", LNK2=f"$(P)ASYNC{i}") +
                   db.record("ai", f"ASYNC{i}", DTYP="Async Soft Channel", INP=f"$(P)T{i}.VAL", FLNK=f"$(P)END{i}") +
                   db.counter(f"T{i}") + db.counter(f"END{i}") for i in range(sets))
    ioc = new_ioc(db.READY + text).start()
    monitor = watch_only(ioc, level)
    names = [f"{n}{i}" for n in ("T", "END") for i in range(sets)]

    def stop():
        for i in range(sets):
            ioc.put(f"ROOT{i}.SCAN", "Passive")
        return settled(lambda: {n: (int(ioc.get(n)), monitor.records(ioc.name)[ioc.prefix + n]) for n in names}, 60, quiet=1.5)

    before = stop()
    for i in range(sets):
        ioc.put(f"ROOT{i}.SCAN", ".1 second")
    until(lambda: int(ioc.get("T0")) > before["T0"][0] + 60, 60, "scans")
    after = stop()
    for n in names:
        true, counted = after[n][0] - before[n][0], after[n][1].count - before[n][1].count
        assert counted == true and "atleast" not in after[n][1].flags, f"{n}: {after[n]}; {counted} of {true}"
