# SPDX-License-Identifier: BSD-3-Clause
"""The PVs of the monitor: each exists, has its type and a description. Only the PVs for operators are writable."""
import contextlib
import math
import platform
import re
import time
from pathlib import Path

import pytest
from tests.harness import ca, db, loopback, paths
from tests.harness.ioc import OURS
from tests.harness.wait import settled, until

INVALID = 3
WATCH = "PROC_CNT PROC_RATE LAT_MEAN LAT_P99 LAT_MAX ASYNC_CNT ASYNC_MEAN ASYNC_P99 ASYNC_MAX PUT_CNT PUT_LAST".split()


@pytest.fixture(scope="module")
def ioc(module_ioc):
    links = "".join(db.out_counter(f"L{i}", OUT="$(P)LINKED") for i in range(10))
    return module_ioc(db.READY + db.chain("C", 20, SCAN=".1 second") + db.record("ao", "AO") +
                      db.record("ao", "BO") + db.record("ao", "LIMITED", DRVH="10", DRVL="-10") + db.record("ao", "LINKED") + db.record("lsi", "LONG", SIZV="300") + links).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc):
    m = module_monitor(watch=[ioc.prefix + "C0", ioc.prefix + "AO"]).start()
    m.wait_ioc(ioc)
    return m


def all_of(monitor, rtype=""):
    """The PVs of one record type, or all."""
    return [n.removeprefix(monitor.prefix) for n in monitor.command(f"dbl {rtype}") if n.startswith(monitor.prefix)]


def values_of(monitor, names):
    """By PV Access: one answer has value, type and description."""
    with loopback.pva_context(monitor.port, nt=False) as context:
        return dict(zip(names, context.get([monitor.prefix + n for n in names], timeout=60)))


def test_every_pv(monitor):
    """Each has a description, and the type that clients expect of its record type."""
    names = [n for n in all_of(monitor) if not n.endswith("_LABELS_")]
    assert {"STATE", "PUT_CNT", "PUT_LAST", "PUT_PVS", "FILTER_IOC", "CHAIN_HIST_ROOT"} <= set(names) and len(names) > 200
    values = values_of(monitor, names)
    assert [n for n, v in values.items() if not (v.display.description if "display" in v else  # an NTEnum has none
                                                 ca.get(f"{monitor.prefix}{n}.DESC"))] == []
    types = {n: v.type()["value"] for n, v in values.items()}
    expected = {"ai": "d", "int64in": "l", "longin": "i", "lsi": "s", "stringin": "s"}
    assert [n for rtype, code in expected.items() for n in all_of(monitor, rtype) if types[n] != code] == []
    assert {"IOC_NAMES", "PUT_PVS"} <= {n for n in names if types[n] == "as"}


def long_texts(monitor):
    """The PVs with their whole text in .VAL$, and arrays of CHAR."""
    names = [n for rtype in ("lsi", "lso") for n in monitor.command(f"dbl {rtype}") if n.startswith(monitor.prefix)]
    arrays = [n for n in monitor.command("dbl waveform") if n.startswith(monitor.prefix)]
    return [f"{n}.VAL$" for n in names] + [n for n in arrays if ca.get(n + ".FTVL", as_string=True) == "CHAR"]


def test_long_strings_by_pv_access(monitor):
    """QSRV of Base serves long strings as arrays of characters, and display.form (the info tag Q:form) says that they
    are text. Without it clients show numbers. QSRV 2 serves them as strings."""
    names = long_texts(monitor)
    assert {f"{monitor.prefix}{n}" for n in ("STATE_MSG.VAL$", "FILTER_IOC.VAL$", "CHAIN_HIST_ROOT.VAL$",
                                             "FILTER_STATUS.VAL$", "PUT_LOG")} <= set(names)
    with loopback.pva_context(monitor.port, nt=False) as context:
        values = dict(zip(names, context.get(names, timeout=60)))
    assert not [n for n, v in values.items()
                if v.type()["value"] != "s" and v.display.form.choices[v.display.form.index] != "String"]
    said = values[f"{monitor.prefix}FILTER_STATUS.VAL$"].value
    said = said if isinstance(said, str) else bytes(said.astype("uint8")).rstrip(b"\0").decode()
    assert said == monitor.text("FILTER_STATUS") != ""  # other tests start IOCs, which changes STATE_MSG


def test_our_own_words_are_ascii(monitor, ioc):
    """The monitor's own texts are ASCII, because many clients show other characters wrongly. All names and values in
    this test are ASCII, too."""
    ioc.put("AO", 4)
    monitor.wait_text("PUT_LAST", lambda t: " -> 4 by" in t)
    monitor.set_filter(SLOW=1)
    try:
        until(lambda: monitor.lines("CHAIN_LOG"), 60, "a chain in CHAIN_LOG")
    finally:
        monitor.set_filter(SLOW=10000)
    texts = {n: ca.get_text(n) if n.endswith("$") else monitor.lines(n.removeprefix(monitor.prefix))
             for n in long_texts(monitor)}
    texts |= {n: " ".join(v.value) for n, v in values_of(monitor, all_of(monitor, "waveform")).items() if v.type()["value"] == "as"}
    assert not {n: t for n, t in texts.items() if not t.isascii()}


@pytest.mark.parametrize("name", ["STATE", "IOC_CNT", "PUT_CNT", "PUT_LAST", "PUT_PVS", "PROC_CNT", "LOST_CNT",
                                  "COST", "PROC_TOP_NAMES"])
def test_read_only(monitor, name):
    before = monitor.get(name)
    out = ca.run("caput", "-c", monitor.prefix + name, "1", port=monitor.port)
    assert "denied" in out.stdout.lower() or out.returncode, f"{name} could be written: {out.stdout}"
    if name == "STATE":
        assert monitor.get(name) == before


def test_columns_are_of_equal_length(monitor, ioc):
    ioc.put("AO", 1)
    for group in (("IOC_NAMES", "IOC_PIDS", "IOC_VERSIONS", "IOC_RECORD_CNTS", "IOC_LEVELS"),
                  ("PUT_TIMES", "PUT_PVS", "PUT_VALUES", "PUT_OLD_VALUES", "PUT_WRITERS", "PUT_IOCS"),
                  ("PROC_TOP_NAMES", "PROC_TOP_CNTS", "PROC_TOP_RATES"),
                  ("CHAIN_TOP_NAMES", "CHAIN_TOP_CNTS", "CHAIN_TOP_MEANS", "CHAIN_TOP_P99S", "CHAIN_TOP_MAXS",
                   "CHAIN_TOP_LOCK_WAITS")):
        until(lambda g=group: len({len(monitor.list(n)) for n in g}) == 1, 5,
              lambda g=group: str({n: len(monitor.list(n)) for n in g}))


def test_parts_of_the_last_put(monitor, ioc):
    ioc.put("AO", 21)
    ioc.put("AO", 22)
    pv = ioc.prefix + "AO"
    monitor.wait_text("PUT_LAST_VALUE", lambda t: t == "22")
    assert monitor.text("PUT_LAST_PV") == pv
    assert monitor.text("PUT_LAST_OLD_VALUE") == "21"
    assert paths.HOST in monitor.text("PUT_LAST_WRITER")
    line = monitor.text("PUT_LAST")
    assert pv in line and "21" in line and " -> " in line and "22" in line
    # the PVs of ebpfMonWatch.db
    monitor.wait(f"{pv}:PUT_CNT", lambda n: n >= 2)
    assert pv in monitor.text(f"{pv}:PUT_LAST")


def test_watch_file(monitor, ioc):
    for name in WATCH:
        assert ca.get(f"{monitor.prefix}{ioc.prefix}C0:{name}.DESC")
    monitor.wait(f"{ioc.prefix}C0:PROC_RATE", lambda r: 9 < r < 11, 20)
    monitor.wait(f"{ioc.prefix}C0:LAT_MEAN", lambda us: us > 0)


def test_puts_table(monitor, ioc):
    """The table of puts is an NTTable by pvAccess."""
    ioc.put("AO", 31)
    monitor.wait_text("PUT_LAST_VALUE", lambda t: t == "31")
    with loopback.pva_context(monitor.port, nt=False) as context:
        # the table may come a moment after the records
        table = until(lambda: "31" in (t := context.get(monitor.prefix + "PUTS", timeout=60)).value["value"][:1] and t, 10,
                      "the put in the table")
        assert table.getID() == "epics:nt/NTTable:1.0"
        columns = dict(table.value.items())
        assert len(table.labels) == len(columns) == 8, (list(table.labels), list(columns))
        assert len({len(c) for c in columns.values()}) == 1
        assert columns["pv"][0] == ioc.prefix + "AO"


def test_table_of_ones_own(new_monitor, ioc, tmp_path):
    """Waveforms without an access security group of their own are a table, too."""
    own = {"DTYP": "ebpfMon", "SCAN": "I/O Intr", "TSE": "-2", "FTVL": "STRING", "NELM": "3"}
    (tmp_path / "own.db").write_text("".join(db.record("waveform", "MY" + name, INP="@" + name, **own).replace(
        " }", f' info(ebpfMonTable, "$(P)MINE {place} {column}") }}') for place, (name, column) in
        enumerate([("PUT_PVS", "pv"), ("PUT_VALUES", "value")], 1)))
    monitor = new_monitor()
    monitor.before.append(f'dbLoadRecords "{tmp_path}/own.db", "P={monitor.prefix}"')
    monitor.start().wait_ioc(ioc)
    ioc.put("AO", 32)
    monitor.wait_text("PUT_LAST_VALUE", lambda t: t == "32")
    until(lambda: [list(c[:1]) for c in tables(monitor, "MINE")[0][1].values()] == [[ioc.prefix + "AO"], ["32"]], 10, "the put")


def test_a_put_that_was_not_made_as_sent_says_so(monitor, ioc):
    """In the column "Result", which is empty for all others."""
    ioc.put("LIMITED", 50)
    ioc.put("AO", 32)
    monitor.wait_text("PUT_LAST_VALUE", lambda t: t == "32")
    until(lambda: list(zip(monitor.list("PUT_PVS"), monitor.list("PUT_VALUES"), monitor.list("PUT_RESULTS")))[:2] ==
          [(ioc.prefix + "AO", "32", ""), (ioc.prefix + "LIMITED", "50", "became 10")], 10,
          lambda: list(zip(monitor.list("PUT_PVS"), monitor.list("PUT_VALUES"), monitor.list("PUT_RESULTS")))[:3])
    assert tables(monitor, "PUTS")[0][1]["result"][1] == "became 10"


def test_what_machines_write_hides_nothing_that_people_write(monitor, ioc):
    """PUTS and PUT_LAST are about puts of clients, AUTO_PUTS and AUTO_PUT_LAST about puts of IOCs. PUT_LOG has both. The puts of a link
    that writes again and again are one row."""
    p = ioc.prefix
    before = monitor.get("PUT_CNT"), monitor.get("AUTO_PUT_CNT")
    ioc.put("AO", 1234)
    for i in range(10):
        ioc.put(f"L{i}.SCAN", ".1 second")
    monitor.wait("AUTO_PUT_CNT", lambda n: n >= before[1] + 250, 20)
    for i in range(10):
        ioc.put(f"L{i}.SCAN", "Passive")
    ioc.put("AO", 4321)
    monitor.wait_text("PUT_LAST_VALUE", lambda t: t == "4321", 10)
    until(lambda: monitor.list("PUT_VALUES")[0] == "4321", 5, "the waveforms, which follow after the values")
    people = list(zip(monitor.list("PUT_PVS"), monitor.list("PUT_VALUES")))
    assert people[0] == (p + "AO", "4321") and people[21] == (p + "AO", "1234"), people[:30]
    assert p + "LINKED" not in [pv for pv, _ in people]
    counted = settled(lambda: monitor.get("AUTO_PUT_CNT"), 10)

    def of_links():
        return [r for pv, r in zip(monitor.list("AUTO_PUT_PVS"), monitor.list("AUTO_PUT_RESULTS")) if pv == p + "LINKED"]

    def counts():
        return [int(m[1]) for m in (re.fullmatch(r"x(\d+) since \d\d:\d\d:\d\d from 1", r) for r in of_links()) if m]

    until(lambda: sum(counts()) == counted - before[1] and len(counts()) == len(of_links()) == 10, 10, lambda: str(of_links()))
    assert re.search(rf"{p}LINKED .* by thread .*\(link {p}L\d\.OUT", monitor.text("AUTO_PUT_LAST"))
    made = monitor.get("PUT_CNT") - before[0], monitor.get("AUTO_PUT_CNT") - before[1]
    assert made[0] == made[1] + 22, made
    log = monitor.lines("PUT_LOG")
    assert f"{p}LINKED" in log and f"{p}AO 1234 -> 4321" in log


def test_a_client_that_is_an_ioc_is_a_machine(new_ioc, monitor, ioc):
    """A sequencer program in an IOC writes as any client does, by Channel Access."""
    writer = new_ioc(db.READY + db.record("ao", "OUT", OUT=f"{ioc.prefix}BO CA", OMSL="supervisory")).start()
    monitor.wait_ioc(writer)
    monitor.command(f'ebpfMonLevel "{writer.name}" off')  # no link is known, only that the process is an IOC
    try:
        monitor.wait_ioc(writer, level="off")
        before = monitor.text("PUT_LAST")
        until(lambda: (writer.put("OUT", 5), ioc.get("BO"))[1] == 5, 10, "the link works")
        monitor.wait_text("AUTO_PUT_LAST", lambda t: f" {ioc.prefix}BO " in t and "-> 5 by" in t, 10)
        assert f" {ioc.prefix}BO " not in monitor.text("PUT_LAST"), before
    finally:
        monitor.command(f'ebpfMonLevel "{writer.name}" filter')


def tables(monitor, *names):
    """Table → (time stamp, column → cells), by PV Access."""
    with loopback.pva_context(monitor.port, nt=False) as context:
        got = context.get([monitor.prefix + n for n in names], timeout=60)
    return [(t.timeStamp.secondsPastEpoch, dict(t.value.items())) for t in got]


def test_tables_have_whole_texts_and_types(monitor, ioc):
    """A waveform of STRING cuts at 39 characters; a table of strings does not. Counts are integers."""
    text = "a long text " * 12
    ca.put(ioc.prefix + "LONG.VAL$", text)
    monitor.wait_text("PUT_LAST_VALUE", lambda t: t.startswith(text[:100]))
    until(lambda: [v for v in tables(monitor, "PUTS")[0][1]["value"][:1] if v.startswith(text[:100])], 10, "the text in PUTS")
    (when, puts), (_, iocs), (_, busiest), (_, chains) = tables(monitor, "PUTS", "IOCS", "PROC_TOP", "CHAIN_TOP")
    assert puts["value"][0].startswith(text.rstrip()) and monitor.list("PUT_VALUES")[0].endswith("...")
    assert puts["pv"][0] == ioc.prefix + "LONG" and f"caput[" in puts["writer"][0] or "python" in puts["writer"][0]
    assert abs(when - time.time()) < 60
    assert all(re.fullmatch(r"(\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3}", t) for t in puts["time"]), puts["time"][:5]
    assert [c.dtype.name for c in (iocs["pid"], iocs["records"], busiest["count"], chains["count"], busiest["rate"],
                                   chains["mean"])] == ["int32", "int32", "int64", "int64", "float64", "float64"]
    assert ioc.pid in iocs["pid"]


# the columns that have a number of some IOCs only
GAPS = {
    "IOCS": ["timed"],
    "IOC_HEALTH": ["cpu", "clients", "channels"],
    "IOC_DELAYS": ["cbLow", "cbMedium", "cbHigh", "scanOnce", "lockHeld", "caServerCpu"],
}


@pytest.mark.parametrize("name, digits", [("SCANS", 3), ("IOC_HEALTH", 1), ("CHAIN_TOP", 3), ("IOC_DELAYS", 2), ("IOCS", 3)])
def test_numbers_in_tables_are_rounded(monitor, ioc, name, digits):
    """A number that is not known of every IOC is a text, with the same digits in each row."""
    until(lambda: len(tables(monitor, name)[0][1]["name"]), 10, f"rows of {name}")
    for column, cells in tables(monitor, name)[0][1].items():
        if getattr(cells, "dtype", None) == float:
            assert [c for c in cells if round(c, digits) != c] == [], column  # nor is one NaN: displays show that
        elif column in GAPS.get(name, ()):
            places = {"cpu": 1, "clients": 0, "channels": 0, "timed": 0}.get(column, 2)
            assert all(re.fullmatch(r"(\d+%s)?" % (r"\.\d{%d}" % places if places else ""), c) for c in cells), (column, cells)


def test_latencies_in_tables_are_ms(monitor, ioc):
    """People say 214 ms, programs get 213514.5 us."""
    until(lambda: len(monitor.list("CHAIN_TOP_NAMES")), 10, "chains")
    settled(lambda: (monitor.list("CHAIN_TOP_MAXS"), list(tables(monitor, "CHAIN_TOP")[0][1]["max"])), 10, 2)
    shown, us = list(tables(monitor, "CHAIN_TOP")[0][1]["max"]), monitor.list("CHAIN_TOP_MAXS")
    assert shown == [pytest.approx(t / 1000, abs=0.0006) for t in us] and max(us) > 1


def test_tables_come_by_themselves_and_cannot_be_written(monitor, ioc):
    """A subscriber gets a put as soon as the records have it. Nobody can write to a table."""
    seen = []
    with loopback.pva_context(monitor.port, nt=False) as context:
        with context.monitor(monitor.prefix + "PUTS", lambda v: seen.append(v)):
            until(lambda: seen, 10, "the first table")
            ioc.put("AO", 777)
            until(lambda: list(seen[-1].value.value)[:1] == ["777"], 10, "the put in the table")
        with pytest.raises(Exception, match="not allowed|Read-only"):
            context.put(monitor.prefix + "PUTS", {"value.pv": ["forged"]}, timeout=60)
    assert "forged" not in tables(monitor, "PUTS")[0][1]["pv"]


def test_iocs_that_are_not_watched_stand_last(new_ioc, new_monitor):
    """IOCs that are not watched are last in the tables. Numbers that nobody measured are empty cells; the waveforms stay numbers."""
    a, b = (new_ioc(db.READY).start() for _ in range(2))
    monitor = new_monitor(iocs=a.name).start()
    monitor.wait_ioc(a)
    monitor.wait_ioc(b, level="off")

    def cells(ioc):
        """The cells of one IOC in all columns that can be empty, and whether it is the first IOC."""
        got = {name: columns for name, (_, columns) in zip(GAPS, tables(monitor, *GAPS))}
        if not all(ioc.name in columns["name"] for columns in got.values()):
            return None
        at = {name: list(columns["name"]).index(ioc.name) for name, columns in got.items()}
        return ({column: got[name][column][at[name]] for name in GAPS for column in GAPS[name]}, set(at.values()))

    unmeasured = ["timed", *GAPS["IOC_DELAYS"]]
    until(lambda: (seen := cells(b)) and {seen[0][c] for c in unmeasured} == {""} and 0 not in seen[1] and
          float(seen[0]["cpu"] or -1) >= 0, 20, lambda: f"empty cells: {cells(b)}")
    until(lambda: (seen := cells(a)) and seen[1] == {0} and all(float(c or -1) >= 0 for c in seen[0].values()),
          20, lambda: f"numbers: {cells(a)}")
    at = monitor.list("IOC_DELAY_NAMES").index(b.name)
    assert math.isnan(monitor.list("IOC_LOCK_HELD_TIMES")[at]) and monitor.list("IOC_LOCK_HELD_TIMES")[0] >= 0


def test_only_records_of_iocs_in_the_filter_match(new_ioc, new_monitor):
    """An IOC that the filter leaves out again counts no more."""
    a, b = (new_ioc(db.READY + "".join(db.record("ao", f"X{i}") for i in range(count))).start() for count in (2, 5))
    monitor = new_monitor(iocs=a.name).start()
    monitor.wait_ioc(a)
    first = monitor.wait("FILTER_MATCH_CNT", lambda n: n > 0)
    for ioc, count in ((b, first + 3), (a, first)):
        monitor.set_filter(IOC=ioc.name)
        monitor.wait_ioc(ioc)
        monitor.wait_ioc(b if ioc is a else a, level="off")
        monitor.wait("FILTER_MATCH_CNT", lambda n, count=count: n == count)
    assert monitor.get("FILTER.VALB") == first


def test_put_rate_falls_with_times_of_its_own(monitor, ioc):
    """Each value has a new time stamp, because archivers drop a value that has the same time stamp as the previous
    one."""
    seen = []
    channel = ca.subscribed(monitor.prefix + "PUT_RATE")
    for i in range(5):
        ioc.put("AO", 100 + i)
    index = channel.add_callback(lambda value, timestamp, **_: seen.append((value, timestamp)))
    try:
        def falling():
            return [(v, t) for (before, _), (v, t) in zip(seen, seen[1:]) if v < before]

        until(lambda: len(falling()) >= 4, 60, lambda: f"the rate falls: {seen}")
        times = [t for _, t in falling()]
        assert all(0.5 < b - a < 30 for a, b in zip(times, times[1:])), seen
    finally:
        channel.remove_callback(index)


def test_nothing_is_0_before_it_is_known(new_monitor, ioc):
    """The first values that an archiver gets: no 0 without an alarm, and no old time stamp. The IOC has a client since before."""
    seen = []
    assert ioc.get("AO") is not None
    began = time.time()
    monitor = new_monitor().launch()
    known = ("TRAP_COST", "COST", "CPU", "MEM", "IOC_MEM_MAX", "CHAIN_P99", "CLIENT_CNT", "CLIENT_CHANNEL_CNT")
    for name in (*known, "FILTER_LEVEL", "FILTER_SLOW", "FILTER_BUDGET"):
        channel = ca.subscribed(monitor.prefix + name)
        channel.add_callback(lambda value, severity, timestamp, who=name, **_: seen.append((who, value, severity, timestamp)),
                             run_now=True)
    monitor.wait_ioc(ioc)
    for name in known:
        monitor.wait(f"{name}.SEVR", lambda s: s != INVALID, 60)
        until(lambda n=name: any(who == n and severity != INVALID for who, _, severity, _ in seen), 60, f"a value of {name}")
    assert not [s for s in seen if s[1] == 0 and s[2] != INVALID and not s[0].startswith("FILTER")]
    assert not [s for s in seen if s[3] < began - 60]
    for name in ("FILTER_IOC", "FILTER_LEVEL", "FILTER_SLOW", "FILTER_SAMPLE", "LOST_RESET", "PUT_BAD_ACK"):
        assert monitor.get(f"{name}.UDF") == monitor.get(f"{name}.STAT") == monitor.get(f"{name}.SEVR") == 0, name
        assert monitor.time_stamp(name) > began - 60, name


def test_put_updates_at_once(monitor, ioc):
    """The PVs of a put change within milliseconds. They do not wait for the next second."""
    seen = []
    channel = ca.subscribed(monitor.prefix + "PUT_CNT")
    index = channel.add_callback(lambda **kw: seen.append(time.monotonic()))
    ioc.put("AO", 40)
    until(lambda: seen, 5, "a first update")
    delays = []
    for i in range(10):
        del seen[:]
        began = time.monotonic()
        ioc.put("AO", 41 + i, wait=False)
        until(lambda: seen, 5, "an update")
        delays.append(seen[0] - began)
    channel.remove_callback(index)
    assert sorted(delays)[5] < 0.25, delays


def test_level_off_counts_nothing(monitor, ioc):
    monitor.set_filter(LEVEL="off")
    monitor.wait_ioc(ioc, level="off")
    # the level is published at once, the counts with the next second
    before = monitor.get("PUT_CNT"), settled(lambda: monitor.get("PROC_CNT"), 10, quiet=1.5)
    start = ioc.get("C0")
    ioc.put("AO", 50)
    until(lambda: ioc.get("C0") >= start + 20, 10, "20 scans")
    assert (monitor.get("PUT_CNT"), monitor.get("PROC_CNT")) == before
    monitor.set_filter(LEVEL="chains")
    monitor.wait_ioc(ioc, level="chains")
    monitor.wait("PROC_CNT", lambda n: n > before[1])


def test_level_puts_only(monitor, ioc):
    monitor.set_filter(LEVEL="puts")
    monitor.wait_ioc(ioc, level="puts")
    before = monitor.get("PUT_CNT"), settled(lambda: monitor.get("PROC_CNT"), 10, quiet=1.5)
    start = ioc.get("C0")
    until(lambda: ioc.get("C0") >= start + 15, 10, "15 scans")
    ioc.put("AO", 51)
    monitor.wait("PUT_CNT", lambda n: n == before[0] + 1)
    assert monitor.get("PROC_CNT") == before[1]
    monitor.set_filter(LEVEL="chains")
    monitor.wait_ioc(ioc, level="chains")


def test_filter_of_records(monitor, ioc):
    monitor.set_filter(RECORD="*:BO")
    before = monitor.get("PUT_CNT")
    ioc.put("AO", 60)
    ioc.put("BO", 61)
    monitor.wait_text("PUT_LAST_VALUE", lambda t: t == "61")
    assert settled(lambda: monitor.get("PUT_CNT"), 5) == before + 1
    monitor.set_filter(RECORD="*")


@pytest.mark.parametrize("name, other", [("USER", "nosuchuser"), ("HOST", "nosuchhost"), ("FIELD", "HIHI"),
                                         ("IOC", "nosuchioc")])
def test_other_filters(monitor, ioc, name, other):
    monitor.set_filter(**{name: other})
    if name == "IOC":
        monitor.wait_ioc(ioc, level="off")
    before = monitor.get("PUT_CNT")
    ioc.put("AO", 70)
    assert settled(lambda: monitor.get("PUT_CNT"), 5) == before
    monitor.set_filter(**{name: OURS if name == "IOC" else "*"})
    monitor.wait_ioc(ioc)
    ioc.put("AO", 71)
    monitor.wait("PUT_CNT", lambda n: n == before + 1)
    assert monitor.text("PUT_LAST_VALUE") == "71"


@pytest.mark.parametrize("bad", ["[unclosed", "x" * 80])
def test_bad_pattern_is_refused(monitor, ioc, bad):
    """FILTER_STATUS tells the reason, and the old filter stays in force."""
    generation = monitor.get("FILTER.VALC")
    good = monitor.text("FILTER_STATUS")
    ca.put(monitor.prefix + "FILTER_RECORD.VAL$", bad)
    text = monitor.wait_text("FILTER_STATUS", lambda t: t != good, 5)
    assert "record" in text.lower() or bad in text, text
    assert monitor.get("FILTER.SEVR", as_string=True) == monitor.get("FILTER_STATUS.SEVR", as_string=True) == "MAJOR"
    assert monitor.get("FILTER.VALC") == generation
    before = monitor.get("PUT_CNT")
    ioc.put("AO", 80)
    monitor.wait("PUT_CNT", lambda n: n == before + 1)
    monitor.put("FILTER_RECORD", "*")
    for name in "FILTER.SEVR", "FILTER_STATUS.SEVR":
        monitor.wait(name, lambda s: s == 0, 5)


def test_losses_are_named(monitor):
    assert monitor.losses() == {}
    assert monitor.get("LOST_CNT") == 0


def test_costs(monitor):
    monitor.wait("TRAP_COST", lambda ns: 10 < ns < 100000, 20)
    monitor.wait("COST", lambda cost: 0 <= cost < 100, 20)
    assert 0 <= monitor.get("CPU") < 100
    assert 1 < monitor.get("MEM") < 2000


def test_tables_take_what_they_have(monitor):
    """The kernel's hash tables take memory for the entries that they have, not for their maximum: else the table of
    threads alone would take 38 MB. MEM counts the memory that they take."""
    if tuple(int(n) for n in platform.release().split(".")[:2]) < (6, 4):
        pytest.skip("before 6.4 the kernel does not say what such a table takes")
    pid, taken = monitor.process.pid, {}
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed since
            said = dict(line.split(":\t") for line in file.read_text().splitlines() if line.count(":\t") == 1)
            if "map_id" in said:
                taken[int(said["map_id"])] = int(said["map_type"]), int(said["memlock"]) / 1e6
    by_key = sum(size for kind, size in taken.values() if kind == 1)  # BPF_MAP_TYPE_HASH
    assert 0 < by_key < 37, taken
    own = int(re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) / 1e3
    rings = sum(size for kind, size in taken.values() if kind == 27)  # the tables of packets are not in MEM
    tables = sum(size for _, size in taken.values()) - rings + 8
    until(lambda: monitor.get("MEM") == pytest.approx(own + tables, rel=0.25), 15,  # 0 until the first measurement
          lambda: f"MEM {monitor.get('MEM')}, not {own + tables}: {own} and {taken}")


def test_reports_at_the_shell(monitor, ioc):
    """Each shell command prints its report, also dbior."""
    help_text = "\n".join(monitor.command("help ebpfMon*"))
    for command in "Configure Start Filter Level Reference Iocs Records Puts Chains Reset Report".split():
        assert "ebpfMon" + command in help_text
    ioc.put("AO", 90)
    for command, text in (("ebpfMonIocs", ioc.name), ("ebpfMonPuts 5", ioc.prefix + "AO"),
                          ('ebpfMonChains "*"', ioc.prefix + "C0"), ("ebpfMonReport 2", "")):
        until(lambda c=command, t=text: t in "\n".join(monitor.command(c)), 5, f"{text} in {command}")
    assert any("ebpfMon" in line for line in monitor.command("dbior drvEbpfMon 1"))
    assert f"{ioc.prefix}C0" in monitor.records(ioc.name)
    assert f"IOC {ioc.name}:" in monitor.command(f'ebpfMonRecords "{ioc.name}"')


def test_bad_pattern_of_ports_is_refused(monitor):
    for pattern, why in ("[ab]", "[sets] are not supported"), ("x" * 80, "longer than 60"):
        said = monitor.command(f'ebpfMonDeviceWatch "{pattern}"')
        until(lambda: any(why in l for l in [*said, *monitor.process.lines]), 5, lambda: said)


def test_levels_of_single_iocs(monitor, ioc):
    """Levels of single IOCs: listed, limited in number, removed."""
    def said(line):
        return [l for l in monitor.command(line) if not l.startswith("epics> ")]

    try:
        assert said(f'ebpfMonLevel "{ioc.name}" counts') == []
        monitor.wait_ioc(ioc, level="counts")
        report = until(lambda: (lambda r: r if f"    {ioc.prefix}C0" in r else None)(monitor.command("ebpfMonReport 1")),
                       5, "the watched record found")
        report = "\n".join(report)
        assert f'ebpfMonLevel "{ioc.name}" counts' in report, report
        assert "rules: 1 of 64" in report and "slots used: records" in report
        assert "watched records: 2 of" in report
        for i in range(63):
            assert said(f"ebpfMonLevel nobody{i} puts") == []
        assert any("64 patterns" in line for line in monitor.command("ebpfMonLevel onemore puts"))
        monitor.command(f'ebpfMonLevel "{ioc.name}" filter')
        monitor.wait_ioc(ioc, level="chains")
        assert said("ebpfMonLevel onemore puts") == []
    finally:
        for pattern in (ioc.name, "onemore", *(f"nobody{i}" for i in range(63))):
            monitor.command(f'ebpfMonLevel "{pattern}" filter')
    assert "rules: 0 of 64" in "\n".join(monitor.command("ebpfMonReport 1"))
    assert any("60" in line for line in said(f"ebpfMonLevel {'x' * 61} puts"))
