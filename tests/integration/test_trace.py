# SPDX-License-Identifier: BSD-3-Clause
"""A trace has the cause of its chain, the parts of its time, and the later chains that it caused."""
import os
import re

import pytest
from tests.harness import ca, db, paths
from tests.harness.traces import traced
from tests.harness.wait import settled, until

US = 5000
# The scans are slow: CHAIN_LOG must have the trace that a test waits for, also on a busy host.
DATABASE = "".join([
    db.READY,
    db.record("calc", "SCAN", CALC="VAL+1", SCAN="2 second", FLNK="$(P)SCANNED"), db.counter("SCANNED"),
    db.record("ao", "SOURCE"), db.record("calc", "CP", CALC="VAL+1", INPA="$(P)SOURCE CP"),
    # more asynchronous records than the monitor follows
    db.record("fanout", "MANY", SELM="All", **{f"LNK{i:X}": f"$(P)LATE{i}" for i in range(10)}),
    *(db.record("calcout", f"LATE{i}", ODLY="0.01", CALC="VAL+1") for i in range(10)),
    db.record("calc", "LONGER", CALC="VAL+1", FLNK="$(P)WAITS"),
    db.record("calcout", "WAITS", ODLY="8", CALC="VAL+1", FLNK="$(P)WAITED"), db.counter("WAITED"),
    # longer than the monitor waits
    db.record("calc", "STUCK", CALC="VAL+1", FLNK="$(P)LONG"),
    db.record("calcout", "LONG", ODLY="3600", CALC="VAL+1"),
    # an asynchronous record that processes another one by an input link
    db.record("ai", "OUTER", DTYP="Async Soft Channel", INP="$(P)INNER CA", FLNK="$(P)LAST"),
    db.record("calc", "INNER", CALC="VAL+1"), db.record("calc", "LAST", CALC="VAL+1"),
    # the same, and the other one is slow
    db.record("ai", "AROUND", DTYP="Async Soft Channel", INP="$(P)DEEP CA"),
    db.record("calcout", "DEEP", ODLY="0.05", CALC="VAL+1", FLNK="$(P)DEEPER"), db.counter("DEEPER"),
    # a record that writes to itself
    db.record("calcout", "OWN", CALC="VAL+1", SCAN="5 second", OUT="$(P)OWN.B"),
    # a disabled record, and a loop that ends at a busy record
    db.record("calc", "OFF", CALC="VAL+1", FLNK="$(P)DISABLED"),
    db.record("calc", "DISABLED", CALC="VAL+1", DISA="1", DISS="MINOR", FLNK="$(P)NEVER"), db.counter("NEVER"),
    db.record("calc", "LOOP", CALC="VAL+1", FLNK="$(P)LOOP2"), db.record("calc", "LOOP2", CALC="VAL+1", FLNK="$(P)LOOP"),
    # simulated, with the severity of simulation
    db.record("ai", "SIM", SIMM="YES", SIOL="$(P)VALUE PP", SIMS="MINOR", FLNK="$(P)AFTER"), db.counter("AFTER"),
    db.record("ai", "VALUE", VAL="7"),
    db.chain("DEEP", 300),
])


@pytest.fixture(scope="module")
def latency(module_ioc):
    return module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros=f"US={US}").start()


@pytest.fixture(scope="module")
def ioc(module_ioc):
    return module_ioc(DATABASE).start()


@pytest.fixture(scope="module")
def monitor(module_monitor, ioc, latency):
    return module_monitor().start().at_level("trace", ioc, latency)


def ms(pattern, lines):
    found = re.search(pattern, "\n".join(lines))
    return float(found[1]) if found else 0.0


def test_asleep(latency, monitor):
    latency.put("SLEEP.PROC", 1)
    t = traced(monitor, latency.prefix + "SLEEP")
    took = latency.get("SLEEP:BUSY.VALA") / 1000
    slept, waited = ms(r"slept ([\d.]+) ms", t), ms(r"waited ([\d.]+) ms for a CPU", t)
    assert slept >= US / 1000 * 0.99 and slept + waited == pytest.approx(took, rel=0.1), f"{took} ms\n" + "\n".join(t)
    assert re.search(r"at most [\d.]+ in (clock_)?nanosleep\)", t[-1]), t
    assert "put by" in t[0] and str(os.getpid()) in t[0], t


def test_busy(latency, monitor):
    latency.put("SPIN.PROC", 1)
    t = traced(monitor, latency.prefix + "SPIN")
    assert ms(r"slept ([\d.]+) ms", t) < US / 10000, t
    assert ms(r"held the lock ([\d.]+) ms", t) >= US / 1000, t


def test_asynchronous(latency, monitor):
    """The time of the device, and the records after it, belong to the trace."""
    latency.put("ASYN.PROC", 1)
    p = latency.prefix
    t = traced(monitor, p + "ASYN")
    assert "3 records in 2 steps" in t[0], t
    assert re.search(rf"FLNK > {p}ASYN:DEV \(aSub\) begun", t[2]) and f"async > {p}ASYN:DEV" in t[3], t
    took = latency.get("ASYN:DEV.VALA") / 1000
    assert took > 14 and ms(r"([\d.]+) ms later, in cb", t) == pytest.approx(took, abs=8), (took, t)
    assert re.search(r"^  cb\w+ on CPU .* after [\d.]+ ms in the queue", t[-1]), t
    assert f"FLNK > {p}ASYN:END" in t[4] and t[4].index("FLNK") > t[3].index("async") > t[2].index("FLNK"), t


def test_scan(ioc, monitor):
    t = traced(monitor, ioc.prefix + "SCAN")
    assert t[0].endswith("by scan 2 second") and "scan-2 on CPU" in t[-1], t


def test_put_to_itself(ioc, monitor):
    """The put is not the cause of the chain."""
    t = traced(monitor, ioc.prefix + "OWN")
    assert t[0].endswith("by scan 5 second"), t


def test_cp_link(ioc, monitor):
    ioc.put("SOURCE", 3)
    t = traced(monitor, ioc.prefix + "CP", lambda t: "CP link" in t[0])
    assert t[0].endswith(f"by CP link from {ioc.prefix}SOURCE"), t
    assert re.search(r"^  scanOnce on CPU .* after [\d.]+ ms in the queue", t[-1]), t


def test_inner_chain(ioc, monitor):
    """A CA put to a record of the same IOC: the inner chain runs while the outer chain holds its lock set."""
    ioc.put("OUTER.PROC", 1)
    t = traced(monitor, ioc.prefix + "OUTER")
    assert f"async > {ioc.prefix}OUTER" in "".join(t) and f"FLNK > {ioc.prefix}LAST" in "".join(t), t


def test_asynchronous_record_in_inner_chain(ioc, monitor):
    """An asynchronous record of the inner chain belongs to the inner chain."""
    ioc.put("AROUND.PROC", 1)
    p = ioc.prefix
    t = traced(monitor, p + "DEEP", seconds=5)
    assert " in 2 steps, by the chain of " + p + "AROUND" in t[0] and f"FLNK > {p}DEEPER" in "".join(t), t
    assert not any("incomplete" in line for line in t), t
    t = traced(monitor, p + "AROUND", seconds=5)
    assert "DEEP" not in "".join(t) and not any("incomplete" in line for line in t), t


def test_aliases_come(ioc, monitor, tmp_path):
    """The monitor reads the names again while a trace is open; records and links are the same."""
    p = ioc.prefix
    ioc.put("LONGER.PROC", 1, wait=False)
    ioc.command(f'dbCreateAlias(pdbbase, "{p}LAST", "{p}ALIAS")')

    def is_known():
        monitor.command(f'ebpfMonInventory {tmp_path / "all.json"} "{ioc.name}"')
        return "ALIAS" in (tmp_path / "all.json").read_text()

    until(is_known, 7, "the alias")
    t = traced(monitor, p + "LONGER", seconds=20)
    assert "3 records in 2 steps" in t[0] and not any("incomplete" in line for line in t), t
    assert f"async > {p}WAITS" in "".join(t) and f"FLNK > {p}WAITED" in "".join(t), t


def test_too_many_asynchronous_records(ioc, monitor):
    ioc.put("MANY.PROC", 1)
    t = traced(monitor, ioc.prefix + "MANY")
    assert sum("async >" in l for l in t) == 8 and any("incomplete: not all" in l for l in t), t


def test_not_complete_in_time(ioc, monitor):
    ioc.put("STUCK.PROC", 1, wait=False)
    t = traced(monitor, ioc.prefix + "STUCK", seconds=20)
    assert f"  incomplete: {ioc.prefix}LONG processes still" in t and f"FLNK > {ioc.prefix}LONG (calcout) begun" in t[2], t


def test_disabled_and_loops(ioc, monitor):
    ioc.put("OFF.PROC", 1)
    t = traced(monitor, ioc.prefix + "OFF")
    assert ", 1 record," in t[0] and "DISABLED" not in "".join(t[1:]), t
    ioc.put("LOOP.PROC", 1)
    t = traced(monitor, ioc.prefix + "LOOP")
    assert ", 2 records," in t[0] and t[2].count(f"FLNK > {ioc.prefix}LOOP2 ") == 1 and len(t) == 4, t


def test_simulated(ioc, monitor):
    ioc.put("SIM.PROC", 1)
    t = traced(monitor, ioc.prefix + "SIM")
    assert re.search(rf"{ioc.prefix}SIM \(ai\) = 7  MINOR SIMM$", t[1]), t
    assert f"SIOL > {ioc.prefix}VALUE" in t[2] and f"FLNK > {ioc.prefix}AFTER" in t[3], t


def test_deep(ioc, monitor):
    """The trace has all records. The text shows the first ones."""
    ioc.put("DEEP0.PROC", 1)
    t = traced(monitor, ioc.prefix + "DEEP0")
    assert ", 300 records," in t[0] and "  ... 200 more" in t, t
    names = [re.search(r"(\S+) \(calc\)", l)[1] for l in t[1:101]]
    assert names == [f"{ioc.prefix}DEEP{i}" for i in range(100)]


def test_whole_traces(ioc, monitor):
    """CHAIN_LOG has no room for all. The oldest trace goes as a whole: its last line has the parts of its time."""
    count = monitor.get("CHAIN_LOG_CNT")
    for _ in range(5):
        ioc.put("DEEP0.PROC", 1)
    until(lambda: monitor.get("CHAIN_LOG_CNT") >= count + 5, 10, "more traces")
    log = settled(lambda: monitor.lines("CHAIN_LOG"), 20)  # the text follows after the count
    blocks = re.split(r"(?m)^(?=\d{4}-)", log)[1:]
    assert len(log) > 8000 and all("held the lock" in b.splitlines()[-1] for b in blocks), log


def test_record_pattern(ioc, monitor):
    """A trace is shown if the filter selects one of its records."""
    monitor.set_filter(RECORD=ioc.prefix + "SCANNED")
    try:
        traced(monitor, ioc.prefix + "SCAN")
        before = monitor.get("CHAIN_LOG_CNT")
        for _ in range(5):
            ioc.put("OFF.PROC", 1)
        until(lambda: monitor.get("CHAIN_LOG_CNT") >= before + 5, 10, "more traces")
        traced(monitor, ioc.prefix + "SCAN", lambda t: "by scan" in t[0])

        def newest():
            return re.findall(r"(?m)^\d{4}-\S+ \S+ \S+: (\S+) ", monitor.lines("CHAIN_LOG"))[:5]

        until(lambda: set(newest()) == {ioc.prefix + "SCAN"}, 5, lambda: str(newest()))  # the text follows after the count
    finally:
        monitor.set_filter(RECORD="*")


def test_sample(ioc, monitor):
    p = ioc.prefix + "LOOP"
    monitor.set_filter(RECORD=p, SAMPLE=10)
    try:
        count = monitor.get("CHAIN_LOG_CNT")
        for _ in range(100):
            ca.put(p + ".PROC", 1)
        assert settled(lambda: monitor.get("CHAIN_LOG_CNT"), 10, quiet=1.5) == count + 10
    finally:
        monitor.set_filter(RECORD="*", SAMPLE=1)


def test_chain_older_than_the_level(module_ioc, monitor):
    """A chain that began at a lower level is shown, and marked as incomplete."""
    slow = module_ioc(files=[paths.TESTS / "ioc" / "latency.db"], kind="latencyIoc", macros="US=8000000").start()
    try:
        monitor.wait_ioc(slow, level="trace")
        monitor.set_filter(LEVEL="puts")
        until(lambda: monitor.iocs()[slow.pid][3] == "puts", 10, "level puts")
        slow.put("SLEEP.PROC", 1, wait=False)
        until(lambda: f" {slow.prefix}SLEEP.PROC " in monitor.lines("PUT_LOG"), 3, lambda: monitor.lines("PUT_LOG"))
        monitor.set_filter(LEVEL="trace")
        t = traced(monitor, slow.prefix + "SLEEP")
        assert "  incomplete: it was under way when it was looked at first" in t, t
        assert any(f"> {slow.prefix}SLEEP:END" in l for l in t), t
    finally:
        monitor.set_filter(LEVEL="trace")
